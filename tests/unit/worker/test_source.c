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

/* A recruitment with the given workers section, beside a file of trips. */
static void load_workers(struct fixture *fixture, const char *workers) {
  char text[1024];
  struct cv_why why = {0};
  folder_make(&fixture->folder);
  (void)write_text(&fixture->folder, "trips.csv",
                   "trip_miles,taxi_id,fare,pickup_community_area\n"
                   "2,b,5,8\n4,b,5,8\n1,b,5,7\n3,a,5,8\n5,c,5,8\n,c,5,8\n7,c,5,\n2.5,c,5,8\n9,,5,8\n6,d,5,32\n");
  (void)snprintf(text, sizeof(text),
                 "campaign: test\nworkers: %s\nbudget: 100\npolicy: dpf\nprivacy: {mechanism: batch, epsilon: 1}\n",
                 workers);
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
  return source;
}

static void test_given_items(void **state) {
  struct fixture fixture;
  load(&fixture, "{list: [{name: Roma, mean: 0.7}, {name: Bari, mean: 0.2}], rewards: bernoulli}", "");
  struct cv_score_source source = make(&fixture, 1);
  assert_int_equal(source.items, 2);
  assert_string_equal(source.name[0], "Roma");
  assert_string_equal(source.name[1], "Bari");
  assert_near(cv_quality_truth(source.quality, 0), 0.7, 1e-12);
  assert_near(cv_quality_truth(source.quality, 1), 0.2, 1e-12);
  cv_score_source_fini(&source);
  unload(&fixture);
}

/* The truth follows from file and seed: so the requester measures a result. */
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
    assert_true(a.name[i][0] != '\0');
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
  assert_string_equal(source.name[0], "a");
  assert_string_equal(source.name[1], "b");
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

static void refused(const char *items, const char *file, const char *rest) {
  struct fixture fixture;
  struct cv_score_source source = {.items = 77};
  struct cv_why why = {0};
  load(&fixture, items, "");
  assert_int_equal(cv_score_source_init(&source, &fixture.campaign, 1, &why), CV_ERR_INVALID);
  assert_int_equal(source.items, 77);
  char head[200];
  (void)snprintf(head, sizeof(head), "%s/%s%s", fixture.folder.path, file, rest);
  assert_memory_equal(why.text, head, strlen(head));
  unload(&fixture);
}

static void test_bad_data_is_reported_with_its_line(void **state) {
  refused("{source: csv, path: data.csv, item: item, score: score, scale: [1, 4]}", "data.csv",
          ":2: score 5 is outside 1..4, the campaign's scale");
  refused("{source: csv, path: data.csv, item: thing, score: score}", "data.csv",
          ":1: no column \"thing\"; the columns are item, score");
}

static void test_given_workers(void **state) {
  struct fixture fixture;
  load_workers(&fixture, "[{id: 9, cost: 2.5, quality: 0.7}, {id: 4, cost: 1, quality: 0.2}]");
  struct cv_score_source source = make(&fixture, 1);
  assert_int_equal(source.worker[0], 9);
  assert_int_equal(source.worker[1], 4);
  assert_int_equal(source.cost_micro[0], 2500000);
  assert_near(cv_quality_truth(source.quality, 0), .7, 1e-12);
  assert_string_equal(source.name[1], "worker 4");
  cv_score_source_fini(&source);
  unload(&fixture);
}

static void test_synthetic_workers_follow_the_seed(void **state) {
  enum { N = 2000 };
  struct fixture fixture;
  load_workers(&fixture, "{synthetic: {count: 2000, cost_low: 2, cost_high: 8}}");
  struct cv_score_source a = make(&fixture, 9), b = make(&fixture, 9), c = make(&fixture, 10);
  double sum = 0;
  int differ = 0;
  for (uint32_t i = 0; i < N; i++) {
    assert_int_equal(a.worker[i], i + 1);
    assert_true(a.cost_micro[i] >= 2000000 && a.cost_micro[i] <= 8000000);
    assert_int_equal(a.cost_micro[i], b.cost_micro[i]);
    assert_true(cv_quality_truth(a.quality, i) == cv_quality_truth(b.quality, i));
    differ += a.cost_micro[i] != c.cost_micro[i];
    sum += (double)a.cost_micro[i] / 1e6;
  }
  assert_true(differ > N / 2);
  assert_near(sum / N, 5, 5 * 6 / sqrt(12.0 * N));
  cv_score_source_fini(&a);
  cv_score_source_fini(&b);
  cv_score_source_fini(&c);
  unload(&fixture);
}

/* In area 8: b has trips of 2 and 4 miles, c of 5 and 2.5 (one without miles, one without an area), a one of 3. */
static void test_drivers_cost_what_they_drive(void **state) {
  struct fixture fixture;
  load_workers(&fixture, "{source: taxi, path: trips.csv, area: 8, cost_per_mile: 2}");
  struct cv_score_source source = make(&fixture, 1);
  assert_int_equal(source.items, 3);
  static const char *const names[] = {"b", "c", "a"};
  static const uint64_t costs[] = {6000000, 7500000, 6000000};
  for (uint32_t i = 0; i < 3; i++) {
    assert_string_equal(source.name[i], names[i]);
    assert_int_equal(source.cost_micro[i], costs[i]);
    assert_int_equal(source.worker[i], i + 1);
  }
  assert_int_equal(source.requests, 5);
  cv_score_source_fini(&source);
  unload(&fixture);
  load_workers(&fixture, "{source: taxi, path: trips.csv, area: 8, least_trips: 2}");
  source = make(&fixture, 1);
  assert_int_equal(source.items, 2);
  assert_int_equal(source.requests, 4);
  cv_score_source_fini(&source);
  unload(&fixture);
  load_workers(&fixture, "{source: taxi, path: trips.csv, top: 1}");
  (void)write_text(&fixture.folder, "trips.csv",
                   "taxi_id,trip_miles,pickup_community_area\nc,1,8\nc,1,8\nb,2,8\nb,3,\nc,0,8\na,,8\n");
  source = make(&fixture, 1);
  assert_int_equal(source.items, 1);
  assert_string_equal(source.name[0], "b"); /* anywhere: two trips with miles, as c, and first in order */
  cv_score_source_fini(&source);
  unload(&fixture);
}

