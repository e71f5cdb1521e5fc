/* SPDX-License-Identifier: Apache-2.0 */
/* Policies under the noise of two brokers: each interval holds as often as it says, and depends on the noise that a
 * release states; under the noise of one it is what it was before there were two. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>

#include "tests/support/near.h"
#include "tests/support/play.h"
#include "tests/unit/policy/first.h"

enum { ARMS = 3 };

static struct cv_noise laplaces(double scale, uint32_t count) {
  return (struct cv_noise){.groups = 1, .group = {{.scale = scale, .count = count}}};
}

static struct cv_policy *policy_of(const struct first_of *of, uint32_t brokers) {
  struct cv_spec spec;
  struct cv_policy *policy;
  first_spec(of, &spec);
  assert_int_equal(cv_policy_new(&spec, 7, &policy), CV_OK);
  cv_policy_expect(policy, brokers);
  return policy;
}

/* ---- the noise of one ---- */

/* Tokens of the first plan's first arm, its radius after a release of them, and the next plan's tokens: as printed by
 * the version before, compiled from its sources. */
static void with_one_broker_nothing_has_changed(void **state) {
  static const struct {
    struct first_of of;
    uint32_t first;
    double radius;
    uint32_t next;
  } was[] = {
      {{"ppar", "hybrid", ARMS, .5, 0.1}, 6000, 0.024562667461944996, 0},
      {{"ppar-kl", "segments", ARMS, .5, 0.1}, 168, 0.12142330376255075, 84},
      {{"pair-sort", "segments", ARMS, .5, 0.1}, 60, 0.32539999161127331, 60},
      {{"best-arm", "segments", ARMS, .5, 0.1}, 32, 0.36917910064720222, 20},
      {{"graph-ucb", "segments", ARMS, .5, 0}, 256, 0.29694116862088293, 256},
      {{"dp-se", "batch", ARMS, .5, 0.1}, 703, 0.076054430824824576, 3517},
      {{"gap", "batch", ARMS, .5, 0.1}, 702, 0.076118285801947794, 3516},
      {{"adap-tt", "batch", ARMS, .5, 0.1}, 1, 5.6781531991327654, 1},
      {{"tsallis-inf", "batch", ARMS, .5, 0}, 6, 1.553020046595486, 6},
      {{"dpf", "batch", ARMS, .5, 0}, 16668, 0.011907807096881638, 900000},
      {{"dpu", "hybrid", ARMS, .5, 0}, 1, 16.235725003756542, 1},
      {{"dpu-kl", "segments", ARMS, .5, 0}, 12, 1.04211225137459, 12},
      {{"dp-ucb-bound", "hybrid", ARMS, .5, 0}, 1, 16.235725003756542, 1},
  };
  for (size_t i = 0; i < CV_COUNT(was); i++) {
    struct cv_policy *policy = policy_of(&was[i].of, 1);
    struct cv_policy_step step = {0};
    struct cv_want want[ARMS];
    struct cv_standing at;
    double scale = strcmp(was[i].of.mechanism, "hybrid") == 0 ? 2 : 1;
    assert_int_equal(cv_policy_step(policy, 1, &step), CV_OK);
    assert_int_equal(step.want[0].tokens, was[i].first);
    size_t wants = step.wants;
    memcpy(want, step.want, wants * sizeof(want[0]));
    for (size_t j = 0; j < wants; j++) {
      struct cv_release release = first_release(&want[j], .25, laplaces(scale, 1));
      cv_policy_apply(policy, &release);
    }
    cv_policy_standing(policy, want[0].arm, &at);
    assert_near(at.radius / was[i].radius, 1, 1e-9);
    assert_int_equal(cv_policy_step(policy, 2, &step), CV_OK);
    assert_int_equal(step.wants > 0 ? step.want[0].tokens : 0, was[i].next);
    cv_policy_free(policy);
    cv_policy_step_fini(&step);
  }
}

/* ---- the exact tail ---- */

/* The first arm's radius after the first plan, with this noise stated. */
static double radius_of(const struct first_of *of, const struct cv_noise *noise) {
  struct cv_policy *policy = policy_of(of, 1);
  struct cv_policy_step step = {0};
  struct cv_standing at;
  assert_int_equal(cv_policy_step(policy, 1, &step), CV_OK);
  struct cv_release release = first_release(&step.want[0], 0, *noise);
  cv_policy_apply(policy, &release);
  cv_policy_standing(policy, step.want[0].arm, &at);
  cv_policy_free(policy);
  cv_policy_step_fini(&step);
  return at.radius;
}

