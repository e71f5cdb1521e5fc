/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/source.h"

#include <stdlib.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "common/config/owned.h"
#include "worker/data.h"
#include "worker/duels.h"
#include "worker/taxi.h"

/* Draws a worker's mean and spread as in Zhao et al. (2020, section 5.1). Returns the position of its cost between the
 * lowest (0) and the highest (1). */
static double draw_worker(const struct cv_items_law *law, uint64_t seed, uint32_t i, struct cv_quality_item *item) {
  enum { WORKERS = 1 /* a stream other than that of the items' means */ };
  bool is_normal = law->rewards == CV_REWARDS_CLIPPED_NORMAL || law->rewards == CV_REWARDS_TRUNCATED_NORMAL;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_INSTANCE, WORKERS, i);
  /* Always three draws in this order, so that a worker's cost does not depend on the law of rewards. */
  item->mean = cv_rng_unit(&rng.rng);
  /* In (0, 1]: a normal law needs a spread above 0. */
  item->spread = 1 - cv_rng_unit(&rng.rng);
  if (!is_normal) {
    item->spread = law->spread;
  }
  return cv_rng_unit(&rng.rng);
}

/* At least one micro-unit: a worker without a cost could be hired without end. */
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
    /* Drawn workers have the ids from 1; certificates have to cover them. */
    source->worker[i] = items->source == CV_SOURCE_GIVEN ? items->given.item[i].id : i + 1;
    if (items->source == CV_SOURCE_GIVEN) {
      source->cost_micro[i] = items->given.item[i].cost_micro;
    } else if (items->source == CV_SOURCE_TAXI) {
      (void)draw_worker(&items->taxi.law, seed, i, &item[i]);
      source->cost_micro[i] = taxis->cost_micro[i];
    } else {
      const struct cv_items_synthetic *drawn = &items->synthetic;
      double part = draw_worker(&drawn->law, seed, i, &item[i]);
      source->cost_micro[i] = money(drawn->cost_low + (drawn->cost_high - drawn->cost_low) * part);
    }
  }
  return CV_OK;
}

static void fill_items(const struct cv_items *items, uint64_t seed, double *mean, uint32_t count,
                       struct cv_quality_item *item) {
  if (items->source == CV_SOURCE_SYNTHETIC) {
    cv_quality_draw_instance(seed, items->synthetic.mean, items->synthetic.variance, count, mean);
  }
  bool is_known = cv_items_have_means(items);
  /* A driver's mean and spread are drawn in fill_workers(), whose cost comes from the trips. */
  for (uint32_t i = 0; i < count && items->source != CV_SOURCE_TAXI; i++) {
    item[i] = items->source == CV_SOURCE_SYNTHETIC
                  ? (struct cv_quality_item){.mean = mean[i], .spread = items->synthetic.law.spread}
                  : (struct cv_quality_item){.mean = is_known ? items->given.item[i].mean : .5,
                                             .spread = items->given.item[i].spread};
  }
}

/* Comparisons by the items' means, taken as strengths. */
static enum cv_err compare_items(const struct cv_quality_item *item, uint32_t count, uint64_t seed,
                                 struct cv_quality **ret, struct cv_why *why) {
  struct cv_pairs pairs = {.arms = count, .strength = calloc(count, sizeof(*pairs.strength))};
  if (pairs.strength == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory for %u items", count);
  }
  for (uint32_t i = 0; i < count; i++) {
    pairs.strength[i] = item[i].mean;
  }
  return cv_quality_new_pairs(&pairs, seed, ret, why);
}

