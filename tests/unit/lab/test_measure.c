/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy with every metric: a run has the number, or the experiment is refused before it runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/experiment/campaigns.h"
#include "lab/experiment/check.h"
#include "lab/experiment/preset.h"
#include "lab/experiment/read.h"
#include "lab/result/dataset.h"
#include "lab/run/formula.h"
#include "lab/run/measure.h"
#include "lab/run/measure_table.h"
#include "lab/run/piece.h"
#include "prepare/prepare.h"
#include "tests/support/near.h"
#include "tests/unit/lab/good.h"

#define ITEMS   "items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.4}]}\n"
#define PAIRS   "items: {rewards: pairs, list: [{name: a, mean: 0.9}, {name: b, mean: 0.4}]}\n"
#define WORKERS "workers: {synthetic: {count: 4, rewards: truncated-normal}}\nbudget: 400\n"

/* One of these suits each policy. */
static const char *const privacies[] = {
    "{mechanism: hybrid, epsilon: 50}",
    "{mechanism: batch, epsilon: 50}",
    "{mechanism: segments, epsilon: 50}",
    "{mechanism: none, third_party: trusted}",
    "{mechanism: none, privatizer: {name: laplace, epsilon: 50}}",
};

static void parse(const struct cv_policy_class *policy, const char *privacy, const struct cv_lab_measure *measure,
                  const char *metric, struct cv_lab_experiment *ret) {
  static const char x_numbers[] = "  x: {pulls: [1, 2]}\n";
  bool is_numbered = strcmp(measure->name, "noise") == 0 || strcmp(measure->name, "classes") == 0 ||
                     strcmp(measure->name, "qualities") == 0;
  char text[1000];
  (void)snprintf(text, sizeof(text),
                 "campaign: one\n%spolicy: {name: %s%s}\nprivacy: %s\nlimits: {tokens: 200}\n"
                 "experiment:\n  measure: %s\n%s  series:\n    - {name: mine}\n  metrics: [%s]\n",
                 policy->kind == CV_POLICY_RECRUITMENT ? WORKERS
                 : policy->duels                       ? PAIRS
                                                       : ITEMS,
                 policy->name,
                 policy->duels                       ? ", tokens_per_round: 20"
                 : policy->kind == CV_POLICY_RANKING ? ", alpha: 0.1, tokens_per_round: 20"
                 : strcmp(policy->name, "dpf") == 0  ? ", epsilon: 0.5"
                                                     : "",
                 privacy, measure->name, is_numbered ? x_numbers : "", metric);
  assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, ret, &why));
}

/* Privacy settings with which the policy runs; its campaign is the experiment's. */
static const char *suits(const struct cv_policy_class *policy) {
  const struct cv_lab_measure *measure = cv_lab_measure_find("campaign");
  for (size_t i = 0; i < CV_COUNT(privacies); i++) {
    struct cv_lab_experiment experiment;
    struct cv_prepared prepared;
    parse(policy, privacies[i], measure, "pulls", &experiment);
    enum cv_err err = cv_lab_prepare(&experiment, 0, 0, 1, &prepared, &why);
    if (err == CV_OK) {
      cv_prepared_fini(&prepared);
    }
    cv_lab_experiment_fini(&experiment);
    if (err == CV_OK) {
      return privacies[i];
    }
  }
  fail_msg("nothing suits %s: %s", policy->name, why.text);
  return NULL;
}

/* Whether some of the replicates have the number. */
static bool is_found(const struct cv_lab_experiment *experiment) {
  bool found = false;
  for (uint64_t seed = 1; seed <= 3 && !found; seed++) {
    struct cv_lab_piece piece = {.experiment = experiment, .seed = seed};
    double value[2] = {(double)NAN, (double)NAN};
    assert_good(cv_lab_piece_run(&piece, value, &why));
    found = !isnan(value[0]);
  }
  return found;
}

