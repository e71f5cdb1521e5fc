/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tsallis-INF (tsallis.h; Zimmert and Seldin 2021) for arbitrary gains under three kinds of privacy. One plan is one
 * choice of an arm, for `tau` pulls, a batch. The loss it feeds is u = 1/2 - m, with m the mean of the batch after
 * inversion of the privatizer's law, limited to [-b, b].
 *
 *   mechanism none, privatizer laplace or randomized-response: local privacy, no party need be trusted
 *   mechanism batch, privatizer none: the broker adds one Laplace of scale 1/epsilon to the sum of a batch (the
 *     conversion of Asi, Raman and Talwar, "Faster Rates for Private Adversarial Bandits", 2025)
 *   mechanism and privatizer none: no privacy, a trusted third-party
 *
 * n counts the choices from 1, B is the batch, v and w are the two ends of the range of a token after inversion:
 *
 *                            s^2 >= E[u^2]                                     b
 *   none                     1/4                                               1/2
 *   randomized-response      1/4 + (max(|v - 1/2|, |w - 1/2|)^2 - 1/4)/B       max(|v - 1/2|, |w - 1/2|)
 *   laplace                  1/4 + 2/(epsilon^2 B)                             1/2 + ln(n)/epsilon
 *   mechanism batch          1/4 + 2/(epsilon B)^2                             1/2 + ln(n)/(epsilon B)
 *
 * Both are fixed before a loss is seen, so they follow from the noise that is expected: with that of two brokers
 * 2/(epsilon B)^2 doubles, ln(n) is the quantile of both (tail.h) at that level, and the usual tau is sqrt(16)/epsilon.
 * The interval of an arm has the noises that its releases state.
 *
 * The rate is min{1/(s sqrt(2 n)), 1/(4 b sqrt K)}. Neither rate nor bound depends on the horizon.
 *
 * Parameters:
 *   tau      pulls of a choice, B; 0 (the default): 1, and under mechanism batch sqrt(8)/epsilon, rounded, at least 1,
 *            which minimizes B s^2, the regret's factor
 *   horizon  as in exp3.h
 */
#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/adversarial.h"
#include "thirdparty/policy/arms.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/step.h"
#include "thirdparty/policy/tail.h"
#include "thirdparty/policy/tsallis.h"

/* The second version has the noises. */
enum { STATE_VERSION = 2, BATCH_MAX = 1 << 24 };

static const struct cv_param_rule rules[] = {
    {.key = "tau",
     .low = 0,
     .high = BATCH_MAX,
     .whole = true,
     .fallback = 0,
     .help = "how many pulls a choice holds; 0: 1, or tuned under mechanism batch"},
    CV_PULLS_RULE,
};

/* The noise in the sum of an arm: as many noises as its releases state, all of the largest scale. */
struct noises {
  uint64_t count;
  double scale; /* in D/epsilon */
};

struct tsallis_inf {
  struct cv_policy policy;
  struct cv_arms arms;
  struct cv_tsallis core;
  uint64_t choices; /* whose losses the core has */
  uint32_t batch;
  double scale;     /* of the broker's noise in the sum of a batch, in scores; 0: sums of all tokens without noise */
  double epsilon;   /* of the broker's noise; 0: none */
  double tau;       /* as the campaign says; 0: usual */
  uint32_t brokers; /* that are expected to add noise */
  double bound;     /* b at n = 1 */
  double spread;    /* the factor of ln n in b */
  double deviation; /* s */
  struct noises noises[];
};

static struct tsallis_inf *of(struct cv_policy *policy) {
  return (struct tsallis_inf *)policy;
}

