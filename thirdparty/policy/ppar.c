/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PPAR, adaptive ranking (Chen, Yu, Li, Zou, Liang and Cheng, "PPAR: A Privacy-Preserving Adaptive Ranking Algorithm
 * for Multi-Armed-Bandit Crowdsourcing", 2022, Algorithm 1), as printed and in a sound variant.
 *
 * A round collects tokens_per_round tokens of every arm to pull, then decides: ranking.h has the rules. With printed
 * and proof the leader decides, with sound the intervals.
 *
 * Parameters:
 *   alpha             rank span, >= 0; 0 ranks fully
 *   delta             error probability, in (0,1); default 0.1
 *   tokens_per_round  default 6000 (the paper's)
 *   radius   printed  settle at mean >= m - alpha + r, remove at mean < m - alpha - r, m = best mean of S,
 *                     r = 2 sqrt(ln(4K/delta)/(2T)) (Algorithm 1, lines 28 and 31)
 *            proof    the same with r = 2 sqrt(2 ln(4K/delta)/T), which the proof of Lemma 5.3 requires
 *            sound    by intervals mean +- a, a = sqrt(ln(4K n(n+1)/delta)/(2T)) + q/T with q the noise's quantile at
 *                     delta/(2K n(n+1)), n = releases of the arm: settle at low >= (highest high of the others) -
 *                     alpha, remove at high < (highest low) - alpha. The probability of any error is at most delta.
 *   settled  hold     pull the unsettled arms and the arm with the highest upper bound (printed, proof: the leader)
 *            pull     continue to pull all of S (paper)
 *   lies              false tokens that do not turn a class; default 0, above 0 only with radius sound
 *   boundary park     with radius sound: park arms that the token limit cannot decide (parking.h); in new files
 *            feed     pull them until the limit
 *   tails    exact    q by the exact tail of the noises of the largest scale (tail.h); in new campaign files
 *            chernoff q by Chernoff's bound, but exact for one Laplace, and for two of two brokers; always behind
 *                     privatizer laplace, whose many noises have no other
 *
 * Behind a privatizer with mean token offset + slope x (common/base/local.h) the mean token is converted back to x, and
 * the radius is divided by |slope|. Laplace noise in tokens widens the radius by its tail at delta/(2K n(n+1)).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/ranking.h"
#include "thirdparty/policy/step.h"
#include "thirdparty/policy/tail.h"

enum radius { RADIUS_PRINTED, RADIUS_PROOF, RADIUS_SOUND };
/* Limit of releases per arm in a stored state: more than any campaign has, and its square is a finite double. */
#define RELEASES_END (UINT64_C(1) << 48)

static const char *const radius_words[] = {"printed", "proof", "sound", NULL};
static const char *const settled_words[] = {"pull", "hold", NULL};

static const struct cv_param_rule rules[] = {
    {.key = "alpha",
     .low = 0,
     .high = (double)INFINITY,
     .fallback = (double)NAN,
     .help = "rank span in scores: items within alpha of the best of a class are in it; 0 ranks fully"},
    /* The lower end prevents underflow of delta/(2K n(n+1)). */
    {.key = "delta",
     .low = 1e-100,
     .high = 1,
     .high_open = true,
     .fallback = 0.1,
     .help = "the probability of a wrong ranking, at most"},
    {.key = "tokens_per_round",
     .low = 1,
     .high = UINT32_MAX,
     .whole = true,
     .fallback = 6000,
     .help = "tokens of each item that is not settled, in a round"},
    {.key = "radius",
     .choices = radius_words,
     .fallback_text = "sound",
     .help = "sound: intervals that hold as proved; printed and proof: as the paper has them"},
    {.key = "settled",
     .choices = settled_words,
     .fallback_text = "hold",
     .help = "hold: settled items but the best get no more tokens; pull: they do, as in the paper"},
    CV_LIES_RULE,
    CV_BOUNDARY_RULE,
    CV_TAILS_RULE,
};

/* Cache of the last radius, which depends only on counts and noise: those of a round's arms are mostly equal. */
struct known_radius {
  uint64_t releases, tokens;
  struct cv_noise noise;
  double scores, tail; /* the two parts of the radius: of drawn scores, and of noise */
};

struct ppar {
  struct cv_policy policy;
  double delta;
  uint32_t tokens_per_round;
  enum radius radius;
  bool hold;
  uint64_t epsilon_micro;
  enum cv_tail_use use;
  bool has_exact_tails;
  struct cv_local local;
  struct known_radius known;
  struct cv_ranking ranking;
  uint64_t releases[]; /* n of each arm */
};

static struct ppar *of(struct cv_policy *policy) {
  return (struct ppar *)policy;
}

static void destroy(struct cv_policy *policy) {
  struct ppar *self = of(policy);
  cv_ranking_fini(&self->ranking);
  free(self);
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  const struct cv_params *params = &spec->policy.params;
  const char *radius = cv_params_text(params, "radius");
  return cv_params_number(params, "lies") == 0 || strcmp(radius, "sound") == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "policy %s can bear lies only with radius sound, not %s", spec->policy.name,
                       radius);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_local local;
  if (cv_local_init(&spec->privatizer, spec->arms, &local, NULL) != CV_OK) {
    return CV_ERR_INVALID;
  }
  struct ppar *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->releases[0]));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  const struct cv_params *params = &spec->policy.params;
  const char *radius = cv_params_text(params, "radius");
  self->policy.class = &cv_policy_ppar;
  self->delta = cv_params_number(params, "delta");
  self->tokens_per_round = cv_policy_round(spec);
  self->radius = strcmp(radius, "printed") == 0 ? RADIUS_PRINTED
                 : strcmp(radius, "proof") == 0 ? RADIUS_PROOF
                                                : RADIUS_SOUND;
  self->has_exact_tails = cv_ranking_has_exact_tails(spec);
  self->hold = strcmp(cv_params_text(params, "settled"), "hold") == 0;
  self->epsilon_micro = spec->epsilon_micro;
  self->local = local;
  if (cv_ranking_init(cv_params_number(params, "alpha"), self->radius != RADIUS_SOUND, spec->arms, &self->ranking) !=
      CV_OK) {
    free(self);
    return CV_ERR_NOMEM;
  }
  self->ranking.lies = (uint64_t)cv_params_number(params, "lies");
  cv_ranking_park_within(&self->ranking, spec, self->delta);
  for (uint32_t i = 0; i < spec->arms; i++) {
    self->ranking.arm[i].next = self->tokens_per_round;
  }
  *ret = &self->policy;
  return CV_OK;
}

