/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/xof_rng.h"

#include <string.h>

static void refill(struct cv_rng *rng) {
  struct cv_xof_rng *self = (struct cv_xof_rng *)rng; /* its first member */
  uint8_t bytes[sizeof(self->word)];
  cv_xof_bytes(&self->xof, bytes, sizeof(bytes));
  for (size_t i = 0; i < CV_XOF_RNG_WORDS; i++) {
    self->word[i] = 0;
    for (size_t j = 0; j < sizeof(self->word[0]); j++) {
      self->word[i] |= (uint64_t)bytes[i * sizeof(self->word[0]) + j] << (8 * j);
    }
  }
  explicit_bzero(bytes, sizeof(bytes));
  rng->word = self->word;
  rng->left = CV_XOF_RNG_WORDS;
}

void cv_xof_rng_init(struct cv_xof_rng *ret) {
  ret->rng = (struct cv_rng){.refill = refill};
}
