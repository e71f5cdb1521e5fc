/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The live table of a running campaign on a terminal: a row an item, with its interval as a bar, and what is spent.
 * Pure: the size of the terminal is an argument.
 *
 *     restaurants   2 of 3 ranked, class 2   1.2 s
 *     class item            0.1                      1   mean
 *       1  Roma                                 ━━●━━  0.912 ±0.031
 *       2  Golden Wok                  ━━●━━           0.611 ±0.030
 *       -  Station Buffet   ───○───                    0.188 ±0.062
 *     tokens   ████████──────────  1,245 of 5,000   97,412/s
 *     epsilon  0.25 of 0.5   rounds 12
 *
 * The bars range over the tenths that cover all intervals. Where a policy does not rank, a bar is the item's share of
 * the tokens instead.
 */
#ifndef CV_LAUNCHER_LIVE_H
#define CV_LAUNCHER_LIVE_H

#include "common/base/buf.h"
#include "common/campaign/complete.h"
#include "proto/codec/order.h"
#include "thirdparty/policy/policy.h"

/* A terminal with fewer columns or lines gets no table. */
enum { CV_LIVE_COLUMNS_MIN = 24, CV_LIVE_LINES_MIN = 7 };

struct cv_live_screen {
  unsigned columns, lines; /* at least the smallest ones above */
  bool has_colour, has_utf8;
};

struct cv_live {
  enum cv_policy_kind kind;
  uint64_t epsilon_micro;             /* the campaign's limit; 0: unknown */
  const char *const *name;            /* of each arm; NULL: "item 3", counted from 1 */
  const struct cv_standing *standing; /* of each arm by number; NULL: none is known, and there are no rows */
  const uint32_t *order;              /* of the rows, as cv_live_order() makes it; NULL only without standings */
  struct cv_progress progress;
};

/* Orders arms for people: a ranking by class, then mean, undecided ones last; others by tokens. `ret_order` has room
 * for `arms`. */
void cv_live_order(enum cv_policy_kind kind, const struct cv_standing *standing, uint32_t arms, uint32_t *ret_order);

/* Appends at most screen->lines - 1 lines, none wider than the screen; returns their number. Rows without room are
 * counted in one line. */
unsigned cv_live_draw(const struct cv_live *live, const struct cv_live_screen *screen, struct cv_buf *out);

#endif
