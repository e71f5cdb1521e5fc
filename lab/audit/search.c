/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/audit/evidence.h"

enum {
  THRESHOLDS = 7,    /* quantiles of one quantity on one neighbour */
  PROBE = 4096,      /* runs that thresholds are taken from */
  REPEATED = 12,     /* times a value must come in a probe to be looked for exactly */
  CANDIDATES = 24000 /* conditions at most */
};
static const double quantiles[THRESHOLDS] = {.02, .1, .25, .5, .75, .9, .98};

/* One candidate condition with a bit a run and neighbour. */
struct candidate {
  struct cv_audit_condition condition;
  uint64_t *bits[2];
};

struct search {
  const struct cv_audit_subject *subject;
  const int64_t *const *rows;
  uint64_t runs, words;
  double error;
  struct candidate *candidate;
  size_t count;
  int64_t *value; /* of one quantity, `runs` of them */
};

static int64_t quantity(const struct cv_audit_condition *condition, const int64_t *row) {
  return row[condition->plus] - (condition->minus < 0 ? 0 : row[condition->minus]);
}

static bool holds(const struct cv_audit_condition *condition, int64_t value) {
  switch (condition->relation) {
    case CV_AUDIT_AT_LEAST:
      return value >= condition->threshold;
    case CV_AUDIT_AT_MOST:
      return value <= condition->threshold;
    case CV_AUDIT_EQUAL:
      break;
  }
  return value == condition->threshold;
}

static int by_value(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

static bool is_known(const struct search *search, size_t from, const struct cv_audit_condition *condition) {
  for (size_t i = from; i < search->count; i++) {
    const struct cv_audit_condition *other = &search->candidate[i].condition;
    if (other->relation == condition->relation && other->threshold == condition->threshold) {
      return true;
    }
  }
  return false;
}

static void add(struct search *search, size_t from, struct cv_audit_condition condition) {
  if (search->count < CANDIDATES && !is_known(search, from, &condition)) {
    search->candidate[search->count++] = (struct candidate){.condition = condition};
  }
}

/* The conditions that one neighbour's distribution of a quantity suggests. */
static void suggest(struct search *search, size_t from, struct cv_audit_condition condition, bool neighbour) {
  int64_t probe[PROBE];
  size_t n = search->runs < PROBE ? search->runs : PROBE;
  for (size_t i = 0; i < n; i++) {
    probe[i] = quantity(&condition, search->rows[neighbour] + i * search->subject->width);
  }
  qsort(probe, n, sizeof(probe[0]), by_value);
  for (size_t i = 0; i < THRESHOLDS; i++) {
    condition.threshold = probe[(size_t)(quantiles[i] * (double)(n - 1))];
    condition.relation = CV_AUDIT_AT_LEAST;
    add(search, from, condition);
    condition.relation = CV_AUDIT_AT_MOST;
    add(search, from, condition);
  }
  condition.relation = CV_AUDIT_EQUAL;
  for (size_t i = 0, same = 1; i < n; i++, same++) {
    if (i + 1 == n || probe[i + 1] != probe[i]) {
      if (same >= REPEATED) {
        condition.threshold = probe[i];
        add(search, from, condition);
      }
      same = 0;
    }
  }
}

static void suggest_both(struct search *search, uint16_t plus, int32_t minus) {
  size_t from = search->count;
  struct cv_audit_condition condition = {.plus = plus, .minus = minus};
  suggest(search, from, condition, false);
  suggest(search, from, condition, true);
}

/* Fills the bits of a run of candidates that share their quantity. */
static enum cv_err mark(struct search *search, size_t from, size_t to) {
  for (int side = 0; side < 2; side++) {
    for (uint64_t run = 0; run < search->runs; run++) {
      search->value[run] =
          quantity(&search->candidate[from].condition, search->rows[side] + run * search->subject->width);
    }
    for (size_t i = from; i < to; i++) {
      uint64_t *bits = calloc(search->words, sizeof(*bits));
      if (bits == NULL) {
        return CV_ERR_NOMEM;
      }
      search->candidate[i].bits[side] = bits;
      for (uint64_t run = 0; run < search->runs; run++) {
        bits[run / 64] |= (uint64_t)holds(&search->candidate[i].condition, search->value[run]) << run % 64;
      }
    }
  }
  return CV_OK;
}

static enum cv_err collect(struct search *search) {
  const struct cv_audit_subject *subject = search->subject;
  for (uint32_t at = 0; at < subject->width; at++) {
    suggest_both(search, (uint16_t)at, -1);
  }
  for (uint32_t i = 0; i < subject->keys; i++) {
    for (uint32_t j = 0; j < i; j++) {
      suggest_both(search, subject->key[i], subject->key[j]);
    }
  }
  for (size_t from = 0, to = 0; from < search->count; from = to) {
    const struct cv_audit_condition *first = &search->candidate[from].condition;
    for (to = from; to < search->count && search->candidate[to].condition.plus == first->plus &&
                    search->candidate[to].condition.minus == first->minus;
         to++) {
    }
    CV_TRY(mark(search, from, to));
  }
  return CV_OK;
}

static uint64_t common_bits(const uint64_t *a, const uint64_t *b, uint64_t words) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < words; i++) {
    count += (uint64_t)__builtin_popcountll(a[i] & b[i]);
  }
  return count;
}

