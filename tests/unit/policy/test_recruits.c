/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/near.h"
#include "tests/unit/policy/hirer.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/recruits.h"

#define UNIT UINT64_C(1000000)

/* A recruitment that receives releases by hand; the workers' sums are kept apart from the policy's state. */
struct bench {
  struct cv_spec spec;
  uint64_t cost[HIRER_ARMS];
  struct cv_policy *policy;
  struct cv_policy_step step;
  uint64_t plan, number, spent;
  uint64_t pulls[HIRER_ARMS];
  double sum[HIRER_ARMS]; /* as released: noisy */
};

static void bench_spec(struct bench *b, const char *policy, uint32_t arms, const uint64_t *cost, uint64_t budget) {
  *b = (struct bench){.spec = {.arms = arms, .tokens_per_worker = 1, .tokens = 1000000, .budget_micro = budget}};
  memcpy(b->cost, cost, arms * sizeof(*cost));
  b->spec.cost_micro = b->cost;
  (void)snprintf(b->spec.policy.name, sizeof(b->spec.policy.name), "%s", policy);
  (void)snprintf(b->spec.mechanism.name, sizeof(b->spec.mechanism.name), "none");
  (void)snprintf(b->spec.privatizer.name, sizeof(b->spec.privatizer.name), "none");
}

static void word(struct bench *b, const char *key, const char *value) {
  assert_int_equal(cv_params_set_text(&b->spec.policy.params, key, value), CV_OK);
}

static void number(struct bench *b, const char *key, double value) {
  assert_int_equal(cv_params_set_number(&b->spec.policy.params, key, value), CV_OK);
}

static void bench_open(struct bench *b, uint64_t seed) {
  const struct cv_param *bad;
  struct cv_why why;
  assert_int_equal(cv_policy_check(&b->spec.policy, &bad, &why), CV_OK);
  assert_int_equal(cv_policy_new(&b->spec, seed, &b->policy), CV_OK);
}

static void bench_fini(struct bench *b) {
  cv_policy_free(b->policy);
  cv_policy_step_fini(&b->step);
}

static void bench_step(struct bench *b) {
  assert_int_equal(cv_policy_step(b->policy, ++b->plan, &b->step), CV_OK);
}

/* Pays for what was asked, with this sum of scores (noise included), and reports the noise's law. */
static void bench_release(struct bench *b, struct cv_want want, double sum, const struct cv_noise *noise) {
  b->pulls[want.arm] += want.tokens;
  b->spent += want.tokens * b->cost[want.arm];
  assert_true(b->spent <= b->spec.budget_micro);
  bool fresh = strcmp(b->spec.mechanism.name, "batch") == 0;
  double before = b->sum[want.arm];
  b->sum[want.arm] += (double)cv_grid_to(llround(sum * (double)CV_GRID));
  struct cv_release release = {
      .number = ++b->number, .plan = b->plan, .arm = want.arm, .tokens = fresh ? want.tokens : b->pulls[want.arm]};
  release.noisy_sum = llround((b->sum[want.arm] - (fresh ? before : 0)) * (double)CV_GRID);
  release.noise = noise == NULL ? (struct cv_noise){0} : *noise;
  cv_policy_apply(b->policy, &release);
}

static void one(struct bench *b, uint32_t arm, double score) {
  assert_false(b->step.done);
  assert_int_equal(b->step.wants, 1);
  assert_int_equal(b->step.want[0].arm, arm);
  assert_int_equal(b->step.want[0].tokens, 1);
  bench_release(b, b->step.want[0], score, NULL);
}

/* The paper's example: costs 2, 4, 5, B = 200, and the qualities of its Figure 2 a. */
static const uint64_t paper_cost[] = {2 * UNIT, 4 * UNIT, 5 * UNIT};
static const double paper_day[3][6] = {{.6, .5, .4, .3, .2, .5}, {.6, .7, .8, .6, .5, .4}, {.7, .6, .9, .7, .9, .9}};

