/* SPDX-License-Identifier: Apache-2.0 */
/* What may stand in a line for a person: UTF-8 without control characters. */
#ifndef CV_BASE_TEXT_H
#define CV_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at `text`, of which `n` > 0 bytes are there; 0 if it is malformed or a control character. */
size_t cv_text_char(const char *text, size_t n);
/* True if all `n` bytes are such characters. */
bool cv_text_is_clean(const char *text, size_t n);
/* Replaces every byte that is not part of such a character by '?'. */
void cv_text_clean(char *text, size_t n);

#endif
