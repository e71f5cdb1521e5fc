/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdaP-TT, the private top two of Azize, Jourdan, Al Marjani and Basu, "On the Complexity of Differentially Private
 * Best-Arm Identification with Fixed Confidence" (2023), a baseline for best-arm: finds the best arm.
 *
 * Each arm has phases. Its next phase ends when the arm has as many pulls as in all phases before; then it forgets the
 * scores before the phase and has the mean of the phase alone, with one Lap(1/epsilon) in its sum. In each round, with
 * n the pulls of all ended phases, v and s the mean and the pulls of an arm's last phase:
 *
 *   leader      highest v + ln(n)/(epsilon s) + sqrt(ln(n)/(2 s))
 *   challenger  least (v_leader - v + 1/(1 + sqrt(n)))/sqrt(1/N_leader + 1/N), N counting the present phase as well
 *   pulled      the leader in half of the rounds in which it is the leader, else the challenger
 *   end         when for the leader and each other arm (v_leader - v)^2/2 >= c (1/s_leader + 1/s), v_leader >= v
 *
 * Between two ends of phases no score matters, so a plan asks for one whole phase, and what other arms have of theirs
 * is never asked for if the campaign ends before: as the authors count.
 *
 * That is for one Laplace, whose quantile at level x is x/epsilon. With other noise each x/epsilon, x one of ln(n),
 * ln(1/delta) and ln(M/delta), is the quantile at level x of the noise that the release has (tail.h).
 *
 * Parameters:
 *   delta      error probability, as in GAP
 *   threshold  empirical  c = ln(1/delta) + ln(1 + ln s_leader) + ln(1 + ln s) + (1/s_leader + 1/s) ln(1/delta)^2/
 *                         epsilon^2, of the authors' experiments, without a proof (default)
 *              proof      c = 2 C(ln(L/delta)/2) + 2 ln(4 + ln s_leader) + 2 ln(4 + ln s) + (1/s_leader + 1/s)
 *                         ln(M/delta)^2/epsilon^2, C(x) = x + ln x, L = (K - 1) z k^2, M = 2 K z k^2, z = pi^2/6,
 *                         k the larger number of phases
 *
 * Needs a mechanism with fresh sums and a campaign without a graph. A plan of n tokens costs O(n K).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/elimination.h"
#include "thirdparty/policy/step.h"
#include "thirdparty/policy/tail.h"

/* The second version has the noise of the last phases. */
enum { STATE_VERSION = 2 };
#define COUNT_END (UINT64_C(1) << 48)

static const char *const thresholds[] = {"empirical", "proof", NULL};
static const struct cv_param_rule rules[] = {
    CV_ELIMINATION_DELTA,
    {.key = "threshold",
     .choices = thresholds,
     .fallback_text = "empirical",
     .help = "when it ends. proof: as proved by the authors; empirical: as in their experiments"},
};

struct arm {
  uint64_t phases, pulls; /* ended, and the pulls of these */
  uint64_t owed;          /* pulls of the present phase */
  uint64_t last;          /* pulls of the last one, s */
  double mean;            /* v */
  struct cv_tail tail;    /* of the noise in its sum */
  uint64_t led, chosen;   /* rounds as the leader, and of those, when it was pulled */
};

struct adap_tt {
  struct cv_policy policy;
  struct cv_local local;
  double delta, epsilon;
  enum cv_tail_use use;
  bool is_proof;
  bool is_done;
  uint32_t arms, floor; /* floor: tokens of an arm's first phase, the shortest */
  struct arm arm[];
};

static struct adap_tt *of(struct cv_policy *policy) {
  return (struct adap_tt *)policy;
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(cv_elimination_needs(spec, cv_traits_fresh_sums, "needs the mean of one phase with one noise", why));
  return cv_elimination_needs_no_graph(spec, why);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct adap_tt *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->arm[0]));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  const struct cv_params *params = &spec->policy.params;
  double delta = cv_params_number(params, "delta");
  CV_REQUIRE(cv_local_init(&spec->privatizer, spec->arms, &self->local, NULL) == CV_OK);
  self->policy.class = &cv_policy_adap_tt;
  self->delta = delta > 0 ? fmax(delta, 1e-100) : 1 / fmax((double)spec->tokens, 2);
  self->epsilon = cv_spec_has_noise(spec) ? (double)spec->epsilon_micro / (double)CV_MICRO : (double)INFINITY;
  self->is_proof = strcmp(cv_params_text(params, "threshold"), "proof") == 0;
  self->arms = spec->arms;
  self->floor = cv_spec_release_tokens(spec);
  *ret = &self->policy;
  return CV_OK;
}

