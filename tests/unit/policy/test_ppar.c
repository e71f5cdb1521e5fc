/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "tests/support/near.h"
#include "tests/unit/policy/naive.h"
#include "thirdparty/policy/policy.h"

/* A policy that receives releases by hand. */
struct bench {
  struct cv_spec spec;
  struct cv_policy *policy;
  struct cv_policy_step step;
  uint64_t plan, number;
};

static void bench_init(struct bench *b, uint32_t arms, double alpha, const char *radius, const char *settled) {
  *b = (struct bench){
      .spec = {.arms = arms, .epsilon_micro = 250000, .tokens_per_worker = 1, .tokens = UINT64_C(1) << 40}};
  (void)snprintf(b->spec.policy.name, sizeof(b->spec.policy.name), "ppar");
  (void)snprintf(b->spec.privatizer.name, sizeof(b->spec.privatizer.name), "none");
  struct cv_params *params = &b->spec.policy.params;
  assert_int_equal(cv_params_set_number(params, "alpha", alpha), CV_OK);
  assert_int_equal(cv_params_set_number(params, "tokens_per_round", 1000), CV_OK);
  assert_int_equal(cv_params_set_text(params, "radius", radius), CV_OK);
  assert_int_equal(cv_params_set_text(params, "settled", settled), CV_OK);
  const struct cv_param *bad;
  struct cv_why why;
  assert_int_equal(cv_policy_check(&b->spec.policy, &bad, &why), CV_OK);
  assert_int_equal(cv_policy_new(&b->spec, 1, &b->policy), CV_OK);
}

static void bench_fini(struct bench *b) {
  cv_policy_free(b->policy);
  cv_policy_step_fini(&b->step);
}

static void bench_step(struct bench *b) {
  assert_int_equal(cv_policy_step(b->policy, ++b->plan, &b->step), CV_OK);
}

static bool bench_wants(const struct bench *b, uint32_t arm) {
  for (size_t i = 0; i < b->step.wants; i++) {
    if (b->step.want[i].arm == arm) {
      return true;
    }
  }
  return false;
}

/* A release without noise that puts the arm at this mean of this many tokens. */
static void bench_feed(struct bench *b, uint32_t arm, double mean, uint64_t tokens) {
  struct cv_release release = {.number = ++b->number,
                               .plan = b->plan,
                               .arm = arm,
                               .tokens = tokens,
                               .noisy_sum = (int64_t)llround(mean * (double)tokens * (double)CV_GRID)};
  cv_policy_apply(b->policy, &release);
}

static uint32_t class_of(const struct bench *b, uint32_t arm) {
  struct cv_standing standing;
  cv_policy_standing(b->policy, arm, &standing);
  return standing.rank_class;
}

static void ranks_fully_with_every_rule(void **state) {
  static const char *const words[] = {"printed", "proof", "sound"};
  for (size_t w = 0; w < CV_COUNT(words); w++) {
    struct bench b;
    bench_init(&b, 3, 0, words[w], "hold");
    bench_step(&b);
    assert_int_equal(b.step.wants, 3);
    for (uint64_t round = 1; !b.step.done; round++) {
      assert_true(round < 100);
      for (size_t i = 0; i < b.step.wants; i++) {
        static const double mean[] = {0.2, 0.9, 0.5};
        bench_feed(&b, b.step.want[i].arm, mean[b.step.want[i].arm], 1000 * round);
      }
      bench_step(&b);
    }
    assert_int_equal(class_of(&b, 0), 3);
    assert_int_equal(class_of(&b, 1), 1);
    assert_int_equal(class_of(&b, 2), 2);
    bench_fini(&b);
  }
}

/* Means of 20 arms, .05 apart: the best is arm 0, then 7, 14, 1, 8, ... */
static double ladder(uint32_t arm) {
  return 0.98 - 0.05 * (arm * 3 % 20);
}

static void feed_round(struct bench *b, uint64_t round, double (*mean)(uint32_t arm)) {
  for (size_t i = 0; i < b->step.wants; i++) {
    bench_feed(b, b->step.want[i].arm, mean(b->step.want[i].arm), 1000 * round);
  }
  bench_step(b);
}

