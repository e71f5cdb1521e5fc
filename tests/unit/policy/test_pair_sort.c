/* SPDX-License-Identifier: Apache-2.0 */
/* pair-sort: the order that it finds, how often it is wrong, ties, what is refused, and what it asks for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "common/base/local.h"
#include "tests/support/play.h"

enum { ARMS = 6 };
/* Strengths of Bradley and Terry, not in order. */
static const double strength[ARMS] = {4, 32, 1, 8, 16, 2};
static const uint32_t place[ARMS] = {4, 1, 6, 3, 2, 5};

static void set_parameter(struct cv_spec *spec, const char *key, double value) {
  assert_int_equal(cv_params_set_number(&spec->policy.params, key, value), CV_OK);
}

static struct cv_spec make_spec(double epsilon, double delta, double tie) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  struct cv_spec spec = {.name = "duels",
                         .arms = ARMS,
                         .pairs = true,
                         .epsilon_micro = (uint64_t)(epsilon * CV_MICRO),
                         .tokens = UINT64_C(1) << 36};
  play_name(&spec.policy, "pair-sort");
  play_name(&spec.mechanism, "segments");
  play_name(&spec.privatizer, "none");
  set_parameter(&spec, "delta", delta);
  set_parameter(&spec, "tie", tie);
  if (cv_policy_check(&spec.policy, &bad, &why) != CV_OK || cv_policy_fits(&spec, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return spec;
}

static int64_t laplace(struct cv_rng *rng, double unit) {
  return llround((log(1 - cv_rng_unit(rng)) - log(1 - cv_rng_unit(rng))) * unit * (double)CV_GRID);
}

/* A campaign in this process: who wins is drawn token by token. */
struct campaign {
  const struct cv_spec *spec;
  const double *strength;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_rng_seeded rng;
  uint64_t tokens[ARMS], all, plans;
  int64_t sum[ARMS];
  uint32_t noises[ARMS], classes[ARMS];
};

/* A want's release. */
static void play_want(struct campaign *campaign, const struct cv_want *want) {
  uint32_t arm = want->arm, rival = want->opponent - 1;
  struct cv_rng *rng = &campaign->rng.rng;
  double chance = campaign->strength[arm] / (campaign->strength[arm] + campaign->strength[rival]);
  struct cv_local local;
  assert_int_equal(cv_local_init(&campaign->spec->privatizer, ARMS, &local, NULL), CV_OK);
  struct cv_feedback feedback = cv_local_feedback(&local, arm);
  assert_in_range(want->opponent, 1, ARMS);
  assert_int_not_equal(rival, arm);
  for (uint32_t n = 0; n < want->tokens; n++) {
    campaign->sum[arm] += cv_rng_unit(rng) < feedback.offset + feedback.slope * chance ? CV_GRID : 0;
  }
  if (cv_spec_has_noise(campaign->spec)) {
    campaign->sum[arm] += laplace(rng, (double)CV_MICRO / (double)campaign->spec->epsilon_micro);
    campaign->noises[arm]++;
  }
  campaign->tokens[arm] += want->tokens;
  campaign->all += want->tokens;
  const struct cv_release release = {
      .arm = arm,
      .tokens = campaign->tokens[arm],
      .noisy_sum = campaign->sum[arm],
      .noise = {.groups = campaign->noises[arm] > 0, .group = {{.scale = 1, .count = campaign->noises[arm]}}}};
  cv_policy_apply(campaign->policy, &release);
  cv_policy_apply(campaign->policy, &release); /* a repeated release changes nothing */
}

static void reload(struct campaign *campaign, uint64_t seed) {
  struct cv_buf out = {0};
  cv_policy_save(campaign->policy, &out);
  cv_policy_free(campaign->policy);
  struct cv_reader in = cv_reader_over(out.data, out.len);
  assert_int_equal(cv_policy_new(campaign->spec, seed, &campaign->policy), CV_OK);
  assert_int_equal(cv_policy_load(campaign->policy, &in), CV_OK);
  cv_buf_fini(&out);
}

/* Plays to the end, or until `most` tokens; every third step the policy is saved, and a new one goes on. */
static struct campaign play_campaign(const struct cv_spec *spec, const double *strengths, uint64_t seed,
                                     uint64_t most) {
  struct campaign campaign = {.spec = spec, .strength = strengths};
  cv_rng_seeded_init(&campaign.rng, seed, 1, 2, 3);
  assert_int_equal(cv_policy_new(spec, seed, &campaign.policy), CV_OK);
  for (uint64_t plan = 1; campaign.all < most; plan++) {
    assert_int_equal(cv_policy_step(campaign.policy, plan, &campaign.step), CV_OK);
    if (campaign.step.done) {
      break;
    }
    campaign.plans++;
    assert_true(campaign.step.wants > 0);
    for (size_t i = 0; i < campaign.step.wants; i++) {
      play_want(&campaign, &campaign.step.want[i]);
    }
    if (plan % 3 == 0) {
      reload(&campaign, seed);
    }
  }
  for (uint32_t i = 0; i < ARMS; i++) {
    struct cv_standing standing;
    cv_policy_standing(campaign.policy, i, &standing);
    assert_int_equal(standing.tokens, campaign.tokens[i]);
    campaign.classes[i] = standing.rank_class;
  }
  cv_policy_free(campaign.policy);
  cv_policy_step_fini(&campaign.step);
  return campaign;
}

static void the_order_is_right_as_often_as_promised(void **state) {
  enum { RUNS = 200 };
  static const double epsilon[] = {.25, 1};
  for (size_t e = 0; e < CV_COUNT(epsilon); e++) {
    struct cv_spec spec = make_spec(epsilon[e], .1, 0);
    int wrong = 0;
    for (uint64_t seed = 1; seed <= RUNS; seed++) {
      struct campaign campaign = play_campaign(&spec, strength, seed, UINT64_MAX);
      wrong += memcmp(campaign.classes, place, sizeof(place)) != 0;
    }
    assert_in_range(wrong, 0, 8); /* delta permits 20; the union bound leaves much */
  }
}

/* At a level that promises nothing, it errs: the test above can fail. */
static void a_large_delta_errs(void **state) {
  static const double close[ARMS] = {1, 1.05, 1.1, 1.15, 1.2, 1.25};
  struct cv_spec spec = make_spec(1, .999999, .05);
  int wrong = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct campaign campaign = play_campaign(&spec, close, seed, UINT64_MAX);
    for (uint32_t i = 0; i + 1 < ARMS; i++) { /* they differ by less than `tie`: any order is promised nothing */
      wrong += campaign.classes[i] != campaign.classes[i + 1] + 1;
    }
  }
  assert_true(wrong > 0);
}