#define HEAD "taxi_id,trip_miles,pickup_community_area\n"

static void test_bad_trips_are_reported(void **state) {
  static const char anywhere[] = "{source: taxi, path: trips.csv}",
                    eight[] = "{source: taxi, path: trips.csv, area: 8}";
  static const struct {
    const char *workers, *trips, *line;
  } bad[] = {
      {anywhere, "", ":1: the file is empty; expected a header line with columns taxi_id, trip_miles and pickup_com"},
      {anywhere, "taxi_id,miles,pickup_community_area\na,1,8\n",
       ":1: no column \"trip_miles\"; the columns are taxi_id, miles, pickup_community_area"},
      {anywhere, "taxi_id,trip_miles,taxi_id,pickup_community_area\na,1,a,8\n",
       ":1: two columns are called \"taxi_id\""},
      {anywhere, HEAD "a,1\n", ":2: 2 fields; expected 3 as in the header"},
      {anywhere, HEAD "a,1,8\nb,far,8\n", ":3: trip_miles is \"far\"; expected a number from 0 to 25000, or nothing"},
      {anywhere, HEAD "a,-1,8\n", ":2: trip_miles is \"-1\"; expected a number"},
      {anywhere, HEAD "a,nan,8\n", ":2: trip_miles is \"nan\"; expected a number"},
      {eight, HEAD "a,1,Loop\n", ":2: pickup_community_area is \"Loop\"; expected a number"},
      {anywhere, HEAD "a\x01,1,8\n",
       ":2: taxi_id \"a?\" is not a valid id; expected 1 to 128 bytes of printable UTF-8"},
      {eight, HEAD "a,1,7\nb,0,8\n,4,8\n",
       ": no usable trip from area 8; expected rows with a taxi_id and trip_miles above 0"},
      {anywhere, HEAD, ": no usable trip in the file; expected"},
      {"{source: taxi, path: trips.csv, least_trips: 3}", HEAD "a,1,7\na,2,7\n",
       ": the busiest taxi has 2 trips in the file; expected at least least_trips, 3"},
      {"{source: taxi, path: trips.csv, cost_per_mile: 0.000001}", HEAD "a,0.25,7\n",
       ": taxi a costs 0: a mean trip of 0.25 miles at cost_per_mile 1e-06; expected 0.000001 to 1000000"},
      {"{source: taxi, path: trips.csv, cost_per_mile: 1000000}", HEAD "a,2,7\n", ": taxi a costs 2e+06: a mean trip"},
  };
  struct fixture fixture;
  struct cv_score_source source;
  struct cv_why why;
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    load_workers(&fixture, bad[i].workers);
    (void)write_text(&fixture.folder, "trips.csv", bad[i].trips);
    enum cv_err err = cv_score_source_init(&source, &fixture.campaign, 1, &why);
    assert_true(err == CV_ERR_INVALID || err == CV_ERR_LIMIT);
    if (strstr(why.text, bad[i].line) == NULL) {
      fail_msg("\"%s\" does not say \"%s\"", why.text, bad[i].line);
    }
    unload(&fixture);
  }
}

/* Ids as long as the city's, two of which begin alike. */
static void test_long_ids_are_told_apart(void **state) {
  struct fixture fixture;
  char trips[1024], id[128 + 1];
  memset(id, 'f', 128);
  id[128] = '\0';
  load_workers(&fixture, "{source: taxi, path: trips.csv}");
  (void)snprintf(trips, sizeof(trips), HEAD "%s,1,8\n%.127se,2,8\n%s,3,8\n%.62s\xc3\xa9,5,8\n", id, id, id, id);
  (void)write_text(&fixture.folder, "trips.csv", trips);
  struct cv_score_source source = make(&fixture, 1);
  assert_int_equal(source.items, 3);
  assert_int_equal(source.cost_micro[0], 2000000);
  assert_int_equal(source.cost_micro[1], 2000000);
  assert_int_equal(source.cost_micro[2], 5000000);
  assert_int_equal(strlen(source.name[0]), 63);
  assert_int_equal(strlen(source.name[2]), 62); /* a cut at the limit would have split the last character */
  cv_score_source_fini(&source);
  unload(&fixture);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_given_items),
      cmocka_unit_test(test_synthetic_items_follow_the_seed),
      cmocka_unit_test(test_rows_of_a_file),
      cmocka_unit_test(test_bad_data_is_reported_with_its_line),
      cmocka_unit_test(test_given_workers),
      cmocka_unit_test(test_synthetic_workers_follow_the_seed),
      cmocka_unit_test(test_drivers_cost_what_they_drive),
      cmocka_unit_test(test_bad_trips_are_reported),
      cmocka_unit_test(test_long_ids_are_told_apart),
  };
  return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
