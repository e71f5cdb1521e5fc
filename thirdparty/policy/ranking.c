/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/ranking.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mechanisms.h"
#include "thirdparty/policy/parking.h"

static const uint32_t NOBODY = UINT32_MAX;
static const double INFINITE = (double)INFINITY;
static const struct cv_policy_lies NEVER = {.safe = CV_LIES_NEVER, .turn = CV_LIES_NEVER};

static enum cv_err know_nothing(uint32_t arms, struct cv_ranking_known **ret) {
  struct cv_ranking_known *known = calloc(1, sizeof(*known));
  bool has_room = known != NULL && (known->contradicts = calloc(arms, sizeof(*known->contradicts))) != NULL;
  if (!has_room || cv_spans_init(arms, &known->spans) != CV_OK) {
    free(known == NULL ? NULL : known->contradicts);
    free(known);
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < arms; i++) {
    known->spans.high[i] = 1;
  }
  *ret = known;
  return CV_OK;
}

enum cv_err cv_ranking_init(double alpha, bool by_leader, uint32_t arms, struct cv_ranking *ret) {
  struct cv_ranking made = {
      .alpha = alpha, .by_leader = by_leader, .rank_class = 1, .arms = arms, .above = NEVER, .here = NEVER};
  made.arm = calloc(arms, sizeof(*made.arm));
  made.order = calloc(arms, sizeof(*made.order));
  made.low = calloc(arms, sizeof(*made.low));
  made.need = calloc(arms, sizeof(*made.need));
  if (made.arm == NULL || made.order == NULL || made.low == NULL || made.need == NULL ||
      know_nothing(arms, &made.known) != CV_OK) {
    cv_ranking_fini(&made);
    return CV_ERR_NOMEM;
  }
  *ret = made;
  return CV_OK;
}

void cv_ranking_fini(struct cv_ranking *self) {
  if (self->known != NULL) {
    cv_spans_fini(&self->known->spans);
    free(self->known->contradicts);
    free(self->known);
  }
  free(self->arm);
  free(self->order);
  free(self->low);
  free(self->need);
}

const char *const cv_ranking_boundary_words[] = {"park", "feed", NULL};
const char *const cv_ranking_tails_words[] = {"exact", "chernoff", NULL};

bool cv_ranking_has_exact_tails(const struct cv_spec *spec) {
  const struct cv_traits *traits = cv_traits_of(spec->mechanism.name);
  return strcmp(cv_params_text(&spec->policy.params, "tails"), "exact") == 0 && cv_traits_states_noises(traits);
}

void cv_ranking_park_within(struct cv_ranking *self, const struct cv_spec *spec, double delta) {
  self->parks = strcmp(cv_params_text(&spec->policy.params, "boundary"), "park") == 0;
  self->limit = spec->tokens;
  self->doubt = 1 / sqrt(2 * log(4 * (double)self->arms / delta));
}

uint64_t cv_ranking_left(const struct cv_ranking *self) {
  return self->asked < self->limit ? self->limit - self->asked : 0;
}

static bool is_active(const struct cv_ranking *self, const struct cv_ranked *arm) {
  return !arm->below && arm->held == CV_HELD_NO && (arm->rank_class == 0 || arm->rank_class == self->rank_class);
}

static bool is_undecided(const struct cv_ranked *arm) {
  return !arm->below && arm->held == CV_HELD_NO && arm->rank_class == 0;
}

bool cv_ranking_is_active(const struct cv_ranking *self, uint32_t i) {
  return is_active(self, &self->arm[i]);
}

bool cv_ranking_is_undecided(const struct cv_ranking *self, uint32_t i) {
  return is_undecided(&self->arm[i]);
}

static double low_of(const struct cv_ranked *arm) {
  return arm->mean - arm->radius;
}

static double high_of(const struct cv_ranked *arm) {
  return arm->mean + arm->radius;
}

/* Inline, unlike fmax(). */
static double larger(double a, double b) {
  return a > b ? a : b;
}

