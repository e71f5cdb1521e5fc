/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "worker/quality/models.h"

#define ADDRESS(file, ...) &cv_quality_##file,
static const struct cv_quality_model *const table[] = {CV_REWARD_LAWS(ADDRESS)};

struct cv_quality {
  struct cv_adversary adversary;        /* if its class is set, only `arms` below is used */
  struct cv_pairs pairs;                /* if it has arms: comparisons, whose tokens are bits of mean `item` */
  const struct cv_quality_model *model; /* NULL: a data set */
  uint32_t arms;
  uint64_t seed;
  struct cv_quality_item *item; /* with a model: one law per arm */
  struct cv_rows rows;          /* without a model */
  uint64_t *key;                /* without replacement: the key of each arm's permutation; NULL with replacement */
};

const struct cv_quality_model *cv_quality_model_at(size_t index) {
  return index < CV_COUNT(table) ? table[index] : NULL;
}

const struct cv_quality_model *cv_quality_model_find(const char *name) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    if (strcmp(table[i]->name, name) == 0) {
      return table[i];
    }
  }
  return NULL;
}

static enum cv_err check_item(const struct cv_quality_model *model, const struct cv_quality_item *item, uint32_t arm,
                              struct cv_why *why) {
  if (!(item->mean >= 0 && item->mean <= 1)) {
    return cv_fail(why, CV_ERR_INVALID, "item %u has mean %g; expected 0 to 1", arm + 1, item->mean);
  }
  bool fits = model->spread_zero ? item->spread >= 0 : item->spread > 0;
  if (model->spread != NULL && !(fits && isfinite(item->spread))) {
    return cv_fail(why, CV_ERR_INVALID, "item %u has %s %g; expected a number %s 0", arm + 1, model->spread,
                   item->spread, model->spread_zero ? "of at least" : "above");
  }
  return CV_OK;
}

enum cv_err cv_quality_new(const struct cv_quality_model *model, const struct cv_quality_item *item, uint32_t arms,
                           uint64_t seed, struct cv_quality **ret, struct cv_why *why) {
  for (uint32_t arm = 0; arm < arms; arm++) {
    CV_TRY(check_item(model, &item[arm], arm, why));
  }
  struct cv_quality *quality = calloc(1, sizeof(*quality));
  struct cv_quality_item *copy = calloc(arms > 0 ? arms : 1, sizeof(*copy));
  if (quality == NULL || copy == NULL) {
    free(quality);
    free(copy);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for %u items", arms);
  }
  memcpy(copy, item, arms * sizeof(*copy));
  *quality = (struct cv_quality){.model = model, .arms = arms, .seed = seed, .item = copy};
  *ret = quality;
  return CV_OK;
}

/* Draws one key per arm, from place UINT64_MAX, which no token uses. */
void cv_quality_reorder(struct cv_quality *quality, uint64_t seed) {
  for (uint32_t arm = 0; arm < quality->arms && quality->key != NULL; arm++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, seed, CV_RNG_ROWS, arm, UINT64_MAX);
    quality->key[arm] = cv_rng_u64(&rng.rng);
  }
}

static enum cv_err make_keys(struct cv_quality *quality) {
  quality->key = calloc(quality->arms > 0 ? quality->arms : 1, sizeof(*quality->key));
  if (quality->key == NULL) {
    return CV_ERR_NOMEM;
  }
  cv_quality_reorder(quality, quality->seed);
  return CV_OK;
}

