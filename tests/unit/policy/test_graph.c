/* SPDX-License-Identifier: Apache-2.0 */
/* The policies on a feedback graph: gap, gapu, aae, dp-se, alpha-sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/near.h"
#include "tests/unit/policy/naive_graph.h"
#include "thirdparty/policy/elimination.h"
#include "thirdparty/policy/policy.h"

/* A policy with its graph, which receives releases by hand. */
struct bench {
  struct cv_spec spec;
  struct cv_edge edge[GRAPH_ARMS * GRAPH_ARMS];
  struct cv_policy *policy;
  struct cv_policy_step step;
  uint64_t plan, number, seed;
};

static const char *name_of(char kind) {
  bool is_gapu = kind == 'u' || kind == 'e';
  return kind == 'g' ? "gap" : is_gapu ? "gapu" : kind == 'a' ? "aae" : kind == 'd' ? "dp-se" : "alpha-sample";
}

static bool is_private(char kind) {
  return strchr("gued", kind) != NULL;
}

static void choose(struct cv_choice *choice, const char *name) {
  (void)snprintf(choice->name, sizeof(choice->name), "%s", name);
}

static void join(struct bench *b, uint32_t x, uint32_t y) {
  b->edge[b->spec.edges++] = (struct cv_edge){.a = x, .b = y};
}

/* Before start(): edges and parameters may be added. */
static void prepare(struct bench *b, char kind, uint32_t arms) {
  *b = (struct bench){.spec = {.name = "bench", .arms = arms, .epsilon_micro = 1000000, .tokens = 100000}, .seed = 7};
  choose(&b->spec.policy, name_of(kind));
  choose(&b->spec.mechanism, is_private(kind) ? "batch" : "none");
  choose(&b->spec.privatizer, "none");
  if (kind == 'e') {
    assert_int_equal(cv_params_set_text(&b->spec.policy.params, "sets", "uniform"), CV_OK);
  }
}