/* Each class is one arm, settled in the order of the means, the best of all first. */
static void alpha_0_gives_each_arm_a_class_of_its_own_the_best_first(void **state) {
  enum { ARMS = 20 };
  static const char *const words[] = {"printed", "proof", "sound"};
  for (size_t w = 0; w < CV_COUNT(words); w++) {
    struct bench b;
    uint32_t settled = 0, arm_of[ARMS];
    bench_init(&b, ARMS, 0, words[w], "hold");
    bench_step(&b);
    for (uint64_t round = 1; !b.step.done; round++) {
      assert_true(round < 1000);
      feed_round(&b, round, ladder);
      for (size_t i = 0; i < b.step.decisions; i++) {
        if (b.step.decision[i].kind == CV_DECISION_SETTLE) {
          assert_int_equal(b.step.decision[i].rank_class, settled + 1);
          arm_of[settled++] = b.step.decision[i].arm;
        }
      }
    }
    assert_int_equal(settled, ARMS);
    for (uint32_t i = 0; i < ARMS; i++) {
      assert_int_equal(class_of(&b, arm_of[i]), i + 1);
      assert_true(i == 0 || ladder(arm_of[i]) < ladder(arm_of[i - 1]));
    }
    bench_fini(&b);
  }
}

static double close_below(uint32_t arm) {
  return arm == 2 ? 0.9 : 0.5 - 0.001 * arm;
}

/* Best-arm identification: the best arm is known long before the rest is ranked, and is the first class whenever the
 * run is cut short. */
static void alpha_0_finds_the_best_arm_before_the_rest_is_ranked(void **state) {
  static const char *const words[] = {"printed", "proof", "sound"};
  for (size_t w = 0; w < CV_COUNT(words); w++) {
    struct bench b;
    bench_init(&b, 5, 0, words[w], "hold");
    bench_step(&b);
    for (uint64_t round = 1; round <= 50; round++) {
      feed_round(&b, round, close_below);
      assert_false(b.step.done);
    }
    for (uint32_t arm = 0; arm < 5; arm++) {
      assert_int_equal(class_of(&b, arm), arm == 2 ? 1 : 0);
    }
    assert_false(bench_wants(&b, 2));
    assert_int_equal(b.step.wants, 4); /* they still share the second place */
    bench_fini(&b);
  }
}

static double tie_below(uint32_t arm) {
  return arm == 1 ? 0.9 : arm == 3 ? 0.1 : 0.5;
}

/* Equal arms are never separated, with any rule; what is above them is ranked, what is below them waits. */
static void alpha_0_leaves_a_tie_undecided_and_ranks_what_is_above(void **state) {
  static const char *const words[] = {"printed", "proof", "sound"};
  for (size_t w = 0; w < CV_COUNT(words); w++) {
    struct bench b;
    bench_init(&b, 4, 0, words[w], "hold");
    bench_step(&b);
    for (uint64_t round = 1; round <= 2000; round++) {
      feed_round(&b, round, tie_below);
      assert_false(b.step.done);
    }
    assert_int_equal(class_of(&b, 1), 1);
    assert_int_equal(class_of(&b, 0), 0);
    assert_int_equal(class_of(&b, 2), 0);
    assert_int_equal(class_of(&b, 3), 0);
    assert_true(bench_wants(&b, 0) && bench_wants(&b, 2) && b.step.wants == 2);
    bench_fini(&b);
  }
}

static void a_tie_stays_undecided_and_the_rest_is_ranked(void **state) {
  struct bench b;
  bench_init(&b, 3, 0, "sound", "hold");
  bench_step(&b);
  for (uint64_t round = 1; round <= 200; round++) {
    static const double mean[] = {0.7, 0.1, 0.7};
    for (size_t i = 0; i < b.step.wants; i++) {
      bench_feed(&b, b.step.want[i].arm, mean[b.step.want[i].arm], 1000 * round);
    }
    bench_step(&b);
    assert_false(b.step.done);
  }
  assert_int_equal(class_of(&b, 0), 0);
  assert_int_equal(class_of(&b, 1), 0);
  assert_int_equal(class_of(&b, 2), 0);
  assert_false(bench_wants(&b, 1)); /* removed from class 1: costs no more tokens */
  bench_fini(&b);
}

