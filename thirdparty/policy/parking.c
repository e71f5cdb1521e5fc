/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/parking.h"

#include <math.h>
#include <stdlib.h>

/* An arm on a boundary can be in so many classes beyond the first: alone, and with others that tie. */
enum { SPAN_ALONE = 1, SPAN_TIED = 2 };

static const uint32_t NOBODY = UINT32_MAX;
static const double INFINITE = (double)INFINITY;

/* Scores are in [0,1]. */
static double low_of(const struct cv_ranked *arm) {
  return arm->tokens > 0 ? arm->mean - arm->radius : 0;
}

static double high_of(const struct cv_ranked *arm) {
  return arm->tokens > 0 ? arm->mean + arm->radius : 1;
}

/* ---- where a parked arm can be ---- */

/* Whether the arm was in S when the class began: it can be in this class, or in the next one at best. */
static bool began_here(const struct cv_ranking *self, uint32_t i) {
  const struct cv_ranked *arm = &self->arm[i];
  bool is_parked_here = arm->held != CV_HELD_NO && arm->held_class == self->rank_class;
  return cv_ranking_is_active(self, i) || arm->below || is_parked_here;
}

/*
 * The last class that arm i can be in. Each class of S above its own has a leader more than alpha above the arm, and
 * more than alpha above the next leader: so there are no more of them than such arms, and fewer than the distance to
 * the highest one in steps of alpha.
 */
static uint32_t last_class(const struct cv_ranking *self, uint32_t i) {
  double low = low_of(&self->arm[i]), high = low;
  uint32_t above = 0;
  for (uint32_t j = 0; j < self->arms; j++) {
    if (j != i && began_here(self, j)) {
      double theirs = high_of(&self->arm[j]);
      above += theirs > low + self->alpha;
      high = fmax(high, theirs);
    }
  }
  /* Rounded up, whatever the rounding of the quotient. */
  double steps = self->alpha > 0 ? ceil((high - low) / self->alpha * (1 + 1e-12)) - 1 : INFINITE;
  return self->rank_class + (steps < above ? (uint32_t)fmax(steps, 0) : above);
}

static void park(struct cv_ranking *self, uint32_t i, enum cv_held held) {
  struct cv_ranked *arm = &self->arm[i];
  arm->held_class = self->rank_class;
  arm->held = held;
  arm->held_need = held == CV_HELD_BOUNDARY ? self->need[i] : (double)NAN;
}

/* ---- used up ---- */

static void free_arm(struct cv_ranked *arm) {
  arm->below = false;
  arm->held = CV_HELD_NO;
  arm->held_class = 0;
}

/*
 * After arms have left S: those that were removed from the class, or parked on its boundary, only because of them are
 * undecided again. In doubt they are, too: this costs tokens, and no truth.
 */
static void take_back(struct cv_ranking *self) {
  struct cv_ranking_bounds b = cv_ranking_bounds_of(self);
  for (uint32_t i = 0; i < self->arms; i++) {
    struct cv_ranked *arm = &self->arm[i];
    bool is_on_boundary = arm->held == CV_HELD_BOUNDARY && arm->held_class == self->rank_class;
    if ((arm->below && !(high_of(arm) < b.low - self->alpha)) || (is_on_boundary && !(high_of(arm) <= b.low))) {
      free_arm(arm);
    }
  }
}

/* As long as other arms wait for their first release, only arms without any release are parked. */
static bool park_used_up(struct cv_ranking *self) {
  bool has_parked = false, all_known = true;
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_ranked *arm = &self->arm[i];
    all_known = all_known && (!cv_ranking_is_active(self, i) || arm->tokens > 0 || arm->is_exhausted);
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_ranked *arm = &self->arm[i];
    if (arm->is_exhausted && cv_ranking_is_undecided(self, i) && (all_known || arm->tokens == 0)) {
      park(self, i, CV_HELD_USED_UP);
      has_parked = true;
    }
  }
  if (has_parked && !self->by_leader) {
    take_back(self);
  }
  return has_parked;
}

/* ---- on a boundary ---- */

/* The mean as far as is known. */
static double estimate(const struct cv_ranked *arm) {
  return fmin(fmax(arm->noisy_mean, low_of(arm)), high_of(arm));
}

/* What the arms of S are compared with. */
struct field {
  struct cv_ranking_bounds bounds;
  uint32_t next; /* the arm of S with the highest upper bound but one */
  double best;   /* the highest estimate */
};

static struct field field_of(const struct cv_ranking *self) {
  struct field field = {.bounds = cv_ranking_bounds_of(self), .next = NOBODY, .best = -INFINITE};
  for (uint32_t i = 0; i < self->arms; i++) {
    if (cv_ranking_is_active(self, i)) {
      bool is_next = field.next == NOBODY || high_of(&self->arm[i]) > high_of(&self->arm[field.next]);
      field.next = i != field.bounds.top && is_next ? i : field.next;
      field.best = fmax(field.best, estimate(&self->arm[i]));
    }
  }
  return field;
}

