/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/complete.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/neighbours.h"
#include "common/base/split.h"

/* Rows of a data file are several persons' scores, and an adversary's gains follow the plans. */
static enum cv_err check_gold_source(const struct cv_campaign_file *campaign, struct cv_why *why) {
  return cv_items_law(&campaign->items) != NULL
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "gold items test workers; expected items with means and no data file");
}

/* The arms are the items that are not gold. */
static enum cv_err take_names(struct cv_campaign_file *campaign, const struct cv_campaign_arms *arms,
                              struct cv_why *why) {
  struct cv_spec *spec = &campaign->spec;
  spec->arms = arms->arms - campaign->gold.gold.items;
  if (!campaign->share_names) {
    return CV_OK;
  }
  struct cv_names names = {0};
  for (uint32_t item = 0; item < arms->arms; item++) {
    if (!cv_golds_has(&campaign->gold, item)) {
      cv_names_add(&names, arms->name[item]);
    }
  }
  free(spec->names);
  spec->names = NULL;
  enum cv_err err = cv_names_take(&names, &spec->names);
  cv_names_fini(&names);
  return err == CV_OK ? err : cv_fail(why, err, "%s", cv_err_text(err));
}

/* Finds the gold items; every other item is an arm. */
static enum cv_err take_gold(struct cv_campaign_file *campaign, const struct cv_campaign_arms *arms,
                             struct cv_why *why) {
  struct cv_golds *section = &campaign->gold;
  if (section->line == 0) {
    return CV_OK;
  }
  enum cv_err err = check_gold_source(campaign, why);
  if (err == CV_OK) {
    err = cv_golds_number(section, arms->name, arms->arms, why);
  }
  if (err == CV_OK && section->gold.items == arms->arms) {
    err = cv_fail(why, CV_ERR_INVALID, "every item is gold; expected at least one item to score");
  }
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u:1", campaign->path, section->line);
  }
  return err;
}

static enum cv_err check_gold(const struct cv_campaign_file *campaign, struct cv_why *why) {
  enum cv_err err = cv_gold_check_new(&campaign->gold.gold, &campaign->spec, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u:1", campaign->path, campaign->gold.line);
  }
  return err;
}

/* Sets the workers and costs of a recruitment, and the tokens per worker that the budget buys. */
static enum cv_err take_workers(struct cv_spec *spec, const struct cv_campaign_arms *arms, struct cv_why *why) {
  if (arms->cost_micro == NULL) {
    return CV_OK;
  }
  spec->cost_micro = calloc(arms->arms, sizeof(*spec->cost_micro));
  spec->worker = calloc(arms->arms, sizeof(*spec->worker));
  if (spec->cost_micro == NULL || spec->worker == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  memcpy(spec->cost_micro, arms->cost_micro, arms->arms * sizeof(*spec->cost_micro));
  memcpy(spec->worker, arms->worker, arms->arms * sizeof(*spec->worker));
  /* A worker may be hired until the budget is spent on it alone. */
  uint64_t hires = cv_spec_hires(spec);
  spec->tokens_per_worker = hires == 0 ? 1 : hires < UINT32_MAX ? (uint32_t)hires : UINT32_MAX;
  spec->tokens = arms->requests > 0 && arms->requests < spec->tokens ? arms->requests : spec->tokens;
  return CV_OK;
}

enum cv_err cv_campaign_graph(struct cv_campaign_file *campaign, uint64_t seed, struct cv_why *why) {
  const struct cv_graph *graph = &campaign->graph;
  struct cv_spec *spec = &campaign->spec;
  /* No section `graph` in the file. */
  if (graph->line == 0) {
    return CV_OK;
  }
  /* Rows that are only shown would be used up without being asked for. */
  if (campaign->items.source == CV_SOURCE_CSV && !campaign->items.csv.replacement) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "%s:%u:1: a graph shows scores that were not asked for by themselves; expected items with %s", campaign->path,
        graph->line,
        cv_spec_is_local(spec) ? "simulated scores, since a privatizer randomizes each row once" : "replacement: true");
  }
  for (uint32_t i = 0; i < spec->edges; i++) {
    if (spec->edge[i].b >= spec->arms) {
      return cv_fail(why, CV_ERR_INVALID, "%s:%u:1: graph.edges names item %u; expected at most %u", campaign->path,
                     graph->line, spec->edge[i].b + 1, spec->arms);
    }
  }
  enum cv_err err = graph->is_drawn && spec->edges == 0
                        ? cv_neighbours_draw(spec, graph->p, graph->has_seed ? graph->seed : seed)
                        : CV_OK;
  if (err == CV_ERR_LIMIT) {
    return cv_fail(why, err, "%s:%u:1: graph.p gives more than %d edges; expected a smaller one", campaign->path,
                   graph->line, CV_EDGES_MAX);
  }
  return err == CV_OK ? err : cv_fail(why, err, "%s", cv_err_text(err));
}

/* Comparisons have none: the item wins or loses. */
static void take_scale(struct cv_campaign_file *campaign) {
  if (campaign->items.source == CV_SOURCE_CSV && !cv_items_are_pairs(&campaign->items)) {
    campaign->spec.scale = campaign->items.csv.scale;
  }
}

/* Chooses the bits of a share, unless the file says them, and refuses what two brokers cannot do. */
static enum cv_err take_split(struct cv_campaign_file *campaign, struct cv_why *why) {
  struct cv_spec *spec = &campaign->spec;
  const struct cv_items_law *law = cv_items_law(&campaign->items);
  if (spec->brokers != 0 && spec->score_bits == 0) {
    bool scores_are_bits = law != NULL && law->rewards == CV_REWARDS_BERNOULLI;
    spec->score_bits = cv_split_bits_of(scores_are_bits || cv_split_tokens_are_bits(spec));
  }
  enum cv_err err = cv_split_check(spec, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u:1", campaign->path, campaign->privacy_line);
  }
  return err;
}

enum cv_err cv_campaign_complete(struct cv_campaign_file *campaign, const struct cv_campaign_arms *arms, uint64_t seed,
                                 struct cv_why *why) {
  struct cv_spec *spec = &campaign->spec;
  /* The number of arms first, which workers and graph refer to. */
  CV_TRY(take_gold(campaign, arms, why));
  CV_TRY(take_names(campaign, arms, why));
  CV_TRY(take_workers(spec, arms, why));
  take_scale(campaign);
  CV_TRY(cv_campaign_graph(campaign, seed, why));
  CV_TRY(take_split(campaign, why));
  enum cv_err err = cv_spec_check(spec, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", campaign->path);
    return err;
  }
  CV_TRY(check_gold(campaign, why));
  err = cv_spec_check_questions(spec, campaign->gold.gold.items, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u:1", campaign->path, campaign->privacy_line);
  }
  return err;
}