static void a_lone_arm_is_settled_after_its_first_release(void **state) {
  static const char *const words[] = {"printed", "proof", "sound"};
  for (size_t w = 0; w < CV_COUNT(words); w++) {
    struct bench b;
    bench_init(&b, 1, 0, words[w], "pull");
    bench_step(&b);
    assert_false(b.step.done);
    assert_int_equal(b.step.wants, 1);
    assert_int_equal(b.step.want[0].tokens, 1000);
    bench_feed(&b, 0, 0.4, 1000);
    bench_step(&b);
    assert_true(b.step.done);
    assert_int_equal(b.step.wants, 0);
    assert_int_equal(b.step.decisions, 1);
    assert_int_equal(class_of(&b, 0), 1);
    bench_fini(&b);
  }
}

static void printed_radius_by_hand(void **state) {
  /* K = 2, delta = .1, T = 1000: r = 2 sqrt(ln 80 / 2000) = .09362; alpha = .3. */
  struct bench b;
  bench_init(&b, 2, 0.3, "printed", "hold");
  bench_step(&b);
  bench_feed(&b, 0, 0.8, 1000);
  bench_feed(&b, 1, 0.55, 1000); /* .5 - .0936 < .55 < .5 + .0936: neither */
  bench_step(&b);
  assert_int_equal(b.step.decisions, 1);
  assert_int_equal(b.step.decision[0].arm, 0);
  assert_int_equal(b.step.decision[0].kind, CV_DECISION_SETTLE);
  assert_near(b.step.decision[0].radius, 0.0936165, 1e-6);
  assert_near(b.step.decision[0].reference, 0.5, 1e-6);
  assert_int_equal(b.step.wants, 2); /* the leader is settled and still pulled, for comparisons */
  bench_feed(&b, 1, 0.55, 100000);
  bench_step(&b);
  assert_true(b.step.done);
  assert_int_equal(class_of(&b, 1), 1);
  bench_fini(&b);
}

static void proof_radius_is_twice_the_printed(void **state) {
  struct bench a, b;
  bench_init(&a, 2, 0.3, "printed", "hold");
  bench_init(&b, 2, 0.3, "proof", "hold");
  bench_feed(&a, 0, 0.8, 1000);
  bench_feed(&b, 0, 0.8, 1000);
  struct cv_standing printed, proof;
  cv_policy_standing(a.policy, 0, &printed);
  cv_policy_standing(b.policy, 0, &proof);
  assert_near(proof.radius, 2 * printed.radius, 1e-12);
  bench_fini(&a);
  bench_fini(&b);
}

static void sound_radius_has_the_noise_in_it(void **state) {
  /* K = 2, delta = .1, n = 1, T = 1000, one Laplace of scale 2 at epsilon .25: sqrt(ln 160/2000) + 8 ln 80/1000. */
  struct bench b;
  bench_init(&b, 2, 0.3, "sound", "hold");
  struct cv_release release = {.arm = 1, .tokens = 1000, .noisy_sum = 500 * CV_GRID, .noise = {1, {{2, 1}}}};
  cv_policy_apply(b.policy, &release);
  struct cv_standing standing;
  cv_policy_standing(b.policy, 1, &standing);
  assert_near(standing.mean, 0.5, 1e-12);
  assert_near(standing.radius, sqrt(log(160) / 2000) + 8 * log(80) / 1000, 1e-12);
  assert_near(standing.noise, 8 * log(80) / 1000, 1e-12);
  bench_fini(&b);
}