/* Further tokens that decide undecided arm i, as parking.h says. */
static double need_of(const struct cv_ranking *self, const struct field *field, uint32_t i) {
  const struct cv_ranked *arm = &self->arm[i];
  double mean = estimate(arm);
  bool is_good = mean >= field->best - self->alpha;
  uint32_t top = i == field->bounds.top ? field->next : field->bounds.top;
  const struct cv_ranked *other = &self->arm[is_good ? top : field->bounds.sure];
  double theirs = estimate(other);
  double width = is_good ? mean - low_of(arm) : high_of(arm) - mean;
  double their_width = is_good ? high_of(other) - theirs : theirs - low_of(other);
  double gap = fabs(mean - theirs + self->alpha) + self->doubt * hypot(width, their_width);
  double tokens = (double)arm->tokens;
  if (other->is_exhausted) {
    gap -= their_width;
  } else {
    width += their_width;
    tokens += (double)other->tokens;
  }
  double growth = gap > 0 ? pow(width / gap, 2) : INFINITE;
  return fmax(tokens * (growth - 1), (double)arm->next);
}

/* Of an arm that waits for its class. */
static double later_need(const struct cv_ranking *self, const struct cv_ranked *arm) {
  double growth = self->alpha > 0 ? pow(arm->radius / (self->alpha / 4), 2) : 2;
  return (double)arm->tokens * fmax(growth - 1, 0);
}

/* Sets need[] of all arms, negative for those that need nothing or can have nothing. Returns the sum. */
static double find_needs(struct cv_ranking *self) {
  struct field field = field_of(self);
  double sum = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_ranked *arm = &self->arm[i];
    self->need[i] = -1;
    if (cv_ranking_is_undecided(self, i)) {
      self->need[i] = need_of(self, &field, i);
    } else if (arm->below && !arm->is_exhausted) {
      self->need[i] = later_need(self, arm);
    }
    sum += fmax(self->need[i], 0);
  }
  return sum;
}

static int by_need(const void *a, const void *b, void *data) {
  const double *need = data;
  uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
  return need[left] != need[right] ? (need[left] < need[right] ? -1 : 1) : (left > right) - (left < right);
}

/* Marks the undecided arms for which the tokens do not suffice. */
static void mark_hopeless(struct cv_ranking *self) {
  double left = (double)cv_ranking_left(self);
  self->has_hope = true;
  if (find_needs(self) <= left) {
    return;
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->need[i] >= 0) {
      self->order[n++] = i;
    }
  }
  qsort_r(self->order, n, sizeof(*self->order), by_need, self->need);
  self->has_hope = false;
  for (uint32_t at = 0; at < n; at++) {
    uint32_t i = self->order[at];
    left -= self->need[i];
    bool is_undecided = cv_ranking_is_undecided(self, i);
    self->arm[i].is_hopeless = is_undecided && !(left >= 0);
    self->has_hope = self->has_hope || (is_undecided && left >= 0);
  }
}

/* Parks hopeless arms which another arm of S surely equals. */
static bool park_outdone(struct cv_ranking *self) {
  struct cv_ranking_bounds b = cv_ranking_bounds_of(self);
  bool has_parked = false;
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_ranked *arm = &self->arm[i];
    /* The arm of the highest lower bound does not go itself: its own high would have to equal its low. */
    if (arm->is_hopeless && i != b.sure && high_of(arm) <= b.low &&
        last_class(self, i) <= self->rank_class + SPAN_ALONE) {
      cv_ranking_count_parking(self, i, b.sure);
      park(self, i, CV_HELD_BOUNDARY);
      has_parked = true;
    }
  }
  return has_parked;
}

/* Parks all undecided arms together. */
static bool park_rest(struct cv_ranking *self) {
  uint32_t span = 0;
  bool is_stuck = true; /* no tokens can help, however many */
  for (uint32_t i = 0; i < self->arms; i++) {
    if (cv_ranking_is_undecided(self, i)) {
      uint32_t own = last_class(self, i) - self->rank_class;
      span = own > span ? own : span;
      is_stuck = is_stuck && isinf(self->need[i]);
    }
  }
  if (span > SPAN_TIED && !is_stuck) {
    return false;
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    if (cv_ranking_is_undecided(self, i)) {
      park(self, i, CV_HELD_BOUNDARY);
    }
  }
  return true;
}

static bool all_are_known(const struct cv_ranking *self) {
  struct cv_ranking_bounds b = cv_ranking_bounds_of(self);
  return b.all_known && b.undecided > 0;
}

bool cv_parking_park(struct cv_ranking *self) {
  bool has_parked = park_used_up(self);
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].is_hopeless = false;
  }
  if (has_parked || !self->parks || self->by_leader || !all_are_known(self)) {
    return has_parked;
  }
  mark_hopeless(self);
  return park_outdone(self) || (!self->has_hope && park_rest(self));
}

double cv_parking_need(const struct cv_ranking *self, uint32_t i) {
  struct cv_ranking_bounds b = cv_ranking_bounds_of(self);
  if (self->arm[i].held != CV_HELD_NO) {
    return self->arm[i].held_need;
  }
  if (self->by_leader || !cv_ranking_is_undecided(self, i) || !b.all_known || b.active < 2) {
    return (double)NAN;
  }
  struct field field = field_of(self);
  return need_of(self, &field, i);
}
