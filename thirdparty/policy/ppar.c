/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PPAR, adaptive ranking (Chen, Yu, Li, Zou, Liang and Cheng, "PPAR: A Privacy-Preserving Adaptive Ranking Algorithm
 * for Multi-Armed-Bandit Crowdsourcing", 2022, Algorithm 1), as printed and in a sound variant.
 *
 * State: active set S, class l, settled set C_l within S, removed arms C_{l+1}. A round collects tokens_per_round
 * tokens of every arm to pull; then it settles arms of S in class l or removes them to class l+1. When all of S is
 * settled, S becomes C_{l+1}. The campaign ends when S is empty. A settled arm never moves again.
 *
 * Parameters:
 *   alpha             rank span, >= 0; 0 ranks fully (does not end if arms tie)
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
 *
 * Behind a privatizer with mean token offset + slope x (common/base/local.h) the mean token is converted back to x, and
 * the radius is divided by |slope|. Laplace noise in tokens widens the radius by its tail at delta/(2K n(n+1)).
 *
 * With printed and proof the leader is settled as soon as every other arm of S is settled or removed, and a new class
 * starts with a round of pulls (paper, lines 8 to 20). With sound the policy first tries to decide a new class with the
 * present releases, since the intervals hold at all times; an arm that moves down several classes in one step is
 * reported once, with the last comparison. A single arm is settled at once. The policy decides nothing before every arm
 * of S has a release.
 *
 * A step costs O(K log K), however many classes it opens.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/step.h"
#include "thirdparty/policy/tail.h"

enum radius { RADIUS_PRINTED, RADIUS_PROOF, RADIUS_SOUND };
enum { STATE_VERSION = 1 };
/* Limit of releases per arm in a stored state: more than any campaign has, and its square is a finite double. */
#define RELEASES_END (UINT64_C(1) << 48)
static const uint32_t NOBODY = UINT32_MAX;
static const double INFINITE = (double)INFINITY;

static const char *const radius_words[] = {"printed", "proof", "sound", NULL};
static const char *const settled_words[] = {"pull", "hold", NULL};

static const struct cv_param_rule rules[] = {
    {.key = "alpha", .low = 0, .high = (double)INFINITY, .fallback = (double)NAN},
    /* The lower end prevents underflow of delta/(2K n(n+1)). */
    {.key = "delta", .low = 1e-100, .high = 1, .high_open = true, .fallback = 0.1},
    {.key = "tokens_per_round", .low = 1, .high = UINT32_MAX, .whole = true, .fallback = 6000},
    {.key = "radius", .choices = radius_words, .fallback_text = "sound"},
    {.key = "settled", .choices = settled_words, .fallback_text = "hold"},
};

struct arm {
  uint64_t releases, tokens; /* n and T */
  double mean, radius;
  uint32_t rank_class; /* settled there; 0 = undecided */
  bool below;          /* undecided and removed from the present class */
  uint32_t removal;    /* 1 + index of its removal among the decisions of the present step; 0 = none */
};

/* Cache of the last radius, which depends only on counts and noise: those of a round's arms are mostly equal. */
struct known_radius {
  uint64_t releases, tokens;
  struct cv_noise noise;
  double radius;
};

struct ppar {
  struct cv_policy policy;
  double alpha, delta;
  uint32_t tokens_per_round;
  enum radius radius;
  bool hold;
  uint64_t epsilon_micro;
  struct cv_local local;
  struct known_radius known;
  uint32_t rank_class; /* l */
  uint32_t arms;       /* K */
  /* Scratch of fall(): arms sorted by upper bound, and the highest lower bound from each index on. */
  uint32_t *order;
  double *low;
  struct arm arm[];
};

/* The bounds over S that a pass compares arms with. */
struct bounds {
  uint32_t active, undecided;
  bool all_known;         /* every arm of S has a release */
  uint32_t leader;        /* best mean */
  uint32_t top;           /* highest upper bound */
  double high, next_high; /* the highest upper bound, and the highest of the others */
  double low;             /* the highest lower bound */
};

static struct ppar *of(struct cv_policy *policy) {
  return (struct ppar *)policy;
}

static bool is_active(const struct ppar *self, const struct arm *arm) {
  return !arm->below && (arm->rank_class == 0 || arm->rank_class == self->rank_class);
}

static bool is_undecided(const struct arm *arm) {
  return !arm->below && arm->rank_class == 0;
}

static void destroy(struct cv_policy *policy) {
  struct ppar *self = of(policy);
  free(self->order);
  free(self->low);
  free(self);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct cv_local local;
  if (cv_local_init(&spec->privatizer, spec->arms, &local, NULL) != CV_OK) {
    return CV_ERR_INVALID;
  }
  struct ppar *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->arm[0]));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  self->order = calloc(spec->arms, sizeof(*self->order));
  self->low = calloc(spec->arms, sizeof(*self->low));
  if (self->order == NULL || self->low == NULL) {
    destroy(&self->policy);
    return CV_ERR_NOMEM;
  }
  const struct cv_params *params = &spec->policy.params;
  const char *radius = cv_params_text(params, "radius");
  self->policy.class = &cv_policy_ppar;
  self->alpha = cv_params_number(params, "alpha");
  self->delta = cv_params_number(params, "delta");
  self->tokens_per_round = (uint32_t)cv_params_number(params, "tokens_per_round");
  self->radius = strcmp(radius, "printed") == 0 ? RADIUS_PRINTED
                 : strcmp(radius, "proof") == 0 ? RADIUS_PROOF
                                                : RADIUS_SOUND;
  self->hold = strcmp(cv_params_text(params, "settled"), "hold") == 0;
  self->epsilon_micro = spec->epsilon_micro;
  self->local = local;
  self->rank_class = 1;
  self->arms = spec->arms;
  *ret = &self->policy;
  return CV_OK;
}