struct cv_ranking_bounds cv_ranking_bounds_of(const struct cv_ranking *self) {
  struct cv_ranking_bounds b = {.all_known = true,
                                .leader = NOBODY,
                                .top = NOBODY,
                                .sure = NOBODY,
                                .high = -INFINITE,
                                .next_high = -INFINITE,
                                .low = -INFINITE};
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_ranked *arm = &self->arm[i];
    if (!is_active(self, arm)) {
      continue;
    }
    double low = low_of(arm), high = high_of(arm);
    b.active++;
    b.undecided += is_undecided(arm);
    b.all_known = b.all_known && arm->tokens > 0;
    if (b.sure == NOBODY || low > b.low) {
      b.low = low;
      b.sure = i;
    }
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

/* ---- lies ---- */

void cv_ranking_count_lies(struct cv_ranking *self) {
  self->counts_lies = true;
}

/* The fewest false tokens that can use up a margin between two arms, which have no more than all their tokens, if each
 * takes `most` of it at most. */
static uint64_t lies_in(double margin, double most, uint64_t allowed, uint64_t tokens) {
  double lies = (double)allowed + fmax(1, ceil(margin / most));
  return lies > (double)tokens ? CV_LIES_NEVER : (uint64_t)lies;
}

/* `margin` is between ends that allow for lies at both arms. */
static struct cv_policy_lies borne(const struct cv_ranking *self, double margin, double between_means,
                                   const struct cv_ranked *a, const struct cv_ranked *b) {
  uint64_t tokens = a->tokens + b->tokens;
  return (struct cv_policy_lies){.safe = lies_in(margin, larger(a->give, b->give), self->lies, tokens),
                                 .turn = lies_in(between_means, larger(a->share, b->share), 0, tokens)};
}

static struct cv_policy_lies least(struct cv_policy_lies a, struct cv_policy_lies b) {
  return (struct cv_policy_lies){.safe = a.safe < b.safe ? a.safe : b.safe, .turn = a.turn < b.turn ? a.turn : b.turn};
}

/* Arm i was removed because of `rival`, the arm of S with the highest lower bound or the leader. */
static void count_removal(struct cv_ranking *self, uint32_t i, uint32_t rival) {
  if (self->counts_lies) {
    const struct cv_ranked *arm = &self->arm[i], *other = &self->arm[rival];
    double bound = (self->by_leader ? other->mean : low_of(other)) - self->alpha;
    double between_means = other->noisy_mean - self->alpha - arm->noisy_mean;
    self->here = least(self->here, borne(self, bound - high_of(arm), between_means, arm, other));
  }
}

/* Arm i was settled against every other arm of S, and those that were removed from it. A leader that stays the leader
 * is settled whatever its radius. */
static void count_settlement(struct cv_ranking *self, uint32_t i, uint32_t leader) {
  if (!self->counts_lies) {
    return;
  }
  struct cv_ranked *arm = &self->arm[i];
  struct cv_policy_lies lies = NEVER;
  for (uint32_t j = 0; j < self->arms; j++) {
    const struct cv_ranked *other = &self->arm[j];
    if (j != i && (is_active(self, other) || other->below)) {
      double high = self->by_leader ? other->mean : high_of(other);
      double margin = low_of(arm) + self->alpha - high;
      margin = i == leader ? larger(margin, arm->mean - high) : margin;
      double between_means = arm->noisy_mean + self->alpha - other->noisy_mean;
      lies = least(lies, borne(self, margin, between_means, arm, other));
    }
  }
  arm->lies = least(lies, self->above);
  self->here = least(self->here, lies);
}

void cv_ranking_count_parking(struct cv_ranking *self, uint32_t i, uint32_t better) {
  if (self->counts_lies) {
    const struct cv_ranked *arm = &self->arm[i], *other = &self->arm[better];
    self->here =
        least(self->here, borne(self, low_of(other) - high_of(arm), other->noisy_mean - arm->noisy_mean, arm, other));
  }
}

static void next_class(struct cv_ranking *self) {
  self->rank_class++;
  self->above = least(self->above, self->here);
  self->here = NEVER;
}

/* ---- one class ---- */

/* Records a decision; a further removal of the same arm in one step replaces the first. The step has room for one
 * removal and one settlement of every arm. */
static void decide(struct cv_ranking *self, uint32_t i, enum cv_decision_kind kind, double reference,
                   struct cv_policy_step *step) {
  struct cv_ranked *arm = &self->arm[i];
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

static void decide_by_interval(struct cv_ranking *self, uint32_t i, const struct cv_ranking_bounds *b,
                               struct cv_policy_step *step) {
  const struct cv_ranked *arm = &self->arm[i];
  double settle_at = (i == b->top ? b->next_high : b->high) - self->alpha;
  double remove_below = b->low - self->alpha;
  if (low_of(arm) >= settle_at) {
    count_settlement(self, i, NOBODY);
    decide(self, i, CV_DECISION_SETTLE, settle_at, step);
  } else if (high_of(arm) < remove_below) {
    count_removal(self, i, b->sure);
    decide(self, i, CV_DECISION_REMOVE, remove_below, step);
  }
}

static void decide_by_leader(struct cv_ranking *self, uint32_t i, const struct cv_ranking_bounds *b,
                             struct cv_policy_step *step) {
  const struct cv_ranked *arm = &self->arm[i];
  double reference = self->arm[b->leader].mean - self->alpha;
  if (arm->mean >= reference + arm->radius) {
    count_settlement(self, i, b->leader);
    decide(self, i, CV_DECISION_SETTLE, reference, step);
  } else if (arm->mean < reference - arm->radius) {
    count_removal(self, i, b->leader);
    decide(self, i, CV_DECISION_REMOVE, reference, step);
  }
}

/* Decides the arms of S once, with the bounds of S before the pass. Returns the number of arms left undecided. */
static uint32_t pass(struct cv_ranking *self, struct cv_policy_step *step) {
  struct cv_ranking_bounds b = cv_ranking_bounds_of(self);
  if (!b.all_known) {
    return b.undecided;
  }
  uint32_t left = 0, last = NOBODY;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (!is_undecided(&self->arm[i])) {
      continue;
    }
    if (self->by_leader) {
      decide_by_leader(self, i, &b, step);
    } else {
      decide_by_interval(self, i, &b, step);
    }
    if (is_undecided(&self->arm[i])) {
      left++;
      last = i;
    }
  }
  if (self->by_leader && left == 1 && last == b.leader) {
    count_settlement(self, last, last);
    self->arm[last].lies = least(self->arm[last].lies, self->here); /* it waited for the others' decisions */
    decide(self, last, CV_DECISION_SETTLE, self->arm[last].mean - self->alpha, step);
    left = 0;
  }
  return left;
}

/* S <- C_{l+1}; returns the size of the new S. */
static uint32_t open_class(struct cv_ranking *self) {
  uint32_t active = 0;
  next_class(self);
  for (uint32_t i = 0; i < self->arms; i++) {
    active += self->arm[i].below;
    self->arm[i].below = false;
  }
  return active;
}

/* ---- several classes in one step, without new releases ---- */

static int by_high(const void *a, const void *b, void *data) {
  const struct cv_ranking *self = data;
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  double x = high_of(&self->arm[left]), y = high_of(&self->arm[right]);
  return x != y ? (x > y ? -1 : 1) : (left > right) - (left < right);
}

static int by_number(const void *a, const void *b) {
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return (left > right) - (left < right);
}

/* Sorts S, all of it undecided, by upper bound, and sets the suffix maxima of lower bounds. Returns the size of S. */
static uint32_t line_up(struct cv_ranking *self) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (is_undecided(&self->arm[i])) {
      self->order[n++] = i;
    }
  }
  qsort_r(self->order, n, sizeof(*self->order), by_high, self);
  for (uint32_t at = n; at-- > 0;) {
    self->low[at] = fmax(low_of(&self->arm[self->order[at]]), at + 1 < n ? self->low[at + 1] : -INFINITE);
  }
  return n;
}