static void dpf_recruits_in_the_order_of_figure_2(void **state) {
  (void)state;
  static const uint32_t order[] = {0, 1, 2, 0, 1, 0};
  struct bench b;
  bench_spec(&b, "dpf", 3, paper_cost, 200 * UNIT);
  number(&b, "epsilon", .1);
  word(&b, "noise", "printed");
  bench_open(&b, 1);
  for (size_t day = 0; day < CV_COUNT(order); day++) {
    bench_step(&b);
    one(&b, order[day], paper_day[order[day]][day]);
  }
  assert_int_equal(b.spent, 19 * UNIT);
  /* 1.4/3, .6 and .9; densities 1.4/6, .15 and .18: worker 1 to the end. 181 is left of the 200. */
  struct cv_standing standing;
  cv_policy_standing(b.policy, 0, &standing);
  assert_near(standing.mean, 1.4 / 3, 1e-6);
  cv_policy_standing(b.policy, 1, &standing);
  assert_near(standing.mean, .6, 1e-6);
  cv_policy_standing(b.policy, 2, &standing);
  assert_near(standing.mean, .9, 1e-6);
  for (int i = 0; i < 90; i++) {
    bench_step(&b);
    one(&b, 0, 0); /* what the exploitation brings changes nothing any more */
  }
  bench_step(&b);
  assert_true(b.step.done);
  assert_int_equal(b.spent, 199 * UNIT);
  bench_fini(&b);
}

/* As many tokens as there are requests: no plan exceeds them, and the last one is the end. */
static void no_more_hires_than_requests(void **state) {
  enum { REQUESTS = 21 };
  (void)state;
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    struct bench b;
    if (cv_policy_at(p)->kind != CV_POLICY_RECRUITMENT) {
      continue;
    }
    bench_spec(&b, cv_policy_at(p)->name, 3, paper_cost, 400 * UNIT);
    b.spec.tokens = REQUESTS;
    bench_open(&b, 1);
    uint64_t asked = 0;
    for (bench_step(&b); !b.step.done; bench_step(&b)) {
      assert_true(b.step.wants > 0);
      for (size_t i = 0; i < b.step.wants; i++) {
        assert_true(b.step.want[i].tokens > 0);
        asked += b.step.want[i].tokens;
        bench_release(&b, b.step.want[i], .5 * b.step.want[i].tokens, NULL);
      }
      assert_in_range(asked, 1, REQUESTS);
    }
    assert_int_equal(asked, REQUESTS);
    bench_fini(&b);
  }
}

static void dpf_sound_explores_in_one_plan_and_spends_the_rest_in_another(void **state) {
  (void)state;
  struct bench b;
  bench_spec(&b, "dpf", 3, paper_cost, 200 * UNIT);
  (void)snprintf(b.spec.mechanism.name, sizeof(b.spec.mechanism.name), "batch");
  b.spec.epsilon_micro = 400000;
  bench_open(&b, 1);
  bench_step(&b);
  assert_int_equal(b.step.wants, 3);
  static const double sum[] = {1.4, 1.2, .9};
  static const struct cv_noise lap = {.groups = 1, .group = {{.scale = 1, .count = 1}}};
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(b.step.want[i].arm, i);
    assert_int_equal(b.step.want[i].tokens, 3 - i); /* as often as in the order 1, 2, 3, 1, 2, 1 */
    bench_release(&b, b.step.want[i], sum[i], &lap);
  }
  bench_step(&b);
  assert_int_equal(b.step.wants, 1);
  assert_int_equal(b.step.want[0].arm, 0);
  assert_int_equal(b.step.want[0].tokens, 90);
  bench_release(&b, b.step.want[0], 40, &lap);
  struct cv_standing standing;
  cv_policy_standing(b.policy, 0, &standing);
  assert_int_equal(standing.tokens, 93);
  assert_near(standing.mean, 41.4 / 93, 1e-6); /* batches are fresh: they add up */
  bench_step(&b);
  assert_true(b.step.done);
  bench_fini(&b);
}

static void densities(const struct bench *b, double first, double second, double third, uint64_t times) {
  const struct cv_recruits *self = (const struct cv_recruits *)b->policy;
  assert_near(self->density[0], first, 5e-5);
  assert_near(self->density[1], second, 5e-5);
  assert_near(self->density[2], third, 5e-5);
  assert_int_equal(self->picks, 1);
  assert_int_equal(self->pick[0], 0);
  assert_int_equal(self->times[0], times);
}

