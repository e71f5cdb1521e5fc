/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool continues(const uint8_t *at, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if ((at[i] & 0xc0) != 0x80) {
      return false;
    }
  }
  return true;
}

size_t cv_text_char(const char *text, size_t n) {
  const uint8_t *at = (const uint8_t *)text;
  uint8_t c = at[0];
  if (c < 0x80) {
    return c >= 0x20 && c != 0x7f ? 1 : 0;
  }
  /* The length follows from the first byte; 0xc0, 0xc1 and 0xf5 to 0xff begin no character. */
  size_t length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
  if (c < 0xc2 || c > 0xf4 || length > n || !continues(at + 1, length - 1)) {
    return 0;
  }
  /* The first continuation byte excludes overlong forms, surrogates, C1 controls and code points beyond U+10FFFF. */
  uint8_t next = at[1];
  bool refused = (c == 0xc2 && next < 0xa0) || (c == 0xe0 && next < 0xa0) || (c == 0xed && next > 0x9f) ||
                 (c == 0xf0 && next < 0x90) || (c == 0xf4 && next > 0x8f);
  return refused ? 0 : length;
}

bool cv_text_is_clean(const char *text, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t length = cv_text_char(text + i, n - i);
    if (length == 0) {
      return false;
    }
    i += length;
  }
  return true;
}

/* The blocks of Unicode for scripts from right to left; each character of them has two to four bytes. */
static bool is_from_right(const uint8_t *at, size_t n) {
  unsigned first = at[0], second = n > 1 ? at[1] : 0, third = n > 2 ? at[2] : 0;
  switch (n) {
    case 2: /* U+0590 to U+07FF */
      return first >= 0xd7 || (first == 0xd6 && second >= 0x90);
    case 3: /* U+0800 to U+08FF, U+200F, U+FB1D to U+FDFF, U+FE70 to U+FEFF */
      return (first == 0xe0 && second <= 0xa3) || (first == 0xe2 && second == 0x80 && third == 0x8f) ||
             (first == 0xef && ((second == 0xac && third >= 0x9d) || (second > 0xac && second <= 0xb7) ||
                                (second == 0xb9 && third >= 0xb0) || second == 0xba || second == 0xbb));
    case 4: /* U+10800 to U+10FFF, U+1E800 to U+1EFFF */
      return first == 0xf0 && ((second == 0x90 && third >= 0xa0) || (second == 0x9e && third >= 0xa0));
    default:
      return false;
  }
}

/* ---- what nobody sees, or sees at another place ---- */

enum { FIRST_STRONG_ISOLATE = 0x2068, POP_ISOLATE = 0x2069, BLACK_FLAG = 0x1f3f4 };

struct range {
  uint32_t first, last;
};

static bool lies_in(const struct range *ranges, size_t n, uint32_t point) {
  for (size_t i = 0; i < n; i++) {
    if (point >= ranges[i].first && point <= ranges[i].last) {
      return true;
    }
  }
  return false;
}

bool cv_text_turns(uint32_t point) {
  static const struct range turning[] = {{0x202a, 0x202e}, {0x2066, 0x2069}};
  return lies_in(turning, CV_COUNT(turning), point);
}

bool cv_text_is_hidden(uint32_t point) {
  static const struct range hidden[] = {{0xad, 0xad},       {0x34f, 0x34f},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
                                        {0x180e, 0x180e},   {0x200b, 0x200b},   {0x2028, 0x2029},   {0x2060, 0x206f},
                                        {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
                                        {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff}, {0xe01f0, 0xe0fff}};
  return lies_in(hidden, CV_COUNT(hidden), point);
}

bool cv_text_is_tag(uint32_t point) {
  return point >= 0xe0020 && point <= 0xe007f;
}

uint32_t cv_text_point(const char *text, size_t length) {
  static const uint8_t first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t point = (uint8_t)text[0] & first[length];
  for (size_t i = 1; i < length; i++) {
    point = point << 6 | ((uint8_t)text[i] & 0x3f);
  }
  return point;
}

/* ---- cleaning ---- */

/* Of the isolate at `text`, of whose bytes `n` are readable: where the character that ends it begins. 0: it does not
 * end, or has nothing that runs from right to left, for which alone cv_text_shown() has written it. */
static size_t isolate_end(const char *text, size_t n) {
  static const size_t mark = sizeof(CV_TEXT_ISOLATE) - 1;
  bool is_needed = false;
  for (size_t i = mark, length; i < n; i += length) {
    length = cv_text_char(text + i, n - i);
    if (length == mark && memcmp(text + i, CV_TEXT_ISOLATE_END, mark) == 0) {
      return is_needed ? i : 0;
    }
    is_needed = is_needed || (length > 1 && is_from_right((const uint8_t *)text + i, length));
    length = length == 0 ? 1 : length;
  }
  return 0;
}

void cv_text_clean(char *text, size_t n) {
  size_t end = 0; /* of the present isolate */
  bool is_flag = false;
  for (size_t i = 0, length; i < n; i += length) {
    length = cv_text_char(text + i, n - i);
    uint32_t point = length < 2 ? 0 : cv_text_point(text + i, length);
    bool is_kept =
        length > 0 && !cv_text_turns(point) && (!cv_text_is_hidden(point) || (is_flag && cv_text_is_tag(point)));
    if (point == FIRST_STRONG_ISOLATE && i >= end) {
      size_t inside = isolate_end(text + i, n - i);
      end = inside > 0 ? i + inside : end;
      is_kept = inside > 0;
    } else if (point == POP_ISOLATE) {
      is_kept = i == end && end > 0;
    }
    is_flag = point == BLACK_FLAG || (is_flag && cv_text_is_tag(point));
    length = length == 0 ? 1 : length;
    if (!is_kept) {
      memset(text + i, '?', length);
    }
  }
}

void cv_text_vprint(char *text, size_t size, const char *fmt, va_list args) {
  /* Cleaned after the cut, which may split a character. */
  (void)vsnprintf(text, size, fmt, args);
  cv_text_clean(text, strlen(text));
}

void cv_text_print(char *text, size_t size, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(text, size, fmt, args);
  va_end(args);
}

const char *cv_text_word(const char **at, size_t *ret_n) {
  static const char between[] = ", \t";
  const char *word = *at + strspn(*at, between);
  *ret_n = strcspn(word, between);
  *at = word + *ret_n;
  return *ret_n == 0 ? NULL : word;
}

bool cv_text_lists(const char *words, const char *word) {
  size_t n;
  for (const char *one; (one = cv_text_word(&words, &n)) != NULL;) {
    if (n == strlen(word) && memcmp(one, word, n) == 0) {
      return true;
    }
  }
  return false;
}

bool cv_text_runs_left(const char *text) {
  for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
    n = cv_text_char(text, left);
    if (n > 1 && is_from_right((const uint8_t *)text, n)) {
      return true;
    }
    n = n == 0 ? 1 : n;
  }
  return false;
}

