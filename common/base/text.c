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

/* U+2028 to U+202E end a line or turn its direction, U+2066 and U+2067 turn it. */
static bool turns(const uint8_t *at, size_t n) {
  return n == 3 && at[0] == 0xe2 &&
         ((at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) || (at[1] == 0x81 && (at[2] == 0xa6 || at[2] == 0xa7)));
}

void cv_text_clean(char *text, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t length = cv_text_char(text + i, n - i);
    if (length == 0 || turns((const uint8_t *)text + i, length)) {
      length = length == 0 ? 1 : length;
      memset(text + i, '?', length);
    }
    i += length;
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

struct cv_text_shown cv_text_shown(const char *name) {
  struct cv_text_shown shown;
  bool runs_left = cv_text_runs_left(name);
  (void)snprintf(shown.text, sizeof(shown.text), "%s%.*s%s", runs_left ? CV_TEXT_ISOLATE : "", CV_TEXT_SHOWN, name,
                 runs_left ? CV_TEXT_ISOLATE_END : "");
  return shown;
}

/* Replaces what begins and ends an isolate, which only who shows a text adds. */
static void clean_isolates(char *text) {
  for (char *at = text; (at = strstr(at, "\xe2\x81")) != NULL; at++) {
    if (at[2] == '\xa8' || at[2] == '\xa9') {
      memset(at, '?', 3);
    }
  }
}

/* Cuts and cleans input text to `most` bytes, and isolates it. */
static struct cv_text_shown show(const char *text, size_t most) {
  char piece[64];
  size_t n = strnlen(text, most);
  memcpy(piece, text, n);
  piece[n] = '\0';
  cv_text_clean(piece, n);
  clean_isolates(piece);
  return cv_text_shown(piece);
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

void cv_text_csv(const char *text, char *to, size_t size) {
  CV_REQUIRE(size >= 2 * strlen(text) + 3);
  *to++ = '"';
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