static void dpu_has_the_densities_and_plans_of_figure_3(void **state) {
  (void)state;
  struct bench b;
  bench_spec(&b, "dpu", 3, paper_cost, 200 * UNIT);
  bench_open(&b, 1);
  bench_step(&b);
  assert_int_equal(b.step.wants, 3); /* the first three days, in one plan */
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(b.step.want[i].arm, i);
    assert_int_equal(b.step.want[i].tokens, 1);
    bench_release(&b, b.step.want[i], paper_day[i][i], NULL);
  }
  bench_step(&b);
  densities(&b, 1.0412, .5456, .4765, 94);
  one(&b, 0, paper_day[0][3]);
  bench_step(&b);
  densities(&b, .8137, .5913, .5130, 93);
  one(&b, 0, paper_day[0][4]);
  bench_step(&b);
  /* The paper prints {1, 61, 0} and draws by 1/62 and 61/62. That requires I_2/c_2 > I_1/c_1, but they are .6235 and
   * .7013, and it costs 246 of the 185 that are left. */
  densities(&b, .7013, .6235, .5388, 92);
  assert_int_equal(b.spec.budget_micro - b.spent, 185 * UNIT);
  assert_true(1 * paper_cost[0] + 61 * paper_cost[1] == 246 * UNIT);
  assert_true(92 * paper_cost[0] <= b.spec.budget_micro - b.spent);
  one(&b, 0, paper_day[0][5]);
  bench_fini(&b);
}

/* Arm 2 is the densest and takes all but 3 of 43: arm 1 fits once more, so it is drawn one time in 11. */
static void dpu_draws_in_proportion_to_the_plan(void **state) {
  (void)state;
  static const uint64_t cost[] = {3 * UNIT, 4 * UNIT};
  unsigned drawn = 0, tries = 11000;
  for (unsigned seed = 0; seed < tries; seed++) {
    struct bench b;
    bench_spec(&b, "dpu", 2, cost, 50 * UNIT);
    bench_open(&b, seed);
    bench_step(&b);
    bench_release(&b, b.step.want[0], 0, NULL);
    bench_release(&b, b.step.want[1], 1, NULL);
    bench_step(&b);
    assert_int_equal(b.step.wants, 1);
    drawn += b.step.want[0].arm == 0;
    bench_fini(&b);
  }
  assert_near(drawn, tries / 11.0, 5 * sqrt(tries / 11.0));
}

/* 94 pulls of the example's worker 1 are in the plan: 10 of them are one plan, and 200 are as many as there are. */
static void dpu_may_draw_several_from_one_plan(void **state) {
  (void)state;
  static const double pulls[] = {10, 200};
  for (size_t i = 0; i < CV_COUNT(pulls); i++) {
    struct bench b;
    bench_spec(&b, "dpu", 3, paper_cost, 200 * UNIT);
    number(&b, "pulls", pulls[i]);
    bench_open(&b, 1);
    bench_step(&b);
    for (uint32_t arm = 0; arm < 3; arm++) {
      bench_release(&b, b.step.want[arm], paper_day[arm][arm], NULL);
    }
    bench_step(&b);
    assert_int_equal(b.step.wants, 1);
    assert_int_equal(b.step.want[0].arm, 0);
    assert_int_equal(b.step.want[0].tokens, i == 0 ? 10 : 94);
    bench_fini(&b);
  }
  /* Of two kinds, 10 and 1, all 11 are the whole plan, and 3 are in it for a third each. */
  static const uint64_t cost[] = {3 * UNIT, 4 * UNIT};
  unsigned asked = 0, tries = 3000;
  for (unsigned seed = 0; seed < 2 * tries; seed++) {
    struct bench b;
    bench_spec(&b, "dpu", 2, cost, 50 * UNIT);
    number(&b, "pulls", seed < tries ? 3 : 50);
    bench_open(&b, seed);
    bench_step(&b);
    bench_release(&b, b.step.want[0], 0, NULL);
    bench_release(&b, b.step.want[1], 1, NULL);
    bench_step(&b);
    uint32_t tokens[2] = {0};
    for (size_t i = 0; i < b.step.wants; i++) {
      tokens[b.step.want[i].arm] = b.step.want[i].tokens;
    }
    assert_int_equal(tokens[0] + tokens[1], seed < tries ? 3 : 11);
    assert_true(tokens[0] <= 1 && (seed < tries || tokens[0] == 1));
    asked += seed < tries ? tokens[0] : 0;
    bench_fini(&b);
  }
  assert_near(asked, tries * 3 / 11.0, 5 * sqrt(tries * .2));
}