/* The radius of the mean token. A privatizer's noise widens all radii, the mechanism's noise only the sound one. */
static double radius_of(const struct ppar *self, const struct arm *arm, const struct cv_noise *noise, double scale) {
  static const struct cv_noise silence = {0};
  double k = self->arms, t = (double)arm->tokens, n = (double)arm->releases;
  const struct cv_noise *counted = self->radius == RADIUS_SOUND ? noise : &silence;
  double tail =
      cv_tail_in_scores(counted, self->epsilon_micro, scale, arm->tokens, self->delta / (2 * k * n * (n + 1))) / t;
  switch (self->radius) {
    case RADIUS_PRINTED:
      return 2 * sqrt(log(4 * k / self->delta) / (2 * t)) + tail;
    case RADIUS_PROOF:
      return 2 * sqrt(2 * log(4 * k / self->delta) / t) + tail;
    default:
      return sqrt(log(4 * k * n * (n + 1) / self->delta) / (2 * t)) + tail;
  }
}

static bool is_known(const struct known_radius *known, const struct arm *arm, const struct cv_noise *noise) {
  bool same = known->releases == arm->releases && known->tokens == arm->tokens && known->noise.groups == noise->groups;
  for (uint32_t i = 0; same && i < noise->groups; i++) {
    const struct cv_noise_group *a = &known->noise.group[i], *b = &noise->group[i];
    same = a->scale == b->scale && a->count == b->count;
  }
  return same;
}

/* `scale` is constant in a campaign, so the cache does not compare it. */
static double remembered_radius(struct ppar *self, const struct arm *arm, const struct cv_noise *noise, double scale) {
  if (!is_known(&self->known, arm, noise)) {
    self->known = (struct known_radius){.releases = arm->releases,
                                        .tokens = arm->tokens,
                                        .noise = *noise,
                                        .radius = radius_of(self, arm, noise, scale)};
  }
  return self->known.radius;
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct ppar *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct arm *arm = &self->arm[release->arm];
  arm->releases++;
  arm->tokens = release->tokens;
  struct cv_feedback feedback = cv_local_feedback(&self->local, release->arm);
  double mean = (double)release->noisy_sum / (double)CV_GRID / (double)arm->tokens;
  arm->mean = (mean - feedback.offset) / feedback.slope;
  arm->radius = remembered_radius(self, arm, &release->noise, feedback.scale) / fabs(feedback.slope);
}

/* Inline, unlike fmax(). */
static double larger(double a, double b) {
  return a > b ? a : b;
}

static struct bounds bounds_of(const struct ppar *self) {
  struct bounds b = {
      .all_known = true, .leader = NOBODY, .top = NOBODY, .high = -INFINITE, .next_high = -INFINITE, .low = -INFINITE};
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    if (!is_active(self, arm)) {
      continue;
    }
    double high = arm->mean + arm->radius;
    b.active++;
    b.undecided += is_undecided(arm);
    b.all_known = b.all_known && arm->releases > 0;
    b.low = larger(b.low, arm->mean - arm->radius);
    if (b.leader == NOBODY || arm->mean > self->arm[b.leader].mean) {
      b.leader = i;
    }
    if (b.top == NOBODY || high > b.high) {
      b.next_high = b.high;
      b.high = high;
      b.top = i;
    } else {
      b.next_high = larger(b.next_high, high);
    }
  }
  return b;
}

/* Records a decision; a further removal of the same arm in one step replaces the first. The step has room for one
 * removal and one settlement of every arm. */
