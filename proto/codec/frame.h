/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by all codecs. A decoded frame is plain C structs in an arena, which the caller resets when done; an
 * encoded frame is the envelope's bytes, without the 4-byte length, which common/net adds. Only the codecs use protobuf
 * structs.
 *
 * Decoding is bounded: CV_FRAME_BYTES of input (in the schemas rank, order and share as many as cv_codec_frame_most()
 * says, for messages with an element an arm), sixteen times as much memory (at least CV_ARENA_BYTES), field ranges as
 * documented at the structs.
 * Errors: CV_ERR_FORMAT (not an envelope, a field out of its range, or an envelope without a known message),
 * CV_ERR_LIMIT (the frame is too long or the arena is exhausted).
 */
#ifndef CV_CODEC_FRAME_H
#define CV_CODEC_FRAME_H

#include <stdbool.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/hello.h"
#include "common/base/result.h"
#include "common/base/spec.h"
#include "common/base/wire.h"

enum {
  CV_FRAME_BYTES = 256 * 1024,
  CV_ARENA_BYTES = 16 * CV_FRAME_BYTES,
  /* What an arm can add to a frame: name, cost, worker and place in a plan; its standing takes less. */
  CV_FRAME_ARM_BYTES = 300,
  CV_LARGE_FRAME_BYTES = CV_FRAME_BYTES + CV_ARMS_MAX * CV_FRAME_ARM_BYTES,
  CV_LARGE_ARENA_BYTES = CV_ARENA_BYTES + CV_ARMS_MAX * 1536,
  CV_WHY_BYTES = 200, /* longest reason on the wire */
};

/* The largest frame about campaigns of up to so many arms. */
static inline size_t cv_codec_frame_most(uint32_t arms) {
  return CV_FRAME_BYTES + (size_t)arms * CV_FRAME_ARM_BYTES;
}

/*
 * Strings in a frame are bounded, terminated, printable UTF-8, in the arena (decode) or borrowed (encode). Encoding
 * takes NULL as empty, and cuts and cleans strings that are too long or not printable. Decoding gives NULL only where
 * the struct defines its meaning.
 */
#endif
