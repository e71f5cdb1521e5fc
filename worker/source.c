/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/source.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "worker/csv.h"
#include "worker/taxi.h"

static const char *model_name(enum cv_rewards rewards) {
  switch (rewards) {
    case CV_REWARDS_BERNOULLI:
      return "bernoulli";
    case CV_REWARDS_BETA:
      return "beta";
    case CV_REWARDS_CLIPPED_NORMAL:
      return "clipped-normal";
    case CV_REWARDS_TRUNCATED_NORMAL:
      return "truncated-normal";
  }
  return "";
}

/* Qualities, spreads and costs as Zhao et al. (2020, section 5.1) draw them. */
static void draw_worker(const struct cv_items *items, uint64_t seed, uint32_t i, struct cv_quality_item *item,
                        double *ret_cost) {
  enum { WORKERS = 1 /* a stream apart from that of the items' means */ };
  bool is_normal = items->rewards == CV_REWARDS_CLIPPED_NORMAL || items->rewards == CV_REWARDS_TRUNCATED_NORMAL;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_INSTANCE, WORKERS, i);
  item->mean = cv_rng_unit(&rng.rng);
  /* Open at 0, where a normal law is none. */
  item->spread = 1 - cv_rng_unit(&rng.rng);
  if (!is_normal) {
    item->spread = items->spread;
  }
  *ret_cost = items->cost_low + (items->cost_high - items->cost_low) * cv_rng_unit(&rng.rng);
}

static uint64_t money(double cost) {
  uint64_t micro = (uint64_t)(cost * (double)CV_MICRO + 0.5);
  return micro == 0 ? 1 : micro;
}

static enum cv_err fill_workers(struct cv_score_source *source, const struct cv_items *items, uint64_t seed,
                                const struct cv_taxis *taxis, struct cv_quality_item *item) {
  uint32_t count = source->items;
  source->worker = calloc(count, sizeof(*source->worker));
  source->cost_micro = calloc(count, sizeof(*source->cost_micro));
  source->requests = taxis->trips;
  if (source->worker == NULL || source->cost_micro == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < count; i++) {
    bool is_given = items->source == CV_SOURCE_GIVEN;
    double cost = 0;
    if (!is_given) {
      draw_worker(items, seed, i, &item[i], &cost);
    }
    bool is_taxi = items->source == CV_SOURCE_TAXI;
    source->worker[i] = is_given ? items->item[i].id : i + 1;
    source->cost_micro[i] = is_given ? items->item[i].cost_micro : is_taxi ? taxis->cost_micro[i] : money(cost);
  }
  return CV_OK;
}

static void fill_items(const struct cv_items *items, uint64_t seed, double *mean, uint32_t count,
                       struct cv_quality_item *item) {
  if (items->source == CV_SOURCE_SYNTHETIC) {
    cv_quality_draw_instance(seed, items->mean, items->variance, count, mean);
  }
  for (uint32_t i = 0; i < count && items->source != CV_SOURCE_TAXI; i++) {
    item[i] = items->source == CV_SOURCE_SYNTHETIC
                  ? (struct cv_quality_item){.mean = mean[i], .spread = items->spread}
                  : (struct cv_quality_item){.mean = items->item[i].mean, .spread = items->item[i].spread};
  }
}

static enum cv_err fill_model(struct cv_score_source *source, const struct cv_items *items, uint64_t seed,
                              const struct cv_taxis *taxis, struct cv_why *why) {
  const struct cv_quality_model *model = cv_quality_model_find(model_name(items->rewards));
  CV_REQUIRE(model != NULL);
  uint32_t count = source->items;
  double *mean = calloc(count, sizeof(*mean));
  struct cv_quality_item *item = calloc(count, sizeof(*item));
  source->name = calloc(count, sizeof(*source->name));
  enum cv_err err = CV_OK;
  if (mean == NULL || item == NULL || source->name == NULL) {
    err = cv_fail(why, CV_ERR_NOMEM, "out of memory for %u items", count);
  } else {
    fill_items(items, seed, mean, count, item);
    err = items->are_paid ? fill_workers(source, items, seed, taxis, item) : CV_OK;
  }
  if (err == CV_OK) {
    err = cv_quality_new(model, item, count, seed, &source->quality, why);
  }
  free(mean);
  free(item);
  return err;
}

