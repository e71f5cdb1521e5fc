/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the broker has stored: after every batch, and after every restart. */
#include <stdlib.h>
#include <string.h>

#include "broker/conn.h"
#include "broker/payer.h"
#include "broker/places.h"
#include "broker/requester.h"
#include "broker/two.h"
#include "broker/workers.h"
#include "common/base/array.h"
#include "common/prio/field.h"
#include "tests/sim/shows.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"
#include "tests/sim/two.h"
#include "tests/support/mechanism.h"

/* Where a place's token depends on its worker, or its opponent. */
static void make_room_for_values(struct truth *truth) {
  const struct world *world = truth->world;
  for (uint32_t i = 0; i < world->room; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->value = calloc(world->scenario.arms * world->scenario.tokens, sizeof(*campaign->value));
    CV_REQUIRE(campaign->value != NULL);
  }
}

struct truth *truth_new(struct world *world) {
  struct truth *truth = calloc(1, sizeof(*truth));
  CV_REQUIRE(truth != NULL);
  truth->world = world;
  truth->workers = (uint64_t)(world->scenario.pools + world->scenario.liars) * world->scenario.pool_workers + 1;
  truth->spent_micro = calloc(truth->workers, sizeof(*truth->spent_micro));
  truth->gave = calloc(truth->workers, sizeof(*truth->gave));
  truth->left = calloc(truth->workers, sizeof(*truth->left));
  truth->said = calloc(truth->workers, sizeof(*truth->said));
  truth->gave_to = calloc(truth->workers, sizeof(*truth->gave_to));
  truth->campaigns = world->scenario.requesters * world->scenario.campaigns + 1;
  truth->campaign = calloc(world->room, sizeof(*truth->campaign));
  truth->asked_ms = calloc(world->room, sizeof(*truth->asked_ms));
  truth->asked_jumps = calloc(world->room, sizeof(*truth->asked_jumps));
  CV_REQUIRE(truth->spent_micro != NULL && truth->said != NULL && truth->gave != NULL && truth->left != NULL &&
             truth->gave_to != NULL && truth->campaign != NULL && truth->asked_ms != NULL &&
             truth->asked_jumps != NULL);
  if (scenario_values_vary(&world->scenario)) {
    make_room_for_values(truth);
  }
  if (world->scenario.persons) {
    truth->row_left = calloc(world->persons.start[world->persons.persons] + 1, sizeof(*truth->row_left));
    CV_REQUIRE(truth->row_left != NULL);
  }
  if (world->scenario.golds > 0) {
    truth_make_room_for_golds(truth);
  }
  return truth;
}

void truth_free(struct truth *truth) {
  if (truth == NULL) {
    return;
  }
  for (size_t i = 0; i < truth->campaigns; i++) {
    struct campaign *campaign = &truth->campaign[i];
    for (size_t j = 0; j < campaign->plans; j++) {
      free(campaign->plan[j].want);
    }
    for (size_t j = 0; j < SCENARIO_ARMS; j++) {
      cv_buf_fini(&campaign->arm[j].opened);
    }
    free(campaign->plan);
    free(campaign->release);
  }
  for (size_t i = 0; i < truth->world->room; i++) {
    free(truth->campaign[i].value);
    free(truth->campaign[i].golds);
  }
  seen_fini(&truth->places);
  seen_fini(&truth->payers);
  seen_fini(&truth->answered);
  seen_fini(&truth->nonces);
  seen_fini(&truth->given);
  seen_fini(&truth->opinions);
  seen_fini(&truth->disclosed);
  seen_fini(&truth->tickets_left);
  free(truth->said);
  free(truth->campaign);
  free(truth->asked_ms);
  free(truth->asked_jumps);
  free(truth->acknowledged.ticket);
  free(truth->spent_micro);
  free(truth->gave);
  free(truth->left);
  free(truth->row_left);
  free(truth->gave_to);
  free(truth);
}

struct campaign *truth_campaign(struct truth *truth, uint64_t id) {
  if (id == 0 || id >= truth->campaigns) {
    world_fail(truth->world, "campaign %llu: the last is %u", (unsigned long long)id, truth->campaigns - 1);
    id = 1;
  }
  return &truth->campaign[id];
}

/* ---- what is stored at the broker ---- */

static void add_plan(struct campaign *campaign, const struct cv_plan *plan) {
  CV_REQUIRE(CV_ARRAY_ROOM(campaign->plan, campaign->plans + 1, campaign->plans_cap) == CV_OK);
  struct cv_want *want = calloc(plan->wants, sizeof(*want));
  CV_REQUIRE(want != NULL);
  memcpy(want, plan->want, plan->wants * sizeof(*want));
  campaign->plan[campaign->plans++] = (struct cv_plan){.number = plan->number, .wants = plan->wants, .want = want};
}

