/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An empirical audit of differential privacy: many runs on two neighbouring inputs, with an event that is chosen on one
 * half of the runs and tested on the other by Clopper-Pearson bounds. The result is a lower bound on the true epsilon;
 * a claim below it is false. The probability that any of the audit's bounds is wrong is at most settings.error.
 */
#ifndef CV_LAB_AUDIT_H
#define CV_LAB_AUDIT_H

#include <stddef.h>
#include <stdio.h>

#include "lab/audit/search.h"

enum { CV_AUDIT_RUNS_MIN = 1000 };

struct cv_audit_settings {
  uint64_t runs; /* on each neighbour of a subject with share 1; at least CV_AUDIT_RUNS_MIN */
  uint64_t seed;
  unsigned jobs;  /* threads */
  double error;   /* probability of any false alarm in the whole audit */
  FILE *progress; /* see cv_lab_pool(); NULL: none */
};

struct cv_audit_verdict {
  double certified; /* lower bound on epsilon; may be negative or -INFINITY */
  struct cv_audit_event event;
  uint64_t hits[2]; /* runs with the event: on the neighbour where it is likelier, and on the other */
  uint64_t runs;    /* tested runs on each neighbour: half of the subject's, the search used the other half */
  double seconds;
};

/* Sets one verdict per subject. The verdicts do not depend on the number of jobs. */
CV_MUST_USE enum cv_err cv_audit_run(const struct cv_audit_subject *subjects, size_t count,
                                     const struct cv_audit_settings *settings, struct cv_audit_verdict *ret);

/* Whether the verdict contradicts the claim. */
static inline bool cv_audit_exceeds(const struct cv_audit_subject *subject, const struct cv_audit_verdict *verdict) {
  return verdict->certified > subject->epsilon;
}

#endif
