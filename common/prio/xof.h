/* SPDX-License-Identifier: Apache-2.0 */
/* XofTurboShake128 of draft-irtf-cfrg-vdaf: expands a seed into bytes or elements. */
#ifndef CV_PRIO_XOF_H
#define CV_PRIO_XOF_H

#include <stddef.h>
#include <stdint.h>

#include "common/prio/turboshake.h"

struct cv_xof {
  struct cv_turboshake sponge;
};

/* Seed, domain separation tag (in two parts, one after the other) and binder string. seed_len <= 255, and the tag has
 * at most 65535 bytes. */
void cv_xof_init(struct cv_xof *ret, const uint8_t *seed, size_t seed_len, const uint8_t *tag, size_t tag_len,
                 const uint8_t *more_tag, size_t more_tag_len, const uint8_t *binder, size_t binder_len);
/* The next n bytes. */
void cv_xof_bytes(struct cv_xof *xof, uint8_t *ret, size_t n);
/* The next n elements of Field64. Numbers of p and above are dropped. Which ones is public: it says nothing of the
 * others. */
void cv_xof_elements(struct cv_xof *xof, uint64_t *ret, size_t n);

#endif