static void items_that_tie_share_a_class(void **state) {
  static const double tied[ARMS] = {4, 1, 4, 4, 1, 16};
  static const uint32_t expected[ARMS] = {2, 3, 2, 2, 3, 1};
  struct cv_spec spec = make_spec(1, .1, .05);
  int right = 0;
  for (uint64_t seed = 1; seed <= 30; seed++) {
    struct campaign campaign = play_campaign(&spec, tied, seed, UINT64_MAX);
    right += memcmp(campaign.classes, expected, sizeof(expected)) == 0;
  }
  assert_in_range(right, 28, 30);
}

/* With tie 0 items that tie stay open; a part further down has no class either, since the number of classes above is
 * not known. */
static void without_a_tie_an_open_item_keeps_its_class_open(void **state) {
  static const double tied[ARMS] = {16, 16, 1, 2, 4, 8};
  struct cv_spec spec = make_spec(1, .1, 0);
  struct campaign campaign = play_campaign(&spec, tied, 5, 300000);
  for (uint32_t i = 0; i < ARMS; i++) {
    assert_int_equal(campaign.classes[i], 0);
  }
}

/* Randomized response, also one that turns the answers around. */
static void answers_behind_a_privatizer_give_the_same_order(void **state) {
  static const double p[][2] = {{.8, .8}, {.1, .1}, {.9, .6}};
  for (size_t i = 0; i < CV_COUNT(p); i++) {
    struct cv_spec spec = make_spec(1, .01, 0);
    play_name(&spec.privatizer, "randomized-response");
    assert_int_equal(cv_params_set_number(&spec.privatizer.params, "p00", p[i][0]), CV_OK);
    assert_int_equal(cv_params_set_number(&spec.privatizer.params, "p11", p[i][1]), CV_OK);
    struct campaign campaign = play_campaign(&spec, strength, 3, UINT64_MAX);
    assert_memory_equal(campaign.classes, place, sizeof(place));
  }
}

/* The dearest item is not pulled without end: parts go on at the same time. */
static void plans_are_few(void **state) {
  struct cv_spec spec = make_spec(1, .1, 0);
  struct campaign campaign = play_campaign(&spec, strength, 2, UINT64_MAX);
  assert_in_range(campaign.plans, 3, 40);
}

static void what_it_cannot_do_is_refused(void **state) {
  struct cv_why why;
  struct cv_spec spec = make_spec(1, .1, 0), other = spec;
  other.pairs = false;
  assert_int_equal(cv_policy_fits(&other, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "policy pair-sort needs items that are compared in pairs; expected rewards: pairs");
  other = spec;
  play_name(&other.mechanism, "hybrid");
  assert_int_equal(cv_policy_fits(&other, &why), CV_ERR_INVALID);
  assert_string_equal(why.text,
                      "policy pair-sort needs the sum of each plan with a noise of its own; expected mechanism none or "
                      "segments or per-item, not hybrid");
  other = spec;
  play_name(&other.privatizer, "laplace");
  assert_int_equal(cv_params_set_number(&other.privatizer.params, "epsilon", 1), CV_OK);
  assert_int_equal(cv_policy_fits(&other, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "needs tokens between 0 and 1; expected another privatizer than laplace"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_order_is_right_as_often_as_promised),
      cmocka_unit_test(a_large_delta_errs),
      cmocka_unit_test(items_that_tie_share_a_class),
      cmocka_unit_test(without_a_tie_an_open_item_keeps_its_class_open),
      cmocka_unit_test(answers_behind_a_privatizer_give_the_same_order),
      cmocka_unit_test(plans_are_few),
      cmocka_unit_test(what_it_cannot_do_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
