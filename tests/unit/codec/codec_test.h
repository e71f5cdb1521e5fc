/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the codecs: random parts of frames, hand-made protobuf bytes, attacks. */
#ifndef CV_TESTS_CODEC_TEST_H
#define CV_TESTS_CODEC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/base/text.h"
#include "proto/codec/frame.h"

static struct cv_arena arena, scratch;

static int make_arenas(void **state) {
  return cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK && cv_arena_init(&scratch, CV_ARENA_BYTES) == CV_OK ? 0 : -1;
}

static int drop_arenas(void **state) {
  cv_arena_fini(&arena);
  cv_arena_fini(&scratch);
  return 0;
}

/* Protobuf encoded by hand, so that the codec is not tested against itself. */

static inline void put_varint(struct cv_buf *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    cv_buf_put_u8(out, (uint8_t)(value | 0x80));
  }
  cv_buf_put_u8(out, (uint8_t)value);
}

static inline void put_number(struct cv_buf *out, uint32_t field, uint64_t value) {
  put_varint(out, (uint64_t)field << 3);
  put_varint(out, value);
}

static inline void put_blob(struct cv_buf *out, uint32_t field, const void *bytes, size_t n) {
  put_varint(out, (uint64_t)field << 3 | 2);
  put_varint(out, n);
  cv_buf_put(out, bytes, n);
}

/* Moves `inner` into `out` as a message field. */
static inline void put_message(struct cv_buf *out, uint32_t field, struct cv_buf *inner) {
  put_blob(out, field, inner->data, inner->len);
  cv_buf_fini(inner);
}

/* Random values. */

static inline const char *random_text(struct cv_rng *rng, size_t size) {
  static const char *const pieces[] = {"a", "Z", "7", " ", "~", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8d\x95"};
  char *text = malloc(size);
  assert_non_null(text);
  text[0] = '\0';
  size_t used = 0, most = cv_rng_below(rng, size);
  for (;;) {
    const char *piece = pieces[cv_rng_below(rng, CV_COUNT(pieces))];
    if (used + strlen(piece) > most) {
      return text;
    }
    memcpy(text + used, piece, strlen(piece) + 1);
    used += strlen(piece);
  }
}

static inline void random_name(struct cv_rng *rng, char *to, size_t size) {
  const char *text = random_text(rng, size);
  memcpy(to, text, strlen(text) + 1);
  free((void *)(uintptr_t)text);
}

static inline void random_bytes(struct cv_rng *rng, uint8_t *to, size_t n) {
  for (size_t i = 0; i < n; i++) {
    to[i] = (uint8_t)cv_rng_u64(rng);
  }
}

/* Of any magnitude, so that every length of a varint occurs. */
static inline uint64_t random_u64(struct cv_rng *rng) {
  return cv_rng_u64(rng) >> cv_rng_below(rng, 64);
}

static inline uint32_t random_u32(struct cv_rng *rng) {
  return (uint32_t)cv_rng_u64(rng) >> cv_rng_below(rng, 32);
}

/* Declared half of the time. */
static inline void random_scale(struct cv_rng *rng, struct cv_scale *ret) {
  double low = (double)cv_rng_below(rng, 100) - 50;
  *ret = cv_rng_below(rng, 2) == 0 ? (struct cv_scale){.low = low, .high = low + 1e-9 * (double)random_u32(rng) + 1}
                                   : (struct cv_scale){0};
}

static inline void random_choice(struct cv_rng *rng, struct cv_choice *ret) {
  *ret = (struct cv_choice){0};
  random_name(rng, ret->name, sizeof(ret->name));
  uint64_t n = cv_rng_below(rng, CV_PARAMS_MAX + 1);
  for (uint64_t i = 0; i < n; i++) {
    char key[CV_PARAM_TEXT], text[CV_PARAM_TEXT];
    (void)snprintf(key, sizeof(key), "key_%llu", (unsigned long long)i);
    random_name(rng, text, sizeof(text));
    assert_int_equal(cv_rng_below(rng, 2) == 0 ? cv_params_set_text(&ret->params, key, text)
                                               : cv_params_set_number(&ret->params, key, cv_rng_normal(rng) * 1e6),
                     CV_OK);
  }
}

static inline void assert_choices_equal(const struct cv_choice *a, const struct cv_choice *b) {
  assert_string_equal(a->name, b->name);
  assert_int_equal(a->params.count, b->params.count);
  for (uint32_t i = 0; i < a->params.count; i++) {
    const struct cv_param *x = &a->params.item[i], *y = &b->params.item[i];
    assert_string_equal(x->key, y->key);
    assert_int_equal(x->is_text, y->is_text);
    assert_true(x->is_text ? strcmp(x->text, y->text) == 0 : x->number == y->number);
  }
}

static inline bool choice_is_bounded(const struct cv_choice *choice) {
  CV_REQUIRE(choice != NULL);
  bool fits = cv_text_is_clean(choice->name, strnlen(choice->name, CV_PARAM_TEXT)) &&
              strnlen(choice->name, CV_PARAM_TEXT) < CV_PARAM_TEXT && choice->params.count <= CV_PARAMS_MAX;
  for (uint32_t i = 0; fits && i < choice->params.count; i++) {
    const struct cv_param *param = &choice->params.item[i];
    fits = strnlen(param->key, CV_PARAM_TEXT) < CV_PARAM_TEXT && param->key[0] != '\0' &&
           (param->is_text ? strnlen(param->text, CV_PARAM_TEXT) < CV_PARAM_TEXT : isfinite(param->number));
  }
  return fits;
}

static inline bool text_is_bounded(const char *text, size_t size) {
  return text != NULL && strlen(text) < size && cv_text_is_clean(text, strlen(text));
}

/* Attacks: `try_bytes` decodes a copy of exactly `n` bytes and asserts the properties of an accepted frame. */

typedef enum cv_err try_fn(const uint8_t *bytes, size_t n);

static inline enum cv_err try_exactly(try_fn *try_bytes, const uint8_t *bytes, size_t n) {
  uint8_t *copy = malloc(n > 0 ? n : 1);
  assert_non_null(copy);
  if (n > 0) { /* an empty buffer may have no bytes to point to */
    memcpy(copy, bytes, n);
  }
  enum cv_err err = try_bytes(copy, n);
  free(copy);
  assert_true(err == CV_OK || err == CV_ERR_FORMAT || err == CV_ERR_LIMIT);
  return err;
}

static inline void attack(try_fn *try_bytes, const struct cv_buf *frame) {
  for (size_t i = 0; i < frame->len; i++) {
    (void)try_exactly(try_bytes, frame->data, i);
  }
  for (size_t i = 0; i < frame->len; i++) {
    uint8_t was = frame->data[i];
    for (unsigned value = 0; value < 256; value++) {
      frame->data[i] = (uint8_t)value;
      (void)try_exactly(try_bytes, frame->data, frame->len);
    }
    frame->data[i] = was;
  }
}

static inline void attack_with_noise(try_fn *try_bytes, uint64_t seed) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, seed, 0, 0, 0);
  for (int i = 0; i < 20000; i++) {
    uint8_t bytes[64];
    random_bytes(&seeded.rng, bytes, sizeof(bytes));
    (void)try_exactly(try_bytes, bytes, cv_rng_below(&seeded.rng, sizeof(bytes) + 1));
  }
}

