/* SPDX-License-Identifier: Apache-2.0 */
/* best-arm and adap-tt: the evidence of a pair, how often the wrong arm is found, what is refused, stored states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "tests/support/near.h"
#include "tests/support/play.h"
#include "thirdparty/policy/pair.h"

enum { ARMS = 5 };
static const double instance[ARMS] = {.75, .625, .5, .375, .25};

/* ---- the pair's martingale ---- */

static struct cv_noisy_sum sum_of(double tokens, double mean, const struct cv_noise *noise, double unit) {
  return (struct cv_noisy_sum){.tokens = tokens, .sum = mean * tokens, .unit = unit, .noise = noise};
}

/* ln M(u), term by term as the header has it. */
static double by_hand(const struct cv_mixture *mixture, const struct cv_noisy_sum *a, const struct cv_noisy_sum *b,
                      uint32_t noises, double u) {
  double sum = 0;
  for (uint32_t j = 0; j < mixture->n; j++) {
    for (int half = 0; half < 2; half++) {
      double x = mixture->x[j], y = half == 0 ? x : x / 2;
      double one = y * a->sum - a->tokens * log(1 - u + u * exp(y)) + noises * log(1 - pow(y * a->unit, 2));
      double other =
          x * (b->tokens - b->sum) - b->tokens * log(u + (1 - u) * exp(x)) + noises * log(1 - pow(x * b->unit, 2));
      sum += exp(mixture->log_weight[j]) / 2 * exp(one + other);
    }
  }
  return log(sum);
}

/* The least value is found, never more than it and at most 1e-6 less: 20,000 points of u have none below. */
static void evidence_is_the_least_over_u(void **state) {
  static const struct {
    double tokens, mean, other_tokens, other_mean, unit;
  } cases[] = {{100, .9, 50, .1, 1},     {1000, .6, 1000, .5, 10}, {300, .5, 300, .5, 1}, {40, .2, 60, .8, 2},
               {5000, 1.2, 10, -.3, 10}, {20, 1, 20, 0, .1},       {700, 0, 9, 1, 1}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_noise noise = {.groups = 1, .group = {{.scale = 1, .count = 3}}};
    struct cv_mixture mixture;
    cv_mixture_init(cases[i].unit, &mixture);
    struct cv_noisy_sum a = sum_of(cases[i].tokens, cases[i].mean, &noise, cases[i].unit);
    struct cv_noisy_sum b = sum_of(cases[i].other_tokens, cases[i].other_mean, &noise, cases[i].unit);
    double found = cv_pair_evidence(&mixture, &a, &b), least = (double)INFINITY, slope;
    for (int n = 0; n <= 20000; n++) {
      double value = cv_pair_log(&mixture, &a, &b, n / 20000., &slope);
      least = fmin(least, value);
    }
    assert_true(found <= least + 1e-12 && found >= least - .01);
    for (double u = 0; u <= 1; u += .25) {
      double value = cv_pair_log(&mixture, &a, &b, u, &slope);
      assert_near(value, by_hand(&mixture, &a, &b, 3, u), 1e-7 * fmax(1, fabs(value)));
    }
  }
}

/* Noise of which the mixture's x have no moment is evidence of nothing. */
static void hopeless_noise_is_no_evidence(void **state) {
  struct cv_noise noise = {.groups = 1, .group = {{.scale = 1e6, .count = 1}}};
  struct cv_mixture mixture;
  cv_mixture_init(1, &mixture);
  struct cv_noisy_sum a = sum_of(1000, 1, &noise, 1), b = sum_of(1000, 0, &noise, 1);
  assert_true(cv_pair_evidence(&mixture, &a, &b) < 0);
}

/* ---- whole campaigns ---- */

static int64_t laplace(struct cv_rng *rng, double unit) {
  return llround((log(1 - cv_rng_unit(rng)) - log(1 - cv_rng_unit(rng))) * unit * (double)CV_GRID);
}