/* The same release behind a privatizer: the mean token is taken back to the mean score. */
static struct cv_standing behind(const char *privatizer, const char *key, double value, const char *radius,
                                 double mean) {
  struct bench b;
  struct cv_standing standing;
  bench_init(&b, 2, 0.3, radius, "hold");
  (void)snprintf(b.spec.privatizer.name, sizeof(b.spec.privatizer.name), "%s", privatizer);
  if (key != NULL) {
    assert_int_equal(cv_params_set_number(&b.spec.privatizer.params, key, value), CV_OK);
  }
  cv_policy_free(b.policy);
  assert_int_equal(cv_policy_new(&b.spec, 1, &b.policy), CV_OK);
  struct cv_release release = {
      .arm = 1, .tokens = 1000, .noisy_sum = (int64_t)(mean * 1000 * CV_GRID), .noise = {1, {{2, 1}}}};
  cv_policy_apply(b.policy, &release);
  cv_policy_standing(b.policy, 1, &standing);
  bench_fini(&b);
  return standing;
}

static void randomized_response_is_undone(void **state) {
  static const char *const radii[] = {"printed", "proof", "sound"};
  double p = 0.75; /* e^epsilon = 3 */
  for (size_t i = 0; i < CV_COUNT(radii); i++) {
    struct cv_standing bare = behind("none", NULL, 0, radii[i], 0.6);
    struct cv_standing undone = behind("randomized-response", "epsilon", 1.098612, radii[i], 0.6);
    assert_near(undone.mean, (0.6 - (1 - p)) / (2 * p - 1), 1e-6);
    assert_near(undone.radius, bare.radius / (2 * p - 1), 1e-6);
    /* All that the privatizer widens. */
    assert_near(undone.noise - bare.noise, undone.radius - bare.radius, 1e-9);
  }
}

static void laplace_in_tokens_widens_every_radius(void **state) {
  static const char *const radii[] = {"printed", "proof", "sound"};
  /* K = 2, delta = .1, n = 1: a share of 1/80. A thousand Laplaces of scale 1/2, and one of 8 with the sound radius. */
  const struct cv_noise tokens = {1, {{0.5, 1000}}}, all = {2, {{0.5, 1000}, {8, 1}}};
  for (size_t i = 0; i < CV_COUNT(radii); i++) {
    struct cv_standing bare = behind("none", NULL, 0, radii[i], 0.6);
    struct cv_standing wide = behind("laplace", "epsilon", 2, radii[i], 0.6);
    double more = cv_tail_quantile(i == 2 ? &all : &tokens, 1 / 80.0) - (i == 2 ? 8 * log(80) : 0);
    assert_near(wide.mean, bare.mean, 1e-12);
    assert_near(wide.radius - bare.radius, more / 1000, 1e-9);
    assert_near(wide.noise - bare.noise, more / 1000, 1e-9);
  }
}

static void hold_spares_what_is_settled_and_pull_does_not(void **state) {
  for (int hold = 0; hold < 2; hold++) {
    struct bench b;
    bench_init(&b, 4, 0.2, "sound", hold ? "hold" : "pull");
    bench_step(&b);
    bench_feed(&b, 0, 0.90, 100000);
    bench_feed(&b, 1, 0.89, 100000);
    bench_feed(&b, 2, 0.70, 100000); /* on the boundary */
    bench_feed(&b, 3, 0.10, 100000);
    bench_step(&b);
    assert_int_equal(class_of(&b, 0), 1);
    assert_int_equal(class_of(&b, 1), 1);
    assert_int_equal(class_of(&b, 2), 0);
    assert_true(bench_wants(&b, 0));
    assert_int_equal(bench_wants(&b, 1), !hold);
    assert_true(bench_wants(&b, 2));
    assert_false(bench_wants(&b, 3));
    bench_fini(&b);
  }
}

static void a_settled_arm_is_never_moved(void **state) {
  static const char *const words[] = {"printed", "proof", "sound"};
  for (size_t w = 0; w < CV_COUNT(words); w++) {
    struct bench b;
    bench_init(&b, 3, 0.2, words[w], "pull");
    bench_step(&b);
    bench_feed(&b, 0, 0.90, 100000);
    bench_feed(&b, 1, 0.89, 100000);
    bench_feed(&b, 2, 0.70, 100000);
    bench_step(&b);
    assert_int_equal(class_of(&b, 1), 1);
    bench_feed(&b, 0, 0.90, 200000);
    bench_feed(&b, 1, 0.05, 200000); /* now far below the class it was settled in */
    bench_feed(&b, 2, 0.70, 200000);
    bench_step(&b);
    assert_int_equal(class_of(&b, 1), 1);
    for (size_t i = 0; i < b.step.decisions; i++) {
      assert_int_not_equal(b.step.decision[i].arm, 1);
    }
    bench_fini(&b);
  }
}