static void destroy(struct cv_policy *policy) {
  free(policy);
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct adap_tt *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct arm *arm = &self->arm[release->arm];
  double token = (double)release->noisy_sum / (double)CV_GRID / (double)release->tokens;
  arm->mean = cv_feedback_score(cv_local_feedback(&self->local, release->arm), token);
  arm->phases++;
  arm->pulls += release->tokens;
  arm->last = release->tokens;
  arm->tail = cv_tail_of(&release->noise);
  arm->owed = 0;
}

static void expect(struct cv_policy *policy, uint32_t brokers) {
  of(policy)->use = cv_tail_use_of(brokers);
}

/* The quantile of the noise in the sum of the arm's last phase, in D/epsilon. */
static double noise_at(const struct adap_tt *self, const struct arm *arm, double level) {
  return cv_tail_at(&arm->tail, self->use, level);
}

/* That of the noisier one of two arms, in scores. */
static double most_noise_at(const struct adap_tt *self, const struct arm *a, const struct arm *b, double level) {
  double noise = fmax(noise_at(self, a, level), noise_at(self, b, level)) / self->epsilon;
  return noise + fmax(cv_tail_rounding(&a->tail, self->use), cv_tail_rounding(&b->tail, self->use));
}

/* ---- rounds ---- */

static uint64_t pulls_of(const struct adap_tt *self) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    sum += self->arm[i].pulls;
  }
  return sum;
}

static uint32_t leader_of(const struct adap_tt *self) {
  double log_pulls = log((double)pulls_of(self)), highest = 0;
  uint32_t leader = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    double s = (double)self->arm[i].last;
    double noise = noise_at(self, &self->arm[i], log_pulls) / (self->epsilon * s);
    double index = self->arm[i].mean + noise + sqrt(log_pulls / (2 * s));
    if (i == 0 || index > highest) {
      highest = index;
      leader = i;
    }
  }
  return leader;
}

static uint32_t challenger_of(const struct adap_tt *self, uint32_t leader, double bonus) {
  const struct arm *first = &self->arm[leader];
  double least = 0;
  uint32_t challenger = leader;
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    double cost = (first->mean - arm->mean + bonus) /
                  sqrt(1 / (double)(first->pulls + first->owed) + 1 / (double)(arm->pulls + arm->owed));
    if (i != leader && (challenger == leader || cost < least)) {
      least = cost;
      challenger = i;
    }
  }
  return challenger;
}

/* A phase as long as all before, but no longer than a plan may be. */
static bool is_over(const struct arm *arm) {
  return arm->owed >= arm->pulls || arm->owed >= CV_PLAN_TOKENS_MAX;
}

/* Plays rounds until an arm's phase ends. */
static uint32_t play(struct adap_tt *self) {
  double bonus = 1 / (1 + sqrt((double)pulls_of(self)));
  uint32_t leader = leader_of(self);
  struct arm *first = &self->arm[leader];
  for (;;) {
    first->led++;
    bool leads = 2 * first->chosen < first->led;
    first->chosen += leads;
    uint32_t i = leads ? leader : challenger_of(self, leader, bonus);
    self->arm[i].owed++;
    if (is_over(&self->arm[i])) {
      return i;
    }
  }
}

static double threshold(const struct adap_tt *self, const struct arm *leader, const struct arm *arm) {
  double n = (double)leader->last, m = (double)arm->last, both = 1 / n + 1 / m;
  if (!self->is_proof) {
    double level = log(1 / self->delta);
    return level + log1p(log(n)) + log1p(log(m)) + both * pow(most_noise_at(self, leader, arm, level), 2);
  }
  double k = (double)(leader->phases > arm->phases ? leader->phases : arm->phases), arms = self->arms;
  double zeta = M_PI * M_PI / 6 * k * k, x = log((arms - 1) * zeta / self->delta) / 2;
  return 2 * (x + log(x)) + 2 * log(4 + log(n)) + 2 * log(4 + log(m)) +
         both * pow(most_noise_at(self, leader, arm, log(2 * arms * zeta / self->delta)), 2);
}