/* Replaces what begins and ends an isolate, which only who shows a text adds. */
static void clean_isolates(char *text) {
  for (char *at = text; (at = strstr(at, "\xe2\x81")) != NULL; at++) {
    if (at[2] == '\xa8' || at[2] == '\xa9') {
      memset(at, '?', 3);
    }
  }
}

struct cv_text_shown cv_text_shown(const char *name) {
  char text[CV_TEXT_SHOWN + 1];
  struct cv_text_shown shown;
  (void)snprintf(text, sizeof(text), "%s", name);
  cv_text_clean(text, strlen(text));
  clean_isolates(text);
  bool runs_left = cv_text_runs_left(text);
  (void)snprintf(shown.text, sizeof(shown.text), "%s%s%s", runs_left ? CV_TEXT_ISOLATE : "", text,
                 runs_left ? CV_TEXT_ISOLATE_END : "");
  return shown;
}

/* Cuts input text to `most` bytes, cleans and isolates it. */
static struct cv_text_shown show(const char *text, size_t most) {
  char piece[64];
  (void)snprintf(piece, sizeof(piece), "%.*s", (int)most, text);
  return cv_text_shown(piece);
}

struct cv_text_line cv_text_line(const char *text) {
  struct cv_text_line line;
  cv_text_print(line.text, sizeof(line.text), "%s", text);
  return line;
}

struct cv_text_piece cv_text_piece(const char *text) {
  struct cv_text_piece piece;
  (void)snprintf(piece.text, sizeof(piece.text), "%.*s", (int)sizeof(piece.text) - 1, show(text, 63).text);
  return piece;
}

struct cv_text_piece cv_text_quote(const char *text) {
  enum { SHOWN = 40 };
  struct cv_text_piece quoted;
  bool is_cut = strnlen(text, SHOWN + 1) > SHOWN;
  (void)snprintf(quoted.text, sizeof(quoted.text), "\"%.*s%s\"", (int)sizeof(quoted.text) - 6, show(text, SHOWN).text,
                 is_cut ? "..." : "");
  return quoted;
}

struct cv_text_time cv_text_time(uint64_t ms) {
  struct cv_text_time ret;
  bool whole = ms % 1000 == 0;
  (void)snprintf(ret.text, sizeof(ret.text), "%" PRIu64 " %s", whole ? ms / 1000 : ms, whole ? "s" : "ms");
  return ret;
}

/* Whether it would be a formula, but for apostrophes in front. */
static bool is_formula(const char *text) {
  const char *first = text + strspn(text, "'");
  return *first != '\0' && strchr("=+-@\t\r", *first) != NULL;
}

const char *cv_text_of_csv(const char *field) {
  return field[0] == '\'' && is_formula(field) ? field + 1 : field;
}

void cv_text_csv(const char *text, char *to, size_t size) {
  CV_REQUIRE(size >= 2 * strlen(text) + 4);
  *to++ = '"';
  if (is_formula(text)) {
    *to++ = '\'';
  }
  for (; *text != '\0'; text++) {
    if (*text == '"') {
      *to++ = '"';
    }
    *to++ = *text;
  }
  *to++ = '"';
  *to = '\0';
}

void cv_text_either(const char *const *words, size_t n, char *to, size_t size) {
  size_t used = 0;
  to[0] = '\0';
  for (size_t i = 0; i < n && used < size; i++) {
    const char *join = i == 0 ? "" : i + 1 == n ? " or " : ", ";
    used += (size_t)snprintf(to + used, size - used, "%s%s", join, words[i]);
  }
}
