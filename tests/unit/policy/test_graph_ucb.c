/* SPDX-License-Identifier: Apache-2.0 */
/* graph-ucb: which arms a plan plays and names, its limits, its horizon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "common/base/grid.h"
#include "tests/support/near.h"
#include "tests/support/play.h"
#include "thirdparty/policy/confidence.h"

enum { FIRST = 256, HORIZON = 100000, OCTAVES = 9 };

/* Releases of each arm that feed() has given to the last policy. */
static uint32_t fed[8];
/* That add the noise of these. */
static uint32_t brokers = 1;

static struct cv_policy *policy_of(struct cv_spec *spec, const char *index, uint64_t seed) {
  const struct cv_param *bad;
  struct cv_why why = {.text = ""};
  struct cv_policy *policy;
  play_name(&spec->policy, "graph-ucb");
  play_name(&spec->mechanism, "segments");
  play_name(&spec->privatizer, "none");
  assert_int_equal(cv_params_set_text(&spec->policy.params, "index", index), CV_OK);
  assert_int_equal(cv_policy_check(&spec->policy, &bad, &why), CV_OK);
  assert_int_equal(cv_policy_fits(spec, &why), CV_OK);
  assert_int_equal(cv_policy_new(spec, seed, &policy), CV_OK);
  memset(fed, 0, sizeof(fed));
  return policy;
}

/* The path 0 - 1 - ... */
static struct cv_edge path[] = {{0, 1}, {1, 2}, {2, 3}};

static struct cv_spec spec_of(uint32_t arms, uint32_t edges, double epsilon) {
  return (struct cv_spec){.name = "bench",
                          .arms = arms,
                          .epsilon_micro = (uint64_t)(epsilon * CV_MICRO),
                          .tokens = HORIZON,
                          .edges = edges,
                          .edge = edges > 0 ? path : NULL};
}

static void feed(struct cv_policy *policy, uint32_t arm, uint64_t tokens, double mean) {
  const struct cv_release release = {.arm = arm,
                                     .tokens = tokens,
                                     .noisy_sum = llround(mean * (double)tokens * (double)CV_GRID),
                                     .noise = {.groups = 1, .group = {{.scale = 1, .count = ++fed[arm] * brokers}}}};
  cv_policy_apply(policy, &release);
}

/* Expects a plan of so many plays of one arm that names these as well, ascending. */
static void expect(struct cv_policy *policy, uint64_t plan, uint32_t arm, uint32_t plays, uint32_t n,
                   const uint32_t *shown) {
  struct cv_policy_step step = {0};
  assert_int_equal(cv_policy_step(policy, plan, &step), CV_OK);
  assert_false(step.done);
  assert_int_equal(step.wants, n + 1);
  assert_int_equal(step.want[0].arm, arm);
  assert_int_equal(step.want[0].tokens, plays);
  for (uint32_t i = 0; i < n; i++) {
    assert_int_equal(step.want[i + 1].arm, shown[i]);
    assert_int_equal(step.want[i + 1].tokens, 0);
  }
  cv_policy_step_fini(&step);
}

/* ---- plans ---- */

static void a_first_plan_shows_as_many_as_it_can(void **state) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    struct cv_spec spec = spec_of(3, 2, 1);
    struct cv_policy *policy = policy_of(&spec, "bounds", seed);
    expect(policy, 1, 1, FIRST, 2, (const uint32_t[]){0, 2});
    cv_policy_free(policy);
  }
}

static void the_neighbour_of_the_highest_lower_limit_plays(void **state) {
  struct cv_spec spec = spec_of(2, 1, 1);
  struct cv_policy *policy = policy_of(&spec, "bounds", 1);
  /* The same mean, more tokens in the same octave: arm 0 has the narrower limits. */
  feed(policy, 0, FIRST, .8);
  feed(policy, 0, 3 * FIRST, .8);
  feed(policy, 1, FIRST, .8);
  feed(policy, 1, 2 * FIRST, .8);
  expect(policy, 1, 0, 2 * FIRST, 1, (const uint32_t[]){1});
  /* In the next octave: a release of so few tokens would not be worth its noise. */
  feed(policy, 0, 5 * FIRST, .8);
  expect(policy, 2, 1, 2 * FIRST, 0, NULL);
  cv_policy_free(policy);
}