static void an_arm_that_falls_several_classes_is_reported_once(void **state) {
  struct bench b;
  bench_init(&b, 4, 0, "sound", "hold");
  bench_step(&b);
  for (uint32_t i = 0; i < 4; i++) {
    bench_feed(&b, i, 0.2 * i, 1000000);
  }
  bench_step(&b);
  assert_true(b.step.done);
  assert_int_equal(b.step.decisions, 7); /* 4 settled, 3 of them removed before */
  for (uint32_t i = 0; i < 4; i++) {
    assert_int_equal(class_of(&b, i), 4 - i);
  }
  /* Arm 0 was last removed from class 3, by arm 1. */
  assert_int_equal(b.step.decision[0].arm, 0);
  assert_int_equal(b.step.decision[0].kind, CV_DECISION_REMOVE);
  assert_int_equal(b.step.decision[0].rank_class, 3);
  bench_fini(&b);
}

static void print_collects_a_round_before_a_new_class(void **state) {
  struct bench b;
  bench_init(&b, 4, 0.2, "printed", "hold");
  bench_step(&b);
  for (uint32_t i = 0; i < 4; i++) {
    bench_feed(&b, i, i < 2 ? 0.9 : 0.1, 1000000);
  }
  bench_step(&b);
  assert_false(b.step.done);
  assert_int_equal(b.step.wants, 2);
  assert_int_equal(class_of(&b, 0), 1);
  assert_int_equal(class_of(&b, 2), 0);
  bench_fini(&b);
}

/* Random instances, random noise, every rule: step by step the same as the naive one. */
struct duel {
  struct bench b;
  struct naive x;
  struct cv_rng_seeded rng;
  double mean[NAIVE_ARMS];
  double noise_scale, tokens; /* of a release: many separate most arms at once */
};

static void duel_init(struct duel *d, uint64_t seed, const char *radius, bool hold) {
  cv_rng_seeded_init(&d->rng, seed, 99, 0, 0);
  struct cv_rng *rng = &d->rng.rng;
  uint32_t k = 1 + (uint32_t)cv_rng_below(rng, seed % 5 == 0 ? NAIVE_ARMS : 12);
  static const double alphas[] = {0, 0.05, 0.1, 0.3, 1, 2};
  double alpha = alphas[cv_rng_below(rng, CV_COUNT(alphas))];
  bench_init(&d->b, k, alpha, radius, hold ? "hold" : "pull");
  d->x = (struct naive){.k = k, .alpha = alpha, .delta = 0.1, .epsilon = 0.25, .hold = hold};
  d->x.radius = radius[0] == 's' ? 's' : radius[2] == 'i' ? 'p' : 'f';
  naive_init(&d->x);
  d->noise_scale = (double)cv_rng_below(rng, 3) * 20;
  d->tokens = seed % 4 == 0 ? 100000 : 1000;
  bool coarse = cv_rng_below(rng, 2) == 0; /* means that tie */
  for (uint32_t i = 0; i < k; i++) {
    double mean = cv_rng_unit(rng);
    d->mean[i] = coarse ? floor(mean * 8) / 8 : mean;
  }
}

static void duel_feed(struct duel *d, uint32_t arm) {
  struct naive *x = &d->x;
  double error = cv_rng_normal(&d->rng.rng) * (d->noise_scale + 15) * (d->noise_scale > 0);
  struct cv_release release = {.number = ++d->b.number, .plan = d->b.plan, .arm = arm};
  release.tokens = (uint64_t)(x->tokens[arm] + d->tokens);
  release.noisy_sum = (int64_t)((d->mean[arm] * (double)release.tokens + error) * (double)CV_GRID);
  if (d->noise_scale > 0) {
    release.noise = (struct cv_noise){2, {{d->noise_scale / 8, 1 + (uint32_t)x->n[arm] % 7}, {2, 3}}};
  }
  x->n[arm]++;
  x->tokens[arm] = (double)release.tokens;
  x->sum[arm] = (double)release.noisy_sum / (double)CV_GRID;
  x->noise[arm] = release.noise;
  cv_policy_apply(d->b.policy, &release);
}