/* Section 7: the workers of a slot are different, and the slots of a plan are those that the money lasts for. */
static void dpu_hires_a_combination_a_slot(void **state) {
  (void)state;
  static const uint64_t cost[] = {2 * UNIT, 4 * UNIT, 5 * UNIT, 5 * UNIT};
  struct bench b;
  bench_spec(&b, "dpu", 4, cost, (16 + 13) * UNIT);
  number(&b, "tasks", 2);
  number(&b, "pulls", 7);
  bench_open(&b, 1);
  bench_step(&b);
  assert_int_equal(b.step.wants, 4);
  struct cv_want first[4];
  memcpy(first, b.step.want, sizeof(first));
  static const double score[] = {0, 1, .9, .1};
  for (int i = 0; i < 4; i++) {
    bench_release(&b, first[i], score[first[i].arm], NULL);
  }
  /* sqrt(2 ln 4) = 1.665 on top: densities .83, .67, .51, .35. Workers 1 and 2 cost 6, twice of 13. */
  bench_step(&b);
  assert_int_equal(b.step.wants, 2);
  assert_int_equal(b.step.want[0].arm, 0);
  assert_int_equal(b.step.want[1].arm, 1);
  assert_int_equal(b.step.want[0].tokens, 2);
  assert_int_equal(b.step.want[1].tokens, 2);
  bench_release(&b, b.step.want[0], 0, NULL);
  bench_release(&b, b.step.want[1], 2, NULL);
  bench_step(&b);
  assert_true(b.step.done); /* 1 is left */
  bench_fini(&b);
}

static void the_baselines_do_what_they_say(void **state) {
  (void)state;
  struct bench b;
  bench_spec(&b, "cheapest", 3, paper_cost, 11 * UNIT);
  bench_open(&b, 1);
  bench_step(&b);
  assert_int_equal(b.step.wants, 1);
  assert_int_equal(b.step.want[0].arm, 0);
  assert_int_equal(b.step.want[0].tokens, 5);
  bench_release(&b, b.step.want[0], 1, NULL);
  bench_step(&b);
  assert_true(b.step.done);
  bench_fini(&b);

  /* q/c of .2, .15 and .3: worker 3 twice of 13, then worker 1 of the 3 that are left. */
  static const double truth[] = {.4, .6, 1.5};
  bench_spec(&b, "opt", 3, paper_cost, 13 * UNIT);
  bench_open(&b, 1);
  cv_policy_tell(b.policy, truth);
  bench_step(&b);
  assert_int_equal(b.step.wants, 2);
  assert_int_equal(b.step.want[0].arm, 2);
  assert_int_equal(b.step.want[0].tokens, 2);
  assert_int_equal(b.step.want[1].arm, 0);
  assert_int_equal(b.step.want[1].tokens, 1);
  bench_fini(&b);

  unsigned times[3] = {0};
  bench_spec(&b, "uniform", 3, paper_cost, 3000000 * UNIT);
  bench_open(&b, 1);
  for (unsigned i = 0; i < 9000; i++) {
    bench_step(&b);
    times[b.step.want[0].arm]++;
    bench_release(&b, b.step.want[0], 0, NULL);
  }
  for (int i = 0; i < 3; i++) {
    assert_near(times[i], 3000, 5 * sqrt(2000));
  }
  bench_fini(&b);
}

/* What an only arm is asked for, plan by plan, until money or tokens are used up. */
static void segments_of_one_arm(struct bench *b, const uint32_t *tokens, size_t n) {
  static const struct cv_noise lap = {.groups = 1, .group = {{.scale = 1, .count = 1}}};
  bench_open(b, 1);
  for (size_t i = 0; i < n; i++) {
    bench_step(b);
    assert_false(b->step.done);
    assert_int_equal(b->step.wants, 1);
    assert_int_equal(b->step.want[0].tokens, tokens[i]);
    bench_release(b, b->step.want[0], .5 * tokens[i], &lap);
  }
  bench_step(b);
  assert_true(b->step.done);
  bench_fini(b);
}

