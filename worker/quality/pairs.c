/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/pairs.h"

#include <math.h>
#include <stdlib.h>

void cv_pairs_fini(struct cv_pairs *pairs) {
  free(pairs->strength);
  free(pairs->chance);
  *pairs = (struct cv_pairs){0};
}

double cv_pairs_chance(const struct cv_pairs *pairs, uint32_t arm, uint32_t opponent) {
  if (pairs->chance != NULL) {
    return pairs->chance[(size_t)arm * pairs->arms + opponent];
  }
  double mine = pairs->strength[arm], theirs = pairs->strength[opponent];
  return mine + theirs > 0 ? mine / (mine + theirs) : .5;
}

double cv_pairs_borda(const struct cv_pairs *pairs, uint32_t arm) {
  double sum = 0;
  for (uint32_t other = 0; other < pairs->arms; other++) {
    sum += other == arm ? 0 : cv_pairs_chance(pairs, arm, other);
  }
  return sum / (pairs->arms - 1);
}

/* Rounding allowance: 0.55 must count as within 0.05 of 1/2. */
static const double SLACK = 1e-12;

static uint32_t class_of(const struct cv_standing *standing) {
  return cv_standing_is_decided(standing) ? standing->rank_class : UINT32_MAX;
}

static bool is_tied(const struct cv_pairs *pairs, double tie, uint32_t a, uint32_t b) {
  return a == b || fabs(cv_pairs_chance(pairs, a, b) - .5) <= tie + SLACK;
}

/* Whether nothing in another class contradicts this arm's. */
static bool is_in_order(const struct cv_pairs *pairs, double tie, const struct cv_standing *standing, uint32_t arm) {
  uint32_t mine = class_of(&standing[arm]);
  for (uint32_t other = 0; other < pairs->arms; other++) {
    uint32_t theirs = class_of(&standing[other]);
    if (theirs != mine && !is_tied(pairs, tie, arm, other) &&
        (cv_pairs_chance(pairs, arm, other) > .5) != (mine < theirs)) {
      return false;
    }
  }
  return true;
}

/* The arm of this class that most of the class tie with; of several the first. */
static uint32_t centre_of(const struct cv_pairs *pairs, double tie, const struct cv_standing *standing,
                          uint32_t rank_class) {
  uint32_t centre = pairs->arms, most = 0;
  for (uint32_t arm = 0; arm < pairs->arms; arm++) {
    uint32_t tied = 0;
    for (uint32_t other = 0; class_of(&standing[arm]) == rank_class && other < pairs->arms; other++) {
      tied += class_of(&standing[other]) == rank_class && is_tied(pairs, tie, arm, other);
    }
    centre = tied > most ? arm : centre;
    most = tied > most ? tied : most;
  }
  return centre;
}

void cv_pairs_right(const struct cv_pairs *pairs, double tie, const struct cv_standing *standing, bool *ret_right) {
  for (uint32_t arm = 0; arm < pairs->arms; arm++) {
    ret_right[arm] = cv_standing_is_decided(&standing[arm]) && is_in_order(pairs, tie, standing, arm);
  }
  for (uint32_t rank_class = 1; rank_class <= pairs->arms; rank_class++) {
    uint32_t centre = centre_of(pairs, tie, standing, rank_class);
    for (uint32_t arm = 0; centre < pairs->arms && arm < pairs->arms; arm++) {
      bool is_mine = class_of(&standing[arm]) == rank_class;
      ret_right[arm] = ret_right[arm] && (!is_mine || is_tied(pairs, tie, arm, centre));
    }
  }
}