static double high_at(const struct cv_ranking *self, uint32_t at) {
  return high_of(&self->arm[self->order[at]]);
}

/* With S = order[from ..]: the index of the first arm that is removed from it. */
static uint32_t class_end(const struct cv_ranking *self, uint32_t from, uint32_t n) {
  uint32_t end = from + 1;
  while (end < n && high_at(self, end) >= self->low[from] - self->alpha) {
    end++;
  }
  return end;
}

/* Settles arms of one class where possible, in order of number like pass(). Returns the number of arms left. */
static uint32_t settle_class(struct cv_ranking *self, uint32_t from, uint32_t end, uint32_t n,
                             struct cv_policy_step *step) {
  uint32_t top = self->order[from], left = 0;
  double high = high_at(self, from), next_high = from + 1 < n ? high_at(self, from + 1) : -INFINITE;
  qsort(self->order + from, end - from, sizeof(*self->order), by_number);
  for (uint32_t at = from; at < end; at++) {
    uint32_t i = self->order[at];
    double settle_at = (i == top ? next_high : high) - self->alpha;
    if (low_of(&self->arm[i]) >= settle_at) {
      count_settlement(self, i, NOBODY);
      decide(self, i, CV_DECISION_SETTLE, settle_at, step);
    } else {
      left++;
    }
  }
  return left;
}

