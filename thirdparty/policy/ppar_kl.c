/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ppar-kl: PPAR's classes (ranking.h) by intervals that fit the tokens and the noise (confidence.h), and by pulls of
 * the arms that decide next. The error probability is at most delta, as docs/beyond.md proves; which arm is pulled, and
 * how often, affects only the cost.
 *
 * Parameters:
 *   alpha             rank span, >= 0; 0 ranks fully
 *   delta             error probability, in (0,1); default 0.1
 *   scores            what is known of an item's scores
 *     independent         independent draws from the item's law (default)
 *     without-replacement  rows of a data set, each at most once, in random order
 *     reacting            only that the mean stays the same, whatever was released before
 *   tokens_per_round  the fewest tokens of an arm that a plan asks for, so that no release sums fewer; default 20
 *   arms_per_plan     arms that a plan pulls; default 1, which needs the fewest tokens. More make fewer plans
 *   lies              false tokens that do not turn a class; default 0
 *   boundary  park    park arms that the token limit cannot decide (parking.h); in new campaign files
 *             feed    pull them until the limit
 *   tails     exact     the scheme by the exact tail of the noises of the largest scale; in new campaign files
 *             chernoff  by the moments of all. Looks always have the exact tail, the mixture the moments
 *
 * An arm's interval is the intersection of those at all its releases, by three kinds of limits, each for both sides:
 *
 *   looks    at the first three releases, whose lengths are fixed in advance: .4 delta, shares .4, .24, .24 of .88
 *   mixture  at all releases: the other .6 delta
 *   scheme   at the n-th release, all lengths fixed in advance: delta/(n(n+1))
 *
 * Independent scores under `segments` or exact sums have looks and mixture. Under `doubling`, and with reacting scores,
 * the mixture has all of delta. Without replacement, and under any other mechanism, there is the scheme alone, since
 * the mixture needs fresh noise at each release and a constant conditional mean. Reacting scores need the mixture, and
 * so one of the first three mechanisms; the scheme needs a new release for every plan, and so not `doubling`.
 *
 * Pulls: every arm's first release has ceil((L - ln 2 + 1.6)/d) tokens, L the level of its look, d the private
 * divergence of an arm alpha below the best possible one (cv_look_first(), also for two brokers); each next one has 1.5
 * times as many, up to the third. Then the widest undecided arm is pulled, or its reference (the arm with the highest
 * upper bound if it looks good, the highest lower bound otherwise) if that one's half of the doubt exceeds n^(-1/3) of
 * the arm's own, n the number of undecided arms that look like it, or if its interval is twice as wide. The new length
 * is the old times ((w + w')/gap)^2 within [1.1, 2]: what would decide if the widths fell as the root. By the scheme
 * all lengths grow by 1.4. No plan asks for fewer than tokens_per_round.
 *
 * Behind randomized response all this is about the mean token, and limits are converted to scores. Laplace noise in
 * tokens is refused: tokens beyond [0,1] have no such limits.
 *
 * A step costs O(K log K) and a release some microseconds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/confidence.h"
#include "thirdparty/policy/ranking.h"
#include "thirdparty/policy/step.h"

enum { LOOKS = 3 };
/* Limits of a stored state: more than any campaign has. */
#define TOKENS_END (UINT64_C(1) << 52)
static const uint32_t NOBODY = UINT32_MAX;

static const double LOOK_SHARE = .4;
static const double look_share[LOOKS] = {.4 / .88, .24 / .88, .24 / .88};
static const double FIRST_GROWTH = 1.5, SCHEME_GROWTH = 1.4, LEAST_GROWTH = 1.1, MOST_GROWTH = 2;
/* Where alpha = 0 says nothing about distances, the first look is that of this alpha. */
static const double FALLBACK_ALPHA = .1;

enum scores { SCORES_INDEPENDENT, SCORES_ONCE, SCORES_REACTING };
static const char *const score_words[] = {"independent", "without-replacement", "reacting", NULL};

static const struct cv_param_rule rules[] = {
    {.key = "alpha",
     .low = 0,
     .high = (double)INFINITY,
     .fallback = (double)NAN,
     .help = "rank span in scores: items within alpha of the best of a class are in it; 0 ranks fully"},
    /* The lower end prevents underflow of the levels. */
    {.key = "delta",
     .low = 1e-100,
     .high = 1,
     .high_open = true,
     .fallback = 0.1,
     .help = "the probability of a wrong ranking, at most"},
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
    {.key = "arms_per_plan",
     .low = 1,
     .high = CV_ARMS_MAX,
     .whole = true,
     .fallback = 1,
     .help = "how many items are asked about at the same time"},
    CV_LIES_RULE,
    CV_BOUNDARY_RULE,
    CV_TAILS_RULE,
};

/* The evidence of an arm. */
struct evidence {
  uint64_t releases;        /* n */
  int64_t sum;              /* S, in grid units */
  double low, high;         /* of the mean token */
  double give;              /* if lies are counted: how far one false token moves `low` or `high` */
  bool is_tried, is_wanted; /* scratch of a step */
};

struct ppar_kl {
  struct cv_policy policy;
  double alpha, delta;
  uint32_t least, arms_per_plan; /* least: tokens of an arm in a plan */
  bool has_looks, has_mixture;   /* neither: the scheme */
  bool has_exact_tails;          /* of the scheme */
  double unit;                   /* of noise, in scores; 0: none */
  uint32_t brokers;              /* that are expected to add noise */
  uint32_t first;                /* tokens of the first release */
  struct cv_local local;
  struct cv_look_kept look[LOOKS];
  struct cv_look exact[CV_TILT_EXACT]; /* kept for the scheme */
  struct cv_mixture mixture;
  struct cv_ranking ranking;
  struct evidence evidence[];
};

static struct ppar_kl *of(struct cv_policy *policy) {
  return (struct ppar_kl *)policy;
}

static enum scores scores_of(const struct cv_spec *spec) {
  const char *word = cv_params_text(&spec->policy.params, "scores");
  return strcmp(word, "reacting") == 0      ? SCORES_REACTING
         : strcmp(word, "independent") == 0 ? SCORES_INDEPENDENT
                                            : SCORES_ONCE;
}

/* Each release adds one fresh noise to the one before, or none. */
static bool adds_fresh_noise(const struct cv_traits *traits) {
  return cv_traits_repeats(traits) || cv_traits_exact_sums(traits) || traits->noise == CV_NOISE_LINEAR;
}

static bool sums_all(const struct cv_traits *traits) {
  return traits->sums != CV_SUMS_ITEM;
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  const struct cv_traits *traits = cv_traits_of(spec->mechanism.name);
  if (!sums_all(traits)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s needs the sum of all tokens of an item; expected mechanism %s, not %s", spec->policy.name,
                   cv_traits_list(sums_all).text, spec->mechanism.name);
  }
  if (!cv_local_is_bounded(cv_local_find(spec->privatizer.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs tokens between 0 and 1; expected another privatizer than %s",
                   spec->policy.name, spec->privatizer.name);
  }
  if (scores_of(spec) == SCORES_ONCE && cv_traits_repeats(traits)) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "policy %s without replacement needs a new release for every plan; expected another mechanism than %s",
        spec->policy.name, cv_traits_list(cv_traits_repeats).text);
  }
  if (scores_of(spec) == SCORES_REACTING && !adds_fresh_noise(traits)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s with reacting scores needs fresh noise in each release; expected mechanism %s, not %s",
                   spec->policy.name, cv_traits_list(adds_fresh_noise).text, spec->mechanism.name);
  }
  return CV_OK;
}

