/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON that is whole or not there: as soon as memory runs out it is NULL, and so is all that it is put into. Both take
 * what they are given.
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
