/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair-sort: the whole order of items that are compared in pairs, by duels: each token compares its arm with an
 * opponent that the plan names. With probability 1 - delta at least, of two items in different classes the one in the
 * earlier class beats the other with probability 1/2 - tie at least; with `tie` 0 the order is the true one.
 * docs/beyond.md has the proof, and what it assumes: strong stochastic transitivity. Then the order is that of the
 * Borda scores, too.
 *
 * Parameters:
 *   alpha             0, the only value: the order is that of a ranking with rank span 0
 *   delta             error probability, in (0,1); default 0.1
 *   tie               an item that is shown to beat its pivot with probability 1/2 - tie to 1/2 + tie shares its
 *                     class, in [0, 1/2]; default 0.05. With 0 the policy does not end if items tie
 *   tokens_per_round  the fewest tokens of an arm that a plan asks for, so that no release sums fewer; default 20
 *
 * Quicksort: the items of a part, which is a range of places in the order, are all compared with one of them, the
 * pivot, until each is shown to be above, below or tied. Then the pivot and what is tied with it have their places, and
 * those above and below are parts of their own. All open duels of all parts are in each plan, so plans are few. The
 * first pivot is drawn; later ones are the median of their part by the duels before.
 *
 * The interval of a duel is that of a mixture martingale (confidence.h) at level ln(K(K-1)/delta): two sides of each of
 * the K(K-1)/2 pairs that can ever meet. The duel's sum is the difference of an arm's releases, each of which adds the
 * sum of one plan and one noise of its own.
 *
 * Lengths: a duel's first release has 1.5 times the fewest tokens that could decide it, which is a duel always won;
 * then it has as many as would decide it at its present share of wins, between 1.2 and 2 times those that it has.
 *
 * A step costs O(K log K) and a release some microseconds.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/base/mechanisms.h"
#include "common/base/rng.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/confidence.h"
#include "thirdparty/policy/step.h"
#include "thirdparty/policy/tail.h"

/* The second version has how many noises the last release of an arm has. */
enum { STATE_VERSION = 2 };
/* Limits of a stored state: more than any campaign has. */
#define TOKENS_END (UINT64_C(1) << 52)
static const uint32_t NOBODY = UINT32_MAX;
static const double FIRST_GROWTH = 1.5, LEAST_GROWTH = 1.2, MOST_GROWTH = 2;

static const struct cv_param_rule rules[] = {
    {.key = "alpha", .low = 0, .high = 0, .fallback = 0, .help = "rank span: 0, the only value, ranks fully"},
    /* The lower end prevents underflow of the level. */
    {.key = "delta",
     .low = 1e-100,
     .high = 1,
     .high_open = true,
     .fallback = 0.1,
     .help = "largest probability that two items are in the wrong order"},
    {.key = "tie",
     .low = 0,
     .high = .5,
     .fallback = .05,
     .help =
         "an item that beats the one it is compared with as often as 1/2, give or take this, shares its class; with 0 "
         "the policy does not end if items tie"},
    {.key = "tokens_per_round",
     .low = 1,
     .high = CV_PLAN_TOKENS_MAX,
     .whole = true,
     .fallback = 20,
     .help = "the fewest tokens of an item that a plan asks for"},
};

/* How an item stands to its pivot. */
enum side { OPEN, ABOVE, TIED, BELOW };

struct arm {
  uint32_t from, size; /* its part: the places from, from + 1, ... of the order */
  uint32_t rival;      /* the pivot of the part; itself: it is the pivot; NOBODY: none yet */
  enum side side;
  bool is_placed;      /* its part is one class */
  uint32_t rank_class; /* 0: not known while a part above is open */
  uint64_t tokens;     /* of all its duels, as released last */
  int64_t sum;         /* likewise, in grid units */
  uint32_t heard;      /* noises in `sum` */
  uint64_t met;        /* tokens of the present duel */
  int64_t won;         /* its noisy sum */
  uint32_t noises;     /* in it */
  double scale;        /* the largest of all releases */
  double low, high;    /* of the probability to beat the rival; of the rival before, until the duel has a release */
};

/* An arm of a part whose median is looked for. */
struct candidate {
  double estimate;
  uint32_t turn, arm;
};

struct pair_sort {
  struct cv_policy policy;
  double level, tie;
  uint32_t arms, least, first; /* least, first: tokens of an arm in a plan, and of a duel's first release */
  uint64_t seed;
  double unit;      /* of noise, in scores; 0: none */
  uint32_t brokers; /* that are expected to add noise */
  struct cv_local local;
  struct cv_mixture mixture;
  uint32_t *order;             /* arms by their parts, and in a part by number; owned */
  struct candidate *candidate; /* scratch, `arms` of them; owned */
  struct arm arm[];
};

