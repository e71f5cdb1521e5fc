/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/noise.h"

#include <inttypes.h>
#include <math.h>

#include "common/base/grid.h"
#include "lab/experiment/campaigns.h"
#include "lab/run/measures.h"
#include "prepare/prepare.h"

static const char *const metrics[] = {"noise", NULL};

/* The number of items that the n-th release sums. */
static double covered(const struct cv_mechanism_law *law, uint64_t n) {
  enum cv_cover cover = cv_mechanism_cover(law, n);
  while (cover == CV_COVER_BEFORE) {
    cover = cv_mechanism_cover(law, --n);
  }
  return cover == CV_COVER_ITEM ? 1 : (double)n;
}

/* The campaign's mechanism; without a horizon of its own it gets limits.tokens, one release per token. */
static enum cv_err law_of(const struct cv_prepared *campaign, struct cv_mechanism_law *ret, struct cv_why *why) {
  const struct cv_spec *spec = &campaign->file.spec;
  struct cv_choice mechanism = spec->mechanism;
  if (spec->tokens >= CV_RELEASES_END) {
    return cv_fail(why, CV_ERR_INVALID, "%s: measure noise makes limits.tokens releases; expected fewer than 2^32",
                   campaign->file.path);
  }
  return cv_mechanism_law_init(&mechanism, spec->epsilon_micro, spec->tokens, ret, why);
}

enum cv_err cv_lab_noise_fits(const struct cv_prepared *campaign, double releases, struct cv_why *why) {
  struct cv_mechanism_law law;
  CV_TRY(law_of(campaign, &law, why));
  if (releases > (double)law.horizon) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %.0f releases of mechanism %s; expected at most %" PRIu64 ", its horizon",
                   campaign->file.path, releases, law.class->traits->name, law.horizon);
  }
  return CV_OK;
}

/* In (D/epsilon)^2; a Laplace noise of scale b/epsilon has variance 2 (b/epsilon)^2. */
static double variance(const struct cv_mechanism_law *law, uint64_t n) {
  struct cv_noise noise;
  double sum = 0;
  cv_mechanism_noise(law, n, &noise);
  for (uint32_t i = 0; i < noise.groups; i++) {
    sum += 2 * noise.group[i].scale * noise.group[i].scale * noise.group[i].count;
  }
  return sum;
}

/* The root mean square of the declared noise in releases `first` to n, in scores. */
static double declared(const struct cv_prepared *campaign, uint64_t first, uint64_t n) {
  struct cv_mechanism_law law;
  double sum = 0, epsilon = (double)campaign->file.spec.epsilon_micro / CV_MICRO;
  CV_REQUIRE(law_of(campaign, &law, NULL) == CV_OK);
  if (!cv_mechanism_has_noise(law.class)) {
    return 0;
  }
  for (uint64_t i = first; i <= n; i++) {
    sum += variance(&law, i);
  }
  return sqrt(sum / (double)(n - first + 1)) / epsilon / covered(&law, n);
}

double cv_lab_noise_declared(const struct cv_prepared *campaign, double n) {
  return declared(campaign, (uint64_t)n, (uint64_t)n);
}

double cv_lab_noise_so_far(const struct cv_prepared *campaign, double n) {
  return declared(campaign, 1, (uint64_t)n);
}

static enum cv_err draw_all(const struct cv_lab_piece *piece, const struct cv_mechanism_law *law, double *ret_values) {
  const struct cv_lab_experiment *experiment = piece->experiment;
  struct cv_mechanism *mechanism;
  struct cv_rng_seeded noise;
  cv_rng_seeded_init(&noise, piece->seed, CV_RNG_NOISE, 0, 0);
  CV_TRY(cv_mechanism_new(law, &mechanism));
  size_t point = 0;
  for (uint64_t n = 1; point < experiment->points; n++) {
    cv_mechanism_draw(mechanism, &noise.rng);
    /* Items of 0: the release is its noise. */
    double value = cv_grid_to(cv_mechanism_release(mechanism, 0));
    if ((double)n >= experiment->x[point]) {
      ret_values[point++] = value / covered(law, n);
    }
  }
  cv_mechanism_free(mechanism);
  return CV_OK;
}

static enum cv_err run(const struct cv_lab_piece *piece, size_t series, double *ret_values, struct cv_why *why) {
  struct cv_prepared campaign;
  CV_TRY(cv_lab_prepare(piece->experiment, series, piece->setting, piece->seed, &campaign, why));
  struct cv_mechanism_law law;
  enum cv_err err = law_of(&campaign, &law, why);
  if (err == CV_OK) {
    err = draw_all(piece, &law, ret_values);
  }
  cv_prepared_fini(&campaign);
  return err;
}

static enum cv_err fits(const struct cv_lab_experiment *experiment, const struct cv_prepared *campaign,
                        struct cv_why *why) {
  if (experiment->axis != CV_LAB_AXIS_PULLS) {
    return cv_fail(why, CV_ERR_INVALID, "%s: measure noise needs x: {pulls: [...]}, the numbers of releases",
                   experiment->path);
  }
  return cv_lab_noise_fits(campaign, experiment->x[experiment->points - 1], why);
}

const struct cv_lab_measure cv_lab_measure_noise = {.name = "noise", .metrics = metrics, .fits = fits, .run = run};