static void judge(const struct cv_policy_class *policy, const struct cv_lab_measure *measure, size_t metric) {
  struct cv_lab_experiment experiment;
  char said[200];
  why.text[0] = '\0';
  parse(policy, suits(policy), measure, measure->metrics[metric], &experiment);
  enum cv_err err = cv_lab_experiment_check(&experiment, &why);
  if (measure->has == NULL || measure->has(policy, metric)) {
    /* All parameters are present; a measure may still need other privacy settings than the policy. */
    assert_null(strstr(why.text, "no metric"));
    if (err == CV_OK && !is_found(&experiment)) {
      fail_msg("%s has no %s", policy->name, measure->metrics[metric]);
    }
  } else {
    (void)snprintf(said, sizeof(said), "series \"mine\" has policy %s, which has no metric %s; expected ", policy->name,
                   measure->metrics[metric]);
    assert_int_equal(err, CV_ERR_INVALID);
    assert_non_null(strstr(why.text, said));
    assert_null(strchr(why.text, '\n'));
    /* Correct: it has no such metric. Other measures cannot even be tried. */
    if (strcmp(measure->name, "campaign") == 0) {
      assert_false(is_found(&experiment));
    }
  }
  cv_lab_experiment_fini(&experiment);
}

static void test_every_policy_by_every_metric(void **state) {
  for (size_t i = 0; cv_policy_at(i) != NULL; i++) {
    for (size_t m = 0; cv_lab_measure_at(m) != NULL; m++) {
      for (size_t metric = 0; cv_lab_measure_at(m)->metrics[metric] != NULL; metric++) {
        judge(cv_policy_at(i), cv_lab_measure_at(m), metric);
      }
    }
  }
}

/* A further ranking policy need not have ppar's classes. */
static void test_a_ranking_without_alpha_has_no_accuracy(void **state) {
  static const struct cv_param_rule rules[] = {{.key = "delta", .high = 1}};
  const struct cv_policy_class plain = {
      .name = "plain", .kind = CV_POLICY_RANKING, .rules = rules, .rule_count = CV_COUNT(rules)};
  const struct cv_lab_measure *measure = cv_lab_measure_find("campaign");
  for (size_t i = 0; measure->metrics[i] != NULL; i++) {
    bool needs_classes = strstr(measure->metrics[i], "accuracy") != NULL ||
                         strcmp(measure->metrics[i], "misplaced") == 0 || strcmp(measure->metrics[i], "parked") == 0 ||
                         strcmp(measure->metrics[i], "correct") == 0 || strncmp(measure->metrics[i], "over-", 5) == 0 ||
                         strncmp(measure->metrics[i], "lies-", 5) == 0;
    bool is_loss = strncmp(measure->metrics[i], "re", 2) == 0;
    assert_int_equal(measure->has(&plain, i), !needs_classes && !is_loss);
    assert_int_equal(measure->has(cv_policy_find("ppar"), i), !is_loss);
  }
}

static void test_no_preset_asks_for_what_it_cannot_have(void **state) {
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL; preset++) {
    struct cv_lab_experiment experiment;
    assert_good(cv_lab_experiment_parse(preset->name, preset->text, strlen(preset->text), NULL, &experiment, &why));
    if (cv_lab_experiment_check(&experiment, &why) != CV_OK && strstr(why.text, "expected --data FILE") == NULL) {
      fail_msg("%s", why.text);
    }
    cv_lab_experiment_fini(&experiment);
  }
}

struct refusal {
  const char *head, *tail, *said;
};

static void refused(const struct refusal *refusal) {
  struct cv_lab_experiment experiment;
  char text[1000];
  why.text[0] = '\0';
  (void)snprintf(text, sizeof(text), "campaign: one\n%slimits: {tokens: 200}\nexperiment:\n%s", refusal->head,
                 refusal->tail);
  assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why));
  assert_int_equal(cv_lab_experiment_check(&experiment, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, refusal->said);
  cv_lab_experiment_fini(&experiment);
}