enum cv_err cv_quality_new_rows(struct cv_rows *rows, bool replacement, uint64_t seed, struct cv_quality **ret,
                                struct cv_why *why) {
  struct cv_quality *quality = calloc(1, sizeof(*quality));
  if (quality == NULL) {
    cv_rows_fini(rows);
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for the data set");
  }
  *quality = (struct cv_quality){.arms = rows->arms, .seed = seed, .rows = *rows};
  *rows = (struct cv_rows){0};
  enum cv_err err = CV_OK;
  /* From here on `quality` owns the rows: cv_quality_free() frees them on failure. */
  for (uint32_t arm = 0; arm < quality->arms && err == CV_OK && replacement; arm++) {
    if (quality->rows.start[arm] == quality->rows.start[arm + 1]) {
      err = cv_fail(why, CV_ERR_INVALID, "item %u has no rows", arm + 1);
    }
  }
  if (err == CV_OK && !replacement && make_keys(quality) != CV_OK) {
    err = cv_fail(why, CV_ERR_NOMEM, "out of memory for the data set");
  }
  if (err != CV_OK) {
    cv_quality_free(quality);
    return err;
  }
  *ret = quality;
  return CV_OK;
}

enum cv_err cv_quality_new_adversary(const struct cv_adversary *adversary, struct cv_quality **ret,
                                     struct cv_why *why) {
  struct cv_quality *quality = calloc(1, sizeof(*quality));
  if (quality == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for an adversary");
  }
  *quality = (struct cv_quality){.adversary = *adversary, .arms = adversary->arms};
  *ret = quality;
  return CV_OK;
}

const struct cv_rows *cv_quality_drawn_rows(const struct cv_quality *quality) {
  return quality->rows.value != NULL && quality->key == NULL ? &quality->rows : NULL;
}

enum cv_err cv_quality_new_pairs(struct cv_pairs *pairs, uint64_t seed, struct cv_quality **ret, struct cv_why *why) {
  struct cv_quality *quality = calloc(1, sizeof(*quality));
  struct cv_quality_item *item = calloc(pairs->arms > 0 ? pairs->arms : 1, sizeof(*item));
  if (quality == NULL || item == NULL || pairs->arms < 2 || pairs->arms > CV_PAIRS_ARMS_MAX) {
    enum cv_err err = quality == NULL || item == NULL
                          ? cv_fail(why, CV_ERR_NOMEM, "out of memory for %u items", pairs->arms)
                          : cv_fail(why, CV_ERR_INVALID, "%u items are compared in pairs; expected 2 to %d",
                                    pairs->arms, CV_PAIRS_ARMS_MAX);
    cv_pairs_fini(pairs);
    free(quality);
    free(item);
    return err;
  }
  /* Against a uniformly drawn opponent, a comparison is a bit whose mean is the Borda score. */
  for (uint32_t arm = 0; arm < pairs->arms; arm++) {
    item[arm].mean = cv_pairs_borda(pairs, arm);
  }
  *quality = (struct cv_quality){
      .pairs = *pairs, .model = &cv_quality_bernoulli, .arms = pairs->arms, .seed = seed, .item = item};
  *pairs = (struct cv_pairs){0};
  *ret = quality;
  return CV_OK;
}

const struct cv_pairs *cv_quality_pairs(const struct cv_quality *quality) {
  return quality->pairs.arms == 0 ? NULL : &quality->pairs;
}

const struct cv_adversary *cv_quality_adversary(const struct cv_quality *quality) {
  return quality->adversary.class == NULL ? NULL : &quality->adversary;
}

void cv_quality_free(struct cv_quality *quality) {
  if (quality == NULL) {
    return;
  }
  cv_rows_fini(&quality->rows);
  cv_pairs_fini(&quality->pairs);
  free(quality->item);
  free(quality->key);
  free(quality);
}

uint64_t cv_quality_rows(const struct cv_quality *quality, uint32_t arm) {
  CV_REQUIRE(arm < quality->arms);
  return quality->rows.arms == 0 ? 0 : quality->rows.start[arm + 1] - quality->rows.start[arm];
}

enum cv_err cv_quality_row(const struct cv_quality *quality, uint32_t arm, uint64_t place, uint64_t *ret_row) {
  uint64_t count = cv_quality_rows(quality, arm);
  if (quality->key == NULL) {
    CV_REQUIRE(count > 0);
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, quality->seed, CV_RNG_ROWS, arm, place);
    *ret_row = cv_rng_below(&rng.rng, count);
    return CV_OK;
  }
  if (place >= count) {
    return CV_ERR_LIMIT;
  }
  *ret_row = cv_permute(quality->key[arm], count, place);
  return CV_OK;
}