static bool is_found(const struct adap_tt *self, uint32_t leader) {
  const struct arm *first = &self->arm[leader];
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    double distance = first->mean - arm->mean;
    double cost = distance * distance / 2 / (1 / (double)first->last + 1 / (double)arm->last);
    if (i != leader && (distance < 0 || cost < threshold(self, first, arm))) {
      return false;
    }
  }
  return true;
}

/* ---- plans ---- */

static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  const struct adap_tt *self = (const struct adap_tt *)policy;
  const struct arm *arm = &self->arm[i];
  bool is_known = arm->phases > 0, is_best = !self->is_done || i == leader_of(self);
  *ret = (struct cv_standing){.arm = i, .rank_class = is_best ? 1 : 2, .tokens = arm->pulls, .mean = .5, .radius = .5};
  if (is_known) {
    double level = log(1 / self->delta), last = (double)arm->last;
    ret->mean = arm->mean;
    ret->radius = noise_at(self, arm, level) / (self->epsilon * last) + sqrt(level / (2 * last));
  }
}

static void decide(const struct adap_tt *self, uint32_t leader, struct cv_policy_step *step) {
  for (uint32_t i = 0; i < self->arms; i++) {
    struct cv_standing at;
    standing(&self->policy, i, &at);
    step->decision[step->decisions++] =
        (struct cv_decision){.kind = i == leader ? CV_DECISION_SETTLE : CV_DECISION_REMOVE,
                             .arm = i,
                             .rank_class = 1,
                             .tokens = at.tokens,
                             .mean = at.mean,
                             .radius = at.radius,
                             .reference = self->arm[leader].mean};
  }
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct adap_tt *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, self->arms, self->arms));
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->arm[i].phases == 0) {
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = self->floor};
    }
  }
  if (step->wants > 0) {
    return CV_OK;
  }
  uint32_t leader = leader_of(self);
  step->done = self->is_done = is_found(self, leader);
  if (step->done) {
    decide(self, leader, step);
    return CV_OK;
  }
  uint32_t arm = play(self);
  step->want[step->wants++] = (struct cv_want){.arm = arm, .tokens = (uint32_t)self->arm[arm].owed};
  return CV_OK;
}

/* ---- the stored state ---- */

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct adap_tt *self = (const struct adap_tt *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u32(out, self->arms);
  cv_buf_put_u8(out, self->is_done);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    const uint64_t counts[] = {arm->phases, arm->pulls, arm->owed, arm->last, arm->led, arm->chosen};
    for (size_t j = 0; j < CV_COUNT(counts); j++) {
      cv_buf_put_u64(out, counts[j]);
    }
    cv_buf_put_f64(out, arm->mean);
    cv_tail_save(&arm->tail, out);
  }
}

static bool read_arm(struct cv_reader *in, struct arm *arm) {
  uint64_t *const counts[] = {&arm->phases, &arm->pulls, &arm->owed, &arm->last, &arm->led, &arm->chosen};
  bool is_plausible = true;
  for (size_t i = 0; i < CV_COUNT(counts); i++) {
    *counts[i] = cv_read_u64(in);
    is_plausible = is_plausible && *counts[i] < COUNT_END;
  }
  arm->mean = cv_read_f64(in);
  is_plausible = is_plausible && cv_tail_load(in, &arm->tail);
  return is_plausible && isfinite(arm->mean) && arm->chosen <= arm->led && arm->owed <= arm->pulls &&
         arm->owed <= CV_PLAN_TOKENS_MAX && arm->last <= arm->pulls && arm->phases <= arm->pulls &&
         (arm->phases > 0) == (arm->last > 0) && (arm->phases > 0) == (arm->pulls > 0);
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct adap_tt *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  if (cv_read_u32(in) != self->arms) {
    return CV_ERR_DAMAGED;
  }
  uint8_t is_done = cv_read_u8(in);
  self->is_done = is_done != 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (!read_arm(in, &self->arm[i]) || (self->is_done && self->arm[i].phases == 0)) {
      return CV_ERR_DAMAGED;
    }
  }
  return is_done <= 1 && cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_adap_tt = {
    .name = "adap-tt",
    .about = "the best arm, by the two arms that are hardest to tell apart",
    .kind = CV_POLICY_GRAPH,
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
    .save = save,
    .load = load,
};
