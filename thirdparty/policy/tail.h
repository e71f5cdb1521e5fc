/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tail of a release's noise, from its groups. Everything is in units of D/epsilon with D = CV_GRID, like the
 * groups, except what says that it is in scores.
 *
 * For Y a sum of independent Laplaces with scales b_i, v = sum of b_i^2 and b = the largest:
 *
 *   one       P(|Y| > q) = e^(-q/b), exact
 *   two       P(|Y| > q) = (1 + q/(2b)) e^(-q/b), exact if both scales are b. If one is smaller this is still a bound:
 *             each law is symmetric with one mode, so Y lies closer to 0 (Birnbaum, "On Random Variables with
 *             Comparable Peakedness", 1948)
 *   any       Chernoff's bound at its best lambda,
 *             P(|Y| > q) <= g for q = min over 0 < lambda < 1/b of [-(v/b^2) ln(1 - lambda^2 b^2) + ln(2/g)] / lambda
 *
 * What is drawn is the discrete law. Its moment generating function lies below the continuous one, so Chernoff's bound
 * holds for it, too. A discrete Laplace is the difference of two exponentials that are both rounded down to the grid of
 * scores: within one unit of that grid of a continuous one. So two of them have the tail of two continuous ones, two
 * units farther out (cv_tail_rounding()). For one it holds up to a factor of 1 + epsilon/(2 b D) in g.
 */
#ifndef CV_THIRDPARTY_TAIL_H
#define CV_THIRDPARTY_TAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/result.h"

/* True if scales are finite and positive and counts at least 1. Check the release of a peer before any use here. */
bool cv_tail_is_valid(const struct cv_noise *noise);

/* All that a tail needs to know of a noise. */
struct cv_tail {
  double squares, largest; /* v and b */
  uint64_t count;          /* 0: no noise */
};
struct cv_tail cv_tail_of(const struct cv_noise *noise);
/* For states that are stored; `load` returns false if what it reads cannot be the tail of a noise. */
void cv_tail_save(const struct cv_tail *tail, struct cv_buf *out);
CV_MUST_USE bool cv_tail_load(struct cv_reader *in, struct cv_tail *ret);

/*
 * Which of the bounds are used. Every policy took Chernoff's for two noises before there were campaigns with two
 * brokers: those of one broker go on with it, so that a stored campaign has the radii that it had.
 */
enum cv_tail_use {
  CV_TAIL_ONE,  /* exact for one noise */
  CV_TAIL_PAIR, /* exact for one and for two */
};
/* That of a campaign whose mechanism's noises each come from so many brokers. */
enum cv_tail_use cv_tail_use_of(uint32_t brokers);

/* A q with P(|Y| > q) <= e^-level, level >= 0, for levels of any size; 0 without noise. */
double cv_tail_at(const struct cv_tail *tail, enum cv_tail_use use, double level);
/* What is to be added to cv_tail_at(), in scores, because noise is discrete. */
double cv_tail_rounding(const struct cv_tail *tail, enum cv_tail_use use);

/*
 * A q with P(|Y| > q) <= g, 0 < g < 1, in scores, like cv_tail_in_scores() without a privatizer: by the exact tail of
 * up to CV_LAPLACES_MAX noises of the largest scale, and by the moment generating functions of the others. Exact if
 * there are no others. With N the first, b their scale, Z the others, c(x) = sup over y of e^(x y) P(N >= y):
 *
 *   P(N + Z >= q) = E P(N >= q - Z | Z) <= c(x) e^(-x q) E e^(x Z)   for every x of 0 < x <= 1/b.
 *
 * Never above Chernoff's bound but for a unit of the grid for each of the first: so far may N's discrete law lie off
 * the continuous one. `noise` must be the noises themselves (cv_traits_states_noises()).
 */
double cv_tail_exact_in_scores(const struct cv_noise *noise, uint64_t epsilon_micro, double g);

/* cv_tail_at() with CV_TAIL_ONE and level ln(1/g), 0 < g < 1. */
double cv_tail_quantile(const struct cv_noise *noise, double g);

/*
 * The same in scores with this use, including the noise that a privatizer added to each of `tokens` tokens: Laplace
 * variables of `scale`, in scores; 0 for none. epsilon_micro > 0 unless the release has no noise of its own. Only v, b
 * and the count of `noise` are used, so it may be any noise with the true v and b.
 */
double cv_tail_in_scores(const struct cv_noise *noise, enum cv_tail_use use, uint64_t epsilon_micro, double scale,
                         uint64_t tokens, double g);

#endif
