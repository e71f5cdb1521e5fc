/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growable byte buffer, and a reader that cannot run past the end.
 *
 * Integers are little-endian. The reader latches: after the first short read every read returns zero and `failed`
 * stays set, so a decoder reads straight through and checks once.
 */
#ifndef CV_BASE_BUF_H
#define CV_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* All zero is a valid empty buffer. */
struct cv_buf {
  uint8_t *data;
  size_t len, cap; /* bytes */
};

void cv_buf_fini(struct cv_buf *buf);
/* Empties the buffer and keeps its memory. */
void cv_buf_clear(struct cv_buf *buf);
/* Makes room for `more` further bytes. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_buf_reserve(struct cv_buf *buf, size_t more);

/* The put functions grow the buffer themselves. If memory runs out, the buffer is emptied, further puts do nothing,
 * and cv_buf_ok() returns false until cv_buf_clear(). */
bool cv_buf_ok(const struct cv_buf *buf);
void cv_buf_put(struct cv_buf *buf, const void *bytes, size_t n);
void cv_buf_put_u8(struct cv_buf *buf, uint8_t value);
void cv_buf_put_u32(struct cv_buf *buf, uint32_t value);
void cv_buf_put_u64(struct cv_buf *buf, uint64_t value);
void cv_buf_put_f64(struct cv_buf *buf, double value);
/* A 32-bit length, then the bytes. */
void cv_buf_put_bytes(struct cv_buf *buf, const void *bytes, size_t n);

struct cv_reader {
  const uint8_t *at, *end;
  bool failed;
};

struct cv_reader cv_reader_over(const void *bytes, size_t n);
const uint8_t *cv_read(struct cv_reader *reader, size_t n); /* NULL if fewer than n bytes are left */
uint8_t cv_read_u8(struct cv_reader *reader);
uint32_t cv_read_u32(struct cv_reader *reader);
uint64_t cv_read_u64(struct cv_reader *reader);
double cv_read_f64(struct cv_reader *reader);
/* Reads what cv_buf_put_bytes() wrote; the result is borrowed from the input. NULL if too few bytes are left; then
 * *ret_n is unchanged. */
const uint8_t *cv_read_bytes(struct cv_reader *reader, size_t *ret_n);
/* Reads what cv_buf_put_bytes() wrote into a field of `size` bytes, and ends it with a zero byte. The read fails if the
 * text does not fit, or has a zero byte inside, and would read as another one than was put. Then the field is "". */
void cv_read_text(struct cv_reader *reader, char *to, size_t size);
/* True if no read failed and there is input left. */
bool cv_reader_has_more(const struct cv_reader *reader);
/* True if no read failed and all input was consumed. */
bool cv_reader_done(const struct cv_reader *reader);

#endif
