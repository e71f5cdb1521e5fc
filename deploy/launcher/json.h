/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds JSON without a check after each step: out of memory the result is NULL, and NULL propagates to everything
 * built from it. Both functions take ownership of their arguments.
 */
#ifndef CV_LAUNCHER_JSON_H
#define CV_LAUNCHER_JSON_H

#include <jansson.h>

static inline json_t *cv_json_append(json_t *array, json_t *item) {
  if (json_array_append_new(array, item) != 0) {
    json_decref(array);
    return NULL;
  }
  return array;
}

static inline json_t *cv_json_set(json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value) != 0) {
    json_decref(object);
    return NULL;
  }
  return object;
}

#endif
