/* SPDX-License-Identifier: Apache-2.0 */
/* An export is collected, written, read again, and refused if it was changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "deploy/launcher/export.h"
#include "deploy/launcher/lies.h"
#include "tests/support/folder.h"
#include "tests/support/near.h"

static const char *names[] = {"plain", "with \"quotes\", and a comma"};
static struct cv_want wants[] = {{.arm = 0, .tokens = 6000}, {.arm = 1, .tokens = 6000}};
static struct cv_plan plan = {.number = 1, .wants = 2, .want = wants};
static struct cv_release releases[] = {
    {.number = 1, .plan = 1, .arm = 1, .tokens = 6000, .noisy_sum = -77, .noise = {1, {{.scale = 2, .count = 1}}}},
    {.number = 2,
     .plan = 1,
     .arm = 0,
     .tokens = 6000,
     .noisy_sum = INT64_C(6291456000),
     .noise = {2, {{.scale = 2, .count = 3}, {.scale = 1.0 / 3, .count = 5}}}},
};
static struct cv_standing standings[] = {
    {.arm = 0, .rank_class = 1, .tokens = 6000, .mean = 1.0 / 3, .radius = 0.1},
    {.arm = 1, .rank_class = 0, .tokens = 6000, .mean = -0.00001, .radius = 0.1},
};
static int64_t neutral[] = {-3, 41};

/* As a broker sends it: spec, plans, releases, the standings last. */
static void gather(struct cv_export *export) {
  struct cv_part first = {.campaign = 5,
                          .first = true,
                          .seed = UINT64_MAX,
                          .progress = {.tokens = 12000, .plans = 1, .end = CV_END_TOKENS},
                          .spec = {.name = "bread",
                                   .arms = 2,
                                   .names = names,
                                   .policy = {.name = "ppar"},
                                   .mechanism = {.name = "hybrid"},
                                   .privatizer = {.name = "none"},
                                   .epsilon_micro = 500000,
                                   .tokens_per_worker = 1,
                                   .tokens = 50000}};
  assert_int_equal(cv_params_set_number(&first.spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_params_set_text(&first.spec.policy.params, "radius", "sound"), CV_OK);
  const struct cv_part middle = {.campaign = 5, .plans = 1, .plan = &plan, .releases = 2, .release = releases};
  const struct cv_part last = {.campaign = 5,
                               .standings = 2,
                               .standing = standings,
                               .last = true,
                               .neutrals = 2,
                               .neutral = neutral,
                               .neutral_epsilon_micro = 250000};
  assert_int_equal(cv_export_add(export, &first), CV_OK);
  assert_int_equal(cv_export_add(export, &middle), CV_OK);
  assert_false(export->complete);
  assert_int_equal(cv_export_add(export, &last), CV_OK);
  assert_true(export->complete);
}

static char *as_json(const struct cv_export *export) {
  char *text = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&text, &n);
  assert_non_null(to);
  assert_int_equal(cv_export_write_json(export, to), CV_OK);
  assert_int_equal(fclose(to), 0);
  return text;
}

static enum cv_err read_text(const char *text, struct cv_export *ret, struct cv_why *why) {
  struct folder folder;
  folder_make(&folder);
  const char *path = folder_file(&folder, "export.json");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  enum cv_err err = cv_export_read_json(path, ret, why);
  folder_remove(&folder);
  return err;
}

static void test_round_trip(void **state) {
  struct cv_export export = {0}, again = {0};
  struct cv_why why;
  gather(&export);
  char *text = as_json(&export);
  assert_int_equal(read_text(text, &again, &why), CV_OK);
  assert_true(again.seed == UINT64_MAX);
  assert_int_equal(again.progress.end, CV_END_TOKENS);
  assert_string_equal(again.spec.names[1], names[1]);
  assert_near(cv_params_number(&again.spec.policy.params, "alpha"), 0.1, 0);
  assert_string_equal(cv_params_text(&again.spec.policy.params, "radius"), "sound");
  assert_int_equal(again.plans, 1);
  assert_memory_equal(again.plan[0].want, wants, sizeof(wants));
  assert_int_equal(again.releases, 2);
  assert_true(again.release[0].noisy_sum == -77);
  assert_true(again.release[1].noisy_sum == INT64_C(6291456000));
  assert_near(again.release[1].noise.group[1].scale, 1.0 / 3, 0);
  assert_int_equal(again.standings, 2);
  assert_near(again.standing[0].mean, 1.0 / 3, 0);
  assert_int_equal(again.neutrals, 2);
  assert_memory_equal(again.neutral, neutral, sizeof(neutral));
  assert_int_equal(again.neutral_epsilon_micro, 250000);
  /* An export that was read is written unchanged. */
  char *twice = as_json(&again);
  assert_non_null(strstr(twice, "\"releases\""));
  free(twice);
  free(text);
  cv_export_fini(&again);
  cv_export_fini(&export);
}

/* `verify` runs the policy on what was read: it depends on the second broker's noise. */
static void test_two_brokers_are_exported(void **state) {
  struct cv_export export = {0}, again = {0};
  struct cv_why why;
  gather(&export);
  export.spec.brokers = 2;
  export.spec.score_bits = 15;
  export.spec.scale = (struct cv_scale){.low = 0.5, .high = 5};
  char *text = as_json(&export);
  assert_int_equal(read_text(text, &again, &why), CV_OK);
  assert_int_equal(again.spec.brokers, 2);
  assert_int_equal(again.spec.score_bits, 15);
  assert_true(cv_scale_is_same(&again.spec.scale, &export.spec.scale));
  cv_export_fini(&again);
  free(text);
  export.spec.score_bits = 7;
  text = as_json(&export);
  assert_int_equal(read_text(text, &again, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "score_bits is 7 with two brokers; expected 1 or 15"));
  free(text);
  cv_export_fini(&export);
}