/* A frame of the largest size that contains only empty messages in `field`, inside message `outer` if that is not 0:
 * unpacked, it would be many times as large as the arena. */
static inline void attack_with_empties(try_fn *try_bytes, uint32_t outer, uint32_t field) {
  struct cv_buf frame = {0}, inner = {0};
  while (inner.len + 16 < CV_FRAME_BYTES) {
    put_blob(&inner, field, NULL, 0);
  }
  if (outer == 0) {
    assert_int_equal(try_exactly(try_bytes, inner.data, inner.len), CV_ERR_LIMIT);
    cv_buf_fini(&inner);
    return;
  }
  put_message(&frame, outer, &inner);
  assert_int_equal(try_exactly(try_bytes, frame.data, frame.len), CV_ERR_LIMIT);
  cv_buf_fini(&frame);
}

/* A frame above the limit is refused unread. */
static inline void attack_with_length(try_fn *try_bytes, size_t limit) {
  struct cv_buf frame = {0};
  uint8_t *zeros = calloc(1, limit);
  assert_non_null(zeros);
  put_blob(&frame, 1000, zeros, limit);
  assert_int_equal(try_exactly(try_bytes, frame.data, frame.len), CV_ERR_LIMIT);
  assert_int_equal(arena.used, 0);
  free(zeros);
  cv_buf_fini(&frame);
}

static inline void assert_same_and_free(struct cv_buf *a, struct cv_buf *b) {
  assert_int_equal(a->len, b->len);
  assert_memory_equal(a->data, b->data, a->len);
  cv_buf_fini(a);
  cv_buf_fini(b);
}

/*
 * try_bytes() decodes arbitrary bytes: an accepted frame is within its bounds, a refused one leaves the result
 * unchanged. try_buf() does so with a frame made by hand, which it frees. For a codec with an assert_bounded() of its
 * own.
 */
#define CODEC_TRIES(schema)                                            \
  static enum cv_err try_bytes(const uint8_t *bytes, size_t n) {       \
    struct cv_##schema##_frame frame, before;                          \
    memset(&frame, 0x5a, sizeof(frame));                               \
    memset(&before, 0x5a, sizeof(before));                             \
    enum cv_err err = cv_##schema##_decode(bytes, n, &arena, &frame);  \
    if (err == CV_OK) {                                                \
      assert_bounded(&frame);                                          \
    } else {                                                           \
      assert_memory_equal(&frame, &before, sizeof(frame));             \
    }                                                                  \
    assert_true(arena.used <= arena.size);                             \
    return err;                                                        \
  }                                                                    \
  static enum cv_err try_buf(struct cv_buf *frame) {                   \
    assert_true(cv_buf_ok(frame));                                     \
    enum cv_err err = try_exactly(try_bytes, frame->data, frame->len); \
    cv_buf_fini(frame);                                                \
    return err;                                                        \
  }

#endif
