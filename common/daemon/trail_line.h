/* SPDX-License-Identifier: Apache-2.0 */
/* A line of an audit log (trail.h), as far as the chain of lines is concerned. Lines are without their line break. */
#ifndef CV_DAEMON_TRAIL_LINE_H
#define CV_DAEMON_TRAIL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/digest.h"

enum { CV_TRAIL_HEX = 2 * CV_DIGEST_BYTES + 1 };

/* Its last two fields. */
struct cv_trail_line {
  uint64_t number;
  char previous[CV_TRAIL_HEX]; /* SHA-256 of the line before it, in hexadecimal; zeros in the first line of a log */
};

/* False if the line does not end in these fields. */
bool cv_trail_line_read(const char *line, size_t n, struct cv_trail_line *ret);
/* Whether it begins as every line does, as far as it goes. A line that begins so but cannot be read was cut off by a
 * crash. */
bool cv_trail_line_begins(const char *line, size_t n);
/* The end of a log. */
struct cv_trail_end {
  uint64_t lines;
  struct cv_digest last; /* of the last line; zeros if there is none */
  bool is_torn;          /* the last line has no line break */
};
/*
 * Finds the end of a log in its last `n` bytes, or in all of it. The number of the last line that can be read says how
 * many there were; lines that a crash has cut off have no number, and count. False if it is not an audit log.
 */
bool cv_trail_end_read(const char *tail, size_t n, cv_digest_fn *digest, struct cv_trail_end *ret);

/* The digest in hexadecimal. */
void cv_trail_line_hex(const struct cv_digest *digest, char to[CV_TRAIL_HEX]);

#endif
