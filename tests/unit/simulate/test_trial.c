/* SPDX-License-Identifier: Apache-2.0 */
/* A trial whose data end before its tokens do: the campaign is over, and the rest is not invented. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include "prepare/prepare.h"
#include "simulate/trial.h"
#include "tests/support/folder.h"
#include "tests/support/near.h"

enum { GOOD = 30, BAD = 10, TOKENS = 1000 };

static struct folder folder;

/* Arm 0 has GOOD rows of 1, arm 1 BAD rows of 0, each to be given once. */
static void prepare(const char *policy, struct cv_prepared *ret) {
  char text[2000] = "item,score\n";
  struct cv_campaign_file campaign;
  struct cv_why why = {0};
  size_t used = strlen(text);
  for (int i = 0; i < GOOD + BAD; i++) {
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", i < GOOD ? "a,1\n" : "b,0\n");
  }
  folder_write(&folder, "rows.csv", text);
  (void)snprintf(text, sizeof(text),
                 "campaign: rows\n"
                 "items: {source: csv, path: rows.csv, item: item, score: score, scale: [0, 1], replacement: false}\n"
                 "policy: {name: %s, tokens_per_round: 4}\n"
                 "privacy: {mechanism: none, third_party: trusted}\n"
                 "limits: {tokens: %d}\n",
                 policy, TOKENS);
  folder_write(&folder, "campaign.yaml", text);
  assert_int_equal(cv_campaign_load(folder_file(&folder, "campaign.yaml"), &campaign, &why), CV_OK);
  assert_int_equal(cv_prepare_campaign(&campaign, 1, ret, &why), CV_OK);
}

static void test_a_campaign_without_further_data_is_over(void **state) {
  static const char *const policies[] = {"aae", "klucb-cf", "ucb-cf", "ts-cf"};
  folder_make(&folder);
  for (size_t i = 0; i < CV_COUNT(policies); i++) {
    const uint64_t moment[] = {10, TOKENS};
    struct cv_trial_totals at[CV_COUNT(moment)];
    struct cv_prepared campaign;
    struct cv_why why = {0};
    prepare(policies[i], &campaign);
    struct cv_trial trial = {.campaign = &campaign, .seed = 3, .moments = CV_COUNT(moment), .moment = moment, .at = at};
    assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
    uint64_t released = trial.pulls[0] + trial.pulls[1];
    assert_false(trial.complete);
    assert_in_range(trial.total.pulls, released, GOOD + BAD);
    assert_in_range(trial.total.pulls - released, 0, 3); /* of a round of four that the data did not fill */
    /* A token of arm 0 brings 1, one of arm 1 nothing. */
    assert_true(trial.total.reward > (double)trial.pulls[0] - 1e-9 && trial.total.reward < GOOD + 1e-9);
    assert_true(trial.pulls[0] + 4 > GOOD || trial.pulls[1] + 4 > BAD);
    assert_int_equal(at[1].pulls, trial.total.pulls);
    assert_near(at[1].reward, trial.total.reward, 0);
    assert_int_equal(at[0].pulls, 10);
    cv_trial_fini(&trial);
    cv_prepared_fini(&campaign);
  }
  folder_remove(&folder);
}

