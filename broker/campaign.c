/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/campaign.h"

#include <stdlib.h>
#include <string.h>

#include "broker/conn.h"
#include "broker/state.h"
#include "broker/two.h"
#include "common/prio/field.h"

/* 64 MiB: bounds the places that one plan may open at a time, which cv_broker_plan_check() computes in advance. */
enum { PLACE_CHUNKS_MAX = 32768 };

struct cv_broker_campaign *cv_broker_campaign_find(struct cv_broker *broker, uint64_t id) {
  /* Peers name campaigns with 64 bits: cut to 32, a number that does not exist would find another campaign. */
  struct cv_broker_campaign *campaign = NULL;
  if (id <= UINT32_MAX) {
    uint32_t key = (uint32_t)id;
    HASH_FIND(hh, broker->campaigns, &key, sizeof(key), campaign);
  }
  return campaign;
}

static enum cv_err make_arms(struct cv_broker_campaign *campaign) {
  campaign->arm = calloc(campaign->spec.arms, sizeof(*campaign->arm));
  campaign->standing = calloc(campaign->spec.arms, sizeof(*campaign->standing));
  campaign->news = calloc(campaign->spec.arms, sizeof(*campaign->news));
  if (campaign->arm == NULL || campaign->standing == NULL || campaign->news == NULL) {
    return CV_ERR_NOMEM;
  }
  CV_TRY(cv_neighbours_init(&campaign->spec, &campaign->graph));
  CV_TRY(cv_shown_init(&campaign->shown, campaign->spec.arms));
  campaign->shown_most = cv_spec_shown_most(&campaign->spec);
  CV_TRY(cv_ledger_init(&campaign->ledger, campaign->spec.arms, cv_privacy_limit_micro(&campaign->privacy)));
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    CV_TRY(cv_mechanism_new(&campaign->privacy.law, &campaign->arm[i].mechanism));
    campaign->standing[i].arm = i;
  }
  return CV_OK;
}

/* Oldest first: assignments are made in this order, so that a new campaign does not starve older ones. */
static void append_open(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  struct cv_broker_campaign **at = &broker->open;
  while (*at != NULL) {
    at = &(*at)->next_open;
  }
  *at = campaign;
  broker->open_count++;
}