static void remove_all(struct cv_ranking *self, uint32_t from, uint32_t end, double reference,
                       struct cv_policy_step *step) {
  for (uint32_t at = from; at < end; at++) {
    decide(self, self->order[at], CV_DECISION_REMOVE, reference, step);
  }
}

/* The removals of order[end .. n) from the class order[from .. end), also of arms that will fall further. */
static void count_removals(struct cv_ranking *self, uint32_t from, uint32_t end, uint32_t n) {
  uint32_t sure = self->order[from];
  if (!self->counts_lies) {
    return;
  }
  for (uint32_t at = from; at < end; at++) {
    sure = low_of(&self->arm[self->order[at]]) > low_of(&self->arm[sure]) ? self->order[at] : sure;
  }
  for (uint32_t at = end; at < n; at++) {
    count_removal(self, self->order[at], sure);
  }
}

/*
 * Equivalent to alternating pass() and open_class(), but O(K log K) for any number of classes: the arms removed from S
 * are a suffix of S sorted by upper bound, and only the last removal of an arm is reported. Requires that every arm of
 * S is undecided, has a release and was removed from the previous class in this step. True if every arm is settled.
 */
static bool fall(struct cv_ranking *self, struct cv_policy_step *step) {
  uint32_t n = line_up(self), from = 0, end = class_end(self, from, n);
  while (settle_class(self, from, end, n, step) == 0) {
    if (end == n) {
      return true;
    }
    double reference = self->low[from] - self->alpha;
    count_removals(self, from, end, n);
    from = end;
    end = class_end(self, from, n);
    remove_all(self, from, end, reference, step);
    for (uint32_t at = from; at < end; at++) {
      self->arm[self->order[at]].below = false;
    }
    next_class(self);
  }
  count_removals(self, from, end, n);
  remove_all(self, end, n, self->low[from] - self->alpha, step);
  return false;
}

/* Decides all that the present means and radii decide. True if the ranking is finished. */
static bool decide_all(struct cv_ranking *self, struct cv_policy_step *step) {
  bool has_passed = false;
  /* A pass that decides all of S opens the next class. By leader, new releases come first; by interval it goes on, from
   * its second class with fall(). */
  while (pass(self, step) == 0) {
    uint32_t active = open_class(self);
    if (active == 0) {
      /* Undo open_class(), so that a further step after the end finds the same state. */
      self->rank_class--;
      return true;
    }
    if (self->by_leader && active > 1) {
      return false;
    }
    if (has_passed && !self->by_leader) {
      return fall(self, step);
    }
    has_passed = true;
  }
  return false;
}

