/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/trail_line.h"

#include <stdio.h>
#include <string.h>

static const char BEGIN[] = "{\"time\":\"", NUMBER[] = ",\"n\":", PREVIOUS[] = ",\"previous\":\"", END[] = "\"}";
enum { DIGITS_MAX = 19 };

static bool is_hex(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) {
      return false;
    }
  }
  return true;
}

/* Whether the text before `*end` ends in `word`; if so, *end moves to its beginning. */
static bool cut(const char *line, size_t *end, const char *word) {
  size_t n = strlen(word);
  if (*end < n || memcmp(line + *end - n, word, n) != 0) {
    return false;
  }
  *end -= n;
  return true;
}

/* From the end, since whatever a peer has chosen is before these fields. */
bool cv_trail_line_read(const char *line, size_t n, struct cv_trail_line *ret) {
  struct cv_trail_line read = {0};
  size_t at = n, digits = 0;
  if (!cut(line, &at, END) || at < CV_TRAIL_HEX - 1 || !is_hex(line + at - (CV_TRAIL_HEX - 1), CV_TRAIL_HEX - 1)) {
    return false;
  }
  at -= CV_TRAIL_HEX - 1;
  memcpy(read.previous, line + at, CV_TRAIL_HEX - 1);
  if (!cut(line, &at, PREVIOUS)) {
    return false;
  }
  for (uint64_t ten = 1; digits < DIGITS_MAX && at > 0 && line[at - 1] >= '0' && line[at - 1] <= '9'; ten *= 10) {
    read.number += ten * (uint64_t)(line[--at] - '0');
    digits++;
  }
  if (read.number == 0 || line[at] == '0' || !cut(line, &at, NUMBER) || strncmp(line, BEGIN, sizeof(BEGIN) - 1) != 0) {
    return false;
  }
  *ret = read;
  return true;
}

bool cv_trail_line_begins(const char *line, size_t n) {
  size_t begin = sizeof(BEGIN) - 1;
  return memcmp(line, BEGIN, n < begin ? n : begin) == 0;
}

bool cv_trail_end_read(const char *tail, size_t n, cv_digest_fn *digest, struct cv_trail_end *ret) {
  struct cv_trail_end found = {.is_torn = n > 0 && tail[n - 1] != '\n'};
  struct cv_trail_line line = {0};
  for (size_t stop = found.is_torn ? n : n - 1, start; n > 0; stop = start - 1) {
    const char *before = memrchr(tail, '\n', stop);
    start = before == NULL ? 0 : (size_t)(before + 1 - tail);
    if (found.lines == 0) {
      digest(tail + start, stop - start, NULL, 0, &found.last);
    }
    if (cv_trail_line_read(tail + start, stop - start, &line)) {
      break;
    }
    if (!cv_trail_line_begins(tail + start, stop - start)) {
      return false;
    }
    found.lines++;
    if (start == 0) {
      break;
    }
  }
  found.lines += line.number;
  *ret = found;
  return true;
}

void cv_trail_line_hex(const struct cv_digest *digest, char to[CV_TRAIL_HEX]) {
  for (size_t i = 0; i < CV_DIGEST_BYTES; i++) {
    (void)snprintf(to + 2 * i, 3, "%02x", digest->bytes[i]);
  }
}