static void start(struct bench *b) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  b->spec.edge = b->spec.edges > 0 ? b->edge : NULL;
  assert_int_equal(cv_policy_check(&b->spec.policy, &bad, &why), CV_OK);
  if (cv_policy_fits(&b->spec, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(cv_policy_new(&b->spec, b->seed, &b->policy), CV_OK);
}

static void stop(struct bench *b) {
  cv_policy_free(b->policy);
  cv_policy_step_fini(&b->step);
}

static void take_step(struct bench *b) {
  assert_int_equal(cv_policy_step(b->policy, ++b->plan, &b->step), CV_OK);
}

/* What mechanism batch adds. */
static const struct cv_noise one_noise = {.groups = 1, .group = {{.scale = 1, .count = 1}}};

static void feed(struct bench *b, uint32_t arm, double mean, uint64_t tokens) {
  const bool is_noisy = strcmp(b->spec.mechanism.name, "batch") == 0;
  const struct cv_release release = {.number = ++b->number,
                                     .plan = b->plan,
                                     .arm = arm,
                                     .tokens = tokens,
                                     .noise = is_noisy ? one_noise : (struct cv_noise){0},
                                     .noisy_sum = (int64_t)llround(mean * (double)tokens * (double)CV_GRID)};
  cv_policy_apply(b->policy, &release);
}

static struct cv_standing standing_of(const struct bench *b, uint32_t arm) {
  struct cv_standing standing;
  cv_policy_standing(b->policy, arm, &standing);
  return standing;
}

static uint32_t asked(const struct bench *b, uint32_t arm) {
  for (size_t i = 0; i < b->step.wants; i++) {
    if (b->step.want[i].arm == arm) {
      return b->step.want[i].tokens;
    }
  }
  fail_msg("arm %u is not named", arm);
  return 0;
}

static void gap_by_hand(void **state) {
  /* The path 0 - 1 - 2 - 3 with means .9, .8, .3, .2; delta = .1, epsilon = 1.
   * Phase 1: L = ceil(max{128 ln 320, 16 ln 160}) = ceil(738.35) = 739. The set is {0, 2}, {0, 3} or {1, 3}. Half the
   * width is sqrt(ln 320/1478) + ln 160/739 = .069340: 2 and 3 are out, 1 is not.
   * Phase 2: A = {0, 1} are neighbours, so 0 alone is played: L = ceil(max{512 ln 640, 32 ln 320}) = ceil(3308.27).
   * Half the width is sqrt(ln 640/6618) + ln 320/3309 = .032990: 1 is out. */
  struct bench b;
  prepare(&b, 'g', 4);
  join(&b, 0, 1);
  join(&b, 1, 2);
  join(&b, 2, 3);
  assert_int_equal(cv_params_set_number(&b.spec.policy.params, "delta", 0.1), CV_OK);
  start(&b);
  take_step(&b);
  assert_int_equal(b.step.wants, 4);
  uint32_t first = asked(&b, 0);
  uint32_t total = 0;
  for (uint32_t i = 0; i < 4; i++) {
    assert_true(asked(&b, i) == 0 || asked(&b, i) == 739);
    total += asked(&b, i);
  }
  assert_int_equal(total, 2 * 739);
  static const double mean[] = {0.9, 0.8, 0.3, 0.2};
  for (uint32_t i = 0; i < 4; i++) {
    feed(&b, i, mean[i], 739);
  }
  take_step(&b);
  assert_false(b.step.done);
  assert_int_equal(b.step.decisions, 2);
  assert_int_equal(b.step.decision[0].arm, 2);
  assert_int_equal(b.step.decision[1].arm, 3);
  assert_int_equal(b.step.decision[0].kind, CV_DECISION_REMOVE);
  assert_near(b.step.decision[0].radius, 0.069340, 1e-6);
  assert_near(b.step.decision[0].reference, 0.830660, 1e-6);
  assert_int_equal(b.step.wants, 2);
  assert_int_equal(asked(&b, 0), 3309);
  assert_int_equal(asked(&b, 1), 0);
  feed(&b, 0, 0.9, 3309);
  feed(&b, 1, 0.8, 3309);
  take_step(&b);
  assert_true(b.step.done);
  assert_near(b.step.decision[0].radius, 0.032990, 1e-6);
  assert_int_equal(b.step.decision[1].kind, CV_DECISION_SETTLE);
  assert_int_equal(b.step.decision[1].arm, 0);
  assert_int_equal(standing_of(&b, 0).rank_class, 1);
  assert_int_equal(standing_of(&b, 1).rank_class, 2);
  assert_int_equal(standing_of(&b, 0).tokens, first + 3309); /* plays, not what was seen */
  stop(&b);
}

static void the_set_takes_the_best_that_is_left(void **state) {
  /* The star of 0 with 1, 2, 3: the arm with the highest mean decides between {0} and the rest. */
  for (int round = 0; round < 2; round++) {
    struct bench b;
    prepare(&b, 'g', 4);
    for (uint32_t i = 1; i < 4; i++) {
      join(&b, 0, i);
    }
    start(&b);
    take_step(&b);
    for (uint32_t i = 0; i < 4; i++) {
      feed(&b, i, (round == 0) == (i == 0) ? 0.55 : 0.5, 1000);
    }
    take_step(&b);
    assert_int_equal(b.step.decisions, 0);
    assert_int_equal(asked(&b, 0) > 0, round == 0);
    for (uint32_t i = 1; i < 4; i++) {
      assert_int_equal(asked(&b, i) > 0, round == 1);
    }
    stop(&b);
  }
}

/* How often the middle of 0 - 1 - 2 is the set, over seeds, in the first plan or after a release. */
static double share_of_the_middle(char kind, bool later) {
  enum { RUNS = 3000 };
  uint32_t middle = 0;
  for (uint64_t seed = 0; seed < RUNS; seed++) {
    struct bench b;
    prepare(&b, kind, 3);
    b.seed = seed;
    join(&b, 0, 1);
    join(&b, 1, 2);
    start(&b);
    take_step(&b);
    if (later) {
      for (uint32_t i = 0; i < 3; i++) {
        feed(&b, i, i == 1 ? 0.52 : 0.5, 1000);
      }
      take_step(&b);
    }
    middle += asked(&b, 1) > 0;
    stop(&b);
  }
  return (double)middle / RUNS;
}

static void ties_and_gapus_sets_are_left_to_chance(void **state) {
  assert_near(share_of_the_middle('g', false), 1.0 / 3, 0.04);
  assert_near(share_of_the_middle('g', true), 1, 0);
  assert_near(share_of_the_middle('u', false), 1.0 / 3, 0.04);
  assert_near(share_of_the_middle('u', true), 1.0 / 3, 0.04);
  /* {1} and {0, 2} have the same probability. */
  assert_near(share_of_the_middle('e', false), 1.0 / 2, 0.04);
  assert_near(share_of_the_middle('e', true), 1.0 / 2, 0.04);
}

static void noise_as_printed_is_wider(void **state) {
  /* Two arms, delta = .1, epsilon = 1: L = 650. Shown 1300 times, the mechanism's part of the noise is half as wide as
   * printed: nothing is added with probability 1/4, a Laplace noise of scale 1/650 otherwise. */
  enum { RUNS = 20000 };
  struct bench b;
  prepare(&b, 'g', 2);
  assert_int_equal(cv_params_set_number(&b.spec.policy.params, "delta", 0.1), CV_OK);
  assert_int_equal(cv_params_set_text(&b.spec.policy.params, "noise", "printed"), CV_OK);
  start(&b);
  take_step(&b);
  assert_int_equal(asked(&b, 0), 650);
  double nothing = 0, size = 0, sum = 0;
  for (uint32_t i = 0; i < RUNS; i++) {
    b.plan = i;
    feed(&b, 0, 0.5, 1300);
    double added = standing_of(&b, 0).mean - 0.5;
    nothing += added == 0;
    size += fabs(added);
    sum += added;
  }
  assert_near(nothing / RUNS, 0.25, 0.015);
  assert_near(size / RUNS, 0.75 / 650, 0.03 / 650);
  assert_near(sum / RUNS, 0, 0.04 / 650);
  feed(&b, 0, 0.5, 650); /* as wide as printed already */
  assert_near(standing_of(&b, 0).mean, 0.5, 1e-9);
  stop(&b);
}

static void behind_randomized_response_phases_are_longer(void **state) {
  /* p = e/(1 + e): the mean token follows the mean score by (e - 1)/(e + 1) = .46212. */
  struct bench b;
  prepare(&b, 'g', 2);
  choose(&b.spec.privatizer, "randomized-response");
  assert_int_equal(cv_params_set_number(&b.spec.privatizer.params, "epsilon", 1), CV_OK);
  assert_int_equal(cv_params_set_number(&b.spec.policy.params, "delta", 0.1), CV_OK);
  start(&b);
  take_step(&b);
  double slope = 2 * exp(1) / (1 + exp(1)) - 1;
  assert_near(asked(&b, 0), ceil(128 * log(160) / (slope * slope)), 1); /* p is kept in millionths */
  feed(&b, 0, 0.5 + slope * 0.2, 1000);
  feed(&b, 1, 0.5, 1000);
  assert_near(standing_of(&b, 0).mean, 0.7, 1e-5);
  take_step(&b);
  assert_int_equal(b.step.decisions, 2); /* one is dropped, one is left */
  double plays = ceil(128 * log(160) / (slope * slope));
  assert_near(b.step.decision[0].radius, (sqrt(log(160) / (2 * plays)) + log(80) / plays) / slope, 1e-5);
  stop(&b);
}

static void alpha_sample_sees_every_arm_in_each_pass(void **state) {
  /* delta = e^-2: the first epoch has ceil(4 x 16) = 64 passes, the second 256. A complete graph needs a play a
   * pass, an empty one a play of every arm; the path of three plays the middle alone in a third of them, else both
   * ends. */
  static const double mean[] = {0.6, 0.6, 0.6};
  for (int edges = 0; edges <= 3; edges++) {
    struct bench b;
    prepare(&b, 's', 3);
    assert_int_equal(cv_params_set_number(&b.spec.policy.params, "delta", exp(-2)), CV_OK);
    for (uint32_t x = 0; x < 3; x++) {
      for (uint32_t y = x + 1; y < 3; y++) {
        bool there = (edges > 0 && x == 0 && y == 1) || (edges > 1 && x == 1) || edges > 2;
        if (there) {
          join(&b, x, y);
        }
      }
    }
    start(&b);
    uint32_t passes = 64;
    for (int epoch = 0; epoch < 2; epoch++, passes *= 4) {
      take_step(&b);
      uint32_t a = asked(&b, 0), m = asked(&b, 1), z = asked(&b, 2);
      if (edges == 0) {
        assert_true(a == passes && m == passes && z == passes);
      } else if (edges == 1) {
        assert_true(a + m == passes && z == passes && a > 0 && m > 0);
      } else if (edges == 2) {
        assert_true(a == z && a + m == passes);
        assert_near((double)m / passes, 1.0 / 3, epoch == 0 ? 0.2 : 0.1);
      } else {
        assert_int_equal(a + m + z, passes);
      }
      for (uint32_t i = 0; i < 3; i++) {
        feed(&b, i, mean[i], 1000);
      }
    }
    stop(&b);
  }
}

static void a_long_epoch_of_alpha_sample_is_several_plans(void **state) {
  struct bench b;
  prepare(&b, 's', 4);
  start(&b);
  uint64_t plays = 0, epochs = 0, plans = 0;
  for (uint32_t phase = 1; phase <= 6; phase++) {
    double passes = ceil(2 * log(100000) * pow(4, phase + 1));
    for (plays = 0; plays < 4 * (uint64_t)passes;) {
      take_step(&b);
      plans++;
      for (uint32_t i = 0; i < 4; i++) {
        plays += asked(&b, i);
        feed(&b, i, 0.5, 1000);
      }
    }
    assert_int_equal(plays, 4 * (uint64_t)passes);
    epochs++;
  }
  assert_true(plans > epochs);
  stop(&b);
}

/* Random means for what a plan shows, the same for both. */
struct instance {
  struct naive_graph naive;
  struct bench bench;
  struct cv_rng_seeded rng;
  double truth[GRAPH_ARMS], sum[GRAPH_ARMS], count[GRAPH_ARMS];
};

static void draw_instance(struct instance *x, char kind, uint64_t seed) {
  cv_rng_seeded_init(&x->rng, seed, CV_RNG_INSTANCE, (uint64_t)kind, 0);
  struct cv_rng *rng = &x->rng.rng;
  uint32_t k = 1 + (uint32_t)cv_rng_below(rng, GRAPH_ARMS);
  x->naive =
      (struct naive_graph){.kind = kind, .k = k, .delta = kind == 's' ? 0.5 : 0.001, .epsilon = 0.05, .phase = 1};
  memset(x->sum, 0, sizeof(x->sum));
  memset(x->count, 0, sizeof(x->count));
  prepare(&x->bench, kind, k);
  x->bench.seed = seed;
  x->bench.spec.epsilon_micro = 50000;
  assert_int_equal(cv_params_set_number(&x->bench.spec.policy.params, "delta", x->naive.delta), CV_OK);
  double p = kind == 'a' || kind == 'd' ? 0 : cv_rng_unit(rng);
  for (uint32_t i = 0; i < k; i++) {
    x->naive.in[i] = true;
    x->truth[i] = cv_rng_unit(rng);
    for (uint32_t j = i + 1; j < k; j++) {
      if (cv_rng_unit(rng) < p) {
        join(&x->bench, i, j);
        x->naive.edge[i][j] = x->naive.edge[j][i] = true;
      }
    }
  }
  start(&x->bench);
}

/* As after a restart. */
static void restart(struct bench *b) {
  struct cv_buf before = {0}, after = {0};
  cv_policy_save(b->policy, &before);
  cv_policy_free(b->policy);
  assert_int_equal(cv_policy_new(&b->spec, b->seed, &b->policy), CV_OK);
  struct cv_reader in = cv_reader_over(before.data, before.len);
  assert_int_equal(cv_policy_load(b->policy, &in), CV_OK);
  cv_policy_save(b->policy, &after);
  assert_int_equal(before.len, after.len);
  assert_memory_equal(before.data, after.data, after.len);
  cv_buf_fini(&before);
  cv_buf_fini(&after);
}

static void check_plan(const struct instance *x, const uint32_t *plays) {
  const struct naive_graph *naive = &x->naive;
  double need = naive_plays(naive);
  bool set[GRAPH_ARMS] = {false}, expected[GRAPH_ARMS] = {false};
  double seen[GRAPH_ARMS];
  naive_seen(naive, plays, seen);
  for (uint32_t i = 0; i < naive->k; i++) {
    set[i] = plays[i] > 0;
    if (!naive->in[i]) {
      assert_int_equal(plays[i], 0);
    } else if (naive->kind == 'a' || naive->kind == 'd') {
      assert_true(plays[i] == need);
    } else if (naive->kind == 's') {
      assert_true(seen[i] >= need && plays[i] <= need);
    } else {
      assert_true(plays[i] == 0 || plays[i] == need);
    }
  }
  if (strchr("gue", naive->kind) != NULL) {
    assert_true(naive_is_maximal(naive, set));
  }
  if (naive->kind == 'g' && naive->phase > 1) {
    naive_set(naive, expected);
    assert_memory_equal(set, expected, sizeof(set));
  }
}

/* Plays the plan: releases of fresh means for the private, of all tokens for the others. */
static void play(struct instance *x, const uint32_t *plays) {
  double seen[GRAPH_ARMS];
  naive_seen(&x->naive, plays, seen);
  for (uint32_t i = 0; i < x->naive.k; i++) {
    if (!x->naive.in[i]) {
      continue;
    }
    double mean = x->truth[i] + cv_rng_normal(&x->rng.rng) * 0.5 / sqrt(seen[i]);
    bool fresh = is_private(x->naive.kind);
    x->sum[i] = (fresh ? 0 : x->sum[i]) + mean * seen[i];
    x->count[i] = (fresh ? 0 : x->count[i]) + seen[i];
    int64_t sum = llround(x->sum[i] * (double)CV_GRID);
    x->naive.seen[i] = x->count[i];
    x->naive.mean[i] = (double)sum / (double)CV_GRID / x->count[i];
    const struct cv_release release = {.number = ++x->bench.number,
                                       .plan = x->bench.plan,
                                       .arm = i,
                                       .tokens = (uint64_t)x->count[i],
                                       .noise = fresh ? one_noise : (struct cv_noise){0},
                                       .noisy_sum = sum};
    cv_policy_apply(x->bench.policy, &release);
  }
}

/* Checks and plays what is asked for, adding it to `plays`. False if the epoch needs further plans: an epoch of
 * alpha-sample may have several, and nothing is decided before the last. */
static bool play_plan_of(struct instance *x, uint32_t *plays, uint64_t *total) {
  const struct cv_elimination *policy = (const struct cv_elimination *)x->bench.policy;
  const struct cv_policy_step *step = &x->bench.step;
  uint32_t asked_now[GRAPH_ARMS] = {0};
  assert_int_equal(step->wants, naive_in(&x->naive));
  for (size_t i = 0; i < step->wants; i++) {
    asked_now[step->want[i].arm] = step->want[i].tokens;
    plays[step->want[i].arm] += step->want[i].tokens;
    total[step->want[i].arm] += step->want[i].tokens;
  }
  bool is_over = policy->left == 0;
  assert_true(is_over || x->naive.kind == 's');
  if (is_over) {
    check_plan(x, plays);
  }
  restart(&x->bench);
  play(x, asked_now);
  restart(&x->bench);
  return is_over;
}

static uint32_t follow(struct instance *x) {
  enum { PHASES = 7, LOOKS = 400 };
  uint64_t total[GRAPH_ARMS] = {0};
  uint32_t removed = 0;
  take_step(&x->bench);
  for (uint32_t looks = x->naive.kind == 'a' ? LOOKS : PHASES; !x->bench.step.done && looks > 0; looks--) {
    uint32_t plays[GRAPH_ARMS] = {0};
    while (!play_plan_of(x, plays, total)) {
      take_step(&x->bench);
      assert_int_equal(x->bench.step.decisions, 0);
    }
    uint32_t before = naive_in(&x->naive);
    bool over = naive_judge(&x->naive);
    removed += before - naive_in(&x->naive);
    x->naive.phase++;
    take_step(&x->bench);
    assert_int_equal(x->bench.step.done, over);
    assert_int_equal(x->bench.step.decisions, before - naive_in(&x->naive) + (over && before > 1));
    for (uint32_t i = 0; i < x->naive.k; i++) {
      assert_int_equal(standing_of(&x->bench, i).rank_class, x->naive.in[i] ? 1 : 2);
      assert_int_equal(standing_of(&x->bench, i).tokens, total[i]);
    }
  }
  return removed;
}

static void agrees_with_the_naive_ones_step_by_step(void **state) {
  static struct instance x;
  for (const char *kind = "gueads"; *kind != '\0'; kind++) {
    uint32_t removed = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
      draw_instance(&x, *kind, seed);
      removed += follow(&x);
      stop(&x.bench);
    }
    assert_true(removed > 100);
  }
}

