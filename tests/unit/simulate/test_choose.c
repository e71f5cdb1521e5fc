/* SPDX-License-Identifier: Apache-2.0 */
/* `policy: auto` and `mechanism: auto`: what is chosen, from what, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>

#include "common/base/mechanisms.h"
#include "simulate/candidates.h"
#include "simulate/choose.h"
#include "tests/support/own_folder.h"

#define DRAWN "items: {synthetic: {count: 8, variance: 0.09}}"
#define HIRES "budget: 2000\nworkers: {synthetic: {count: 8, cost_low: 0.5, cost_high: 1}}"

static const char *write_campaign(const char *items, const char *policy, const char *privacy) {
  char text[2000];
  (void)snprintf(text, sizeof(text), "campaign: auto\n%s\npolicy: %s\nprivacy: %s\nlimits: {tokens: 3000000}\n", items,
                 policy, privacy);
  folder_write(&folder, "campaign.yaml", text);
  return folder_file(&folder, "campaign.yaml");
}

static struct cv_chosen choose(const char *items, const char *policy, const char *privacy, const char *expected_policy,
                               const char *expected_mechanism) {
  struct cv_prepared prepared;
  struct cv_chosen chosen;
  struct cv_why why = {{0}};
  if (cv_choose_prepare(write_campaign(items, policy, privacy), 7, 0, &prepared, &chosen, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_string_equal(prepared.file.spec.policy.name, expected_policy);
  if (expected_mechanism != NULL) {
    assert_string_equal(prepared.file.spec.mechanism.name, expected_mechanism);
  }
  cv_prepared_fini(&prepared);
  return chosen;
}

static void each_goal_has_its_policy(void **state) {
  (void)choose(DRAWN, "{name: auto, alpha: 0.1}", "{mechanism: auto, epsilon: 1}", "ppar-kl", "segments");
  (void)choose(DRAWN, "{name: auto, alpha: 0.1}", "{mechanism: batch, epsilon: 1}", "ppar", "batch");
  (void)choose(DRAWN, "{name: auto, delta: 0.01}", "{mechanism: auto, epsilon: 1}", "best-arm", "segments");
  (void)choose(DRAWN, "auto", "{mechanism: auto, epsilon: 1}", "graph-ucb", "segments");
  (void)choose(DRAWN, "auto", "{mechanism: auto, privatizer: {name: randomized-response, epsilon: 1}}",
               "posterior-quantile", "none");
  (void)choose(DRAWN, "auto", "{mechanism: auto, privatizer: {name: laplace, epsilon: 1}}", "tsallis-inf", "none");
  (void)choose("items: {adversary: {name: stochastic, count: 3}}", "auto",
               "{mechanism: auto, privatizer: {name: laplace, epsilon: 1}}", "tsallis-inf", "none");
  (void)choose(HIRES, "auto", "{mechanism: auto, epsilon: 1}", "dpu-kl", "segments");
}

static void a_given_policy_or_mechanism_stays(void **state) {
  struct cv_chosen chosen = choose(DRAWN, "{name: ppar, alpha: 0.1}", "{mechanism: auto, epsilon: 1}", "ppar", NULL);
  assert_non_null(strstr(chosen.text, "policy ppar, mechanism "));
  assert_non_null(strstr(chosen.text, "; next ppar, "));
  chosen = choose(DRAWN, "{name: gap, delta: 0.1}", "{mechanism: auto, epsilon: 1}", "gap", "batch");
  assert_string_equal(chosen.text, "policy gap, mechanism batch: the only ones that fit");
  chosen = choose(DRAWN, "{name: ppar, alpha: 0.1}", "{mechanism: hybrid, epsilon: 1}", "ppar", "hybrid");
  assert_string_equal(chosen.text, "");
}

static void the_choice_does_not_depend_on_scores(void **state) {
  static const char alike[] = "items: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}, {name: c, mean: 0.5}]}";
  static const char apart[] = "items: {list: [{name: x, mean: 0}, {name: y, mean: 0.5}, {name: z, mean: 1}]}";
  static const char policy[] = "{name: auto, alpha: 0.1}", privacy[] = "{mechanism: auto, epsilon: 1}";
  struct cv_chosen one = choose(alike, policy, privacy, "ppar-kl", NULL);
  struct cv_chosen two = choose(apart, policy, privacy, "ppar-kl", NULL);
  assert_string_equal(one.text, two.text);
  folder_write(&folder, "few.csv", "i,s\na,0\na,0\nb,1\nc,1\n");
  folder_write(&folder, "many.csv", "i,s\na,1\nb,0\nb,1\nc,0\nc,1\n");
  one = choose("items: {source: csv, path: few.csv, item: i, score: s, scale: [0, 1], replacement: true}", policy,
               privacy, "ppar-kl", NULL);
  assert_string_equal(one.text, two.text);
  one = choose("items: {source: csv, path: many.csv, item: i, score: s, scale: [0, 1], replacement: true}", policy,
               privacy, "ppar-kl", NULL);
  assert_string_equal(one.text, two.text);
}

/* Every candidate protects each token: with an epsilon by a sound mechanism, without one behind a privatizer alone. */
static void only_what_protects_is_a_candidate(void **state) {
  static const char *const privacy[] = {"{mechanism: auto, epsilon: 1}",
                                        "{mechanism: auto, privatizer: {name: randomized-response, epsilon: 1}}"};
  struct cv_candidates candidates;
  for (size_t i = 0; i < CV_COUNT(privacy); i++) {
    struct cv_campaign_file file;
    struct cv_why why;
    assert_int_equal(cv_campaign_load(write_campaign(DRAWN, "{name: auto, alpha: 0.1}", privacy[i]), &file, &why),
                     CV_OK);
    assert_int_equal(cv_candidates_list(&file, &candidates, &why), CV_OK);
    assert_true(i == 0 ? candidates.count > 10 : candidates.count > 1);
    for (uint32_t j = 0; j < candidates.count; j++) {
      const struct cv_traits *traits = cv_traits_of(candidates.candidate[j].mechanism.name);
      assert_true(i == 0 ? traits->private != CV_PRIVATE_NEVER && traits->noise != CV_NOISE_NONE
                         : traits->noise == CV_NOISE_NONE);
    }
    cv_campaign_fini(&file);
  }
}