static void duel_compare(const struct duel *d) {
  const struct naive *x = &d->x;
  const struct cv_policy_step *step = &d->b.step;
  assert_int_equal(step->done, x->done);
  assert_int_equal(step->decisions, x->decisions);
  for (uint32_t i = 0; i < x->decisions; i++) {
    const struct cv_decision *a = &step->decision[i], *b = &x->decision[i];
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->arm, b->arm);
    assert_int_equal(a->rank_class, b->rank_class);
    assert_int_equal(a->tokens, b->tokens);
    assert_near(a->mean, b->mean, 1e-12);
    assert_near(a->radius, b->radius, 1e-12);
    assert_true(a->reference == b->reference || fabs(a->reference - b->reference) < 1e-12);
  }
  for (uint32_t i = 0; i < x->k; i++) {
    assert_int_equal(bench_wants(&d->b, i), x->want[i]);
    assert_int_equal(class_of(&d->b, i), x->in_c[i] ? x->l : x->final_class[i]);
  }
}

/* The policy is saved, freed and loaded into a new one. */
static void bench_reload(struct bench *b) {
  struct cv_buf saved = {0}, again = {0};
  cv_policy_save(b->policy, &saved);
  cv_policy_free(b->policy);
  assert_int_equal(cv_policy_new(&b->spec, 1, &b->policy), CV_OK);
  struct cv_reader reader = cv_reader_over(saved.data, saved.len);
  assert_int_equal(cv_policy_load(b->policy, &reader), CV_OK);
  cv_policy_save(b->policy, &again);
  assert_int_equal(again.len, saved.len);
  assert_memory_equal(again.data, saved.data, saved.len);
  cv_buf_fini(&saved);
  cv_buf_fini(&again);
}

static void equals_the_naive_one_step_by_step(void **state) {
  static const char *const words[] = {"printed", "proof", "sound"};
  uint64_t finished = 0, decisions = 0;
  uint32_t classes = 0; /* most that one step has opened */
  for (uint64_t seed = 1; seed <= 1800; seed++) {
    struct duel d;
    duel_init(&d, seed, words[seed % 3], seed % 2 == 0);
    naive_step(&d.x);
    bench_step(&d.b);
    duel_compare(&d);
    for (int round = 0; round < 60 && !d.b.step.done; round++) {
      for (uint32_t i = 0; i < d.x.k; i++) {
        if (d.x.want[i]) {
          duel_feed(&d, i);
        }
      }
      if (seed % 7 == 0) {
        bench_reload(&d.b);
      }
      uint32_t before = d.x.l;
      naive_step(&d.x);
      bench_step(&d.b);
      duel_compare(&d);
      decisions += d.x.decisions;
      classes = d.x.l - before > classes ? d.x.l - before : classes;
    }
    finished += d.b.step.done;
    bench_fini(&d.b);
  }
  /* The comparison must have covered both ends, else it proves little. */
  assert_true(finished > 500 && finished < 1750);
  assert_true(decisions > 10000 && classes > 10);
}

static void a_damaged_state_is_refused(void **state) {
  struct bench b;
  bench_init(&b, 3, 0.1, "sound", "hold");
  bench_step(&b);
  bench_feed(&b, 1, 0.5, 1000);
  struct cv_buf saved = {0};
  cv_policy_save(b.policy, &saved);
  for (size_t cut = 0; cut < saved.len; cut++) {
    struct cv_reader reader = cv_reader_over(saved.data, cut);
    assert_int_not_equal(cv_policy_load(b.policy, &reader), CV_OK);
  }
  saved.data[9] = 200; /* a class beyond the number of arms */
  struct cv_reader reader = cv_reader_over(saved.data, saved.len);
  assert_int_not_equal(cv_policy_load(b.policy, &reader), CV_OK);
  cv_buf_fini(&saved);
  bench_fini(&b);
}

