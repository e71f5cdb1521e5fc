/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph-ucb: UCB-N (Caron, Kveton, Lelarge and Bhagat, "Leveraging Side Observations in Stochastic Bandits", 2012) on
 * noisy prefix sums, in plans that double what is known of an arm.
 *
 * An arm of T tokens is in octave floor(log2(T/first)); one without tokens is below all octaves. A plan takes the arm i
 * with the highest index and plays one arm j as often as i has tokens, or `first` times: j is i or a neighbour, in no
 * higher octave than i, the one with the highest lower limit (`bounds`) or mean (`posterior`). The plan names j and
 * those of its neighbours that are in no higher octave than i. So each release lifts its arm by an octave at least, and
 * an arm in octave b has had at most b + 1 releases, each with one more noise. Other neighbours are not asked: a few
 * tokens more would not be worth another noise. The last plan plays the arm with the highest lower limit (or mean) to
 * the horizon.
 *
 * Parameters:
 *   horizon            plays after which the campaign ends; 0, the default: the campaign's limit of tokens
 *   first              tokens of an arm's first release, default 256
 *   index  bounds      the upper confidence limit (default): docs/graph.md says what is proved
 *          posterior   a heuristic without a bound of its regret: the quantile of the mean at
 *                      1 - min(1/2, K sqrt(N)/T), N tokens of the arm, T the horizon; weights
 *                      exp(-N d_epsilon(noisy mean, m)) on a grid of m. For two brokers epsilon is divided by sqrt 2,
 *                      which is one noise with the variance of both
 *
 * Limits (standings have them with either index): the intersection of those by the looks (confidence.h) at all releases
 * of an arm. The n-th token of an arm and its k-th noise do not depend on when they are asked for, so a look is a
 * function of the number of tokens T and of releases k, and 1/T of error is shared among all T and k that can be. An
 * octave has an equal share each. Half of it belongs to T = first 2^b, which most releases have, the other half to all
 * other multiples of `first`, equally; of each, k has 2^-(b + 2 - k).
 *
 * Needs mechanism segments, or exact sums. A step costs the arms and edges, with `posterior` 64 logarithms an arm.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "common/base/neighbours.h"
#include "thirdparty/policy/arms.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/confidence.h"
#include "thirdparty/policy/elimination.h"
#include "thirdparty/policy/kl.h"
#include "thirdparty/policy/step.h"

enum { STATE_VERSION = 1, LOOKS = 40, GRID = 64 };
/* Limits of a stored state: more than any campaign has. */
#define TOKENS_END (UINT64_C(1) << 48)

static const char *const index_words[] = {"bounds", "posterior", NULL};

static const struct cv_param_rule rules[] = {
    CV_PULLS_RULE,
    {.key = "first",
     .low = 1,
     .high = CV_PLAN_TOKENS_MAX,
     .whole = true,
     .fallback = 256,
     .help = "tokens of the first release of an arm"},
    {.key = "index",
     .choices = index_words,
     .fallback_text = "bounds",
     .help = "bounds: by the upper confidence limit; posterior: by a quantile of the mean, without a proof"},
};

struct arm {
  uint64_t releases, tokens, plays;
  int64_t sum;      /* noisy, of the tokens, in grid units */
  double low, high; /* of the mean score */
  uint32_t asked;   /* plays in the present plan */
};

struct graph_ucb {
  struct cv_policy policy;
  bool is_heuristic;
  uint64_t horizon, stream;
  uint32_t arms, floor, first; /* floor: of plays in a plan */
  double unit;                 /* of noise, in scores; 0: none */
  struct cv_neighbours graph;
  struct cv_local local;
  uint32_t brokers;                /* that are expected to add noise */
  struct cv_look_kept look[LOOKS]; /* at an arm's release k + 1 */
  struct arm arm[];
};

static struct graph_ucb *of(struct cv_policy *policy) {
  return (struct graph_ucb *)policy;
}