static void refused(const char *items, const char *policy, const char *privacy, const char *message) {
  struct cv_prepared prepared;
  struct cv_chosen chosen;
  struct cv_why why = {{0}};
  assert_int_not_equal(cv_choose_prepare(write_campaign(items, policy, privacy), 7, 0, &prepared, &chosen, &why),
                       CV_OK);
  if (strstr(why.text, message) == NULL) {
    fail_msg("\"%s\" lacks \"%s\"", why.text, message);
  }
}

static void what_cannot_be_chosen_is_one_clear_line(void **state) {
  refused(DRAWN, "{name: auto, alpha: 0.1}", "{mechanism: auto}",
          "campaign.yaml:3:1: nothing fits policy auto and mechanism auto: no mechanism protects a token");
  refused(DRAWN, "{name: auto, alpha: 0.1, horizon: 5}", "{mechanism: auto, epsilon: 1}",
          "campaign.yaml:3:43: policy auto takes no horizon here");
  refused(DRAWN, "{name: auto, alpha: -1}", "{mechanism: hybrid, epsilon: 1}", "alpha is -1");
  refused(DRAWN, "{name: ppar, alpha: -1}", "{mechanism: auto, epsilon: 1}", "campaign.yaml:3:29: ");
  refused(DRAWN, "{name: ppra, alpha: 1}", "{mechanism: auto, epsilon: 1}", "did you mean \"ppar\"");
  refused(DRAWN, "klucb-cf", "{mechanism: auto, epsilon: 1}", "nothing fits policy klucb-cf and mechanism auto");
  refused(HIRES, "{name: auto, alpha: 1}", "{mechanism: auto, epsilon: 1}", "policy auto takes no alpha here");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_goal_has_its_policy),
      cmocka_unit_test(a_given_policy_or_mechanism_stays),
      cmocka_unit_test(the_choice_does_not_depend_on_scores),
      cmocka_unit_test(only_what_protects_is_a_candidate),
      cmocka_unit_test(what_cannot_be_chosen_is_one_clear_line),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
