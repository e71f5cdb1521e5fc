/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recruitment policies again, written for clarity and not for speed: money is counted pull by pull, every maximum
 * and every greedy choice is computed anew. The product's policies are compared with these.
 */
#ifndef CV_TESTS_HIRER_H
#define CV_TESTS_HIRER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/base/rng.h"

enum { HIRER_ARMS = 12 };

struct hirer {
  const char *name;
  uint32_t arms, tasks;                            /* tasks: dpu */
  uint64_t cost[HIRER_ARMS], budget, seed, tokens; /* tokens: 0 without a limit */
  double epsilon, delta, gap, truth[HIRER_ARMS];
  bool printed, index_printed, v; /* v: there is noise */
  /* dpu-kl: epsilon is infinite without noise; the mean token is offset + slope times the mean score */
  bool by_bound;
  double offset, slope;
  uint32_t taken; /* by the policy: right as well if its value equals the highest but for rounding */
  /* The releases so far. */
  double pulls[HIRER_ARMS], sum[HIRER_ARMS];
  /* dpf */
  bool exploits;
  uint32_t last; /* 1 + the arm explored last */
  double value[HIRER_ARMS];
  /* The next plan. */
  uint64_t want[HIRER_ARMS];
  bool done;
};

static inline uint64_t hirer_spent(const struct hirer *h) {
  uint64_t spent = 0;
  for (uint32_t i = 0; i < h->arms; i++) {
    spent += (uint64_t)h->pulls[i] * h->cost[i];
  }
  return spent;
}

static inline bool hirer_cheaper(const struct hirer *h, uint32_t a, uint32_t b) {
  return h->cost[a] < h->cost[b] || (h->cost[a] == h->cost[b] && a < b);
}

/* The affordable arm of the highest value; of equal values the cheapest, then the first. UINT32_MAX if none. */
static inline uint32_t hirer_best(const struct hirer *h, const double *value, uint64_t left) {
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < h->arms; i++) {
    if (h->cost[i] <= left &&
        (best == UINT32_MAX || value[i] > value[best] || (value[i] == value[best] && hirer_cheaper(h, i, best)))) {
      best = i;
    }
  }
  return best;
}

/* The next in turn after the arm `last` (1 + its number; 0: none yet), by cost; UINT32_MAX: it was the last. */
static inline uint32_t hirer_next(const struct hirer *h, uint32_t last) {
  uint32_t next = UINT32_MAX;
  for (uint32_t i = 0; i < h->arms; i++) {
    if ((last == 0 || hirer_cheaper(h, last - 1, i)) && (next == UINT32_MAX || hirer_cheaper(h, i, next))) {
      next = i;
    }
  }
  return next;
}

/* One arm of the exploration, or false. */
static inline bool hirer_explore(struct hirer *h, uint64_t *left) {
  uint32_t i = hirer_next(h, h->last);
  if (i == UINT32_MAX || h->cost[i] > *left) {
    i = hirer_next(h, 0);
  }
  if (h->cost[i] > *left) {
    return false;
  }
  h->last = i + 1;
  h->want[i]++;
  *left -= h->cost[i];
  return true;
}

static inline void hirer_greedy(struct hirer *h, const double *value, uint64_t left) {
  for (uint32_t i = hirer_best(h, value, left); i != UINT32_MAX; i = hirer_best(h, value, left)) {
    h->want[i]++;
    left -= h->cost[i];
  }
}

static inline void hirer_dpf(struct hirer *h, uint64_t left) {
  uint64_t share = (uint64_t)(h->epsilon * (double)h->budget), spent = h->budget - left;
  uint64_t to_explore = share > spent ? share - spent : 0;
  if (!h->exploits && hirer_explore(h, &to_explore)) {
    while (!h->printed && hirer_explore(h, &to_explore)) {
    }
    return;
  }
  for (uint32_t i = 0; !h->exploits && i < h->arms; i++) {
    h->value[i] = h->pulls[i] == 0 ? -(double)INFINITY : h->sum[i] / h->pulls[i] / ((double)h->cost[i] / 1e6);
  }
  h->exploits = true;
  if (h->printed) {
    h->want[hirer_best(h, h->value, left)]++;
  } else {
    hirer_greedy(h, h->value, left);
  }
}

/* Each arm once, as far as the money lasts. */
static inline bool hirer_first(struct hirer *h, uint64_t left) {
  bool any = false;
  for (uint32_t i = 0; i < h->arms; i++) {
    if (h->pulls[i] == 0 && h->cost[i] <= left) {
      h->want[i] = 1;
      left -= h->cost[i];
      any = true;
    }
  }
  return any;
}

static inline double hirer_pulls(const struct hirer *h) {
  double t = 0;
  for (uint32_t i = 0; i < h->arms; i++) {
    t += h->pulls[i];
  }
  return t;
}

