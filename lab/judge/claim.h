/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What numbers say of a paper's claim; terms.h says how one writes it.
 *
 * What is compared with another series, or with another point, is compared replicate by replicate. A comparison holds
 * if the difference is beyond the quantile of Student's distribution that leaves what two standard errors leave of a
 * normal one, .023, and fails if it is as far on the other side; what lies between cannot be judged at so many
 * replicates. A claim of several comparisons holds if each of them holds, which needs no correction, and does not hold
 * if one fails, for which .023 is divided by how many there are (Bonferroni), so that no claim falls by the chance of
 * having many points. Where all replicates are alike the difference itself decides, unless it is 0 where more or less
 * is claimed. One replicate decides nothing, nor do fewer than 100 of a root mean square.
 */
#ifndef CV_LAB_CLAIM_H
#define CV_LAB_CLAIM_H

#include "lab/result/dataset.h"

enum cv_lab_verdict { CV_LAB_HOLDS, CV_LAB_FAILS, CV_LAB_UNDECIDED };
/* "holds", "does not hold", "cannot be judged". */
const char *cv_lab_verdict_text(enum cv_lab_verdict verdict);

struct cv_lab_claim {
  const char *says; /* the experiment's */
  enum cv_lab_verdict verdict;
  char reason[400]; /* the numbers that decided: which point, what was found, what was expected */
};

/* They have been checked. */
void cv_lab_claim_judge(const struct cv_lab_dataset *dataset, size_t index, struct cv_lab_claim *ret);
/* Of an experiment that was not run, for this reason: it cannot be judged. */
void cv_lab_claim_open(const struct cv_lab_experiment *experiment, size_t index, const char *reason,
                       struct cv_lab_claim *ret);

#endif