/* ---- limits ---- */

/* ln(2K/(share delta)): an error at one look of one side of one arm has probability share delta/(2K). */
static double level_of(const struct ppar_kl *self, double share) {
  return log(2.0 * self->ranking.arms / self->delta) - log(share);
}

static double level_of_look(const struct ppar_kl *self, uint64_t number) {
  double n = (double)number;
  return level_of(self, self->has_looks ? LOOK_SHARE * look_share[number - 1] : 1 / (n * (n + 1)));
}

static double level_of_mixture(const struct ppar_kl *self) {
  return level_of(self, self->has_looks ? 1 - LOOK_SHARE : 1);
}

static uint32_t grown(const struct ppar_kl *self, uint64_t tokens, double growth) {
  double more = ceil((double)tokens * (growth - 1));
  return more >= CV_PLAN_TOKENS_MAX ? CV_PLAN_TOKENS_MAX : more < self->least ? self->least : (uint32_t)more;
}

/* The tokens of an arm's n-th release where lengths are fixed in advance. */
static uint64_t fixed_length(const struct ppar_kl *self, uint64_t n) {
  uint64_t tokens = self->first;
  for (uint64_t i = 1; i < n; i++) {
    tokens += grown(self, tokens, self->has_looks ? FIRST_GROWTH : SCHEME_GROWTH);
  }
  return tokens;
}

