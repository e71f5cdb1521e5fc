/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The normal form of a name, so that one thing has one name, however it was typed: Unicode's NFC, without blanks at its
 * ends. What cannot be seen and would make two names look alike, or turn the line that a name is shown in, is refused.
 * docs/campaigns.md (Names) has the rules; the Python package has its own copy of them (crowdveil/names.py).
 */
#ifndef CV_BASE_NORMAL_H
#define CV_BASE_NORMAL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/*
 * Writes the normal form of `text`, of 1 to size - 1 bytes, to `to`; size is at most CV_ITEM_BYTES (names.h). ASCII
 * names cost a look at each byte. `text` may be any bytes. CV_ERR_INVALID if it has a character that no name may have,
 * CV_ERR_FORMAT if it is empty, too long or not printable UTF-8, with a line that begins with the quoted text; the
 * caller prepends the place. The normal form of a normal form is itself.
 */
CV_MUST_USE enum cv_err cv_name_normalize(const char *text, char *to, size_t size, struct cv_why *why);
/* Whether the text is its own normal form. */
bool cv_name_is_normal(const char *text, size_t size);

#endif
