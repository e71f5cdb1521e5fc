/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a paper's claim by an experiment's results; terms.h has the format of claims.
 *
 * Comparisons with another series or another point are paired, replicate by replicate. A comparison holds if the
 * difference, in standard errors, exceeds the quantile of Student's distribution with tail .023 (that of a normal
 * variable beyond two standard errors), fails if it is as far on the other side, and otherwise cannot be judged with
 * this number of replicates. A claim with several comparisons holds if all of them hold, which needs no correction. It
 * does not hold if one fails, where .023 is divided by the number of comparisons (Bonferroni), so that a claim about
 * many points does not fail by chance. If all replicates are equal, the difference itself decides, unless it is 0 and
 * the claim is more or less. A single replicate decides nothing, nor do fewer than 100 of a root mean square.
 */
#ifndef CV_LAB_CLAIM_H
#define CV_LAB_CLAIM_H

#include "lab/result/dataset.h"

enum cv_lab_verdict { CV_LAB_HOLDS, CV_LAB_FAILS, CV_LAB_UNDECIDED };
/* "holds", "does not hold", "cannot be judged". */
const char *cv_lab_verdict_text(enum cv_lab_verdict verdict);

struct cv_lab_claim {
  const char *says; /* owned by the experiment */
  enum cv_lab_verdict verdict;
  char reason[400]; /* the deciding comparison: point, value found, value expected */
};

/* Judges claim number `index`; the claims must have passed cv_lab_claims_check(). */
void cv_lab_claim_judge(const struct cv_lab_dataset *dataset, size_t index, struct cv_lab_claim *ret);
/* The verdict for an experiment that was not run, for this reason: the claim cannot be judged. */
void cv_lab_claim_open(const struct cv_lab_experiment *experiment, size_t index, const char *reason,
                       struct cv_lab_claim *ret);

#endif