static void the_end_stays_the_end(void **state) {
  struct bench b;
  bench_init(&b, 2, 0.1, "sound", "hold");
  bench_step(&b);
  bench_feed(&b, 0, 0.9, 100000);
  bench_feed(&b, 1, 0.1, 100000);
  bench_step(&b);
  assert_true(b.step.done);
  bench_reload(&b);
  bench_step(&b);
  assert_true(b.step.done);
  assert_int_equal(b.step.decisions, 0);
  assert_int_equal(class_of(&b, 1), 2);
  bench_fini(&b);
}

static void parameters_are_checked(void **state) {
  static const struct {
    const char *key, *text;
    double number;
    const char *line;
  } bad[] = {
      {"alpha", NULL, -0.1, "alpha is -0.1; expected a number of at least 0"},
      {"alpha", NULL, (double)NAN, "alpha is nan"},
      {"delta", NULL, 0, "delta is 0"},
      {"delta", NULL, 1, "delta is 1"},
      {"tokens_per_round", NULL, 0, "tokens_per_round is 0; expected a whole number"},
      {"tokens_per_round", NULL, 1.5, "tokens_per_round is 1.5; expected a whole number"},
      {"radius", "wide", 0, "radius is \"wide\"; expected printed, proof or sound"},
      {"settled", "keep", 0, "settled is \"keep\"; expected pull or hold"},
      {"beta", NULL, 1, "unknown key \"beta\""},
  };
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_choice choice = {.name = "ppar"};
    struct cv_why why;
    const struct cv_param *at = NULL;
    assert_int_equal(cv_params_set_number(&choice.params, "alpha", 0.1), CV_OK);
    assert_int_equal(bad[i].text != NULL ? cv_params_set_text(&choice.params, bad[i].key, bad[i].text)
                                         : cv_params_set_number(&choice.params, bad[i].key, bad[i].number),
                     CV_OK);
    assert_int_equal(cv_policy_check(&choice, &at, &why), CV_ERR_INVALID);
    assert_non_null(strstr(why.text, bad[i].line));
    assert_string_equal(at->key, bad[i].key);
  }
  struct cv_choice missing = {.name = "ppar"}, unknown = {.name = "nonesuch"}, typo = {.name = "ppap"};
  const struct cv_param *at = NULL;
  struct cv_why why;
  assert_int_equal(cv_policy_check(&missing, &at, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "missing alpha; expected a number of at least 0");
  assert_int_equal(cv_policy_check(&unknown, &at, &why), CV_ERR_NOT_FOUND);
  static const char line[] = "unknown policy \"nonesuch\"; expected one of ppar, ";
  assert_memory_equal(why.text, line, sizeof(line) - 1);
  assert_int_equal(cv_policy_check(&typo, &at, &why), CV_ERR_NOT_FOUND);
  assert_string_equal(why.text, "unknown policy \"ppap\"; did you mean \"ppar\"?");
  assert_null(cv_policy_find("ppap"));
}

static void a_privatizer_it_does_not_know_is_refused(void **state) {
  struct bench b;
  bench_init(&b, 2, 0.1, "sound", "hold");
  (void)snprintf(b.spec.privatizer.name, sizeof(b.spec.privatizer.name), "rot13");
  struct cv_policy *policy = NULL;
  assert_int_equal(cv_policy_new(&b.spec, 1, &policy), CV_ERR_INVALID);
  assert_null(policy);
  bench_fini(&b);
}

static void a_campaign_without_what_the_policy_needs_is_named(void **state) {
  uint64_t costs[2] = {1, 1};
  struct cv_edge edge = {0, 1};
  struct cv_spec spec = {.arms = 2, .policy = {.name = "ppar"}, .cost_micro = costs, .budget_micro = 5};
  struct cv_why why = {0};
  assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "policy ppar hires no workers; expected no costs and no budget");
  spec = (struct cv_spec){.arms = 2, .policy = {.name = "ppar"}, .edges = 1, .edge = &edge};
  assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
  assert_string_equal(why.text, "policy ppar uses no feedback graph; expected no edges");
  spec.edges = 0;
  const struct cv_param *bad;
  assert_int_equal(cv_params_set_number(&spec.policy.params, "alpha", 0.1), CV_OK);
  assert_int_equal(cv_policy_check(&spec.policy, &bad, &why), CV_OK);
  assert_int_equal(cv_policy_fits(&spec, &why), CV_OK);
}