static void decide(struct ppar *self, uint32_t i, enum cv_decision_kind kind, double reference,
                   struct cv_policy_step *step) {
  struct arm *arm = &self->arm[i];
  struct cv_decision *at;
  if (kind == CV_DECISION_REMOVE && arm->removal > 0) {
    at = &step->decision[arm->removal - 1];
  } else {
    at = &step->decision[step->decisions++];
  }
  *at = (struct cv_decision){.kind = kind,
                             .arm = i,
                             .rank_class = self->rank_class,
                             .tokens = arm->tokens,
                             .mean = arm->mean,
                             .radius = arm->radius,
                             .reference = reference};
  if (kind == CV_DECISION_REMOVE) {
    arm->below = true;
    arm->removal = (uint32_t)(at - step->decision) + 1;
  } else {
    arm->rank_class = self->rank_class;
  }
}

static void decide_by_interval(struct ppar *self, uint32_t i, const struct bounds *b, struct cv_policy_step *step) {
  const struct arm *arm = &self->arm[i];
  double settle_at = (i == b->top ? b->next_high : b->high) - self->alpha;
  double remove_below = b->low - self->alpha;
  if (arm->mean - arm->radius >= settle_at) {
    decide(self, i, CV_DECISION_SETTLE, settle_at, step);
  } else if (arm->mean + arm->radius < remove_below) {
    decide(self, i, CV_DECISION_REMOVE, remove_below, step);
  }
}

static void decide_by_leader(struct ppar *self, uint32_t i, const struct bounds *b, struct cv_policy_step *step) {
  const struct arm *arm = &self->arm[i];
  double reference = self->arm[b->leader].mean - self->alpha;
  if (arm->mean >= reference + arm->radius) {
    decide(self, i, CV_DECISION_SETTLE, reference, step);
  } else if (arm->mean < reference - arm->radius) {
    decide(self, i, CV_DECISION_REMOVE, reference, step);
  }
}

/* Decides the arms of S once, with the bounds of S before the pass. Returns the number of arms left undecided. */
static uint32_t pass(struct ppar *self, struct cv_policy_step *step) {
  struct bounds b = bounds_of(self);
  if (!b.all_known) {
    return b.undecided;
  }
  uint32_t left = 0, last = NOBODY;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (!is_undecided(&self->arm[i])) {
      continue;
    }
    if (self->radius == RADIUS_SOUND) {
      decide_by_interval(self, i, &b, step);
    } else {
      decide_by_leader(self, i, &b, step);
    }
    if (is_undecided(&self->arm[i])) {
      left++;
      last = i;
    }
  }
  if (self->radius != RADIUS_SOUND && left == 1 && last == b.leader) {
    decide(self, last, CV_DECISION_SETTLE, self->arm[last].mean - self->alpha, step);
    left = 0;
  }
  return left;
}

/* S <- C_{l+1}; returns the size of the new S. */
static uint32_t open_class(struct ppar *self) {
  uint32_t active = 0;
  self->rank_class++;
  for (uint32_t i = 0; i < self->arms; i++) {
    active += self->arm[i].below;
    self->arm[i].below = false;
  }
  return active;
}

/* ---- several classes in one step, without new releases ---- */

static double high_of(const struct ppar *self, uint32_t i) {
  return self->arm[i].mean + self->arm[i].radius;
}

static int by_high(const void *a, const void *b, void *data) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  double x = high_of(data, left), y = high_of(data, right);
  return x != y ? (x > y ? -1 : 1) : (left > right) - (left < right);
}

static int by_number(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return (left > right) - (left < right);
}

/* Sorts S, all of it undecided, by upper bound, and sets the suffix maxima of lower bounds. Returns the size of S. */
static uint32_t line_up(struct ppar *self) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (is_undecided(&self->arm[i])) {
      self->order[n++] = i;
    }
  }
  qsort_r(self->order, n, sizeof(*self->order), by_high, self);
  for (uint32_t at = n; at-- > 0;) {
    const struct arm *arm = &self->arm[self->order[at]];
    self->low[at] = fmax(arm->mean - arm->radius, at + 1 < n ? self->low[at + 1] : -INFINITE);
  }
  return n;
}

/* With S = order[from ..]: the index of the first arm that is removed from it. */
static uint32_t class_end(const struct ppar *self, uint32_t from, uint32_t n) {
  uint32_t end = from + 1;
  while (end < n && high_of(self, self->order[end]) >= self->low[from] - self->alpha) {
    end++;
  }
  return end;
}

/* Settles arms of one class where possible, in order of number like pass(). Returns the number of arms left. */
static uint32_t settle_class(struct ppar *self, uint32_t from, uint32_t end, uint32_t n, struct cv_policy_step *step) {
  uint32_t top = self->order[from], left = 0;
  double high = high_of(self, top), next_high = from + 1 < n ? high_of(self, self->order[from + 1]) : -INFINITE;
  qsort(self->order + from, end - from, sizeof(*self->order), by_number);
  for (uint32_t at = from; at < end; at++) {
    uint32_t i = self->order[at];
    double settle_at = (i == top ? next_high : high) - self->alpha;
    if (self->arm[i].mean - self->arm[i].radius >= settle_at) {
      decide(self, i, CV_DECISION_SETTLE, settle_at, step);
    } else {
      left++;
    }
  }
  return left;
}