static bool is_fixed(const struct ppar_kl *self, uint64_t n) {
  return self->has_looks ? n <= LOOKS : !self->has_mixture;
}

/* A lower limit. It is convex in the sum: Chernoff's bounds and the logarithm of the mixture are convex in sum and mean
 * together. So a false token moves it by at most what one more token of 1 would have added. */
struct limit {
  double low, give;
};

static struct cv_noisy_sum one_more(const struct cv_noisy_sum *at) {
  struct cv_noisy_sum more = *at;
  more.sum += 1;
  return more;
}

static bool counts_lies(const struct ppar_kl *self) {
  return self->ranking.counts_lies || self->ranking.lies > 0;
}

static void lift(struct limit *limit, double low, double next) {
  if (low > limit->low) {
    *limit = (struct limit){.low = low, .give = next < 1 ? next - low : 1};
  }
}

static void lift_by_mixture(const struct ppar_kl *self, const struct cv_noisy_sum *at, struct limit *limit) {
  const struct cv_noisy_sum more = one_more(at);
  double level = level_of_mixture(self), low = cv_mixture_low(&self->mixture, at, level);
  lift(limit, low, counts_lies(self) ? cv_mixture_low(&self->mixture, &more, level) : low);
}

static void lift_by_look(const struct ppar_kl *self, const struct cv_look *look, const struct cv_noisy_sum *at,
                         double level, struct limit *limit) {
  const struct cv_noisy_sum more = one_more(at);
  double low = cv_look_low(look, at, level);
  lift(limit, low, counts_lies(self) ? cv_look_low(look, &more, level) : low);
}

/* Raises the lower limits of the mean token, and of 1 minus it, as far as this release allows. */
static void exclude(struct ppar_kl *self, uint64_t n, const struct cv_noisy_sum *at, struct limit *low,
                    struct limit *rest) {
  struct cv_noisy_sum other = *at;
  other.sum = at->tokens - at->sum;
  if (self->has_mixture) {
    lift_by_mixture(self, at, low);
    lift_by_mixture(self, &other, rest);
  }
  /* A look at another length than the fixed one proves nothing. */
  if (is_fixed(self, n) && at->tokens == (double)fixed_length(self, n)) {
    struct cv_look any;
    const struct cv_look *look = self->has_looks ? cv_look_keep(&self->look[n - 1], at) : &any;
    if (!self->has_looks && self->has_exact_tails) {
      cv_look_init_exact(at, self->exact, &any);
    } else if (!self->has_looks) {
      cv_look_init_any(at, &any);
    }
    double level = level_of_look(self, n);
    lift_by_look(self, look, at, level, low);
    lift_by_look(self, look, &other, level, rest);
  }
}

/* ---- creation ---- */

static uint32_t first_length(const struct ppar_kl *self) {
  double alpha = self->ranking.alpha > 0 ? fmin(self->ranking.alpha, 1) : FALLBACK_ALPHA;
  struct cv_feedback feedback = cv_local_feedback(&self->local, 0);
  double best = feedback.offset + feedback.slope;
  double epsilon = self->unit > 0 ? 1 / self->unit : (double)INFINITY;
  double tokens = cv_look_first(epsilon, self->brokers, best, best - feedback.slope * alpha, level_of_look(self, 1));
  return tokens < CV_PLAN_TOKENS_MAX ? (uint32_t)fmax(tokens, self->least) : CV_PLAN_TOKENS_MAX;
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct ppar_kl *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->evidence[0]));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  const struct cv_params *params = &spec->policy.params;
  const struct cv_traits *traits = cv_traits_of(spec->mechanism.name);
  enum scores scores = scores_of(spec);
  enum cv_err err = cv_local_init(&spec->privatizer, spec->arms, &self->local, NULL);
  if (err == CV_OK) {
    err = cv_ranking_init(cv_params_number(params, "alpha"), false, spec->arms, &self->ranking);
  }
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->policy.class = &cv_policy_ppar_kl;
  self->delta = cv_params_number(params, "delta");
  self->least = cv_policy_round(spec);
  self->ranking.lies = (uint64_t)cv_params_number(params, "lies");
  cv_ranking_park_within(&self->ranking, spec, self->delta);
  self->has_exact_tails = cv_ranking_has_exact_tails(spec);
  self->arms_per_plan = (uint32_t)cv_params_number(params, "arms_per_plan");
  self->has_mixture = scores != SCORES_ONCE && adds_fresh_noise(traits);
  self->has_looks = self->has_mixture && scores == SCORES_INDEPENDENT && !cv_traits_repeats(traits);
  self->unit = cv_spec_has_noise(spec) ? (double)CV_MICRO / (double)spec->epsilon_micro : 0;
  self->brokers = 1;
  self->first = first_length(self);
  cv_mixture_init(self->unit, &self->mixture);
  for (uint32_t i = 0; i < spec->arms; i++) {
    self->evidence[i].high = 1;
  }
  *ret = &self->policy;
  return CV_OK;
}

