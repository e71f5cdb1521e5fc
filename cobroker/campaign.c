/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/campaign.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/state.h"

/* 64 MiB: bounds the places that one plan may open at a time, which plan.c computes in advance. */
enum { PLACE_CHUNKS_MAX = 32768 };

struct cv_cobroker_campaign *cv_cobroker_campaign_find(struct cv_cobroker *core, uint64_t id) {
  /* The broker names campaigns with 64 bits: cut to 32, a number that does not exist would find another campaign. */
  struct cv_cobroker_campaign *campaign = NULL;
  if (id <= UINT32_MAX) {
    uint32_t key = (uint32_t)id;
    HASH_FIND(hh, core->campaigns, &key, sizeof(key), campaign);
  }
  return campaign;
}

static enum cv_err make_arms(struct cv_cobroker_campaign *campaign) {
  uint32_t arms = campaign->spec.arms;
  campaign->arm = calloc(arms, sizeof(*campaign->arm));
  campaign->news = calloc(arms, sizeof(*campaign->news));
  if (campaign->arm == NULL || campaign->news == NULL) {
    return CV_ERR_NOMEM;
  }
  CV_TRY(cv_ledger_init(&campaign->ledger, arms, cv_privacy_limit_micro(&campaign->privacy)));
  for (uint32_t i = 0; i < arms; i++) {
    CV_TRY(cv_mechanism_new(&campaign->privacy.law, &campaign->arm[i].mechanism));
  }
  return CV_OK;
}

/* What follows from the spec alone. */
static enum cv_err derive(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign, const struct cv_spec *spec) {
  const struct cv_cobroker_config *config = &core->config;
  struct cv_split *split = &campaign->split;
  CV_TRY(cv_spec_copy(spec, &campaign->spec));
  CV_TRY(cv_privacy_init(&campaign->spec, &campaign->privacy, NULL));
  cv_gate_keep_least(&campaign->spec, &config->limits, &campaign->privacy);
  split->score_bits = spec->score_bits;
  CV_TRY(cv_split_spec(&campaign->spec, config->digest, &split->spec));
  CV_TRY(cv_prio_init(&campaign->prio, split->score_bits == CV_SPLIT_BIT ? CV_PRIO_COUNT : CV_PRIO_SUM,
                      cv_split_maximum(split->score_bits)));
  cv_split_context(split, &config->duo, campaign->id, config->digest, &campaign->context);
  return make_arms(campaign);
}

enum cv_err cv_cobroker_campaign_new(struct cv_cobroker *core, uint32_t id, const struct cv_spec *spec,
                                     const uint8_t database[CV_SPLIT_DATABASE_BYTES], const struct cv_digest *key,
                                     struct cv_cobroker_campaign **ret) {
  struct cv_cobroker_campaign *campaign = calloc(1, sizeof(*campaign));
  if (campaign == NULL) {
    return CV_ERR_NOMEM;
  }
  campaign->id = id;
  campaign->split.key = *key;
  memcpy(campaign->split.database, database, CV_SPLIT_DATABASE_BYTES);
  cv_chunks_init(&campaign->places, PLACE_CHUNKS_MAX);
  cv_chunks_init(&campaign->slots, core->config.limits.chunks);
  cv_answered_init(&campaign->answered, spec->pairs ? 0 : cv_spec_questions(spec, 0), spec->tokens_per_worker,
                   core->config.limits.chunks);
  enum cv_err err = derive(core, campaign, spec);
  if (err == CV_OK) {
    err = CV_TABLE_ADD(core->campaigns, id, campaign);
  }
  if (err != CV_OK) {
    cv_cobroker_campaign_free(campaign);
    return err;
  }
  *ret = campaign;
  return CV_OK;
}

static void free_arms(struct cv_cobroker_campaign *campaign) {
  for (uint32_t i = 0; campaign->arm != NULL && i < campaign->spec.arms; i++) {
    cv_mechanism_free(campaign->arm[i].mechanism);
  }
  if (campaign->arm != NULL) {
    explicit_bzero(campaign->arm, campaign->spec.arms * sizeof(*campaign->arm));
  }
  free(campaign->arm);
  free(campaign->news);
}