/* A draw with these weights, the densest arm first. */
static inline uint32_t hirer_draw(const struct hirer *h, const double *value, uint64_t left, struct cv_rng *rng) {
  struct hirer plan = *h;
  hirer_greedy(&plan, value, left);
  uint64_t all = 0;
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < h->arms; i++) {
    all += plan.want[i];
    kinds += plan.want[i] > 0;
  }
  uint64_t at = kinds == 1 ? 0 : cv_rng_below(rng, all);
  for (;;) {
    uint32_t i = hirer_best(h, value, left);
    if (at < plan.want[i]) {
      return i;
    }
    at -= plan.want[i];
    left -= plan.want[i] * h->cost[i];
  }
}

static inline void hirer_dpu(struct hirer *h, uint64_t left, struct cv_rng *rng) {
  double t = hirer_pulls(h), density[HIRER_ARMS];
  for (uint32_t i = 0; i < h->arms; i++) {
    double z = h->pulls[i];
    double v = h->v ? sqrt(8) / h->delta * log(4 * pow(t, 4)) * (log(t) + 1) : 0;
    density[i] = (h->sum[i] / z + (sqrt(2 * log(t) / z) + v / z)) / ((double)h->cost[i] / 1e6);
  }
  for (uint32_t task = 0; task < h->tasks && h->tasks > 1; task++) {
    uint32_t i = hirer_best(h, density, left);
    if (i == UINT32_MAX || h->want[i] > 0) {
      return; /* those that are affordable are taken */
    }
    h->want[i] = 1;
    density[i] = -(double)INFINITY;
    left -= h->cost[i];
  }
  if (h->tasks == 1) {
    h->want[hirer_draw(h, density, left, rng)] = 1;
  }
}

static inline void hirer_bound(struct hirer *h, uint64_t left) {
  double t = hirer_pulls(h), index[HIRER_ARMS];
  for (uint32_t i = 0; i < h->arms; i++) {
    double z = h->pulls[i];
    double noise = h->v ? 4 * sqrt(8) * log(t) / h->delta * (log2(z) + 1) / z : 0;
    index[i] = h->sum[i] / z + ((h->index_printed ? 0 : sqrt(2 * log(t) / z)) + noise);
  }
  h->want[hirer_best(h, index, left)] = 1;
}

static inline uint32_t hirer_any(const struct hirer *h, uint64_t left, struct cv_rng *rng) {
  uint32_t n = 0, i = hirer_next(h, 0);
  for (uint32_t j = 0; j < h->arms; j++) {
    n += h->cost[j] <= left;
  }
  for (uint64_t at = cv_rng_below(rng, n); at > 0; at--) {
    i = hirer_next(h, i + 1);
  }
  return i;
}

/* Theorem 3.5: the share is in proportion to sqrt(ln(2B/c) (ln(B/c) + 1)/B); epsilon at the budget `at`. */
static inline double hirer_share(const struct hirer *h, double at) {
  double least = (double)INFINITY, of[2], budget[2] = {(double)h->budget / 1e6, at};
  for (uint32_t i = 0; i < h->arms; i++) {
    least = fmin(least, (double)h->cost[i] / 1e6);
  }
  for (int i = 0; i < 2; i++) {
    double hires = budget[i] < least ? 1 : budget[i] / least;
    of[i] = sqrt(log(2 * hires) * (log(hires) + 1) / hires);
  }
  return fmin(1, h->epsilon * of[0] / of[1]);
}

/* The mean of the densest worker minus that of the least dense. */
static inline double hirer_gap(const struct hirer *h, const double *mean) {
  uint32_t most = UINT32_MAX, least = UINT32_MAX;
  for (uint32_t i = 0; i < h->arms; i++) {
    if (!isnan(mean[i])) {
      double cost = (double)h->cost[i] / 1e6;
      most = most == UINT32_MAX || mean[i] / cost > mean[most] / ((double)h->cost[most] / 1e6) ? i : most;
      least = least == UINT32_MAX || mean[i] / cost < mean[least] / ((double)h->cost[least] / 1e6) ? i : least;
    }
  }
  return mean[most] - mean[least];
}

static inline void hirer_eps_greedy(struct hirer *h, uint64_t left, struct cv_rng *rng) {
  double t = hirer_pulls(h) + 1, mean[HIRER_ARMS], gap = h->gap;
  for (uint32_t i = 0; i < h->arms; i++) {
    mean[i] = h->sum[i] / h->pulls[i];
  }
  if (strcmp(h->name, "eps-greedy-true-gap") == 0) {
    gap = fabs(hirer_gap(h, h->truth));
  } else if (gap == 0) {
    gap = fmin(1, fmax(0, hirer_gap(h, mean)));
  }
  double epsilon = gap == 0 ? 1 : fmin(1, 5.0 * h->arms / (t * gap * gap));
  h->want[cv_rng_unit(rng) < epsilon ? hirer_any(h, left, rng) : hirer_best(h, mean, left)] = 1;
}

static inline double hirer_kl(double x, double q) {
  return (x == 0 ? 0 : x * log(x / q)) + (x == 1 ? 0 : (1 - x) * log((1 - x) / (1 - q)));
}