static void the_heuristic_follows_the_mean_where_limits_say_nothing(void **state) {
  struct cv_spec spec = spec_of(2, 0, .05);
  static const struct {
    const char *index;
    double first, second;
    uint32_t arm, plays;
  } row[] = {{"bounds", .9, .2, 1, FIRST}, /* both limits are still 1: the arm with fewer tokens */
             {"posterior", .9, .2, 0, 2 * FIRST},
             {"posterior", .2, .9, 1, FIRST},
             {"posterior", .8, .8, 1, FIRST}}; /* the less known one */
  for (size_t i = 0; i < CV_COUNT(row); i++) {
    struct cv_policy *policy = policy_of(&spec, row[i].index, 1);
    feed(policy, 0, (uint64_t)2 * FIRST, row[i].first);
    feed(policy, 1, FIRST, row[i].second);
    expect(policy, 1, row[i].arm, row[i].plays, 0, NULL);
    cv_policy_free(policy);
    spec.policy.params.count = 0;
  }
}

static int octave(uint64_t tokens) {
  return tokens < FIRST ? -1 : (int)floor(log2((double)tokens / FIRST));
}

/* One arm plays; each of its neighbours is named if and only if the plan lifts it by an octave, and no other arm. */
static void check_plan(const struct play *play, const struct cv_policy_step *step, const uint64_t *releases) {
  const struct cv_want *player = &step->want[0];
  const struct cv_neighbours *graph = &play->graph;
  uint32_t named = 1;
  assert_true(player->tokens >= FIRST && octave(play->tokens[player->arm]) <= octave(player->tokens));
  for (uint32_t at = graph->first[player->arm]; at < graph->first[player->arm + 1]; at++) {
    bool is_due = octave(play->tokens[graph->arm[at]]) <= octave(player->tokens);
    if (is_due) {
      assert_true(named < step->wants);
      assert_int_equal(step->want[named].arm, graph->arm[at]);
      assert_int_equal(step->want[named].tokens, 0);
    }
    named += is_due;
  }
  assert_int_equal(step->wants, named);
  for (uint32_t i = 0; i < play->spec.arms; i++) {
    assert_true(releases[i] <= (uint64_t)(octave(play->tokens[i]) + 1));
  }
}

static void plans_double_up_to_the_horizon(void **state) {
  static const struct cv_policy_class *class;
  class = cv_policy_find("graph-ucb");
  uint32_t campaigns = 0, others = 0;
  for (size_t way = 0; way < PLAY_WAYS; way++) {
    struct play play;
    struct cv_release release[8];
    struct cv_policy_step step = {0};
    uint64_t releases[8] = {0}, plan = 0, length = 0;
    if (!play_init(&play, class, way, 8, 3)) {
      continue;
    }
    play.spec.tokens = HORIZON;
    struct cv_policy *policy = play_policy(&play, 5);
    for (; cv_policy_step(policy, ++plan, &step) == CV_OK && !step.done; campaigns += length == HORIZON) {
      length += step.want[0].tokens;
      assert_true(plan < 500 && length <= HORIZON && step.want[0].tokens >= FIRST);
      if (length < HORIZON) {
        check_plan(&play, &step, releases);
      }
      others += step.wants > 1;
      play_plan(&play, plan, &step, release);
      for (size_t i = 0; i < step.wants; i++) {
        releases[release[i].arm]++;
        cv_policy_apply(policy, &release[i]);
      }
    }
    assert_int_equal(length, HORIZON);
    cv_policy_free(policy);
    cv_policy_step_fini(&step);
    play_fini(&play);
  }
  assert_true(campaigns >= 8 && others > 100);
}

/* ---- limits ---- */

