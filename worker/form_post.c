/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/form_post.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"

enum { FIELD_SECRET, FIELD_QUESTION, FIELD_SCORE, FIELD_TOKEN, FIELD_SKIP, FIELDS, VALUE_BYTES = 40 };
static const char *const names[FIELDS] = {"secret", "question", "score", "token", "skip"};

int64_t cv_form_score(uint64_t chosen, uint64_t steps) {
  return (int64_t)((2 * chosen * (uint64_t)CV_GRID + steps) / (2 * steps));
}

/* A whole number without sign, of at most 18 digits. */
static bool is_whole(const char *text, uint64_t *ret) {
  size_t n = strlen(text);
  if (n < 1 || n > 18 || strspn(text, "0123456789") != n) {
    return false;
  }
  *ret = strtoull(text, NULL, 10);
  return true;
}

/* Copies one NAME=VALUE to its place; false for an unknown name, a second time, or a value that is too long. */
static bool take_field(const char *at, size_t n, char value[FIELDS][VALUE_BYTES], bool *has) {
  const char *equals = memchr(at, '=', n);
  size_t name_n = equals == NULL ? n : (size_t)(equals - at);
  for (int field = 0; equals != NULL && field < FIELDS; field++) {
    size_t value_n = n - name_n - 1;
    if (strlen(names[field]) == name_n && memcmp(at, names[field], name_n) == 0) {
      if (has[field] || value_n >= VALUE_BYTES || memchr(equals + 1, '\0', value_n) != NULL) {
        return false;
      }
      memcpy(value[field], equals + 1, value_n);
      value[field][value_n] = '\0';
      has[field] = true;
      return true;
    }
  }
  return false;
}

static enum cv_err take_answer(char value[FIELDS][VALUE_BYTES], const bool *has, uint64_t steps,
                               struct cv_form_post *post, struct cv_why *why) {
  uint64_t number;
  if (has[FIELD_SKIP]) { /* a browser sends what was typed, too */
    post->kind = CV_FORM_SKIP;
    return CV_OK;
  }
  if (has[FIELD_SCORE] == has[FIELD_TOKEN]) {
    return cv_fail(why, CV_ERR_FORMAT, "expected a score, a token or a skip, one of them");
  }
  if (has[FIELD_SCORE]) {
    if (!is_whole(value[FIELD_SCORE], &number) || number > steps) {
      return cv_fail(why, CV_ERR_FORMAT, "expected a whole number from 0 to %llu as score", (unsigned long long)steps);
    }
    post->kind = CV_FORM_SCORE;
    post->value = cv_form_score(number, steps);
    return CV_OK;
  }
  bool is_below = value[FIELD_TOKEN][0] == '-';
  if (!is_whole(value[FIELD_TOKEN] + is_below, &number)) {
    return cv_fail(why, CV_ERR_FORMAT, "expected a whole number as token");
  }
  post->kind = CV_FORM_TOKEN;
  post->value = is_below ? -(int64_t)number : (int64_t)number;
  return CV_OK;
}

enum cv_err cv_form_read(const char *body, size_t n, uint64_t steps, struct cv_form_post *ret, struct cv_why *why) {
  struct cv_form_post post = {0};
  char value[FIELDS][VALUE_BYTES] = {{0}};
  bool has[FIELDS] = {false};
  for (size_t at = 0; at < n;) {
    const char *end = memchr(body + at, '&', n - at);
    size_t field_n = end == NULL ? n - at : (size_t)(end - body) - at;
    if (!take_field(body + at, field_n, value, has)) {
      return cv_fail(why, CV_ERR_FORMAT, "a field that the form does not have; expected what the form sends");
    }
    at += field_n + 1;
  }
  if (!has[FIELD_SECRET] || strlen(value[FIELD_SECRET]) != CV_FORM_SECRET_BYTES - 1 || !has[FIELD_QUESTION] ||
      !is_whole(value[FIELD_QUESTION], &post.question)) {
    return cv_fail(why, CV_ERR_FORMAT, "no secret or no question; expected what the form sends");
  }
  memcpy(post.secret, value[FIELD_SECRET], sizeof(post.secret));
  CV_TRY(take_answer(value, has, steps, &post, why));
  *ret = post;
  return CV_OK;
}
