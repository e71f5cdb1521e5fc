/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/broker_check.h"

#include <string.h>

#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/fetch.h"
#include "broker/places.h"
#include "broker/state.h"
#include "broker/two.h"
#include "broker/workers.h"

/* Each chunk is listed in its place, and none is empty; or (`early`) some are made before they have a bit. */
static uint64_t bits_set(const struct cv_chunks *chunks, bool early) {
  uint64_t bits = 0;
  for (const struct cv_chunk *chunk = chunks->all; chunk != NULL; chunk = chunk->hh.next) {
    uint64_t word[CV_CHUNK_BYTES / 8], before = bits;
    memcpy(word, chunk->as.bytes, sizeof(word));
    for (size_t i = 0; i < CV_COUNT(word); i++) {
      bits += (uint64_t)__builtin_popcountll(word[i]);
    }
    CV_REQUIRE(early || bits > before);
  }
  for (uint32_t i = 1; i < chunks->count; i++) {
    CV_REQUIRE(chunks->number[i - 1] < chunks->number[i]);
  }
  CV_REQUIRE(chunks->count <= chunks->most && chunks->count == HASH_COUNT(chunks->all));
  return bits;
}

/* Open assignments of a campaign, over all connections; `item` UINT32_MAX: of every item. */
static uint32_t leases_of(const struct cv_leases *leases, uint32_t campaign, uint32_t item) {
  uint32_t count = 0;
  for (uint32_t at = leases->first; at != CV_LEASE_NONE; at = leases->lease[at].after) {
    const struct cv_lease *lease = &leases->lease[at];
    count += lease->campaign == campaign && (item == UINT32_MAX || lease->item == item);
  }
  return count;
}

static void check_epochs(struct cv_broker_campaign *campaign) {
  uint64_t tokens = 0, reserved = 0, free_places = 0;
  uint32_t open_arms = 0;
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    const struct cv_arm *arm = &campaign->arm[i];
    CV_REQUIRE(arm->plan == 0 ? arm->want == 0 : arm->filled < arm->want && arm->plan <= campaign->plans);
    CV_REQUIRE(arm->plan == 0 || arm->mechanism->drawn);
    CV_REQUIRE(cv_chunks_count(&campaign->places, cv_place_bit(arm, 0), arm->want) == arm->filled);
    tokens += arm->first + arm->filled;
    reserved += arm->want - arm->filled;
    free_places += cv_arm_free_places(arm);
    open_arms += arm->plan != 0;
  }
  CV_REQUIRE(campaign->tokens == tokens && campaign->reserved == reserved);
  CV_REQUIRE(tokens <= campaign->spec.tokens && reserved <= campaign->spec.tokens - tokens);
  CV_REQUIRE(campaign->urn.places == free_places && campaign->open_arms == open_arms);
  uint64_t spoiled = campaign->two == NULL ? 0 : campaign->two->spoiled;
  CV_REQUIRE(bits_set(&campaign->payers, campaign->two != NULL) ==
             tokens + spoiled + cv_broker_gold_answers(&campaign->gold));
}

/* Tokens that wait for the co-broker and hold their slot, which is offered to nobody. */
static uint32_t waiting(const struct cv_broker_campaign *campaign) {
  uint32_t count = 0, all = 0;
  const struct cv_docket_token *token = campaign->two == NULL ? NULL : campaign->two->docket.by_payer;
  for (; token != NULL; token = token->by_payer.next) {
    count += token->has_slot;
    all++;
  }
  CV_REQUIRE(campaign->two == NULL || all == campaign->two->docket.count);
  return count;
}

static void check_campaign(const struct cv_broker *broker, struct cv_broker_campaign *campaign) {
  CV_REQUIRE((campaign->arm == NULL) == (campaign->phase >= CV_PHASE_STOPPING));
  CV_REQUIRE(campaign->phase < CV_PHASE_STOPPING || campaign->journal.len == 0);
  if (campaign->arm == NULL) {
    return;
  }
  uint32_t leases = 0;
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    leases += conn->workers == NULL ? 0 : leases_of(&conn->workers->leases, campaign->id, UINT32_MAX);
  }
  check_epochs(campaign);
  CV_REQUIRE(cv_offers_count(&campaign->offered) == leases + waiting(campaign));
  CV_REQUIRE(campaign->two == NULL || campaign->two->leased == leases);
}

/* Ended campaigns have a record; of those that left memory, few are in memory again. */
static void check_ended(const struct cv_broker *broker) {
  uint32_t count = 0, fetched = 0;
  for (const struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    bool has_record = cv_archive_find(&broker->archive, campaign->id) != NULL;
    CV_REQUIRE(campaign->phase == CV_PHASE_ENDED || !has_record);
    fetched += campaign->fetched;
  }
  for (const struct cv_owner *owner = broker->archive.owners; owner != NULL; owner = owner->hh.next) {
    uint32_t of_owner = 0, forgot = 0;
    for (const struct cv_ended *ended = owner->first; ended != NULL; ended = ended->after) {
      CV_REQUIRE(ended->owner == owner && ended->id <= broker->totals.campaigns);
      of_owner++;
      forgot += ended->forget;
    }
    CV_REQUIRE(of_owner == owner->count && of_owner > 0 && forgot == owner->forgot);
    count += of_owner;
  }
  CV_REQUIRE(count == broker->archive.count && count == HASH_COUNT(broker->archive.all) && fetched <= CV_FETCHED_MAX);
}

static void check_workers(struct cv_broker *broker, const struct cv_broker_conn *conn) {
  const struct cv_broker_workers *workers = conn->workers;
  const struct cv_leases *leases = &workers->leases;
  uint32_t outstanding = 0;
  for (uint32_t at = leases->first; at != CV_LEASE_NONE; at = leases->lease[at].after) {
    CV_REQUIRE(cv_identity_vouches_for(&conn->identity, leases->lease[at].worker));
    outstanding++;
  }
  CV_REQUIRE(leases->open == outstanding && outstanding <= CV_CREDIT_MAX);
  CV_REQUIRE(workers->waiting_count <= broker->config.limits.queue);
  for (uint32_t i = 0; i < workers->dealings.count; i++) {
    const struct cv_dealing *dealing = &workers->dealings.dealing[i];
    const struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, dealing->campaign);
    for (uint32_t item = 0; campaign != NULL && item < cv_broker_gold_items(&campaign->gold); item++) {
      CV_REQUIRE(dealing->held[item] == leases_of(leases, dealing->campaign, item));
    }
  }
}

void broker_check(struct cv_broker *broker) {
  uint32_t open = 0, crowd = 0, order = 0;
  for (struct cv_broker_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    check_campaign(broker, campaign);
    open += campaign->phase != CV_PHASE_ENDED;
  }
  check_ended(broker);
  for (const struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    crowd += conn->identity.role == CV_ROLE_WORKER || conn->identity.role == CV_ROLE_GATEWAY;
    if (conn->workers != NULL) {
      check_workers(broker, conn);
    }
    order += conn->identity.role == CV_ROLE_REQUESTER;
  }
  CV_REQUIRE(broker->open_count == open && broker->crowd_conns == crowd && broker->order_conns == order);
}