/* -ln of the share of n times FIRST tokens at the k-th release among all of one side of an arm. */
static double cost_of(uint32_t n, uint32_t k) {
  int b = octave((uint64_t)n * FIRST);
  if (b == 0) {
    return log(OCTAVES);
  }
  bool is_power = n == UINT32_C(1) << b;
  return log(OCTAVES) + log(2) + (is_power ? 0 : b * log(2)) + (b + 2.0 - k) * log(2);
}

static void the_shares_of_all_looks_sum_to_one_at_most(void **state) {
  double sum = 0;
  for (uint32_t n = 1; n <= HORIZON / FIRST; n++) {
    for (int k = 1; k <= octave((uint64_t)n * FIRST) + 1; k++) {
      sum += exp(-cost_of(n, (uint32_t)k));
    }
  }
  assert_true(sum <= 1 && sum > .7);
}

/* The limits of arm 0 after its k-th release of all `tokens`, the last one of this mean; those before say nothing. */
static struct cv_standing limits_at(uint64_t tokens, uint32_t k, double mean) {
  struct cv_spec spec = spec_of(3, 0, .2);
  struct cv_policy *policy = policy_of(&spec, "bounds", 1);
  struct cv_standing standing;
  for (uint32_t i = 1; i < k; i++) {
    feed(policy, 0, i, .5);
  }
  feed(policy, 0, tokens, mean);
  cv_policy_standing(policy, 0, &standing);
  cv_policy_free(policy);
  return standing;
}

static void limits_are_those_of_a_look_with_its_share(void **state) {
  static const uint32_t look[][2] = {{1, 1}, {2, 1}, {2, 2}, {3, 2}, {8, 3}, {8, 4}, {13, 4}, {300, 9}};
  for (size_t i = 0; i < 2 * CV_COUNT(look); i++) {
    uint32_t n = look[i / 2][0], k = look[i / 2][1];
    double mean = .7, tokens = n * FIRST, level = log(2.0 * 3 * HORIZON) + cost_of(n, k);
    static struct cv_look at;
    brokers = 1 + i % 2;
    cv_look_init(5, k * brokers, &at);
    double low = cv_look_low(&at, &(struct cv_noisy_sum){.tokens = tokens, .sum = mean * tokens}, level);
    double rest = cv_look_low(&at, &(struct cv_noisy_sum){.tokens = tokens, .sum = (1 - mean) * tokens}, level);
    struct cv_standing standing = limits_at((uint64_t)tokens, k, mean);
    assert_near(standing.mean - standing.radius, low, 1e-6);
    assert_near(standing.mean + standing.radius, 1 - rest, 1e-6);
  }
  brokers = 1;
}

static void a_look_without_a_share_says_nothing(void **state) {
  assert_true(limits_at((uint64_t)64 * FIRST, 7, .7).radius < .5);
  assert_true(limits_at((uint64_t)64 * FIRST, 8, .7).radius == .5); /* more releases than octaves */
  assert_true(limits_at((uint64_t)64 * FIRST + 1, 2, .7).radius == .5);
}

/* A Laplace variable of scale 1 score, in grid units. */
static int64_t laplace(struct cv_rng *rng) {
  return llround((log(1 - cv_rng_unit(rng)) - log(1 - cv_rng_unit(rng))) * (double)CV_GRID);
}