/* The k-th release of an arm sums all its tokens and k noises of scale 1 of each broker, or none. */
static bool adds_one_noise(const struct cv_traits *traits) {
  return traits->sums == CV_SUMS_ALL && (traits->noise == CV_NOISE_LINEAR || traits->noise == CV_NOISE_NONE);
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  return cv_elimination_needs(spec, adds_one_noise, "needs sums with one more noise in each release", why);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct graph_ucb *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->arm[0]));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_local_init(&spec->privatizer, spec->arms, &self->local, NULL);
  if (err == CV_OK) {
    err = cv_neighbours_init(spec, &self->graph);
  }
  if (err != CV_OK) {
    free(self);
    return err;
  }
  const struct cv_params *params = &spec->policy.params;
  double horizon = cv_params_number(params, "horizon");
  self->policy.class = &cv_policy_graph_ucb;
  self->is_heuristic = strcmp(cv_params_text(params, "index"), "posterior") == 0;
  self->horizon = horizon > 0 ? (uint64_t)horizon : spec->tokens;
  self->stream = cv_rng_branch(cv_rng_root(seed), 0, CV_RNG_POLICY);
  self->arms = spec->arms;
  self->floor = cv_spec_release_tokens(spec);
  self->first = (uint32_t)fmax(cv_params_number(params, "first"), self->floor);
  self->unit = cv_spec_has_noise(spec) ? (double)CV_MICRO / (double)spec->epsilon_micro : 0;
  self->brokers = 1;
  for (uint32_t i = 0; i < spec->arms; i++) {
    self->arm[i].high = 1;
  }
  *ret = &self->policy;
  return CV_OK;
}

static void expect(struct cv_policy *policy, uint32_t brokers) {
  of(policy)->brokers = brokers;
}

static void destroy(struct cv_policy *policy) {
  cv_neighbours_fini(&of(policy)->graph);
  free(policy);
}

/* ---- limits ---- */

/* The octave of this many tokens; -1 below `first`. */
static int octave(const struct graph_ucb *self, uint64_t tokens) {
  int b = -1;
  for (uint64_t n = tokens / self->first; n > 0; n /= 2) {
    b++;
  }
  return b;
}

/* -ln of the error probability of one side of a look; infinite for one that has none. */
static double level_of(const struct graph_ucb *self, const struct arm *arm) {
  int b = octave(self, arm->tokens), octaves = octave(self, self->horizon) + 1;
  if (arm->tokens % self->first != 0 || arm->tokens > self->horizon || arm->releases > (uint64_t)b + 1) {
    return (double)INFINITY;
  }
  double level = log(2.0 * self->arms * (double)self->horizon * octaves);
  if (b > 0) {
    bool is_power = arm->tokens == (uint64_t)self->first << b;
    level += log(2) * (is_power ? 1 : 1 + b) + log(2) * (double)((uint64_t)b + 2 - arm->releases);
  }
  return level;
}

/* A mean token as a mean score. */
static double score_of(const struct graph_ucb *self, uint32_t i, double token) {
  return fmin(fmax(cv_feedback_score(cv_local_feedback(&self->local, i), token), 0), 1);
}

static void look(struct graph_ucb *self, uint32_t i, const struct cv_noise *noise) {
  struct arm *arm = &self->arm[i];
  uint64_t k = arm->releases - 1;
  double level = level_of(self, arm);
  if (isinf(level) || k >= LOOKS) {
    return;
  }
  struct cv_noisy_sum at = {
      .tokens = (double)arm->tokens, .sum = (double)arm->sum / (double)CV_GRID, .unit = self->unit, .noise = noise};
  const struct cv_look *look = cv_look_keep(&self->look[k], &at);
  double a = score_of(self, i, cv_look_low(look, &at, level));
  at.sum = at.tokens - at.sum;
  double b = score_of(self, i, 1 - cv_look_low(look, &at, level));
  cv_limits_narrow(fmin(a, b), fmax(a, b), &arm->low, &arm->high);
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct graph_ucb *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct arm *arm = &self->arm[release->arm];
  if (release->tokens <= arm->tokens || release->tokens >= TOKENS_END) {
    return; /* a repeated release, or nonsense */
  }
  arm->releases++;
  arm->tokens = release->tokens;
  arm->sum = release->noisy_sum;
  arm->plays += arm->asked;
  arm->asked = 0;
  look(self, release->arm, &release->noise);
}

/* ---- plans ---- */