static void test_what_cannot_be_measured_is_refused_before_the_run(void **state) {
#define PPAR  ITEMS "policy: {name: ppar, alpha: 0.1, tokens_per_round: 20}\n"
#define EXACT "privacy: {mechanism: none, third_party: trusted}\n"
  static const struct refusal bad[] = {
      /* the second of two */
      {PPAR EXACT, "  series: [{name: first}, {name: second, policy: aae}]\n  metrics: [pulls, accuracy]\n",
       "./made.yaml:8:20: series \"second\" has policy aae, which has no metric accuracy; expected correct, "
       "pulls, rounds, reward, regret, seconds, capped or decided-after"},
      {"items: {adversary: {name: stochastic}}\npolicy: {name: ppar, alpha: 0.1}\n" EXACT, "  metrics: [pulls]\n",
       "./made.yaml: policy ppar ranks items by their means, which an adversary does not have; expected items with "
       "means"},
      {"items: {rewards: beta, list: [{name: a, mean: 0.9}, {name: b, mean: 0.4}]}\n"
       "policy: {name: ppar, alpha: 0.1}\n" EXACT,
       "  metrics: [pulls, over-pair-bound]\n",
       "./made.yaml: the lower bound needs tokens that are 0 or 1; expected rewards: bernoulli without a privatizer, "
       "or "
       "a privatizer that sends bits"},
      {ITEMS "policy: {name: ppar, alpha: 0.1}\nprivacy: {mechanism: none, privatizer: {name: laplace, epsilon: 1}}\n",
       "  metrics: [over-sum-bound]\n",
       "./made.yaml: the lower bound needs tokens that are 0 or 1; expected rewards: bernoulli without a privatizer, "
       "or "
       "a privatizer that sends bits"},
      {ITEMS "policy: {name: ppar, alpha: 0.1, delta: 0.5}\n" EXACT, "  metrics: [over-sum-bound]\n",
       "./made.yaml: policy.delta is 0.5; the lower bound needs one between 0 and 0.5"},
      /* at the second setting */
      {PPAR "privacy: {mechanism: {name: kary, k: 3}, epsilon: 1}\n",
       "  measure: noise\n  x: {vary: privacy.mechanism.k, values: [3, 4]}\n"
       "  series: [{name: f, formula: declared-noise}]\n  metrics: [noise]\n",
       "./made.yaml: series \"f\" cannot have formula declared-noise: mechanism kary: k is 4; expected an odd number"},
      {PPAR "privacy: {mechanism: {name: kary, horizon: 4}, epsilon: 1}\n",
       "  measure: noise\n  x: {pulls: [1, 100]}\n  metrics: [noise]\n",
       "./made.yaml: 100 releases of mechanism kary; expected at most 4, its horizon"},
      {PPAR EXACT, "  measure: classes\n  metrics: [ppar-accuracy]\n",
       "./made.yaml: measure classes needs x: {pulls: [...]}, the numbers of classes, and no adversary"},
      {PPAR EXACT, "  measure: qualities\n  metrics: [quality]\n",
       "./made.yaml: measure qualities needs x: {pulls: [...]}, the ranks, and means"},
      /* 0.4 is 0.5 below 0.9 */
      {ITEMS "policy: {name: ppar, alpha: 0.5}\n" EXACT,
       "  series: [{name: f, formula: ppar-cost}]\n  metrics: [pulls]\n",
       "./made.yaml: series \"f\" cannot have formula ppar-cost: a mean is alpha below the best of a class; expected a "
       "distance from there"},
      {"items: {synthetic: {count: 3}}\npolicy: {name: ppar, alpha: 0.5}\n" EXACT,
       "  series: [{name: f, formula: ppar-success}]\n  metrics: [correct]\n",
       "./made.yaml: series \"f\" cannot have formula ppar-success: it needs items with given means; expected "
       "items.list "
       "or items.ladder"},
      {PPAR EXACT,
       "  measure: noise\n  x: {pulls: [1]}\n  series: [{name: f, formula: ppar-noise}]\n  metrics: [noise]\n",
       "./made.yaml: series \"f\" cannot have formula ppar-noise: the campaign has no epsilon; expected "
       "privacy.epsilon"},
  };
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    refused(&bad[i]);
  }
}

