/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the XOF: a derived seed, and elements of Field128, which are words of the same output. */
#include <stdlib.h>
#include <string.h>

#include "common/prio/xof.h"
#include "tests/vectors/vector.h"

enum { SEED_BYTES = 32, WORD_BYTES = 16, WORDS_END = 1 << 20 };

struct parts {
  struct cv_buf seed, tag, binder;
};

static bool read_parts(const json_t *root, struct parts *ret, struct cv_why *why) {
  return vector_hex(json_object_get(root, "seed"), "seed", &ret->seed, why) &&
         vector_hex(json_object_get(root, "dst"), "dst", &ret->tag, why) &&
         vector_hex(json_object_get(root, "binder"), "binder", &ret->binder, why);
}

static void start(const struct parts *parts, struct cv_xof *ret) {
  cv_xof_init(ret, parts->seed.data, parts->seed.len, parts->tag.data, parts->tag.len, NULL, 0, parts->binder.data,
              parts->binder.len);
}

/* A word of 2^128 - 28 * 2^64 + 1 or more is no element. */
static bool is_element(const uint8_t *word) {
  uint64_t low = 0, high = 0;
  for (int i = 7; i >= 0; i--) {
    low = low << 8 | word[i];
    high = high << 8 | word[i + 8];
  }
  const uint64_t prime_high = UINT64_MAX - 28 + 1;
  return high < prime_high || (high == prime_high && low == 0);
}

static bool check_elements(const json_t *root, const struct parts *parts, struct cv_why *why) {
  uint64_t n = 0;
  if (!vector_number(json_object_get(root, "length"), "length", &n, why)) {
    return false;
  }
  if (n > WORDS_END) {
    cv_why_set(why, "length: %llu; expected at most %d", (unsigned long long)n, WORDS_END);
    return false;
  }
  struct cv_xof xof;
  uint8_t *words = calloc(n + 1, WORD_BYTES);
  CV_REQUIRE(words != NULL);
  start(parts, &xof);
  for (uint64_t i = 0; i < n;) {
    cv_xof_bytes(&xof, words + i * WORD_BYTES, WORD_BYTES);
    i += is_element(words + i * WORD_BYTES);
  }
  bool same =
      vector_same(json_object_get(root, "expanded_vec_field128"), "expanded_vec_field128", words, n * WORD_BYTES, why);
  free(words);
  return same;
}

static bool check(const json_t *root, const struct parts *parts, struct cv_why *why) {
  struct cv_xof xof;
  uint8_t derived[SEED_BYTES];
  if (parts->seed.len > UINT8_MAX || parts->tag.len > UINT16_MAX) {
    cv_why_set(why, "seed, dst: %zu and %zu bytes; expected at most 255 and 65535", parts->seed.len, parts->tag.len);
    return false;
  }
  start(parts, &xof);
  cv_xof_bytes(&xof, derived, sizeof(derived));
  return vector_same(json_object_get(root, "derived_seed"), "derived_seed", derived, sizeof(derived), why) &&
         check_elements(root, parts, why);
}

enum outcome vector_replay_xof(json_t *root, struct cv_why *why) {
  struct parts parts = {0};
  bool same = read_parts(root, &parts, why) && check(root, &parts, why);
  cv_buf_fini(&parts.seed);
  cv_buf_fini(&parts.tag);
  cv_buf_fini(&parts.binder);
  return same ? PASSED : FAILED;
}
