/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign's life: made, marked, stopped, ended. */
#include <stdlib.h>
#include <string.h>

#include "broker/state.h"

enum { PLACE_CHUNKS_MAX = 16384 };

struct cv_campaign *cv_campaign_find(struct cv_broker *broker, uint64_t id) {
  struct cv_campaign *campaign = NULL;
  if (id <= UINT32_MAX) {
    uint32_t key = (uint32_t)id;
    HASH_FIND(hh, broker->campaigns, &key, sizeof(key), campaign);
  }
  return campaign;
}

static enum cv_err make_arms(struct cv_campaign *campaign) {
  campaign->arm = calloc(campaign->spec.arms, sizeof(*campaign->arm));
  campaign->standing = calloc(campaign->spec.arms, sizeof(*campaign->standing));
  if (campaign->arm == NULL || campaign->standing == NULL) {
    return CV_ERR_NOMEM;
  }
  CV_TRY(cv_neighbours_init(&campaign->spec, &campaign->graph));
  campaign->shown_most = cv_spec_shown_most(&campaign->spec);
  CV_TRY(cv_ledger_init(&campaign->ledger, campaign->spec.arms, cv_privacy_limit_micro(&campaign->privacy)));
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    CV_TRY(cv_mechanism_new(&campaign->privacy.law, &campaign->arm[i].mechanism));
    campaign->standing[i].arm = i;
  }
  return CV_OK;
}

static void append_open(struct cv_broker *broker, struct cv_campaign *campaign) {
  struct cv_campaign **at = &broker->open;
  while (*at != NULL) {
    at = &(*at)->next_open;
  }
  *at = campaign;
  broker->open_count++;
}

