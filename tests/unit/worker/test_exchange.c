/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/grid.h"
#include "worker/exchange.h"

static void test_a_question(void **state) {
  static const char expected[] =
      "{\"id\":7,\"item\":0,\"name\":\"the \\\"Grill\\\"\",\"campaign\":\"caf\xc3\xa9\",\"worker\":281474976710655}\n";
  const struct cv_exchange_question question = {
      .id = 7, .name = "the \"Grill\"", .campaign = "caf\xc3\xa9", .worker = UINT64_C(281474976710655)};
  struct cv_buf out = {0};
  cv_exchange_ask(&question, &out);
  assert_int_equal(out.len, sizeof(expected) - 1);
  assert_memory_equal(out.data, expected, out.len);
  cv_buf_fini(&out);
}

static void test_answers(void **state) {
  static const struct {
    const char *line;
    uint64_t id;
    bool declines;
    double score;
  } good[] = {{"0", 0, false, 0},
              {"1", 0, false, 1},
              {"  0.25\t\r", 0, false, .25},
              {"5e-1", 0, false, .5},
              {"{\"score\":0.75}", 0, false, .75},
              {"{\"id\": 12, \"score\": 1, \"note\": [1, {}]}", 12, false, 1},
              {"decline", 0, true, 0},
              {" decline ", 0, true, 0},
              {"{\"decline\": true, \"id\": 3}", 3, true, 0},
              {"{\"decline\": false, \"score\": 0.5}", 0, false, .5}};
  for (size_t i = 0; i < CV_COUNT(good); i++) {
    struct cv_exchange_answer answer;
    assert_int_equal(cv_exchange_read(good[i].line, strlen(good[i].line), &answer, NULL), CV_OK);
    assert_int_equal(answer.has_id, good[i].id > 0);
    assert_int_equal(answer.id, good[i].id);
    assert_int_equal(answer.declines, good[i].declines);
    assert_int_equal(answer.score, cv_grid_from(good[i].score));
  }
}

static void test_what_is_no_answer(void **state) {
  static const char *const bad[] = {"",
                                    " ",
                                    "0,7",
                                    ".5",
                                    "1.0000001",
                                    "-0.1",
                                    "-1",
                                    "NaN",
                                    "inf",
                                    "1e999",
                                    "\"0.5\"",
                                    "null",
                                    "true",
                                    "[0.5]",
                                    "0.5 0.5",
                                    "0.5}",
                                    "declined",
                                    "\"decline\"",
                                    "{}",
                                    "{\"x\":1}",
                                    "{\"score\":\"1\"}",
                                    "{\"score\":null}",
                                    "{\"score\":2}",
                                    "{\"score\":1,\"score\":0}",
                                    "{\"decline\":true,\"score\":1}",
                                    "{\"decline\":1}",
                                    "{\"decline\":false}",
                                    "{\"id\":0,\"score\":1}",
                                    "{\"id\":-1,\"score\":1}",
                                    "{\"id\":1.5,\"score\":1}",
                                    "{\"id\":\"1\",\"score\":1}"};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_exchange_answer answer = {.id = 99};
    struct cv_why why;
    if (cv_exchange_read(bad[i], strlen(bad[i]), &answer, &why) != CV_ERR_FORMAT) {
      fail_msg("%s was taken", bad[i]);
    }
    assert_int_equal(answer.id, 99);
    assert_non_null(strstr(why.text, "expected"));
    assert_true(bad[i][0] == '\0' || bad[i][0] == ' ' || strstr(why.text, bad[i]) == NULL);
  }
  assert_int_equal(cv_exchange_read("0.5\0", 4, &(struct cv_exchange_answer){0}, NULL), CV_ERR_FORMAT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_question),
      cmocka_unit_test(test_answers),
      cmocka_unit_test(test_what_is_no_answer),
  };
  return cmocka_run_group_tests_name("exchange", tests, NULL, NULL);
}