static void expect(struct cv_policy *policy, uint32_t brokers) {
  struct ppar_kl *self = of(policy);
  self->brokers = brokers;
  self->first = first_length(self);
}

static void destroy(struct cv_policy *policy) {
  cv_ranking_fini(&of(policy)->ranking);
  free(policy);
}

/* ---- releases ---- */

/* A mean token as a mean score. */
static double score_of(const struct ppar_kl *self, uint32_t i, double token) {
  return fmin(fmax(cv_feedback_score(cv_local_feedback(&self->local, i), token), 0), 1);
}

/* The mean score of the last release. */
static double noisy_mean(const struct ppar_kl *self, uint32_t i) {
  double token = (double)self->evidence[i].sum / (double)CV_GRID / (double)self->ranking.arm[i].tokens;
  return cv_feedback_score(cv_local_feedback(&self->local, i), token);
}

/* Further tokens in the arm's next release. */
static uint32_t next_length(const struct ppar_kl *self, uint32_t i, double growth) {
  uint64_t tokens = self->ranking.arm[i].tokens, n = self->evidence[i].releases + 1;
  uint64_t fixed = is_fixed(self, n) ? fixed_length(self, n) : 0;
  return fixed > tokens ? (uint32_t)(fixed - tokens) : grown(self, tokens, growth);
}

static void show(struct ppar_kl *self, uint32_t i) {
  const struct evidence *evidence = &self->evidence[i];
  struct cv_ranked *arm = &self->ranking.arm[i];
  double a = score_of(self, i, evidence->low), b = score_of(self, i, evidence->high);
  arm->mean = (a + b) / 2;
  arm->radius = fabs(b - a) / 2 + 1e-15; /* rounding */
  arm->give = evidence->give / fabs(cv_local_feedback(&self->local, i).slope);
  arm->noisy_mean = noisy_mean(self, i);
  arm->next = next_length(self, i, LEAST_GROWTH);
  /* cv_limits_narrow() makes a point of limits that contradict each other. */
  arm->contradicts = evidence->low >= evidence->high;
  cv_ranking_touch(&self->ranking);
}

/* Takes in new limits of the mean token, less what the allowed lies can do. An end that stays where it was keeps what a
 * false token can do to it. */
static void narrow(struct evidence *evidence, double lies, const struct limit *low, const struct limit *rest) {
  struct evidence before = *evidence;
  cv_limits_narrow(low->low - lies * low->give, 1 - rest->low + lies * rest->give, &evidence->low, &evidence->high);
  double below = evidence->low > before.low ? low->give : before.give;
  double above = evidence->high < before.high ? rest->give : before.give;
  evidence->give = fmax(below, above);
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct ppar_kl *self = of(policy);
  CV_REQUIRE(release->arm < self->ranking.arms && release->tokens > 0);
  struct cv_ranked *arm = &self->ranking.arm[release->arm];
  struct evidence *evidence = &self->evidence[release->arm];
  if (release->tokens <= arm->tokens) {
    return; /* a repeated release */
  }
  evidence->releases++;
  evidence->sum = release->noisy_sum;
  arm->tokens = release->tokens;
  struct cv_noisy_sum at = {.tokens = (double)release->tokens,
                            .sum = (double)release->noisy_sum / (double)CV_GRID,
                            .unit = self->unit,
                            .noise = &release->noise};
  struct limit low = {0}, rest = {0};
  exclude(self, evidence->releases, &at, &low, &rest);
  narrow(evidence, (double)self->ranking.lies, &low, &rest);
  struct cv_feedback feedback = cv_local_feedback(&self->local, release->arm);
  arm->share = 1 / at.tokens / fabs(feedback.slope);
  show(self, release->arm);
}

/* ---- plans ---- */

