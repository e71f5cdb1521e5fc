/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The law of a privatizer, as everybody may know it: what a token may be, what one token tells about its score, and how
 * the mean of tokens comes from the mean of scores. The broker holds tokens against it, the third-party undoes it, and
 * the worker, who alone applies it, draws from it. It is the one place where a privatizer's parameters are read.
 *
 *   none                 the score itself.
 *   randomized-response  a bit that is 1 with the score's probability, kept with probability p, else flipped; sent as 0
 *                        or CV_GRID. Parameters, either
 *       epsilon            with delta (default 0) and rule:
 *           optimal        p = (e^epsilon + delta)/(1 + e^epsilon), the largest p that is (epsilon, delta)-private
 *           printed        p = (e^epsilon + delta)/(1 + e^epsilon + delta), as Gajane, Urvoy and Kaufmann print it
 *                          ("Corrupt Bandits", the matrix under "Corrupted feedback to enforce differential privacy")
 *       p00, p11           P(0 sent | bit 0) and P(1 sent | bit 1), for all arms, or p00.1, p11.1, p00.2, ... one of
 *                          each for every arm, from 1. Neither is 0 or 1, p00 + p11 is not 1 (it would say nothing).
 *                          Then epsilon is ln of the largest of p00/p01, p01/p00, p11/p10 and p10/p11 (corruption may
 *                          turn the order around), with delta taken off the numerators, of the worst arm.
 *   laplace              the score plus discrete Laplace noise of scale CV_GRID/epsilon, clamped to [-B, CV_GRID + B],
 *                        B = ceil(40 CV_GRID/epsilon). Parameter epsilon.
 *
 * Whatever the score, changing it moves a token by CV_GRID at most with everything drawn held fixed (clamping is
 * 1-Lipschitz), so a mechanism's epsilon holds for the scores behind the tokens as well.
 */
#ifndef CV_BASE_LOCAL_H
#define CV_BASE_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"

/* No local guarantee: the broker is trusted with the score. */
#define CV_EPSILON_NONE UINT64_MAX
/* Units of delta in one: a probability is drawn exactly. */
#define CV_PICO INT64_C(1000000000000)

enum { CV_MATRICES_MAX = 15 };

enum cv_local_kind { CV_LOCAL_NONE, CV_LOCAL_RESPONSE, CV_LOCAL_LAPLACE, CV_LOCAL_KINDS };

/* Probabilities in millionths that a bit is sent as it is. */
struct cv_matrix {
  uint32_t p00_micro, p11_micro;
};

struct cv_local {
  enum cv_local_kind kind;
  uint64_t epsilon_micro; /* of one token, of the worst arm, rounded up; or CV_EPSILON_NONE */
  uint64_t delta_pico;    /* in 10^-12, below CV_PICO */
  uint64_t pure_micro;    /* epsilon of the same law with delta 0: ln of its largest ratio, rounded up; never less */
  int64_t low, high;      /* range of token values, both included */
  bool printed;           /* symmetric response with the printed p */
  uint32_t matrices;      /* 0: symmetric, 1: one for all arms, else one an arm */
  struct cv_matrix matrix[CV_MATRICES_MAX];
};

/* "none", "randomized-response", "laplace"; by kind, NULL at the end. */
extern const char *const cv_local_names[CV_LOCAL_KINDS + 1];
const char *cv_local_name(enum cv_local_kind kind);

/* Reads and checks a choice of privatizer. CV_ERR_NOT_FOUND or CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_local_init(const struct cv_choice *choice, uint32_t arms, struct cv_local *ret,
                                      struct cv_why *why);
/* Whether the privatizer can send this value. */
bool cv_local_sends(const struct cv_local *law, int64_t value);
/* The matrix of an arm; there are some. */
const struct cv_matrix *cv_local_matrix(const struct cv_local *law, uint32_t arm);

/* The mean token of an arm whose mean score is x: offset + slope x, in scores, slope != 0. */
struct cv_feedback {
  double offset, slope;
  double scale; /* of the Laplace noise in one token, in scores; 0: tokens lie in [0, 1] */
};
struct cv_feedback cv_local_feedback(const struct cv_local *law, uint32_t arm);

#endif
