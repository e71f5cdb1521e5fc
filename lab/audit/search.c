/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates are stored as bits, one per run: adding a condition to an event is then an AND of words, and counting its
 * runs a popcount, so that thousands of candidates can be tried in every step of the greedy search.
 */
#include "lab/audit/search.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/audit/discriminant.h"
#include "lab/audit/evidence.h"

enum {
  THRESHOLDS = 7,    /* number of quantiles of a quantity on one neighbour */
  PROBE = 4096,      /* runs that thresholds are taken from */
  REPEATED = 12,     /* occurrences of a value in a probe that make it a candidate for equality */
  CANDIDATES = 24000 /* largest number of conditions */
};
static const uint16_t moduli[] = {2, 3, 5};
static const double quantiles[THRESHOLDS] = {.02, .1, .25, .5, .75, .9, .98};

/* A candidate condition, with one bit per run and neighbour: whether it holds there. */
struct candidate {
  struct cv_audit_condition condition;
  uint64_t *bits[2];
};

struct search {
  const struct cv_audit_subject *subject;
  const int64_t *const *rows;
  uint64_t runs, words;
  double error, z;
  const double *weight;
  struct candidate *candidate;
  size_t count;
  int64_t *value; /* scratch: one quantity of each run */
};

static int64_t weighted(const double *weight, uint32_t series, const int64_t *row) {
  double sum = 0;
  for (uint32_t i = 0; i < series; i++) {
    sum += weight[i] * (double)row[i];
  }
  return llround(sum);
}

static int64_t quantity(const struct cv_audit_condition *condition, const double *weight, uint32_t series,
                        const int64_t *row) {
  if (condition->plus == CV_AUDIT_SUM) {
    return weighted(weight, series, row);
  }
  int64_t value = row[condition->plus] - (condition->minus < 0 ? 0 : row[condition->minus]);
  if (condition->modulus == 0) {
    return value;
  }
  int64_t left = value % condition->modulus;
  return left < 0 ? left + condition->modulus : left;
}

