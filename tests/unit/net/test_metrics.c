/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text format, byte by byte. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/admin/metrics.h"

static void expect(struct cv_buf *out, const char *text) {
  cv_buf_put_u8(out, '\0');
  assert_true(cv_buf_ok(out));
  assert_string_equal((const char *)out->data, text);
  cv_buf_fini(out);
}

static void test_a_family_is_its_help_its_type_and_its_samples(void **state) {
  struct cv_buf out = {0};
  cv_metric_family(&out, "crowdveil_connections", "Connected peers, by role.", "gauge");
  cv_metric_sample(&out, "crowdveil_connections", "role", "worker", 3);
  cv_metric_sample(&out, "crowdveil_connections", "role", "gateway", .5);
  cv_metric_counter(&out, "crowdveil_tokens_total", "Tokens accepted.", UINT64_C(12345678901));
  expect(&out,
         "# HELP crowdveil_connections Connected peers, by role.\n"
         "# TYPE crowdveil_connections gauge\n"
         "crowdveil_connections{role=\"worker\"} 3\n"
         "crowdveil_connections{role=\"gateway\"} 0.5\n"
         "# HELP crowdveil_tokens_total Tokens accepted.\n"
         "# TYPE crowdveil_tokens_total counter\n"
         "crowdveil_tokens_total 12345678901\n");
}

static void test_numbers_are_short_and_exact(void **state) {
  const struct {
    double value;
    const char *text;
  } numbers[] = {
      {.1, "x 0.1\n"},
      {1.0 / 3, "x 0.3333333333333333\n"},
      {9007199254740991.0, "x 9007199254740991\n"},
      {1e21, "x 1e+21\n"},
      {(double)INFINITY, "x +Inf\n"},
      {-(double)INFINITY, "x -Inf\n"},
      {(double)NAN, "x NaN\n"},
      {0, "x 0\n"},
      {-2.5, "x -2.5\n"},
  };
  for (size_t i = 0; i < CV_COUNT(numbers); i++) {
    struct cv_buf out = {0};
    cv_metric_sample(&out, "x", NULL, NULL, numbers[i].value);
    expect(&out, numbers[i].text);
  }
}

/* A label's value may be what a peer has chosen: it must not end the line, nor begin another sample. */
static void test_labels_are_escaped(void **state) {
  struct cv_buf out = {0};
  const struct cv_metric_label labels[] = {{"a", "x\"} 1\ny 2"}, {"b", "\\"}};
  cv_metric_info(&out, "x", "Says x.", labels, CV_COUNT(labels));
  expect(&out, "# HELP x Says x.\n# TYPE x gauge\nx{a=\"x\\\"} 1\\ny 2\",b=\"\\\\\"} 1\n");
}

static void test_a_histogram_is_cumulative(void **state) {
  static const double bounds[] = {.005, 1};
  struct cv_histogram histogram = {.bound = bounds, .bounds = 2};
  const double values[] = {.001, .5, .5, 8};
  struct cv_buf out = {0};
  for (size_t i = 0; i < CV_COUNT(values); i++) {
    cv_histogram_add(&histogram, values[i]);
  }
  cv_metric_histogram(&out, "wait_seconds", "Waits.", &histogram);
  expect(&out,
         "# HELP wait_seconds Waits.\n"
         "# TYPE wait_seconds histogram\n"
         "wait_seconds_bucket{le=\"0.005\"} 1\n"
         "wait_seconds_bucket{le=\"1\"} 3\n"
         "wait_seconds_bucket{le=\"+Inf\"} 4\n"
         "wait_seconds_sum 9.001\n"
         "wait_seconds_count 4\n");
}

static void test_every_reason_of_a_refusal_has_its_sample(void **state) {
  struct cv_refusals refusals = {0};
  struct cv_buf out = {0};
  cv_refusals_add(&refusals, CV_REFUSED_TICKET);
  cv_metric_refusals(&out, &refusals);
  cv_buf_put_u8(&out, '\0');
  const char *text = (const char *)out.data;
  assert_non_null(strstr(text, "\ncrowdveil_refused_total{reason=\"ticket\"} 1\n"));
  assert_non_null(strstr(text, "\ncrowdveil_refused_total{reason=\"handshake\"} 0\n"));
  cv_buf_fini(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_family_is_its_help_its_type_and_its_samples),
      cmocka_unit_test(test_numbers_are_short_and_exact),
      cmocka_unit_test(test_labels_are_escaped),
      cmocka_unit_test(test_a_histogram_is_cumulative),
      cmocka_unit_test(test_every_reason_of_a_refusal_has_its_sample),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
