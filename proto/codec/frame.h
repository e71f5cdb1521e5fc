/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the three codecs share. A decoded frame is plain C structs in an arena that the caller resets when it is done;
 * an encoded frame is the envelope's bytes, without the 4-byte length (common/net adds that). Protobuf structs stop
 * here.
 *
 * Decoding is bounded: CV_FRAME_BYTES of input, CV_ARENA_BYTES of memory, field ranges as the structs say. Errors:
 * CV_ERR_FORMAT (not an envelope, a field out of its range, an envelope of nothing known), CV_ERR_LIMIT (the frame is
 * too long or the arena is exhausted).
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

enum {
  CV_FRAME_BYTES = 256 * 1024,
  CV_ARENA_BYTES = 16 * CV_FRAME_BYTES,
  CV_WHY_BYTES = 200, /* longest reason on the wire */
};

/*
 * Strings in a frame: bounded, terminated, printable UTF-8, in the arena (decode) or borrowed (encode). To encode, NULL
 * means empty, and what is too long or not printable is cut and cleaned; decoding gives NULL only where the struct says
 * what that means.
 */
#endif