static enum cv_err fill_model(struct cv_score_source *source, const struct cv_items *items, uint64_t seed,
                              const struct cv_taxis *taxis, struct cv_why *why) {
  const enum cv_rewards rewards = cv_items_law(items)->rewards;
  uint32_t count = source->items;
  double *mean = calloc(count, sizeof(*mean));
  struct cv_quality_item *item = calloc(count, sizeof(*item));
  enum cv_err err = CV_OK;
  if (mean == NULL || item == NULL) {
    err = cv_fail(why, CV_ERR_NOMEM, "out of memory for %u items", count);
  } else {
    fill_items(items, seed, mean, count, item);
    err = items->are_paid ? fill_workers(source, items, seed, taxis, item) : CV_OK;
  }
  if (err == CV_OK) {
    err = rewards == CV_REWARDS_PAIRS
              ? compare_items(item, count, seed, &source->quality, why)
              : cv_quality_new(cv_quality_model_at(rewards), item, count, seed, &source->quality, why);
  }
  free(mean);
  free(item);
  return err;
}

/* `given`: the names, if they are not those of the section; else NULL. */
static enum cv_err name_all(struct cv_score_source *source, const struct cv_items *items, const char *const *given,
                            struct cv_why *why) {
  struct cv_names names = {0};
  for (uint32_t i = 0; i < source->items; i++) {
    if (given != NULL) {
      cv_names_add(&names, given[i]);
    } else {
      cv_items_name(items, i, &names);
    }
  }
  enum cv_err err = cv_names_take(&names, &source->name);
  cv_names_fini(&names);
  return err == CV_OK ? err : cv_fail(why, err, "out of memory for %u items", source->items);
}

static enum cv_err make_model(struct cv_score_source *source, const struct cv_campaign_file *campaign, uint64_t seed,
                              struct cv_why *why) {
  const struct cv_items *items = &campaign->items;
  struct cv_taxis read = {0};
  bool is_taxi = items->source == CV_SOURCE_TAXI;
  /* A laboratory reads a large file once and shares it between runs. */
  const struct cv_taxis *taxis = is_taxi && items->taxi.taxis != NULL ? items->taxi.taxis : &read;
  if (is_taxi && items->taxi.taxis == NULL) {
    CV_TRY(cv_owned_tell(items->taxi.file, campaign->path, cv_taxis_read(&items->taxi, &read, why), why));
  }
  source->items = is_taxi ? taxis->drivers : cv_items_count(items);
  enum cv_err err = fill_model(source, items, seed, taxis, why);
  if (err == CV_OK) {
    err = name_all(source, items, is_taxi ? taxis->name : NULL, why);
  }
  cv_taxis_fini(&read);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u", campaign->path, items->line);
  }
  return err;
}

static enum cv_err make_adversary(struct cv_score_source *source, const struct cv_campaign_file *campaign,
                                  uint64_t seed, struct cv_why *why) {
  const struct cv_items_adversary *items = &campaign->items.adversary;
  const uint64_t rounds = items->rounds > 0 ? items->rounds : campaign->spec.tokens;
  const struct cv_adversary_class *class = cv_adversary_find(items->name);
  CV_REQUIRE(class != NULL);
  const struct cv_adversary adversary = {.class = class,
                                         .arms = items->count,
                                         .best = items->best - 1,
                                         .rounds = rounds,
                                         .seed = seed,
                                         .memory = items->has_memory ? items->memory : class->memory};
  if (rounds > CV_ROUNDS_MAX) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s:%u: the game has %llu rounds, as many as limits.tokens; expected at most %d", campaign->path,
                   campaign->items.line, (unsigned long long)rounds, CV_ROUNDS_MAX);
  }
  source->items = items->count;
  CV_TRY(name_all(source, &campaign->items, NULL, why));
  return cv_quality_new_adversary(&adversary, &source->quality, why);
}

/* Behind a privatizer a row is randomized once: drawn again, it would tell more each time. */
static enum cv_err check_replacement(const struct cv_campaign_file *campaign, struct cv_why *why) {
  const char *privatizer = campaign->spec.privatizer.name;
  return !campaign->items.csv.replacement || !cv_spec_is_local(&campaign->spec)
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "%s:%u: items.replacement: true with privatizer %s; expected rows that are used once, since each "
                   "use of a row would randomize it anew",
                   campaign->path, campaign->items.line, privatizer);
}

