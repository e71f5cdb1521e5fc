/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames in a byte stream: a 4-byte big-endian length, at least 1, then that many bytes. Pure: no network.
 *
 *   cv_splitter_give(&splitter, bytes, n);
 *   while (cv_splitter_next(&splitter, &frame, &frame_n, &why) == CV_OK) { use the frame }
 *   cv_splitter_keep(&splitter);
 *
 * A frame that is complete in the given bytes is returned in place; only a frame that continues beyond them is copied.
 */
#ifndef CV_NET_FRAME_H
#define CV_NET_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"

enum { CV_FRAME_HEADER = 4 };

struct cv_splitter {
  size_t limit; /* largest frame, bytes without the length */
  /* private */
  struct cv_buf kept; /* owned: unread bytes of earlier input, from kept_at on */
  size_t kept_at;
  const uint8_t *at; /* borrowed: unread bytes of the last cv_splitter_give() */
  size_t left;
};

/* Frames of up to `limit` bytes, without their length. */
void cv_splitter_init(struct cv_splitter *splitter, size_t limit);
void cv_splitter_fini(struct cv_splitter *splitter);

/* Adds bytes of the stream, borrowed until cv_splitter_keep(). n may be 0, to read from the kept bytes. */
void cv_splitter_give(struct cv_splitter *splitter, const void *bytes, size_t n);
/*
 * Returns the next complete frame, valid until the next call. CV_ERR_NOT_FOUND: no complete frame yet. CV_ERR_FORMAT
 * (length zero), CV_ERR_LIMIT (length over the limit, detected from the first four bytes) and CV_ERR_NOMEM end the
 * stream; `why` has the message.
 */
CV_MUST_USE enum cv_err cv_splitter_next(struct cv_splitter *splitter, const uint8_t **ret_bytes, size_t *ret_n,
                                         struct cv_why *why);
/* Copies the unread borrowed bytes: part of a frame, or more if the caller stopped early. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_splitter_keep(struct cv_splitter *splitter);
/* The number of kept bytes. */
size_t cv_splitter_kept(const struct cv_splitter *splitter);
/* True if bytes are kept. */
bool cv_splitter_holds(const struct cv_splitter *splitter);

/* Writes the length that precedes a frame of n bytes. */
void cv_frame_header(uint8_t header[CV_FRAME_HEADER], size_t n);

#endif