/* But not under binary-honaker, whose releases state other noises than they have. */
static void the_exact_tail_is_narrower(void **state) {
  static const char *const policies[] = {"ppar", "ppar-kl"};
  const struct cv_noise noise = {.groups = 2, .group = {{.scale = 2, .count = 3}, {.scale = 4, .count = 2}}};
  for (size_t i = 0; i < CV_COUNT(policies); i++) {
    struct first_of moments = {policies[i], "hybrid", ARMS, .1, .1}, exact = moments;
    exact.is_exact = true;
    assert_true(radius_of(&exact, &noise) < .97 * radius_of(&moments, &noise));
    moments.mechanism = exact.mechanism = "binary-honaker";
    assert_true(radius_of(&exact, &noise) == radius_of(&moments, &noise));
  }
}

/* ---- what a release states ---- */

/* After the first plan, with half as many noises stated as there are in `wide`. Returns how many arms' intervals are
 * narrower; none is wider. */
static uint32_t narrower_arms(struct play *play) {
  struct cv_policy *wide = play_policy(play, 3), *narrow = play_policy(play, 3);
  struct cv_policy_step step = {0}, same = {0};
  struct cv_release release[6];
  uint32_t found = 0;
  assert_int_equal(cv_policy_step(wide, 1, &step), CV_OK);
  assert_int_equal(cv_policy_step(narrow, 1, &same), CV_OK);
  play_plan(play, 1, &step, release);
  for (size_t i = 0; i < step.wants; i++) {
    struct cv_standing a, b;
    cv_policy_apply(wide, &release[i]);
    for (uint32_t g = 0; g < release[i].noise.groups; g++) {
      release[i].noise.group[g].count /= 2;
    }
    cv_policy_apply(narrow, &release[i]);
    cv_policy_standing(wide, release[i].arm, &a);
    cv_policy_standing(narrow, release[i].arm, &b);
    assert_true(b.radius <= a.radius);
    found += b.radius < a.radius;
  }
  cv_policy_free(wide);
  cv_policy_free(narrow);
  cv_policy_step_fini(&step);
  cv_policy_step_fini(&same);
  return found;
}

/* The radii as printed have no term for noise. */
static bool has_no_noise_in_it(const struct play *play) {
  const struct cv_spec *spec = &play->spec;
  return strcmp(spec->policy.name, "ppar") == 0 && strcmp(cv_params_text(&spec->policy.params, "radius"), "sound") != 0;
}

static void intervals_depend_on_the_noise_that_a_release_states(void **state) {
  for (size_t p = 0; cv_policy_at(p) != NULL; p++) {
    const struct cv_policy_class *class = cv_policy_at(p);
    uint32_t narrower = 0, ways = 0;
    for (size_t way = 0; way < PLAY_WAYS && class->reads_noise; way++) {
      struct play play;
      if (!play_init(&play, class, way, 6, 11)) {
        continue;
      }
      if (strcmp(play.spec.mechanism.name, "none") != 0 && !has_no_noise_in_it(&play)) {
        play.brokers = 2;
        play.spec.epsilon_micro = 200000; /* little beside the noise is uncertain */
        ways++;
        narrower += narrower_arms(&play) > 0;
      }
      play_fini(&play);
    }
    if (narrower < ways - ways / 4) { /* some first releases say nothing at all */
      fail_msg("policy %s: intervals depend on the stated noise in %u of %u ways", class->name, narrower, ways);
    }
    assert_true(!class->reads_noise || ways > 0);
  }
}

static void plans_depend_on_the_noise_that_is_expected(void **state) {
  static const struct first_of more[] = {
      {"ppar-kl", "segments", ARMS, .1, .1},   {"best-arm", "segments", ARMS, .1, .1},
      {"pair-sort", "segments", ARMS, .1, .1}, {"dp-se", "batch", ARMS, .01, .1},
      {"gap", "batch", ARMS, .01, .1},         {"tsallis-inf", "batch", ARMS, .1, 0},
      {"dpu-kl", "segments", ARMS, .1, 0},
  };
  for (size_t i = 0; i < CV_COUNT(more); i++) {
    uint32_t tokens[3];
    for (uint32_t brokers = 1; brokers <= 2; brokers++) {
      struct cv_policy *policy = policy_of(&more[i], brokers);
      struct cv_policy_step step = {0};
      assert_int_equal(cv_policy_step(policy, 1, &step), CV_OK);
      tokens[brokers] = step.want[0].tokens;
      cv_policy_free(policy);
      cv_policy_step_fini(&step);
    }
    /* More, but less than twice as many: the second noise does not double the tail. */
    assert_in_range(tokens[2], tokens[1] + 1, 2 * (uint64_t)tokens[1] - 1);
  }
}