/* Few releases have few noises: 6/epsilon pulls, then as many as the arm has, at last as many as there are. */
static void dpu_kl_doubles_the_pulls_of_an_arm(void **state) {
  (void)state;
  static const uint64_t cost = 2 * UNIT;
  struct bench b;
  bench_spec(&b, "dpu-kl", 1, &cost, 201 * UNIT);
  (void)snprintf(b.spec.mechanism.name, sizeof(b.spec.mechanism.name), "segments");
  b.spec.epsilon_micro = 400000;
  segments_of_one_arm(&b, (const uint32_t[]){15, 15, 30, 40}, 4);
  bench_spec(&b, "dpu-kl", 1, &cost, 200 * UNIT);
  segments_of_one_arm(&b, (const uint32_t[]){1, 1, 2, 4, 8, 16, 32, 36}, 8);
  bench_spec(&b, "dpu-kl", 1, &cost, 200 * UNIT);
  b.spec.tokens = 11;
  segments_of_one_arm(&b, (const uint32_t[]){1, 1, 2, 4, 3}, 5);
}

/* Pulls of an arm with mean .9 and cost 10 beside one with mean .3 and cost 1. */
static uint64_t dear_pulls(const char *index, uint64_t budget, uint64_t tokens) {
  static const uint64_t cost[] = {1 * UNIT, 10 * UNIT};
  struct bench b;
  bench_spec(&b, "dpu-kl", 2, cost, budget * UNIT);
  word(&b, "index", index);
  b.spec.tokens = tokens;
  bench_open(&b, 1);
  for (bench_step(&b); !b.step.done; bench_step(&b)) {
    struct cv_want want = b.step.want[0];
    bench_release(&b, want, want.tokens * (want.arm == 0 ? .3 : .9), NULL);
  }
  uint64_t pulls = b.pulls[1];
  bench_fini(&b);
  return pulls;
}

/* The dear arm is the better one where money is no matter, which only the quantile takes into account. */
static void dpu_kl_spends_money_that_requests_leave_over(void **state) {
  (void)state;
  assert_in_range(dear_pulls("quantile", 10000, 1000), 900, 999);
  assert_in_range(dear_pulls("kl", 10000, 1000), 0, 100);
  assert_in_range(dear_pulls("quantile", 1000, 1000000), 0, 10);
}

/* ---- against the naive one ---- */

static const char *const names[] = {"dpf",     "dpu", "eps-greedy",          "dp-ucb-bound", "cheapest",
                                    "uniform", "opt", "eps-greedy-true-gap", "dpu-kl"};

/* Either index, with few or many tokens; half of the instances behind randomized response, which may turn the order
 * round. */
static void draw_dpu_kl(struct bench *b, struct hirer *h, struct cv_rng *rng) {
  if (h->v) {
    (void)snprintf(b->spec.mechanism.name, sizeof(b->spec.mechanism.name), "segments");
  }
  if (cv_rng_below(rng, 2) == 0) {
    word(b, "index", "kl");
    h->by_bound = true;
  }
  h->budget = b->spec.budget_micro *= 1 + cv_rng_below(rng, 20);
  h->tokens = b->spec.tokens = UINT64_C(1) << cv_rng_below(rng, 13);
  h->slope = 1;
  if (cv_rng_below(rng, 2) == 0) {
    static const double keep[][2] = {{.8, .7}, {.2, .1}, {.6, .95}};
    const double *pair = keep[cv_rng_below(rng, CV_COUNT(keep))];
    (void)snprintf(b->spec.privatizer.name, sizeof(b->spec.privatizer.name), "randomized-response");
    assert_int_equal(cv_params_set_number(&b->spec.privatizer.params, "p00", pair[0]), CV_OK);
    assert_int_equal(cv_params_set_number(&b->spec.privatizer.params, "p11", pair[1]), CV_OK);
    h->offset = 1 - pair[0];
    h->slope = pair[0] + pair[1] - 1;
  }
}

