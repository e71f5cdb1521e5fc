/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand in a line for a person: UTF-8 without control characters. */
#ifndef CV_BASE_TEXT_H
#define CV_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* Bytes of the character at `text`, of which `n` > 0 bytes are there; 0 if it is malformed or a control character. */
size_t cv_text_char(const char *text, size_t n);
/* True if all `n` bytes are such characters. */
bool cv_text_is_clean(const char *text, size_t n);
/* Replaces every byte that is not part of such a character by '?'. */
void cv_text_clean(char *text, size_t n);
/* As snprintf, and clean: what was cut in the middle of a character, too. `size` > 0. */
void cv_text_print(char *text, size_t size, const char *fmt, ...) CV_PRINTF(3, 4);
void cv_text_vprint(char *text, size_t size, const char *fmt, va_list args) CV_PRINTF(3, 0);
/* The next word of a list from `*at` on, words being separated by commas or blanks; `*at` then stands behind it. NULL
 * at the end. */
const char *cv_text_word(const char **at, size_t *ret_n);
/* Whether such a list has this word. */
bool cv_text_lists(const char *words, const char *word);
/* A time: "60 s", or "250 ms" if it is no whole number of seconds. */
struct cv_text_time {
  char text[32];
};
struct cv_text_time cv_text_time(uint64_t ms);
/* As a field of a CSV file: in quotes, those in it doubled. `size` is at least 2 strlen(text) + 3. */
void cv_text_csv(const char *text, char *to, size_t size);

#endif