/* Two items whose order is all there is to find out: the bounds are known in closed form. */
static void test_a_ranking_is_measured_against_its_bounds(void **state) {
  static const struct {
    const char *items, *privacy;
  } cases[] = {
      {"{list: [{name: a, mean: 0.9}, {name: b, mean: 0.1}]}", "{mechanism: none, third_party: trusted}"},
      /* bits that are kept with probability e/(1 + e), whatever the scores' law */
      {"{rewards: beta, list: [{name: a, mean: 0.9}, {name: b, mean: 0.1}]}",
       "{mechanism: none, privatizer: {name: randomized-response, epsilon: 1}}"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_lab_experiment experiment;
    double value[3];
    char text[500];
    (void)snprintf(text, sizeof(text),
                   "campaign: one\nitems: %s\npolicy: {name: ppar, alpha: 0, delta: 0.1, tokens_per_round: 50}\n"
                   "privacy: %s\nlimits: {tokens: 100000}\n"
                   "experiment: {metrics: [pulls, over-sum-bound, over-pair-bound]}\n",
                   cases[i].items, cases[i].privacy);
    assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why));
    assert_good(cv_lab_experiment_check(&experiment, &why));
    const struct cv_lab_piece piece = {.experiment = &experiment, .seed = 1};
    assert_good(cv_lab_piece_run(&piece, value, &why));
    double keep = exp(1) / (1 + exp(1)), mean = i == 0 ? 0.9 : 1 - keep + 0.9 * (2 * keep - 1);
    double c = 0.8 * log(9), alone = (2 * mean - 1) * log(mean / (1 - mean)),
           both = mean * log(2 * mean) + (1 - mean) * log(2 - 2 * mean);
    assert_near(value[1] / (value[0] / (2 * c / alone)), 1, 1e-6);
    assert_near(value[2] / (value[0] / (c / both)), 1, 1e-6);
    cv_lab_experiment_fini(&experiment);
  }
}

/* Like a campaign that the broker ends with "privacy budget". */
static void test_a_run_ends_at_the_horizon_of_its_mechanism(void **state) {
  static const char text[] =
      "campaign: one\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\n"
      "policy: {name: ppar, alpha: 0.01, tokens_per_round: 10}\n"
      "privacy: {mechanism: {name: kary, horizon: 3}, epsilon: 1}\nlimits: {tokens: 1000}\n"
      "experiment: {metrics: [pulls, undecided]}\n";
  struct cv_lab_experiment experiment;
  double value[2];
  assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why));
  assert_good(cv_lab_experiment_check(&experiment, &why));
  const struct cv_lab_piece piece = {.experiment = &experiment, .seed = 1};
  assert_good(cv_lab_piece_run(&piece, value, &why));
  assert_true(value[0] == 3 * 2 * 10 && value[1] == 2);
  cv_lab_experiment_fini(&experiment);
}

static void run_piece(const char *text, double *ret_values) {
  struct cv_lab_experiment experiment;
  assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why));
  assert_good(cv_lab_experiment_check(&experiment, &why));
  const struct cv_lab_piece piece = {.experiment = &experiment, .seed = 1};
  assert_good(cv_lab_piece_run(&piece, ret_values, &why));
  cv_lab_experiment_fini(&experiment);
}

/* Class 3 is a alone: it is .2001 below c, too close to the segmentation point .4 for 200,000 tokens. */
#define RANKED(boundary)                                                                                  \
  "campaign: one\nitems: {list: [{name: a, mean: 0.3999}, {name: b, mean: 0.9}, {name: c, mean: 0.6}]}\n" \
  "policy: {name: ppar, alpha: 0.2, tokens_per_round: 2000, boundary: " boundary                          \
  "}\n"                                                                                                   \
  "privacy: {mechanism: hybrid, epsilon: 1}\nlimits: {tokens: 200000}\nexperiment:\n"