enum cv_err cv_broker_campaign_new(struct cv_broker *broker, uint32_t id, const struct cv_spec *spec,
                                   const struct cv_gold *gold, struct cv_broker_campaign **ret) {
  struct cv_broker_campaign *campaign = calloc(1, sizeof(*campaign));
  if (campaign == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_spec_copy(spec, &campaign->spec);
  if (err == CV_OK) {
    err = cv_privacy_init(&campaign->spec, &campaign->privacy, NULL);
  }
  if (err == CV_OK) {
    cv_gate_keep_least(&campaign->spec, &broker->config.limits, &campaign->privacy);
  }
  if (err == CV_OK) {
    err = make_arms(campaign);
  }
  if (err == CV_OK) {
    err = cv_urn_init(&campaign->urn, campaign->spec.arms);
  }
  if (err == CV_OK) {
    err = cv_payroll_init(&campaign->payroll, &campaign->spec);
  }
  if (err == CV_OK) {
    err = cv_broker_gold_init(&campaign->gold, gold, campaign->spec.arms, &campaign->privacy.local,
                              broker->config.limits.chunks);
  }
  if (err == CV_OK) {
    cv_privacy_add_cost(&campaign->privacy, gold->epsilon_micro);
  }
  if (err == CV_OK && campaign->spec.brokers == 2) {
    err = cv_two_new(&campaign->spec, broker, &campaign->two);
  }
  if (err != CV_OK) {
    cv_broker_campaign_free(campaign);
    return err;
  }
  campaign->id = id;
  cv_chunks_init(&campaign->places, PLACE_CHUNKS_MAX);
  cv_chunks_init(&campaign->payers, broker->config.limits.chunks);
  cv_answered_init(&campaign->answered, cv_spec_questions(&campaign->spec, gold->items),
                   campaign->spec.tokens_per_worker, broker->config.limits.chunks);
  if (CV_TABLE_ADD(broker->campaigns, id, campaign) != CV_OK) {
    cv_broker_campaign_free(campaign);
    return CV_ERR_NOMEM;
  }
  append_open(broker, campaign);
  *ret = campaign;
  return CV_OK;
}

/* Counted at acceptance, before any token: if this database is lost, the anchor still bounds what its campaigns can
 * have cost a worker. */
void cv_broker_campaign_count(struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  struct cv_totals *totals = &broker->totals;
  totals->campaigns = campaign->id > totals->campaigns ? campaign->id : totals->campaigns;
  totals->promised_micro =
      cv_ledger_add(totals->promised_micro, cv_privacy_worker_micro(&campaign->privacy, &campaign->spec));
}

void cv_broker_campaign_list(struct cv_broker_campaign *campaign, uint32_t arm) {
  if (!campaign->arm[arm].listed) {
    campaign->arm[arm].listed = true;
    campaign->news[campaign->news_count++] = arm;
  }
}

void cv_broker_campaign_free_secrets(struct cv_broker_campaign *campaign) {
  for (uint32_t i = 0; campaign->arm != NULL && i < campaign->spec.arms; i++) {
    struct cv_arm *arm = &campaign->arm[i];
    cv_mechanism_free(arm->mechanism);
    free(arm->returned);
  }
  free(campaign->arm);
  campaign->arm = NULL;
  free(campaign->news);
  campaign->news = NULL;
  campaign->news_count = 0;
  cv_chunks_fini(&campaign->places);
  cv_chunks_fini(&campaign->payers);
  cv_broker_gold_free_secrets(&campaign->gold);
  cv_two_free_secrets(campaign->two);
  cv_offers_fini(&campaign->offered);
  cv_offers_fini(&campaign->asking);
  cv_answered_fini(&campaign->answered);
  cv_urn_fini(&campaign->urn);
  cv_buf_fini(&campaign->journal);
  /* Leases may still be open: when they end they find no arms and return nothing (workers.c). */
  campaign->open_arms = 0;
  campaign->reserved = 0;
}

void cv_broker_campaign_free(struct cv_broker_campaign *campaign) {
  if (campaign == NULL) {
    return;
  }
  cv_broker_campaign_free_secrets(campaign);
  cv_two_free(campaign->two);
  for (size_t i = 0; i < campaign->plans; i++) {
    free(campaign->plan[i].want);
  }
  free(campaign->plan);
  free(campaign->release);
  free(campaign->standing);
  cv_ledger_fini(&campaign->ledger);
  cv_payroll_fini(&campaign->payroll);
  cv_neighbours_fini(&campaign->graph);
  cv_shown_fini(&campaign->shown);
  cv_broker_gold_fini(&campaign->gold);
  cv_declines_fini(&campaign->declines);
  cv_spec_fini(&campaign->spec);
  free(campaign);
}

void cv_broker_campaign_leave_open(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  for (struct cv_broker_campaign **at = &broker->open; *at != NULL; at = &(*at)->next_open) {
    if (*at == campaign) {
      *at = campaign->next_open;
      campaign->next_open = NULL;
      broker->open_count--;
      return;
    }
  }
}

void cv_broker_campaign_drop(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  cv_broker_campaign_leave_open(broker, campaign);
  HASH_DEL(broker->campaigns, campaign);
  cv_broker_campaign_free(campaign);
}

enum cv_err cv_broker_campaign_digest(const struct cv_broker *broker, const struct cv_spec *spec,
                                      const struct cv_gold *gold, struct cv_digest *ret) {
  struct cv_buf bytes = {0};
  struct cv_spec asked = *spec; /* borrows its arrays */
  cv_params_drop(&asked.policy.params, CV_RELEASE_TOKENS_KEY);
  cv_spec_encode(&asked, &bytes);
  if (gold->items > 0) {
    cv_gold_encode(gold, &bytes);
  }
  bool ok = cv_buf_ok(&bytes);
  if (ok) {
    broker->config.digest(bytes.data, bytes.len, "", 0, ret);
  }
  cv_buf_fini(&bytes);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

void cv_broker_campaign_mark(struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  campaign->changed = true;
  campaign->progressed = true;
  broker->changed = true;
}

bool cv_broker_campaign_stays_with(const char *keeper, const char *thirdparty) {
  return keeper[0] == '\0' || strcmp(keeper, thirdparty) == 0;
}

const char *cv_broker_campaign_awaited(const struct cv_broker *broker, const struct cv_broker_campaign *campaign) {
  bool waits = broker->rank != NULL && campaign->phase != CV_PHASE_ENDED &&
               !cv_broker_campaign_stays_with(campaign->thirdparty, broker->rank->identity.name);
  return waits ? campaign->thirdparty : NULL;
}

void cv_broker_campaign_progress(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                 struct cv_progress *ret) {
  uint64_t end_ms = campaign->phase == CV_PHASE_ENDED ? campaign->ended_wall_ms : broker->wall_ms;
  struct cv_progress progress = {
      .campaign = campaign->id,
      .tokens = campaign->tokens,
      .tokens_limit = campaign->spec.tokens,
      .releases = campaign->releases,
      .plans = campaign->plans,
      /* The wall clock may have been set back since the submission. */
      .elapsed_ms = end_ms > campaign->submitted_wall_ms ? end_ms - campaign->submitted_wall_ms : 0,
      .arms = campaign->spec.arms,
      .workers = broker->crowd_conns,
      .end = campaign->end,
      .thirdparty_connected = broker->rank != NULL,
      .waits_for_cobroker = campaign->two != NULL && campaign->phase < CV_PHASE_STOPPING && !campaign->two->link.opened,
      .cobroker_connected = campaign->two != NULL && broker->cobroker != NULL,
      .epsilon_spent_micro = cv_ledger_most(&campaign->ledger),
      .paid_micro = campaign->payroll.paid_micro,
      .budget_micro = campaign->spec.budget_micro,
      .used_up_arms = campaign->spent_arms,
      .used_ups = campaign->spent_arms < CV_USED_UP_SHOWN ? campaign->spent_arms : CV_USED_UP_SHOWN,
  };
  memcpy(progress.used_up, campaign->used_up, sizeof(progress.used_up));
  memcpy(progress.why, campaign->why, sizeof(progress.why));
  cv_declines_tell(&campaign->declines, &progress);
  cv_broker_nobody_tell(campaign, &progress);
  memcpy(progress.name, campaign->spec.name, sizeof(progress.name));
  if (cv_broker_campaign_awaited(broker, campaign) != NULL) {
    memcpy(progress.waits_for, campaign->thirdparty, sizeof(progress.waits_for));
  }
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    uint32_t rank_class = campaign->standing[i].rank_class;
    progress.decided += cv_standing_is_decided(&campaign->standing[i]);
    progress.parked += cv_standing_is_parked(&campaign->standing[i]);
    progress.contradictions += campaign->standing[i].contradicts;
    progress.classes = rank_class > progress.classes ? rank_class : progress.classes;
  }
  *ret = progress;
}

int64_t cv_broker_campaign_add(const struct cv_broker_campaign *campaign, int64_t a, int64_t b) {
  return campaign->two == NULL ? a + b : (int64_t)cv_field_add((uint64_t)a, (uint64_t)b);
}

uint64_t cv_broker_campaign_cost(const struct cv_broker_campaign *campaign, uint64_t nth) {
  return cv_privacy_spent_micro(&campaign->privacy, nth);
}

void cv_broker_campaign_release(const struct cv_broker_campaign *campaign, size_t i, struct cv_release *ret) {
  const struct cv_broker_release *row = &campaign->release[i];
  *ret = (struct cv_release){
      .number = row->number,
      .plan = row->plan,
      .arm = row->arm,
      .tokens = row->tokens,
      .noisy_sum = row->noisy_sum,
      .last = row->wanted > 0,
  };
  /* Which noise a release contains follows from the law and its position. So it is not stored, and is the same each
   * time that the release is sent. */
  if (row->nth > 0) {
    cv_mechanism_noise(&campaign->privacy.law, row->nth, &ret->noise);
    /* Each of two brokers puts in its own. */
    for (uint32_t group = 0; campaign->two != NULL && group < ret->noise.groups; group++) {
      ret->noise.group[group].count *= 2;
    }
  }
}

enum cv_err cv_broker_campaign_set_standings(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                             const struct cv_standing *standing, uint32_t n, struct cv_why *why) {
  for (uint32_t i = 0; i < n; i++) {
    if (standing[i].arm >= campaign->spec.arms || !cv_standing_is_plausible(&standing[i], campaign->spec.arms)) {
      return cv_fail(why, CV_ERR_FORMAT,
                     "campaign %u: a standing of arm %llu in class %u to %u; expected arms 1 to %u, classes up to %u "
                     "and a last class of parked arms only",
                     campaign->id, (unsigned long long)standing[i].arm + 1, standing[i].rank_class,
                     standing[i].rank_last, campaign->spec.arms, campaign->spec.arms);
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    campaign->standing[standing[i].arm] = standing[i];
  }
  if (n > 0) {
    campaign->has_standings = campaign->standings_changed = true;
    cv_broker_campaign_mark(broker, campaign);
  }
  return CV_OK;
}
