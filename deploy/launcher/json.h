/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds JSON without a check after each step: out of memory the result is NULL, and NULL propagates to everything
 * built from it. All functions take ownership of their arguments.
 */
#ifndef CV_LAUNCHER_JSON_H
#define CV_LAUNCHER_JSON_H

#include <jansson.h>
#include <stdio.h>

#include "common/config/escape.h"
#include "common/config/standard.h"

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

/* Prints it on a line of standard output, with these flags of jansson. What cannot be printed is told at the end
 * of the program (standard.h). */
static inline void cv_json_print(json_t *object, size_t flags) {
  bool is_made = object != NULL && json_dump_callback(object, cv_escape_json, stdout, flags) == 0;
  if (is_made) {
    (void)putchar('\n');
  } else if (ferror(stdout) == 0) {
    cv_standard_lose();
  }
  json_decref(object);
}

#endif
