/* SPDX-License-Identifier: Apache-2.0 */
/* Text for messages: UTF-8 without control characters ("clean" text). */
#ifndef CV_BASE_TEXT_H
#define CV_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Returns the length in bytes of the character at `text`, of which `n` > 0 bytes are readable; 0 if the character is
 * malformed or a control character. */
size_t cv_text_char(const char *text, size_t n);
/* True if all `n` bytes are clean text. */
bool cv_text_is_clean(const char *text, size_t n);
/* The code point of a character of this length. */
uint32_t cv_text_point(const char *text, size_t length);
/* Embeddings, overrides and isolates: they turn the direction of what follows. */
bool cv_text_turns(uint32_t point);
/* Line separators, and what no font draws (a zero-width space, a soft hyphen), but joiners and what chooses between
 * forms of a character. */
bool cv_text_is_hidden(uint32_t point);
/* Hidden, but for the flag of a region: tags behind a black flag. */
bool cv_text_is_tag(uint32_t point);
/* For whatever others wrote, before it reaches a line, a page or a log: replaces by '?' every byte that is not part of
 * a clean character, and those of characters that turn the direction or are hidden. An isolate stays if a name is shown
 * in it (cv_text_shown()): it ends, and runs from right to left inside. */
void cv_text_clean(char *text, size_t n);
/* Like snprintf, with clean output: a character cut at the end is replaced, too. `size` > 0. */
void cv_text_print(char *text, size_t size, const char *fmt, ...) CV_PRINTF(3, 4);
void cv_text_vprint(char *text, size_t size, const char *fmt, va_list args) CV_PRINTF(3, 0);
/* Returns the next word of a list from `*at` on and moves `*at` behind it. Commas and blanks separate words. NULL at
 * the end. */
const char *cv_text_word(const char **at, size_t *ret_n);
/* Whether the list contains the word. */
bool cv_text_lists(const char *words, const char *word);
/* Writes "a, b or c", cut if it does not fit. `size` > 0. */
void cv_text_either(const char *const *words, size_t n, char *to, size_t size);
/* Whether text has a character of a script that is written from right to left. In a line of other text it would change
 * the order of the numbers beside it. */
bool cv_text_runs_left(const char *text);
/* Around such a text in a line: first strong isolate, and pop directional isolate. */
#define CV_TEXT_ISOLATE     "\xe2\x81\xa8"
#define CV_TEXT_ISOLATE_END "\xe2\x81\xa9"
/* A name of up to CV_TEXT_SHOWN bytes as a line shows it: cleaned, and isolated if it runs from right to left. */
enum { CV_TEXT_SHOWN = 263 };
struct cv_text_shown {
  char text[CV_TEXT_SHOWN + sizeof(CV_TEXT_ISOLATE) + sizeof(CV_TEXT_ISOLATE_END)];
};
struct cv_text_shown cv_text_shown(const char *name);
/* A path, or what a program has said, as a line of text shows it: cleaned. */
struct cv_text_line {
  char text[4096];
};
struct cv_text_line cv_text_line(const char *text);
/* Input text for a message: cleaned, cut if long, and isolated as above. */
struct cv_text_piece {
  char text[72];
};
struct cv_text_piece cv_text_piece(const char *text);
/* The same in quotes, with "..." where it is cut. */
struct cv_text_piece cv_text_quote(const char *text);
/* A time as text: "60 s", or "250 ms" if not a whole number of seconds. */
struct cv_text_time {
  char text[32];
};
struct cv_text_time cv_text_time(uint64_t ms);
/*
 * Writes a text as a CSV field: quoted, with inner quotes doubled. A spreadsheet takes what begins with = + - @, a tab
 * or a carriage return for a formula, so such a text gets an apostrophe in front, as does one that has apostrophes
 * before such a character, so that each is read back. `size` is at least 2 strlen(text) + 4.
 */
void cv_text_csv(const char *text, char *to, size_t size);
/* The text of a field of such a file, without that apostrophe. */
const char *cv_text_of_csv(const char *field);

#endif
