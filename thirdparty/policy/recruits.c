/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/recruits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/mechanisms.h"
#include "common/base/rng.h"
#include "thirdparty/policy/step.h"

enum { STATE_VERSION = 2 };
/* Limit of pulls per arm in a stored state: more than any budget pays for. */
#define PULLS_END (UINT64_C(1) << 48)
static const uint32_t NOBODY = UINT32_MAX;
static const double DOUBT = .05; /* error probability of the displayed radius */

static const struct cv_recruits *seen(const struct cv_policy *policy) {
  return (const struct cv_recruits *)policy;
}

static struct cv_recruits *of(struct cv_policy *policy) {
  return (struct cv_recruits *)policy;
}

/* The money left, at least 0: an untrusted broker may report more pulls than the plans asked for. */
static uint64_t left_of(const struct cv_recruits *self) {
  uint64_t left = self->budget_micro;
  for (uint32_t i = 0; i < self->arms; i++) {
    uint64_t paid;
    if (__builtin_mul_overflow(self->arm[i].pulls, self->arm[i].cost_micro, &paid) || paid > left) {
      return 0;
    }
    left -= paid;
  }
  return left;
}

static int by_cost(const void *a, const void *b, void *context) {
  const struct cv_recruit *arm = context;
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  if (arm[left].cost_micro != arm[right].cost_micro) {
    return arm[left].cost_micro < arm[right].cost_micro ? -1 : 1;
  }
  return left < right ? -1 : 1;
}

static void fini(struct cv_recruits *self) {
  free(self->arm);
  free(self->by_cost);
  free(self->pick);
  free(self->times);
  free(self->densest);
  free(self->density);
}

enum cv_err cv_recruits_init(struct cv_recruits *self, const struct cv_policy_class *class, const struct cv_spec *spec,
                             uint64_t seed) {
  self->policy.class = class;
  self->seed = seed;
  self->budget_micro = self->left_micro = spec->budget_micro;
  self->tokens = spec->tokens;
  self->epsilon_micro = cv_spec_has_noise(spec) ? spec->epsilon_micro : 0;
  self->brokers = 1;
  self->is_fresh = cv_traits_of(spec->mechanism.name)->sums == CV_SUMS_ITEM;
  self->arms = self->strangers = spec->arms;
  if (spec->cost_micro == NULL || cv_local_init(&spec->privatizer, spec->arms, &self->local, NULL) != CV_OK) {
    return CV_ERR_INVALID;
  }
  self->arm = calloc(spec->arms, sizeof(*self->arm));
  self->by_cost = calloc(spec->arms, sizeof(*self->by_cost));
  self->pick = calloc(spec->arms, sizeof(*self->pick));
  self->times = calloc(spec->arms, sizeof(*self->times));
  self->densest = calloc(spec->arms, sizeof(*self->densest));
  self->density = calloc(spec->arms, sizeof(*self->density));
  if (self->arm == NULL || self->by_cost == NULL || self->pick == NULL || self->times == NULL ||
      self->densest == NULL || self->density == NULL) {
    fini(self);
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    self->arm[i].cost_micro = spec->cost_micro[i];
    self->arm[i].cost = (double)spec->cost_micro[i] / (double)CV_MICRO;
    self->arm[i].slope = fabs(cv_local_feedback(&self->local, i).slope);
    self->by_cost[i] = i;
  }
  qsort_r(self->by_cost, self->arms, sizeof(*self->by_cost), by_cost, self->arm);
  return CV_OK;
}