/* How many plans ask for an arm whose scores are 0, if its releases state so much noise: an index hopes for as much as
 * the noise allows. The other arms have the same scores and usual noise. */
static uint32_t plans_with(const struct first_of *of, uint32_t brokers, uint32_t arm, double scale) {
  struct cv_policy *policy = policy_of(of, brokers);
  struct cv_policy_step step = {0};
  uint32_t tokens[ARMS] = {0}, releases[ARMS] = {0}, asked = 0;
  for (uint64_t plan = 1; plan <= 12; plan++) {
    assert_int_equal(cv_policy_step(policy, plan, &step), CV_OK);
    for (size_t j = 0; j < step.wants; j++) {
      struct cv_want want = step.want[j];
      uint32_t noises = strcmp(of->mechanism, "segments") == 0 ? ++releases[want.arm] : 1;
      want.tokens = tokens[want.arm] += want.tokens;
      struct cv_release release =
          first_release(&want, -.5 * want.tokens, laplaces(want.arm == arm ? scale : 1, brokers * noises));
      asked += want.arm == arm;
      cv_policy_apply(policy, &release);
    }
  }
  cv_policy_free(policy);
  cv_policy_step_fini(&step);
  return asked;
}

/* A published index bounds the noise of one broker by the number of pulls, so it stays as it is. */
static void an_index_depends_on_the_noise_that_a_release_states(void **state) {
  static const struct {
    struct first_of of;
    uint32_t arm;
    bool is_published;
  } hires[] = {{{"dpu", "hybrid", ARMS, .5, 0}, ARMS - 1, true},
               {{"dp-ucb-bound", "hybrid", ARMS, .5, 0}, ARMS - 1, true},
               {{"dpu-kl", "segments", ARMS, .5, 0}, 0, false}};
  for (size_t i = 0; i < CV_COUNT(hires); i++) {
    uint32_t usual = plans_with(&hires[i].of, 2, hires[i].arm, 1),
             loud = plans_with(&hires[i].of, 2, hires[i].arm, 1e4);
    assert_true(usual < loud && loud >= 11);
    usual = plans_with(&hires[i].of, 1, hires[i].arm, 1);
    loud = plans_with(&hires[i].of, 1, hires[i].arm, 1e4);
    assert_true(hires[i].is_published ? usual == loud : usual < loud);
  }
}

/* What the third-party asks before it lets a policy have a release. */
static void noise_is_that_of_the_brokers(void **state) {
  struct cv_noise noise = {.groups = 2, .group = {{.scale = 2, .count = 3}, {.scale = 4, .count = 2}}};
  assert_true(cv_noise_is_of(&noise, 0) && cv_noise_is_of(&noise, 1) && !cv_noise_is_of(&noise, 2));
  cv_noise_times(&noise, 2);
  assert_true(noise.group[0].count == 6 && noise.group[1].count == 4 && cv_noise_is_of(&noise, 2));
}

/* A new policy has heard of the spec's brokers: it plans as one that is told; one that reads no noise is not made. */
static void the_spec_says_how_many_brokers(void **state) {
  const struct first_of of = {"ppar-kl", "segments", ARMS, .1, .1};
  struct cv_policy *told = policy_of(&of, 2), *other;
  struct cv_policy_step a = {0}, b = {0};
  struct cv_why why = {.text = ""};
  struct cv_spec spec;
  first_spec(&of, &spec);
  spec.brokers = 2;
  assert_int_equal(cv_policy_new(&spec, 7, &other), CV_OK);
  assert_int_equal(cv_policy_step(told, 1, &a), CV_OK);
  assert_int_equal(cv_policy_step(other, 1, &b), CV_OK);
  assert_int_equal(a.want[0].tokens, b.want[0].tokens);
  cv_policy_free(told);
  cv_policy_free(other);
  cv_policy_step_fini(&a);
  cv_policy_step_fini(&b);
  (void)snprintf(spec.policy.name, sizeof(spec.policy.name), "aae");
  assert_int_equal(cv_policy_fits(&spec, &why), CV_ERR_INVALID);
  assert_non_null(strstr(why.text, "policy aae assumes the noise of one broker"));
  assert_int_equal(cv_policy_new(&spec, 7, &other), CV_ERR_INVALID);
}

/* ---- coverage ---- */