static const struct cv_plan *plan_of(const struct campaign *campaign, uint64_t number) {
  return number >= 1 && number <= campaign->plans ? &campaign->plan[number - 1] : NULL;
}

uint32_t truth_opponent(const struct truth *truth, uint64_t campaign, uint64_t number, uint32_t arm) {
  const struct cv_plan *plan = plan_of(truth_campaign((struct truth *)(uintptr_t)truth, campaign), number);
  const struct cv_want *want = plan == NULL ? NULL : shows_want(plan, arm);
  return want == NULL ? 0 : want->opponent;
}

/* Of the arm's releases so far: tokens of the latest one, and of all their epochs. */
static void tokens_before(const struct truth *truth, const struct campaign *campaign, uint32_t arm, uint64_t *ret_last,
                          uint64_t *ret_all) {
  *ret_last = *ret_all = 0;
  for (size_t i = 0; i < campaign->releases; i++) {
    const struct cv_release *release = &campaign->release[i];
    if (release->arm == arm) {
      *ret_last = release->tokens;
      *ret_all += shows_tokens(&truth->world->scenario, plan_of(campaign, release->plan), arm);
    }
  }
}

/*
 * The last release of an arm whose data are used up: it lacks tokens, has none or as many as the operator's smallest
 * release, and in a peaceful world no person has a row left that it may give.
 */
static void check_last(struct truth *truth, const struct cv_broker_campaign *core, const struct cv_release *release,
                       uint64_t most) {
  const struct scenario *scenario = &truth->world->scenario;
  uint64_t number = release->number;
  tally(TALLY_LASTS);
  if (!(scenario->persons || scenario->parts) || release->tokens >= most ||
      (release->tokens > 0 && release->tokens < core->privacy.least_tokens) || !cv_release_is_whole(release)) {
    world_fail(truth->world, "17: release %llu of arm %u is its last one, with %llu of %llu tokens",
               (unsigned long long)number, release->arm, (unsigned long long)release->tokens, (unsigned long long)most);
  }
  uint64_t rows = scenario->parts && scenario->peaceful ? truth_rows_left(truth, core->id, release->arm) : 0;
  if (rows > 0) {
    world_fail(truth->world, "18: release %llu of arm %u is its last one, and gateways have %llu rows of it",
               (unsigned long long)number, release->arm, (unsigned long long)rows);
  }
  uint64_t worker = scenario->persons && scenario->peaceful ? truth_find_idle(truth, release->arm) : 0;
  if (worker != 0) {
    world_fail(truth->world, "17: release %llu of arm %u is its last one, and worker %llu has a row of it",
               (unsigned long long)number, release->arm, (unsigned long long)worker);
  }
}

/* S1: what the tokens say, and the noise of both brokers, in the order of their fields. */
static int64_t both_halves(struct truth *truth, const struct cv_broker_campaign *core, struct cv_mechanism *mechanism,
                           const struct cv_release *release, uint64_t first, uint64_t tokens) {
  uint64_t other = 0;
  int64_t sum = 0;
  uint64_t mine =
      cv_mechanism_release_share(mechanism, two_sum(truth->world->two, core->id, release->arm, first, tokens));
  bool made = two_half(truth->world->two, core->id, release->number, &other);
  if (two_is_doubtful(truth->world)) { /* a lying broker can spoil a sum, and no more */
    return release->noisy_sum;
  }
  if (!made || !cv_field_lift(cv_field_add(mine, other), &sum)) {
    world_fail(truth->world, "S1: release %llu of arm %u: %s", (unsigned long long)release->number, release->arm,
               made ? "its halves are no sum" : "the co-broker has made no half of it");
  }
  return sum;
}