/* What is released of one arm has no influence on another's radius, however equal the two are. */
static void a_radius_depends_on_its_own_arm_alone(void **state) {
  const struct cv_release told[] = {
      {.arm = 0, .tokens = 1000, .noise = {.groups = 1, .group = {{2, 3}}}},
      {.arm = 1, .tokens = 1000, .noise = {.groups = 1, .group = {{2, 3}}}},
      {.arm = 0, .tokens = 2000, .noise = {.groups = 2, .group = {{2, 3}, {4, 1}}}},
      {.arm = 1, .tokens = 2000, .noise = {.groups = 2, .group = {{2, 3}, {4, 2}}}}, /* another count */
      {.arm = 2, .tokens = 2000, .noise = {.groups = 2, .group = {{2, 3}, {4, 2}}}}, /* fewer releases */
      {.arm = 3, .tokens = 2001, .noise = {.groups = 2, .group = {{2, 3}, {4, 2}}}}, /* more tokens */
      {.arm = 4, .tokens = 2001, .noise = {.groups = 2, .group = {{2, 3}, {5, 2}}}}, /* another scale */
      {.arm = 5, .tokens = 2001, .noise = {.groups = 1, .group = {{2, 3}}}},         /* a group less */
  };
  struct bench all;
  bench_init(&all, 6, 0.1, "sound", "hold");
  for (size_t i = 0; i < CV_COUNT(told); i++) {
    cv_policy_apply(all.policy, &told[i]);
  }
  for (uint32_t arm = 0; arm < 6; arm++) {
    struct bench one;
    struct cv_standing among, alone;
    bench_init(&one, 6, 0.1, "sound", "hold");
    for (size_t i = 0; i < CV_COUNT(told); i++) {
      if (told[i].arm == arm) {
        cv_policy_apply(one.policy, &told[i]);
      }
    }
    cv_policy_standing(all.policy, arm, &among);
    cv_policy_standing(one.policy, arm, &alone);
    assert_true(among.radius == alone.radius);
    bench_fini(&one);
  }
  bench_fini(&all);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_fully_with_every_rule),
      cmocka_unit_test(alpha_0_gives_each_arm_a_class_of_its_own_the_best_first),
      cmocka_unit_test(alpha_0_finds_the_best_arm_before_the_rest_is_ranked),
      cmocka_unit_test(alpha_0_leaves_a_tie_undecided_and_ranks_what_is_above),
      cmocka_unit_test(a_tie_stays_undecided_and_the_rest_is_ranked),
      cmocka_unit_test(a_lone_arm_is_settled_after_its_first_release),
      cmocka_unit_test(printed_radius_by_hand),
      cmocka_unit_test(proof_radius_is_twice_the_printed),
      cmocka_unit_test(sound_radius_has_the_noise_in_it),
      cmocka_unit_test(a_radius_depends_on_its_own_arm_alone),
      cmocka_unit_test(hold_spares_what_is_settled_and_pull_does_not),
      cmocka_unit_test(a_settled_arm_is_never_moved),
      cmocka_unit_test(an_arm_that_falls_several_classes_is_reported_once),
      cmocka_unit_test(print_collects_a_round_before_a_new_class),
      cmocka_unit_test(equals_the_naive_one_step_by_step),
      cmocka_unit_test(a_damaged_state_is_refused),
      cmocka_unit_test(the_end_stays_the_end),
      cmocka_unit_test(parameters_are_checked),
      cmocka_unit_test(a_privatizer_it_does_not_know_is_refused),
      cmocka_unit_test(randomized_response_is_undone),
      cmocka_unit_test(laplace_in_tokens_widens_every_radius),
      cmocka_unit_test(a_campaign_without_what_the_policy_needs_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
