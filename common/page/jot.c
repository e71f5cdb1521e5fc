/* SPDX-License-Identifier: Apache-2.0 */
#include "common/page/jot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

static void put(struct cv_jot *json, const char *text) {
  cv_buf_put(json->out, text, strlen(text));
}

static void begin_value(struct cv_jot *json) {
  if (json->follows) {
    cv_buf_put_u8(json->out, ',');
  }
  json->follows = true;
}

void cv_jot_open(struct cv_jot *json, char mark) {
  begin_value(json);
  cv_buf_put_u8(json->out, (uint8_t)mark);
  json->follows = false;
}

void cv_jot_close(struct cv_jot *json, char mark) {
  cv_buf_put_u8(json->out, (uint8_t)mark);
  json->follows = true;
}

void cv_jot_key(struct cv_jot *json, const char *key) {
  begin_value(json);
  cv_buf_put_u8(json->out, '"');
  put(json, key);
  put(json, "\":");
  json->follows = false;
}

void cv_jot_text(struct cv_jot *json, const char *text) {
  char *clean = text == NULL ? NULL : strdup(text);
  if (clean == NULL) {
    cv_jot_null(json);
    return;
  }
  cv_text_clean(clean, strlen(clean));
  begin_value(json);
  cv_buf_put_u8(json->out, '"');
  for (const char *at = clean; *at != '\0'; at++) {
    if (*at == '"' || *at == '\\') {
      cv_buf_put_u8(json->out, '\\');
    }
    cv_buf_put_u8(json->out, (uint8_t)*at);
  }
  cv_buf_put_u8(json->out, '"');
  free(clean);
}

void cv_jot_whole(struct cv_jot *json, uint64_t value) {
  char digits[24];
  begin_value(json);
  (void)snprintf(digits, sizeof(digits), "%" PRIu64, value);
  put(json, digits);
}

void cv_jot_number(struct cv_jot *json, double value) {
  char digits[40];
  if (!isfinite(value)) {
    cv_jot_null(json);
    return;
  }
  begin_value(json);
  /* 15 digits suffice for most numbers, 17 for all. */
  (void)snprintf(digits, sizeof(digits), "%.15g", value);
  if (strtod(digits, NULL) != value) {
    (void)snprintf(digits, sizeof(digits), "%.17g", value);
  }
  put(json, digits);
}

void cv_jot_bool(struct cv_jot *json, bool value) {
  begin_value(json);
  put(json, value ? "true" : "false");
}

void cv_jot_null(struct cv_jot *json) {
  begin_value(json);
  put(json, "null");
}