/* Rounds of four of each: in the third the bad arm has two left. */
static void test_what_was_collected_of_the_last_plan_counts(void **state) {
  struct cv_prepared campaign;
  struct cv_why why = {0};
  folder_make(&folder);
  prepare("aae", &campaign);
  struct cv_trial trial = {.campaign = &campaign, .seed = 3};
  assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
  assert_int_equal(trial.pulls[0], 12);
  assert_int_equal(trial.pulls[1], 8);
  assert_int_equal(trial.total.pulls, 12 + 8 + 2);
  assert_near(trial.total.reward, 12, 1e-9);
  assert_int_equal(trial.end, CV_TRIAL_USED_UP);
  assert_int_equal(trial.used_up, 1);
  assert_int_equal(trial.wanted, 12);
  cv_trial_fini(&trial);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

#define THREE "list: [{name: a, mean: 0.9}, {name: b, mean: 0.8}, {name: c, mean: 0.4}]"

/* The campaign of a file's text, with a mechanism. */
static void prepare_items(const char *items, const char *policy, const char *mechanism, unsigned tokens,
                          uint32_t brokers, struct cv_prepared *ret) {
  char text[1000];
  struct cv_campaign_file campaign;
  struct cv_why why = {0};
  (void)snprintf(text, sizeof(text),
                 "campaign: list\n"
                 "items: {%s}\n"
                 "policy: %s\n"
                 "privacy: {mechanism: %s, epsilon: 0.5%s}\n"
                 "limits: {tokens: %u}\n",
                 items, policy, mechanism, brokers == 2 ? ", brokers: 2" : "", tokens);
  folder_write(&folder, "campaign.yaml", text);
  assert_int_equal(cv_campaign_load(folder_file(&folder, "campaign.yaml"), &campaign, &why), CV_OK);
  assert_int_equal(cv_prepare_campaign(&campaign, 1, ret, &why), CV_OK);
}

static void prepare_list(const char *policy, const char *mechanism, unsigned tokens, struct cv_prepared *ret) {
  prepare_items(THREE, policy, mechanism, tokens, 1, ret);
}

/* As the broker, a campaign knows how many releases its limit of tokens and its rounds allow. */
static void test_a_horizon_is_that_of_the_deployed_campaign(void **state) {
  static const char *const mechanisms[] = {"kary", "{name: kary, horizon: 200}", "{name: kary, horizon: 200000}"};
  struct cv_trial_totals totals[CV_COUNT(mechanisms)];
  folder_make(&folder);
  for (size_t i = 0; i < CV_COUNT(mechanisms); i++) {
    struct cv_prepared campaign;
    struct cv_why why = {0};
    prepare_list("{name: ppar, alpha: 0.15, tokens_per_round: 1000}", mechanisms[i], 200000, &campaign);
    struct cv_trial trial = {.campaign = &campaign, .seed = 3};
    assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
    assert_int_equal(trial.end, CV_TRIAL_COMPLETE);
    totals[i] = trial.total;
    cv_trial_fini(&trial);
    cv_prepared_fini(&campaign);
  }
  assert_int_equal(totals[0].pulls, totals[1].pulls);
  assert_true(totals[0].pulls < totals[2].pulls); /* more noise for more releases */
  folder_remove(&folder);
}

/* A deployed campaign does not use up its tokens: no part of a plan is collected, and it ends with its policy. */
static void test_a_deployed_campaign_leaves_tokens_over(void **state) {
  folder_make(&folder);
  for (int deployed = 0; deployed < 2; deployed++) {
    struct cv_prepared campaign;
    struct cv_why why = {0};
    prepare_list("{name: dp-se, delta: 0.1}", "batch", 100001, &campaign);
    struct cv_trial trial = {.campaign = &campaign, .seed = 3, .as_deployed = deployed};
    assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
    if (deployed) {
      assert_true(trial.total.pulls < 100001);
      assert_int_equal(trial.total.pulls, trial.pulls[0] + trial.pulls[1] + trial.pulls[2]);
    } else {
      assert_int_equal(trial.total.pulls, 100001);
    }
    cv_trial_fini(&trial);
    cv_prepared_fini(&campaign);
  }
  folder_remove(&folder);
}

static bool after_three(void *data) {
  return ++*(int *)data > 3;
}

static void test_the_caller_stops_a_trial_between_plans(void **state) {
  struct cv_prepared campaign;
  struct cv_why why = {0};
  int asked = 0;
  folder_make(&folder);
  prepare_list("{name: ppar, alpha: 0.1, tokens_per_round: 100}", "segments", 1000000, &campaign);
  struct cv_trial trial = {.campaign = &campaign, .seed = 3, .is_over = after_three, .data = &asked};
  assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
  assert_int_equal(trial.end, CV_TRIAL_STOPPED);
  assert_int_equal(trial.total.rounds, 3);
  cv_trial_fini(&trial);
  cv_prepared_fini(&campaign);
  folder_remove(&folder);
}

/* ---- two brokers ---- */

/* The mean square of the noise in the first mean of each item: 100 tokens that are all 1/2, at epsilon .5. Also sets
 * the part of the radius that the policy knows to be noise. */
static double first_noise(const char *mechanism, uint32_t brokers, double *ret_radius) {
  enum { TRIALS = 600, ARMS = 3 };
  struct cv_prepared campaign;
  struct cv_why why = {0};
  double sum = 0;
  prepare_items(
      "rewards: clipped-normal, spread: 0, list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}, {name: c, mean: 0.5}]",
      "{name: ppar, alpha: 0.1, tokens_per_round: 100}", mechanism, 1000000, brokers, &campaign);
  for (uint64_t seed = 0; seed < TRIALS; seed++) {
    struct cv_trial trial = {.campaign = &campaign, .seed = seed, .plans = 1, .as_deployed = true};
    assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
    for (uint32_t i = 0; i < ARMS; i++) {
      double error = (trial.standing[i].mean - .5) * 100 * .5; /* in D/epsilon */
      sum += error * error;
      assert_int_equal(trial.standing[i].tokens, 100);
      *ret_radius = trial.standing[i].noise;
    }
    cv_trial_fini(&trial);
  }
  cv_prepared_fini(&campaign);
  return sum / (TRIALS * ARMS);
}

/* Noise that both draw alike would have four times the variance, and two. */
static void test_each_broker_adds_noise_of_its_own(void **state) {
  folder_make(&folder);
  double radius[3];
  double one = first_noise("segments", 1, &radius[1]), two = first_noise("segments", 2, &radius[2]);
  assert_true(radius[2] > 1.1 * radius[1]);
  assert_true(one > 1.7 && one < 2.3 && two > 3.5 && two < 4.5);
  one = first_noise("hybrid", 1, &radius[1]);
  two = first_noise("hybrid", 2, &radius[2]);
  assert_true(one > 6.8 && one < 9.2 && two > 14 && two < 18 && radius[2] > 1.1 * radius[1]);
  folder_remove(&folder);
}

static const char *const two_policies[] = {
    "{name: ppar, alpha: 0.15, delta: 0.3, tokens_per_round: 100}",
    "{name: ppar-kl, alpha: 0.15, delta: 0.3}",
    "{name: best-arm, delta: 0.3}",
    "{name: dp-se, delta: 0.3}",
    "{name: gap, delta: 0.3}",
    "{name: adap-tt, delta: 0.3, threshold: proof}",
};

/* Whether the items' classes are right: a and b before c, or a alone. */
static bool is_right(const struct cv_trial *trial, bool is_ranking) {
  const struct cv_standing *a = &trial->standing[0], *b = &trial->standing[1], *c = &trial->standing[2];
  return a->rank_class == 1 && b->rank_class == (is_ranking ? 1 : 2) && c->rank_class == 2;
}

/* Wrong in no more campaigns than delta allows, and with more tokens than under the noise of one. */
static void test_policies_are_right_under_the_noise_of_two(void **state) {
  enum { TRIALS = 60 };
  folder_make(&folder);
  for (size_t i = 0; i < CV_COUNT(two_policies); i++) {
    uint32_t wrong = 0;
    uint64_t tokens[3] = {0};
    for (uint32_t brokers = 1; brokers <= 2; brokers++) {
      struct cv_prepared campaign;
      struct cv_why why = {0};
      prepare_items(THREE, two_policies[i], i < 3 ? "segments" : "batch", 20000000, brokers, &campaign);
      for (uint64_t seed = 0; seed < TRIALS; seed++) {
        struct cv_trial trial = {.campaign = &campaign, .seed = seed, .as_deployed = true};
        assert_int_equal(cv_trial_run(&trial, &why), CV_OK);
        assert_true(trial.complete);
        wrong += brokers == 2 && !is_right(&trial, i < 2);
        tokens[brokers] += trial.total.pulls;
        cv_trial_fini(&trial);
      }
      cv_prepared_fini(&campaign);
    }
    assert_in_range(wrong, 0, (uintmax_t)(.3 * TRIALS));
    assert_true(i == 5 || tokens[2] >= tokens[1]); /* phases that double end where they end */
  }
  folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_campaign_without_further_data_is_over),
      cmocka_unit_test(test_what_was_collected_of_the_last_plan_counts),
      cmocka_unit_test(test_a_horizon_is_that_of_the_deployed_campaign),
      cmocka_unit_test(test_a_deployed_campaign_leaves_tokens_over),
      cmocka_unit_test(test_the_caller_stops_a_trial_between_plans),
      cmocka_unit_test(test_each_broker_adds_noise_of_its_own),
      cmocka_unit_test(test_policies_are_right_under_the_noise_of_two),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
