/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign of any policy of the table, played in this process: workers, sums and noise are the test's own, without a
 * daemon. The policy receives what a broker would send: sums of the plan's tokens with mechanism batch, else of all
 * tokens so far; on a graph one release for each arm that is named.
 */
#ifndef CV_TESTS_PLAY_H
#define CV_TESTS_PLAY_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/neighbours.h"
#include "common/base/rng.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/policy.h"

struct play {
  struct cv_spec spec;
  struct cv_rng_seeded rng;
  struct cv_neighbours graph;
  double *mean;
  uint32_t brokers;   /* that add noise, from 1 */
  uint32_t *releases; /* of each arm so far */
  uint64_t *tokens;   /* of each arm so far */
  int64_t *sum;       /* their noisy sum */
  uint32_t *plays;    /* scratch: of the plan, by arm */
  uint64_t number, played;
};

/* Ways to run a campaign: each mechanism behind each privatizer, without a graph and with one, and with each value
 * of a text parameter of the policy: its default, the first, second and third. */
static const char *const play_mechanisms[] = {"none", "hybrid", "batch", "segments"};
static const char *const play_privatizers[] = {"none", "randomized-response", "laplace"};
enum { PLAY_WORDS = 4, PLAY_WAYS = 4 * 3 * 2 * PLAY_WORDS };

static inline void play_fini(struct play *play) {
  cv_neighbours_fini(&play->graph);
  free(play->spec.cost_micro);
  free(play->spec.edge);
  free(play->mean);
  free(play->releases);
  free(play->tokens);
  free(play->sum);
  free(play->plays);
  *play = (struct play){0};
}

static inline void *play_array(size_t n, size_t size) {
  void *array = calloc(n, size);
  CV_REQUIRE(array != NULL);
  return array;
}

static inline void play_name(struct cv_choice *choice, const char *name) {
  (void)snprintf(choice->name, sizeof(choice->name), "%s", name);
}

/* Each arm is joined to the next two. */
static inline void play_join(struct cv_spec *spec) {
  spec->edge = play_array(2 * (size_t)spec->arms, sizeof(*spec->edge));
  for (uint32_t i = 0; i < spec->arms; i++) {
    for (uint32_t j = i + 1; j <= i + 2 && j < spec->arms; j++) {
      spec->edge[spec->edges++] = (struct cv_edge){.a = i, .b = j};
    }
  }
}

static inline void play_parameters(struct cv_spec *spec, const struct cv_policy_class *class, size_t word) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  if (strcmp(spec->privatizer.name, "none") != 0) {
    CV_REQUIRE(cv_params_set_number(&spec->privatizer.params, "epsilon", 2) == CV_OK);
  }
  for (size_t i = 0; i < class->rule_count; i++) {
    const struct cv_param_rule *rule = &class->rules[i];
    size_t words = 0;
    if (rule->choices == NULL && isnan(rule->fallback)) { /* no default */
      CV_REQUIRE(cv_params_set_number(&spec->policy.params, rule->key, 0.1) == CV_OK);
    }
    while (rule->choices != NULL && rule->choices[words] != NULL) {
      words++;
    }
    if (words > 0 && word > 0) {
      CV_REQUIRE(cv_params_set_text(&spec->policy.params, rule->key, rule->choices[(word - 1) % words]) == CV_OK);
    }
  }
  CV_REQUIRE(cv_policy_check(&spec->policy, &bad, &why) == CV_OK);
}

/* False if the policy cannot be run in this way; then nothing is to be freed. `opt` fits nowhere: it is played
 * wherever a recruitment is possible. */
static inline bool play_init(struct play *play, const struct cv_policy_class *class, size_t way, uint32_t arms,
                             uint64_t seed) {
  *play = (struct play){.spec = {.name = "play",
                                 .arms = arms,
                                 .epsilon_micro = 1000000,
                                 .tokens_per_worker = 1,
                                 .tokens = UINT64_C(1) << 40,
                                 .thirdparty_trusted = true}};
  struct cv_spec *spec = &play->spec;
  cv_rng_seeded_init(&play->rng, seed, CV_RNG_SCORE, way, 0);
  play_name(&spec->policy, class->name);
  play_name(&spec->mechanism, play_mechanisms[way % 4]);
  play_name(&spec->privatizer, play_privatizers[way / 4 % 3]);
  play_parameters(spec, class, way / 24);
  if (class->kind == CV_POLICY_RECRUITMENT) {
    spec->cost_micro = play_array(arms, sizeof(*spec->cost_micro));
    spec->budget_micro = 300 * (uint64_t)arms * CV_MICRO;
    for (uint32_t i = 0; i < arms; i++) {
      spec->cost_micro[i] = CV_MICRO + cv_rng_below(&play->rng.rng, 9 * CV_MICRO);
    }
  }
  if (way / 12 % 2 == 1) {
    play_join(spec);
  }
  play_name(&spec->policy, class->name);
  bool fits = cv_policy_fits_told(spec, NULL) == CV_OK;
  if (!fits) { /* perhaps a policy for comparisons */
    spec->pairs = true;
    fits = cv_policy_fits_told(spec, NULL) == CV_OK;
  }
  play->mean = play_array(arms, sizeof(*play->mean));
  play->brokers = 1;
  play->releases = play_array(arms, sizeof(*play->releases));
  play->tokens = play_array(arms, sizeof(*play->tokens));
  play->sum = play_array(arms, sizeof(*play->sum));
  play->plays = play_array(arms, sizeof(*play->plays));
  CV_REQUIRE(cv_neighbours_init(spec, &play->graph) == CV_OK);
  for (uint32_t i = 0; i < arms; i++) {
    play->mean[i] = cv_rng_unit(&play->rng.rng);
  }
  if (!fits) {
    play_fini(play);
  }
  return fits;
}

