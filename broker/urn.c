/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/urn.h"

#include <stdlib.h>

/* sum[i] is that of the arms i - (i & -i) to i - 1; sum[0] is not used. */
enum cv_err cv_urn_init(struct cv_urn *urn, uint32_t arms) {
  *urn = (struct cv_urn){.arms = arms, .sum = calloc((size_t)arms + 1, sizeof(*urn->sum))};
  return urn->sum == NULL ? CV_ERR_NOMEM : CV_OK;
}

void cv_urn_fini(struct cv_urn *urn) {
  free(urn->sum);
  *urn = (struct cv_urn){0};
}

/* Sums are modulo 2^64, so that what is taken away is added as its complement. */
static void change(struct cv_urn *urn, uint32_t arm, uint64_t by) {
  urn->places += by;
  for (uint64_t i = (uint64_t)arm + 1; i <= urn->arms; i += i & -i) {
    urn->sum[i] += by;
  }
}

void cv_urn_add(struct cv_urn *urn, uint32_t arm, uint64_t places) {
  change(urn, arm, places);
}

void cv_urn_take(struct cv_urn *urn, uint32_t arm, uint64_t places) {
  change(urn, arm, -places);
}

uint32_t cv_urn_draw(const struct cv_urn *urn, struct cv_rng *rng) {
  CV_REQUIRE(urn->places > 0);
  uint64_t left = cv_rng_below(rng, urn->places), step = 1, at = 0;
  while (step * 2 <= urn->arms) {
    step *= 2;
  }
  /* The last arm before which there are at most `left` places. */
  for (; step > 0; step /= 2) {
    if (at + step <= urn->arms && urn->sum[at + step] <= left) {
      at += step;
      left -= urn->sum[at];
    }
  }
  return (uint32_t)at;
}