/* The noise that was stored with the epoch and the scores of its places must add up to the release. */
static void check_sum(struct truth *truth, const struct cv_broker_campaign *core, const struct campaign *campaign,
                      const struct cv_plan *plan, const struct cv_release *release, struct cv_mechanism *mechanism) {
  const struct scenario *scenario = &truth->world->scenario;
  uint64_t first[SCENARIO_ARMS], last, before, tokens = shows_tokens(scenario, plan, release->arm);
  tokens_before(truth, campaign, release->arm, &last, &before);
  if (release->last) {
    check_last(truth, core, release, before + tokens);
    if (release->tokens == 0 || !scenario->peaceful) { /* else places may have values that were not stored */
      return;
    }
    tokens = release->tokens >= before ? release->tokens - before : release->tokens;
    if (cv_mechanism_cover(&core->privacy.law, mechanism->releases + 1) == CV_COVER_ITEM) {
      tokens = release->tokens;
    }
  }
  shows_plays(campaign->plan, plan->number - 1, first);
  int64_t sum = truth->world->two != NULL
                    ? both_halves(truth, core, mechanism, release, first[release->arm], tokens)
                    : cv_mechanism_release(mechanism, truth_sum(truth, campaign, plan, first, release->arm));
  uint64_t summed = mechanism_tokens(&core->privacy.law, mechanism->releases, last, tokens, before + tokens);
  if (release->tokens != summed) {
    world_fail(truth->world, "1: release %llu of arm %u has %llu tokens; expected %llu",
               (unsigned long long)release->number, release->arm, (unsigned long long)release->tokens,
               (unsigned long long)summed);
  }
  if (sum != release->noisy_sum) {
    world_fail(truth->world, "1: release %llu of arm %u is %lld; its tokens and its noise give %lld",
               (unsigned long long)release->number, release->arm, (long long)release->noisy_sum, (long long)sum);
  }
}

static void check_release(struct truth *truth, const struct cv_broker_campaign *core, struct campaign *campaign,
                          const struct cv_release *release, uint64_t spent_micro) {
  struct world *world = truth->world;
  const struct arm *arm = &campaign->arm[release->arm];
  const struct cv_plan *plan = plan_of(campaign, release->plan);
  struct cv_reader in = cv_reader_over(arm->opened.data, arm->opened.len);
  struct cv_mechanism *mechanism = NULL;
  if (plan == NULL || shows_want(plan, release->arm) == NULL) {
    world_fail(world, "10: release %llu is of arm %u, which plan %llu does not name",
               (unsigned long long)release->number, release->arm, (unsigned long long)release->plan);
    return;
  }
  if (!arm->stored || cv_mechanism_load(&core->privacy.law, &in, &mechanism) != CV_OK || !mechanism->drawn) {
    cv_mechanism_free(mechanism);
    world_fail(world, "2: release %llu of arm %u: its noise was not stored before its tokens came",
               (unsigned long long)release->number, release->arm);
    return;
  }
  check_sum(truth, core, campaign, plan, release, mechanism);
  uint64_t spent = cv_privacy_spent_micro(&core->privacy, mechanism->releases);
  cv_mechanism_free(mechanism);
  if (spent_micro < spent) {
    world_fail(world, "3: release %llu was charged %llu micro-epsilon; it costs %llu",
               (unsigned long long)release->number, (unsigned long long)spent_micro, (unsigned long long)spent);
  }
}

static void add_release(struct campaign *campaign, const struct cv_release *release) {
  CV_REQUIRE(CV_ARRAY_ROOM(campaign->release, campaign->releases + 1, campaign->releases_cap) == CV_OK);
  campaign->release[campaign->releases++] = *release;
}

/* The new plans and releases; `again`: those that were stored before, too. */
static void check_history(struct truth *truth, const struct cv_broker_campaign *core, struct campaign *campaign,
                          bool again) {
  struct world *world = truth->world;
  for (size_t i = again ? 0 : campaign->plans; i < core->plans; i++) {
    if (i == campaign->plans) {
      add_plan(campaign, &core->plan[i]);
      tally(TALLY_PLANS);
    } else if (!truth_same_plan(&core->plan[i], &campaign->plan[i])) {
      world_fail(world, "2: plan %zu of campaign %u differs from the stored one", i + 1, core->id);
    }
  }
  for (size_t i = again ? 0 : campaign->releases; i < core->releases; i++) {
    struct cv_release release;
    cv_broker_campaign_release(core, i, &release);
    if (i == campaign->releases) {
      check_release(truth, core, campaign, &release, core->ledger.arm[release.arm].spent_micro);
      add_release(campaign, &release);
      tally(TALLY_RELEASES);
    } else if (!truth_same_release(&release, &campaign->release[i])) {
      world_fail(world, "2: release %zu of campaign %u differs from the stored one", i + 1, core->id);
    }
  }
}

/* A commit in flight may be lost; a finished one may not. */
static void check_kept(struct truth *truth, const struct cv_broker_campaign *core, struct campaign *campaign) {
  if (core->plans < campaign->plans_stored || core->releases < campaign->releases_stored) {
    world_fail(truth->world, "2: campaign %u has %zu plans and %zu releases; it had %zu and %zu", core->id, core->plans,
               core->releases, campaign->plans_stored, campaign->releases_stored);
    return;
  }
  while (campaign->plans > core->plans) {
    free(campaign->plan[--campaign->plans].want);
  }
  campaign->releases = campaign->releases < core->releases ? campaign->releases : core->releases;
  for (size_t i = 0; i < SCENARIO_ARMS; i++) {
    if (!campaign->arm[i].stored) {
      cv_buf_clear(&campaign->arm[i].opened);
    }
  }
}

