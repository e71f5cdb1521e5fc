/* SPDX-License-Identifier: Apache-2.0 */
/*
 * best-arm: finds the best arm, with an error probability of at most delta (docs/beyond.md). An arm is dropped when
 * another one is shown to be better: by a martingale of the two (pair.h), or because their intervals (confidence.h)
 * are apart. The last arm left is the best. A best arm is dropped only if an evidence errs: its pair with one of the K
 * - 1 others, the upper side of its interval, or the lower side of another's. While two best arms tie, it does not
 * end.
 *
 * Parameters:
 *   delta             error probability, in (0,1); default 0.1
 *   scores            as in ppar-kl: independent (default) or reacting; without-replacement is refused
 *   tokens_per_round  the fewest tokens of an arm that a plan asks for, so that no release sums fewer; default 20
 *
 * Shares of delta: pairs .75; single looks at the first three releases, of lengths fixed in advance, .15 (in the
 * shares .4, .24, .24 of .88); mixture martingales of single arms .1. Reacting scores and `doubling` have no looks;
 * the mixture then has .25.
 *
 * Pulls: every arm's first release has ceil((L - ln 2 + 1.6)/d) tokens, L the level of its look, d the private
 * divergence of two arms with means 1 and 1/2 (cv_look_first(), also for two brokers). An arm's tokens grow by the
 * factor 2 - .6 (lg epsilon + 1), within [1.4, 2]: the more a release's noise matters, the fewer there are. Once all
 * arms have a release, each plan pulls one: the challenger, which has the highest upper bound but for the leader, that
 * with the highest mean; or the leader, if it has fewer than sqrt(n) times the challenger's tokens, n the number of
 * arms left but for the leader.
 *
 * Needs a mechanism that adds fresh noise to each release, and tokens whose means are in the order of the scores'. A
 * step costs O(K), and some microseconds for each pair whose sums are new.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/pair.h"
#include "thirdparty/policy/step.h"
#include "thirdparty/policy/tail.h"

enum { STATE_VERSION = 1, LOOKS = 3 };
/* Limits of a stored state: more than any campaign has. */
#define TOKENS_END (UINT64_C(1) << 52)
static const uint32_t NOBODY = UINT32_MAX;

static const double PAIR_SHARE = .75, LOOK_SHARE = .15, MIXTURE_SHARE = .1;
static const double look_share[LOOKS] = {.4 / .88, .24 / .88, .24 / .88};
static const double LEAST_GROWTH = 1.4, MOST_GROWTH = 2;
/* The distance to which the first release is suited. */
static const double FIRST_DISTANCE = .5;

enum scores { SCORES_INDEPENDENT, SCORES_ONCE, SCORES_REACTING };
static const char *const score_words[] = {"independent", "without-replacement", "reacting", NULL};

static const struct cv_param_rule rules[] = {
    /* The lower end prevents underflow of the levels. */
    {.key = "delta",
     .low = 1e-100,
     .high = 1,
     .high_open = true,
     .fallback = 0.1,
     .help = "the probability of an error, at most"},
    {.key = "scores",
     .choices = score_words,
     .fallback_text = "independent",
     .help = "what is known of an item's scores: draws of one law, rows used once each, or only a constant mean"},
    {.key = "tokens_per_round",
     .low = 1,
     .high = CV_PLAN_TOKENS_MAX,
     .whole = true,
     .fallback = 20,
     .help = "the fewest tokens that a release sums"},
};

struct arm {
  bool is_active;
  bool is_new;       /* has a release that its pairs were not tested with */
  uint64_t releases; /* n */
  uint64_t tokens;   /* T */
  int64_t sum;       /* S, in grid units */
  double low, high;  /* of the mean token */
  struct cv_noise noise;
};

struct best_arm {
  struct cv_policy policy;
  double delta;
  uint32_t arms, least; /* least: tokens of an arm in a plan */
  uint32_t leader;      /* that the others were last tested with; NOBODY: none yet */
  bool has_looks;
  double epsilon; /* infinite: no noise */
  double unit;    /* of noise, in scores; 0: none */
  double growth;  /* of an arm's tokens from release to release */
  uint32_t first; /* tokens of the first release */
  struct cv_local local;
  struct cv_look_kept look[LOOKS];
  struct cv_mixture mixture;
  struct arm arm[];
};

static struct best_arm *of(struct cv_policy *policy) {
  return (struct best_arm *)policy;
}

/* Each release adds one fresh noise to the one before, or none. */
static bool adds_fresh_noise(const struct cv_traits *traits) {
  return cv_traits_repeats(traits) || cv_traits_exact_sums(traits) || traits->noise == CV_NOISE_LINEAR;
}

