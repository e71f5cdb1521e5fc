/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/bounds.h"

#include <math.h>
#include <string.h>

#include "common/base/grid.h"
#include "prepare/prepare.h"
#include "thirdparty/policy/adversarial.h"

/* ---- EXP3_tau ---- */

static double horizon_of(const struct cv_spec *spec) {
  double horizon = cv_params_number(&spec->policy.params, "horizon");
  return horizon > 0 ? horizon : (double)spec->tokens;
}

static double tau_of(const struct cv_spec *spec) {
  double tau = cv_params_number(&spec->policy.params, "tau");
  return tau > 0 ? tau : cv_adversarial_usual_tau(spec->arms, horizon_of(spec));
}

enum cv_err cv_lab_bound_tau_fits(const struct cv_prepared *campaign, double x, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  const struct cv_adversary *adversary = cv_quality_adversary(campaign->source.quality);
  (void)x;
  if (adversary == NULL || strcmp(spec->policy.name, "exp3-tau") != 0) {
    return cv_fail(why, CV_ERR_INVALID, "it bounds policy exp3-tau against an adversary; expected both");
  }
  return adversary->memory < tau_of(spec)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "the adversary has a memory of %u rounds; expected less than tau, %g",
                       adversary->memory, tau_of(spec));
}

double cv_lab_bound_tau(const struct cv_prepared *campaign, double x) {
  const struct cv_spec *spec = &campaign->file.spec;
  double arms = spec->arms, rounds = horizon_of(spec), tau = tau_of(spec);
  (void)x;
  return sqrt(7 * rounds * tau * arms * log(arms)) +
         rounds * cv_quality_adversary(campaign->source.quality)->memory / tau + tau;
}

/* ---- GAP ---- */

static bool is_in(uint64_t arms, uint32_t arm) {
  return (arms >> arm & 1) != 0;
}

/* The size of the largest independent set within `arms`: with or without the arm that has the most neighbours left. */
static uint32_t independence(const uint64_t *neighbour, uint64_t arms) {
  int most = 0;
  uint32_t arm = 0;
  for (uint32_t i = 0; i < CV_LAB_BOUND_ARMS; i++) {
    int neighbours = is_in(arms, i) ? __builtin_popcountll(neighbour[i] & arms) : 0;
    arm = neighbours > most ? i : arm;
    most = neighbours > most ? neighbours : most;
  }
  if (most == 0) {
    return (uint32_t)__builtin_popcountll(arms);
  }
  uint64_t without = arms & ~(UINT64_C(1) << arm);
  uint32_t a = independence(neighbour, without), b = 1 + independence(neighbour, without & ~neighbour[arm]);
  return a > b ? a : b;
}

static uint32_t independence_of(const struct cv_spec *spec) {
  uint64_t neighbour[CV_LAB_BOUND_ARMS] = {0};
  for (uint32_t i = 0; i < spec->edges; i++) {
    neighbour[spec->edge[i].a] |= UINT64_C(1) << spec->edge[i].b;
    neighbour[spec->edge[i].b] |= UINT64_C(1) << spec->edge[i].a;
  }
  return independence(neighbour, (UINT64_C(1) << spec->arms) - 1);
}

/* The smallest distance from the best mean; 0 if all means are equal. */
static double distance_of(const struct cv_prepared *campaign) {
  const uint32_t arms = campaign->file.spec.arms;
  double best = 0, distance = 0;
  for (uint32_t i = 0; i < arms; i++) {
    best = fmax(best, campaign->truth[i]);
  }
  for (uint32_t i = 0; i < arms; i++) {
    double below = best - campaign->truth[i];
    distance = below > 0 && (distance == 0 || below < distance) ? below : distance;
  }
  return distance;
}

enum cv_err cv_lab_bound_gap_fits(const struct cv_prepared *campaign, double x, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  const struct cv_graph *graph = &campaign->file.graph;
  (void)x;
  bool is_fixed = !graph->is_drawn || graph->has_seed || graph->p <= 0 || graph->p >= 1;
  if (strcmp(spec->policy.name, "gap") != 0 || campaign->file.items.source != CV_SOURCE_GIVEN || !is_fixed) {
    return cv_fail(why, CV_ERR_INVALID,
                   "it bounds policy gap with given means on one graph; expected items.list or items.ladder, and "
                   "edges, or a graph.seed");
  }
  if (spec->arms > CV_LAB_BOUND_ARMS || !(distance_of(campaign) > 0)) {
    return cv_fail(why, CV_ERR_INVALID, "it needs different means and %d items at most; expected both",
                   CV_LAB_BOUND_ARMS);
  }
  return CV_OK;
}

static double delta_of(const struct cv_spec *spec) {
  double delta = cv_params_number(&spec->policy.params, "delta");
  return delta > 0 ? delta : 1 / (double)spec->tokens;
}

double cv_lab_bound_gap(const struct cv_prepared *campaign, double x) {
  const struct cv_spec *spec = &campaign->file.spec;
  return cv_lab_bound_gap_of_run(campaign, x) + (double)spec->tokens * delta_of(spec);
}

double cv_lab_bound_gap_of_run(const struct cv_prepared *campaign, double x) {
  const struct cv_spec *spec = &campaign->file.spec;
  double sets = independence_of(spec), distance = distance_of(campaign);
  double epsilon = (double)spec->epsilon_micro / (double)CV_MICRO, phases = fmax(1, ceil(-log2(distance) - 1e-9));
  (void)x;
  return (176 / distance + 32 / epsilon) * sets / distance * log(8 * spec->arms * phases * phases / delta_of(spec));
}