static int64_t quantity_of(const struct search *search, const struct cv_audit_condition *condition, int side,
                           uint64_t run) {
  return quantity(condition, search->weight, search->subject->series,
                  search->rows[side] + run * search->subject->width);
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

/* Quantiles of few distinct values coincide: a duplicate would cost bits and time in every step. */
static void add(struct search *search, size_t from, struct cv_audit_condition condition) {
  if (search->count < CANDIDATES && !is_known(search, from, &condition)) {
    search->candidate[search->count++] = (struct candidate){.condition = condition};
  }
}

/* Adds the conditions on both sides of a threshold. */
static void add_sides(struct search *search, size_t from, struct cv_audit_condition condition, int64_t threshold) {
  condition.threshold = threshold;
  condition.relation = CV_AUDIT_AT_LEAST;
  add(search, from, condition);
  condition.relation = CV_AUDIT_AT_MOST;
  add(search, from, condition);
}

/* Adds the conditions that a quantity's distribution on one neighbour suggests; returns the median. */
static int64_t suggest(struct search *search, size_t from, struct cv_audit_condition condition, int side) {
  int64_t probe[PROBE];
  size_t n = search->runs < PROBE ? search->runs : PROBE;
  for (size_t i = 0; i < n; i++) {
    probe[i] = quantity_of(search, &condition, side, i);
  }
  qsort(probe, n, sizeof(probe[0]), by_value);
  for (size_t i = 0; condition.modulus == 0 && i < THRESHOLDS; i++) {
    add_sides(search, from, condition, probe[(size_t)(quantiles[i] * (double)(n - 1))]);
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
  return probe[n / 2];
}

static void suggest_both(struct search *search, uint16_t plus, int32_t minus, uint16_t modulus) {
  size_t from = search->count; /* is_known() looks only at candidates of the same quantity */
  struct cv_audit_condition condition = {.plus = plus, .minus = minus, .modulus = modulus};
  int64_t low = suggest(search, from, condition, false), high = suggest(search, from, condition, true);
  if (modulus == 0) {
    /* The middle separates laws that differ by a shift. Halved before the addition, which could overflow. */
    add_sides(search, from, condition, low / 2 + high / 2);
  }
}

static bool is_key(const struct cv_audit_subject *subject, uint32_t at) {
  for (uint32_t i = 0; i < subject->keys; i++) {
    if (subject->key[i] == at) {
      return true;
    }
  }
  return false;
}

/* Sets the bits of the candidates [from, to), which share their quantity. */
static enum cv_err mark(struct search *search, size_t from, size_t to) {
  for (int side = 0; side < 2; side++) {
    for (uint64_t run = 0; run < search->runs; run++) {
      search->value[run] = quantity_of(search, &search->candidate[from].condition, side, run);
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

static void suggest_all(struct search *search) {
  const struct cv_audit_subject *subject = search->subject;
  /* The order is that of promise, since CANDIDATES may cut the list: numbers, differences of keys, then the rest. */
  for (uint32_t at = 0; at < subject->width; at++) {
    suggest_both(search, (uint16_t)at, -1, 0);
  }
  for (uint32_t i = 0; i < subject->keys; i++) {
    for (uint32_t j = 0; j < i; j++) {
      suggest_both(search, subject->key[i], subject->key[j], 0);
    }
  }
  for (uint32_t at = 0; at < subject->series; at++) {
    for (size_t i = 0; i < CV_COUNT(moduli); i++) {
      suggest_both(search, (uint16_t)at, -1, moduli[i]);
    }
    if (at > 0 && !(is_key(subject, at) && is_key(subject, at - 1))) {
      suggest_both(search, (uint16_t)at, (int32_t)at - 1, 0);
    }
  }
  if (subject->series > 1) {
    suggest_both(search, CV_AUDIT_SUM, -1, 0);
  }
}

static bool is_same_quantity(const struct cv_audit_condition *a, const struct cv_audit_condition *b) {
  return a->plus == b->plus && a->minus == b->minus && a->modulus == b->modulus;
}

static enum cv_err collect(struct search *search) {
  suggest_all(search);
  for (size_t from = 0, to = 0; from < search->count; from = to) {
    const struct cv_audit_condition *first = &search->candidate[from].condition;
    for (to = from; to < search->count && is_same_quantity(&search->candidate[to].condition, first); to++) {
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

/* The best condition to add to an event that holds on the runs of chosen[]; search->count if none improves it. */
static size_t best_next(const struct search *search, bool likelier, uint64_t *const chosen[2], double *best) {
  size_t found = search->count;
  for (size_t i = 0; i < search->count; i++) {
    const struct candidate *candidate = &search->candidate[i];
    uint64_t hits_p = common_bits(chosen[likelier], candidate->bits[likelier], search->words);
    uint64_t hits_q = common_bits(chosen[!likelier], candidate->bits[!likelier], search->words);
    if (hits_p <= hits_q) {
      continue; /* the cheap test first: the estimate needs roots and a logarithm, for thousands of candidates */
    }
    double estimate = cv_audit_estimate(hits_p, hits_q, search->runs, search->subject->delta, search->z);
    if (estimate > *best) {
      *best = estimate;
      found = i;
    }
  }
  return found;
}

static void start(const struct search *search, bool likelier, struct cv_audit_event *event) {
  *event = (struct cv_audit_event){.likelier = likelier, .series = search->subject->series};
  memcpy(event->weight, search->weight, event->series * sizeof(event->weight[0]));
}

static enum cv_err grow(const struct search *search, bool likelier, struct cv_audit_event *event) {
  uint64_t *chosen[2] = {malloc(search->words * sizeof(uint64_t)), malloc(search->words * sizeof(uint64_t))};
  double best = -(double)INFINITY;
  enum cv_err err = chosen[0] == NULL || chosen[1] == NULL ? CV_ERR_NOMEM : CV_OK;
  start(search, likelier, event);
  for (int side = 0; err == CV_OK && side < 2; side++) {
    /* Bits past the last run are set, too; a candidate's are not, so none of them is ever counted. */
    memset(chosen[side], 0xff, search->words * sizeof(uint64_t));
  }
  /* Greedy: a condition stays only if it raises the bound on epsilon, although it leaves fewer runs with the event. */
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

/* Shortens the event to the prefix of its conditions that certifies most on the runs that it did not grow on. */
static void prune(const struct search *search, struct cv_audit_event *event, uint64_t runs, double *ret_best) {
  uint32_t width = search->subject->width, best = 0, grown = event->conditions;
  *ret_best = -(double)INFINITY;
  /* Later conditions may fit chance in the runs that they grew on; on other runs a shorter prefix may certify more. */
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
  uint64_t growing = runs - runs / 3; /* the rest is for prune() */
  double weight[CV_AUDIT_WIDTH_MAX] = {0};
  if (subject->series > 1) {
    CV_TRY(cv_audit_discriminant(rows, subject->width, growing, subject->series, weight));
  }
  struct search search = {.subject = subject,
                          .rows = rows,
                          .runs = growing,
                          .words = (growing + 63) / 64,
                          .error = error,
                          .z = gsl_cdf_ugaussian_Qinv(error / 2),
                          .weight = weight};
  struct cv_audit_event event[2];
  double best[2];
  search.candidate = calloc(CANDIDATES, sizeof(*search.candidate));
  search.value = malloc(growing * sizeof(*search.value));
  enum cv_err err = search.candidate == NULL || search.value == NULL ? CV_ERR_NOMEM : collect(&search);
  /* Differential privacy bounds the ratio in both directions, and an event may exceed it in one only. */
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
      all =
          holds(&event->condition[i], quantity(&event->condition[i], event->weight, event->series, rows + run * width));
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

/* A text under construction; what does not fit is cut. */
struct text {
  char *at;
  size_t size, used;
};

static void put(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(text->at + text->used, text->size - text->used, format, arguments);
  va_end(arguments);
  text->used += n < 0 ? 0 : (size_t)n;
  text->used = text->used < text->size ? text->used : text->size - 1;
}

static void describe_sum(const struct cv_audit_event *event, const struct cv_audit_subject *subject,
                         struct text *text) {
  const char *between = "";
  for (uint32_t i = 0; i < event->series; i++) {
    char name[CV_AUDIT_TEXT];
    if (event->weight[i] == 0) {
      continue;
    }
    name_number(subject, i, name);
    put(text, "%s", event->weight[i] < 0 ? (between[0] == '\0' ? "-" : " - ") : between);
    if (fabs(event->weight[i]) != 1) {
      put(text, "%.3g ", fabs(event->weight[i]));
    }
    put(text, "%s", name);
    between = " + ";
  }
}

static void describe_quantity(const struct cv_audit_condition *condition, const struct cv_audit_subject *subject,
                              struct text *text) {
  char name[CV_AUDIT_TEXT];
  name_number(subject, condition->plus, name);
  put(text, "%s", name);
  if (condition->minus >= 0) {
    name_number(subject, (uint32_t)condition->minus, name);
    put(text, " - %s", name);
  }
  if (condition->modulus > 0) {
    put(text, " mod %u", condition->modulus);
  }
}

void cv_audit_describe(const struct cv_audit_event *event, const struct cv_audit_subject *subject, char *text,
                       size_t size) {
  static const char *const relation[] = {">=", "<=", "="};
  struct text to = {.at = text, .size = size};
  text[0] = '\0';
  for (uint32_t i = 0; i < event->conditions; i++) {
    const struct cv_audit_condition *condition = &event->condition[i];
    put(&to, "%s", i == 0 ? "" : " and ");
    if (condition->plus == CV_AUDIT_SUM) {
      describe_sum(event, subject, &to);
    } else {
      describe_quantity(condition, subject, &to);
    }
    put(&to, " %s %lld", relation[condition->relation], (long long)condition->threshold);
  }
}