/* An instance of any of them, with a naive one beside it. */
static void draw(struct bench *b, struct hirer *h, const char *name, struct cv_rng *rng) {
  uint64_t cost[HIRER_ARMS];
  uint32_t arms = 1 + (uint32_t)cv_rng_below(rng, HIRER_ARMS);
  bool whole = cv_rng_below(rng, 2) == 0; /* whole costs, so that some are equal */
  for (uint32_t i = 0; i < arms; i++) {
    cost[i] = whole ? (1 + cv_rng_below(rng, 5)) * UNIT : UNIT / 2 + cv_rng_below(rng, 9 * UNIT);
  }
  bench_spec(b, name, arms, cost, 1 + cv_rng_below(rng, 60 * arms * UNIT));
  bool exact = cv_rng_below(rng, 3) == 0, batch = name[2] == 'f' && cv_rng_below(rng, 2) == 0;
  if (!exact) {
    (void)snprintf(b->spec.mechanism.name, sizeof(b->spec.mechanism.name), batch ? "batch" : "hybrid");
    b->spec.epsilon_micro = 100000 + cv_rng_below(rng, 900000);
  }
  *h = (struct hirer){.name = name, .arms = arms, .budget = b->spec.budget_micro, .tasks = 1, .v = !exact};
  memcpy(h->cost, cost, arms * sizeof(*cost));
  h->delta = (double)b->spec.epsilon_micro / 1e6;
  bool segments = strcmp(name, "dpu-kl") == 0, takes_noise = name[0] == 'd' && !segments;
  if (segments) {
    draw_dpu_kl(b, h, rng);
  }
  if (takes_noise && cv_rng_below(rng, 2) == 0) {
    word(b, "noise", "printed");
    h->printed = true;
    h->delta *= arms;
  }
  if (strcmp(name, "dpf") == 0) {
    h->epsilon = .01 + .5 * cv_rng_unit(rng);
    number(b, "epsilon", h->epsilon);
    if (cv_rng_below(rng, 2) == 0) {
      double at = 1 + 100 * cv_rng_unit(rng);
      number(b, "epsilon_at", at);
      h->epsilon = hirer_share(h, at);
    }
  } else if (strcmp(name, "dpu") == 0 && cv_rng_below(rng, 2) == 0) {
    h->tasks = 2 + (uint32_t)cv_rng_below(rng, 4);
    number(b, "tasks", h->tasks);
  } else if (strcmp(name, "eps-greedy") == 0 && cv_rng_below(rng, 2) == 0) {
    h->gap = cv_rng_unit(rng);
    number(b, "gap", h->gap);
  } else if (strcmp(name, "dp-ucb-bound") == 0 && cv_rng_below(rng, 2) == 0) {
    word(b, "index", "printed");
    h->index_printed = true;
  }
  h->seed = cv_rng_u64(rng);
  bench_open(b, h->seed);
  for (uint32_t i = 0; i < arms; i++) {
    h->truth[i] = cv_rng_unit(rng);
  }
  cv_policy_tell(b->policy, h->truth); /* most are deaf to it */
}

/* Saved and loaded into another, which saves the same bytes and replaces the first. */
static void through_storage(struct bench *b) {
  struct cv_buf first = {0}, second = {0};
  struct cv_policy *other;
  cv_policy_save(b->policy, &first);
  assert_int_equal(cv_policy_new(&b->spec, ((const struct cv_recruits *)b->policy)->seed, &other), CV_OK);
  struct cv_reader in = cv_reader_over(first.data, first.len);
  assert_int_equal(cv_policy_load(other, &in), CV_OK);
  cv_policy_save(other, &second);
  assert_int_equal(first.len, second.len);
  assert_memory_equal(first.data, second.data, first.len);
  cv_policy_free(b->policy);
  b->policy = other;
  cv_buf_fini(&first);
  cv_buf_fini(&second);
}

static void same_wants(const struct bench *b, const struct hirer *h) {
  uint64_t asked[HIRER_ARMS] = {0};
  for (size_t i = 0; i < b->step.wants; i++) {
    assert_int_equal(asked[b->step.want[i].arm], 0);
    assert_true(b->step.want[i].tokens > 0);
    asked[b->step.want[i].arm] = b->step.want[i].tokens;
  }
  for (uint32_t i = 0; i < h->arms; i++) {
    assert_int_equal(asked[i], h->want[i]);
  }
}