static void check_noise(struct truth *truth, uint32_t index, const struct cv_arm *core, struct arm *arm) {
  struct cv_buf now = {0};
  cv_mechanism_save(core->mechanism, &now);
  if (core->mechanism->releases == arm->releases && arm->opened.len > 0 &&
      (now.len != arm->opened.len || memcmp(now.data, arm->opened.data, now.len) != 0)) {
    world_fail(truth->world, "2: the noise of arm %u's release %llu was drawn twice", index,
               (unsigned long long)arm->releases + 1);
  }
  arm->stored = arm->stored && arm->opened.len > 0 && core->mechanism->releases == arm->releases;
  cv_buf_fini(&arm->opened);
  arm->opened = now;
  arm->releases = core->mechanism->releases;
}

/* The counts of an open epoch. */
struct count {
  uint32_t plays;
  uint64_t seen;
  int64_t sum;
};

/* With two brokers a share of the sum, an element. */
static int64_t add_value(struct truth *truth, const struct cv_broker_campaign *core, int64_t sum, uint32_t played,
                         uint64_t place, uint32_t arm) {
  return two_is_doubtful(truth->world) ? 0
         : truth->world->two != NULL
             ? (int64_t)cv_field_add((uint64_t)sum, two_share(truth->world->two, core->id, arm, place))
             : sum + truth_value(truth, truth_campaign(truth, core->id), played, place, arm);
}

/* From the filled places: in an arm whose epoch is closed, all are filled. */
static void count_places(struct truth *truth, struct cv_broker_campaign *core, const struct cv_plan *plan,
                         const uint64_t *first, uint32_t index, struct count *ret) {
  struct count count = {0};
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t played = plan->want[i].arm;
    bool is_over = core->arm[played].plan != plan->number;
    for (uint32_t j = 0; shows_arm(&truth->world->scenario, played, index) && j < plan->want[i].tokens; j++) {
      if (is_over || cv_chunks_bit(&core->places, cv_place_bit(&core->arm[played], j))) {
        count.plays += played == index;
        count.seen++;
        count.sum = add_value(truth, core, count.sum, played, first[played] + j, index);
      }
    }
  }
  *ret = count;
}

/* The open epoch must have as many tokens, and the sum, of the filled places that show its arm. */
static void check_epoch(struct truth *truth, struct cv_broker_campaign *core, const struct campaign *campaign,
                        const uint64_t *first, uint32_t index) {
  const struct cv_arm *arm = &core->arm[index];
  const struct cv_plan *plan = plan_of(campaign, arm->plan);
  struct count count;
  if (plan == NULL || plan->number != campaign->plans || shows_want(plan, index) == NULL) {
    world_fail(truth->world, "10: arm %u has an open epoch of plan %llu, which does not name it or is over", index,
               (unsigned long long)arm->plan);
    return;
  }
  if (shows_tokens(&truth->world->scenario, plan, index) < scenario_least(&truth->world->scenario)) {
    world_fail(truth->world, "13: arm %u has an epoch of %llu tokens; the operator requires %u", index,
               (unsigned long long)shows_tokens(&truth->world->scenario, plan, index),
               scenario_least(&truth->world->scenario));
  }
  count_places(truth, core, plan, first, index, &count);
  bool is_sum = count.sum == arm->sum || two_is_doubtful(truth->world); /* then no sum of the broker is known */
  if (count.plays != arm->filled || count.seen != arm->seen || !is_sum) {
    world_fail(truth->world, "1: arm %u counts %u plays, %llu tokens with sum %lld; its places have %u, %llu and %lld",
               index, arm->filled, (unsigned long long)arm->seen, (long long)arm->sum, count.plays,
               (unsigned long long)count.seen, (long long)count.sum);
  }
  truth_spy(truth, count.plays, count.sum);
}

static uint64_t bits_in(const struct cv_chunks *chunks) {
  uint64_t bits = 0;
  for (const struct cv_chunk *chunk = chunks->all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_BYTES; i += 8) {
      uint64_t word;
      memcpy(&word, chunk->as.bytes + i, 8);
      bits += (uint64_t)__builtin_popcountll(word);
    }
  }
  return bits;
}

