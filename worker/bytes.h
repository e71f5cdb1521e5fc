/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a data file, in order and in bounded memory: as they are, or unpacked from gzip or zstd. Files of
 * several gzip members or zstd frames are read to the end; whatever else follows one, zeros too, is an error: rows may
 * have been there. A UTF-8 byte order mark at the start is left out.
 *
 * A packed file may say a lot in few bytes: reading stops with CV_ERR_LIMIT after CV_BYTES_MAX unpacked bytes, and a
 * zstd file may need a window of 128 MiB at most.
 */
#ifndef CV_WORKER_BYTES_H
#define CV_WORKER_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

#define CV_BYTES_MAX (UINT64_C(4) << 30)

enum cv_packing { CV_PACKING_NONE, CV_PACKING_GZIP, CV_PACKING_ZSTD };

struct cv_bytes_unpacker;

struct cv_bytes {
  const char *path;        /* for messages; borrowed */
  const uint8_t *at, *end; /* the rest of the current chunk */
  uint64_t before;         /* bytes of the chunks before it */
  uint64_t most;           /* of a packed file */
  struct cv_bytes_unpacker *unpacker;
  enum cv_err err; /* why the bytes ended, CV_OK: at the end of the file */
  struct cv_why why;
};

/* By the end of the file's name: .gz and .zst are packed. */
enum cv_packing cv_bytes_packing(const char *path);

/*
 * Opens a regular file. Borrows `path` until cv_bytes_close(). CV_ERR_IO or CV_ERR_NOMEM. `most` is the largest number
 * of unpacked bytes, usually CV_BYTES_MAX; it does not bound a file that is not packed.
 */
CV_MUST_USE enum cv_err cv_bytes_open(const char *path, enum cv_packing packing, uint64_t most, struct cv_bytes *ret,
                                      struct cv_why *why);
/* Safe on a zeroed struct. */
void cv_bytes_close(struct cv_bytes *bytes);

/* Internal to cv_bytes_get(): the next chunk; false at the end. */
bool cv_bytes_fill(struct cv_bytes *bytes);

/* The next byte; EOF at the end, or at an error, which cv_bytes_check() tells. */
static inline int cv_bytes_get(struct cv_bytes *bytes) {
  return bytes->at < bytes->end || cv_bytes_fill(bytes) ? *bytes->at++ : EOF;
}
/* The error that ended the bytes: CV_ERR_IO, CV_ERR_DAMAGED (a damaged or shortened file), CV_ERR_LIMIT or
 * CV_ERR_NOMEM, with one line that begins with the path. CV_OK as long as there was none. */
CV_MUST_USE enum cv_err cv_bytes_check(const struct cv_bytes *bytes, struct cv_why *why);

#endif
