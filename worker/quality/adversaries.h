/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the table of adversaries, one a file. */
#ifndef CV_QUALITY_ADVERSARIES_H
#define CV_QUALITY_ADVERSARIES_H

#include "worker/quality/adversary.h"

extern const struct cv_adversary_class cv_adversary_deterministic;
extern const struct cv_adversary_class cv_adversary_stochastic;
extern const struct cv_adversary_class cv_adversary_fully_oblivious;
extern const struct cv_adversary_class cv_adversary_oblivious;
extern const struct cv_adversary_class cv_adversary_switching;

/* What `fully-oblivious` gives. */
double cv_adversary_drawn(const struct cv_adversary *self, uint32_t arm, uint64_t t);

#endif