#define HALF_RANKED RANKED("feed")

static void test_classes_are_judged_one_by_one(void **state) {
  double value[7];
  run_piece(HALF_RANKED "  measure: classes\n  x: {pulls: [1, 2, 3, 4, 5, 6, 7]}\n  metrics: [ppar-accuracy]\n", value);
  /* c is found in class 2; a, of class 3, stays undecided; 4 and 5 are empty as they should be; alpha .2 has no 6. */
  assert_true(value[0] == 1 && value[1] == 1 && value[2] == 0 && value[3] == 1 && value[4] == 1);
  assert_true(isnan(value[5]) && isnan(value[6]));
}

static void test_the_least_class_and_the_whole_ranking(void **state) {
  double value[3];
  run_piece(HALF_RANKED "  metrics: [ppar-accuracy-least, correct, ppar-accuracy]\n", value);
  assert_true(value[0] == 0 && value[1] == 0 && fabs(value[2] - 4. / 5) < 1e-12);
  run_piece("campaign: one\n" ITEMS
            "policy: {name: ppar, alpha: 0.2, tokens_per_round: 2000}\n"
            "privacy: {mechanism: hybrid, epsilon: 1}\nlimits: {tokens: 200000}\n"
            "experiment:\n  metrics: [ppar-accuracy-least, correct, ppar-accuracy]\n",
            value);
  assert_true(value[0] == 1 && value[1] == 1 && value[2] == 1);
}

/* Undecided items are not right: what counts are those with a class, and without any there is no number. The paper's
 * measure counts empty classes as right, .8 of all where nothing is decided. */
static void test_accuracy_is_of_the_decided_items(void **state) {
  double value[5];
#define SHARES "  metrics: [accuracy, decided-share, correct, ppar-accuracy, ppar-accuracy-filled]\n"
  run_piece(HALF_RANKED SHARES, value);
  assert_true(value[0] == 1 && fabs(value[1] - 2. / 3) < 1e-12 && value[2] == 0 && fabs(value[3] - 4. / 5) < 1e-12);
  run_piece(
      "campaign: one\nitems: {list: [{name: a, mean: 0.5}, {name: b, mean: 0.5}]}\n"
      "policy: {name: ppar, alpha: 0.2, tokens_per_round: 20}\n"
      "privacy: {mechanism: hybrid, epsilon: 0.01}\nlimits: {tokens: 200}\nexperiment:\n" SHARES,
      value);
  assert_true(isnan(value[0]) && value[1] == 0 && value[2] == 0);
  assert_true(fabs(value[3] - .8) < 1e-12 && value[4] == 0);
}

/* Three items that tie, in one class by the tie that the policy is given. */
static void test_duels_are_judged_by_what_they_claim(void **state) {
  double value[4];
  run_piece(
      "campaign: one\nitems: {rewards: pairs, list: [{name: a, mean: 0.5}, {name: b, mean: 0.51}, "
      "{name: c, mean: 0.52}]}\npolicy: {name: pair-sort, tie: 0.1}\n"
      "privacy: {mechanism: segments, epsilon: 1}\nlimits: {tokens: 200000}\n"
      "experiment:\n  metrics: [accuracy, decided-share, correct, misplaced]\n",
      value);
  assert_true(value[0] == 1 && value[1] == 1 && value[2] == 1 && value[3] == 0);
}

/* a is in class 2 or 3: that is told, it is no misplaced item, and the run ends by itself. */
static void test_an_item_on_a_boundary_is_parked(void **state) {
  double value[6];
  run_piece(RANKED("park") "  metrics: [parked, undecided, misplaced, correct, capped, pulls]\n", value);
  assert_true(value[0] == 1 && value[1] == 1 && value[2] == 0 && value[3] == 0 && value[4] == 0);
  assert_true(value[5] < 150000);
}