static void expect(struct cv_policy *policy, uint32_t brokers) {
  of(policy)->use = cv_tail_use_of(brokers);
}

/* The radius of the mean token without its noise. */
static double scores_of(const struct ppar *self, uint64_t releases, uint64_t tokens) {
  double k = self->ranking.arms, t = (double)tokens, n = (double)releases;
  switch (self->radius) {
    case RADIUS_PRINTED:
      return 2 * sqrt(log(4 * k / self->delta) / (2 * t));
    case RADIUS_PROOF:
      return 2 * sqrt(2 * log(4 * k / self->delta) / t);
    default:
      return sqrt(log(4 * k * n * (n + 1) / self->delta) / (2 * t));
  }
}

/* What noise adds to it. A privatizer's noise widens all radii, the mechanism's noise only the sound one. */
static double tail_of(const struct ppar *self, uint64_t releases, uint64_t tokens, const struct cv_noise *noise,
                      double scale) {
  static const struct cv_noise silence = {0};
  double k = self->ranking.arms, n = (double)releases;
  const struct cv_noise *counted = self->radius == RADIUS_SOUND ? noise : &silence;
  double g = self->delta / (2 * k * n * (n + 1));
  double tail = self->has_exact_tails && scale == 0
                    ? cv_tail_exact_in_scores(counted, self->epsilon_micro, g)
                    : cv_tail_in_scores(counted, self->use, self->epsilon_micro, scale, tokens, g);
  return tail / (double)tokens;
}

static bool is_known(const struct known_radius *known, uint64_t releases, const struct cv_release *release) {
  const struct cv_noise *noise = &release->noise;
  bool same = known->releases == releases && known->tokens == release->tokens && known->noise.groups == noise->groups;
  for (uint32_t i = 0; same && i < noise->groups; i++) {
    const struct cv_noise_group *a = &known->noise.group[i], *b = &noise->group[i];
    same = a->scale == b->scale && a->count == b->count;
  }
  return same;
}

/* `scale` is constant in a campaign, so the cache does not compare it. */
static const struct known_radius *remembered_radius(struct ppar *self, uint64_t releases,
                                                    const struct cv_release *release, double scale) {
  if (!is_known(&self->known, releases, release)) {
    self->known = (struct known_radius){.releases = releases,
                                        .tokens = release->tokens,
                                        .noise = release->noise,
                                        .scores = scores_of(self, releases, release->tokens),
                                        .tail = tail_of(self, releases, release->tokens, &release->noise, scale)};
  }
  return &self->known;
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct ppar *self = of(policy);
  CV_REQUIRE(release->arm < self->ranking.arms && release->tokens > 0);
  struct cv_ranked *arm = &self->ranking.arm[release->arm];
  uint64_t releases = ++self->releases[release->arm];
  struct cv_feedback feedback = cv_local_feedback(&self->local, release->arm);
  double mean = (double)release->noisy_sum / (double)CV_GRID / (double)release->tokens;
  arm->tokens = release->tokens;
  arm->mean = cv_feedback_score(feedback, mean);
  double range = (double)(self->local.high - self->local.low) / (double)CV_GRID;
  const struct known_radius *known = remembered_radius(self, releases, release, feedback.scale);
  double radius = (known->scores + known->tail) / fabs(feedback.slope);
  arm->give = range / (double)release->tokens / fabs(feedback.slope);
  arm->noisy_mean = arm->mean;
  arm->share = arm->give;
  arm->radius = radius + (double)self->ranking.lies * arm->give;
  /* What the privatizer's bits widen is noise, too: without it the slope is 1. */
  arm->noise = radius - known->scores;
  cv_ranking_touch(&self->ranking);
}