static bool suits(const struct cv_traits *traits) {
  return cv_traits_fresh_sums(traits) || cv_traits_exact_sums(traits);
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  const struct cv_traits *traits = cv_traits_of(spec->mechanism.name);
  const bool is_plain = cv_local_find(spec->privatizer.name) == CV_LOCAL_NONE;
  if (!suits(traits)) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs exact sums or fresh sums with one noise; expected %s, not %s",
                   spec->policy.name, cv_traits_list(suits).text, spec->mechanism.name);
  }
  if (cv_traits_fresh_sums(traits) && !is_plain) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s takes noise from one party; expected privatizer none or mechanism %s, not %s and %s",
                   spec->policy.name, cv_traits_list(cv_traits_exact_sums).text, spec->privatizer.name,
                   spec->mechanism.name);
  }
  if (cv_traits_fresh_sums(traits)) {
    return CV_OK;
  }
  return is_plain ? cv_adversarial_fits_trusted(spec, why)
                  : cv_arms_fit(spec, 1U << CV_LOCAL_LAPLACE | 1U << CV_LOCAL_RESPONSE, why);
}

/* The largest distance of an inverted token from 1/2 if tokens are bounded. */
static double reach_of(const struct cv_arms *arms) {
  double reach = 0.5;
  for (uint32_t i = 0; i < arms->arms; i++) {
    const struct cv_feedback *feedback = &arms->arm[i].feedback;
    for (int end = 0; end < 2 && feedback->scale == 0; end++) {
      reach = fmax(reach, fabs(cv_feedback_score(*feedback, end) - 0.5));
    }
  }
  return reach;
}

static void tune(struct tsallis_inf *self) {
  const bool is_central = self->epsilon > 0;
  double noises = is_central ? self->brokers : 1;
  double usual = is_central ? fmin(fmax(1, round(sqrt(8 * noises) / self->epsilon)), BATCH_MAX) : 1;
  self->batch = (uint32_t)fmax(self->tau > 0 ? self->tau : usual, self->arms.floor);
  self->scale = is_central ? 1 / self->epsilon : 0;
  self->spread = is_central ? self->scale / self->batch : self->arms.arm[0].feedback.scale;
  self->bound = reach_of(&self->arms);
  /* The variance beyond 1/4. */
  double noise = 2 * noises * self->spread * self->spread + self->bound * self->bound - 0.25;
  self->deviation = sqrt(0.25 + noise / (is_central ? 1 : self->batch));
}

/* b at the n-th choice. */
static double bound_at(const struct tsallis_inf *self, double n) {
  uint32_t noises = self->epsilon > 0 ? self->brokers : 1;
  const struct cv_tail tail = {.squares = noises, .largest = 1, .count = noises};
  return self->bound + self->spread * cv_tail_at(&tail, cv_tail_use_of(noises), log(n));
}

static void weigh(struct tsallis_inf *self) {
  double n = (double)self->choices + 1, bound = bound_at(self, n);
  double rate = fmin(1 / (self->deviation * sqrt(2 * n)), 1 / (4 * bound * sqrt(self->arms.arms)));
  cv_tsallis_weigh(&self->core, rate, bound);
}

static void expect(struct cv_policy *policy, uint32_t brokers) {
  struct tsallis_inf *self = of(policy);
  self->brokers = brokers;
  tune(self);
  weigh(self);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct tsallis_inf *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->noises[0]));
  enum cv_err err = self == NULL ? CV_ERR_NOMEM : cv_arms_init(spec, seed, &self->arms);
  if (err == CV_OK) {
    err = cv_tsallis_init(spec->arms, &self->core);
    if (err != CV_OK) {
      cv_arms_fini(&self->arms);
    }
  }
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->policy.class = &cv_policy_tsallis_inf;
  const bool is_central = cv_traits_fresh_sums(cv_traits_of(spec->mechanism.name));
  self->epsilon = is_central ? (double)spec->epsilon_micro / (double)CV_MICRO : 0;
  self->tau = cv_params_number(&spec->policy.params, "tau");
  expect(&self->policy, 1);
  *ret = &self->policy;
  return CV_OK;
}

static void destroy(struct cv_policy *policy) {
  cv_arms_fini(&of(policy)->arms);
  cv_tsallis_fini(&of(policy)->core);
  free(policy);
}

