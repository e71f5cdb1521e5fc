/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "common/base/grid.h"
#include "tests/support/folder.h"
#include "tests/support/near.h"
#include "tests/unit/worker/data.h"
#include "worker/source.h"

struct fixture {
  struct folder folder;
  struct cv_campaign_file campaign;
};

/* A campaign of the given items section, beside a file of four rows of a and two of b. */
static void load(struct fixture *fixture, const char *items, const char *per_round) {
  char text[1024];
  struct cv_why why = {0};
  folder_make(&fixture->folder);
  (void)write_text(&fixture->folder, "data.csv", "item,score\nb,5\na,1\na,2\na,3\nb,3\na,4\n");
  (void)snprintf(text, sizeof(text),
                 "campaign: test\nitems: %s\npolicy: {name: ppar, alpha: 0.1, delta: 0.1%s}\n"
                 "privacy: {mechanism: hybrid, epsilon: 1, privatizer: {name: none}, tokens_per_worker: 1}\n"
                 "limits: {tokens: 1000}\n",
                 items, per_round);
  const char *path = write_text(&fixture->folder, "test.yaml", text);
  if (cv_campaign_load(path, &fixture->campaign, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void unload(struct fixture *fixture) {
  cv_campaign_fini(&fixture->campaign);
  folder_remove(&fixture->folder);
}

static struct cv_score_source make(const struct fixture *fixture, uint64_t seed) {
  struct cv_score_source source = {0};
  struct cv_why why = {0};
  if (cv_score_source_init(&source, &fixture->campaign, seed, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(source.items, cv_quality_arms(source.quality));
  return source;
}

static void test_given_items(void **state) {
  struct fixture fixture;
  load(&fixture, "{list: [{name: Roma, mean: 0.7}, {name: Bari, mean: 0.2}], rewards: bernoulli}", "");
  struct cv_score_source source = make(&fixture, 1);
  assert_int_equal(source.items, 2);
  assert_string_equal(source.name[0].text, "Roma");
  assert_string_equal(source.name[1].text, "Bari");
  assert_near(cv_quality_truth(source.quality, 0), 0.7, 1e-12);
  assert_near(cv_quality_truth(source.quality, 1), 0.2, 1e-12);
  cv_score_source_fini(&source);
  unload(&fixture);
}

/* Whoever knows file and seed knows the truth: that is how the requester measures a result. */
static void test_synthetic_items_follow_the_seed(void **state) {
  struct fixture fixture;
  load(&fixture, "{synthetic: {count: 30, mean: 0.5, variance: 0.04}}", "");
  struct cv_score_source a = make(&fixture, 9), b = make(&fixture, 9), c = make(&fixture, 10);
  double mean[30];
  int differ = 0;
  cv_quality_draw_instance(9, 0.5, 0.04, 30, mean);
  assert_int_equal(a.items, 30);
  for (uint32_t i = 0; i < 30; i++) {
    assert_true(cv_quality_truth(a.quality, i) == mean[i]);
    assert_true(cv_quality_truth(b.quality, i) == mean[i]);
    differ += cv_quality_truth(c.quality, i) != mean[i];
    assert_true(a.name[i].text[0] != '\0');
    for (uint64_t place = 0; place < 20; place++) {
      int64_t one = -1, other = -2;
      assert_int_equal(cv_quality_score(a.quality, i, place, &one), CV_OK);
      assert_int_equal(cv_quality_score(b.quality, i, place, &other), CV_OK);
      assert_int_equal(one, other);
    }
  }
  assert_true(differ > 25);
  cv_score_source_fini(&a);
  cv_score_source_fini(&b);
  cv_score_source_fini(&c);
  unload(&fixture);
}

static void test_rows_of_a_file(void **state) {
  struct fixture fixture;
  load(&fixture, "{source: csv, path: data.csv, item: item, score: score, scale: [1, 5], replacement: false}",
       ", tokens_per_round: 2");
  struct cv_score_source source = make(&fixture, 1);
  int64_t score, sum = 0;
  assert_int_equal(source.items, 2);
  assert_string_equal(source.name[0].text, "a");
  assert_string_equal(source.name[1].text, "b");
  for (uint64_t place = 0; place < 4; place++) {
    assert_int_equal(cv_quality_score(source.quality, 0, place, &score), CV_OK);
    sum += score;
  }
  assert_int_equal(sum, (0 + 1 + 2 + 3) * CV_GRID / 4);
  assert_int_equal(cv_quality_score(source.quality, 0, 4, &score), CV_ERR_LIMIT);
  assert_near(cv_quality_truth(source.quality, 1), 0.75, 1e-12);
  cv_score_source_fini(&source);
  unload(&fixture);
}

static void refused(const char *items, const char *per_round, const char *file, const char *rest) {
  struct fixture fixture;
  struct cv_score_source source = {.items = 77};
  struct cv_why why = {0};
  load(&fixture, items, per_round);
  assert_int_equal(cv_score_source_init(&source, &fixture.campaign, 1, &why), CV_ERR_INVALID);
  assert_int_equal(source.items, 77);
  char head[200];
  (void)snprintf(head, sizeof(head), "%s/%s%s", fixture.folder.path, file, rest);
  assert_memory_equal(why.text, head, strlen(head));
  unload(&fixture);
}

static void test_too_few_rows_for_a_round(void **state) {
  refused("{source: csv, path: data.csv, item: item, score: score, replacement: false}", ", tokens_per_round: 3",
          "test.yaml", ":2: item \"b\" has 2 rows in ");
  struct fixture fixture;
  load(&fixture, "{source: csv, path: data.csv, item: item, score: score, replacement: true}", ", tokens_per_round: 3");
  struct cv_score_source source = make(&fixture, 1);
  cv_score_source_fini(&source);
  unload(&fixture);
}

static void test_bad_data_is_told_with_its_line(void **state) {
  refused("{source: csv, path: data.csv, item: item, score: score, scale: [1, 4]}", "", "data.csv",
          ":2: score 5 is outside 1..4, the campaign's scale");
  refused("{source: csv, path: data.csv, item: thing, score: score}", "", "data.csv",
          ":1: no column \"thing\"; the columns are item, score");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_given_items),
      cmocka_unit_test(test_synthetic_items_follow_the_seed),
      cmocka_unit_test(test_rows_of_a_file),
      cmocka_unit_test(test_too_few_rows_for_a_round),
      cmocka_unit_test(test_bad_data_is_told_with_its_line),
  };
  return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