static enum cv_err row_at(const struct cv_quality *quality, uint32_t arm, uint64_t place, int64_t *ret_score) {
  uint64_t row;
  CV_TRY(cv_quality_row(quality, arm, place, &row));
  *ret_score = quality->rows.value[quality->rows.start[arm] + row];
  return CV_OK;
}

static int64_t compare(const struct cv_quality *quality, uint32_t arm, uint32_t opponent, struct cv_rng *rng) {
  CV_REQUIRE(opponent < quality->arms && opponent != arm);
  return cv_rng_unit(rng) < cv_pairs_chance(&quality->pairs, arm, opponent) ? CV_GRID : 0;
}

enum cv_err cv_quality_score_at(const struct cv_quality *quality, uint32_t arm, const struct cv_moment *at,
                                int64_t *ret_score) {
  CV_REQUIRE(arm < quality->arms);
  if (quality->adversary.class != NULL) {
    uint64_t t = at->round < UINT64_MAX ? at->round + 1 : at->round; /* the broker's round is untrusted: no overflow */
    *ret_score = cv_grid_from(cv_adversary_gain(&quality->adversary, arm, t, at->switched));
    return CV_OK;
  }
  if (quality->model == NULL) {
    return row_at(quality, arm, at->place, ret_score);
  }
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, quality->seed, CV_RNG_SCORE, arm, at->place);
  if (quality->pairs.arms > 0 && at->opponent > 0) {
    *ret_score = compare(quality, arm, at->opponent - 1, &rng.rng);
    return CV_OK;
  }
  *ret_score = cv_grid_from(quality->model->draw(&quality->item[arm], &rng.rng));
  return CV_OK;
}

enum cv_err cv_quality_score(const struct cv_quality *quality, uint32_t arm, uint64_t place, int64_t *ret_score) {
  const struct cv_moment at = {.place = place, .round = place};
  return cv_quality_score_at(quality, arm, &at, ret_score);
}

const struct cv_quality_model *cv_quality_law(const struct cv_quality *quality, uint32_t arm,
                                              struct cv_quality_item *ret_item) {
  CV_REQUIRE(arm < quality->arms);
  if (quality->model != NULL) {
    *ret_item = quality->item[arm];
  }
  return quality->model;
}

bool cv_quality_draw(const struct cv_quality *quality, uint32_t arm, struct cv_rng *rng, int64_t *ret_score) {
  CV_REQUIRE(arm < quality->arms);
  if (quality->model != NULL) {
    *ret_score = cv_grid_from(quality->model->draw(&quality->item[arm], rng));
    return true;
  }
  if (quality->adversary.class != NULL || quality->key != NULL) {
    return false;
  }
  uint64_t start = quality->rows.start[arm];
  *ret_score = quality->rows.value[start + cv_rng_below(rng, quality->rows.start[arm + 1] - start)];
  return true;
}

double cv_quality_truth(const struct cv_quality *quality, uint32_t arm) {
  CV_REQUIRE(arm < quality->arms);
  if (quality->adversary.class != NULL) {
    return cv_adversary_total(&quality->adversary, arm, quality->adversary.rounds) / (double)quality->adversary.rounds;
  }
  return quality->model == NULL ? cv_rows_mean(&quality->rows, arm) : quality->model->truth(&quality->item[arm]);
}

void cv_quality_draw_instance(uint64_t seed, double mean, double variance, uint32_t count, double *ret_means) {
  for (uint32_t i = 0; i < count; i++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, seed, CV_RNG_INSTANCE, i, 0);
    ret_means[i] = fmin(1, fmax(0, mean + sqrt(variance) * cv_rng_normal(&rng.rng)));
  }
}
