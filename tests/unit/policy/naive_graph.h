/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies on a feedback graph again, with the graph as a matrix and every set, maximum and formula written as the
 * papers print them: the product's policies are compared with these.
 */
#ifndef CV_TESTS_NAIVE_GRAPH_H
#define CV_TESTS_NAIVE_GRAPH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { GRAPH_ARMS = 24 };

struct naive_graph {
  char kind; /* 'g'ap, gap'u', gapu with 'e'qually likely sets, 'a'ae, 'd'p-se, alpha-'s'ample */
  uint32_t k;
  double delta, epsilon;
  bool edge[GRAPH_ARMS][GRAPH_ARMS];
  bool in[GRAPH_ARMS];
  double mean[GRAPH_ARMS], seen[GRAPH_ARMS]; /* of the last release */
  uint32_t phase;
};

static inline uint32_t naive_in(const struct naive_graph *x) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->k; i++) {
    n += x->in[i];
  }
  return n;
}

/* GAP's L (lines 10 to 12), DP-SE's R, AlphaSample's passes; AAE has one play. */
static inline double naive_plays(const struct naive_graph *x) {
  double a = naive_in(x), t = x->phase, gap = 1 / pow(2, t), r = 0.25 / pow(2, t - 1);
  switch (x->kind) {
    case 'a':
      return 1;
    case 's':
      return ceil(2 * log(1 / x->delta) / (r * r));
    case 'd':
      return ceil(fmax(32 * log(8 * a * t * t / x->delta) / (gap * gap),
                       8 * log(4 * a * t * t / x->delta) / (x->epsilon * gap))) +
             1;
    default:
      return ceil(fmax(pow(2, 5 + 2 * t) * log(8 * a * t * t / x->delta),
                       pow(2, 3 + t) / x->epsilon * log(4 * a * t * t / x->delta)));
  }
}

/* The distance below the best at which an arm is dropped. */
static inline double naive_width(const struct naive_graph *x, uint32_t arm) {
  double a = naive_in(x), t = x->phase, l = naive_plays(x), n = x->seen[arm];
  switch (x->kind) {
    case 'a':
      return 2 * sqrt(log(4 * x->k * n * n / x->delta) / n);
    case 's':
      return 2 * 0.25 / pow(2, t - 1);
    case 'd':
      return 2 * sqrt(log(8 * a * t * t / x->delta) / (2 * l)) + 2 * log(4 * a * t * t / x->delta) / (l * x->epsilon);
    default:
      return sqrt(2 * log(8 * a * t * t / x->delta) / l) + 2 * log(4 * a * t * t / x->delta) / (x->epsilon * l);
  }
}

/* Drops arms; true if one is left. */
static inline bool naive_judge(struct naive_graph *x) {
  bool out[GRAPH_ARMS] = {false};
  double best = -(double)INFINITY;
  for (uint32_t i = 0; i < x->k; i++) {
    best = x->in[i] ? fmax(best, x->mean[i]) : best;
  }
  for (uint32_t i = 0; i < x->k; i++) {
    out[i] = x->in[i] && x->mean[i] < best - naive_width(x, i);
  }
  for (uint32_t i = 0; i < x->k; i++) {
    x->in[i] = x->in[i] && !out[i];
  }
  return naive_in(x) == 1;
}

/* GetIndSet (lines 26 to 32) for means without ties. */
static inline void naive_set(const struct naive_graph *x, bool *set) {
  bool rest[GRAPH_ARMS];
  memcpy(rest, x->in, sizeof(rest));
  memset(set, 0, GRAPH_ARMS * sizeof(*set));
  for (;;) {
    uint32_t best = x->k;
    for (uint32_t i = 0; i < x->k; i++) {
      if (rest[i] && (best == x->k || x->mean[i] > x->mean[best])) {
        best = i;
      }
    }
    if (best == x->k) {
      return;
    }
    set[best] = true;
    rest[best] = false;
    for (uint32_t i = 0; i < x->k; i++) {
      rest[i] = rest[i] && !x->edge[best][i];
    }
  }
}

/* No arm in the set is a neighbour of another in it, and every remaining arm is in it or a neighbour of one in it. */
static inline bool naive_is_maximal(const struct naive_graph *x, const bool *set) {
  for (uint32_t i = 0; i < x->k; i++) {
    bool near = false;
    for (uint32_t j = 0; j < x->k; j++) {
      near = near || (set[j] && x->edge[i][j]);
    }
    if ((set[i] && near) || (x->in[i] && !set[i] && !near) || (set[i] && !x->in[i])) {
      return false;
    }
  }
  return true;
}

/* How often each arm is seen if each is played this often. */
static inline void naive_seen(const struct naive_graph *x, const uint32_t *plays, double *seen) {
  for (uint32_t i = 0; i < x->k; i++) {
    seen[i] = plays[i];
    for (uint32_t j = 0; j < x->k; j++) {
      seen[i] += x->edge[i][j] ? plays[j] : 0;
    }
  }
}

#endif