static struct pair_sort *of(struct cv_policy *policy) {
  return (struct pair_sort *)policy;
}

/* Each release adds the exact sum of one plan and one fresh noise, or none. */
static bool adds_one_noise(const struct cv_traits *traits) {
  return cv_traits_exact_sums(traits) || (traits->sums == CV_SUMS_ALL && traits->noise == CV_NOISE_LINEAR);
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  if (!spec->pairs) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs items that are compared in pairs; expected rewards: pairs",
                   spec->policy.name);
  }
  if (!adds_one_noise(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID,
                   "policy %s needs the sum of each plan with a noise of its own; expected mechanism %s, not %s",
                   spec->policy.name, cv_traits_list(adds_one_noise).text, spec->mechanism.name);
  }
  return cv_local_is_bounded(cv_local_find(spec->privatizer.name))
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "policy %s needs tokens between 0 and 1; expected another privatizer than %s", spec->policy.name,
                       spec->privatizer.name);
}

/* ---- duels ---- */

/* Narrows what is known of the probability to beat the rival, by the sum so far. */
static void look(const struct pair_sort *self, uint32_t i, double *low, double *high) {
  const struct arm *arm = &self->arm[i];
  const struct cv_noise noise = {.groups = arm->noises > 0, .group = {{.scale = arm->scale, .count = arm->noises}}};
  struct cv_noisy_sum at = {
      .tokens = (double)arm->met, .sum = (double)arm->won / (double)CV_GRID, .unit = self->unit, .noise = &noise};
  struct cv_noisy_sum rest = at;
  rest.sum = at.tokens - at.sum;
  const struct cv_feedback feedback = cv_local_feedback(&self->local, i);
  /* A privatizer may turn wins into losses: then the lower limit of the token is the upper one of the score. */
  double a = cv_feedback_score(feedback, cv_mixture_low(&self->mixture, &at, self->level));
  double b = cv_feedback_score(feedback, 1 - cv_mixture_low(&self->mixture, &rest, self->level));
  cv_limits_narrow(fmax(fmin(a, b), 0), fmin(fmax(a, b), 1), low, high);
}

static enum side side_of(const struct pair_sort *self, double low, double high) {
  return low > .5 ? ABOVE : high < .5 ? BELOW : low >= .5 - self->tie && high <= .5 + self->tie ? TIED : OPEN;
}

/* Whether `tokens` tokens, all of them wins, would decide the first duel of an arm. */
static bool could_decide(struct pair_sort *self, uint32_t i, uint32_t tokens) {
  struct arm *arm = &self->arm[i], was = *arm;
  const struct cv_feedback feedback = cv_local_feedback(&self->local, i);
  double low = 0, high = 1;
  arm->met = tokens;
  arm->won = llround((double)tokens * (feedback.offset + feedback.slope) * (double)CV_GRID);
  arm->noises = self->unit > 0 ? self->brokers : 0;
  arm->scale = 1;
  look(self, i, &low, &high);
  *arm = was;
  return side_of(self, low, high) != OPEN;
}