/* A new policy of this campaign. */
static inline struct cv_policy *play_policy(const struct play *play, uint64_t seed) {
  struct cv_policy *policy;
  CV_REQUIRE(cv_policy_new(&play->spec, seed, &policy) == CV_OK);
  cv_policy_tell(policy, play->mean);
  cv_policy_expect(policy, play->brokers);
  return policy;
}

/* The mean of a want's tokens: against a named opponent, by the difference of the two means. */
static inline double play_mean(const struct play *play, const struct cv_want *want) {
  double mean = play->mean[want->arm];
  return want->opponent == 0 ? mean : (1 + mean - play->mean[want->opponent - 1]) / 2;
}

/* What one broker says of the noise in an arm's k-th release; of `hybrid` only about. */
static inline struct cv_noise play_noise(const struct play *play, uint32_t k) {
  const char *mechanism = play->spec.mechanism.name;
  return strcmp(mechanism, "batch") == 0 ? (struct cv_noise){.groups = 1, .group = {{.scale = 1, .count = 1}}}
         : strcmp(mechanism, "segments") == 0
             ? (struct cv_noise){.groups = 1, .group = {{.scale = 1, .count = k}}}
             : (struct cv_noise){.groups = 2, .group = {{.scale = 2, .count = 1 + k / 2}, {.scale = 4, .count = k}}};
}

/* The noisy sum of `tokens` more tokens of an arm, near their mean, with the mechanism's noise. */
static inline struct cv_release play_release(struct play *play, uint64_t plan, const struct cv_want *want,
                                             uint64_t tokens) {
  uint32_t arm = want->arm;
  bool is_exact = strcmp(play->spec.mechanism.name, "none") == 0;
  bool is_fresh = strcmp(play->spec.mechanism.name, "batch") == 0;
  double n = (double)tokens, mean = play_mean(play, want);
  double sum = mean * n + sqrt(mean * (1 - mean) * n) * cv_rng_normal(&play->rng.rng);
  if (strcmp(play->spec.privatizer.name, "laplace") != 0) {
    sum = fmin(fmax(sum, 0), n);
  }
  int64_t drawn = llround(sum * (double)CV_GRID);
  int64_t noise = 0;
  for (uint32_t i = 0; i < play->brokers && !is_exact; i++) {
    noise += llround(2 * cv_rng_normal(&play->rng.rng) * (double)CV_GRID);
  }
  play->tokens[arm] += tokens;
  play->sum[arm] += drawn;
  struct cv_release release = {.number = ++play->number,
                               .plan = plan,
                               .arm = arm,
                               .tokens = is_fresh ? tokens : play->tokens[arm],
                               .noisy_sum = (is_fresh ? drawn : play->sum[arm]) + noise};
  if (!is_exact) {
    release.noise = play_noise(play, ++play->releases[arm]);
    cv_noise_times(&release.noise, play->brokers);
  }
  return release;
}

/* The releases of a plan, one for each want, in `ret`, which must be large enough. */
static inline void play_plan(struct play *play, uint64_t plan, const struct cv_policy_step *step,
                             struct cv_release *ret) {
  memset(play->plays, 0, play->spec.arms * sizeof(*play->plays));
  for (size_t i = 0; i < step->wants; i++) {
    play->plays[step->want[i].arm] = step->want[i].tokens;
    play->played += step->want[i].tokens;
  }
  for (size_t i = 0; i < step->wants; i++) {
    uint32_t arm = step->want[i].arm;
    ret[i] = play_release(play, plan, &step->want[i], cv_neighbours_shown(&play->graph, play->plays, arm));
  }
}

#endif
