/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads JSON files. They are untrusted: every value is checked for type and range, and each error is one line with the
 * file, the place in it and what was expected (CV_ERR_FORMAT). A missing key fails like a wrong type.
 */
#ifndef CV_LAUNCHER_JSON_READ_H
#define CV_LAUNCHER_JSON_READ_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

/* The place of a value, for messages: "releases[3]". */
struct cv_json_at {
  struct cv_why *why;
  const char *path;
  char place[64];
};

/* Reads a whole file; refuses duplicate keys. The caller owns *ret. CV_ERR_IO, CV_ERR_NOMEM or CV_ERR_FORMAT. */
CV_MUST_USE enum cv_err cv_json_load(const char *path, json_t **ret, struct cv_why *why);

/* "PATH: PLACE.KEY is missing or wrong; expected ...". Returns CV_ERR_FORMAT. */
enum cv_err cv_json_fail(const struct cv_json_at *at, const char *key, const char *expected);

/* A whole number from 0 to `high`. */
CV_MUST_USE enum cv_err cv_json_take_whole(const struct cv_json_at *at, const json_t *object, const char *key,
                                           uint64_t high, uint64_t *ret);
CV_MUST_USE enum cv_err cv_json_take_u32(const struct cv_json_at *at, const json_t *object, const char *key,
                                         uint32_t high, uint32_t *ret);
CV_MUST_USE enum cv_err cv_json_take_real(const struct cv_json_at *at, const json_t *object, const char *key,
                                          double *ret);
/* A text of fewer than `size` bytes, copied to `to`. */
CV_MUST_USE enum cv_err cv_json_take_text(const struct cv_json_at *at, const json_t *object, const char *key, char *to,
                                          size_t size);
/* An array of at most `most` values, still owned by `object`. */
CV_MUST_USE enum cv_err cv_json_take_array(const struct cv_json_at *at, const json_t *object, const char *key,
                                           size_t most, const json_t **ret);

#endif
