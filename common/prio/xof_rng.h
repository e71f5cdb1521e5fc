/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an XOF as random bits: a function of its key and binder, and uniform to whoever lacks the key. */
#ifndef CV_PRIO_XOF_RNG_H
#define CV_PRIO_XOF_RNG_H

#include "common/base/rng.h"
#include "common/prio/xof.h"

enum { CV_XOF_RNG_WORDS = 20 /* as many as a block of the sponge has */ };

struct cv_xof_rng {
  struct cv_rng rng;
  struct cv_xof xof;
  uint64_t word[CV_XOF_RNG_WORDS];
};

/* Begins with the next bytes of ret->xof, which is ready. *ret must not move afterwards. */
void cv_xof_rng_init(struct cv_xof_rng *ret);

#endif