static void run_beside(const char *name, uint64_t seed) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_INSTANCE, 0, 0);
  struct bench b;
  struct hirer h;
  draw(&b, &h, name, &rng.rng);
  uint32_t releases[HIRER_ARMS] = {0};
  for (;;) {
    bench_step(&b);
    for (uint32_t i = 0; i < h.arms; i++) {
      h.pulls[i] = (double)b.pulls[i];
      h.sum[i] = b.sum[i];
    }
    h.taken = b.step.wants > 0 ? b.step.want[0].arm : 0;
    hirer_step(&h, b.plan);
    assert_int_equal(b.step.done, h.done);
    if (h.done) {
      break;
    }
    same_wants(&b, &h);
    for (size_t i = 0; i < b.step.wants; i++) {
      struct cv_want want = b.step.want[i];
      double noise = h.v ? 4 * cv_rng_normal(&rng.rng) : 0;
      /* One of each segment, as dpu-kl expects; the others do not look at what one broker states. */
      const struct cv_noise stated = {.groups = 1, .group = {{.scale = 1, .count = ++releases[want.arm]}}};
      bench_release(&b, want, want.tokens * (1.4 * cv_rng_unit(&rng.rng) - .2) + noise, h.v ? &stated : NULL);
    }
    through_storage(&b);
  }
  /* No further arm could have been bought. */
  bool is_all = hirer_pulls(&h) == (double)b.spec.tokens;
  for (uint32_t i = 0; i < h.arms; i++) {
    assert_true(is_all || b.cost[i] > b.spec.budget_micro - b.spent);
  }
  bench_fini(&b);
}

static void agrees_with_the_naive_one_step_by_step(void **state) {
  (void)state;
  for (size_t n = 0; n < CV_COUNT(names); n++) {
    for (uint64_t seed = 0; seed < 60; seed++) {
      run_beside(names[n], seed);
    }
  }
}

/* ---- what is refused ---- */

static void refused_param(const char *name, const char *key, const char *text, double value, const char *line) {
  struct bench b;
  bench_spec(&b, name, 3, paper_cost, UNIT);
  if (text != NULL) {
    word(&b, key, text);
  } else {
    number(&b, key, value);
  }
  const struct cv_param *bad;
  struct cv_why why;
  assert_int_equal(cv_policy_check(&b.spec.policy, &bad, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, line));
}

static void parameters_are_refused_by_name(void **state) {
  (void)state;
  refused_param("dpf", "epsilon", NULL, 0, "epsilon");
  refused_param("dpf", "epsilon", NULL, 1, "epsilon");
  refused_param("dpf", "noise", "loud", 0, "noise");
  refused_param("dpu", "noise", "loud", 0, "noise");
  refused_param("dpu", "delta", NULL, .5, "delta");
  refused_param("dpu-kl", "index", "ucb", 0, "index");
  refused_param("dpu", "tasks", NULL, 0, "tasks");
  refused_param("eps-greedy", "gap", NULL, 1.5, "gap");
  refused_param("dp-ucb-bound", "index", "tossou", 0, "index");
  refused_param("cheapest", "epsilon", NULL, .5, "epsilon");
  refused_param("opt", "q", NULL, .5, "q");
  refused_param("uniform", "seed", NULL, 1, "seed");
}

static void refused_fit(const char *name, const char *mechanism, const char *privatizer, const char *line) {
  struct bench b;
  struct cv_why why;
  bench_spec(&b, name, 3, paper_cost, UNIT);
  (void)snprintf(b.spec.mechanism.name, sizeof(b.spec.mechanism.name), "%s", mechanism);
  (void)snprintf(b.spec.privatizer.name, sizeof(b.spec.privatizer.name), "%s", privatizer);
  if (line == NULL) {
    assert_int_equal(cv_policy_fits(&b.spec, &why), CV_OK);
    return;
  }
  assert_int_equal(cv_policy_fits(&b.spec, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, line));
}

static void says_what_it_needs(void **state) {
  (void)state;
  refused_fit("dpu", "hybrid", "randomized-response", NULL);
  refused_fit("dpu", "none", "none", NULL);
  refused_fit("dpf", "batch", "laplace", NULL);
  refused_fit("dpu", "batch", "none", "expected hybrid or none or kary-blocks, not batch");
  refused_fit("dp-ucb-bound", "segments", "none", "expected hybrid or none or kary-blocks, not segments");
  refused_fit("dpu", "hybrid", "laplace", "another privatizer than laplace");
  refused_fit("dpu-kl", "segments", "randomized-response", NULL);
  refused_fit("dpu-kl", "none", "none", NULL);
  refused_fit("dpu-kl", "hybrid", "none", "expected none or segments or per-item, not hybrid");
  refused_fit("dpu-kl", "batch", "none", "expected none or segments or per-item, not batch");
  refused_fit("dpu-kl", "segments", "laplace", "another privatizer than laplace");
  refused_fit("dpf", "doubling", "none", "another mechanism than doubling");
  refused_fit("uniform", "doubling", "none", "another mechanism than doubling");
  refused_fit("opt", "none", "none", "needs the true means");
  refused_fit("eps-greedy-true-gap", "none", "none", "needs the true means");
}