static bool reaches(const struct cv_chunks *chunks, uint64_t number) {
  return chunks->count > 0 && chunks->number[chunks->count - 1] >= number;
}

/* No memory is kept for workers without a counted token, and no slot is offered that no connection holds. */
static void check_room(struct truth *truth, const struct cv_broker *core, const struct cv_broker_campaign *campaign) {
  uint64_t leases = 0;
  for (const struct cv_broker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    const struct cv_leases *open = conn->workers == NULL ? NULL : &conn->workers->leases;
    for (uint32_t at = open == NULL ? CV_LEASE_NONE : open->first; at != CV_LEASE_NONE; at = open->lease[at].after) {
      const struct cv_lease *lease = &open->lease[at];
      uint64_t payer = cv_broker_campaign_payer_bit(campaign, lease->worker, lease->slot);
      leases += lease->campaign == campaign->id && !cv_two_holds_payer(campaign, payer);
    }
  }
  leases += campaign->two != NULL ? campaign->two->docket.count : 0;
  if (cv_offers_count(&campaign->offered) != leases) {
    world_fail(truth->world, "6: campaign %u has %llu slots offered and %llu assignments", campaign->id,
               (unsigned long long)cv_offers_count(&campaign->offered), (unsigned long long)leases);
  }
  if (reaches(&campaign->payers, cv_broker_campaign_payer_bit(campaign, SCENARIO_FAR, 0) / CV_CHUNK_BITS) ||
      reaches(&core->accounts.cells, SCENARIO_FAR / CV_CHUNK_CELLS)) {
    world_fail(truth->world,
               "6: campaign %u keeps memory for workers that have given nothing: %u chunks, %u of accounts",
               campaign->id, campaign->payers.count, core->accounts.cells.count);
  }
}

static void check_open(struct truth *truth, struct cv_broker_campaign *core, struct campaign *campaign) {
  uint64_t tokens = 0, reserved = 0, first[SCENARIO_ARMS];
  shows_plays(campaign->plan, campaign->plans > 0 ? campaign->plans - 1 : 0, first);
  for (uint32_t i = 0; i < core->spec.arms; i++) {
    const struct cv_arm *arm = &core->arm[i];
    tokens += arm->first;
    if (arm->plan != 0) {
      check_noise(truth, i, arm, &campaign->arm[i]);
      check_epoch(truth, core, campaign, first, i);
      tokens += arm->filled;
      reserved += arm->want - arm->filled;
    }
  }
  uint64_t answers = truth_gold_answers(truth, campaign);
  answers += core->two != NULL ? core->two->spoiled : 0; /* slots of tokens whose proof has failed */
  if (tokens != core->tokens || bits_in(&core->payers) != tokens + answers) {
    world_fail(truth->world,
               "1: campaign %u counts %llu tokens in its arms, %llu in all, %llu answers to gold items, and %llu slots "
               "are taken",
               core->id, (unsigned long long)tokens, (unsigned long long)core->tokens, (unsigned long long)answers,
               (unsigned long long)bits_in(&core->payers));
  }
  if (reserved != core->reserved || core->tokens + reserved > core->spec.tokens) {
    world_fail(truth->world, "3: campaign %u has %llu tokens and reserved %llu; its epochs say %llu, its limit is %llu",
               core->id, (unsigned long long)core->tokens, (unsigned long long)core->reserved,
               (unsigned long long)reserved, (unsigned long long)core->spec.tokens);
  }
}

uint32_t truth_shown(struct truth *truth, const struct campaign *campaign, uint64_t number, uint32_t arm) {
  const struct cv_plan *plan = plan_of(campaign, number);
  uint32_t shown[SCENARIO_ARMS];
  if (plan == NULL || shows_want(plan, arm) == NULL) {
    world_fail(truth->world, "10: a place of arm %u in plan %llu, which does not name it", arm,
               (unsigned long long)number);
    return 0;
  }
  return shows_list(&truth->world->scenario, plan, arm, shown);
}

uint64_t truth_price(struct truth *truth, const struct campaign *campaign, uint64_t number, uint32_t arm) {
  return scenario_cost(&truth->world->scenario) * truth_shown(truth, campaign, number, arm);
}