/* The best next condition for an event that holds on the runs of chosen[]; candidates' count if none is better. */
static size_t best_next(const struct search *search, bool likelier, uint64_t *const chosen[2], double *best) {
  size_t found = search->count;
  for (size_t i = 0; i < search->count; i++) {
    const struct candidate *candidate = &search->candidate[i];
    uint64_t hits_p = common_bits(chosen[likelier], candidate->bits[likelier], search->words);
    uint64_t hits_q = common_bits(chosen[!likelier], candidate->bits[!likelier], search->words);
    if (hits_p <= hits_q) {
      continue;
    }
    /* A bound is some hundred times as much work as a count: skip what cannot win whatever the bound says. */
    if (log((double)hits_p / ((double)hits_q + 1)) < *best) {
      continue;
    }
    double certified = cv_audit_certified(hits_p, hits_q, search->runs, search->subject->delta, search->error);
    if (certified > *best) {
      *best = certified;
      found = i;
    }
  }
  return found;
}

static enum cv_err grow(const struct search *search, bool likelier, struct cv_audit_event *event) {
  uint64_t *chosen[2] = {malloc(search->words * sizeof(uint64_t)), malloc(search->words * sizeof(uint64_t))};
  double best = -(double)INFINITY;
  enum cv_err err = chosen[0] == NULL || chosen[1] == NULL ? CV_ERR_NOMEM : CV_OK;
  *event = (struct cv_audit_event){.likelier = likelier};
  for (int side = 0; err == CV_OK && side < 2; side++) {
    memset(chosen[side], 0xff, search->words * sizeof(uint64_t));
  }
  while (err == CV_OK && event->conditions < CV_AUDIT_CONDITIONS_MAX) {
    size_t next = best_next(search, likelier, chosen, &best);
    if (next == search->count) {
      break;
    }
    event->condition[event->conditions++] = search->candidate[next].condition;
    for (int side = 0; side < 2; side++) {
      for (uint64_t i = 0; i < search->words; i++) {
        chosen[side][i] &= search->candidate[next].bits[side][i];
      }
    }
  }
  free(chosen[0]);
  free(chosen[1]);
  return err;
}

/* Leaves off what the conditions grown on some runs do not achieve on others; what remains certifies *ret_best. */
static void prune(const struct search *search, struct cv_audit_event *event, uint64_t runs, double *ret_best) {
  uint32_t width = search->subject->width, best = 0, grown = event->conditions;
  *ret_best = -(double)INFINITY;
  for (event->conditions = 1; event->conditions <= grown; event->conditions++) {
    uint64_t hits[2];
    for (int side = 0; side < 2; side++) {
      hits[side] = cv_audit_count(event, search->rows[side] + search->runs * width, width, runs - search->runs);
    }
    double certified = cv_audit_certified(hits[event->likelier], hits[!event->likelier], runs - search->runs,
                                          search->subject->delta, search->error);
    if (certified > *ret_best) {
      *ret_best = certified;
      best = event->conditions;
    }
  }
  event->conditions = best;
}

enum cv_err cv_audit_search(const struct cv_audit_subject *subject, const int64_t *const rows[2], uint64_t runs,
                            double error, struct cv_audit_event *ret) {
  uint64_t growing = runs - runs / 3;
  struct search search = {
      .subject = subject, .rows = rows, .runs = growing, .words = (growing + 63) / 64, .error = error};
  struct cv_audit_event event[2];
  double best[2];
  search.candidate = calloc(CANDIDATES, sizeof(*search.candidate));
  search.value = malloc(growing * sizeof(*search.value));
  enum cv_err err = search.candidate == NULL || search.value == NULL ? CV_ERR_NOMEM : collect(&search);
  for (int likelier = 0; err == CV_OK && likelier < 2; likelier++) {
    err = grow(&search, likelier, &event[likelier]);
    if (err == CV_OK) {
      prune(&search, &event[likelier], runs, &best[likelier]);
    }
  }
  if (err == CV_OK) {
    *ret = event[best[1] >= best[0]];
  }
  for (size_t i = 0; i < search.count; i++) {
    free(search.candidate[i].bits[0]);
    free(search.candidate[i].bits[1]);
  }
  free(search.candidate);
  free(search.value);
  return err;
}

uint64_t cv_audit_count(const struct cv_audit_event *event, const int64_t *rows, uint32_t width, uint64_t runs) {
  uint64_t hits = 0;
  for (uint64_t run = 0; run < runs; run++) {
    bool all = true;
    for (uint32_t i = 0; all && i < event->conditions; i++) {
      all = holds(&event->condition[i], quantity(&event->condition[i], rows + run * width));
    }
    hits += all;
  }
  return hits;
}

static void name_number(const struct cv_audit_subject *subject, uint32_t at, char text[CV_AUDIT_TEXT]) {
  if (subject->label != NULL) {
    subject->label(subject, at, text);
  } else {
    (void)snprintf(text, CV_AUDIT_TEXT, "x(%u)", at + 1);
  }
}

void cv_audit_describe(const struct cv_audit_event *event, const struct cv_audit_subject *subject, char *text,
                       size_t size) {
  static const char *const relation[] = {">=", "<=", "="};
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < event->conditions && used < size; i++) {
    const struct cv_audit_condition *condition = &event->condition[i];
    char plus[CV_AUDIT_TEXT], minus[CV_AUDIT_TEXT] = "";
    name_number(subject, condition->plus, plus);
    if (condition->minus >= 0) {
      name_number(subject, (uint32_t)condition->minus, minus);
    }
    int n = snprintf(text + used, size - used, "%s%s%s%s %s %lld", i == 0 ? "" : " and ", plus,
                     condition->minus < 0 ? "" : " - ", minus, relation[condition->relation],
                     (long long)condition->threshold);
    used += n < 0 ? 0 : (size_t)n;
  }
}