static enum cv_err make_model(struct cv_score_source *source, const struct cv_campaign_file *campaign, uint64_t seed,
                              struct cv_why *why) {
  const struct cv_items *items = &campaign->items;
  struct cv_taxis read = {0};
  const struct cv_taxis *taxis = items->taxis != NULL ? items->taxis : &read;
  if (items->source == CV_SOURCE_TAXI && items->taxis == NULL) {
    CV_TRY(cv_taxis_read(items, &read, why));
  }
  source->items = items->source == CV_SOURCE_TAXI        ? taxis->drivers
                  : items->source == CV_SOURCE_SYNTHETIC ? items->count
                                                         : items->items;
  enum cv_err err = fill_model(source, items, seed, taxis, why);
  for (uint32_t i = 0; i < source->items && err == CV_OK; i++) {
    if (items->source == CV_SOURCE_TAXI) {
      source->name[i] = taxis->name[i];
    } else {
      cv_items_name(items, i, &source->name[i]);
    }
  }
  cv_taxis_fini(&read);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u", campaign->path, items->line);
  }
  return err;
}

static enum cv_err make_adversary(struct cv_score_source *source, const struct cv_campaign_file *campaign,
                                  uint64_t seed, struct cv_why *why) {
  const struct cv_items *items = &campaign->items;
  const uint64_t rounds = items->rounds > 0 ? items->rounds : campaign->spec.tokens;
  const struct cv_adversary adversary = {.class = cv_adversary_find(items->adversary),
                                         .arms = items->count,
                                         .best = items->best - 1,
                                         .rounds = rounds,
                                         .seed = seed};
  CV_REQUIRE(adversary.class != NULL);
  if (rounds > CV_ROUNDS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "%s:%u: a game of %llu rounds, as many as limits.tokens; expected at most %d",
                   campaign->path, items->line, (unsigned long long)rounds, CV_ROUNDS_MAX);
  }
  source->items = items->count;
  source->name = calloc(items->count, sizeof(*source->name));
  if (source->name == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for %u items", items->count);
  }
  for (uint32_t i = 0; i < items->count; i++) {
    cv_items_name(items, i, &source->name[i]);
  }
  return cv_quality_new_adversary(&adversary, &source->quality, why);
}

/* A round without enough rows would never end. */
static enum cv_err check_rounds(const struct cv_campaign_file *campaign, const struct cv_csv_data *data,
                                struct cv_why *why) {
  const struct cv_param *round = cv_params_find(&campaign->spec.policy.params, "tokens_per_round");
  if (campaign->items.replacement || round == NULL || round->is_text) {
    return CV_OK;
  }
  for (uint32_t i = 0; i < data->items; i++) {
    uint64_t rows = data->rows.start[i + 1] - data->rows.start[i];
    if ((double)rows < round->number) {
      return cv_fail(
          why, CV_ERR_INVALID,
          "%s:%u: item \"%s\" has %llu rows in %s, but a round needs tokens_per_round = %.10g of them; expected "
          "a smaller round or replacement: true",
          campaign->path, campaign->items.line, data->name[i].text, (unsigned long long)rows, campaign->items.file,
          round->number);
    }
  }
  return CV_OK;
}

static enum cv_err make_rows(struct cv_score_source *source, const struct cv_campaign_file *campaign, uint64_t seed,
                             struct cv_why *why) {
  const struct cv_items *items = &campaign->items;
  const struct cv_csv_ask ask = {.path = items->file,
                                 .item_column = items->item_column,
                                 .score_column = items->score_column,
                                 .worker_column = items->worker_column[0] == '\0' ? NULL : items->worker_column,
                                 .delimiter = items->delimiter,
                                 .has_scale = items->has_scale,
                                 .low = items->scale_low,
                                 .high = items->scale_high};
  struct cv_csv_data data;
  CV_TRY(cv_csv_read(&ask, &data, why));
  enum cv_err err = check_rounds(campaign, &data, why);
  if (err == CV_OK) {
    err = cv_quality_new_rows(&data.rows, items->replacement, seed, &source->quality, why);
  }
  if (err == CV_OK) {
    source->items = data.items;
    source->name = data.name;
    source->persons = data.persons;
    data.name = NULL;
    data.persons = (struct cv_persons){0};
  }
  cv_csv_fini(&data);
  return err;
}

enum cv_err cv_score_source_init(struct cv_score_source *ret, const struct cv_campaign_file *campaign, uint64_t seed,
                                 struct cv_why *why) {
  struct cv_score_source source = {0};
  enum cv_err err;
  switch (campaign->items.source) {
    case CV_SOURCE_CSV:
      err = make_rows(&source, campaign, seed, why);
      break;
    case CV_SOURCE_ADVERSARY:
      err = make_adversary(&source, campaign, seed, why);
      break;
    default:
      err = make_model(&source, campaign, seed, why);
  }
  if (err != CV_OK) {
    cv_score_source_fini(&source);
    return err;
  }
  *ret = source;
  return CV_OK;
}

void cv_score_source_fini(struct cv_score_source *source) {
  if (source == NULL) {
    return;
  }
  cv_quality_free(source->quality);
  cv_persons_fini(&source->persons);
  free(source->name);
  free(source->worker);
  free(source->cost_micro);
  *source = (struct cv_score_source){0};
}
