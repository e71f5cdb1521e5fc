/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/neighbours.h"

#include <stdlib.h>

#include "common/base/rng.h"

enum cv_err cv_neighbours_init(const struct cv_spec *spec, struct cv_neighbours *ret) {
  struct cv_neighbours made = {.first = calloc((size_t)spec->arms + 2, sizeof(*made.first)),
                               .arm = calloc(2 * (size_t)spec->edges + 1, sizeof(*made.arm))};
  if (made.first == NULL || made.arm == NULL) {
    cv_neighbours_fini(&made);
    return CV_ERR_NOMEM;
  }
  /* Counting sort: store degrees at index arm + 2, sum them so that index arm + 1 has where the arm's neighbours
   * begin; filling in advances it to where they end, which is where the next arm's begin. */
  for (uint32_t i = 0; i < spec->edges; i++) {
    made.first[spec->edge[i].a + 2]++;
    made.first[spec->edge[i].b + 2]++;
  }
  for (uint32_t i = 2; i <= spec->arms + 1; i++) {
    made.first[i] += made.first[i - 1];
  }
  for (uint32_t i = 0; i < spec->edges; i++) {
    made.arm[made.first[spec->edge[i].a + 1]++] = spec->edge[i].b;
    made.arm[made.first[spec->edge[i].b + 1]++] = spec->edge[i].a;
  }
  *ret = made;
  return CV_OK;
}

void cv_neighbours_fini(struct cv_neighbours *neighbours) {
  free(neighbours->first);
  free(neighbours->arm);
  *neighbours = (struct cv_neighbours){0};
}

uint64_t cv_neighbours_shown(const struct cv_neighbours *neighbours, const uint32_t *plays, uint32_t arm) {
  uint64_t shown = plays[arm];
  for (uint32_t i = neighbours->first[arm]; i < neighbours->first[arm + 1]; i++) {
    shown += plays[neighbours->arm[i]];
  }
  return shown;
}

/* Stores up to `room` edges; returns the number of edges drawn. */
static size_t draw_edges(uint32_t arms, double p, uint64_t seed, struct cv_edge *edge, size_t room) {
  struct cv_rng_seeded seeded;
  size_t n = 0;
  cv_rng_seeded_init(&seeded, seed, CV_RNG_GRAPH, 0, 0);
  for (uint32_t a = 0; a < arms; a++) {
    for (uint32_t b = a + 1; b < arms; b++) {
      /* One draw per pair, taken or not: with a larger p the graph of the same seed only gains edges. */
      if (cv_rng_unit(&seeded.rng) < p && n++ < room) {
        edge[n - 1] = (struct cv_edge){.a = a, .b = b};
      }
    }
  }
  return n;
}

enum cv_err cv_neighbours_draw(struct cv_spec *spec, double p, uint64_t seed) {
  /* Draw twice with the same seed: first to count, then to store. */
  size_t n = draw_edges(spec->arms, p, seed, NULL, 0);
  if (n > CV_EDGES_MAX) {
    return CV_ERR_LIMIT;
  }
  spec->edge = n == 0 ? NULL : calloc(n, sizeof(*spec->edge));
  if (n > 0 && spec->edge == NULL) {
    return CV_ERR_NOMEM;
  }
  spec->edges = (uint32_t)draw_edges(spec->arms, p, seed, spec->edge, n);
  return CV_OK;
}