static void check_acknowledged(struct truth *truth, struct cv_broker *core) {
  for (size_t i = 0; i < truth->acknowledged.n; i++) {
    const struct cv_ticket *ticket = &truth->acknowledged.ticket[i];
    struct cv_broker_campaign *campaign = cv_broker_campaign_find(core, ticket->campaign);
    bool is_known = campaign != NULL || cv_archive_find(&core->archive, ticket->campaign) != NULL;
    if (!is_known && (truth->world->scenario.kept == 0 || !truth_campaign(truth, ticket->campaign)->finished)) {
      world_fail(truth->world, "1: campaign %u is gone, with its tokens", ticket->campaign);
      return;
    }
    if (campaign != NULL && campaign->arm != NULL &&
        !cv_chunks_bit(&campaign->payers, ticket->worker * campaign->spec.tokens_per_worker + ticket->slot)) {
      world_fail(truth->world, "1: the token of worker %llu, slot %u, was acknowledged and is lost",
                 (unsigned long long)ticket->worker, ticket->slot);
      return;
    }
  }
}

/* Each arm's charge is at least the cost of its releases, and within the campaign's limit. */
static void check_ledger(struct truth *truth, const struct cv_broker_campaign *core) {
  for (uint32_t i = 0; i < core->ledger.arms; i++) {
    uint64_t releases = 0, spent = core->ledger.arm[i].spent_micro;
    for (size_t j = 0; j < core->releases; j++) {
      bool is_empty = core->release[j].wanted > 0 && core->release[j].tokens == 0;
      releases += core->release[j].arm == i && !is_empty; /* nothing leaves with an empty one */
    }
    uint64_t cost = cv_privacy_spent_micro(&core->privacy, releases);
    if (spent < cost || spent > core->ledger.limit_micro) {
      world_fail(truth->world,
                 "3: arm %u has spent %llu micro-epsilon on record; its %llu releases cost %llu, the limit is %llu", i,
                 (unsigned long long)spent, (unsigned long long)releases, (unsigned long long)cost,
                 (unsigned long long)core->ledger.limit_micro);
    }
  }
}

static void check_bounds(struct truth *truth, struct cv_broker *core) {
  enum { DIRTY_MOST = 4096, JOURNAL_MOST = 1 << 20 };
  for (const struct cv_broker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    const struct cv_broker_workers *workers = conn->workers;
    if (workers != NULL && (workers->waiting_count > core->config.limits.queue ||
                            workers->leases.open > CV_CREDIT_MAX || workers->dealings.count > CV_DEALINGS_MAX)) {
      world_fail(truth->world, "6: %s has %u workers waiting, %u assignments", conn->identity.name,
                 workers->waiting_count, workers->leases.open);
    }
    if (conn->requester != NULL && conn->requester->requests > CV_REQUESTS_MAX) {
      world_fail(truth->world, "6: %s has %u requests", conn->identity.name, conn->requester->requests);
    }
  }
  if (core->open_count > truth->campaigns || core->dirty_count > DIRTY_MOST) {
    world_fail(truth->world, "6: %u campaigns are open, %zu chunks wait to be written", core->open_count,
               core->dirty_count);
  }
  for (const struct cv_broker_campaign *each = core->open; each != NULL; each = each->next_open) {
    for (uint32_t i = 0; each->arm != NULL && i < each->spec.arms; i++) {
      if (each->arm[i].returned_count > each->arm[i].want || each->journal.len > JOURNAL_MOST) {
        world_fail(truth->world, "6: arm %u has %u places to give again of %u, and %zu bytes of journal", i,
                   each->arm[i].returned_count, each->arm[i].want, each->journal.len);
      }
    }
  }
}

/* ---- deadlines ---- */

static void take_time(struct truth *truth, const struct cv_broker_campaign *core, struct campaign *campaign,
                      bool again) {
  const struct world *world = truth->world;
  if (campaign->taken_ms == 0) {
    campaign->taken_ms = world->now_ms;
  }
  if (campaign->counting_ms == 0 || again) {
    campaign->counting_ms = world->now_ms;
  }
  uint32_t owner = campaign->owner;
  if (core->end != CV_END_DEADLINE || campaign->deadline_seen || owner == 0) {
    return;
  }
  campaign->deadline_seen = true;
  bool early = world->now_ms < truth->asked_ms[owner] + core->spec.deadline_ms;
  tally_add(TALLY_DEADLINES_EARLY, early);
  if (early && world->jumps == truth->asked_jumps[owner]) {
    world_fail(truth->world, "deadline: campaign %u of %llu ms ends after %llu ms, without a clock jump", core->id,
               (unsigned long long)core->spec.deadline_ms,
               (unsigned long long)(world->now_ms - truth->asked_ms[owner]));
  }
}