static void hear(struct noises *noises, const struct cv_noise *stated) {
  struct cv_tail tail = cv_tail_of(stated);
  noises->count += tail.count;
  noises->scale = fmax(noises->scale, tail.largest);
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct tsallis_inf *self = of(policy);
  const struct cv_arms_sum *arm = &self->arms.arm[release->arm];
  struct cv_release total = *release;
  if (self->scale > 0) { /* the release is of its batch alone */
    total.tokens += arm->tokens;
    total.noisy_sum = (int64_t)((uint64_t)total.noisy_sum + (uint64_t)arm->sum);
  }
  double sum;
  uint64_t fresh = cv_arms_apply(&self->arms, &total, &sum);
  if (fresh > 0) {
    hear(&self->noises[release->arm], &release->noise);
    double bound = bound_at(self, (double)++self->choices);
    double loss = 0.5 - cv_feedback_score(arm->feedback, sum / (double)fresh);
    cv_tsallis_lose(&self->core, release->arm, fmax(-bound, fmin(loss, bound)));
    weigh(self);
  }
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct tsallis_inf *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 0, 1));
  step->done = cv_arms_left(&self->arms) == 0;
  if (!step->done) {
    struct cv_rng_seeded rng;
    cv_arms_stream(&self->arms, plan, &rng);
    cv_arms_want(&self->arms, cv_tsallis_draw(&self->core, &rng.rng), self->batch, step);
  }
  return CV_OK;
}

static void standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret) {
  static const struct cv_noise silence = {0};
  const struct tsallis_inf *self = (const struct tsallis_inf *)policy;
  cv_arms_standing(&self->arms, arm, ret);
  if (self->scale > 0 && ret->tokens > 0) {
    const struct noises *noises = &self->noises[arm];
    double tail = cv_tail_in_scores(&silence, cv_tail_use_of(self->brokers), 0, self->scale * noises->scale,
                                    noises->count, 0.05) /
                  (double)ret->tokens;
    ret->radius += tail;
    ret->noise += tail;
  }
}

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct tsallis_inf *self = (const struct tsallis_inf *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_arms_save(&self->arms, out);
  cv_buf_put_u64(out, self->choices);
  cv_tsallis_save(&self->core, out);
  for (uint32_t i = 0; i < self->arms.arms; i++) {
    cv_buf_put_u64(out, self->noises[i].count);
    cv_buf_put_f64(out, self->noises[i].scale);
  }
}

static bool load_noises(struct cv_reader *in, uint64_t tokens, struct noises *ret) {
  ret->count = cv_read_u64(in);
  ret->scale = cv_read_f64(in);
  return isfinite(ret->scale) && ret->scale >= 0 && (ret->count > 0) == (ret->scale > 0) &&
         (tokens > 0 || ret->count == 0);
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct tsallis_inf *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  CV_TRY(cv_arms_load(&self->arms, in));
  self->choices = cv_read_u64(in);
  CV_TRY(cv_tsallis_load(&self->core, in));
  for (uint32_t i = 0; i < self->arms.arms; i++) {
    CV_TRY(load_noises(in, self->arms.arm[i].tokens, &self->noises[i]) ? CV_OK : CV_ERR_DAMAGED);
  }
  /* Each choice has a pull at least. */
  if (self->choices > self->arms.pulls || !cv_reader_done(in)) {
    return CV_ERR_DAMAGED;
  }
  weigh(self);
  return CV_OK;
}

const struct cv_policy_class cv_policy_tsallis_inf = {
    .name = "tsallis-inf",
    .about = "which arm to pull, for arbitrary gains, with less regret under privacy",
    .kind = CV_POLICY_BANDIT,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .has_floor = true,
    .fits = fits,
    .create = create,
    .reads_noise = true,
    .expect = expect,
    .destroy = destroy,
    .apply = apply,
    .step = make_step,
    .standing = standing,
    .tells_noise = true,
    .save = save,
    .load = load,
};
