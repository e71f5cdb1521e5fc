/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/spans.h"

#include <math.h>
#include <stdlib.h>

/* Beyond so many levels only the number of arms bounds the last class. */
enum { LEVELS_MAX = 1000 };

enum cv_err cv_spans_init(uint32_t arms, struct cv_spans *ret) {
  struct cv_spans made = {.arms = arms};
  uint32_t **const whole[] = {&made.by_low, &made.by_high, &made.exit, &made.level, &made.parent, &made.slot};
  double **const real[] = {&made.low, &made.high, &made.most, &made.lead};
  bool has_all = (made.span = calloc(arms, sizeof(*made.span))) != NULL;
  for (size_t i = 0; i < CV_COUNT(whole); i++) {
    *whole[i] = calloc((size_t)arms + 1, sizeof(**whole[i]));
    has_all = has_all && *whole[i] != NULL;
  }
  for (size_t i = 0; i < CV_COUNT(real); i++) {
    *real[i] = calloc(arms, sizeof(**real[i]));
    has_all = has_all && *real[i] != NULL;
  }
  if (!has_all) {
    cv_spans_fini(&made);
    return CV_ERR_NOMEM;
  }
  *ret = made;
  return CV_OK;
}

void cv_spans_fini(struct cv_spans *self) {
  free(self->low);
  free(self->high);
  free(self->span);
  free(self->by_low);
  free(self->by_high);
  free(self->exit);
  free(self->level);
  free(self->parent);
  free(self->slot);
  free(self->most);
  free(self->lead);
  *self = (struct cv_spans){0};
}

static int downward(const void *a, const void *b, void *data) {
  const double *of = data;
  double x = of[*(const uint32_t *)a], y = of[*(const uint32_t *)b];
  return x < y ? 1 : x > y ? -1 : 0;
}

static void line_up(uint32_t *order, uint32_t arms, double *of) {
  for (uint32_t i = 0; i < arms; i++) {
    order[i] = i;
  }
  qsort_r(order, arms, sizeof(*order), downward, of);
}

/* ---- the first class ---- */

/* The lowest best means that the classes can have which there surely are, highest first. Returns their number. */
static uint32_t find_leads(struct cv_spans *self, double alpha) {
  uint32_t leads = 0;
  for (uint32_t at = 0; at < self->arms; at++) {
    uint32_t i = self->by_low[at];
    if (leads == 0 || self->high[i] < self->lead[leads - 1] - alpha) {
      self->lead[leads++] = self->low[i];
    }
  }
  return leads;
}

static void find_first(struct cv_spans *self, double alpha) {
  uint32_t leads = find_leads(self, alpha), above = leads;
  /* From the lowest high to the highest, ever fewer classes are surely above. */
  for (uint32_t at = self->arms; at-- > 0;) {
    uint32_t i = self->by_high[at];
    while (above > 0 && !(self->high[i] < self->lead[above - 1] - alpha)) {
      above--;
    }
    self->span[i].first = above + 1;
  }
}

/* ---- the last class ---- */

/* The highest possible mean of a level, of which arm, and the highest of the others. */
struct top {
  uint32_t arm;
  double high, next;
};

static struct top top_of(const struct cv_spans *self, uint32_t n) {
  struct top top = {.arm = self->level[0], .high = self->most[self->level[0]], .next = -(double)INFINITY};
  for (uint32_t at = 1; at < n; at++) {
    uint32_t i = self->level[at];
    if (self->most[i] > top.high) {
      top = (struct top){.arm = i, .high = self->most[i], .next = top.high};
    } else {
      top.next = fmax(top.next, self->most[i]);
    }
  }
  return top;
}

/* Sets the last level of each arm. */
static void find_levels(struct cv_spans *self, double alpha) {
  uint32_t n = self->arms;
  for (uint32_t i = 0; i < self->arms; i++) {
    self->exit[i] = self->arms;
    self->level[i] = i;
    self->most[i] = self->high[i];
  }
  uint32_t levels = self->arms < LEVELS_MAX ? self->arms : LEVELS_MAX;
  /* With alpha 0 a level can be as high as the one before. */
  for (uint32_t number = 1; alpha > 0 && n > 0 && number <= levels; number++) {
    struct top top = top_of(self, n);
    uint32_t left = 0;
    for (uint32_t at = 0; at < n; at++) {
      uint32_t i = self->level[at];
      double below = (i == top.arm ? top.next : top.high) - alpha;
      if (self->low[i] >= below) {
        self->exit[i] = number;
      } else {
        self->most[i] = fmin(self->most[i], below);
        self->level[left++] = i;
      }
    }
    n = left;
  }
}

/* Arms that are matched to levels, at most one to a level and each to one up to its exit: the most that can be. */
struct matching {
  uint32_t matched;
  uint32_t full; /* levels 1 to this one are matched, and an arm with such an exit could take another's place */
  uint32_t seen; /* of those, looked at */
};

/* The last free level up to this one; 0: none. */
static uint32_t free_level(struct cv_spans *self, uint32_t level) {
  while (self->parent[level] != level) {
    self->parent[level] = self->parent[self->parent[level]];
    level = self->parent[level];
  }
  return level;
}

static void match(struct cv_spans *self, uint32_t exit, struct matching *matching) {
  uint32_t level = free_level(self, exit);
  if (level > 0) {
    self->slot[level] = exit;
    self->parent[level] = level - 1;
    matching->matched++;
    return;
  }
  matching->full = exit > matching->full ? exit : matching->full;
  while (matching->seen < matching->full) {
    uint32_t own = self->slot[++matching->seen];
    matching->full = own > matching->full ? own : matching->full;
  }
}

static void find_last(struct cv_spans *self, double alpha) {
  struct matching matching = {0};
  uint32_t next = 0;
  for (uint32_t level = 0; level <= self->arms; level++) {
    self->parent[level] = level;
  }
  for (uint32_t at = 0; at < self->arms; at++) {
    uint32_t i = self->by_low[at];
    while (next < self->arms && self->low[i] < self->high[self->by_high[next]] - alpha) {
      match(self, self->exit[self->by_high[next++]], &matching);
    }
    /* No arm is above itself: without it one fewer is matched, unless another one takes its place. */
    bool has_itself = self->low[i] < self->high[i] - alpha && self->exit[i] > matching.full;
    uint32_t last = 1 + matching.matched - has_itself;
    last = last < self->exit[i] ? last : self->exit[i];
    self->span[i].last = last > self->span[i].first ? last : self->span[i].first;
  }
}

void cv_spans_find(struct cv_spans *self, double alpha) {
  line_up(self->by_low, self->arms, self->low);
  line_up(self->by_high, self->arms, self->high);
  find_first(self, alpha);
  find_levels(self, alpha);
  find_last(self, alpha);
}