void truth_ticked(struct truth *truth, const struct cv_broker *core) {
  const struct world *world = truth->world;
  for (const struct cv_broker_campaign *each = core->open; each != NULL && !world->rolled_back;
       each = each->next_open) {
    const struct campaign *campaign = truth_campaign(truth, each->id);
    uint64_t limit = each->spec.deadline_ms;
    if (limit == 0 || each->phase >= CV_PHASE_STOPPING || campaign->taken_ms == 0) {
      continue;
    }
    if (world->now_ms >= campaign->counting_ms + limit) {
      world_fail(truth->world, "deadline: campaign %u has %llu ms and runs on after %llu ms of one uptime", each->id,
                 (unsigned long long)limit, (unsigned long long)(world->now_ms - campaign->counting_ms));
    }
    bool no_jump = campaign->owner != 0 && world->jumps == truth->asked_jumps[campaign->owner];
    if (world->now_ms >= campaign->taken_ms + limit && no_jump) {
      world_fail(truth->world, "deadline: campaign %u has %llu ms and runs on after %llu ms", each->id,
                 (unsigned long long)limit, (unsigned long long)(world->now_ms - campaign->taken_ms));
    }
  }
}

static void forget_those_that_are_not_there(struct truth *truth, struct cv_broker *core) {
  for (uint32_t id = 1; id < truth->campaigns; id++) {
    if (cv_broker_campaign_find(core, id) == NULL && cv_archive_find(&core->archive, id) == NULL) {
      truth->campaign[id].taken_ms = truth->campaign[id].counting_ms = 0;
    }
  }
}

/* Their records equal what their requesters received; only those that a request needs are in memory. */
static void check_ended(struct truth *truth, const struct cv_broker *core) {
  uint32_t fetched = 0;
  for (const struct cv_ended *ended = core->archive.all; ended != NULL; ended = ended->hh.next) {
    const struct campaign *campaign = truth_campaign(truth, ended->id);
    const struct cv_progress *progress = &ended->progress;
    if (campaign->finished &&
        (progress->tokens != campaign->tokens || progress->end != campaign->end ||
         progress->paid_micro != campaign->paid_micro || progress->epsilon_spent_micro != campaign->spent_micro)) {
      world_fail(truth->world, "15: the record of campaign %u differs from what its requester received", ended->id);
    }
  }
  for (const struct cv_broker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    fetched += each->fetched;
  }
  if (fetched > truth->world->scenario.requesters) {
    world_fail(truth->world, "15: %u campaigns that have ended are in memory", fetched);
  }
}

static void check_all(struct truth *truth, struct cv_broker *core, bool again) {
  tally(TALLY_CHECKS);
  check_ended(truth, core);
  for (struct cv_broker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    struct campaign *campaign = truth_campaign(truth, each->id);
    if (again) {
      check_kept(truth, each, campaign);
    }
    take_time(truth, each, campaign, again);
    check_history(truth, each, campaign, again);
    check_ledger(truth, each);
    truth_check_payments(truth, each, campaign);
    if (each->arm != NULL) {
      truth_check_golds(truth, each, campaign, again);
      check_open(truth, each, campaign);
      check_room(truth, core, each);
    }
    if (each->has_seed) {
      truth_check_seed(truth, each->id, each->seed);
    } else if (again && truth->thirdparty_lost) { /* the seed was in flight to both disks, and reached neither */
      campaign->has_seed = false;
    }
  }
}

/* A rolled-back broker: its records must agree with each other. */
static void check_money(struct truth *truth, struct cv_broker *core) {
  for (const struct cv_broker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    truth_check_payments(truth, each, truth_campaign(truth, each->id));
  }
}

void truth_flushed(struct truth *truth, struct cv_broker *core) {
  check_bounds(truth, core);
  if (truth->world->rolled_back) {
    check_money(truth, core);
  } else {
    check_all(truth, core, false);
  }
}

static void all_is_stored(struct truth *truth) {
  for (size_t i = 0; i < truth->campaigns; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->plans_stored = campaign->plans;
    campaign->releases_stored = campaign->releases;
    for (size_t j = 0; j < SCENARIO_ARMS; j++) {
      campaign->arm[j].stored = campaign->arm[j].opened.len > 0;
    }
  }
}

/* "crowdveil-anchor 5 DATABASE COMMIT ...": the commit that a power failure would leave in it. */
uint64_t truth_anchor_of(const struct party *broker) {
  enum { COMMIT_AT = 52 };
  const struct disk_file *file = disk_find(broker->disk, broker_anchor(broker).path);
  return file == NULL || !file->exists_durably || file->durable_n <= COMMIT_AT
             ? 0
             : strtoull((const char *)file->durable + COMMIT_AT, NULL, 10);
}

uint64_t truth_anchored(const struct world *world) {
  return truth_anchor_of(world->server == NULL ? world->broker : world->active);
}

