/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A maximal independent set is a maximal clique of the complement graph: Bron and Kerbosch, "Finding all cliques of an
 * undirected graph" (1973), with the pivot of Tomita, Tanaka and Takahashi (2006). The first search counts the sets,
 * the second one finds the set of the drawn number.
 */
#include "thirdparty/policy/independent.h"

struct search {
  uint32_t apart[CV_INDEPENDENT_ARMS]; /* the other arms of the graph that are no neighbours */
  uint64_t left;                       /* sets to skip before the one that is wanted */
  uint32_t set;                        /* the one that is wanted; 0: not found yet */
};

static uint32_t lowest(uint32_t arms) {
  return (uint32_t)__builtin_ctz(arms);
}

/* The arm of `arms` that is apart from most of `open`. */
static uint32_t pivot_of(const struct search *self, uint32_t arms, uint32_t open) {
  uint32_t best = lowest(arms);
  for (; arms != 0; arms &= arms - 1) {
    uint32_t arm = lowest(arms);
    if (__builtin_popcount(open & self->apart[arm]) > __builtin_popcount(open & self->apart[best])) {
      best = arm;
    }
  }
  return best;
}

/* Visits the maximal sets that contain `set`, any of `open`, and none of `closed`, whose sets are visited already. */
static void visit(struct search *self, uint32_t set, uint32_t open, uint32_t closed) {
  if ((open | closed) == 0) {
    self->set = self->left-- == 0 ? set : self->set;
    return;
  }
  for (uint32_t rest = open & ~self->apart[pivot_of(self, open | closed, open)]; rest != 0 && self->set == 0;
       rest &= rest - 1) {
    uint32_t arm = lowest(rest);
    visit(self, set | 1U << arm, open & self->apart[arm], closed & self->apart[arm]);
    open &= ~(1U << arm);
    closed |= 1U << arm;
  }
}

uint32_t cv_independent_draw(const uint32_t *neighbour, uint32_t among, struct cv_rng *rng) {
  struct search search = {.left = UINT64_MAX};
  for (uint32_t rest = among; rest != 0; rest &= rest - 1) {
    uint32_t arm = lowest(rest);
    search.apart[arm] = among & ~neighbour[arm] & ~(1U << arm);
  }
  visit(&search, 0, among, 0);
  search.left = cv_rng_below(rng, UINT64_MAX - search.left);
  visit(&search, 0, among, 0);
  return search.set;
}