static enum cv_err make_rows(struct cv_score_source *source, const struct cv_campaign_file *campaign, uint64_t seed,
                             struct cv_why *why) {
  const struct cv_items_csv *items = &campaign->items.csv;
  struct cv_data data;
  CV_TRY(cv_owned_tell(items->file, campaign->path, cv_data_read(items, !cv_spec_is_exact(&campaign->spec), &data, why),
                       why));
  if (items->parts > 0) {
    cv_rows_part(&data.rows, items->part, items->parts);
  }
  enum cv_err err = cv_quality_new_rows(&data.rows, items->replacement, seed, &source->quality, why);
  if (err == CV_OK) {
    source->items = data.items;
    source->name = data.name;
    source->persons = data.persons;
    source->scale = data.scale;
    source->print = data.print;
    source->notes = data.notes;
    /* The source owns names and persons from here on; cv_data_fini() frees the rest. */
    data.name = NULL;
    data.persons = (struct cv_persons){0};
  }
  cv_data_fini(&data);
  return err;
}

static enum cv_err make_duels(struct cv_score_source *source, const struct cv_campaign_file *campaign, uint64_t seed,
                              struct cv_why *why) {
  const struct cv_items_csv *items = &campaign->items.csv;
  const struct cv_duels_ask ask = {.path = items->file,
                                   .item_column = items->item_column,
                                   .versus_column = items->versus_column,
                                   .score_column = items->score_column,
                                   .delimiter = items->delimiter,
                                   .low = cv_scale_is_declared(&items->scale) ? items->scale.low : 0,
                                   .high = cv_scale_is_declared(&items->scale) ? items->scale.high : 1,
                                   .memory = items->memory};
  struct cv_duels duels;
  CV_TRY(cv_owned_tell(items->file, campaign->path, cv_duels_read(&ask, &duels, why), why));
  enum cv_err err = cv_quality_new_pairs(&duels.pairs, seed, &source->quality, why);
  if (err == CV_OK) {
    source->items = duels.items;
    source->name = duels.name;
    source->notes = duels.notes;
    duels.name = NULL; /* the source's from here on */
  }
  cv_duels_fini(&duels);
  return err;
}

static enum cv_err make_file(struct cv_score_source *source, const struct cv_campaign_file *campaign, uint64_t seed,
                             struct cv_why *why) {
  CV_TRY(check_replacement(campaign, why));
  CV_TRY(cv_items_are_pairs(&campaign->items) ? make_duels(source, campaign, seed, why)
                                              : make_rows(source, campaign, seed, why));
  if (!cv_owned_may_quote(campaign->items.csv.file, campaign->path)) {
    source->notes.count = 0;
  }
  return CV_OK;
}

enum cv_err cv_score_source_init(struct cv_score_source *ret, const struct cv_campaign_file *campaign, uint64_t seed,
                                 struct cv_why *why) {
  struct cv_score_source source = {0};
  enum cv_err err = CV_ERR_INVALID;
  switch (campaign->items.source) {
    case CV_SOURCE_CSV:
      err = make_file(&source, campaign, seed, why);
      break;
    case CV_SOURCE_ADVERSARY:
      err = make_adversary(&source, campaign, seed, why);
      break;
    case CV_SOURCE_SYNTHETIC:
    case CV_SOURCE_GIVEN:
    case CV_SOURCE_TAXI:
      err = make_model(&source, campaign, seed, why);
      break;
  }
  if (err != CV_OK) {
    cv_score_source_fini(&source);
    return err;
  }
  *ret = source;
  return CV_OK;
}

enum cv_err cv_score_source_needs_means(const struct cv_campaign_file *campaign, struct cv_why *why) {
  return cv_items_have_means(&campaign->items)
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "%s:%u: the items have no means, so only people can give scores; expected a mean of each item, to "
                   "simulate them",
                   campaign->path, campaign->items.line);
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