static void refused(struct bench *b, const char *expected) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  enum cv_err err = cv_policy_check(&b->spec.policy, &bad, &why);
  err = err == CV_OK ? cv_policy_fits(&b->spec, &why) : err;
  assert_int_equal(err, CV_ERR_INVALID);
  if (strstr(why.text, expected) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", why.text, expected);
  }
}

static void refuses_what_it_cannot_work_with(void **state) {
  struct bench b;
  prepare(&b, 'g', 2);
  choose(&b.spec.mechanism, "hybrid");
  refused(&b, "expected mechanism batch, not hybrid");
  prepare(&b, 's', 2);
  choose(&b.spec.mechanism, "batch");
  refused(&b, "expected mechanism none, not batch");
  prepare(&b, 'u', 2);
  choose(&b.spec.privatizer, "laplace");
  refused(&b, "privatizer than laplace");
  prepare(&b, 'e', 25);
  refused(&b, "25 items; expected at most 24");
  for (const char *kind = "ad"; *kind != '\0'; kind++) {
    prepare(&b, *kind, 2);
    join(&b, 0, 1);
    refused(&b, "expected no edges");
  }
  static const struct {
    char kind;
    const char *key;
    double value;
  } wrong[] = {{'g', "delta", 1}, {'d', "delta", -0.1}, {'s', "alpha", 1}, {'a', "tokens_per_round", 0.5}};
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    prepare(&b, wrong[i].kind, 2);
    assert_int_equal(cv_params_set_number(&b.spec.policy.params, wrong[i].key, wrong[i].value), CV_OK);
    refused(&b, wrong[i].key);
  }
}

