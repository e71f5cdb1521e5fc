/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/net/frame.h"

enum { LIMIT = 64 };

static const size_t SIZES[] = {1, 3, 64, 2, 17, 1};

/* The frames of SIZES; the i-th consists of bytes 'a' + i. Returns the length of the stream. */
static size_t make_stream(uint8_t *stream) {
  size_t n = 0;
  for (size_t i = 0; i < CV_COUNT(SIZES); i++) {
    cv_frame_header(stream + n, SIZES[i]);
    memset(stream + n + CV_FRAME_HEADER, 'a' + (int)i, SIZES[i]);
    n += CV_FRAME_HEADER + SIZES[i];
  }
  return n;
}

/* Passes a piece from memory of exactly its size, so that a read beyond it is detected, and checks the frames. */
static void feed(struct cv_splitter *splitter, const uint8_t *bytes, size_t n, size_t *seen) {
  uint8_t *piece = n == 0 ? NULL : malloc(n);
  if (piece != NULL) {
    memcpy(piece, bytes, n);
  }
  assert_true(n == 0 || piece != NULL);
  cv_splitter_give(splitter, piece, n);
  const uint8_t *frame;
  size_t frame_n;
  struct cv_why why;
  enum cv_err err;
  while ((err = cv_splitter_next(splitter, &frame, &frame_n, &why)) == CV_OK) {
    assert_true(*seen < CV_COUNT(SIZES));
    assert_int_equal(frame_n, SIZES[*seen]);
    for (size_t i = 0; i < frame_n; i++) {
      assert_int_equal(frame[i], 'a' + (int)*seen);
    }
    (*seen)++;
  }
  assert_int_equal(err, CV_ERR_NOT_FOUND);
  assert_int_equal(cv_splitter_keep(splitter), CV_OK);
  free(piece);
}

static void test_every_pair_of_cuts(void **state) {
  uint8_t stream[256];
  size_t n = make_stream(stream);
  for (size_t a = 0; a <= n; a++) {
    for (size_t b = a; b <= n; b++) {
      struct cv_splitter splitter;
      cv_splitter_init(&splitter, LIMIT);
      size_t seen = 0;
      feed(&splitter, stream, a, &seen);
      feed(&splitter, stream + a, b - a, &seen);
      feed(&splitter, stream + b, n - b, &seen);
      assert_int_equal(seen, CV_COUNT(SIZES));
      assert_false(cv_splitter_holds(&splitter));
      cv_splitter_fini(&splitter);
    }
  }
}

static void test_byte_by_byte(void **state) {
  uint8_t stream[256];
  size_t n = make_stream(stream);
  struct cv_splitter splitter;
  cv_splitter_init(&splitter, LIMIT);
  size_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    feed(&splitter, stream + i, 1, &seen);
  }
  assert_int_equal(seen, CV_COUNT(SIZES));
  cv_splitter_fini(&splitter);
}

static void test_whole_frames_are_not_copied(void **state) {
  uint8_t stream[256];
  size_t n = make_stream(stream);
  struct cv_splitter splitter;
  cv_splitter_init(&splitter, LIMIT);
  cv_splitter_give(&splitter, stream, n);
  const uint8_t *frame;
  size_t frame_n;
  assert_int_equal(cv_splitter_next(&splitter, &frame, &frame_n, NULL), CV_OK);
  assert_ptr_equal(frame, stream + CV_FRAME_HEADER);
  cv_splitter_fini(&splitter);
}

/* A reader that stops in the middle gets the rest later, in order, with nothing passed in between. */
static void test_stopping_loses_nothing(void **state) {
  uint8_t stream[256];
  size_t n = make_stream(stream);
  for (size_t taken = 0; taken <= CV_COUNT(SIZES); taken++) {
    struct cv_splitter splitter;
    cv_splitter_init(&splitter, LIMIT);
    cv_splitter_give(&splitter, stream, n);
    for (size_t i = 0; i < taken; i++) {
      const uint8_t *frame;
      size_t frame_n;
      assert_int_equal(cv_splitter_next(&splitter, &frame, &frame_n, NULL), CV_OK);
    }
    assert_int_equal(cv_splitter_keep(&splitter), CV_OK);
    size_t seen = taken;
    feed(&splitter, stream, 0, &seen);
    assert_int_equal(seen, CV_COUNT(SIZES));
    cv_splitter_fini(&splitter);
  }
}

static void test_bad_lengths(void **state) {
  static const struct {
    uint8_t bytes[4];
    enum cv_err err;
    const char *why;
  } cases[] = {
      {{0, 0, 0, 0}, CV_ERR_FORMAT, "frame of 0 bytes, expected at least 1"},
      {{0, 0, 0, 65}, CV_ERR_LIMIT, "frame of 65 bytes is over the limit of 64"},
      {{0xff, 0xff, 0xff, 0xff}, CV_ERR_LIMIT, "frame of 4294967295 bytes is over the limit of 64"},
      {{'G', 'E', 'T', ' '}, CV_ERR_LIMIT, "frame of 1195725856 bytes is over the limit of 64"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    for (size_t cut = 0; cut < 4; cut++) {
      struct cv_splitter splitter;
      struct cv_why why = {{0}};
      const uint8_t *frame;
      size_t frame_n;
      cv_splitter_init(&splitter, LIMIT);
      cv_splitter_give(&splitter, cases[i].bytes, cut);
      assert_int_equal(cv_splitter_next(&splitter, &frame, &frame_n, &why), CV_ERR_NOT_FOUND);
      assert_int_equal(cv_splitter_keep(&splitter), CV_OK);
      cv_splitter_give(&splitter, cases[i].bytes + cut, 4 - cut);
      assert_int_equal(cv_splitter_next(&splitter, &frame, &frame_n, &why), cases[i].err);
      assert_string_equal(why.text, cases[i].why);
      cv_splitter_fini(&splitter);
    }
  }
}

/* A length alone does not make us allocate that much. */
static void test_memory_follows_what_arrives(void **state) {
  struct cv_splitter splitter;
  const uint8_t *frame;
  size_t frame_n;
  uint8_t header[CV_FRAME_HEADER];
  cv_splitter_init(&splitter, 1u << 30);
  cv_frame_header(header, 1u << 30);
  cv_splitter_give(&splitter, header, sizeof(header));
  assert_int_equal(cv_splitter_next(&splitter, &frame, &frame_n, NULL), CV_ERR_NOT_FOUND);
  assert_int_equal(cv_splitter_keep(&splitter), CV_OK);
  assert_true(splitter.kept.cap <= 4096);
  cv_splitter_fini(&splitter);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_pair_of_cuts),
      cmocka_unit_test(test_byte_by_byte),
      cmocka_unit_test(test_whole_frames_are_not_copied),
      cmocka_unit_test(test_stopping_loses_nothing),
      cmocka_unit_test(test_bad_lengths),
      cmocka_unit_test(test_memory_follows_what_arrives),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
