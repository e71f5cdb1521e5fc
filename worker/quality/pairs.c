/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/pairs.h"

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