static bool keeps_order(const struct cv_local *local, uint32_t arms) {
  struct cv_feedback first = cv_local_feedback(local, 0);
  for (uint32_t i = 1; i < arms; i++) {
    struct cv_feedback other = cv_local_feedback(local, i);
    if (other.offset != first.offset || other.slope != first.slope) {
      return false;
    }
  }
  return first.slope > 0 && first.scale == 0;
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  struct cv_local local;
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &local, why));
  if (!adds_fresh_noise(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs fresh noise in each release; expected mechanism %s, not %s",
                   spec->policy.name, cv_traits_list(adds_fresh_noise).text, spec->mechanism.name);
  }
  if (!keeps_order(&local, spec->arms)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s compares tokens of two arms; expected tokens between 0 and 1 that privatizer %s changes "
                   "alike for all arms, keeping their order",
                   spec->policy.name, spec->privatizer.name);
  }
  if (spec->edges > 0) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s uses no feedback graph; expected no edges", spec->policy.name);
  }
  if (strcmp(cv_params_text(&spec->policy.params, "scores"), score_words[SCORES_ONCE]) == 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s needs scores whose mean stays the same from draw to draw; expected %spolicy ppar-kl",
                   spec->policy.name, cv_spec_is_local(spec) ? "" : "replacement: true, or ");
  }
  return CV_OK;
}

/* ---- evidence ---- */

/* ln(n/(share delta)): n errors, all of whose probabilities together are share delta. */
static double level_of(const struct best_arm *self, double n, double share) {
  return log(n / self->delta) - log(share);
}

static double level_of_look(const struct best_arm *self, uint64_t number) {
  return level_of(self, self->arms, LOOK_SHARE * look_share[number - 1]);
}

static uint32_t grown(const struct best_arm *self, uint64_t tokens) {
  double more = ceil((double)tokens * (self->growth - 1));
  return more >= CV_PLAN_TOKENS_MAX ? CV_PLAN_TOKENS_MAX : more < self->least ? self->least : (uint32_t)more;
}

/* The tokens of an arm's n-th release, n <= LOOKS. */
static uint64_t fixed_length(const struct best_arm *self, uint64_t n) {
  uint64_t tokens = self->first;
  for (uint64_t i = 1; i < n; i++) {
    tokens += grown(self, tokens);
  }
  return tokens;
}

static struct cv_noisy_sum sum_of(const struct best_arm *self, const struct arm *arm) {
  return (struct cv_noisy_sum){.tokens = (double)arm->tokens,
                               .sum = (double)arm->sum / (double)CV_GRID,
                               .unit = self->unit,
                               .noise = &arm->noise};
}

/* The largest mean token that the last release excludes. */
static double low_of(struct best_arm *self, const struct arm *arm, const struct cv_noisy_sum *at) {
  double share = self->has_looks ? MIXTURE_SHARE : MIXTURE_SHARE + LOOK_SHARE;
  double low = cv_mixture_low(&self->mixture, at, level_of(self, self->arms, share));
  /* A look at another length than the fixed one proves nothing. */
  if (self->has_looks && arm->releases <= LOOKS && arm->tokens == fixed_length(self, arm->releases)) {
    const struct cv_look *look = cv_look_keep(&self->look[arm->releases - 1], at);
    low = fmax(low, cv_look_low(look, at, level_of_look(self, arm->releases)));
  }
  return low;
}

static bool is_better(const struct best_arm *self, const struct arm *better, const struct arm *other) {
  struct cv_noisy_sum a = sum_of(self, better), b = sum_of(self, other);
  return other->high < better->low ||
         cv_pair_evidence(&self->mixture, &a, &b) >= level_of(self, self->arms - 1, PAIR_SHARE);
}

/* ---- creation ---- */

