/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An empirical audit of differential privacy: many runs on two neighbouring inputs, an event chosen on one half of them
 * and judged on the other by Clopper-Pearson bounds. What comes out is a lower bound on the true epsilon, wrong with a
 * small probability that is shared among all rows of the audit; a claim below it is false.
 */
#ifndef CV_LAB_AUDIT_H
#define CV_LAB_AUDIT_H

#include <stddef.h>
#include <stdio.h>

#include "lab/audit/search.h"

enum { CV_AUDIT_RUNS_MIN = 1000 };

struct cv_audit_settings {
  uint64_t runs; /* on each neighbour of a subject with all of its share; at least CV_AUDIT_RUNS_MIN */
  uint64_t seed;
  unsigned jobs;  /* threads */
  double error;   /* probability of any false alarm in the whole audit */
  FILE *progress; /* one line, written over; NULL: none */
};

struct cv_audit_verdict {
  double certified;
  struct cv_audit_event event;
  uint64_t hits[2]; /* on the neighbour where it is likelier and on the other */
  uint64_t runs;    /* that they are of: half of what the subject got, the other half was searched */
  double seconds;
};

/* One verdict a subject. The same for any number of jobs. */
CV_MUST_USE enum cv_err cv_audit_run(const struct cv_audit_subject *subjects, size_t count,
                                     const struct cv_audit_settings *settings, struct cv_audit_verdict *ret);

/* Whether the verdict contradicts the claim. */
static inline bool cv_audit_exceeds(const struct cv_audit_subject *subject, const struct cv_audit_verdict *verdict) {
  return verdict->certified > subject->epsilon;
}

#endif