static void plan(struct ppar *self, struct cv_policy_step *step) {
  struct cv_ranking_bounds b = cv_ranking_bounds_of(&self->ranking);
  uint32_t best = self->ranking.by_leader ? b.leader : b.top;
  for (uint32_t i = 0; i < self->ranking.arms; i++) {
    const struct cv_ranked *arm = &self->ranking.arm[i];
    bool is_worth = cv_ranking_is_undecided(&self->ranking, i) && !(arm->is_hopeless && self->ranking.has_hope);
    if (cv_ranking_is_active(&self->ranking, i) && !arm->is_exhausted && (!self->hold || is_worth || i == best)) {
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = self->tokens_per_round};
      self->ranking.asked += self->tokens_per_round;
    }
  }
}

static bool exhaust(struct cv_policy *policy, uint32_t i) {
  cv_ranking_exhaust(&of(policy)->ranking, i);
  return true;
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct ppar *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 2 * (size_t)self->ranking.arms, self->ranking.arms));
  step->done = cv_ranking_decide(&self->ranking, step);
  if (!step->done) {
    plan(self, step);
  }
  return CV_OK;
}

static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  cv_ranking_standing(&((const struct ppar *)policy)->ranking, i, ret);
}

static struct cv_ranking *ranking(struct cv_policy *policy) {
  return &of(policy)->ranking;
}

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct ppar *self = (const struct ppar *)policy;
  const struct cv_ranking *ranking = &self->ranking;
  cv_buf_put_u8(out, CV_RANKING_STATE);
  cv_buf_put_u64(out, ranking->asked);
  cv_buf_put_u32(out, ranking->rank_class);
  cv_buf_put_u32(out, ranking->arms);
  for (uint32_t i = 0; i < ranking->arms; i++) {
    const struct cv_ranked *arm = &ranking->arm[i];
    cv_buf_put_u64(out, self->releases[i]);
    cv_buf_put_u64(out, arm->tokens);
    cv_buf_put_f64(out, arm->mean);
    cv_buf_put_f64(out, arm->radius);
    cv_buf_put_u32(out, arm->rank_class);
    cv_buf_put_u8(out, arm->below);
    cv_ranking_save_arm(ranking, i, out);
  }
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct ppar *self = of(policy);
  struct cv_ranking *ranking = &self->ranking;
  unsigned version = cv_read_u8(in);
  if (version != CV_RANKING_STATE && version != CV_RANKING_STATE_BEFORE) {
    return CV_ERR_VERSION;
  }
  ranking->asked = cv_read_u64(in);
  ranking->rank_class = cv_read_u32(in);
  if (cv_read_u32(in) != ranking->arms || ranking->rank_class < 1 || ranking->rank_class > ranking->arms) {
    return CV_ERR_DAMAGED;
  }
  for (uint32_t i = 0; i < ranking->arms; i++) {
    struct cv_ranked *arm = &ranking->arm[i];
    self->releases[i] = cv_read_u64(in);
    arm->tokens = cv_read_u64(in);
    arm->mean = cv_read_f64(in);
    arm->radius = cv_read_f64(in);
    arm->noise = arm->tokens > 0 ? (double)NAN : 0;
    arm->noisy_mean = arm->mean;
    arm->rank_class = cv_read_u32(in);
    arm->below = cv_read_u8(in) != 0;
    CV_TRY(cv_ranking_load_arm(ranking, i, version, in));
    if (!cv_ranking_is_plausible(ranking, arm) || (self->releases[i] > 0) != (arm->tokens > 0) ||
        self->releases[i] >= RELEASES_END) {
      return CV_ERR_DAMAGED;
    }
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_ppar = {
    .name = "ppar",
    .about = "the classes of the items (PPAR)",
    .kind = CV_POLICY_RANKING,
    .tells_noise = true,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .has_floor = true,
    .fits = fits,
    .create = create,
    .reads_noise = true,
    .expect = expect,
    .destroy = destroy,
    .apply = apply,
    .exhaust = exhaust,
    .step = make_step,
    .standing = standing,
    .ranking = ranking,
    .save = save,
    .load = load,
};