static void remove_all(struct ppar *self, uint32_t from, uint32_t end, double reference, struct cv_policy_step *step) {
  for (uint32_t at = from; at < end; at++) {
    decide(self, self->order[at], CV_DECISION_REMOVE, reference, step);
  }
}

/*
 * Equivalent to alternating pass() and open_class(), but O(K log K) for any number of classes: the arms removed from S
 * are a suffix of S sorted by upper bound, and only the last removal of an arm is reported. Requires that every arm of
 * S is undecided, has a release and was removed from the previous class in this step. True if every arm is settled.
 */
static bool fall(struct ppar *self, struct cv_policy_step *step) {
  uint32_t n = line_up(self), from = 0, end = class_end(self, from, n);
  while (settle_class(self, from, end, n, step) == 0) {
    if (end == n) {
      return true;
    }
    double reference = self->low[from] - self->alpha;
    from = end;
    end = class_end(self, from, n);
    remove_all(self, from, end, reference, step);
    for (uint32_t at = from; at < end; at++) {
      self->arm[self->order[at]].below = false;
    }
    self->rank_class++;
  }
  remove_all(self, end, n, self->low[from] - self->alpha, step);
  return false;
}

static void plan(const struct ppar *self, struct cv_policy_step *step) {
  struct bounds b = bounds_of(self);
  uint32_t best = self->radius == RADIUS_SOUND ? b.top : b.leader;
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    if (is_active(self, arm) && (!self->hold || is_undecided(arm) || i == best)) {
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = self->tokens_per_round};
    }
  }
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct ppar *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, 2 * (size_t)self->arms, self->arms));
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].removal = 0;
  }
  bool has_passed = false;
  /* A pass that decides all of S opens the next class. The printed rules then collect new tokens first; the sound rule
   * goes on, from its second class with fall(). */
  while (pass(self, step) == 0) {
    uint32_t active = open_class(self);
    if (active == 0) {
      step->done = true;
      /* Undo open_class(), so that a further step after the end finds the same state. */
      self->rank_class--;
      return CV_OK;
    }
    if (self->radius != RADIUS_SOUND && active > 1) {
      break;
    }
    if (has_passed && self->radius == RADIUS_SOUND) {
      step->done = fall(self, step);
      break;
    }
    has_passed = true;
  }
  if (!step->done) {
    plan(self, step);
  }
  return CV_OK;
}

static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  const struct ppar *self = (const struct ppar *)policy;
  CV_REQUIRE(i < self->arms);
  const struct arm *arm = &self->arm[i];
  *ret = (struct cv_standing){.arm = i, .rank_class = arm->rank_class, .tokens = arm->tokens};
  /* Without a release: the interval [0,1]. */
  ret->mean = arm->releases > 0 ? arm->mean : 0.5;
  ret->radius = arm->releases > 0 ? arm->radius : 0.5;
}

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct ppar *self = (const struct ppar *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u32(out, self->rank_class);
  cv_buf_put_u32(out, self->arms);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    cv_buf_put_u64(out, arm->releases);
    cv_buf_put_u64(out, arm->tokens);
    cv_buf_put_f64(out, arm->mean);
    cv_buf_put_f64(out, arm->radius);
    cv_buf_put_u32(out, arm->rank_class);
    cv_buf_put_u8(out, arm->below);
  }
}

static bool is_plausible(const struct ppar *self, const struct arm *arm) {
  return isfinite(arm->mean) && isfinite(arm->radius) && arm->radius >= 0 && (arm->releases > 0) == (arm->tokens > 0) &&
         arm->releases < RELEASES_END && arm->rank_class <= self->rank_class && !(arm->below && arm->rank_class != 0);
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct ppar *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  self->rank_class = cv_read_u32(in);
  if (cv_read_u32(in) != self->arms || self->rank_class < 1 || self->rank_class > self->arms) {
    return CV_ERR_DAMAGED;
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    struct arm *arm = &self->arm[i];
    arm->releases = cv_read_u64(in);
    arm->tokens = cv_read_u64(in);
    arm->mean = cv_read_f64(in);
    arm->radius = cv_read_f64(in);
    arm->rank_class = cv_read_u32(in);
    arm->below = cv_read_u8(in) != 0;
    if (!is_plausible(self, arm)) {
      return CV_ERR_DAMAGED;
    }
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_ppar = {
    .name = "ppar",
    .kind = CV_POLICY_RANKING,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .create = create,
    .destroy = destroy,
    .apply = apply,
    .step = make_step,
    .standing = standing,
    .save = save,
    .load = load,
};
