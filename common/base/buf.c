/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/buf.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/le.h"

enum { CAP_LEAST = 64 };
/* As `cap`: memory has run out, and the buffer ignores puts until it is cleared. */
static const size_t FAILED = SIZE_MAX;

void cv_buf_fini(struct cv_buf *buf) {
  if (buf == NULL) {
    return;
  }
  free(buf->data);
  *buf = (struct cv_buf){0};
}

void cv_buf_clear(struct cv_buf *buf) {
  if (buf->cap == FAILED) {
    *buf = (struct cv_buf){0};
  }
  buf->len = 0;
}

bool cv_buf_ok(const struct cv_buf *buf) {
  return buf->cap != FAILED;
}

enum cv_err cv_buf_reserve(struct cv_buf *buf, size_t more) {
  if (buf->cap == FAILED) {
    return CV_ERR_NOMEM;
  }
  if (buf->cap - buf->len >= more) {
    return CV_OK;
  }
  /* Far below where sums of sizes could wrap. */
  if (more > SIZE_MAX / 4 - buf->len) {
    return CV_ERR_NOMEM;
  }
  size_t wanted = buf->len + more;
  return CV_ARRAY_ROOM(buf->data, wanted < CAP_LEAST ? CAP_LEAST : wanted, buf->cap);
}

static void fail(struct cv_buf *buf) {
  /* The content goes, so that a buffer with a hole can never be stored or sent. */
  free(buf->data);
  *buf = (struct cv_buf){.cap = FAILED};
}

void cv_buf_put(struct cv_buf *buf, const void *bytes, size_t n) {
  if (cv_buf_reserve(buf, n) != CV_OK) {
    if (buf->cap != FAILED) {
      fail(buf);
    }
    return;
  }
  if (n > 0) {
    memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
  }
}

void cv_buf_put_u8(struct cv_buf *buf, uint8_t value) {
  cv_buf_put(buf, &value, 1);
}

static void put_le(struct cv_buf *buf, uint64_t value, size_t n) {
  uint8_t bytes[8];
  (void)cv_le_put(bytes, value, n);
  cv_buf_put(buf, bytes, n);
}

void cv_buf_put_u32(struct cv_buf *buf, uint32_t value) {
  put_le(buf, value, 4);
}

void cv_buf_put_u64(struct cv_buf *buf, uint64_t value) {
  put_le(buf, value, 8);
}

void cv_buf_put_f64(struct cv_buf *buf, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  put_le(buf, bits, 8);
}

void cv_buf_put_bytes(struct cv_buf *buf, const void *bytes, size_t n) {
  /* The length is stored in 32 bits. */
  CV_REQUIRE(n <= UINT32_MAX);
  cv_buf_put_u32(buf, (uint32_t)n);
  cv_buf_put(buf, bytes, n);
}

struct cv_reader cv_reader_over(const void *bytes, size_t n) {
  /* No arithmetic on a pointer that may be NULL. */
  const uint8_t *start = n > 0 ? bytes : NULL;
  return (struct cv_reader){.at = start, .end = n > 0 ? start + n : NULL};
}

const uint8_t *cv_read(struct cv_reader *reader, size_t n) {
  /* Sticky: a caller reads a whole record and tests once, at its end. */
  if (reader->failed || (size_t)(reader->end - reader->at) < n) {
    reader->failed = true;
    return NULL;
  }
  const uint8_t *at = reader->at;
  if (n > 0) {
    reader->at += n;
  }
  return at;
}

static uint64_t read_le(struct cv_reader *reader, size_t n) {
  const uint8_t *bytes = cv_read(reader, n);
  uint64_t value = 0;
  for (size_t i = 0; bytes != NULL && i < n; i++) {
    value |= (uint64_t)bytes[i] << (8 * i);
  }
  return value;
}

uint8_t cv_read_u8(struct cv_reader *reader) {
  return (uint8_t)read_le(reader, 1);
}

uint32_t cv_read_u32(struct cv_reader *reader) {
  return (uint32_t)read_le(reader, 4);
}

uint64_t cv_read_u64(struct cv_reader *reader) {
  return read_le(reader, 8);
}

double cv_read_f64(struct cv_reader *reader) {
  uint64_t bits = read_le(reader, 8);
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

const uint8_t *cv_read_bytes(struct cv_reader *reader, size_t *ret_n) {
  size_t n = cv_read_u32(reader);
  const uint8_t *bytes = cv_read(reader, n);
  if (reader->failed) {
    return NULL;
  }
  *ret_n = n;
  return bytes;
}

void cv_read_text(struct cv_reader *reader, char *to, size_t size) {
  size_t n = 0;
  const uint8_t *bytes = cv_read_bytes(reader, &n);
  if (bytes == NULL || n >= size || memchr(bytes, '\0', n) != NULL) {
    reader->failed = true;
    n = 0;
  } else {
    memcpy(to, bytes, n);
  }
  to[n] = '\0';
}

bool cv_reader_has_more(const struct cv_reader *reader) {
  return !reader->failed && reader->at < reader->end;
}

bool cv_reader_done(const struct cv_reader *reader) {
  return !reader->failed && reader->at == reader->end;
}
