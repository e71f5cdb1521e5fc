/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a paper's claim by an experiment's results; terms.h has the format of claims.
 *
 * Comparisons with another series or another point are paired, replicate by replicate. A comparison holds if the
 * difference, in standard errors, exceeds the quantile of Student's distribution with tail .023 (that of a normal
 * variable beyond two standard errors), fails if it is as far on the other side, and otherwise cannot be judged with
 * this number of replicates.
 *
 * Every claim of a difference has a smallest difference of interest, x, and what is smaller is none, however clearly it
 * is seen: to hold, the difference must exceed x in the same sense. If it does not hold, an equivalence test (effect.h)
 * with the same tail may show that the difference is smaller than x: no effect larger than x, also if it is one in the
 * wrong direction. If x is a share of the compared value, the difference must exceed that share of it, paired; the
 * equivalence test takes that share of the lower end of this value's interval, and each interval has half of the tail.
 *
 * A claim with several comparisons fails if one fails; otherwise it is undecided if one is; otherwise it has no effect
 * if one has none; otherwise it holds. Controlled is, for each claim, the probability of each wrong verdict, at .023:
 *   holds            needs all comparisons, so that chance must deceive in all that are wrong; no correction
 *   does not hold,   one comparison is enough, so .023 is divided by the number of comparisons that can give this
 *   no effect        verdict (Bonferroni): a claim about many points does not fail, nor lose its effect, by chance
 * Between claims nothing is corrected: of a hundred claims up to five may have a wrong verdict.
 *
 * If all replicates are equal, the difference itself decides, unless it is 0 and the claim is more or less. A single
 * replicate decides nothing, nor do fewer than 100 of a root mean square.
 *
 * A claim about a median is judged by the sign test (Dixon and Mood, "The Statistical Sign Test", 1946): the
 * comparison is true or not in each replicate, and holds if it is true in so many of them that a fair coin gives as
 * many heads or more with probability .023 at most. It fails if it is untrue in as many, and otherwise cannot be
 * judged. A tie is true if the claim allows equality, and otherwise untrue; no replicate is dropped. The test is
 * exact and assumes nothing about the distribution. Of two series with values above 0 it tests the median of the
 * paired ratios.
 *
 * The exact bound of effect.h is one of means. For a root mean square or a median of means an effect is bounded by
 * Student's interval alone (by the delta method; of the groups' means), and if fewer than 10 replicates differ it
 * cannot be judged. What is bounded is the difference of the root mean squares, and the median of means of the
 * difference.
 */
#ifndef CV_LAB_CLAIM_H
#define CV_LAB_CLAIM_H

#include "lab/result/dataset.h"

enum cv_lab_verdict { CV_LAB_HOLDS, CV_LAB_FAILS, CV_LAB_NO_EFFECT, CV_LAB_UNDECIDED };
enum { CV_LAB_VERDICTS = CV_LAB_UNDECIDED + 1 };
/* "holds", "does not hold", "no effect", "cannot be judged". */
const char *cv_lab_verdict_text(enum cv_lab_verdict verdict);

struct cv_lab_claim {
  const char *says, *quote, *where; /* owned by the experiment; `quote` and `where` may be NULL */
  bool is_ours;                     /* not the paper's */
  enum cv_lab_verdict verdict;
  char answer[64];  /* the verdict in words: "no effect larger than 0.005" */
  char reason[500]; /* the deciding comparison: point, value found, value expected */
};

/* Judges claim number `index`; the claims must have passed cv_lab_claims_check(). */
void cv_lab_claim_judge(const struct cv_lab_dataset *dataset, size_t index, struct cv_lab_claim *ret);
/* The verdict for an experiment that was not run, for this reason: the claim cannot be judged. */
void cv_lab_claim_open(const struct cv_lab_experiment *experiment, size_t index, const char *reason,
                       struct cv_lab_claim *ret);

#endif