static void refuses_a_state_that_cannot_be(void **state) {
  (void)state;
  struct bench b;
  bench_spec(&b, "dpf", 3, paper_cost, 200 * UNIT);
  bench_open(&b, 1);
  bench_step(&b);
  for (size_t i = 0; i < b.step.wants; i++) {
    bench_release(&b, b.step.want[i], 1, NULL);
  }
  bench_step(&b);
  struct cv_buf good = {0};
  cv_policy_save(b.policy, &good);
  for (size_t n = 0; n < good.len; n++) { /* cut short anywhere */
    struct cv_reader in = cv_reader_over(good.data, n);
    assert_int_not_equal(cv_policy_load(b.policy, &in), CV_OK);
  }
  /* The version, the arms, the money that is left, pulls of the first arm. */
  static const size_t at[] = {0, 1, 5, 13};
  for (size_t i = 0; i < CV_COUNT(at); i++) {
    good.data[at[i]] ^= 1;
    struct cv_reader in = cv_reader_over(good.data, good.len);
    assert_int_not_equal(cv_policy_load(b.policy, &in), CV_OK);
    good.data[at[i]] ^= 1;
  }
  cv_buf_put_u8(&good, 0); /* something behind it */
  struct cv_reader in = cv_reader_over(good.data, good.len);
  assert_int_equal(cv_policy_load(b.policy, &in), CV_ERR_DAMAGED);
  cv_buf_fini(&good);
  bench_fini(&b);
}

/* Whatever a broker reports as sums, the state can be stored and loaded, and no plan spends money that is gone. */
static void survives_a_broker_that_lies(void **state) {
  (void)state;
  for (size_t n = 0; n <= CV_COUNT(names); n++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, n, CV_RNG_SCORE, 0, 0);
    struct bench b;
    bench_spec(&b, n < CV_COUNT(names) ? names[n] : "dpu-kl", 3, paper_cost, 200 * UNIT);
    if (n == CV_COUNT(names)) { /* its index of noisy sums has no end at 0 and 1 */
      (void)snprintf(b.spec.mechanism.name, sizeof(b.spec.mechanism.name), "segments");
      b.spec.epsilon_micro = 500000;
    }
    bench_open(&b, 1);
    for (int i = 0; i < 400; i++) {
      struct cv_release release = {.number = i,
                                   .arm = (uint32_t)cv_rng_below(&rng.rng, 3),
                                   .tokens = 1 + (cv_rng_u64(&rng.rng) >> cv_rng_below(&rng.rng, 64)) / 2,
                                   .noisy_sum = (int64_t)cv_rng_u64(&rng.rng)};
      bench_step(&b);
      cv_policy_apply(b.policy, &release);
      through_storage(&b);
    }
    bench_step(&b);
    assert_true(b.step.done);
    bench_fini(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dpf_recruits_in_the_order_of_figure_2),
      cmocka_unit_test(no_more_hires_than_requests),
      cmocka_unit_test(dpf_sound_explores_in_one_plan_and_spends_the_rest_in_another),
      cmocka_unit_test(dpu_has_the_densities_and_plans_of_figure_3),
      cmocka_unit_test(dpu_draws_in_proportion_to_the_plan),
      cmocka_unit_test(dpu_may_draw_several_from_one_plan),
      cmocka_unit_test(dpu_hires_a_combination_a_slot),
      cmocka_unit_test(the_baselines_do_what_they_say),
      cmocka_unit_test(dpu_kl_doubles_the_pulls_of_an_arm),
      cmocka_unit_test(dpu_kl_spends_money_that_requests_leave_over),
      cmocka_unit_test(agrees_with_the_naive_one_step_by_step),
      cmocka_unit_test(parameters_are_refused_by_name),
      cmocka_unit_test(says_what_it_needs),
      cmocka_unit_test(refuses_a_state_that_cannot_be),
      cmocka_unit_test(survives_a_broker_that_lies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