/* The mean score as far as is known. */
static double estimate(const struct ppar_kl *self, uint32_t i) {
  const struct evidence *evidence = &self->evidence[i];
  double token = (double)evidence->sum / (double)CV_GRID / (double)self->ranking.arm[i].tokens;
  return score_of(self, i, fmin(fmax(token, evidence->low), evidence->high));
}

/* An undecided arm against its reference. */
struct duel {
  uint32_t arm, reference;
  bool is_good;        /* looks as if it belonged to the class */
  double width, other; /* the arm's half of the doubt and its reference's */
  double gap;          /* between their estimates, beyond alpha; negative never */
};

/* The arm of S with the highest upper bound other than i. */
static uint32_t highest_other(const struct cv_ranking *ranking, const struct cv_ranking_bounds *bounds, uint32_t i) {
  uint32_t best = NOBODY;
  if (i != bounds->top) {
    return bounds->top;
  }
  for (uint32_t j = 0; j < ranking->arms; j++) {
    const struct cv_ranked *arm = &ranking->arm[j];
    if (j != i && cv_ranking_is_active(ranking, j) &&
        (best == NOBODY || arm->mean + arm->radius > ranking->arm[best].mean + ranking->arm[best].radius)) {
      best = j;
    }
  }
  return best;
}

static struct duel duel_of(const struct ppar_kl *self, const struct cv_ranking_bounds *bounds, double best,
                           uint32_t i) {
  const struct cv_ranking *ranking = &self->ranking;
  const struct cv_ranked *arm = &ranking->arm[i];
  double mean = estimate(self, i);
  bool is_good = mean >= best - ranking->alpha;
  uint32_t reference = is_good ? highest_other(ranking, bounds, i) : bounds->sure;
  const struct cv_ranked *other = &ranking->arm[reference];
  double theirs = estimate(self, reference);
  return (struct duel){.arm = i,
                       .reference = reference,
                       .is_good = is_good,
                       .width = is_good ? mean - (arm->mean - arm->radius) : arm->mean + arm->radius - mean,
                       .other = is_good ? other->mean + other->radius - theirs : theirs - (other->mean - other->radius),
                       .gap = fabs(mean - theirs + ranking->alpha)};
}

static void want(struct ppar_kl *self, uint32_t i, double growth, struct cv_policy_step *step) {
  uint64_t left = cv_ranking_left(&self->ranking);
  uint32_t more = next_length(self, i, growth), least = next_length(self, i, LEAST_GROWTH);
  /* Rather a shorter release than none at all. */
  if (self->ranking.parks && more > left && least <= left) {
    more = (uint32_t)left;
  }
  self->evidence[i].is_wanted = true;
  self->ranking.asked += more;
  step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = more};
}

/* The widest undecided arm that this plan has not tried; `looks_like[is_good]` counts the undecided arms. */
static struct duel widest(struct ppar_kl *self, const struct cv_ranking_bounds *bounds, uint32_t looks_like[2]) {
  struct duel found = {.arm = NOBODY, .width = -1};
  double best = 0;
  looks_like[0] = looks_like[1] = 0;
  for (uint32_t i = 0; i < self->ranking.arms; i++) {
    best = cv_ranking_is_active(&self->ranking, i) ? fmax(best, estimate(self, i)) : best;
  }
  for (uint32_t i = 0; i < self->ranking.arms; i++) {
    bool is_skipped = self->ranking.arm[i].is_hopeless && self->ranking.has_hope;
    if (!cv_ranking_is_undecided(&self->ranking, i) || is_skipped) {
      continue;
    }
    struct duel duel = duel_of(self, bounds, best, i);
    looks_like[duel.is_good]++;
    if (!self->evidence[i].is_tried && duel.width > found.width) {
      found = duel;
    }
  }
  return found;
}

/* Whether the reference's doubt delays the decision. Its half may be 0 where the estimate lies at the interval's end:
 * then its whole doubt counts, once the arm's is the half of that. */
static bool holds_up(const struct ppar_kl *self, const struct duel *duel, uint32_t alike) {
  const struct cv_ranked *arm = &self->ranking.arm[duel->arm], *reference = &self->ranking.arm[duel->reference];
  return duel->other > duel->width / cbrt(alike) || reference->radius > 2 * arm->radius;
}