/* z inf over x in [0, 1] of kl(x, q) + epsilon |r/z - x|, by a search of the valley; q = g(m). */
static inline double hirer_divergence(const struct hirer *h, uint32_t i, double m) {
  double p = h->sum[i] / h->pulls[i], q = h->offset + h->slope * m, low = 0, high = 1;
  if (!h->v) {
    return h->pulls[i] * hirer_kl(fmin(1, fmax(0, p)), q);
  }
  for (int k = 0; k < 200; k++) {
    double a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (hirer_kl(a, q) + h->delta * fabs(p - a) < hirer_kl(b, q) + h->delta * fabs(p - b)) {
      high = b;
    } else {
      low = a;
    }
  }
  double ends = fmin(hirer_kl(0, q) + h->delta * fabs(p), hirer_kl(1, q) + h->delta * fabs(p - 1));
  return h->pulls[i] * fmin(ends, hirer_kl(low, q) + h->delta * fabs(p - low));
}

/* The m up to which `level` of the histogram of 64 weights lies. */
static inline double hirer_quantile(const struct hirer *h, uint32_t i, double level) {
  double weight[64], all = 0, least = (double)INFINITY;
  for (int j = 0; j < 64; j++) {
    weight[j] = hirer_divergence(h, i, (2 * j + 1) / 128.0);
    least = fmin(least, weight[j]);
  }
  for (int j = 0; j < 64; j++) {
    weight[j] = exp(least - weight[j]);
    all += weight[j];
  }
  double missing = level * all;
  for (int j = 0; j < 63; j++) {
    if (missing <= weight[j]) {
      return (j + missing / weight[j]) / 64;
    }
    missing -= weight[j];
  }
  return (63 + missing / weight[63]) / 64;
}

/* The largest m in [0, 1] within ln t: digit by digit, from above down to the estimate. */
static inline double hirer_within(const struct hirer *h, uint32_t i) {
  double mean = fmin(1, fmax(0, (h->sum[i] / h->pulls[i] - h->offset) / h->slope));
  double most = log(hirer_pulls(h)), from = 1, step = .1;
  for (int digit = 0; digit < 13; digit++, step /= 10) {
    while (from > mean && hirer_divergence(h, i, from) > most) {
      from -= step;
    }
    from = digit == 12 ? from : fmin(1, from + step);
  }
  return fmax(mean, from);
}

static inline void hirer_dpu_kl(struct hirer *h, uint64_t left) {
  double value[HIRER_ARMS];
  for (uint32_t i = 0; i < h->arms; i++) {
    double n = (double)left / (double)h->cost[i];
    if (h->by_bound) {
      value[i] = n * (h->pulls[i] == 0 ? 1 : hirer_within(h, i));
    } else {
      n = fmin(n, (double)h->tokens - hirer_pulls(h));
      double level = 1 - fmin(.5, 100 / n);
      value[i] = n * (h->pulls[i] == 0 ? level : hirer_quantile(h, i, level));
    }
  }
  uint32_t i = hirer_best(h, value, left);
  i = h->cost[h->taken] <= left && value[h->taken] > value[i] * (1 - 1e-9) ? h->taken : i;
  double first = h->v ? ceil(6 / h->delta) : 1, times = h->pulls[i] == 0 ? first : h->pulls[i];
  times = fmin(times, (double)h->tokens - hirer_pulls(h));
  h->want[i] = (uint64_t)fmin(times, (double)(left / h->cost[i]));
}

static inline void hirer_step(struct hirer *h, uint64_t plan) {
  uint64_t left = h->budget - hirer_spent(h);
  struct cv_rng_seeded stream;
  cv_rng_seeded_init(&stream, h->seed, CV_RNG_POLICY, plan, 0);
  memset(h->want, 0, sizeof(h->want));
  h->done = true;
  double flat[HIRER_ARMS] = {0}, density[HIRER_ARMS];
  for (uint32_t i = 0; i < h->arms; i++) {
    h->done = h->done && h->cost[i] > left;
    density[i] = h->truth[i] / ((double)h->cost[i] / 1e6);
  }
  h->done = h->done || (h->tokens > 0 && hirer_pulls(h) >= (double)h->tokens);
  if (h->done) {
    return;
  }
  bool learns = strcmp(h->name, "dpu") == 0 || strncmp(h->name, "eps-greedy", 10) == 0 || h->name[2] == '-';
  if (strcmp(h->name, "dpf") == 0) {
    hirer_dpf(h, left);
  } else if (strcmp(h->name, "dpu-kl") == 0) {
    hirer_dpu_kl(h, left);
  } else if (strcmp(h->name, "cheapest") == 0) {
    hirer_greedy(h, flat, left);
  } else if (strcmp(h->name, "opt") == 0) {
    hirer_greedy(h, density, left);
  } else if (strcmp(h->name, "uniform") == 0) {
    h->want[hirer_any(h, left, &stream.rng)] = 1;
  } else if (learns && hirer_first(h, left)) {
    return;
  } else if (strcmp(h->name, "dpu") == 0) {
    hirer_dpu(h, left, &stream.rng);
  } else if (strncmp(h->name, "eps-greedy", 10) == 0) {
    hirer_eps_greedy(h, left, &stream.rng);
  } else {
    hirer_bound(h, left);
  }
}

#endif