void cv_ranking_exhaust(struct cv_ranking *self, uint32_t i) {
  CV_REQUIRE(i < self->arms);
  self->arm[i].is_exhausted = true;
}

/* ---- what is known among all arms ---- */

static double within(double value) {
  return fmin(fmax(value, 0), 1);
}

/* Takes in the present interval of an arm. By leader there are no intervals that hold at all times. */
static void take_interval(const struct cv_ranking *self, uint32_t i) {
  const struct cv_ranked *arm = &self->arm[i];
  double *low = &self->known->spans.low[i], *high = &self->known->spans.high[i];
  double half = self->by_leader ? arm->radius / 2 : arm->radius;
  double new_low = arm->mean - half, new_high = arm->mean + half;
  bool is_apart = new_low > (self->by_leader ? 1 : *high) || new_high < (self->by_leader ? 0 : *low);
  self->known->contradicts[i] = self->known->contradicts[i] || (is_apart && !self->by_leader);
  /* Where intervals contradict each other the last one counts. */
  *low = within(is_apart || self->by_leader ? new_low : fmax(*low, new_low));
  *high = within(is_apart || self->by_leader ? new_high : fmin(*high, new_high));
}

/* Which classes lies cannot reach through a parked arm: an arm used up in a class was not compared with those there. */
static void find_sure(const struct cv_ranking *self, bool *ret_has_parked) {
  self->known->sure = UINT32_MAX;
  *ret_has_parked = false;
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_ranked *arm = &self->arm[i];
    if (arm->held != CV_HELD_NO) {
      uint32_t own = arm->held_class - (arm->held == CV_HELD_USED_UP);
      self->known->sure = own < self->known->sure ? own : self->known->sure;
      *ret_has_parked = true;
    }
  }
}

static void take_intervals(const struct cv_ranking *self) {
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->arm[i].tokens > 0) {
      take_interval(self, i);
    }
  }
}

static const struct cv_ranking_known *known_of(const struct cv_ranking *self) {
  struct cv_ranking_known *known = self->known;
  bool has_parked;
  if (known->is_current) {
    return known;
  }
  take_intervals(self);
  find_sure(self, &has_parked);
  known->has_spans = has_parked || (self->is_closed && !self->by_leader);
  if (known->has_spans) {
    cv_spans_find(&known->spans, self->alpha);
  }
  known->is_current = true;
  return known;
}

void cv_ranking_touch(struct cv_ranking *self) {
  self->known->is_current = false;
}

void cv_ranking_close(struct cv_ranking *self) {
  self->is_closed = true;
  cv_ranking_touch(self);
}

struct cv_policy_lies cv_ranking_lies(const struct cv_ranking *self, uint32_t i) {
  bool is_known = self->arm[i].rank_class > 0 && self->arm[i].rank_class <= known_of(self)->sure;
  return is_known ? self->arm[i].lies : (struct cv_policy_lies){0};
}

bool cv_ranking_decide(struct cv_ranking *self, struct cv_policy_step *step) {
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].removal = 0;
  }
  take_intervals(self);
  bool is_finished = decide_all(self, step);
  while (!is_finished && cv_parking_park(self)) {
    is_finished = decide_all(self, step);
  }
  cv_ranking_touch(self);
  return is_finished;
}

/* The best estimate of an arm without a class, and how far its interval reaches from there. */
static void estimate(const struct cv_ranked *arm, const struct cv_ranking_known *known, struct cv_standing *ret) {
  double low = known->spans.low[ret->arm], high = known->spans.high[ret->arm];
  ret->mean = fmin(fmax(arm->noisy_mean, low), high);
  ret->radius = fmax(ret->mean - low, high - ret->mean);
  ret->noise = fmin(ret->noise, ret->radius);
}