static void refuses_a_state_that_cannot_be(void **state) {
  struct bench b;
  struct cv_buf good = {0};
  prepare(&b, 'g', 3);
  start(&b);
  take_step(&b);
  feed(&b, 1, 0.5, 1000);
  cv_policy_save(b.policy, &good);
  enum { HEAD = 1 + 8 + 8 + 4, ARM = 1 + 4 + 8 + 8 + 8 + 8 };
  assert_int_equal(good.len, HEAD + 3 * ARM);
  static const struct {
    size_t at;
    uint8_t byte;
  } damage[] = {{0, 9},    /* another version */
                {8, 1},    /* phase 2^56 */
                {16, 1},   /* so many passes */
                {17, 4},   /* four arms */
                {HEAD, 4}, /* flags that do not exist */
                {HEAD, 3}, /* a release of no tokens */
                {HEAD + ARM + 28, 0xff} /* a mean that is not a number, with the next */};
  for (size_t i = 0; i < CV_COUNT(damage); i++) {
    struct cv_buf bad = {0};
    cv_buf_put(&bad, good.data, good.len);
    bad.data[damage[i].at] = damage[i].byte;
    if (damage[i].byte == 0xff) {
      bad.data[damage[i].at - 1] = 0xff;
    }
    struct cv_reader in = cv_reader_over(bad.data, bad.len);
    assert_int_not_equal(cv_policy_load(b.policy, &in), CV_OK);
    cv_buf_fini(&bad);
  }
  struct cv_reader cut = cv_reader_over(good.data, good.len - 1);
  assert_int_not_equal(cv_policy_load(b.policy, &cut), CV_OK);
  cv_buf_fini(&good);
  stop(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gap_by_hand),
      cmocka_unit_test(the_set_takes_the_best_that_is_left),
      cmocka_unit_test(ties_and_gapus_sets_are_left_to_chance),
      cmocka_unit_test(noise_as_printed_is_wider),
      cmocka_unit_test(behind_randomized_response_phases_are_longer),
      cmocka_unit_test(alpha_sample_sees_every_arm_in_each_pass),
      cmocka_unit_test(a_long_epoch_of_alpha_sample_is_several_plans),
      cmocka_unit_test(agrees_with_the_naive_ones_step_by_step),
      cmocka_unit_test(refuses_what_it_cannot_work_with),
      cmocka_unit_test(refuses_a_state_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
