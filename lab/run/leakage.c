/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much the next decision of a recruitment reveals about one record (Zhao et al. 2020, Definition 5.1).
 *
 * A run of the campaign, stopped after a random plan, is the sequence X: how often each worker was hired, and the score
 * of each hire. Replacing one random record of X gives X'. The policy then decides on X many times, with fresh noise
 * and fresh randomness each time. With P and P' the laws of the first worker that it hires on X and X', the leakage is
 * the sum of P(a) ln(P(a)/P'(a)).
 *
 * P' is estimated from the same decisions. The changed arm's noise includes a Laplace variable Z with density f. A sum
 * that is larger by d under noise Z equals the old sum under noise Z + d, so a decision taken at Z has weight
 * f(Z - d)/f(Z) for X'. For each draw of the other noise, Z is drawn once in each of STRATA equally likely strata. So
 * decisions that do not depend on the changed arm get equal weight in P and P', and chance does not hide the leakage.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "common/base/local.h"
#include "lab/experiment/campaigns.h"
#include "lab/run/measures.h"
#include "prepare/prepare.h"
#include "simulate/trial.h"
#include "worker/quality/quality.h"

enum metric { LEAKAGE, LEAKAGE_MOST, LEAKAGE_WORST };

static const char *const metrics[] = {"leakage", "leakage-most", "leakage-worst", NULL};
enum { CHANGES = 2, DRAWS = 64, STRATA = 16 };

struct pair {
  const struct cv_prepared *campaign;
  const struct cv_trial *run;
  int64_t *sum; /* of each arm, exact */
  uint32_t changed;
  double change[CHANGES]; /* of the changed arm's sum, in scores: two alternatives */
  struct cv_mechanism_law law;
  struct cv_rng *rng;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_buf start, others;
  double *p, *changed_p[CHANGES]; /* of each arm */
};

static double epsilon_of(const struct pair *pair) {
  return (double)pair->campaign->file.spec.epsilon_micro / (double)CV_MICRO;
}

/* ---- the two sequences ---- */

/* At token level a score is a function of its place, so a single one can be looked up. */
static enum cv_err score_at(const struct pair *pair, uint32_t arm, uint64_t place, int64_t *ret) {
  return cv_quality_score(pair->campaign->source.quality, arm, place, ret);
}

static enum cv_err add_up(struct pair *pair) {
  for (uint32_t i = 0; i < pair->campaign->file.spec.arms; i++) {
    pair->sum[i] = 0;
    for (uint64_t place = 0; place < pair->run->pulls[i]; place++) {
      int64_t score;
      CV_TRY(score_at(pair, i, place, &score));
      pair->sum[i] += score;
    }
  }
  return CV_OK;
}

/* Draws a record, and the two values that replace it: another score of its worker, and the farther end of [0, 1]. */
static enum cv_err change_one(struct pair *pair) {
  uint64_t place = cv_rng_below(pair->rng, pair->run->total.pulls);
  uint32_t arm = 0;
  int64_t score;
  struct cv_quality_item item;
  while (place >= pair->run->pulls[arm]) {
    place -= pair->run->pulls[arm++];
  }
  CV_TRY(score_at(pair, arm, place, &score));
  const struct cv_quality_model *model = cv_quality_law(pair->campaign->source.quality, arm, &item);
  double old = cv_grid_to(score);
  pair->changed = arm;
  pair->change[LEAKAGE] = model->draw(&item, pair->rng) - old;
  pair->change[LEAKAGE_MOST] = old < 0.5 ? 1 - old : -old;
  return CV_OK;
}

/* The largest changes of an arm's records, upwards and downwards: its lowest becomes 1, its highest 0. */
static enum cv_err change_most(struct pair *pair, uint32_t arm) {
  double low = 1, high = 0;
  for (uint64_t place = 0; place < pair->run->pulls[arm]; place++) {
    int64_t score;
    CV_TRY(score_at(pair, arm, place, &score));
    low = fmin(low, cv_grid_to(score));
    high = fmax(high, cv_grid_to(score));
  }
  pair->changed = arm;
  pair->change[0] = 1 - low;
  pair->change[1] = -high;
  return CV_OK;
}

/* ---- decisions ---- */

static double laplace(double scale, double u) {
  return u < 0.5 ? scale * log(2 * u) : -scale * log(2 * (1 - u));
}

/* Uniform in the open interval (0, 1): laplace() is infinite at 0 and 1. */
static double draw_unit(struct cv_rng *rng) {
  return cv_rng_unit(rng) + 0x1p-54;
}

/* The noise in the arm's released total: a mechanism that releases items one by one adds one noise for each. */
static void noise_of(const struct pair *pair, uint32_t arm, struct cv_noise *ret) {
  uint64_t releases = pair->run->releases[arm];
  cv_mechanism_noise(&pair->law, releases, ret);
  for (uint32_t i = 0; cv_mechanism_cover(&pair->law, releases) == CV_COVER_ITEM && i < ret->groups; i++) {
    ret->group[i].count *= (uint32_t)releases;
  }
}

static double draw_noise(struct pair *pair, const struct cv_noise *noise) {
  double sum = 0;
  for (uint32_t i = 0; i < noise->groups; i++) {
    for (uint32_t j = 0; j < noise->group[i].count; j++) {
      sum += laplace(noise->group[i].scale, draw_unit(pair->rng));
    }
  }
  return sum;
}

static void give(struct pair *pair, uint32_t arm, const struct cv_noise *noise, double drawn) {
  struct cv_release release = {.number = 1,
                               .plan = 1,
                               .arm = arm,
                               .tokens = pair->run->pulls[arm],
                               .noise = *noise,
                               .noisy_sum = pair->sum[arm]};
  release.noisy_sum += llround(drawn / epsilon_of(pair) * CV_GRID);
  cv_policy_apply(pair->policy, &release);
}

static enum cv_err load(struct pair *pair, const struct cv_buf *state) {
  struct cv_reader in = cv_reader_over(state->data, state->len);
  return cv_policy_load(pair->policy, &in);
}

/* Releases all arms but the changed one, and saves that state for the strata. */
static enum cv_err give_others(struct pair *pair) {
  CV_TRY(load(pair, &pair->start));
  for (uint32_t i = 0; i < pair->campaign->file.spec.arms; i++) {
    if (i != pair->changed && pair->run->pulls[i] > 0) {
      struct cv_noise noise;
      noise_of(pair, i, &noise);
      give(pair, i, &noise, draw_noise(pair, &noise));
    }
  }
  cv_buf_clear(&pair->others);
  cv_policy_save(pair->policy, &pair->others);
  return cv_buf_ok(&pair->others) ? CV_OK : CV_ERR_NOMEM;
}

/* One decision. The changed arm's noise is `z`, Laplace of `scale`, plus `rest`. */
static enum cv_err decide(struct pair *pair, uint64_t number, const struct cv_noise *noise, double rest, double scale,
                          double z) {
  /* From the saved state each time: a decision changes the policy, and decisions must be independent. */
  CV_TRY(load(pair, &pair->others));
  give(pair, pair->changed, noise, rest + z);
  CV_TRY(cv_policy_step(pair->policy, number, &pair->step));
  CV_REQUIRE(pair->step.wants > 0);
  uint32_t arm = pair->step.want[0].arm;
  pair->p[arm] += 1;
  for (size_t i = 0; i < CHANGES; i++) {
    double d = pair->change[i] * epsilon_of(pair);
    pair->changed_p[i][arm] += exp((fabs(z) - fabs(z - d)) / scale);
  }
  return CV_OK;
}

static enum cv_err decide_all(struct pair *pair) {
  struct cv_noise noise, rest;
  uint32_t widest = 0; /* the widest Laplace as Z: its weights f(Z - d)/f(Z) vary least */
  memset(pair->p, 0, pair->campaign->file.spec.arms * (1 + CHANGES) * sizeof(*pair->p));
  noise_of(pair, pair->changed, &noise);
  for (uint32_t i = 1; i < noise.groups; i++) {
    widest = noise.group[i].scale > noise.group[widest].scale ? i : widest;
  }
  double scale = noise.group[widest].scale;
  rest = noise;
  rest.group[widest].count--; /* Z is one variable of this group; the others stay as they are */
  for (uint64_t draw = 0; draw < DRAWS; draw++) {
    CV_TRY(give_others(pair));
    double others = draw_noise(pair, &rest);
    for (uint64_t stratum = 0; stratum < STRATA; stratum++) {
      double u = ((double)stratum + draw_unit(pair->rng)) / STRATA;
      CV_TRY(decide(pair, draw * STRATA + stratum + 1, &noise, others, scale, laplace(scale, u)));
    }
  }
  return CV_OK;
}

static double divergence(const double *p, const double *q, uint32_t arms) {
  double sum_p = 0, sum_q = 0, found = 0;
  for (uint32_t i = 0; i < arms; i++) {
    sum_p += p[i];
    sum_q += q[i];
  }
  for (uint32_t i = 0; i < arms; i++) {
    found += p[i] > 0 ? p[i] / sum_p * log(p[i] / sum_p / (q[i] / sum_q)) : 0;
  }
  return found;
}

/* ---- one pair ---- */

static enum cv_err init(struct pair *pair, struct cv_why *why) {
  const struct cv_spec *spec = &pair->campaign->file.spec;
  struct cv_choice mechanism = spec->mechanism;
  uint64_t releases = spec->tokens < CV_RELEASES_END ? spec->tokens : CV_RELEASES_END - 1;
  CV_TRY(cv_mechanism_law_init(&mechanism, spec->epsilon_micro, releases, &pair->law, why));
  CV_TRY(cv_policy_new(spec, cv_rng_u64(pair->rng), &pair->policy));
  pair->sum = calloc(spec->arms, sizeof(*pair->sum));
  pair->p = calloc(spec->arms * (1 + CHANGES), sizeof(*pair->p));
  cv_policy_save(pair->policy, &pair->start);
  if (pair->sum == NULL || pair->p == NULL || !cv_buf_ok(&pair->start)) {
    return CV_ERR_NOMEM;
  }
  for (size_t i = 0; i < CHANGES; i++) {
    pair->changed_p[i] = pair->p + (1 + i) * spec->arms;
  }
  return CV_OK;
}

static void fini(struct pair *pair) {
  cv_policy_free(pair->policy);
  cv_policy_step_fini(&pair->step);
  cv_buf_fini(&pair->start);
  cv_buf_fini(&pair->others);
  free(pair->sum);
  free(pair->p);
}

/* The divergence for each change, of decisions about the present arm. */
static enum cv_err weigh(struct pair *pair, double *ret_values) {
  CV_TRY(decide_all(pair));
  for (size_t i = 0; i < CHANGES; i++) {
    ret_values[i] = divergence(pair->p, pair->changed_p[i], pair->campaign->file.spec.arms);
  }
  return CV_OK;
}

static enum cv_err find_worst(struct pair *pair, double *ret_worst) {
  double worst = 0, found[CHANGES];
  for (uint32_t arm = 0; arm < pair->campaign->file.spec.arms; arm++) {
    if (pair->run->pulls[arm] > 0) {
      CV_TRY(change_most(pair, arm));
      CV_TRY(weigh(pair, found));
      worst = fmax(worst, fmax(found[0], found[1]));
    }
  }
  *ret_worst = worst;
  return CV_OK;
}

static enum cv_err compare(const struct cv_prepared *campaign, const struct cv_trial *run, bool with_worst,
                           struct cv_rng *rng, double *ret_values, struct cv_why *why) {
  struct pair pair = {.campaign = campaign, .run = run, .rng = rng};
  enum cv_err err = init(&pair, why);
  err = err == CV_OK ? add_up(&pair) : err;
  err = err == CV_OK ? change_one(&pair) : err;
  err = err == CV_OK ? weigh(&pair, ret_values) : err;
  err = err == CV_OK && with_worst ? find_worst(&pair, &ret_values[LEAKAGE_WORST]) : err;
  fini(&pair);
  return err;
}

/* The worst record takes as many measurements as arms: only where it is asked for. */
static bool wants_worst(const struct cv_lab_experiment *experiment) {
  bool wants = false;
  for (size_t i = 0; i < experiment->metrics; i++) {
    wants = wants || experiment->metric[i].index == LEAKAGE_WORST;
  }
  return wants;
}

/* Runs the campaign to count its plans, then again up to a random plan before the last, and measures the leakage. */
static enum cv_err run_pair(const struct cv_lab_piece *piece, const struct cv_prepared *campaign, double *ret_values,
                            struct cv_why *why) {
  struct cv_rng_seeded rng;
  struct cv_trial trial = {.campaign = campaign, .seed = piece->seed, .token_level = true};
  cv_rng_seeded_init(&rng, piece->seed, CV_RNG_POLICY, UINT64_MAX, 0);
  CV_TRY(cv_trial_run(&trial, why));
  uint64_t plans = trial.total.rounds;
  cv_trial_fini(&trial);
  if (plans < 2) {
    return CV_OK; /* no decision follows a release: the metrics stay NAN */
  }
  trial.plans = 1 + cv_rng_below(&rng.rng, plans - 1);
  enum cv_err err = cv_trial_run(&trial, why);
  if (err == CV_OK) {
    err = compare(campaign, &trial, wants_worst(piece->experiment), &rng.rng, ret_values, why);
  }
  cv_trial_fini(&trial);
  return err == CV_OK || why->text[0] != '\0' ? err : cv_fail(why, err, "%s", cv_err_text(err));
}

/* A policy of one plan decides before the first release: its decisions reveal nothing about a record. */
static bool has(const struct cv_policy_class *policy, size_t metric) {
  (void)metric;
  return policy->kind == CV_POLICY_RECRUITMENT && !policy->one_plan;
}

/* True if the policy, with the campaign's parameters, decides by the last release of each arm. */
static bool decides_by_last(const struct cv_policy_class *policy, const struct cv_params *params) {
  return policy->last_key == NULL || strcmp(cv_params_text(params, policy->last_key), policy->last_word) == 0;
}

/* score_at() needs scores with places, which a Bernoulli sum of trial.c does not have; give() replaces a whole history
 * of releases by the last one, so the policy must not remember earlier ones. */
static enum cv_err fits(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                        struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  const char *path = experiment->path;
  const struct cv_items_law *law = cv_items_law(&campaign->file.items);
  if (law == NULL || law->rewards == CV_REWARDS_BERNOULLI || cv_local_find(spec->privatizer.name) != CV_LOCAL_NONE ||
      !cv_mechanism_has_noise(cv_mechanism_find(spec->mechanism.name)) || experiment->axis == CV_LAB_AXIS_PULLS) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: measure leakage; expected a mechanism that has noise, no privatizer, rewards "
                   "that are not bernoulli, and no x: {pulls: ...}",
                   path);
  }
  const struct cv_policy_class *policy = cv_policy_find(spec->policy.name);
  if (!decides_by_last(policy, &spec->policy.params)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: measure leakage needs policy %s to decide by the last releases; expected policy.%s %s", path,
                   policy->name, policy->last_key, policy->last_word);
  }
  return CV_OK;
}

static enum cv_err run(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  struct cv_prepared campaign;
  CV_TRY(cv_lab_prepare(piece->experiment, series, piece->setting, piece->seed, &campaign, why));
  enum cv_err err = run_pair(piece, &campaign, ret_values, why);
  cv_prepared_fini(&campaign);
  return err;
}

const struct cv_lab_measure cv_lab_measure_leakage = {
    .name = "leakage", .metrics = metrics, .has = has, .fits = fits, .run = run};