static uint32_t first_length(struct pair_sort *self) {
  uint32_t low = 0, high = 1;
  while (high < CV_PLAN_TOKENS_MAX && !could_decide(self, 0, high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(could_decide(self, 0, middle) ? &high : &low) = middle;
  }
  double tokens = FIRST_GROWTH * high;
  return tokens < CV_PLAN_TOKENS_MAX ? (uint32_t)fmax(tokens, self->least) : CV_PLAN_TOKENS_MAX;
}

/* Tokens for the next release of an open duel. */
static uint32_t next_length(const struct pair_sort *self, uint32_t i) {
  const struct arm *arm = &self->arm[i];
  if (arm->met == 0) {
    return self->first;
  }
  double tokens = (double)arm->met;
  const struct cv_feedback feedback = cv_local_feedback(&self->local, i);
  double gap = fabs((double)arm->won / (double)CV_GRID / tokens - feedback.offset - feedback.slope / 2);
  /* Near 1/2 a decision takes level/(2 gap^2) tokens. An infinite quotient is a gap too small to see. */
  double growth = self->level / (2 * gap * gap) / tokens;
  growth = growth < MOST_GROWTH ? fmax(growth, LEAST_GROWTH) : MOST_GROWTH;
  double more = ceil(tokens * (growth - 1));
  return more >= CV_PLAN_TOKENS_MAX ? CV_PLAN_TOKENS_MAX : more < self->least ? self->least : (uint32_t)more;
}

/* ---- creation ---- */

static void expect(struct cv_policy *policy, uint32_t brokers) {
  struct pair_sort *self = of(policy);
  self->brokers = brokers;
  self->first = first_length(self);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct pair_sort *self = calloc(1, sizeof(*self) + spec->arms * sizeof(self->arm[0]));
  uint32_t *order = calloc(spec->arms, sizeof(*order));
  struct candidate *candidate = calloc(spec->arms, sizeof(*candidate));
  if (self == NULL || order == NULL || candidate == NULL) {
    free(self);
    free(order);
    free(candidate);
    return CV_ERR_NOMEM;
  }
  self->order = order;
  self->candidate = candidate;
  const struct cv_params *params = &spec->policy.params;
  CV_REQUIRE(cv_local_init(&spec->privatizer, spec->arms, &self->local, NULL) == CV_OK);
  self->policy.class = &cv_policy_pair_sort;
  self->arms = spec->arms;
  self->seed = seed;
  self->tie = cv_params_number(params, "tie");
  self->least = cv_policy_round(spec);
  self->level = log((double)spec->arms * (spec->arms - 1.) / cv_params_number(params, "delta"));
  self->unit = cv_spec_has_noise(spec) ? (double)CV_MICRO / (double)spec->epsilon_micro : 0;
  cv_mixture_init(self->unit, &self->mixture);
  for (uint32_t i = 0; i < spec->arms; i++) {
    self->arm[i] = (struct arm){.size = spec->arms, .rival = NOBODY, .high = 1};
    order[i] = i;
  }
  expect(&self->policy, 1);
  *ret = &self->policy;
  return CV_OK;
}

static void destroy(struct cv_policy *policy) {
  free(of(policy)->order);
  free(of(policy)->candidate);
  free(policy);
}

/* ---- releases ---- */

/* Adds the noises that the last release did not have. */
static void take_noise(struct arm *arm, const struct cv_noise *noise) {
  struct cv_tail tail = cv_tail_of(noise);
  uint32_t count = tail.count < UINT32_MAX ? (uint32_t)tail.count : UINT32_MAX - 1;
  /* Whoever says that noise is gone has other noise. */
  uint32_t fresh = count >= arm->heard ? count - arm->heard : count;
  arm->noises = fresh < UINT32_MAX - arm->noises ? arm->noises + fresh : UINT32_MAX;
  arm->heard = count;
  arm->scale = fmax(arm->scale, tail.largest);
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct pair_sort *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct arm *arm = &self->arm[release->arm];
  if (release->tokens <= arm->tokens) {
    return; /* a repeated release */
  }
  bool is_first = arm->met == 0;
  arm->met += release->tokens - arm->tokens;
  arm->won += release->noisy_sum - arm->sum;
  take_noise(arm, &release->noise);
  arm->tokens = release->tokens;
  arm->sum = release->noisy_sum;
  if (is_first) {
    arm->low = 0;
    arm->high = 1;
  }
  look(self, release->arm, &arm->low, &arm->high);
}

/* ---- parts ---- */

static struct arm *at_place(struct pair_sort *self, uint32_t place) {
  return &self->arm[self->order[place]];
}

/* Makes these places a part of their own, or one class. */
static void make_part(struct pair_sort *self, uint32_t from, uint32_t size, enum side side) {
  for (uint32_t place = from; place < from + size; place++) {
    struct arm *arm = at_place(self, place);
    arm->from = from;
    arm->size = size;
    arm->is_placed = side == TIED || size == 1;
    if (!arm->is_placed) {
      arm->rival = NOBODY;
      arm->side = OPEN;
      arm->met = 0;
      arm->won = 0;
      arm->noises = 0;
    }
  }
}

/* Splits a part all of whose duels are decided. The pivot is on the tied side. */
static void split(struct pair_sort *self, uint32_t from, uint32_t size) {
  static const enum side sides[] = {ABOVE, TIED, BELOW};
  uint32_t n = 0, count[CV_COUNT(sides)] = {0};
  for (size_t s = 0; s < CV_COUNT(sides); s++) {
    for (uint32_t place = from; place < from + size; place++) {
      if (at_place(self, place)->side == sides[s]) {
        self->candidate[n++].arm = self->order[place];
        count[s]++;
      }
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    self->order[from + i] = self->candidate[i].arm;
  }
  for (size_t s = 0; s < CV_COUNT(sides); s++) {
    make_part(self, from, count[s], sides[s]);
    from += count[s];
  }
}

/* Decides the duels of a part, and splits it if none is open. */
static bool is_split(struct pair_sort *self, uint32_t from, uint32_t size) {
  uint32_t open = 0;
  for (uint32_t place = from; place < from + size; place++) {
    struct arm *arm = at_place(self, place);
    arm->side = arm->side == OPEN && arm->met > 0 ? side_of(self, arm->low, arm->high) : arm->side;
    open += arm->side == OPEN;
  }
  if (open == 0) {
    split(self, from, size);
  }
  return open == 0;
}

static int by_estimate(const void *a, const void *b) {
  const struct candidate *left = a, *right = b;
  return left->estimate > right->estimate   ? -1
         : left->estimate < right->estimate ? 1
                                            : (left->turn > right->turn) - (left->turn < right->turn);
}

/* Compares all of a part with its median by the duels before. Arms that look alike come in the order of their numbers
 * from `first` on. */
static void choose_pivot(struct pair_sort *self, uint32_t from, uint32_t size, uint32_t first) {
  for (uint32_t i = 0; i < size; i++) {
    const struct arm *arm = at_place(self, from + i);
    uint32_t number = self->order[from + i];
    self->candidate[i] = (struct candidate){
        .estimate = arm->low + arm->high, .turn = (number + self->arms - first) % self->arms, .arm = number};
  }
  qsort(self->candidate, size, sizeof(self->candidate[0]), by_estimate);
  uint32_t pivot = self->candidate[size / 2].arm;
  for (uint32_t place = from; place < from + size; place++) {
    at_place(self, place)->rival = pivot;
  }
  self->arm[pivot].side = TIED;
}

/* Goes on in every part as far as the releases allow. */
static void advance(struct pair_sort *self, uint32_t first) {
  for (uint32_t place = 0; place < self->arms;) {
    const struct arm *head = at_place(self, place);
    if (!head->is_placed && head->rival != NOBODY && is_split(self, place, head->size)) {
      continue; /* with the first of its parts */
    }
    if (!head->is_placed && head->rival == NOBODY) {
      choose_pivot(self, place, head->size, first);
    }
    place += head->size;
  }
}

/* ---- plans ---- */

static void standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  const struct arm *arm = &((const struct pair_sort *)policy)->arm[i];
  *ret = (struct cv_standing){.arm = i,
                              .rank_class = arm->rank_class,
                              .tokens = arm->tokens,
                              .mean = (arm->low + arm->high) / 2,
                              .radius = (arm->high - arm->low) / 2,
                              .contradicts = arm->tokens > 0 && arm->low >= arm->high};
}

static void settle(struct pair_sort *self, uint32_t i, uint32_t rank_class, struct cv_policy_step *step) {
  struct cv_standing at;
  self->arm[i].rank_class = rank_class;
  standing(&self->policy, i, &at);
  step->decision[step->decisions++] = (struct cv_decision){.kind = CV_DECISION_SETTLE,
                                                           .arm = i,
                                                           .rank_class = rank_class,
                                                           .tokens = at.tokens,
                                                           .mean = at.mean,
                                                           .radius = at.radius,
                                                           .reference = .5};
}

/* Numbers the classes from the top, down to the first part that is not placed. True if there is none. */
static bool number_classes(struct pair_sort *self, struct cv_policy_step *step) {
  uint32_t rank_class = 1, size;
  for (uint32_t from = 0; from < self->arms; from += size, rank_class++) {
    if (!at_place(self, from)->is_placed) {
      return false;
    }
    size = at_place(self, from)->size;
    for (uint32_t place = from; place < from + size; place++) {
      if (at_place(self, place)->rank_class == 0) {
        settle(self, self->order[place], rank_class, step);
      }
    }
  }
  return true;
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct pair_sort *self = of(policy);
  struct cv_rng_seeded rng;
  CV_TRY(cv_policy_step_reserve(step, self->arms, self->arms));
  cv_rng_seeded_init(&rng, self->seed, CV_RNG_POLICY, number, 0);
  advance(self, (uint32_t)cv_rng_below(&rng.rng, self->arms));
  step->done = number_classes(self, step);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    if (!arm->is_placed && arm->side == OPEN) {
      step->want[step->wants++] =
          (struct cv_want){.arm = i, .tokens = next_length(self, i), .opponent = arm->rival + 1};
    }
  }
  return CV_OK;
}

