/* SPDX-License-Identifier: Apache-2.0 */
/* The measures, with their metrics. */
#ifndef CV_LAB_MEASURES_H
#define CV_LAB_MEASURES_H

#include "lab/run/measure.h"

/*
 * campaign: runs the campaign (trial.h). Metrics, each for the kinds of policies to which it applies:
 *   accuracy           of a ranking: average over all possible classes, as in Chen et al. (PPAR, 2022)
 *   accuracy-filled    average over the classes that are not empty on both sides
 *   undecided          number of items without a class
 *   misplaced          number of items in a wrong class
 *   pulls, rounds      so far; with a feedback graph, pulls are plays
 *   reward             sum of the true means; against an adversary, of the gains
 *   regret             against the best arm; of a recruitment, against hiring by the true means; against an adversary,
 *                      against the best single arm over the same rounds
 *   regret-share       of a recruitment: regret per unit of the budget
 *   seconds            processor time of one run on this machine; differs from run to run
 */
extern const struct cv_lab_measure cv_lab_measure_campaign;

/*
 * leakage: how much the next decision of a recruitment reveals about one record, averaged over the moment at which a
 * run stops and over the record (Zhao et al. 2020, Definition 5.1; leakage.c has the method). A replicate is a pair of
 * sequences.
 *   leakage            the record's score is replaced by another one of its worker, drawn again
 *   leakage-most       the record's score is replaced by 0 or 1, whichever is farther away
 *   leakage-worst      the largest over all hired workers: the worker's lowest score is replaced by 1, or its highest
 *                      by 0; for small campaigns, since it takes as many measurements as workers
 */
extern const struct cv_lab_measure cv_lab_measure_leakage;

/* noise: the noise that a release of the campaign's mechanism adds to an arm's mean, with one token per release; x is
 * the number of the release. */
extern const struct cv_lab_measure cv_lab_measure_noise;

/*
 * same-arms: whether a bandit plays the same arms in every round if one score, of a uniformly drawn arm and round, is
 * replaced by 0 (Lu, Wang, Qiu and Zhang 2022, section 5.1); 1 or 0, so a mean is a share of runs. All other scores are
 * the same. The policy's choices are its own random draws, which for gap with `noise: printed` include a part of the
 * noise.
 *   same-noise         the second run has the same mechanism noise and the same choices
 *   fresh-noise        the second run draws the noise again
 *   all-fresh          the second run draws the noise and the choices again
 *   shown              whether a release included the score; if not, same-noise is 1
 */
extern const struct cv_lab_measure cv_lab_measure_same_arms;

#endif