static void make_spec(struct cv_spec *spec, const char *policy, const char *mechanism, double epsilon, double delta) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  *spec = (struct cv_spec){
      .name = "best", .arms = ARMS, .epsilon_micro = (uint64_t)(epsilon * CV_MICRO), .tokens = UINT64_C(1) << 36};
  play_name(&spec->policy, policy);
  play_name(&spec->mechanism, mechanism);
  play_name(&spec->privatizer, "none");
  assert_int_equal(cv_params_set_number(&spec->policy.params, "delta", delta), CV_OK);
  if (cv_policy_check(&spec->policy, &bad, &why) != CV_OK || cv_policy_fits(spec, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

/* The number of ones of n draws, by the normal limit, which is close for n of hundreds. */
static int64_t draw_ones(struct cv_rng *rng, uint64_t n, double mean) {
  double z = sqrt(-2 * log(1 - cv_rng_unit(rng))) * cos(2 * M_PI * cv_rng_unit(rng));
  double ones = (double)n * mean + z * sqrt((double)n * mean * (1 - mean));
  if (n < 400) {
    ones = 0;
    for (uint64_t i = 0; i < n; i++) {
      ones += cv_rng_unit(rng) < mean;
    }
  }
  return llround(fmin(fmax(ones, 0), (double)n));
}

struct found {
  uint32_t arm;
  uint64_t tokens;
};

/* Plays a campaign to its end. Every few steps the policy is saved, and a new one goes on from its state. */
static struct found play_to_end(const struct cv_spec *spec, const double *mean, uint64_t seed, bool is_reloaded) {
  struct cv_rng_seeded rng;
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  bool is_batch = strcmp(spec->mechanism.name, "batch") == 0;
  uint64_t tokens[ARMS] = {0}, all = 0;
  int64_t sum[ARMS] = {0};
  uint32_t count[ARMS] = {0};
  cv_rng_seeded_init(&rng, seed, 1, 2, 3);
  assert_int_equal(cv_policy_new(spec, seed, &policy), CV_OK);
  for (uint64_t plan = 1; cv_policy_step(policy, plan, &step) == CV_OK && !step.done; plan++) {
    assert_true(step.wants > 0 && plan < 10000); /* without ties a run ends */
    for (size_t i = 0; i < step.wants; i++) {
      uint32_t arm = step.want[i].arm, n = step.want[i].tokens;
      double unit = spec->epsilon_micro == 0 ? 0 : (double)CV_MICRO / (double)spec->epsilon_micro;
      tokens[arm] = is_batch ? n : tokens[arm] + n;
      sum[arm] = (is_batch ? 0 : sum[arm]) + draw_ones(&rng.rng, n, mean[arm]) * CV_GRID + laplace(&rng.rng, unit);
      count[arm] = is_batch ? 1 : count[arm] + 1;
      all += n;
      const struct cv_release release = {.arm = arm,
                                         .tokens = tokens[arm],
                                         .noisy_sum = sum[arm],
                                         .noise = {.groups = 1, .group = {{.scale = 1, .count = count[arm]}}}};
      cv_policy_apply(policy, &release);
    }
    if (is_reloaded && plan % 3 == 0) {
      struct cv_buf out = {0};
      cv_policy_save(policy, &out);
      cv_policy_free(policy);
      struct cv_reader in = cv_reader_over(out.data, out.len);
      assert_int_equal(cv_policy_new(spec, seed, &policy), CV_OK);
      assert_int_equal(cv_policy_load(policy, &in), CV_OK);
      cv_buf_fini(&out);
    }
  }
  struct found found = {.arm = UINT32_MAX, .tokens = all};
  for (uint32_t i = 0; i < ARMS; i++) {
    struct cv_standing standing;
    cv_policy_standing(policy, i, &standing);
    if (standing.rank_class == 1) {
      assert_int_equal(found.arm, UINT32_MAX); /* one alone */
      found.arm = i;
    }
  }
  uint32_t settled = 0;
  for (size_t i = 0; i < step.decisions; i++) {
    settled += step.decision[i].kind == CV_DECISION_SETTLE;
  }
  assert_int_equal(settled, 1);
  cv_policy_step_fini(&step);
  cv_policy_free(policy);
  return found;
}

/* Where delta is .5, 100 of 200 runs may be wrong. */
static void finds_the_best_as_often_as_it_says(void **state) {
  static const double close[ARMS] = {.5, .52, .49, .48, .47};
  uint32_t wrong = 0;
  struct cv_spec spec;
  make_spec(&spec, "best-arm", "segments", 1, .5);
  for (uint64_t seed = 0; seed < 200; seed++) {
    wrong += play_to_end(&spec, close, seed, false).arm != 1;
  }
  assert_true(wrong <= 100);
}

/* With no best arm some arm is found, or none: either way the policy does not claim one more often than delta. */
static void equal_arms_are_seldom_told_apart(void **state) {
  static const double equal[ARMS] = {.5, .5, .5, .5, .5};
  enum { RUNS = 60, PLANS = 300 };
  uint32_t told = 0;
  struct cv_spec spec;
  make_spec(&spec, "best-arm", "segments", 1, .1);
  for (uint64_t seed = 0; seed < RUNS; seed++) {
    struct cv_rng_seeded rng;
    struct cv_policy *policy;
    struct cv_policy_step step = {0};
    uint64_t tokens[ARMS] = {0};
    int64_t sum[ARMS] = {0};
    uint32_t count[ARMS] = {0};
    bool is_dropped = false;
    cv_rng_seeded_init(&rng, seed, 4, 5, 6);
    assert_int_equal(cv_policy_new(&spec, seed, &policy), CV_OK);
    for (uint64_t plan = 1; plan < 40 && cv_policy_step(policy, plan, &step) == CV_OK && !step.done; plan++) {
      is_dropped = is_dropped || step.decisions > 0;
      for (size_t i = 0; i < step.wants; i++) {
        uint32_t arm = step.want[i].arm, n = step.want[i].tokens;
        tokens[arm] += n;
        sum[arm] += draw_ones(&rng.rng, n, equal[arm]) * CV_GRID + laplace(&rng.rng, 1);
        const struct cv_release release = {.arm = arm,
                                           .tokens = tokens[arm],
                                           .noisy_sum = sum[arm],
                                           .noise = {.groups = 1, .group = {{.scale = 1, .count = ++count[arm]}}}};
        cv_policy_apply(policy, &release);
      }
    }
    told += is_dropped;
    cv_policy_step_fini(&step);
    cv_policy_free(policy);
  }
  /* Each of the five arms is a best one, and each is dropped with probability .1 at most. */
  assert_true(told <= RUNS / 2);
}

static uint64_t total(const char *policy, const char *mechanism, double epsilon) {
  struct cv_spec spec;
  uint64_t tokens = 0;
  make_spec(&spec, policy, mechanism, epsilon, .01);
  for (uint64_t seed = 0; seed < 10; seed++) {
    struct found found = play_to_end(&spec, instance, seed, false);
    assert_int_equal(found.arm, 0);
    tokens += found.tokens;
  }
  return tokens;
}

static void needs_fewer_tokens_than_the_baselines(void **state) {
  uint64_t ours = total("best-arm", "segments", 1);
  assert_true(5 * ours < total("adap-tt", "batch", 1) && 5 * ours < total("dp-se", "batch", 1));
  ours = total("best-arm", "segments", .1);
  assert_true(18 * ours < 10 * total("adap-tt", "batch", .1) && 18 * ours < 10 * total("dp-se", "batch", .1));
}

static void goes_on_from_a_stored_state(void **state) {
  static const char *const policies[][2] = {{"best-arm", "segments"}, {"adap-tt", "batch"}};
  for (size_t i = 0; i < CV_COUNT(policies); i++) {
    struct cv_spec spec;
    make_spec(&spec, policies[i][0], policies[i][1], 1, .05);
    for (uint64_t seed = 0; seed < 5; seed++) {
      struct found one = play_to_end(&spec, instance, seed, false), two = play_to_end(&spec, instance, seed, true);
      assert_true(one.arm == two.arm && one.tokens == two.tokens);
    }
  }
}

/* ---- what they cannot work with ---- */

static void refuses_what_its_proof_does_not_cover(void **state) {
  static const struct {
    const char *policy, *mechanism, *privatizer, *scores, *said;
  } cases[] = {
      {"best-arm", "hybrid", "none", "independent",
       "fresh noise in each release; expected mechanism none or segments or"},
      {"best-arm", "batch", "none", "independent", "not batch"},
      {"best-arm", "segments", "laplace", "independent", "tokens between 0 and 1"},
      {"best-arm", "segments", "none", "without-replacement", "expected replacement: true, or policy ppar-kl"},
      {"adap-tt", "segments", "none", NULL, "expected mechanism batch, not segments"},
      {"adap-tt", "batch", "laplace", NULL, "another privatizer than laplace"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct cv_spec spec = {.name = "best", .arms = ARMS, .epsilon_micro = CV_MICRO, .tokens = 1000};
    struct cv_why why = {.text = ""};
    const struct cv_param *bad;
    play_name(&spec.policy, cases[i].policy);
    play_name(&spec.mechanism, cases[i].mechanism);
    play_name(&spec.privatizer, cases[i].privatizer);
    if (strcmp(cases[i].privatizer, "laplace") == 0) {
      assert_int_equal(cv_params_set_number(&spec.privatizer.params, "epsilon", 1), CV_OK);
    }
    if (cases[i].scores != NULL) {
      assert_int_equal(cv_params_set_text(&spec.policy.params, "scores", cases[i].scores), CV_OK);
    }
    assert_int_equal(cv_policy_check(&spec.policy, &bad, &why), CV_OK);
    assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
    if (strstr(why.text, cases[i].said) == NULL) {
      fail_msg("\"%s\" does not say \"%s\"", why.text, cases[i].said);
    }
  }
}

/* Every changed byte of a state is refused, or makes another state that can be saved again. */
static void refuses_a_state_that_cannot_be(void **state) {
  static const char *const policies[][2] = {{"best-arm", "segments"}, {"adap-tt", "batch"}};
  for (size_t i = 0; i < CV_COUNT(policies); i++) {
    struct cv_spec spec;
    struct cv_policy *policy;
    struct cv_buf good = {0};
    uint32_t refused = 0;
    make_spec(&spec, policies[i][0], policies[i][1], 1, .05);
    assert_int_equal(cv_policy_new(&spec, 1, &policy), CV_OK);
    const struct cv_release release = {.arm = 1, .tokens = 64, .noisy_sum = 32 * CV_GRID};
    cv_policy_apply(policy, &release);
    cv_policy_save(policy, &good);
    for (size_t at = 0; at < good.len; at++) {
      struct cv_policy *other;
      struct cv_reader in = cv_reader_over(good.data, good.len);
      good.data[at] ^= 0xff;
      assert_int_equal(cv_policy_new(&spec, 1, &other), CV_OK);
      enum cv_err err = cv_policy_load(other, &in);
      assert_true(err == CV_OK || err == CV_ERR_DAMAGED || err == CV_ERR_VERSION);
      refused += err != CV_OK;
      good.data[at] ^= 0xff;
      cv_policy_free(other);
    }
    assert_true(2 * refused > good.len / 2);
    struct cv_reader cut = cv_reader_over(good.data, good.len - 1);
    assert_int_equal(cv_policy_load(policy, &cut), CV_ERR_DAMAGED);
    cv_buf_fini(&good);
    cv_policy_free(policy);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(evidence_is_the_least_over_u),          cmocka_unit_test(hopeless_noise_is_no_evidence),
      cmocka_unit_test(finds_the_best_as_often_as_it_says),    cmocka_unit_test(equal_arms_are_seldom_told_apart),
      cmocka_unit_test(needs_fewer_tokens_than_the_baselines), cmocka_unit_test(goes_on_from_a_stored_state),
      cmocka_unit_test(refuses_what_its_proof_does_not_cover), cmocka_unit_test(refuses_a_state_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