static void wipe(struct cv_buf *bytes) {
  if (bytes->data != NULL) {
    explicit_bzero(bytes->data, bytes->cap);
  }
  cv_buf_fini(bytes);
}

void cv_cobroker_campaign_free(struct cv_cobroker_campaign *campaign) {
  if (campaign == NULL) {
    return;
  }
  free_arms(campaign);
  for (; campaign->undone_count > 0; campaign->undone_count--) {
    free(campaign->undone[(campaign->undone_head + campaign->undone_count - 1) % campaign->undone_cap].answer);
  }
  free(campaign->undone);
  if (campaign->closing != NULL) {
    explicit_bzero(campaign->closing, campaign->closings_cap * sizeof(*campaign->closing));
  }
  free(campaign->closing);
  free(campaign->plan_hash);
  free(campaign->last.want);
  cv_chunks_fini(&campaign->places);
  cv_chunks_fini(&campaign->slots);
  cv_answered_fini(&campaign->answered);
  cv_ledger_fini(&campaign->ledger);
  wipe(&campaign->journal);
  wipe(&campaign->news_closings);
  cv_buf_fini(&campaign->news_plans);
  cv_spec_fini(&campaign->spec);
  explicit_bzero(campaign, sizeof(*campaign));
  free(campaign);
}

void cv_cobroker_campaign_drop(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign) {
  HASH_DEL(core->campaigns, campaign);
  cv_cobroker_campaign_free(campaign);
}

void cv_cobroker_campaign_list(struct cv_cobroker_campaign *campaign, uint32_t arm) {
  if (!campaign->arm[arm].listed) {
    campaign->arm[arm].listed = true;
    campaign->news[campaign->news_count++] = arm;
  }
}

void cv_cobroker_campaign_mark(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign) {
  campaign->changed = true;
  core->changed = true;
}

bool cv_cobroker_arm_is_spent(const struct cv_cobroker_arm *arm) {
  return arm->mechanism == NULL;
}

uint64_t cv_cobroker_campaign_price(const struct cv_cobroker_campaign *campaign, uint32_t arm) {
  /* The mechanism's total after n + 1 releases minus that after n, so that rounding never adds up. */
  uint64_t releases = campaign->arm[arm].mechanism->releases;
  uint64_t before = cv_privacy_spent_micro(&campaign->privacy, releases);
  uint64_t after = cv_privacy_spent_micro(&campaign->privacy, releases + 1);
  return after > before ? after - before : 0;
}

uint64_t cv_cobroker_campaign_slot(const struct cv_cobroker_campaign *campaign, uint64_t worker, uint32_t slot) {
  return worker * campaign->spec.tokens_per_worker + slot;
}

void cv_cobroker_campaign_totals(const struct cv_cobroker_campaign *campaign, struct cv_totals *ret,
                                 uint64_t *ret_cost_micro) {
  *ret = (struct cv_totals){.campaigns = campaign->id,
                            .releases = campaign->closings,
                            .tokens = campaign->tokens,
                            .promised_micro = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec)};
  if (__builtin_mul_overflow(campaign->privacy.cost_micro, campaign->tokens, ret_cost_micro)) {
    *ret_cost_micro = UINT64_MAX;
  }
}

struct cv_digest cv_cobroker_campaign_plan_hash(const struct cv_cobroker_campaign *campaign, uint64_t n) {
  return n == 0 ? (struct cv_digest){0} : campaign->plan_hash[n - 1];
}

struct cv_digest cv_cobroker_campaign_closing_hash(const struct cv_cobroker_campaign *campaign, uint64_t n) {
  return n == 0 ? (struct cv_digest){0} : campaign->closing[n - 1].hash;
}

void cv_cobroker_campaign_position(const struct cv_cobroker_campaign *campaign, struct cv_share_position *ret) {
  *ret = (struct cv_share_position){
      .campaign = campaign->id,
      .plans = campaign->plans,
      .batches = campaign->batches,
      .closings = campaign->closings,
      .plans_hash = cv_cobroker_campaign_plan_hash(campaign, campaign->plans),
      .batches_hash = campaign->batches_hash,
      .closings_hash = cv_cobroker_campaign_closing_hash(campaign, campaign->closings),
  };
}
