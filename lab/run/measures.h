/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of measures. */
#ifndef CV_LAB_MEASURES_H
#define CV_LAB_MEASURES_H

#include "lab/run/measure.h"

/*
 * campaign: runs the campaign (trial.h). Metrics, of which a kind of policy has those that make sense for it:
 *   accuracy           of a ranking, over all classes that there can be, as Zhao et al. (2024) have it
 *   accuracy-filled    over those that are not empty on both sides
 *   undecided          items without a class
 *   misplaced          items in a wrong class
 *   pulls, rounds      so far; pulls of a graph are plays
 *   reward             by true means; against an adversary the gains
 *   regret             against the best arm; of a recruitment against hiring by the truth; against an adversary, the
 *                      best single arm over the same rounds
 *   regret-share       of a recruitment: regret for each unit of the budget
 *   seconds            of processor time of one run on this machine: differs from run to run
 */
extern const struct cv_lab_measure cv_lab_measure_campaign;

/*
 * leakage: what the next decision of a recruitment tells about one record, on average over where a run is stopped and
 * which record it is (Zhao et al. 2020, Definition 5.1; leakage.c says how). A replicate is a pair of sequences.
 *   leakage            the record takes another score of its worker, drawn anew
 *   leakage-most       it takes 0 or 1, whichever is farther away
 */
extern const struct cv_lab_measure cv_lab_measure_leakage;

/* noise: what a release of the campaign's mechanism adds to an arm's mean, one token a release; x is the number of the
 * release. */
extern const struct cv_lab_measure cv_lab_measure_noise;

/*
 * same-arms: whether a bandit plays the same arms in every round if one score, of an arm and a round drawn evenly, is 0
 * instead of what it was (Lu, Wang, Qiu and Zhang 2022, section 5.1); 1 or 0, so a mean is a share of runs. The scores
 * are otherwise the same. The policy's choices are what it draws by chance; `noise: printed` of gap draws a part of the
 * noise so.
 *   same-noise         the noise of the mechanism and the policy's choices being the same, too
 *   fresh-noise        the noise being drawn anew for the second run
 *   all-fresh          the noise and the policy's choices being drawn anew
 *   shown              whether a release had the score in it; where none has, same-noise is 1
 */
extern const struct cv_lab_measure cv_lab_measure_same_arms;

#endif
