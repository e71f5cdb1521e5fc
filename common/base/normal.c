/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/normal.h"

#include <string.h>
#include <utf8proc.h>

#include "common/base/names.h"
#include "common/base/text.h"

/* The most code points that are read of a name: it may have been typed in more of them than it has in the end. */
enum { TYPED = 4 * CV_ITEM_BYTES };
enum { BLACK_FLAG = 0x1f3f4 };

/* Unicode's property White_Space, the byte order mark and Braille's blank. */
static bool is_blank(utf8proc_int32_t c) {
  static const utf8proc_int32_t blanks[] = {0x20,   0x85,   0xa0,   0x1680, 0x2028, 0x2029,
                                            0x202f, 0x205f, 0x2800, 0x3000, 0xfeff};
  bool is_one = (c >= 0x09 && c <= 0x0d) || (c >= 0x2000 && c <= 0x200a);
  for (size_t i = 0; i < CV_COUNT(blanks) && !is_one; i++) {
    is_one = c == blanks[i];
  }
  return is_one;
}

/* The marks that say which way neutral characters run. */
static bool is_direction_mark(utf8proc_int32_t c) {
  return c == 0x200e || c == 0x200f || c == 0x061c;
}

static bool runs_right_to_left(utf8proc_int32_t c) {
  unsigned class = utf8proc_get_property(c)->bidi_class;
  return !is_direction_mark(c) && (class == UTF8PROC_BIDI_CLASS_R || class == UTF8PROC_BIDI_CLASS_AL);
}

/* Tags behind a black flag, up to U+E007F, make it the flag of a region. Returns how many there are. */
static size_t count_tags(const utf8proc_int32_t *at, size_t n) {
  size_t tags = 0;
  while (tags < n && at[tags] != 0xe007f && cv_text_is_tag((uint32_t)at[tags])) {
    tags++;
  }
  return tags > 0 && tags < n && at[tags] == 0xe007f ? tags + 1 : 0;
}

/* ---- the steps: a name as code points, without copies where it only becomes shorter ---- */

struct points {
  utf8proc_int32_t *c;
  size_t n;
};

/* Reads the code points of the text; false if it is not UTF-8 or has more than `most`. */
static bool decode(const char *text, size_t most, struct points *ret) {
  const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
  for (size_t left = strlen(text); left > 0;) {
    utf8proc_ssize_t bytes = ret->n < most ? utf8proc_iterate(at, (utf8proc_ssize_t)left, &ret->c[ret->n++]) : -1;
    if (bytes <= 0) {
      return false;
    }
    at += bytes;
    left -= (size_t)bytes;
  }
  return true;
}

/* In a name in which nothing runs from right to left, marks of direction are only unseen. */
static void drop_idle_marks(struct points *points) {
  size_t kept = 0;
  for (size_t i = 0; i < points->n; i++) {
    if (runs_right_to_left(points->c[i])) {
      return;
    }
  }
  for (size_t i = 0; i < points->n; i++) {
    points->c[kept] = points->c[i];
    kept += !is_direction_mark(points->c[i]);
  }
  points->n = kept;
}

static void trim(struct points *points) {
  while (points->n > 0 && is_blank(points->c[points->n - 1])) {
    points->n--;
  }
  while (points->n > 0 && is_blank(points->c[0])) {
    points->c++;
    points->n--;
  }
}

/* The first code point that no name may have; 0: there is none. */
static utf8proc_int32_t find_refused(const struct points *points) {
  for (size_t i = 0; i < points->n; i++) {
    if (cv_text_turns((uint32_t)points->c[i]) || cv_text_is_hidden((uint32_t)points->c[i])) {
      return points->c[i];
    }
    i += points->c[i] == BLACK_FLAG ? count_tags(points->c + i + 1, points->n - i - 1) : 0;
  }
  return 0;
}

static bool has_control(const struct points *points) {
  for (size_t i = 0; i < points->n; i++) {
    if (points->c[i] < 0x20 || (points->c[i] >= 0x7f && points->c[i] < 0xa0)) {
      return true;
    }
  }
  return false;
}

/* Writes the composed form, of 1 to size - 1 bytes; false if it has none or more. */
static bool compose(const struct points *points, char *to, size_t size) {
  utf8proc_uint8_t bytes[4 * TYPED];
  utf8proc_int32_t apart[4 * TYPED + 1]; /* no character has more than four parts */
  utf8proc_ssize_t n = 0;
  for (size_t i = 0; i < points->n; i++) {
    n += utf8proc_encode_char(points->c[i], bytes + n);
  }
  n = utf8proc_decompose(bytes, n, apart, CV_COUNT(apart) - 1, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  CV_REQUIRE(n >= 0 && (size_t)n < CV_COUNT(apart));
  n = utf8proc_reencode(apart, n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (n < 1 || (size_t)n >= size) {
    return false;
  }
  memcpy(to, apart, (size_t)n);
  to[n] = '\0';
  return true;
}

/* Most names: copied as they are; false if there is more to do. */
static bool copy_plain(const char *text, char *to, size_t size) {
  size_t n = 0;
  for (; n < size && text[n] >= ' ' && text[n] <= '~'; n++) {
    to[n] = text[n];
  }
  if (n == 0 || n == size || text[n] != '\0' || text[0] == ' ' || text[n - 1] == ' ') {
    return false;
  }
  to[n] = '\0';
  return true;
}

enum cv_err cv_name_normalize(const char *text, char *to, size_t size, struct cv_why *why) {
  utf8proc_int32_t c[TYPED];
  char plain[CV_ITEM_BYTES];
  struct points points = {.c = c};
  CV_REQUIRE(size > 0 && size <= CV_ITEM_BYTES);
  if (copy_plain(text, plain, size)) {
    memcpy(to, plain, strlen(plain) + 1);
    return CV_OK;
  }
  bool is_text = decode(text, CV_COUNT(c), &points);
  if (is_text) {
    drop_idle_marks(&points);
    trim(&points);
    utf8proc_int32_t refused = find_refused(&points);
    if (refused != 0) {
      return cv_fail(why, CV_ERR_INVALID, "%s has U+%04X, which %s; expected a name without it",
                     cv_text_quote(text).text, (unsigned)refused,
                     cv_text_turns((uint32_t)refused) ? "turns the direction of what follows" : "cannot be seen");
    }
  }
  return is_text && !has_control(&points) && compose(&points, to, size)
             ? CV_OK
             : cv_fail(why, CV_ERR_FORMAT, "%s is not a valid name; expected 1 to %zu bytes of printable UTF-8",
                       cv_text_quote(text).text, size - 1);
}

bool cv_name_is_normal(const char *text, size_t size) {
  char normal[CV_ITEM_BYTES];
  return cv_name_normalize(text, normal, size, NULL) == CV_OK && strcmp(text, normal) == 0;
}