enum cv_err cv_recruits_create(const struct cv_policy_class *class, const struct cv_spec *spec, uint64_t seed,
                               struct cv_policy **ret) {
  struct cv_recruits *self = calloc(1, sizeof(*self));
  enum cv_err err = self == NULL ? CV_ERR_NOMEM : cv_recruits_init(self, class, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  *ret = &self->policy;
  return CV_OK;
}

void cv_recruits_destroy(struct cv_policy *policy) {
  fini(of(policy));
  free(policy);
}

enum cv_err cv_recruits_fits(const struct cv_spec *spec, struct cv_why *why) {
  if (cv_traits_repeats(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s needs a new release for every plan; expected another mechanism than %s",
                   spec->policy.name, cv_traits_list(cv_traits_repeats).text);
  }
  return CV_OK;
}

/* True for counters whose noise grows with log2 z only, without a horizon: the index bounds exactly this noise. */
static bool is_unbounded_counter(const struct cv_traits *traits) {
  return traits->sums == CV_SUMS_ALL && traits->noise == CV_NOISE_POLYLOG && traits->private == CV_PRIVATE_ALWAYS;
}

static bool suits_index(const struct cv_traits *traits) {
  return is_unbounded_counter(traits) || cv_traits_exact_sums(traits);
}

enum cv_err cv_recruits_fits_index(const struct cv_spec *spec, struct cv_why *why) {
  if (!suits_index(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s bounds the noise of mechanism %s; expected %s, not %s",
                   spec->policy.name, cv_traits_list(is_unbounded_counter).text, cv_traits_list(suits_index).text,
                   spec->mechanism.name);
  }
  return cv_recruits_fits_tokens(spec, why);
}

enum cv_err cv_recruits_fits_tokens(const struct cv_spec *spec, struct cv_why *why) {
  if (!cv_local_is_bounded(cv_local_find(spec->privatizer.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs tokens between 0 and 1; expected another privatizer than %s",
                   spec->policy.name, spec->privatizer.name);
  }
  return CV_OK;
}

/* The number of arms, a prefix of by_cost, whose cost is at most `micro`. */
static uint32_t affordable(const struct cv_recruits *self, uint64_t micro) {
  uint32_t low = 0, high = self->arms;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (self->arm[self->by_cost[middle]].cost_micro <= micro) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

double cv_recruits_delta(const struct cv_recruits *self, bool printed) {
  return (double)self->epsilon_micro / (double)CV_MICRO * (printed ? self->arms : 1);
}

double cv_recruits_noise(const struct cv_recruits *self, uint32_t i, double published, double level) {
  const struct cv_tail *tail = &self->arm[i].tail;
  const enum cv_tail_use use = cv_tail_use_of(self->brokers);
  if (self->epsilon_micro == 0) {
    return 0;
  }
  return self->brokers == 1 ? published : cv_tail_at(tail, use, level) / self->delta + cv_tail_rounding(tail, use);
}

void cv_recruits_expect(struct cv_policy *policy, uint32_t brokers) {
  of(policy)->brokers = brokers;
}

uint32_t cv_recruits_best(const struct cv_recruits *self, const double *value) {
  uint32_t n = affordable(self, self->left_micro), best = NOBODY;
  for (uint32_t j = 0; j < n; j++) {
    uint32_t i = self->by_cost[j];
    if (!isnan(value[i]) && (best == NOBODY || value[i] > value[best])) {
      best = i;
    }
  }
  CV_REQUIRE(best != NOBODY);
  return best;
}

uint32_t cv_recruits_any(const struct cv_recruits *self, struct cv_rng *rng) {
  uint32_t n = affordable(self, self->left_micro);
  CV_REQUIRE(n > 0);
  return self->by_cost[cv_rng_below(rng, n)];
}

void cv_recruits_fill(struct cv_recruits *self, const double *density, uint64_t micro) {
  uint32_t n = affordable(self, micro), best = NOBODY;
  for (uint32_t j = 0; j < n; j++) {
    uint32_t i = self->by_cost[j];
    if (!isnan(density[i]) && (best == NOBODY || density[i] > density[best])) {
      best = i;
    }
    self->densest[j] = best;
  }
  self->picks = 0;
  /* densest[j] is the densest arm among the cheapest j + 1, so after each pick only the affordable prefix shrinks. */
  while (n > 0 && self->densest[n - 1] != NOBODY) {
    uint32_t i = self->densest[n - 1];
    uint64_t cost = self->arm[i].cost_micro;
    self->pick[self->picks] = i;
    self->times[self->picks++] = micro / cost;
    micro %= cost;
    while (n > 0 && self->arm[self->by_cost[n - 1]].cost_micro > micro) {
      n--;
    }
  }
}

void cv_recruits_combine(struct cv_recruits *self, const double *density, uint64_t micro, uint32_t size,
                         uint64_t most) {
  uint64_t left = micro;
  uint32_t *taken = self->densest, best; /* scratch, by place in by_cost */
  memset(taken, 0, self->arms * sizeof(*taken));
  self->picks = 0;
  do {
    uint32_t n = affordable(self, left);
    best = NOBODY;
    for (uint32_t j = 0; j < n; j++) {
      double value = density[self->by_cost[j]];
      if (taken[j] == 0 && !isnan(value) && (best == NOBODY || value > density[self->by_cost[best]])) {
        best = j;
      }
    }
    if (best != NOBODY) {
      taken[best] = 1;
      self->pick[self->picks++] = self->by_cost[best];
      left -= self->arm[self->by_cost[best]].cost_micro;
    }
  } while (best != NOBODY && self->picks < size);
  uint64_t times = left < micro ? micro / (micro - left) : 0;
  for (uint32_t j = 0; j < self->picks; j++) {
    self->times[j] = times < most ? times : most;
  }
}

void cv_recruits_stream(const struct cv_recruits *self, uint64_t plan, struct cv_rng_seeded *ret) {
  cv_rng_seeded_init(ret, self->seed, CV_RNG_POLICY, plan, 0);
}

void cv_recruits_want_drawn(struct cv_recruits *self, uint64_t plan, uint64_t n, struct cv_policy_step *step) {
  CV_REQUIRE(self->picks > 0 && n > 0);
  n = n < self->room ? n : self->room;
  if (self->picks == 1) {
    cv_recruits_want(self, step, self->pick[0], n < self->times[0] ? n : self->times[0]);
    return;
  }
  struct cv_rng_seeded stream;
  cv_recruits_stream(self, plan, &stream);
  uint64_t left = 0, *times = self->times;
  uint32_t *drawn = self->densest; /* cv_recruits_fill() no longer needs this scratch array */
  for (uint32_t j = 0; j < self->picks; j++) {
    left += times[j];
    drawn[j] = 0;
  }
  for (; n > 0 && left > 0; n--, left--) {
    uint64_t at = cv_rng_below(&stream.rng, left);
    uint32_t j = 0;
    while (at >= times[j]) {
      at -= times[j++];
    }
    times[j]--;
    drawn[j]++;
  }
  for (uint32_t j = 0; j < self->picks; j++) {
    if (drawn[j] > 0) {
      cv_recruits_want(self, step, self->pick[j], drawn[j]);
    }
  }
}

enum cv_err cv_recruits_step(struct cv_recruits *self, struct cv_policy_step *step) {
  CV_TRY(cv_policy_step_reserve(step, 0, self->arms));
  self->room = self->tokens > self->pulls ? self->tokens - self->pulls : 0;
  step->done = self->room == 0 || affordable(self, self->left_micro) == 0;
  return CV_OK;
}

void cv_recruits_want(struct cv_recruits *self, struct cv_policy_step *step, uint32_t arm, uint64_t times) {
  times = times < CV_PLAN_TOKENS_MAX ? times : CV_PLAN_TOKENS_MAX;
  times = times < self->room ? times : self->room;
  self->room -= times;
  if (times > 0) {
    step->want[step->wants++] = (struct cv_want){.arm = arm, .tokens = (uint32_t)times};
  }
}

void cv_recruits_want_picks(struct cv_recruits *self, struct cv_policy_step *step) {
  for (uint32_t j = 0; j < self->picks; j++) {
    cv_recruits_want(self, step, self->pick[j], self->times[j]);
  }
}

bool cv_recruits_want_first(struct cv_recruits *self, struct cv_policy_step *step) {
  uint64_t left = self->left_micro;
  if (self->strangers == 0) {
    return false;
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->arm[i].pulls == 0 && self->arm[i].cost_micro <= left) {
      left -= self->arm[i].cost_micro;
      cv_recruits_want(self, step, i, 1);
    }
  }
  return step->wants > 0;
}

/* Updates the mean score of an arm and the radius of its true mean. */
static void estimate(const struct cv_recruits *self, struct cv_recruit *arm, uint32_t i, const struct cv_noise *noise) {
  struct cv_feedback feedback = cv_local_feedback(&self->local, i);
  double z = (double)arm->pulls;
  double tail = cv_tail_in_scores(noise, cv_tail_use_of(self->brokers), self->epsilon_micro, feedback.scale, arm->pulls,
                                  DOUBT / 2);
  arm->mean = cv_feedback_score(feedback, (double)arm->sum / (double)CV_GRID / z);
  double scores = sqrt(log(4 / DOUBT) / (2 * z));
  arm->radius = (scores + tail / z) / fabs(feedback.slope);
  arm->noise = arm->radius - scores;
}

void cv_recruits_apply(struct cv_policy *policy, const struct cv_release *release) {
  struct cv_recruits *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct cv_recruit *arm = &self->arm[release->arm];
  uint64_t before = arm->pulls, now = self->is_fresh ? before + release->tokens : release->tokens;
  /* A broker is untrusted: pulls never decrease and stay below PULLS_END. */
  now = now < before ? before : now;
  arm->pulls = now < PULLS_END ? now : PULLS_END - 1;
  arm->sum = (int64_t)((self->is_fresh ? (uint64_t)arm->sum : 0) + (uint64_t)release->noisy_sum);
  uint64_t paid, more = arm->pulls - before;
  bool beyond = __builtin_mul_overflow(more, arm->cost_micro, &paid) || paid > self->left_micro;
  self->left_micro = beyond ? 0 : self->left_micro - paid;
  self->pulls += more;
  self->strangers -= before == 0;
  arm->releases++;
  arm->tail = cv_tail_of(&release->noise);
  estimate(self, arm, release->arm, &release->noise);
}

void cv_recruits_standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  const struct cv_recruits *self = seen(policy);
  CV_REQUIRE(i < self->arms);
  const struct cv_recruit *arm = &self->arm[i];
  *ret = (struct cv_standing){.arm = i, .tokens = arm->pulls, .mean = .5, .radius = .5};
  if (arm->pulls > 0) {
    ret->mean = arm->mean;
    ret->radius = arm->radius;
    ret->noise = arm->noise;
  }
}

void cv_recruits_save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct cv_recruits *self = seen(policy);
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u32(out, self->arms);
  cv_buf_put_u64(out, self->left_micro);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_recruit *arm = &self->arm[i];
    cv_buf_put_u64(out, arm->pulls);
    cv_buf_put_u64(out, (uint64_t)arm->sum);
    cv_buf_put_f64(out, arm->mean);
    cv_buf_put_f64(out, arm->radius);
    cv_buf_put_u64(out, arm->releases);
    cv_tail_save(&arm->tail, out);
  }
}

