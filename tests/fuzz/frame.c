/* SPDX-License-Identifier: Apache-2.0 */
/* The splitter: a stream in pieces gives the same frames and the same end as in one piece. First byte: the pieces'
 * sizes. */
#include "common/net/frame.h"

#include <string.h>

#include "common/base/rng.h"
#include "tests/fuzz/fuzz.h"

enum { LIMIT = 64 };

struct seen {
  struct cv_buf frames;
  enum cv_err end;
};

/* Sizes of pieces up to `most`. */
static void split(const uint8_t *bytes, size_t n, size_t most, struct seen *seen) {
  struct cv_splitter splitter;
  cv_splitter_init(&splitter, LIMIT);
  seen->end = CV_ERR_NOT_FOUND;
  for (size_t at = 0, piece; at < n && seen->end == CV_ERR_NOT_FOUND; at += piece) {
    piece = most >= n ? n : 1 + cv_mix64(at + most) % most;
    const uint8_t *frame;
    size_t frame_n;
    cv_splitter_give(&splitter, bytes + at, n - at < piece ? n - at : piece);
    while ((seen->end = cv_splitter_next(&splitter, &frame, &frame_n, NULL)) == CV_OK) {
      CV_REQUIRE(frame_n >= 1 && frame_n <= LIMIT);
      cv_buf_put_bytes(&seen->frames, frame, frame_n);
    }
    CV_REQUIRE(cv_splitter_keep(&splitter) == CV_OK);
  }
  cv_splitter_fini(&splitter);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 2) {
    return 0;
  }
  struct seen whole = {.end = CV_OK}, pieces = {.end = CV_OK};
  split(bytes + 1, n - 1, n, &whole);
  split(bytes + 1, n - 1, 1 + bytes[0] % 16, &pieces);
  CV_REQUIRE(whole.end == pieces.end && whole.frames.len == pieces.frames.len);
  CV_REQUIRE(whole.frames.len == 0 || memcmp(whole.frames.data, pieces.frames.data, whole.frames.len) == 0);
  cv_buf_fini(&whole.frames);
  cv_buf_fini(&pieces.frames);
  return 0;
}
