/* SPDX-License-Identifier: Apache-2.0 */
/* The proof that an encoded measurement has only zeros and ones. */
#ifndef CV_PRIO_PROVE_H
#define CV_PRIO_PROVE_H

#include "common/prio/prio.h"

/* p->measurement_elements in, p->proof_elements out: wire seeds, and the gadget polynomial by its values. */
void cv_prio_prove(const struct cv_prio *p, const uint8_t *ctx, size_t ctx_len, const uint8_t seed[CV_PRIO_SEED_BYTES],
                   const uint64_t *measurement, uint64_t *ret);

#endif