static void test_a_run_is_capped_or_its_policy_is_done(void **state) {
#define DONE                                                  \
  "campaign: one\n" ITEMS                                     \
  "policy: {name: ppar, alpha: 0.2, tokens_per_round: 200}\n" \
  "privacy: {mechanism: hybrid, epsilon: 1}\nlimits: {tokens: "
  double value[6];
  run_piece(HALF_RANKED "  metrics: [capped, undecided, rounds]\n", value);
  assert_true(value[0] == 1 && value[1] >= 1);
  run_piece(DONE "200000}\nexperiment:\n  metrics: [capped, undecided, rounds]\n", value);
  assert_true(value[0] == 0 && value[1] == 0 && value[2] >= 2);
  /* A limit of one round less ends the run; one of just the rounds that the policy needs does not. */
  double rounds = value[2];
  for (int less = 0; less < 2; less++) {
    char text[600];
    (void)snprintf(text, sizeof(text),
                   DONE
                   "200000}\nexperiment:\n  series: [{name: a, rounds: %.0f}, {name: b}]\n"
                   "  metrics: [capped, rounds, undecided]\n",
                   rounds - less);
    run_piece(text, value);
    assert_true(value[0] == less && value[1] == rounds - less && (value[2] > 0) == (less == 1));
    assert_true(value[3] == 0 && value[4] == rounds);
  }
}

/* A bandit plays on to its limit of tokens, but not past its rounds. */
static void test_a_bandit_of_few_rounds_ends_with_them(void **state) {
  double value[4];
  run_piece("campaign: one\n" ITEMS
            "policy: {name: aae, delta: 0.1, tokens_per_round: 5}\n"
            "privacy: {mechanism: none, third_party: trusted}\nlimits: {tokens: 2000}\n"
            "experiment:\n  series: [{name: a, rounds: 3}, {name: b}]\n  metrics: [pulls, capped]\n",
            value);
  assert_true(value[0] == 3 * 2 * 5 && value[1] == 1);
  assert_true(value[2] == 2000 && value[3] == 0);
}

/* Where the first release decides, whose tokens grow with the noise. */
static void test_two_brokers_take_more_tokens(void **state) {
  double value[2];
  run_piece(
      "campaign: one\nitems: {list: [{name: a, mean: 1}, {name: b, mean: 0}]}\n"
      "policy: {name: ppar-kl, alpha: 0.2}\n"
      "privacy: {mechanism: segments, epsilon: 0.05}\nlimits: {tokens: 2000000}\n"
      "experiment:\n  series: [{name: a}, {name: b, privacy.brokers: 2}]\n  metrics: [pulls]\n",
      value);
  assert_true(value[1] > value[0]);
}

static void test_other_measures_have_one_broker(void **state) {
  static const char text[] = DONE
      "200}\nexperiment:\n  measure: noise\n  series: [{name: a, privacy.brokers: 2}]\n"
      "  x: {pulls: [1]}\n  metrics: [noise]\n";
  struct cv_lab_experiment experiment;
  assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why));
  assert_int_equal(cv_lab_experiment_check(&experiment, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "./made.yaml: series \"a\" has two brokers; expected measure campaign");
  cv_lab_experiment_fini(&experiment);
}

static void test_rounds_that_are_refused(void **state) {
  static const char *const bad[][2] = {
      {"  series: [{name: a, rounds: 0}]\n  metrics: [pulls]\n",
       "./made.yaml:7:30: rounds is \"0\"; expected a whole number above 0, in a series that is run"},
      {"  series: [{name: a, rounds: 5, formula: ppar-cost}]\n  metrics: [pulls]\n",
       "./made.yaml:7:30: rounds is \"5\"; expected a whole number above 0, in a series that is run"},
      {"  measure: noise\n  series: [{name: a, rounds: 5}]\n  metrics: [noise]\n",
       "./made.yaml:7:3: series \"a\" has rounds; expected measure campaign"},
  };
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_lab_experiment experiment;
    char text[600];
    (void)snprintf(text, sizeof(text), DONE "200}\nexperiment:\n%s", bad[i][0]);
    assert_int_equal(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why),
                     CV_ERR_INVALID);
    assert_string_equal(why.text, bad[i][1]);
  }
}

