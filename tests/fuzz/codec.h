/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A harness for one codec, written by CODEC_HARNESS(schema): what decodes must encode, and the encoded bytes must
 * decode to the same frame. Two frames are the same if they encode to the same bytes.
 */
#ifndef CV_FUZZ_CODEC_H
#define CV_FUZZ_CODEC_H

#include <string.h>

#include "proto/codec/frame.h"
#include "tests/fuzz/fuzz.h"

#define CODEC_HARNESS(schema)                                                               \
  int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {                              \
    static struct cv_arena arena, scratch;                                                  \
    static struct cv_buf first, second;                                                     \
    struct cv_##schema##_frame frame;                                                       \
    if (arena.base == NULL) {                                                               \
      CV_REQUIRE(cv_arena_init(&arena, CV_ARENA_BYTES) == CV_OK);                           \
      CV_REQUIRE(cv_arena_init(&scratch, CV_ARENA_BYTES) == CV_OK);                         \
    }                                                                                       \
    cv_buf_clear(&first);                                                                   \
    cv_buf_clear(&second);                                                                  \
    if (cv_##schema##_decode(bytes, n, &arena, &frame) != CV_OK) {                          \
      return 0;                                                                             \
    }                                                                                       \
    enum cv_err err = cv_##schema##_encode(&frame, &scratch, &first);                       \
    if (err == CV_ERR_LIMIT) {                                                              \
      return 0;                                                                             \
    }                                                                                       \
    CV_REQUIRE(err == CV_OK);                                                               \
    if (first.len == 0) {                                                                   \
      return 0;                                                                             \
    }                                                                                       \
    CV_REQUIRE(cv_##schema##_decode(first.data, first.len, &arena, &frame) == CV_OK);       \
    CV_REQUIRE(cv_##schema##_encode(&frame, &scratch, &second) == CV_OK);                   \
    CV_REQUIRE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0); \
    return 0;                                                                               \
  }

#endif
