/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/json_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "worker/starved.h"

enum cv_err cv_json_fail(const struct cv_json_at *at, const char *key, const char *expected) {
  return cv_fail(at->why, CV_ERR_FORMAT, "%s: %s%s%s is missing or wrong; expected %s", at->path, at->place,
                 at->place[0] == '\0' ? "" : ".", key, expected);
}

enum cv_err cv_json_take_whole(const struct cv_json_at *at, const json_t *object, const char *key, uint64_t high,
                               uint64_t *ret) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > high) {
    char expected[64];
    (void)snprintf(expected, sizeof(expected), "a whole number from 0 to %" PRIu64, high);
    return cv_json_fail(at, key, expected);
  }
  *ret = (uint64_t)json_integer_value(value);
  return CV_OK;
}

enum cv_err cv_json_take_u32(const struct cv_json_at *at, const json_t *object, const char *key, uint32_t high,
                             uint32_t *ret) {
  uint64_t value = 0;
  CV_TRY(cv_json_take_whole(at, object, key, high, &value));
  *ret = (uint32_t)value;
  return CV_OK;
}

enum cv_err cv_json_take_real(const struct cv_json_at *at, const json_t *object, const char *key, double *ret) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_number(value)) {
    return cv_json_fail(at, key, "a number");
  }
  *ret = json_number_value(value);
  return CV_OK;
}

enum cv_err cv_json_take_text(const struct cv_json_at *at, const json_t *object, const char *key, char *to,
                              size_t size) {
  const char *text = json_string_value(json_object_get(object, key));
  if (text == NULL || strlen(text) >= size) {
    return cv_json_fail(at, key, "a short text");
  }
  memcpy(to, text, strlen(text) + 1);
  cv_text_clean(to, strlen(to));
  return CV_OK;
}

enum cv_err cv_json_take_array(const struct cv_json_at *at, const json_t *object, const char *key, size_t most,
                               const json_t **ret) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_array(value) || json_array_size(value) > most) {
    return cv_json_fail(at, key, "a list within the size limit");
  }
  *ret = value;
  return CV_OK;
}

enum cv_err cv_json_load(const char *path, json_t **ret, struct cv_why *why) {
  json_error_t error;
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
  }
  cv_starved_watch();
  errno = 0; /* jansson takes a read error for the end of the text and keeps no reason */
  json_t *all = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
  int unread = ferror(file) != 0 ? errno : 0;
  (void)fclose(file);
  if (cv_starved_failed()) {
    json_decref(all);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  if (unread != 0) {
    json_decref(all);
    return cv_fail(why, CV_ERR_IO, "%s: cannot be read: %s", path, strerror(unread));
  }
  if (all == NULL) {
    return cv_fail(why, CV_ERR_FORMAT, "%s:%d:%d: %s", path, error.line, error.column, error.text);
  }
  *ret = all;
  return CV_OK;
}