static bool is_plausible(const struct cv_recruit *arm) {
  return arm->pulls < PULLS_END && isfinite(arm->mean) && isfinite(arm->radius) && arm->radius >= 0 &&
         (arm->pulls > 0
              ? arm->releases > 0
              : arm->sum == 0 && arm->mean == 0 && arm->radius == 0 && arm->releases == 0 && arm->tail.count == 0);
}

enum cv_err cv_recruits_load(struct cv_policy *policy, struct cv_reader *in) {
  struct cv_recruits *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  if (cv_read_u32(in) != self->arms) {
    return CV_ERR_DAMAGED;
  }
  self->left_micro = cv_read_u64(in);
  self->pulls = 0;
  self->strangers = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    struct cv_recruit *arm = &self->arm[i];
    arm->pulls = cv_read_u64(in);
    arm->sum = (int64_t)cv_read_u64(in);
    arm->mean = cv_read_f64(in);
    arm->radius = cv_read_f64(in);
    arm->noise = arm->pulls > 0 ? (double)NAN : 0;
    arm->releases = cv_read_u64(in);
    if (!cv_tail_load(in, &arm->tail) || in->failed || !is_plausible(arm)) {
      return CV_ERR_DAMAGED;
    }
    self->pulls += arm->pulls;
    self->strangers += arm->pulls == 0;
  }
  return self->left_micro == left_of(self) ? CV_OK : CV_ERR_DAMAGED;
}

enum cv_err cv_recruits_load_all(struct cv_policy *policy, struct cv_reader *in) {
  CV_TRY(cv_recruits_load(policy, in));
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}
