/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subject of an audit: something random whose input is one of two neighbours, and what an adversary sees of it: a row
 * of `width` whole numbers a run, the same quantity in the same place each time.
 */
#ifndef CV_LAB_AUDIT_SUBJECT_H
#define CV_LAB_AUDIT_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_AUDIT_WIDTH_MAX = 256, CV_AUDIT_KEYS_MAX = 16, CV_AUDIT_TEXT = 96 };

/* What goes in: `items` numbers, all `base` but for one, which is 0 or, on the neighbour, `score`. */
struct cv_audit_stream {
  uint32_t items, changed; /* 1 <= changed <= items */
  int64_t base, score;     /* 0 <= both <= CV_GRID */
  uint32_t arm;            /* the changed item's; 0 where there is one */
  uint32_t campaigns;      /* of a pipeline, one after the other; the changed item is the first one's; 0: 1 */
  uint32_t arity;          /* of kary; 0: as kary chooses */
  bool restarts;           /* saved and loaded again and again */
  bool charged;            /* the claim is what the mechanism says it has spent, however much */
};

struct cv_audit_subject {
  char part[CV_AUDIT_TEXT];    /* "hybrid" */
  char setting[CV_AUDIT_TEXT]; /* "n 64, item 3" */
  bool is_sound;               /* else the claim is known to be false, and an excess is what an audit must find */
  double epsilon, delta;       /* claimed */
  uint32_t share;              /* it gets one part in so many of the runs; 0 is 1 */
  uint32_t sweep;              /* not 0: subjects in a row with the same number change one item after the other */
  uint32_t width;              /* at most CV_AUDIT_WIDTH_MAX */
  uint32_t series;             /* so many numbers, from the first on, are of one unit: sums of them mean something */
  /* The numbers whose pairwise differences an adversary looks at too: places below width. */
  uint32_t keys;
  uint16_t key[CV_AUDIT_KEYS_MAX];
  /*
   * Fills row[runs * width] with independent runs on one neighbour; `stream` names their randomness. Called by several
   * threads at once.
   */
  enum cv_err (*sample)(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                        int64_t *row);
  /* What number `at` is called: "F(8)". NULL: "x(8)". */
  void (*label)(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]);
  /* The subject's own: what it audits, and with what. */
  const void *thing;
  uint64_t epsilon_micro;
  uint32_t arms;
  struct cv_audit_stream stream;
};

#endif