static void expect(struct cv_policy *policy, uint32_t brokers) {
  struct best_arm *self = of(policy);
  struct cv_feedback feedback = cv_local_feedback(&self->local, 0);
  double best = feedback.offset + feedback.slope, level = level_of_look(self, 1);
  double tokens = cv_look_first(self->epsilon, brokers, best, best - feedback.slope * FIRST_DISTANCE, level);
  self->first = tokens < CV_PLAN_TOKENS_MAX ? (uint32_t)fmax(tokens, self->least) : CV_PLAN_TOKENS_MAX;
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct best_arm *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->arm[0]));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  const struct cv_params *params = &spec->policy.params;
  bool is_reacting = strcmp(cv_params_text(params, "scores"), score_words[SCORES_REACTING]) == 0;
  double epsilon = cv_spec_has_noise(spec) ? (double)spec->epsilon_micro / (double)CV_MICRO : (double)INFINITY;
  CV_REQUIRE(cv_local_init(&spec->privatizer, spec->arms, &self->local, NULL) == CV_OK);
  self->policy.class = &cv_policy_best_arm;
  self->delta = cv_params_number(params, "delta");
  self->arms = spec->arms;
  self->leader = NOBODY;
  self->least = cv_policy_round(spec);
  self->has_looks = !is_reacting && !cv_traits_repeats(cv_traits_of(spec->mechanism.name));
  self->epsilon = epsilon;
  self->unit = 1 / epsilon;
  self->growth = fmin(fmax(MOST_GROWTH - .6 * (log10(epsilon) + 1), LEAST_GROWTH), MOST_GROWTH);
  expect(&self->policy, 1);
  cv_mixture_init(self->unit, &self->mixture);
  for (uint32_t i = 0; i < spec->arms; i++) {
    self->arm[i].is_active = true;
    self->arm[i].high = 1;
  }
  *ret = &self->policy;
  return CV_OK;
}

static void destroy(struct cv_policy *policy) {
  free(policy);
}

/* ---- releases ---- */

/* As many noises, all of the largest scale: what is stored, and no evidence grows by it. */
static struct cv_noise as_one_group(const struct cv_noise *noise) {
  struct cv_tail tail = cv_tail_of(noise);
  uint32_t count = tail.count < UINT32_MAX ? (uint32_t)tail.count : UINT32_MAX;
  return (struct cv_noise){.groups = count > 0, .group = {{.scale = tail.largest, .count = count}}};
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct best_arm *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct arm *arm = &self->arm[release->arm];
  if (release->tokens <= arm->tokens) {
    return; /* a repeated release */
  }
  arm->releases++;
  arm->tokens = release->tokens;
  arm->sum = release->noisy_sum;
  arm->noise = as_one_group(&release->noise);
  arm->is_new = true;
  struct cv_noisy_sum at = sum_of(self, arm), rest = at;
  rest.sum = at.tokens - at.sum;
  cv_limits_narrow(low_of(self, arm, &at), 1 - low_of(self, arm, &rest), &arm->low, &arm->high);
}

/* ---- plans ---- */

/* The mean token as far as is known. */
static double estimate(const struct arm *arm) {
  double token = arm->tokens == 0 ? .5 : (double)arm->sum / (double)CV_GRID / (double)arm->tokens;
  return fmin(fmax(token, arm->low), arm->high);
}

/* The active arm with the highest `value`, other than `except`; NOBODY if there is none. */
static uint32_t highest(const struct best_arm *self, uint32_t except, double (*value)(const struct arm *)) {
  uint32_t best = NOBODY;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (i != except && self->arm[i].is_active && (best == NOBODY || value(&self->arm[i]) > value(&self->arm[best]))) {
      best = i;
    }
  }
  return best;
}

static double high_of(const struct arm *arm) {
  return arm->high;
}

static void standing_of(const struct best_arm *self, uint32_t i, struct cv_standing *ret) {
  const struct arm *arm = &self->arm[i];
  struct cv_feedback feedback = cv_local_feedback(&self->local, i);
  double low = fmin(fmax(cv_feedback_score(feedback, arm->low), 0), 1);
  double high = fmin(fmax(cv_feedback_score(feedback, arm->high), 0), 1);
  *ret = (struct cv_standing){.arm = i,
                              .rank_class = arm->is_active ? 1 : 2,
                              .tokens = arm->tokens,
                              .mean = (low + high) / 2,
                              .radius = (high - low) / 2,
                              .contradicts = arm->low >= arm->high};
}

static void decide(const struct best_arm *self, uint32_t i, enum cv_decision_kind kind, double reference,
                   struct cv_policy_step *step) {
  struct cv_standing at;
  standing_of(self, i, &at);
  step->decision[step->decisions++] = (struct cv_decision){.kind = kind,
                                                           .arm = i,
                                                           .rank_class = 1,
                                                           .tokens = at.tokens,
                                                           .mean = at.mean,
                                                           .radius = at.radius,
                                                           .reference = reference};
}