static void test_a_file_that_cannot_be_read_is_named(void **state) {
  struct cv_export export = {0};
  struct cv_why why;
  assert_int_equal(cv_export_read_json("/nowhere/x.json", &export, &why), CV_ERR_IO);
  assert_string_equal(why.text, "/nowhere/x.json: cannot be read: No such file or directory");
  assert_int_equal(cv_export_read_json("/tmp", &export, &why), CV_ERR_IO);
  assert_string_equal(why.text, "/tmp: cannot be read: Is a directory");
}

/* Parts of another campaign, or after the last one, or before the first one, are refused. */
static void test_parts_out_of_order(void **state) {
  struct cv_export export = {0};
  const struct cv_part middle = {.campaign = 5}, other = {.campaign = 6};
  assert_int_equal(cv_export_add(&export, &middle), CV_ERR_FORMAT);
  gather(&export);
  assert_int_equal(cv_export_add(&export, &middle), CV_ERR_FORMAT);
  assert_int_equal(cv_export_add(&export, &other), CV_ERR_FORMAT);
  cv_export_fini(&export);
}

/* After a reconnection the broker starts from the beginning: nothing is stored twice. */
static void test_begins_again(void **state) {
  struct cv_export export = {0};
  gather(&export);
  gather(&export);
  assert_int_equal(export.plans, 1);
  assert_int_equal(export.releases, 2);
  assert_int_equal(export.standings, 2);
  cv_export_fini(&export);
}

/* Replaces the first `from` by `to`, which may not be longer. */
static void tamper(char *text, const char *from, const char *to) {
  char *at = strstr(text, from);
  assert_non_null(at);
  size_t n = strlen(to);
  memset(at, ' ', strlen(from));
  for (size_t i = 0; i < n; i++) {
    at[i] = to[i];
  }
}

static void test_damage_is_named(void **state) {
  static const struct {
    const char *from, *to, *line;
  } cases[] = {
      {"crowdveil-export/2", "crowdveil-export/9", "format"},
      {"crowdveil-export/2", "crowdveil-export/1",
       "an export of a Crowdveil before 0.3.0, whose files are not read; use the programs that made it"},
      {"\"arms\": 2", "\"arms\": 0", "spec.arms"},
      {"\"arms\": 2", "\"arms\": 1", "spec.names"},
      {"\"seed\": \"1", "\"seed\": \"x", "seed"},
      {"\"noisy_sum\": -77", "\"noisy_sum\": 0.5", "releases[0].noisy_sum"},
      {"\"scale\": 2.0", "\"scale\": -2", "releases[0].noise"},
      {"\"plan\": 1", "\"plan\":-1", "releases[0].plan"},
      {"\"class\": 1", "\"klass\": 1", "standings[0].class"},
      {"\"end\": 2", "\"end\":99", "progress.end"},
      {"\"policy\": {", "\"policy\": 7,", "export.json:"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_export export = {0}, again = {0};
    struct cv_why why = {.text = ""};
    gather(&export);
    char *text = as_json(&export);
    tamper(text, cases[i].from, cases[i].to);
    assert_int_not_equal(read_text(text, &again, &why), CV_OK);
    if (strstr(why.text, cases[i].line) == NULL) {
      fail_msg("\"%s\" does not name %s", why.text, cases[i].line);
    }
    assert_null(again.release);
    free(text);
    cv_export_fini(&export);
  }
}

static void test_csv(void **state) {
  struct cv_export export = {0};
  char *text = NULL;
  size_t n = 0;
  FILE *to = open_memstream(&text, &n);
  gather(&export);
  struct cv_policy_lies borne[] = {{.safe = 12, .turn = CV_LIES_NEVER}, {0}};
  const struct cv_lies lies = {.of_arm = borne, .arms = 2};
  cv_export_write_result_csv(&export, &lies, to);
  assert_int_equal(fclose(to), 0);
  assert_string_equal(text,
                      "arm,item,class,tokens,mean,radius,lies_safe,lies_turn,class_last,held,neutral,contradicts\n"
                      "0,\"plain\",1,6000,0.333333333,0.1,12,,,,-3,0\n"
                      "1,\"with \"\"quotes\"\", and a comma\",,6000,-1e-05,0.1,,,,,41,0\n");
  free(text);
  to = open_memstream(&text, &n);
  cv_export_write_releases_csv(&export, to);
  assert_int_equal(fclose(to), 0);
  /* Variance of a mean: 2 * 2^2 / (epsilon * tokens)^2, epsilon = 0.5. */
  assert_non_null(strstr(text, "\n1,1,1,6000,-77,-1.22388204e-08,8.88888889e-07,0\n"));
  assert_non_null(strstr(text, "\n2,1,0,6000,6291456000,1,"));
  free(text);
  cv_export_fini(&export);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_parts_out_of_order),
      cmocka_unit_test(test_begins_again),
      cmocka_unit_test(test_damage_is_named),
      cmocka_unit_test(test_csv),
      cmocka_unit_test(test_two_brokers_are_exported),
      cmocka_unit_test(test_a_file_that_cannot_be_read_is_named),
  };
  return cmocka_run_group_tests_name("launcher_export", tests, NULL, NULL);
}
