/* SPDX-License-Identifier: Apache-2.0 */
#include "common/prio/xof.h"

#include <endian.h>

#include "common/base/err.h"
#include "common/prio/field.h"
#include "common/prio/public.h"

enum { DOMAIN = 1 };

void cv_xof_init(struct cv_xof *ret, const uint8_t *seed, size_t seed_len, const uint8_t *tag, size_t tag_len,
                 const uint8_t *more_tag, size_t more_tag_len, const uint8_t *binder, size_t binder_len) {
  CV_REQUIRE(seed_len <= UINT8_MAX && tag_len <= UINT16_MAX && more_tag_len <= UINT16_MAX - tag_len);
  size_t whole_tag = tag_len + more_tag_len;
  uint8_t tag_head[2] = {(uint8_t)whole_tag, (uint8_t)(whole_tag >> 8)}, seed_head = (uint8_t)seed_len;
  cv_turboshake_init(&ret->sponge);
  cv_turboshake_absorb(&ret->sponge, tag_head, sizeof(tag_head));
  cv_turboshake_absorb(&ret->sponge, tag, tag_len);
  cv_turboshake_absorb(&ret->sponge, more_tag, more_tag_len);
  cv_turboshake_absorb(&ret->sponge, &seed_head, sizeof(seed_head));
  cv_turboshake_absorb(&ret->sponge, seed, seed_len);
  cv_turboshake_absorb(&ret->sponge, binder, binder_len);
  cv_turboshake_finish(&ret->sponge, DOMAIN);
}

void cv_xof_bytes(struct cv_xof *xof, uint8_t *ret, size_t n) {
  cv_turboshake_squeeze(&xof->sponge, ret, n);
}

/* Moves the elements among n words to the front; returns how many there are. */
static size_t keep_elements(uint64_t *word, size_t n) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    if (cv_prio_public(word[i] < CV_FIELD_P)) {
      word[kept++] = word[i];
    }
  }
  return kept;
}

void cv_xof_elements(struct cv_xof *xof, uint64_t *ret, size_t n) {
  while (n > 0) {
    uint64_t over = 0;
    cv_turboshake_squeeze(&xof->sponge, ret, n * sizeof(*ret));
    for (size_t i = 0; i < n; i++) {
      ret[i] = le64toh(ret[i]);
      over |= ret[i] >= CV_FIELD_P;
    }
    size_t kept = cv_prio_public(over != 0) ? keep_elements(ret, n) : n;
    ret += kept;
    n -= kept;
  }
}