/* Pulls the widest undecided arms or their references. */
static void plan_duels(struct ppar_kl *self, struct cv_policy_step *step) {
  struct cv_ranking_bounds bounds = cv_ranking_bounds_of(&self->ranking);
  for (uint32_t n = 0; n < self->arms_per_plan && n < bounds.undecided; n++) {
    uint32_t looks_like[2];
    struct duel duel = widest(self, &bounds, looks_like);
    if (duel.arm == NOBODY) { /* the rest is hopeless */
      break;
    }
    double growth = pow((duel.width + duel.other) / duel.gap, 2);
    bool can_pull = !self->ranking.arm[duel.reference].is_exhausted;
    uint32_t pulled = can_pull && holds_up(self, &duel, looks_like[duel.is_good]) ? duel.reference : duel.arm;
    self->evidence[duel.arm].is_tried = true;
    if (!self->evidence[pulled].is_wanted) {
      /* An infinite quotient, or none of two zeros, is a gap too small to see. */
      want(self, pulled, growth < MOST_GROWTH ? fmax(growth, LEAST_GROWTH) : MOST_GROWTH, step);
    }
  }
}

/* The first release of every arm. False if all have one. */
static bool plan_first(struct ppar_kl *self, struct cv_policy_step *step) {
  for (uint32_t i = 0; i < self->ranking.arms; i++) {
    if (self->evidence[i].releases == 0 && !self->ranking.arm[i].is_exhausted) {
      want(self, i, MOST_GROWTH, step);
    }
  }
  return step->wants > 0;
}

static bool exhaust(struct cv_policy *policy, uint32_t i) {
  cv_ranking_exhaust(&of(policy)->ranking, i);
  return true;
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct ppar_kl *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 2 * (size_t)self->ranking.arms, self->ranking.arms));
  for (uint32_t i = 0; i < self->ranking.arms; i++) {
    self->evidence[i].is_tried = self->evidence[i].is_wanted = false;
  }
  step->done = cv_ranking_decide(&self->ranking, step);
  if (!step->done && !plan_first(self, step)) {
    plan_duels(self, step);
  }
  return CV_OK;
}

static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  cv_ranking_standing(&((const struct ppar_kl *)policy)->ranking, i, ret);
}

/* ---- the stored state ---- */

static struct cv_ranking *ranking(struct cv_policy *policy) {
  return &of(policy)->ranking;
}

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct ppar_kl *self = (const struct ppar_kl *)policy;
  const struct cv_ranking *ranking = &self->ranking;
  cv_buf_put_u8(out, CV_RANKING_STATE);
  cv_buf_put_u64(out, ranking->asked);
  cv_buf_put_u32(out, ranking->rank_class);
  cv_buf_put_u32(out, ranking->arms);
  for (uint32_t i = 0; i < ranking->arms; i++) {
    const struct evidence *evidence = &self->evidence[i];
    cv_buf_put_u64(out, evidence->releases);
    cv_buf_put_u64(out, ranking->arm[i].tokens);
    cv_buf_put_u64(out, (uint64_t)evidence->sum);
    cv_buf_put_f64(out, evidence->low);
    cv_buf_put_f64(out, evidence->high);
    cv_buf_put_u32(out, ranking->arm[i].rank_class);
    cv_buf_put_u8(out, ranking->arm[i].below);
    cv_ranking_save_arm(ranking, i, out);
  }
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct ppar_kl *self = of(policy);
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
    struct evidence *evidence = &self->evidence[i];
    struct cv_ranked *arm = &ranking->arm[i];
    evidence->releases = cv_read_u64(in);
    arm->tokens = cv_read_u64(in);
    evidence->sum = (int64_t)cv_read_u64(in);
    evidence->low = cv_read_f64(in);
    evidence->high = cv_read_f64(in);
    arm->rank_class = cv_read_u32(in);
    arm->below = cv_read_u8(in) != 0;
    CV_TRY(cv_ranking_load_arm(ranking, i, version, in));
    bool is_interval = evidence->low >= 0 && evidence->low <= evidence->high && evidence->high <= 1;
    if (!is_interval || (evidence->releases > 0) != (arm->tokens > 0) || evidence->releases > arm->tokens ||
        arm->tokens >= TOKENS_END || !cv_ranking_is_plausible(ranking, arm)) {
      return CV_ERR_DAMAGED;
    }
    if (arm->tokens > 0) {
      show(self, i);
    }
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_ppar_kl = {
    .name = "ppar-kl",
    .about = "the classes of the items, with a fraction of the tokens of ppar",
    .kind = CV_POLICY_RANKING,
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
    .exhaust = exhaust,
    .step = make_step,
    .standing = standing,
    .ranking = ranking,
    .save = save,
    .load = load,
};