/* Drops the arms that the leader is shown to be better than. Returns the number of arms that are left. */
static uint32_t judge(struct best_arm *self, uint32_t leader, struct cv_policy_step *step) {
  uint32_t left = 0;
  bool is_new = self->arm[leader].is_new || leader != self->leader;
  for (uint32_t i = 0; i < self->arms; i++) {
    struct arm *arm = &self->arm[i];
    bool is_tested = arm->is_active && i != leader && (is_new || arm->is_new);
    if (is_tested && is_better(self, &self->arm[leader], arm)) {
      arm->is_active = false;
      decide(self, i, CV_DECISION_REMOVE, estimate(&self->arm[leader]), step);
    }
    left += arm->is_active;
  }
  return left;
}

static void want(const struct best_arm *self, uint32_t i, struct cv_policy_step *step) {
  const struct arm *arm = &self->arm[i];
  uint64_t fixed = arm->releases < LOOKS ? fixed_length(self, arm->releases + 1) : 0;
  uint32_t more = fixed > arm->tokens ? (uint32_t)(fixed - arm->tokens) : grown(self, arm->tokens);
  step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = more};
}

/* The first release of every arm; false if all have one. */
static bool plan_first(const struct best_arm *self, struct cv_policy_step *step) {
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->arm[i].releases == 0) {
      want(self, i, step);
    }
  }
  return step->wants > 0;
}

static void plan_duel(const struct best_arm *self, uint32_t leader, uint32_t left, struct cv_policy_step *step) {
  uint32_t challenger = highest(self, leader, high_of);
  bool leads = (double)self->arm[leader].tokens < sqrt(left - 1) * (double)self->arm[challenger].tokens;
  want(self, leads ? leader : challenger, step);
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct best_arm *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, self->arms, self->arms));
  if (plan_first(self, step)) {
    return CV_OK;
  }
  uint32_t leader = highest(self, NOBODY, estimate), left = judge(self, leader, step);
  self->leader = leader;
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].is_new = false;
  }
  step->done = left == 1;
  if (step->done) {
    decide(self, leader, CV_DECISION_SETTLE, 0, step);
  } else {
    plan_duel(self, leader, left, step);
  }
  return CV_OK;
}

static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  standing_of((const struct best_arm *)policy, i, ret);
}

/* ---- the stored state ---- */

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct best_arm *self = (const struct best_arm *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u32(out, self->arms);
  cv_buf_put_u32(out, self->leader);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    CV_REQUIRE(arm->noise.groups <= 1); /* of mechanisms that add fresh noise */
    cv_buf_put_u8(out, (uint8_t)(arm->is_active | arm->is_new << 1));
    cv_buf_put_u64(out, arm->releases);
    cv_buf_put_u64(out, arm->tokens);
    cv_buf_put_u64(out, (uint64_t)arm->sum);
    cv_buf_put_f64(out, arm->low);
    cv_buf_put_f64(out, arm->high);
    cv_buf_put_u32(out, arm->noise.groups == 0 ? 0 : arm->noise.group[0].count);
    cv_buf_put_f64(out, arm->noise.groups == 0 ? 0 : arm->noise.group[0].scale);
  }
}

static bool read_arm(struct cv_reader *in, struct arm *arm) {
  uint8_t flags = cv_read_u8(in);
  arm->is_active = (flags & 1) != 0;
  arm->is_new = (flags & 2) != 0;
  arm->releases = cv_read_u64(in);
  arm->tokens = cv_read_u64(in);
  arm->sum = (int64_t)cv_read_u64(in);
  arm->low = cv_read_f64(in);
  arm->high = cv_read_f64(in);
  arm->noise.group[0].count = cv_read_u32(in);
  arm->noise.group[0].scale = cv_read_f64(in);
  arm->noise.groups = arm->noise.group[0].count > 0;
  return flags < 4 && arm->low >= 0 && arm->low <= arm->high && arm->high <= 1 &&
         (arm->releases > 0) == (arm->tokens > 0) && arm->releases <= arm->tokens && arm->tokens < TOKENS_END &&
         arm->noise.group[0].scale >= 0 && isfinite(arm->noise.group[0].scale);
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct best_arm *self = of(policy);
  uint32_t active = 0;
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  if (cv_read_u32(in) != self->arms) {
    return CV_ERR_DAMAGED;
  }
  self->leader = cv_read_u32(in);
  for (uint32_t i = 0; i < self->arms; i++) {
    if (!read_arm(in, &self->arm[i])) {
      return CV_ERR_DAMAGED;
    }
    active += self->arm[i].is_active;
  }
  return active > 0 && cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_best_arm = {
    .name = "best-arm",
    .about = "the best arm, from few tokens",
    .kind = CV_POLICY_GRAPH,
    .once_key = "scores",
    .once_word = "without-replacement",
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
