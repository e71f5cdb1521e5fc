/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about a word that is not one of the expected words. */
#ifndef CV_BASE_NEAREST_H
#define CV_BASE_NEAREST_H

#include <stddef.h>

#include "common/base/err.h"

/* The word most similar to `text`, or NULL if none is similar. */
const char *cv_nearest(const char *text, const char *const *words, size_t n);
/* Writes `unknown KIND "TEXT"; did you mean "WORD"?` if one of the `n` words is similar, otherwise `unknown KIND
 * "TEXT"; expected one of A, B or C`. Returns CV_ERR_NOT_FOUND. */
enum cv_err cv_nearest_fail(struct cv_why *why, const char *kind, const char *text, const char *const *words, size_t n);

#endif
