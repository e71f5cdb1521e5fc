/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/exchange.h"

#include <jansson.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/page/jot.h"

#define EXPECTED "expected a number from 0 to 1, {\"score\": NUMBER} or decline"

void cv_exchange_ask(const struct cv_exchange_question *question, struct cv_buf *out) {
  struct cv_jot json = {.out = out};
  cv_jot_open(&json, '{');
  cv_jot_key(&json, "id");
  cv_jot_whole(&json, question->id);
  cv_jot_key(&json, "item");
  cv_jot_whole(&json, question->item);
  cv_jot_key(&json, "name");
  cv_jot_text(&json, question->name);
  cv_jot_key(&json, "campaign");
  cv_jot_text(&json, question->campaign);
  cv_jot_key(&json, "worker");
  cv_jot_whole(&json, question->worker);
  cv_jot_close(&json, '}');
  cv_buf_put(out, "\n", 1);
}

static enum cv_err take_score(const json_t *value, int64_t *ret, struct cv_why *why) {
  double score = json_number_value(value);
  if (!json_is_number(value)) {
    return cv_fail(why, CV_ERR_FORMAT, "no score; " EXPECTED);
  }
  if (!(score >= 0 && score <= 1)) {
    return cv_fail(why, CV_ERR_FORMAT, "a number outside 0 to 1; " EXPECTED);
  }
  *ret = cv_grid_from(score);
  return CV_OK;
}

static enum cv_err take_object(const json_t *object, struct cv_exchange_answer *ret, struct cv_why *why) {
  const json_t *id = json_object_get(object, "id"), *score = json_object_get(object, "score");
  const json_t *decline = json_object_get(object, "decline");
  if (id != NULL) {
    if (!json_is_integer(id) || json_integer_value(id) < 1) {
      return cv_fail(why, CV_ERR_FORMAT, "an id that no question had; expected the question's");
    }
    ret->has_id = true;
    ret->id = (uint64_t)json_integer_value(id);
  }
  if (decline != NULL && !json_is_boolean(decline)) {
    return cv_fail(why, CV_ERR_FORMAT, "a decline that is neither true nor false; " EXPECTED);
  }
  ret->declines = json_is_true(decline);
  if (ret->declines == (score != NULL)) {
    return cv_fail(why, CV_ERR_FORMAT, "%s; " EXPECTED, ret->declines ? "a decline with a score" : "no score");
  }
  return ret->declines ? CV_OK : take_score(score, &ret->score, why);
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

enum cv_err cv_exchange_read(const char *line, size_t n, struct cv_exchange_answer *ret, struct cv_why *why) {
  static const char word[] = "decline";
  struct cv_exchange_answer answer = {0};
  while (n > 0 && is_blank(line[n - 1])) {
    n--;
  }
  while (n > 0 && is_blank(*line)) {
    line++;
    n--;
  }
  if (n == sizeof(word) - 1 && memcmp(line, word, n) == 0) {
    *ret = (struct cv_exchange_answer){.declines = true};
    return CV_OK;
  }
  json_t *json = n > CV_EXCHANGE_LINE_BYTES || memchr(line, '\0', n) != NULL
                     ? NULL
                     : json_loadb(line, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
  enum cv_err err = json == NULL           ? cv_fail(why, CV_ERR_FORMAT, "a line of %zu bytes; " EXPECTED, n)
                    : json_is_object(json) ? take_object(json, &answer, why)
                                           : take_score(json, &answer.score, why);
  json_decref(json);
  if (err == CV_OK) {
    *ret = answer;
  }
  return err;
}