/* ---- the stored state ---- */

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct pair_sort *self = (const struct pair_sort *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u32(out, self->arms);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    cv_buf_put_u32(out, arm->from);
    cv_buf_put_u32(out, arm->size);
    cv_buf_put_u32(out, arm->rival);
    cv_buf_put_u8(out, (uint8_t)arm->side);
    cv_buf_put_u8(out, arm->is_placed);
    cv_buf_put_u32(out, arm->rank_class);
    cv_buf_put_u64(out, arm->tokens);
    cv_buf_put_u64(out, (uint64_t)arm->sum);
    cv_buf_put_u32(out, arm->heard);
    cv_buf_put_f64(out, arm->scale);
    cv_buf_put_u64(out, arm->met);
    cv_buf_put_u64(out, (uint64_t)arm->won);
    cv_buf_put_u32(out, arm->noises);
    cv_buf_put_f64(out, arm->low);
    cv_buf_put_f64(out, arm->high);
  }
}

/* Whether one arm for itself can be. */
static bool is_plausible(const struct pair_sort *self, const struct arm *arm) {
  bool has_place = arm->size >= 1 && arm->size <= self->arms && arm->from <= self->arms - arm->size;
  bool has_rival = arm->rival == NOBODY ? arm->side == OPEN && arm->met == 0 : arm->rival < self->arms;
  bool has_sum = arm->met <= arm->tokens && arm->tokens < TOKENS_END && isfinite(arm->scale) && arm->scale >= 0;
  return has_place && has_rival && has_sum && arm->low >= 0 && arm->low <= arm->high && arm->high <= 1 &&
         arm->rank_class <= (arm->is_placed ? self->arms : 0);
}