/* The arm with the highest value, of these one with the highest rank, of these a random one. Starts zeroed. */
struct pick {
  double value, rank;
  uint32_t arm, ties;
};

static void offer(struct pick *pick, uint32_t arm, double value, double rank, struct cv_rng *rng) {
  if (pick->ties == 0 || value > pick->value || (value == pick->value && rank > pick->rank)) {
    *pick = (struct pick){.value = value, .rank = rank, .arm = arm, .ties = 1};
  } else if (value == pick->value && rank == pick->rank && cv_rng_below(rng, ++pick->ties) == 0) {
    pick->arm = arm;
  }
}

/* The noisy mean score, within the limits. */
static double mean_of(const struct graph_ucb *self, uint32_t i) {
  const struct arm *arm = &self->arm[i];
  double mean = arm->tokens > 0 ? score_of(self, i, (double)arm->sum / (double)CV_GRID / (double)arm->tokens) : .5;
  return fmin(fmax(mean, arm->low), arm->high);
}

/* The heuristic index of an arm with a release. */
static double quantile_of(const struct graph_ucb *self, uint32_t i) {
  const struct arm *arm = &self->arm[i];
  struct cv_feedback feedback = cv_local_feedback(&self->local, i);
  double n = (double)arm->tokens, token = (double)arm->sum / (double)CV_GRID / n;
  double epsilon = self->unit > 0 ? 1 / self->unit / sqrt(self->brokers) : (double)INFINITY;
  token = isinf(epsilon) ? fmin(fmax(token, 0), 1) : token;
  double cost[GRID], least = (double)INFINITY, total = 0;
  for (int g = 0; g < GRID; g++) {
    cost[g] = n * cv_kl_private(token, feedback.offset + feedback.slope * (g + .5) / GRID, epsilon);
    least = fmin(least, cost[g]);
  }
  for (int g = 0; g < GRID; g++) {
    total += exp(least - cost[g]);
  }
  double above = total * fmin(.5, self->arms * sqrt(n) / (double)self->horizon);
  for (int g = GRID - 1; g >= 0; g--) {
    double weight = exp(least - cost[g]);
    if (weight >= above) {
      return (g + 1 - above / weight) / GRID;
    }
    above -= weight;
  }
  return 0;
}

static double index_of(const struct graph_ucb *self, uint32_t i) {
  const struct arm *arm = &self->arm[i];
  return arm->tokens == 0 ? 2 : self->is_heuristic ? quantile_of(self, i) : arm->high;
}

static double worth_of(const struct graph_ucb *self, uint32_t i) {
  return self->is_heuristic ? mean_of(self, i) : self->arm[i].low;
}

/* The arm with the highest index; of equal ones one with the fewest tokens. */
static uint32_t leader(const struct graph_ucb *self, struct cv_rng *rng) {
  struct pick pick = {0};
  for (uint32_t i = 0; i < self->arms; i++) {
    offer(&pick, i, index_of(self, i), -(double)self->arm[i].tokens, rng);
  }
  return pick.arm;
}

static uint32_t worthiest(const struct graph_ucb *self, struct cv_rng *rng) {
  struct pick pick = {0};
  for (uint32_t i = 0; i < self->arms; i++) {
    offer(&pick, i, worth_of(self, i), 0, rng);
  }
  return pick.arm;
}

/* Whether a plan of this many plays releases arm i, if it shows it. */
static bool is_named(const struct graph_ucb *self, uint32_t i, uint64_t plays) {
  return octave(self, self->arm[i].tokens) <= octave(self, plays);
}

static uint32_t count_named(const struct graph_ucb *self, uint32_t i, uint64_t plays) {
  uint32_t n = 0;
  for (uint32_t at = self->graph.first[i]; at < self->graph.first[i + 1]; at++) {
    n += is_named(self, self->graph.arm[at], plays);
  }
  return n;
}

/* The arm that shows i in a plan of this many plays: i or a neighbour; of equal ones one that shows most. */
static uint32_t player_for(const struct graph_ucb *self, uint32_t i, uint64_t plays, struct cv_rng *rng) {
  struct pick pick = {0};
  offer(&pick, i, worth_of(self, i), count_named(self, i, plays), rng);
  for (uint32_t at = self->graph.first[i]; at < self->graph.first[i + 1]; at++) {
    uint32_t j = self->graph.arm[at];
    if (is_named(self, j, plays)) {
      offer(&pick, j, worth_of(self, j), count_named(self, j, plays), rng);
    }
  }
  return pick.arm;
}

