/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "lab/experiment/campaigns.h"
#include "lab/run/measures.h"
#include "prepare/prepare.h"
#include "simulate/trial.h"

enum metric { SAME_NOISE, FRESH_NOISE, ALL_FRESH, SHOWN };

static const char *const metrics[] = {"same-noise", "fresh-noise", "all-fresh", "shown", NULL};
static const double ranges[] = {[SAME_NOISE] = 1, [FRESH_NOISE] = 1, [ALL_FRESH] = 1, [SHOWN] = 1};

/* Limits the arms of two runs, 4 bytes per round, to 128 MiB. */
enum { ROUNDS_MOST = 1 << 24 };

static bool has(const struct cv_policy_class *policy, size_t metric) {
  (void)metric;
  return policy->kind == CV_POLICY_BANDIT || policy->kind == CV_POLICY_GRAPH;
}

static enum cv_err fits(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                        struct cv_why *why) {
  if (campaign->truth == NULL || campaign->file.spec.tokens > ROUNDS_MOST) {
    return cv_fail(why, CV_ERR_INVALID, "%s: measure same-arms; expected no adversary, and limits.tokens of at most %d",
                   experiment->path, ROUNDS_MOST);
  }
  return experiment->axis == CV_LAB_AXIS_PULLS
             ? cv_fail(why, CV_ERR_INVALID, "%s: measure same-arms compares whole runs; expected no x: {pulls: ...}",
                       experiment->path)
             : CV_OK;
}

static enum cv_err run_once(const struct cv_lab_piece *piece, const struct cv_prepared *campaign,
                            struct cv_turns *turns, struct cv_why *why) {
  struct cv_trial trial = {
      .campaign = campaign, .seed = piece->seed, .token_level = piece->token_level, .turns = turns};
  memset(turns->played, 0xff, campaign->file.spec.tokens * sizeof(*turns->played)); /* CV_TURNS_NO_ARM */
  enum cv_err err = cv_trial_run(&trial, why);
  cv_trial_fini(&trial);
  return err;
}

/* Runs `second`, and sets *ret to 1 if it plays the arms of `first` in every round, else to 0. */
static enum cv_err compare(const struct cv_lab_piece *piece, const struct cv_prepared *campaign,
                           const struct cv_turns *first, struct cv_turns *second, double *ret, struct cv_why *why) {
  CV_TRY(run_once(piece, campaign, second, why));
  *ret = memcmp(first->played, second->played, campaign->file.spec.tokens * sizeof(*first->played)) == 0;
  return CV_OK;
}

static enum cv_err run_all(const struct cv_lab_piece *piece, const struct cv_prepared *campaign, uint32_t *played,
                           double *ret_values, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  struct cv_rng_seeded change;
  cv_rng_seeded_init(&change, piece->seed, CV_RNG_INSTANCE, UINT64_MAX, 0); /* a place that no arm has */
  struct cv_turns first = {.played = played,
                           .round = cv_rng_below(&change.rng, spec->tokens),
                           .arm = (uint32_t)cv_rng_below(&change.rng, spec->arms)};
  CV_TRY(run_once(piece, campaign, &first, why));
  struct cv_turns second = first;
  second.played = played + spec->tokens;
  second.is_zero = true;
  ret_values[SHOWN] = first.is_shown;
  ret_values[SAME_NOISE] = 1; /* a score that no release includes changes nothing */
  if (first.is_shown) {
    CV_TRY(compare(piece, campaign, &first, &second, &ret_values[SAME_NOISE], why));
  }
  second.noise = 1; /* the changed score stays; now the noise is drawn again, and below the choices */
  CV_TRY(compare(piece, campaign, &first, &second, &ret_values[FRESH_NOISE], why));
  second.choices = 1;
  return compare(piece, campaign, &first, &second, &ret_values[ALL_FRESH], why);
}

static enum cv_err run(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  struct cv_prepared campaign;
  CV_TRY(cv_lab_prepare(piece->experiment, series, piece->setting, piece->seed, &campaign, why));
  uint32_t *played = calloc(2 * campaign.file.spec.tokens, sizeof(*played));
  enum cv_err err = played == NULL ? cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM))
                                   : run_all(piece, &campaign, played, ret_values, why);
  free(played);
  cv_prepared_fini(&campaign);
  return err;
}

const struct cv_lab_measure cv_lab_measure_same_arms = {
    .name = "same-arms", .metrics = metrics, .ranges = ranges, .has = has, .fits = fits, .run = run};