/* Orders the arms by their parts; false if the parts do not fill the places, each of them its own. */
static bool order_arms(struct pair_sort *self) {
  for (uint32_t place = 0; place < self->arms; place++) {
    self->order[place] = NOBODY;
    self->candidate[place].turn = 0;
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct arm *arm = &self->arm[i];
    uint32_t place = arm->from + self->candidate[arm->from].turn++;
    if (place >= arm->from + arm->size || self->order[place] != NOBODY) {
      return false;
    }
    self->order[place] = i;
  }
  return true; /* as many places as arms, and none has two */
}

/* Whether the arms of this part agree on what it is, and on a pivot that is one of them. */
static bool is_part(struct pair_sort *self, uint32_t from) {
  const struct arm *head = at_place(self, from);
  bool has_pivot = head->is_placed || head->rival == NOBODY;
  for (uint32_t place = from; place < from + head->size; place++) {
    const struct arm *arm = at_place(self, place);
    if (arm->from != from || arm->size != head->size || arm->is_placed != head->is_placed ||
        (arm->is_placed ? arm->rank_class != head->rank_class : arm->rival != head->rival)) {
      return false;
    }
    has_pivot = has_pivot || (self->order[place] == head->rival && arm->side == TIED);
  }
  return has_pivot && (head->is_placed || head->size > 1);
}

static bool are_parts(struct pair_sort *self) {
  if (!order_arms(self)) {
    return false;
  }
  for (uint32_t from = 0; from < self->arms; from += at_place(self, from)->size) {
    if (!is_part(self, from)) {
      return false;
    }
  }
  return true;
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct pair_sort *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  if (cv_read_u32(in) != self->arms) {
    return CV_ERR_DAMAGED;
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    struct arm *arm = &self->arm[i];
    arm->from = cv_read_u32(in);
    arm->size = cv_read_u32(in);
    arm->rival = cv_read_u32(in);
    uint8_t side = cv_read_u8(in);
    arm->side = side <= BELOW ? (enum side)side : OPEN;
    arm->is_placed = cv_read_u8(in) != 0;
    arm->rank_class = cv_read_u32(in);
    arm->tokens = cv_read_u64(in);
    arm->sum = (int64_t)cv_read_u64(in);
    arm->heard = cv_read_u32(in);
    arm->scale = cv_read_f64(in);
    arm->met = cv_read_u64(in);
    arm->won = (int64_t)cv_read_u64(in);
    arm->noises = cv_read_u32(in);
    arm->low = cv_read_f64(in);
    arm->high = cv_read_f64(in);
    if (side > BELOW || !is_plausible(self, arm)) {
      return CV_ERR_DAMAGED;
    }
  }
  return cv_reader_done(in) && are_parts(self) ? CV_OK : CV_ERR_DAMAGED;
}

const struct cv_policy_class cv_policy_pair_sort = {
    .name = "pair-sort",
    .about = "sorts items that are compared in pairs, from a fraction of the tokens",
    .kind = CV_POLICY_RANKING,
    .duels = true,
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
