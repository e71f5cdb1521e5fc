/* SPDX-License-Identifier: Apache-2.0 */
/* The measures, with their metrics. */
#ifndef CV_LAB_MEASURES_H
#define CV_LAB_MEASURES_H

#include "lab/run/measure.h"

/*
 * campaign: runs the campaign (trial.h). Metrics, each for the kinds of policies to which it applies:
 *   accuracy           of a ranking: average over all possible classes, as in Chen et al. (PPAR, 2022)
 *   accuracy-filled    average over the classes that are not empty on both sides
 *   accuracy-least     the least of any class
 *   correct            1 if every item is in its class, else 0: a mean is a share of runs
 *   undecided          number of items without a class
 *   misplaced          number of items in a wrong class
 *   pulls, rounds      so far; with a feedback graph, pulls are plays
 *   reward             sum of the true means; against an adversary, of the gains
 *   reward-share       of a recruitment: reward over that of hiring by the true means
 *   regret             against the best arm; of a recruitment, against hiring by the true means; against an adversary,
 *                      against the best single arm over the same rounds
 *   regret-share       of a recruitment: regret per unit of the budget
 *   over-sum-bound     of a ranking of 0-or-1 tokens: pulls so far over the lower bound on a private ranking's tokens,
 *   over-pair-bound    and over the larger one that also moves two items at once (prepare/bound.h); no number where the
 *                      bound is infinite, since items tie, or 0
 *   capped             1 if the run ended before its policy was done: at the limit of tokens, money or rounds, or with
 *                      data or a mechanism's horizon used up; else 0: a mean is a share of runs
 *   lies-safe          the least number of false tokens below which every class is as sure as without them, and
 *   lies-turn          below which the noisy means give the same classes (ranking.h); at most the run's tokens
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
 * classes: the ranking of a campaign, class by class; x is the number of the class, from 1.
 *   accuracy           of class x, as in Chen et al. (PPAR, 2022); missing where alpha has no such class
 */
extern const struct cv_lab_measure cv_lab_measure_classes;
/* True for a ranking with a rank span alpha, whose classes can be compared with the true ones. */
bool cv_lab_policy_has(const struct cv_policy_class *policy, const char *key); /* a parameter of this name */
bool cv_lab_has_classes(const struct cv_policy_class *policy);

/* qualities: x is a rank, from 1. quality: the x-th highest true mean; missing beyond the number of items. */
extern const struct cv_lab_measure cv_lab_measure_qualities;

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
