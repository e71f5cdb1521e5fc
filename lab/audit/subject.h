/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subject of an audit: a random process whose input is one of two neighbours. In each run an adversary sees a row of
 * `width` integers; each place of the row has the same meaning in all runs.
 */
#ifndef CV_LAB_AUDIT_SUBJECT_H
#define CV_LAB_AUDIT_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "lab/audit/insider.h"

enum { CV_AUDIT_WIDTH_MAX = 256, CV_AUDIT_KEYS_MAX = 16, CV_AUDIT_TEXT = 96 };

/* The input: `items` numbers, all equal to `base` except the changed one, which is 0, or `score` on the neighbour. */
struct cv_audit_stream {
  uint32_t items, changed; /* 1 <= changed <= items */
  int64_t base, score;     /* 0 <= both <= CV_GRID */
  uint32_t arm;            /* of the changed item; 0 with a single arm */
  uint32_t campaigns;      /* of a pipeline, in sequence; the changed item is in the first; 0 means 1 */
  uint32_t arity;          /* of kary and kary-blocks; 0: the default */
  bool restarts;           /* saved and loaded around every release */
  bool charged;            /* the claim is the epsilon that the mechanism reports as spent, even if it is not private */
};

/* Of a pipeline with two brokers: the one that is the adversary. */
struct cv_audit_brokers {
  bool is_cobroker;
  enum cv_lie lie;
  bool seeded; /* both brokers' noise is a function of one seed, as in test runs */
};

struct cv_audit_subject {
  char part[CV_AUDIT_TEXT];    /* "hybrid" */
  char setting[CV_AUDIT_TEXT]; /* "n 64, item 3" */
  bool is_sound;               /* if not, the claim is known to be false, and the audit should find an excess */
  double epsilon, delta;       /* claimed */
  uint32_t share;              /* it gets 1/share of the runs; 0 means 1 */
  uint32_t sweep;              /* not 0: consecutive subjects with this number form a sweep, one changed item each */
  uint32_t width;              /* at most CV_AUDIT_WIDTH_MAX */
  uint32_t series;             /* the first `series` numbers have the same unit, so that sums of them are meaningful */
  /* Places below width; the search also uses the pairwise differences of their numbers. */
  uint32_t keys;
  uint16_t key[CV_AUDIT_KEYS_MAX];
  /*
   * Fills row[runs * width] with independent runs on one neighbour; `stream` selects their randomness. Called by
   * several threads at once.
   */
  enum cv_err (*sample)(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                        int64_t *row);
  /* Writes the name of number `at`, as "F(8)". NULL: "x(8)". */
  void (*label)(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]);
  /* For the subject's own functions: what it audits, and its settings. */
  const void *thing;
  uint64_t epsilon_micro;
  uint32_t arms;
  struct cv_audit_stream stream;
  struct cv_audit_brokers brokers;
};

#endif
