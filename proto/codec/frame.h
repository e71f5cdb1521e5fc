/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the three codecs. A decoded frame is plain C structs in an arena, which the caller resets when done; an
 * encoded frame is the envelope's bytes, without the 4-byte length, which common/net adds. Only the codecs use protobuf
 * structs.
 *
 * Decoding is bounded: CV_FRAME_BYTES of input, CV_ARENA_BYTES of memory, field ranges as documented at the structs.
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
  CV_WHY_BYTES = 200, /* longest reason on the wire */
};

/*
 * Strings in a frame are bounded, terminated, printable UTF-8, in the arena (decode) or borrowed (encode). Encoding
 * takes NULL as empty, and cuts and cleans strings that are too long or not printable. Decoding gives NULL only where
 * the struct defines its meaning.
 */
#endif
