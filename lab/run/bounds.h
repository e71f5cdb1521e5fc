/* SPDX-License-Identifier: Apache-2.0 */
/* Upper bounds on the regret of whole campaigns, rows of the table of formulas (formula.h). `x` is ignored. */
#ifndef CV_LAB_BOUNDS_H
#define CV_LAB_BOUNDS_H

#include "common/base/err.h"

struct cv_prepared;

/*
 * EXP3_tau against an adversary with a memory of m < tau rounds: sqrt(7 T tau K ln K) + T m/tau + tau (Tossou and
 * Dimitrakakis 2017, theorem 3.4; Dekel, Tewari and Arora 2012, theorem 2, with the regret sqrt(7 T K ln K) of EXP3).
 */
CV_MUST_USE enum cv_err cv_lab_bound_tau_fits(const struct cv_prepared *campaign, double x, struct cv_why *why);
double cv_lab_bound_tau(const struct cv_prepared *campaign, double x);

/*
 * GAP on a fixed graph: (176 a/D^2 + 32 a/(epsilon D)) ln(8 K ceil(log2 1/D)^2/delta), a the graph's independence
 * number, D the smallest distance from the best mean, bounds the regret of a run with probability 1 - delta (Lu, Wang,
 * Qiu and Zhang 2022, theorem 2). With T delta added, the expected regret (theorem 3 if delta is 1/T). At most
 * CV_LAB_BOUND_ARMS items.
 */
CV_MUST_USE enum cv_err cv_lab_bound_gap_fits(const struct cv_prepared *campaign, double x, struct cv_why *why);
double cv_lab_bound_gap_of_run(const struct cv_prepared *campaign, double x);
double cv_lab_bound_gap(const struct cv_prepared *campaign, double x);

enum { CV_LAB_BOUND_ARMS = 40 };

#endif