/* No arm's mean is ever outside of its limits: 1/T is the probability for a whole campaign. */
static void limits_hold(void **state) {
  const struct cv_policy_class *class = cv_policy_find("graph-ucb");
  uint32_t looks = 0, narrow = 0;
  for (uint64_t seed = 0; seed < 30; seed++) {
    struct play play;
    struct cv_release release[8];
    struct cv_policy_step step = {0};
    assert_true(play_init(&play, class, 15, 8, seed)); /* segments, a graph, the default index */
    play.spec.tokens = HORIZON;
    struct cv_policy *policy = play_policy(&play, seed);
    int64_t noise[8] = {0};
    for (uint64_t plan = 1; cv_policy_step(policy, plan, &step) == CV_OK && !step.done; plan++) {
      play_plan(&play, plan, &step, release);
      for (size_t i = 0; i < step.wants; i++) {
        struct cv_standing standing;
        uint32_t arm = release[i].arm;
        release[i].noisy_sum = play.sum[arm] + (noise[arm] += laplace(&play.rng.rng));
        cv_policy_apply(policy, &release[i]);
        cv_policy_standing(policy, arm, &standing);
        assert_true(fabs(play.mean[arm] - standing.mean) <= standing.radius + 1e-12);
        looks++;
        narrow += standing.radius < .05;
      }
    }
    cv_policy_free(policy);
    cv_policy_step_fini(&step);
    play_fini(&play);
  }
  assert_true(looks > 500 && narrow > 100);
}

/* ---- what it cannot work with ---- */

static void refuses_a_noise_that_it_does_not_know(void **state) {
  static const char *const mechanisms[] = {"batch", "hybrid", "doubling"};
  for (size_t i = 0; i < CV_COUNT(mechanisms); i++) {
    struct cv_spec spec = spec_of(2, 0, 1);
    struct cv_why why = {.text = ""};
    const struct cv_param *bad;
    play_name(&spec.policy, "graph-ucb");
    play_name(&spec.mechanism, mechanisms[i]);
    play_name(&spec.privatizer, "none");
    assert_int_equal(cv_policy_check(&spec.policy, &bad, &why), CV_OK);
    assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
    assert_non_null(strstr(why.text, "segments"));
  }
}

static void refuses_a_state_that_cannot_be(void **state) {
  enum { HEAD = 1 + 4, ARM = 4 * 8 + 2 * 8 + 4, LOW = 32 };
  struct cv_spec spec = spec_of(2, 1, 1);
  struct cv_policy *policy = policy_of(&spec, "bounds", 1);
  struct cv_buf good = {0};
  feed(policy, 0, FIRST, .5);
  cv_policy_save(policy, &good);
  assert_int_equal(good.len, HEAD + 2 * ARM);
  static const struct {
    size_t at;
    uint8_t byte;
  } damage[] = {{0, 9},                 /* another version */
                {1, 3},                 /* three arms */
                {HEAD, 0},              /* tokens without a release */
                {HEAD + 15, 1},         /* 2^56 tokens */
                {HEAD + LOW + 7, 0xc0}, /* a negative limit */
                {HEAD + ARM + 16, 1},   /* plays of an arm without tokens */
                {HEAD + ARM + 51, 2}};  /* 2^25 plays asked */
  for (size_t i = 0; i < CV_COUNT(damage); i++) {
    struct cv_buf bad = {0};
    cv_buf_put(&bad, good.data, good.len);
    bad.data[damage[i].at] = damage[i].byte;
    struct cv_reader in = cv_reader_over(bad.data, bad.len);
    assert_int_not_equal(cv_policy_load(policy, &in), CV_OK);
    cv_buf_fini(&bad);
  }
  struct cv_reader whole = cv_reader_over(good.data, good.len);
  assert_int_equal(cv_policy_load(policy, &whole), CV_OK);
  cv_buf_fini(&good);
  cv_policy_free(policy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_first_plan_shows_as_many_as_it_can),
      cmocka_unit_test(the_neighbour_of_the_highest_lower_limit_plays),
      cmocka_unit_test(the_heuristic_follows_the_mean_where_limits_say_nothing),
      cmocka_unit_test(plans_double_up_to_the_horizon),
      cmocka_unit_test(the_shares_of_all_looks_sum_to_one_at_most),
      cmocka_unit_test(limits_are_those_of_a_look_with_its_share),
      cmocka_unit_test(a_look_without_a_share_says_nothing),
      cmocka_unit_test(limits_hold),
      cmocka_unit_test(refuses_a_noise_that_it_does_not_know),
      cmocka_unit_test(refuses_a_state_that_cannot_be),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