static double laplace(struct cv_rng *rng) {
  return log(1 - cv_rng_unit(rng)) - log(1 - cv_rng_unit(rng));
}

/* How often the interval of an arm leaves out its mean after a first release, where nearly all of the error is noise:
 * scores are exact, and epsilon is tiny. */
static double misses(const struct first_of *of, uint32_t brokers) {
  enum { RUNS = 6000 };
  struct cv_rng_seeded rng;
  uint32_t missed = 0;
  double scale = strcmp(of->mechanism, "hybrid") == 0 ? 2 : 1;
  struct cv_policy *policy = policy_of(of, brokers);
  struct cv_policy_step step = {0};
  struct cv_buf start = {0};
  cv_rng_seeded_init(&rng, 21, CV_RNG_NOISE, 0, 0);
  assert_int_equal(cv_policy_step(policy, 1, &step), CV_OK);
  cv_policy_save(policy, &start);
  for (int run = 0; run < RUNS; run++) {
    struct cv_standing at;
    double noise = (laplace(&rng.rng) + laplace(&rng.rng)) * scale / of->epsilon;
    struct cv_release release = first_release(&step.want[0], noise, laplaces(scale, 2));
    struct cv_reader in = cv_reader_over(start.data, start.len);
    assert_int_equal(cv_policy_load(policy, &in), CV_OK);
    cv_policy_apply(policy, &release);
    cv_policy_standing(policy, step.want[0].arm, &at);
    missed += fabs(at.mean - .5) > at.radius;
  }
  cv_buf_fini(&start);
  cv_policy_free(policy);
  cv_policy_step_fini(&step);
  return (double)missed / RUNS;
}

/* The probabilities that each policy's analysis gives to the noise of one release: of both sides. */
static const struct {
  struct first_of of;
  double share;
} covered[] = {
    {{"dp-se", "batch", ARMS, 1e-4, .9}, .9 / (4 * ARMS)},
    {{"gap", "batch", ARMS, 1e-4, .9}, .9 / (4 * ARMS)},
    {{"gapu", "batch", ARMS, 1e-4, .9}, .9 / (4 * ARMS)},
    {{"adap-tt", "batch", ARMS, 1e-4, .2}, .2},
    {{"ppar", "hybrid", ARMS, 1e-4, .9}, .9 / (4 * ARMS)},
    {{"ppar", "segments", ARMS, 1e-4, .9}, .9 / (4 * ARMS)},
    {{"ppar", "hybrid", ARMS, 1e-4, .9, true}, .9 / (4 * ARMS)},
    {{"ppar", "segments", ARMS, 1e-4, .9, true}, .9 / (4 * ARMS)},
    {{"ppar-kl", "hybrid", ARMS, 1e-3, .99, true}, .99 / ARMS / 2},
    {{"dpf", "batch", ARMS, 1e-6, 0}, .025},
    {{"eps-greedy", "hybrid", ARMS, 1e-4, 0}, .025},
    {{"ppar-kl", "segments", ARMS, 1e-3, .99}, .99 / ARMS * .4 * .4 / .88},
    {{"best-arm", "segments", ARMS, 1e-3, .99}, .99 * 2 / ARMS * .15 * .4 / .88},
};

static void intervals_hold_as_often_as_they_say(void **state) {
  for (size_t i = 0; i < CV_COUNT(covered); i++) {
    double share = covered[i].share, spread = 5 * sqrt(share / 6000), missed = misses(&covered[i].of, 2);
    /* Not more often, nor so rarely that a second noise would make no difference. */
    if (missed > share + spread || missed < share / 2 - spread) {
      fail_msg("policy %s: %g of the intervals are wrong; expected about %g", covered[i].of.policy, missed, share);
    }
    /* A policy that expects one broker is told of both by the release: it is only wider. */
    assert_true(misses(&covered[i].of, 1) <= share + spread);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(with_one_broker_nothing_has_changed),
      cmocka_unit_test(the_exact_tail_is_narrower),
      cmocka_unit_test(intervals_depend_on_the_noise_that_a_release_states),
      cmocka_unit_test(plans_depend_on_the_noise_that_is_expected),
      cmocka_unit_test(an_index_depends_on_the_noise_that_a_release_states),
      cmocka_unit_test(noise_is_that_of_the_brokers),
      cmocka_unit_test(the_spec_says_how_many_brokers),
      cmocka_unit_test(intervals_hold_as_often_as_they_say),
  };
  return cmocka_run_group_tests_name("noise", tests, NULL, NULL);
}