/* The class among all arms, or those that it can be. */
static void place(const struct cv_ranking *self, const struct cv_ranking_known *known, struct cv_standing *ret) {
  const struct cv_ranked *arm = &self->arm[ret->arm];
  struct cv_span span = known->spans.span[ret->arm];
  bool is_open = arm->held == CV_HELD_NO && arm->rank_class == 0 && !self->is_closed;
  if (span.first == span.last) {
    ret->rank_class = span.first;
  } else if (!is_open) {
    ret->rank_class = span.first;
    ret->rank_last = span.last;
    ret->held = arm->held == CV_HELD_NO ? CV_HELD_OPEN : arm->held;
  }
}

void cv_ranking_standing(const struct cv_ranking *self, uint32_t i, struct cv_standing *ret) {
  CV_REQUIRE(i < self->arms);
  const struct cv_ranked *arm = &self->arm[i];
  const struct cv_ranking_known *known = known_of(self);
  bool is_known = arm->tokens > 0;
  *ret = (struct cv_standing){.arm = i,
                              .rank_class = arm->rank_class,
                              .tokens = arm->tokens,
                              .mean = is_known ? arm->mean : 0.5,
                              .radius = is_known ? arm->radius : 0.5,
                              .noise = is_known ? arm->noise : 0,
                              .contradicts = arm->contradicts || known->contradicts[i]};
  if (known->has_spans) {
    place(self, known, ret);
  }
  if (is_known && ret->held != CV_HELD_NO) {
    estimate(arm, known, ret);
  }
}

void cv_ranking_save_arm(const struct cv_ranking *self, uint32_t i, struct cv_buf *out) {
  const struct cv_ranked *arm = &self->arm[i];
  const struct cv_ranking_known *known = known_of(self);
  cv_buf_put_u8(out, arm->is_exhausted);
  cv_buf_put_u8(out, (uint8_t)arm->held);
  cv_buf_put_u32(out, arm->held_class);
  cv_buf_put_f64(out, known->spans.low[i]);
  cv_buf_put_f64(out, known->spans.high[i]);
  cv_buf_put_u8(out, known->contradicts[i]);
}

enum cv_err cv_ranking_load_arm(struct cv_ranking *self, uint32_t i, unsigned version, struct cv_reader *in) {
  struct cv_ranked *arm = &self->arm[i];
  struct cv_ranking_known *known = self->known;
  arm->is_exhausted = cv_read_u8(in) != 0;
  arm->held = (enum cv_held)cv_read_u8(in);
  arm->held_class = cv_read_u32(in);
  arm->held_need = (double)NAN;
  known->is_current = false;
  if (version == CV_RANKING_STATE_BEFORE) {
    (void)cv_read_u32(in); /* the last class of a parked arm */
    return CV_OK;
  }
  known->spans.low[i] = cv_read_f64(in);
  known->spans.high[i] = cv_read_f64(in);
  known->contradicts[i] = cv_read_u8(in) != 0;
  bool is_interval = known->spans.low[i] >= 0 && known->spans.low[i] <= known->spans.high[i];
  return is_interval && known->spans.high[i] <= 1 ? CV_OK : CV_ERR_DAMAGED;
}

static bool is_parking_plausible(const struct cv_ranking *self, const struct cv_ranked *arm) {
  if (arm->held == CV_HELD_NO) {
    return arm->held_class == 0;
  }
  return (arm->held == CV_HELD_BOUNDARY || arm->held == CV_HELD_USED_UP) && arm->rank_class == 0 && !arm->below &&
         arm->held_class >= 1 && arm->held_class <= self->rank_class &&
         (arm->held != CV_HELD_USED_UP || arm->is_exhausted) && (arm->held != CV_HELD_BOUNDARY || arm->tokens > 0);
}

bool cv_ranking_is_plausible(const struct cv_ranking *self, const struct cv_ranked *arm) {
  return is_parking_plausible(self, arm) && isfinite(arm->mean) && isfinite(arm->radius) && arm->radius >= 0 &&
         arm->rank_class <= self->rank_class && !(arm->below && arm->rank_class != 0);
}
