/* SPDX-License-Identifier: Apache-2.0 */
/* A ranking's result, read from the JSON that result_json.h writes. The file is untrusted. */
#ifndef CV_LAUNCHER_COMPARED_H
#define CV_LAUNCHER_COMPARED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"

struct cv_compared_item {
  const char *name;    /* in `json` */
  uint32_t rank_class; /* counted from 1; 0: undecided */
  uint32_t truth;      /* the true class; 0: unknown */
  bool is_right;       /* has a class, and by its policy's claim a right one; false if the truth is unknown */
  uint64_t tokens;
};

struct cv_compared {
  const char *campaign, *policy; /* in `json` */
  void *json;                    /* private: the file's content, which has all texts */
  struct cv_compared_item *item; /* in the natural order of their distinct names: "item 2" before "item 10"; owned */
  uint32_t items;                /* 1 .. CV_ARMS_MAX */
  bool has_truth;                /* all items have a true class */
  double accuracy;               /* 0 to 1, of the items that have a class; NAN: none has, or the truth is unknown */
  uint64_t tokens, rounds, epsilon_spent_micro;
  double seconds;
  uint64_t lies_safe, lies_turn; /* 0: not known, or no number */
};

/* CV_ERR_IO, CV_ERR_NOMEM; CV_ERR_FORMAT: not such a result, or that of a campaign that does not rank. *ret is
 * unchanged on errors. */
CV_MUST_USE enum cv_err cv_compared_read(const char *path, struct cv_compared *ret, struct cv_why *why);
void cv_compared_fini(struct cv_compared *compared);

/* Returns the number of items without a class. */
uint32_t cv_compared_undecided(const struct cv_compared *compared);
/* Returns the number of items that are right. */
uint32_t cv_compared_right(const struct cv_compared *compared);

#endif