static void test_qualities_are_the_means_from_the_best(void **state) {
  double value[4];
  run_piece(HALF_RANKED "  measure: qualities\n  x: {pulls: [1, 2, 3, 4]}\n  metrics: [quality]\n", value);
  assert_true(value[0] == 0.9 && value[1] == 0.6 && value[2] == 0.3999 && isnan(value[3]));
}

/* One formula line at its only point. */
static double line(const char *campaign, const char *formula, const char *rest) {
  struct cv_lab_experiment experiment;
  char text[1000];
  double value;
  (void)snprintf(text, sizeof(text),
                 "campaign: one\n%slimits: {tokens: 9000}\nexperiment:\n  series: [{name: f, formula: %s}]\n%s",
                 campaign, formula, rest);
  assert_good(cv_lab_experiment_parse("./made.yaml", text, strlen(text), NULL, &experiment, &why));
  assert_good(cv_lab_experiment_check(&experiment, &why));
  assert_good(cv_lab_formula_value(&experiment, 0, 0, 0, &value));
  cv_lab_experiment_fini(&experiment);
  return value;
}

/* Means .9, .6, .43; with alpha .2 the segmentation points are .7 and .4, and the last mean is .03 from the second. */
static void test_what_is_proved_about_ppar(void **state) {
#define LADDER                                                                                                      \
  "items: {ladder: {count: 3, mean: 0.9, distance: 0.3, step: 0.17}}\nprivacy: {mechanism: hybrid, epsilon: 0.5}\n" \
  "policy: {name: ppar, alpha: 0.2, delta: 0.1, tokens_per_round: 20000}\n"
  const double tokens_of_arm = 72 * log(120) / 0.0009;
  assert_near(line(LADDER, "ppar-cost", "  metrics: [pulls]\n"), 3 * tokens_of_arm, 1);
  assert_near(line(LADDER, "ppar-success", "  metrics: [correct]\n"), pow(0.9, 5 * ceil(tokens_of_arm / 20000)), 1e-12);
  /* The integral of 2 z min(1, 2 exp(-z/s)) for n = 3 and epsilon .5, by sums of thin slices. */
  double s = 2 * sqrt(2) * (log(3) + 1) / (3 * 0.5), square = 0;
  for (double z = 0.0005; z < 60 * s; z += 0.001) {
    square += 2 * z * fmin(1, 2 * exp(-z / s)) * 0.001;
  }
  assert_near(line(LADDER, "ppar-noise", "  measure: noise\n  x: {pulls: [3]}\n  metrics: [noise]\n"), sqrt(square),
              1e-4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_policy_by_every_metric),
      cmocka_unit_test(test_a_ranking_without_alpha_has_no_accuracy),
      cmocka_unit_test(test_no_preset_asks_for_what_it_cannot_have),
      cmocka_unit_test(test_what_cannot_be_measured_is_refused_before_the_run),
      cmocka_unit_test(test_a_ranking_is_measured_against_its_bounds),
      cmocka_unit_test(test_a_run_ends_at_the_horizon_of_its_mechanism),
      cmocka_unit_test(test_classes_are_judged_one_by_one),
      cmocka_unit_test(test_the_least_class_and_the_whole_ranking),
      cmocka_unit_test(test_what_is_proved_about_ppar),
      cmocka_unit_test(test_accuracy_is_of_the_decided_items),
      cmocka_unit_test(test_duels_are_judged_by_what_they_claim),
      cmocka_unit_test(test_an_item_on_a_boundary_is_parked),
      cmocka_unit_test(test_a_run_is_capped_or_its_policy_is_done),
      cmocka_unit_test(test_a_bandit_of_few_rounds_ends_with_them),
      cmocka_unit_test(test_two_brokers_take_more_tokens),
      cmocka_unit_test(test_other_measures_have_one_broker),
      cmocka_unit_test(test_rounds_that_are_refused),
      cmocka_unit_test(test_qualities_are_the_means_from_the_best),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