enum cv_err cv_campaign_new(struct cv_broker *broker, uint32_t id, const struct cv_spec *spec, bool as_before,
                            struct cv_campaign **ret) {
  struct cv_campaign *campaign = calloc(1, sizeof(*campaign));
  if (campaign == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_spec_copy(spec, &campaign->spec);
  if (err == CV_OK) {
    err = cv_privacy_init(&campaign->spec, &broker->config.limits, &campaign->privacy, NULL);
  }
  if (err == CV_OK) {
    campaign->charges_less = as_before && cv_privacy_as_before(&campaign->privacy, &campaign->spec);
    err = make_arms(campaign);
  }
  if (err == CV_OK) {
    err = cv_payroll_init(&campaign->payroll, &campaign->spec);
  }
  if (err != CV_OK) {
    cv_campaign_free(campaign);
    return err;
  }
  campaign->id = id;
  cv_chunks_init(&campaign->places, PLACE_CHUNKS_MAX);
  cv_chunks_init(&campaign->payers, broker->config.limits.chunks);
  if (CV_TABLE_ADD(broker->campaigns, id, campaign) != CV_OK) {
    cv_campaign_free(campaign);
    return CV_ERR_NOMEM;
  }
  append_open(broker, campaign);
  *ret = campaign;
  return CV_OK;
}

void cv_campaign_count(struct cv_broker *broker, const struct cv_campaign *campaign) {
  struct cv_totals *totals = &broker->totals;
  totals->campaigns = campaign->id > totals->campaigns ? campaign->id : totals->campaigns;
  totals->promised_micro =
      cv_ledger_add(totals->promised_micro, cv_privacy_worker_micro(&campaign->privacy, &campaign->spec));
}

static void free_secrets(struct cv_campaign *campaign) {
  for (uint32_t i = 0; campaign->arm != NULL && i < campaign->spec.arms; i++) {
    struct cv_arm *arm = &campaign->arm[i];
    cv_mechanism_free(arm->mechanism);
    free(arm->returned);
  }
  free(campaign->arm);
  campaign->arm = NULL;
  cv_chunks_fini(&campaign->places);
  cv_chunks_fini(&campaign->payers);
  cv_offers_fini(&campaign->offered);
  cv_buf_fini(&campaign->journal);
  campaign->open_arms = 0;
  campaign->free_places = 0;
  campaign->reserved = 0;
}

void cv_campaign_free(struct cv_campaign *campaign) {
  if (campaign == NULL) {
    return;
  }
  free_secrets(campaign);
  for (size_t i = 0; i < campaign->plans; i++) {
    free(campaign->plan[i].want);
  }
  free(campaign->plan);
  free(campaign->release);
  free(campaign->standing);
  cv_ledger_fini(&campaign->ledger);
  cv_payroll_fini(&campaign->payroll);
  cv_neighbours_fini(&campaign->graph);
  cv_spec_fini(&campaign->spec);
  free(campaign);
}

static void leave_open(struct cv_broker *broker, struct cv_campaign *campaign) {
  struct cv_campaign **at = &broker->open;
  while (*at != NULL && *at != campaign) {
    at = &(*at)->next_open;
  }
  if (*at == campaign) {
    *at = campaign->next_open;
    campaign->next_open = NULL;
    broker->open_count--;
  }
}

void cv_campaign_over(struct cv_broker *broker, struct cv_campaign *campaign, enum cv_end end, uint64_t wall_ms) {
  campaign->end = end;
  campaign->phase = CV_PHASE_ENDED;
  campaign->ended_wall_ms = wall_ms;
  free_secrets(campaign);
  leave_open(broker, campaign);
}

void cv_campaign_drop(struct cv_broker *broker, struct cv_campaign *campaign) {
  leave_open(broker, campaign);
  HASH_DEL(broker->campaigns, campaign);
  cv_campaign_free(campaign);
}

static struct cv_ended *record_of(struct cv_broker *broker, const struct cv_campaign *campaign) {
  struct cv_ended *ended = cv_archive_find(&broker->archive, campaign->id);
  if (ended != NULL) {
    return ended;
  }
  ended = calloc(1, sizeof(*ended));
  if (ended == NULL) {
    return NULL;
  }
  ended->id = campaign->id;
  memcpy(ended->client_key, campaign->client_key, sizeof(ended->client_key));
  if (cv_archive_add(&broker->archive, ended, campaign->requester) != CV_OK) {
    free(ended);
    return NULL;
  }
  return ended;
}

enum cv_err cv_campaign_digest(const struct cv_broker *broker, const struct cv_spec *spec, struct cv_digest *ret) {
  struct cv_buf bytes = {0};
  cv_spec_encode(spec, &bytes);
  bool ok = cv_buf_ok(&bytes);
  if (ok) {
    broker->config.digest(bytes.data, bytes.len, "", 0, ret);
  }
  cv_buf_fini(&bytes);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

void cv_campaign_archive(struct cv_broker *broker, const struct cv_campaign *campaign) {
  struct cv_ended *ended = record_of(broker, campaign);
  if (ended == NULL || cv_campaign_digest(broker, &campaign->spec, &ended->spec_digest) != CV_OK) {
    broker->failed = true;
    return;
  }
  cv_campaign_progress(broker, campaign, &ended->progress);
  ended->ended_wall_ms = campaign->ended_wall_ms;
  memcpy(ended->thirdparty, campaign->thirdparty, sizeof(ended->thirdparty));
  ended->worker_micro = cv_privacy_worker_micro(&campaign->privacy, &campaign->spec);
  if (cv_privacy_is_unprotected(&campaign->privacy)) {
    ended->cost_micro = 0; /* its givers' accounts are at their end */
  } else if (__builtin_mul_overflow(cv_campaign_charge(campaign, 1), campaign->tokens, &ended->cost_micro)) {
    ended->cost_micro = UINT64_MAX;
  }
  cv_archive_mark(&broker->archive, ended);
  broker->changed = true;
}

void cv_campaign_mark(struct cv_broker *broker, struct cv_campaign *campaign) {
  campaign->changed = true;
  campaign->progressed = true;
  broker->changed = true;
}

void cv_campaign_stop(struct cv_broker *broker, struct cv_campaign *campaign, enum cv_end end) {
  if (campaign->phase >= CV_PHASE_STOPPING) {
    return;
  }
  campaign->phase = CV_PHASE_STOPPING;
  campaign->end = end;
  campaign->purge = true;
  free_secrets(campaign);
  cv_campaign_mark(broker, campaign);
}

void cv_campaign_end(struct cv_broker *broker, struct cv_campaign *campaign, enum cv_end end) {
  if (campaign->phase == CV_PHASE_ENDED) {
    return;
  }
  bool is_new =
      campaign->phase < CV_PHASE_STOPPING || end == CV_END_FROZEN || end == CV_END_REFUSED || end == CV_END_RECOVERED;
  cv_campaign_over(broker, campaign, is_new ? end : campaign->end, broker->wall_ms);
  campaign->purge = true;
  cv_campaign_mark(broker, campaign);
  cv_campaign_archive(broker, campaign);
  cv_broker_note(broker, NULL, "campaign %u \"%s\" ended: %s, %llu tokens, %zu releases", campaign->id,
                 campaign->spec.name, cv_end_text(campaign->end), (unsigned long long)campaign->tokens,
                 campaign->releases);
}

void cv_campaign_progress(const struct cv_broker *broker, const struct cv_campaign *campaign, struct cv_progress *ret) {
  uint64_t end_ms = campaign->phase == CV_PHASE_ENDED ? campaign->ended_wall_ms : broker->wall_ms;
  struct cv_progress progress = {
      .campaign = campaign->id,
      .tokens = campaign->tokens,
      .tokens_limit = campaign->spec.tokens,
      .releases = campaign->releases,
      .plans = campaign->plans,
      .elapsed_ms = end_ms > campaign->submitted_wall_ms ? end_ms - campaign->submitted_wall_ms : 0,
      .arms = campaign->spec.arms,
      .workers = broker->crowd_conns,
      .end = campaign->end,
      .thirdparty_connected = broker->rank != NULL,
      .epsilon_spent_micro = cv_ledger_most(&campaign->ledger),
      .paid_micro = campaign->payroll.paid_micro,
      .budget_micro = campaign->spec.budget_micro,
  };
  memcpy(progress.name, campaign->spec.name, sizeof(progress.name));
  if (cv_rank_awaited(broker, campaign) != NULL) {
    memcpy(progress.waits_for, campaign->thirdparty, sizeof(progress.waits_for));
  }
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    uint32_t rank_class = campaign->standing[i].rank_class;
    progress.decided += rank_class > 0;
    progress.classes = rank_class > progress.classes ? rank_class : progress.classes;
  }
  *ret = progress;
}

uint64_t cv_campaign_charge(const struct cv_campaign *campaign, uint32_t shown) {
  uint64_t charge;
  return __builtin_mul_overflow(campaign->privacy.cost_micro, shown, &charge) ? UINT64_MAX : charge;
}

static bool has_given(struct cv_campaign *campaign, uint64_t worker) {
  uint32_t slots = campaign->spec.tokens_per_worker;
  return cv_chunks_count(&campaign->payers, cv_campaign_payer_bit(campaign, worker, 0), slots) > 0;
}

bool cv_campaign_can_pay(struct cv_broker *broker, struct cv_campaign *campaign, uint64_t worker, uint32_t shown) {
  uint64_t spent = cv_accounts_spent(&broker->accounts, worker), most = broker->config.limits.worker_epsilon_micro;
  if (cv_privacy_is_unprotected(&campaign->privacy)) { /* all that is left, once */
    return spent < most || has_given(campaign, worker);
  }
  return cv_ledger_add(spent, cv_campaign_charge(campaign, shown)) <= most;
}

bool cv_campaign_has_room(struct cv_broker *broker, struct cv_campaign *campaign, const struct cv_identity *identity,
                          uint64_t worker, uint32_t slot) {
  uint64_t first = cv_campaign_payer_bit(campaign, identity->first, 0);
  uint64_t last = cv_campaign_payer_bit(campaign, identity->last, campaign->spec.tokens_per_worker - 1);
  return cv_chunks_has_room(&broker->accounts.cells, worker / CV_CHUNK_CELLS, identity->first / CV_CHUNK_CELLS,
                            identity->last / CV_CHUNK_CELLS) &&
         cv_chunks_has_room(&campaign->payers, cv_campaign_payer_bit(campaign, worker, slot) / CV_CHUNK_BITS,
                            first / CV_CHUNK_BITS, last / CV_CHUNK_BITS);
}

uint64_t cv_campaign_payer_bit(const struct cv_campaign *campaign, uint64_t worker, uint32_t slot) {
  return worker * campaign->spec.tokens_per_worker + slot;
}

uint64_t cv_campaign_cost(const struct cv_campaign *campaign, uint64_t nth) {
  return cv_privacy_spent_micro(&campaign->privacy, nth);
}

void cv_campaign_release(const struct cv_campaign *campaign, size_t i, struct cv_release *ret) {
  const struct cv_release_row *row = &campaign->release[i];
  *ret = (struct cv_release){
      .number = row->number,
      .plan = row->plan,
      .arm = row->arm,
      .tokens = row->tokens,
      .noisy_sum = row->noisy_sum,
  };
  cv_mechanism_noise(&campaign->privacy.law, row->nth, &ret->noise);
}

enum cv_err cv_campaign_set_standings(struct cv_broker *broker, struct cv_campaign *campaign,
                                      const struct cv_standing *standing, uint32_t n, struct cv_why *why) {
  for (uint32_t i = 0; i < n; i++) {
    if (standing[i].arm >= campaign->spec.arms || standing[i].rank_class > campaign->spec.arms) {
      return cv_fail(why, CV_ERR_FORMAT, "campaign %u: a standing of arm %u in class %u; expected below %u arms",
                     campaign->id, standing[i].arm, standing[i].rank_class, campaign->spec.arms);
    }
  }
  for (uint32_t i = 0; i < n; i++) {
    campaign->standing[standing[i].arm] = standing[i];
  }
  campaign->has_standings = campaign->has_standings || n > 0;
  campaign->standings_changed = campaign->standings_changed || n > 0;
  cv_campaign_mark(broker, campaign);
  return CV_OK;
}
