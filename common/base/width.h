/* SPDX-License-Identifier: Apache-2.0 */
/* How many columns of a terminal text takes, by the width of each character: none for marks, two for wide ones. */
#ifndef CV_BASE_WIDTH_H
#define CV_BASE_WIDTH_H

#include <stddef.h>

#include "common/base/text.h"

/* The number of columns of clean text (text.h). */
size_t cv_width_of(const char *text);
/* The number of bytes of the longest beginning of clean text that takes `columns` at most, with the marks on its last
 * character. */
size_t cv_width_fit(const char *text, size_t columns);
/* A name of an item as it is shown in so many columns: cut if it is longer, with `mark` of one column behind it. */
struct cv_text_shown cv_width_cut(const char *name, size_t columns, const char *mark);

#endif
