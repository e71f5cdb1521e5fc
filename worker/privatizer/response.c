/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Randomized response (Warner 1965), in the shapes of Gajane, Urvoy and Kaufmann, "Corrupt Bandits" (the matrix M_a
 * under "Randomized response"): the score becomes a bit that is 1 with the score's probability, then the bit is kept or
 * flipped. A score between 0 and 1 is therefore protected at least as well as a bit.
 *
 * The code never computes the probability of keeping. It combines exact integer draws of probability e^-epsilon, of a
 * decimal delta and of 1/2 by rejection.
 */
#include "common/base/grid.h"
#include "worker/privatizer/classes.h"

/* True with probability of/in. */
static bool happens(uint64_t of, int64_t in, struct cv_rng *rng) {
  return cv_rng_below(rng, (uint64_t)in) < of;
}

/*
 * True with probability e^epsilon/(1 + e^epsilon): a fair coin proposes to keep, which is accepted, or to flip, which
 * is accepted with probability e^-epsilon; after a rejection the draw repeats. With probability delta the bit is kept
 * outright: delta + (1 - delta) e^epsilon/(1 + e^epsilon) = (e^epsilon + delta)/(1 + e^epsilon).
 */
static bool keeps(const struct cv_local *law, struct cv_rng *rng) {
  if (law->delta_pico > 0 && happens(law->delta_pico, CV_PICO, rng)) {
    return true;
  }
  for (;;) {
    if (cv_rng_u64(rng) % 2 == 0) {
      return true;
    }
    if (cv_bernoulli_exp(rng, law->epsilon_micro, (uint64_t)CV_MICRO)) {
      return false;
    }
  }
}

/* True with probability (e^epsilon + delta)/(1 + e^epsilon + delta): three proposals, of weight 1, delta e^-epsilon and
 * e^-epsilon. */
static bool keeps_as_printed(const struct cv_local *law, struct cv_rng *rng) {
  for (;;) {
    uint64_t proposal = cv_rng_below(rng, 3);
    if (proposal == 0) {
      return true;
    }
    bool granted = cv_bernoulli_exp(rng, law->epsilon_micro, (uint64_t)CV_MICRO);
    if (proposal == 1 && granted && happens(law->delta_pico, CV_PICO, rng)) {
      return true;
    }
    if (proposal == 2 && granted) {
      return false;
    }
  }
}

static int64_t apply(const struct cv_privatizer *self, uint32_t arm, int64_t score, struct cv_rng *rng) {
  const struct cv_local *law = &self->law;
  bool bit = happens((uint64_t)score, CV_GRID, rng), kept;
  if (law->matrices > 0) {
    const struct cv_matrix *matrix = cv_local_matrix(law, arm);
    kept = happens(bit ? matrix->p11_micro : matrix->p00_micro, CV_MICRO, rng);
  } else {
    kept = law->printed ? keeps_as_printed(law, rng) : keeps(law, rng);
  }
  return bit == kept ? CV_GRID : 0;
}

const struct cv_privatizer_class cv_privatizer_response = {
    .kind = CV_LOCAL_RESPONSE,
    .guarantee = "epsilon- or (epsilon, delta)-local differential privacy of each score",
    .apply = apply,
};
