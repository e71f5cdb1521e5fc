/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public part of a privatizer: the range of its tokens, the privacy loss of one token, and how the mean token
 * depends on the mean score. The worker draws tokens by this law, the broker checks tokens against it, and the
 * third-party inverts it. Only this module reads a privatizer's parameters.
 *
 *   none                 the score itself.
 *   randomized-response  a bit that is 1 with the score's probability, kept with probability p, else flipped; sent as 0
 *                        or CV_GRID. Parameters, either
 *       epsilon            with delta (default 0) and rule:
 *           optimal        p = (e^epsilon + delta)/(1 + e^epsilon), the largest p that is (epsilon, delta)-private
 *           printed        p = (e^epsilon + delta)/(1 + e^epsilon + delta), as Gajane, Urvoy and Kaufmann print it
 *                          ("Corrupt Bandits", the matrix under "Corrupted feedback to enforce differential privacy")
 *       p00, p11           P(0 sent | bit 0) and P(1 sent | bit 1), for all arms, or p00.1, p11.1, p00.2, ... one of
 *                          each for every arm, from 1. Neither is 0 or 1; p00 + p11 is not 1, at which a token would be
 *                          independent of the score. Then epsilon is ln of the largest of p00/p01, p01/p00, p11/p10 and
 *                          p10/p11 (corruption may reverse the order), delta subtracted from the numerators, of the
 *                          worst arm.
 *   laplace              the score plus discrete Laplace noise of scale CV_GRID/epsilon, clamped to [-B, CV_GRID + B],
 *                        B = ceil(40 CV_GRID/epsilon). Parameter epsilon.
 *
 *   A privatizer whose row says how often it keeps has no parameters and is randomized response with that matrix.
 *
 * With all random draws held fixed, changing the score moves a token by at most CV_GRID (clamping is 1-Lipschitz). So a
 * mechanism's epsilon for tokens holds for the scores as well.
 */
#ifndef CV_BASE_LOCAL_H
#define CV_BASE_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"

/* No local guarantee: the broker is trusted with the score. */
#define CV_EPSILON_NONE UINT64_MAX
/* Units of delta per 1: probabilities are integers in 10^-12, so that they can be drawn exactly. */
#define CV_PICO INT64_C(1000000000000)

enum { CV_MATRICES_MAX = 15 };

/*
 * The table: ROW(file in worker/privatizer, kind, name in campaigns, whether its tokens lie between 0 and 1 as scores
 * do, parameters, kept).
 *   parameters  read_<parameters>() in local.c reads them: `none`, `response`, `laplace`
 *   kept        millionths. Not 0: a token is a bit, 1 with the score's probability, that is kept with this probability
 *               and else flipped; sent as 0 or CV_GRID. 0: what reads the parameters says what a token is
 */
#define CV_LOCALS(ROW)                                              \
  ROW(none, NONE, "none", true, none, 0)                            \
  ROW(response, RESPONSE, "randomized-response", true, response, 0) \
  ROW(laplace, LAPLACE, "laplace", false, laplace, 0)

/* CV_LOCAL_NONE, ... */
#define CV_LOCAL_KIND(file, kind, ...) CV_LOCAL_##kind,
enum cv_local_kind { CV_LOCALS(CV_LOCAL_KIND) CV_LOCAL_KINDS };
#undef CV_LOCAL_KIND

/* P(bit sent unchanged), in millionths, for bit 0 and bit 1. */
struct cv_matrix {
  uint32_t p00_micro, p11_micro;
};

struct cv_local {
  enum cv_local_kind kind;
  uint64_t epsilon_micro; /* of one token, of the worst arm, rounded up; or CV_EPSILON_NONE */
  uint64_t delta_pico;    /* in 10^-12, below CV_PICO */
  uint64_t
      pure_micro; /* epsilon of the same law at delta 0: ln of its largest ratio, rounded up; at least epsilon_micro */
  int64_t low, high; /* range of token values, both included */
  bool bits;         /* a token is 0 or CV_GRID */
  bool printed;      /* symmetric response with the printed p */
  uint32_t matrices; /* 0: symmetric, 1: one for all arms, else one an arm */
  struct cv_matrix matrix[CV_MATRICES_MAX];
};

/* The names, by kind, NULL at the end. */
extern const char *const cv_local_names[CV_LOCAL_KINDS + 1];
const char *cv_local_name(enum cv_local_kind kind);
/* Finds a privatizer by name; CV_LOCAL_KINDS if there is none. */
enum cv_local_kind cv_local_find(const char *name);
/* Whether tokens lie between 0 and 1 for all parameters; true for CV_LOCAL_KINDS, the unknown privatizer. */
bool cv_local_is_bounded(enum cv_local_kind kind);

/* What it does, in a few words, and its parameters; *ret_count is 0 if it has none. For the reference of campaign
 * files. */
const char *cv_local_about(enum cv_local_kind kind);
const struct cv_param_rule *cv_local_rules(enum cv_local_kind kind, size_t *ret_count);

/* Reads and checks a choice of privatizer. Returns CV_ERR_NOT_FOUND (unknown name) or CV_ERR_INVALID (parameters),
 * with the reason in `why`. */
CV_MUST_USE enum cv_err cv_local_init(const struct cv_choice *choice, uint32_t arms, struct cv_local *ret,
                                      struct cv_why *why);
/* Whether the privatizer can send this value. */
bool cv_local_sends(const struct cv_local *law, int64_t value);
/* The matrix of an arm. `matrices` must not be 0. */
const struct cv_matrix *cv_local_matrix(const struct cv_local *law, uint32_t arm);

/* The mean token of an arm with mean score x is offset + slope x, in scores; slope != 0. */
struct cv_feedback {
  double offset, slope;
  double scale; /* of the Laplace noise in one token, in scores; 0: tokens lie in [0, 1] */
};
struct cv_feedback cv_local_feedback(const struct cv_local *law, uint32_t arm);
/* The mean score at which the mean token is `token`, in scores; outside [0, 1] if no score gives it. */
static inline double cv_feedback_score(struct cv_feedback feedback, double token) {
  return (token - feedback.offset) / feedback.slope;
}

#endif