static void plan(struct graph_ucb *self, uint32_t player, uint64_t plays, struct cv_policy_step *step) {
  uint32_t asked = plays < CV_PLAN_TOKENS_MAX ? (uint32_t)plays : CV_PLAN_TOKENS_MAX;
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].asked = 0;
  }
  self->arm[player].asked = asked;
  step->want[step->wants++] = (struct cv_want){.arm = player, .tokens = asked};
  for (uint32_t at = self->graph.first[player]; at < self->graph.first[player + 1]; at++) {
    uint32_t i = self->graph.arm[at];
    if (is_named(self, i, plays)) {
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = 0};
    }
  }
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct graph_ucb *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 0, self->arms));
  uint64_t played = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    played += self->arm[i].plays;
  }
  step->done = played + self->floor > self->horizon;
  if (step->done) {
    return CV_OK;
  }
  struct cv_rng_seeded seeded;
  cv_rng_seeded_at(&seeded, cv_rng_branch(self->stream, 1, number));
  uint32_t best = leader(self, &seeded.rng);
  uint64_t left = self->horizon - played, tokens = self->arm[best].tokens;
  uint64_t plays = tokens > self->first ? tokens : self->first;
  /* No plan of fewer than `first` plays is left for the end. */
  if (left < plays + self->first) {
    plan(self, worthiest(self, &seeded.rng), left, step);
  } else {
    plan(self, player_for(self, best, plays, &seeded.rng), plays, step);
  }
  return CV_OK;
}

/* Class 2: below the best, beyond doubt. */
static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  const struct graph_ucb *self = (const struct graph_ucb *)policy;
  CV_REQUIRE(i < self->arms);
  const struct arm *arm = &self->arm[i];
  double low = 0;
  for (uint32_t j = 0; j < self->arms; j++) {
    low = fmax(low, self->arm[j].low);
  }
  *ret = (struct cv_standing){.arm = i, .rank_class = arm->high < low ? 2 : 1, .tokens = arm->plays};
  ret->mean = (arm->low + arm->high) / 2;
  ret->radius = (arm->high - arm->low) / 2;
  ret->contradicts = arm->low >= arm->high;
}

/* ---- state ---- */

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct graph_ucb *self = (const struct graph_ucb *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u32(out, self->arms);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    cv_buf_put_u64(out, arm->releases);
    cv_buf_put_u64(out, arm->tokens);
    cv_buf_put_u64(out, arm->plays);
    cv_buf_put_u64(out, (uint64_t)arm->sum);
    cv_buf_put_f64(out, arm->low);
    cv_buf_put_f64(out, arm->high);
    cv_buf_put_u32(out, arm->asked);
  }
}

static bool is_plausible(const struct arm *arm) {
  bool is_new = arm->tokens == 0;
  return arm->tokens < TOKENS_END && arm->plays < TOKENS_END && arm->releases <= arm->tokens &&
         is_new == (arm->releases == 0) && (!is_new || (arm->sum == 0 && arm->plays == 0)) && arm->low >= 0 &&
         arm->low <= arm->high && arm->high <= 1 && arm->asked <= CV_PLAN_TOKENS_MAX;
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct graph_ucb *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  if (cv_read_u32(in) != self->arms) {
    return CV_ERR_DAMAGED;
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    struct arm *arm = &self->arm[i];
    arm->releases = cv_read_u64(in);
    arm->tokens = cv_read_u64(in);
    arm->plays = cv_read_u64(in);
    arm->sum = (int64_t)cv_read_u64(in);
    arm->low = cv_read_f64(in);
    arm->high = cv_read_f64(in);
    arm->asked = cv_read_u32(in);
    if (!is_plausible(arm)) {
      return CV_ERR_DAMAGED;
    }
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_graph_ucb = {
    .name = "graph-ucb",
    .about = "which arm to play, on a graph or without one",
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
