/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PPAR again, written for clarity and not for speed, with sets as arrays of flags and every maximum computed anew: the
 * product's PPAR is compared with it.
 */
#ifndef CV_TESTS_NAIVE_H
#define CV_TESTS_NAIVE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/tail.h"

enum { NAIVE_ARMS = 64, NAIVE_DECISIONS = 4096 };

struct naive {
  uint32_t k;
  double alpha, delta, epsilon;
  char radius; /* 'p'rinted, proo'f', 's'ound */
  bool hold;
  uint32_t l;
  bool in_s[NAIVE_ARMS], in_c[NAIVE_ARMS], in_next[NAIVE_ARMS];
  uint32_t final_class[NAIVE_ARMS];
  double sum[NAIVE_ARMS], tokens[NAIVE_ARMS], n[NAIVE_ARMS];
  struct cv_noise noise[NAIVE_ARMS];
  /* of the last step */
  struct cv_decision decision[NAIVE_DECISIONS];
  uint32_t decisions;
  bool want[NAIVE_ARMS], done;
};

static inline double naive_mean(const struct naive *x, uint32_t i) {
  return x->sum[i] / x->tokens[i];
}

static inline double naive_radius(const struct naive *x, uint32_t i) {
  double t = x->tokens[i], n = x->n[i], k = x->k;
  if (x->radius == 'p') {
    return 2 * sqrt(log(4 * k / x->delta) / 2 / t);
  }
  if (x->radius == 'f') {
    return 2 * sqrt(2 * log(4 * k / x->delta) / t);
  }
  double share = x->delta / (n * (n + 1)) / k;
  double q = x->noise[i].groups == 0 ? 0 : cv_tail_quantile(&x->noise[i], share / 2) / x->epsilon;
  return sqrt(log(4 / share) / (2 * t)) + q / t;
}

static inline void naive_init(struct naive *x) {
  x->l = 1;
  for (uint32_t i = 0; i < x->k; i++) {
    x->in_s[i] = true;
  }
}

static inline uint32_t naive_count(const struct naive *x, const bool *set) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < x->k; i++) {
    n += set[i];
  }
  return n;
}

static inline void naive_note(struct naive *x, uint32_t i, enum cv_decision_kind kind, double reference) {
  uint32_t at = x->decisions;
  for (uint32_t j = 0; kind == CV_DECISION_REMOVE && j < x->decisions; j++) {
    if (x->decision[j].arm == i && x->decision[j].kind == CV_DECISION_REMOVE) {
      at = j;
    }
  }
  x->decision[at] =
      (struct cv_decision){kind, i, x->l, (uint64_t)x->tokens[i], naive_mean(x, i), naive_radius(x, i), reference};
  if (at == x->decisions) {
    x->decisions++;
  }
}

/* Max over S of mean + sign * radius, without arm `but`. */
static inline double naive_max(const struct naive *x, const bool *s, double sign, uint32_t but) {
  double best = -(double)INFINITY;
  for (uint32_t i = 0; i < x->k; i++) {
    if (s[i] && i != but) {
      best = fmax(best, naive_mean(x, i) + (sign == 0 ? 0 : sign * naive_radius(x, i)));
    }
  }
  return best;
}

static inline void naive_rank(struct naive *x) {
  bool s[NAIVE_ARMS];
  memcpy(s, x->in_s, sizeof(s));
  for (uint32_t i = 0; i < x->k; i++) {
    if (s[i] && x->n[i] == 0) {
      return;
    }
  }
  uint32_t leader = 0;
  double m = naive_max(x, s, 0, UINT32_MAX);
  while (!s[leader] || naive_mean(x, leader) != m) {
    leader++;
  }
  for (uint32_t i = 0; i < x->k; i++) {
    if (!s[i] || x->in_c[i]) {
      continue;
    }
    double mu = naive_mean(x, i), r = naive_radius(x, i);
    double up = x->radius == 's' ? naive_max(x, s, 1, i) - x->alpha : m - x->alpha;
    double down = x->radius == 's' ? naive_max(x, s, -1, UINT32_MAX) - x->alpha : m - x->alpha;
    if (x->radius == 's' ? mu - r >= up : mu >= up + r) {
      naive_note(x, i, CV_DECISION_SETTLE, up);
      x->in_c[i] = true;
    } else if (x->radius == 's' ? mu + r < down : mu < down - r) {
      naive_note(x, i, CV_DECISION_REMOVE, down);
      x->in_s[i] = false;
      x->in_next[i] = true;
    }
  }
  bool others = true;
  for (uint32_t i = 0; i < x->k; i++) {
    others = others && (i == leader || !x->in_s[i] || x->in_c[i]);
  }
  if (x->radius != 's' && others && !x->in_c[leader]) {
    naive_note(x, leader, CV_DECISION_SETTLE, m - x->alpha);
    x->in_c[leader] = true;
  }
}

static inline void naive_step(struct naive *x) {
  x->decisions = 0;
  x->done = false;
  memset(x->want, 0, sizeof(x->want));
  for (;;) {
    naive_rank(x);
    if (naive_count(x, x->in_s) != naive_count(x, x->in_c)) {
      break;
    }
    for (uint32_t i = 0; i < x->k; i++) {
      x->final_class[i] = x->in_c[i] ? x->l : x->final_class[i];
      x->in_s[i] = x->in_next[i];
      x->in_c[i] = x->in_next[i] = false;
    }
    x->l++;
    if (naive_count(x, x->in_s) == 0) {
      x->done = true;
      return;
    }
    if (x->radius != 's' && naive_count(x, x->in_s) > 1) {
      break;
    }
  }
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < x->k; i++) {
    if (x->in_s[i] && x->n[i] > 0) {
      double mine = naive_mean(x, i) + (x->radius == 's' ? naive_radius(x, i) : 0);
      double theirs = naive_max(x, x->in_s, x->radius == 's' ? 1 : 0, UINT32_MAX);
      best = best == UINT32_MAX && mine == theirs ? i : best;
    }
  }
  for (uint32_t i = 0; i < x->k; i++) {
    x->want[i] = x->in_s[i] && (!x->hold || !x->in_c[i] || i == best);
  }
}

#endif