void truth_stored(struct truth *truth, uint64_t commit) {
  if (truth_anchored(truth->world) < commit) {
    world_fail(truth->world, "3: answers of commit %llu are sent, and its anchor has %llu", (unsigned long long)commit,
               (unsigned long long)truth_anchored(truth->world));
  }
  truth->commit = commit;
  if (!truth->world->rolled_back) { /* records that were never stored earlier are not stored now */
    all_is_stored(truth);
  }
}

static void check_forgotten_arms(struct truth *truth, const struct campaign *campaign,
                                 const struct cv_broker_campaign *core) {
  uint64_t releases[SCENARIO_ARMS] = {0};
  for (size_t i = 0; i < campaign->releases_stored; i++) {
    releases[campaign->release[i].arm]++;
  }
  for (uint32_t i = 0; i < core->ledger.arms; i++) {
    uint64_t cost = cv_privacy_spent_micro(&core->privacy, releases[i]);
    if (core->ledger.arm[i].spent_micro < cost) {
      world_fail(truth->world, "3: after the recovery arm %u of campaign %u has spent %llu; its releases cost %llu", i,
                 core->id, (unsigned long long)core->ledger.arm[i].spent_micro, (unsigned long long)cost);
    }
  }
}

/* No worker is charged more than it had left. */
static void check_left(struct truth *truth, struct cv_broker *core) {
  uint64_t limit = core->config.limits.worker_epsilon_micro;
  for (uint64_t worker = 1; worker < truth->workers; worker++) {
    uint64_t spent = cv_accounts_spent(&core->accounts, worker);
    if (spent > limit && spent < UINT64_MAX) {
      world_fail(truth->world, "3: after the recovery worker %llu has spent %llu micro-epsilon; its limit is %llu",
                 (unsigned long long)worker, (unsigned long long)spent, (unsigned long long)limit);
    }
  }
}

void truth_recovered(struct truth *truth, struct cv_broker *core) {
  truth_check_accounts(truth, core);
  check_left(truth, core);
  for (uint32_t id = 1; id < truth->campaigns; id++) {
    const struct campaign *campaign = &truth->campaign[id];
    const struct cv_broker_campaign *each = cv_broker_campaign_find(core, id);
    if (each != NULL) {
      check_forgotten_arms(truth, campaign, each);
    } else if ((campaign->plans_stored > 0 || campaign->releases_stored > 0) && core->totals.campaigns < id) {
      world_fail(truth->world, "3: after the recovery campaign number %u can be used again", id);
    }
  }
}

void truth_restarted(struct truth *truth, struct cv_broker *core) {
  if (truth->world->recovered) {
    truth_recovered(truth, core);
  }
  if (truth->world->rolled_back) {
    check_money(truth, core);
    return;
  }
  forget_those_that_are_not_there(truth, core);
  check_all(truth, core, true);
  all_is_stored(truth);
  truth_check_accounts(truth, core);
  truth_check_sum_of_accounts(truth, core);
  check_acknowledged(truth, core);
}

/* ---- going back ---- */

void truth_snapshot(struct truth *truth) {
  truth->snapshot_commit = truth->commit;
  for (size_t i = 0; i < truth->campaigns; i++) {
    truth->campaign[i].snapshot_releases = truth->campaign[i].releases_stored;
    truth->campaign[i].snapshot_plans = truth->campaign[i].plans_stored;
    truth->campaign[i].snapshot_owed_micro = truth->campaign[i].owed_micro;
  }
}

bool truth_has_moved(const struct truth *truth) {
  return truth->commit > truth->snapshot_commit + 1;
}

bool truth_snapshot_is_empty(const struct truth *truth) {
  return truth->snapshot_commit == 0;
}

bool truth_is_behind(const struct truth *truth) {
  return truth_has_moved(truth);
}

/* The durable state at the snapshot may be one commit ahead of what was known then: one plan, or a few releases. A
 * broker may spend again what it acknowledged and has forgotten without detecting it, but no more. */
void truth_rolled_back(struct truth *truth) {
  for (size_t i = 0; i < truth->campaigns; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->must_freeze = campaign->thirdparty_releases > campaign->snapshot_releases + SCENARIO_ARMS ||
                            campaign->thirdparty_plans > campaign->snapshot_plans + 1;
    campaign->finished = false;
    campaign->is_void = truth->world->recovered && campaign->plans_stored > 0;
    campaign->owed_micro = truth->world->recovered ? campaign->owed_micro : campaign->snapshot_owed_micro;
  }
  truth->campaigns = truth->world->recovered ? truth->world->room : truth->campaigns;
}
