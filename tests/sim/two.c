/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/two.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/campaign.h"
#include "cobroker/session.h"
#include "cobroker/state.h"
#include "common/base/array.h"
#include "common/prio/field.h"
#include "tests/sim/seen.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "tests/sim/two_state.h"

struct two *two_new(struct world *world) {
  if (!world->scenario.two) {
    return NULL;
  }
  struct two *two = calloc(1, sizeof(*two));
  CV_REQUIRE(two != NULL);
  two->world = world;
  two->campaigns = world->room;
  two->campaign = calloc(two->campaigns, sizeof(*two->campaign));
  CV_REQUIRE(two->campaign != NULL);
  for (uint32_t i = 0; i < two->campaigns; i++) {
    size_t places = world->scenario.arms * world->scenario.tokens;
    two->campaign[i].here = calloc(places, sizeof(*two->campaign[i].here));
    two->campaign[i].told = calloc(places, sizeof(*two->campaign[i].told));
    CV_REQUIRE(two->campaign[i].here != NULL && two->campaign[i].told != NULL);
  }
  two->told_of = calloc((uint64_t)(world->scenario.pools + world->scenario.liars) * world->scenario.pool_workers + 1,
                        sizeof(*two->told_of));
  CV_REQUIRE(two->told_of != NULL);
  tally(TALLY_TWO);
  two_listen(two);
  return two;
}

void two_free(struct two *two) {
  if (two == NULL) {
    return;
  }
  two_listen(NULL);
  CV_TABLE_DRAIN(two->shares, free);
  for (uint32_t i = 0; i < two->campaigns; i++) {
    struct two_campaign *campaign = &two->campaign[i];
    for (uint32_t j = 0; j < SCENARIO_ARMS; j++) {
      cv_buf_fini(&campaign->arm[j].opened);
    }
    free(campaign->here);
    free(campaign->told);
    for (size_t j = 0; j < campaign->batch_count; j++) {
      free(campaign->batch[j].token);
      free(campaign->batch[j].answer);
    }
    free(campaign->batch);
    free(campaign->closing);
  }
  seen_fini(&two->sealed);
  seen_fini(&two->slots);
  free(two->told_of);
  free(two->campaign);
  free(two);
}

struct two_campaign *two_campaign(struct two *two, uint64_t id) {
  if (id == 0 || id >= two->campaigns) {
    world_fail(two->world, "S2: campaign %llu of the co-broker: the last is %u", (unsigned long long)id,
               two->campaigns - 1);
    id = 1;
  }
  return &two->campaign[id];
}

static struct share **at(const struct two *two, struct share **places, uint32_t arm, uint64_t place) {
  CV_REQUIRE(arm < two->world->scenario.arms && place < two->world->scenario.tokens);
  return &places[arm * two->world->scenario.tokens + place];
}

static uint64_t scaled(const struct two *two, uint64_t output) {
  return cv_field_mul(output, cv_split_scale(two->world->scenario.score_bits));
}

/* ---- the co-broker's verdicts ---- */

static bool is_same_token(const struct share *share, uint64_t campaign, const struct cv_split_token *token) {
  return share->campaign == campaign && share->token.plan == token->plan && share->token.arm == token->arm &&
         share->token.place == token->place && share->token.worker == token->worker && share->token.slot == token->slot;
}

/* No other token that counts has its worker's slot. */
static void check_slot(struct two *two, const struct two_campaign *campaign, const struct share *share) {
  size_t places = two->world->scenario.arms * two->world->scenario.tokens;
  for (size_t i = 0; i < places; i++) {
    const struct share *other = campaign->here[i];
    if (other != NULL && other != share && other->token.worker == share->token.worker &&
        other->token.slot == share->token.slot) {
      world_fail(two->world, "S2: the co-broker counts slot %u of worker %llu twice", share->token.slot,
                 (unsigned long long)share->token.worker);
    }
  }
}

static void count_token(struct two *two, uint64_t id, const struct cv_split_token *token) {
  struct world *world = two->world;
  struct two_campaign *campaign = two_campaign(two, id);
  struct share *share = two_find(two, token->nonce);
  if (share == NULL) {
    world_fail(world, "S2: the co-broker counts a token of worker %llu that nobody has split",
               (unsigned long long)token->worker);
    return;
  }
  if (!is_same_token(share, id, token)) {
    world_fail(world,
               "S2: the co-broker counts a token in plan %llu, arm %u, place %llu for worker %llu, slot %u; it was "
               "sealed for plan %llu, arm %u, place %llu, worker %llu, slot %u",
               (unsigned long long)token->plan, token->arm, (unsigned long long)token->place,
               (unsigned long long)token->worker, token->slot, (unsigned long long)share->token.plan, share->token.arm,
               (unsigned long long)share->token.place, (unsigned long long)share->token.worker, share->token.slot);
    return;
  }
  if (share->has_leader && cv_field_add(share->leader, share->helper) != share->measurement) {
    world_fail(world, "S2: the co-broker counts a token of worker %llu whose shares are no score",
               (unsigned long long)token->worker);
  }
  struct share **place = at(two, campaign->here, token->arm, token->place);
  if (*place != NULL && *place != share) {
    world_fail(world, "S2: the co-broker counts two tokens in arm %u, place %llu", token->arm,
               (unsigned long long)token->place);
  }
  *place = share;
  check_slot(two, campaign, share);
}

/* Keeps what was answered. Answers that were told are the same for ever. */
static void keep_batch(struct two *two, const struct cv_share_batch *batch, const struct cv_share_answers *answers) {
  struct two_campaign *campaign = two_campaign(two, batch->campaign);
  while (campaign->batch_count < batch->number) {
    struct two_batch *next = CV_ARRAY_PUSH(campaign->batch, campaign->batch_count, campaign->batch_cap);
    CV_REQUIRE(next != NULL);
    *next = (struct two_batch){.token = NULL};
  }
  struct two_batch *kept = &campaign->batch[batch->number - 1];
  if (kept->told) {
    if (kept->tokens != answers->answers || memcmp(kept->answer, answers->answer, kept->tokens) != 0) {
      world_fail(two->world, "S3: batch %llu gets other answers than were told", (unsigned long long)batch->number);
    }
    return;
  }
  free(kept->token);
  free(kept->answer);
  *kept = (struct two_batch){.token = calloc(batch->tokens, sizeof(*kept->token)),
                             .answer = calloc(batch->tokens, 1),
                             .tokens = batch->tokens};
  CV_REQUIRE(kept->token != NULL && kept->answer != NULL);
  memcpy(kept->answer, answers->answer, batch->tokens);
  for (size_t i = 0; i < batch->tokens; i++) {
    kept->token[i] = two_find(two, batch->token[i].token.nonce);
  }
}

static void judge_batch(struct two *two, const struct cv_share_batch *batch, const struct cv_share_answers *answers) {
  if (answers->answers != batch->tokens) {
    world_fail(two->world, "S3: batch %llu has %zu tokens and %zu answers", (unsigned long long)batch->number,
               batch->tokens, answers->answers);
    return;
  }
  for (size_t i = 0; i < batch->tokens; i++) {
    tally((enum tally)(TALLY_ANSWER_ACCEPTED + (answers->answer[i] - CV_ANSWER_ACCEPTED)));
    if (answers->answer[i] == CV_ANSWER_ACCEPTED) {
      count_token(two, batch->campaign, &batch->token[i].token);
    }
  }
  keep_batch(two, batch, answers);
}

/* The next closings that the broker asks for: which arm a number is of. */
static void note_closes(struct two *two, const struct cv_share_frame *frame) {
  for (size_t i = 0; i < frame->closes; i++) {
    struct two_campaign *campaign = two_campaign(two, frame->close[i].campaign);
    if (frame->close[i].number == campaign->closings + 1 + campaign->asked && campaign->asked < SCENARIO_ARMS) {
      campaign->ask[campaign->asked++] = frame->close[i];
    }
  }
}

void two_judged(struct two *two, const struct cv_share_frame *frame, const struct cv_share_frame *answers,
                size_t from) {
  if (two->rolled_back) {
    return;
  }
  note_closes(two, frame);
  for (size_t i = from; i < answers->answers; i++) {
    for (size_t j = 0; j < frame->batches; j++) {
      const struct cv_share_batch *batch = &frame->batch[j];
      if (batch->campaign == answers->answer[i].campaign && batch->number == answers->answer[i].number) {
        judge_batch(two, batch, &answers->answer[i]);
        break;
      }
    }
  }
}

/* ---- what is stored at the co-broker ---- */

static void check_noise(struct two *two, uint32_t index, const struct cv_cobroker_arm *core, struct two_arm *arm) {
  struct cv_buf now = {0};
  cv_mechanism_save(core->mechanism, &now);
  if (core->mechanism->releases == arm->releases && arm->opened.len > 0 &&
      (now.len != arm->opened.len || memcmp(now.data, arm->opened.data, now.len) != 0)) {
    world_fail(two->world, "S4: the co-broker's noise of arm %u's release %llu was drawn twice", index,
               (unsigned long long)arm->releases + 1);
  }
  arm->stored = arm->stored && arm->opened.len > 0 && core->mechanism->releases == arm->releases;
  cv_buf_fini(&arm->opened);
  arm->opened = now;
  arm->releases = core->mechanism->releases;
}

/* The open epoch has as many tokens, and the sum, of its places. */
static void check_epoch(struct two *two, const struct cv_cobroker_campaign *core, const struct two_campaign *campaign,
                        uint32_t index) {
  const struct cv_cobroker_arm *arm = &core->arm[index];
  uint64_t sum = 0;
  uint32_t filled = 0;
  for (uint64_t i = 0; i < arm->want; i++) {
    const struct share *share = *at(two, campaign->here, index, arm->first + i);
    filled += share != NULL;
    sum = share == NULL ? sum : cv_field_add(sum, scaled(two, share->helper));
    if ((share != NULL) != cv_chunks_bit((struct cv_chunks *)(uintptr_t)&core->places, arm->round + i)) {
      world_fail(two->world, "S2: place %llu of arm %u is %s at the co-broker", (unsigned long long)(arm->first + i),
                 index, share != NULL ? "counted and not taken" : "taken and not counted");
    }
  }
  if (filled != arm->filled || sum != arm->sum) {
    world_fail(two->world, "S2: arm %u of the co-broker counts %u tokens; its places have %u%s", index, arm->filled,
               filled, sum != arm->sum ? ", and another sum" : "");
  }
  two_spy_sum(two, arm->sum);
}

/* S1 and S4: the half is made of the tokens that were told, of the stored noise, and of nothing else. */
static void check_closing(struct two *two, const struct cv_cobroker_campaign *core, struct two_campaign *campaign,
                          const struct cv_share_close *close, uint64_t half) {
  struct world *world = two->world;
  struct two_arm *arm = &campaign->arm[close->arm];
  struct cv_reader in = cv_reader_over(arm->opened.data, arm->opened.len), again = in;
  struct cv_mechanism *mechanism = NULL, *empty = NULL;
  struct two_closing *made = CV_ARRAY_PUSH(campaign->closing, campaign->closings, campaign->closings_cap);
  CV_REQUIRE(made != NULL);
  *made = (struct two_closing){.arm = close->arm, .half = half};
  tally(TALLY_HALVES);
  if (close->discard) {
    tally(TALLY_DISCARDS);
    if (half != 0) {
      world_fail(world, "S5: the co-broker has made a half of sums that are discarded");
    }
    return;
  }
  if (!arm->stored || cv_mechanism_load(&core->privacy.law, &in, &mechanism) != CV_OK || !mechanism->drawn ||
      cv_mechanism_load(&core->privacy.law, &again, &empty) != CV_OK) {
    cv_mechanism_free(mechanism);
    world_fail(world, "S4: closing %llu of arm %u: its noise was not stored before its tokens came",
               (unsigned long long)close->number, close->arm);
    return;
  }
  uint64_t sum = 0;
  for (uint64_t i = 0; i < arm->want; i++) {
    const struct share *share = *at(two, campaign->here, close->arm, arm->first + i);
    if (share == NULL || share != *at(two, campaign->told, close->arm, arm->first + i)) {
      world_fail(world, "S1: closing %llu of arm %u: place %llu has no token that the broker knows of",
                 (unsigned long long)close->number, close->arm, (unsigned long long)(arm->first + i));
    }
    sum = share == NULL ? sum : cv_field_add(sum, scaled(two, share->helper));
  }
  made->zero = cv_mechanism_release_share(empty, 0);
  if (cv_mechanism_release_share(mechanism, sum) != half) {
    world_fail(world, "S1: half %llu, of arm %u, is not that of its tokens and its noise",
               (unsigned long long)close->number, close->arm);
  }
  uint64_t spent = cv_privacy_spent_micro(&core->privacy, mechanism->releases);
  if (core->ledger.arm[close->arm].spent_micro < spent) {
    world_fail(world, "S4: half %llu was charged %llu micro-epsilon; it costs %llu", (unsigned long long)close->number,
               (unsigned long long)core->ledger.arm[close->arm].spent_micro, (unsigned long long)spent);
  }
  cv_mechanism_free(mechanism);
  cv_mechanism_free(empty);
}

static void check_closings(struct two *two, const struct cv_cobroker_campaign *core, struct two_campaign *campaign) {
  for (size_t i = 0; i < campaign->closings && i < core->closings; i++) {
    if (core->closing[i].half != campaign->closing[i].half) {
      world_fail(two->world, "S4: half %zu of campaign %u was made twice", i + 1, core->id);
    }
  }
  for (uint32_t i = 0; campaign->closings < core->closings; i++) {
    if (i == campaign->asked) {
      world_fail(two->world, "S5: the co-broker has made half %zu of campaign %u, which was not asked for",
                 campaign->closings + 1, core->id);
      break;
    }
    check_closing(two, core, campaign, &campaign->ask[i], core->closing[campaign->closings].half);
  }
  campaign->asked = 0;
}

/* Each told token has cost its worker; `ended`: of campaigns that are not open any more, too. */
static void check_accounts(struct two *two, struct cv_cobroker *core) {
  const struct scenario *scenario = &two->world->scenario;
  uint64_t cost = scenario_cost(scenario), limit = core->config.limits.worker_epsilon_micro;
  uint64_t workers = (uint64_t)(scenario->pools + scenario->liars) * scenario->pool_workers;
  for (uint64_t worker = 1; worker <= workers; worker++) {
    uint64_t spent = cv_accounts_spent(&core->accounts, worker), least = two->told_of[worker] * cost;
    if (spent < least || (spent > limit && spent < UINT64_MAX)) {
      world_fail(two->world, "S4: worker %llu has spent %llu micro-epsilon at the co-broker; what was told cost %llu",
                 (unsigned long long)worker, (unsigned long long)spent, (unsigned long long)least);
    }
  }
}

static void check_bounds(struct two *two, const struct cv_cobroker *core) {
  if (HASH_COUNT(core->sessions) > core->config.sessions || HASH_COUNT(core->campaigns) > two->campaigns) {
    world_fail(two->world, "6: the co-broker has %u sessions of at most %u", HASH_COUNT(core->sessions),
               core->config.sessions);
  }
}

static void check_campaign(struct two *two, const struct cv_cobroker_campaign *core) {
  struct two_campaign *campaign = two_campaign(two, core->id);
  check_closings(two, core, campaign);
  for (uint32_t i = 0; i < core->spec.arms; i++) {
    const struct cv_cobroker_arm *arm = &core->arm[i];
    if (arm->plan == 0) {
      continue;
    }
    check_noise(two, i, arm, &campaign->arm[i]);
    campaign->arm[i].first = arm->first;
    campaign->arm[i].want = arm->want;
    check_epoch(two, core, campaign, i);
  }
  campaign->batches = core->batches;
}

void two_flushed(struct two *two, struct cv_cobroker *core) {
  check_bounds(two, core);
  tally(TALLY_CHECKS_TWO);
  for (const struct cv_cobroker_campaign *each = core->campaigns; each != NULL && !two->rolled_back;
       each = each->hh.next) {
    check_campaign(two, each);
  }
  for (uint32_t id = 1; id < two->campaigns; id++) { /* those that have ended in this batch */
    if (cv_cobroker_campaign_find(core, id) == NULL) {
      struct two_campaign *campaign = &two->campaign[id];
      campaign->batches = campaign->batch_count;
      campaign->asked = 0;
    }
  }
}

/* As for the broker's anchor. */
uint64_t two_anchored(const struct world *world) {
  enum { COMMIT_AT = 52 };
  const struct disk_file *file = disk_find(&world->disk_cobroker, "C/anchor");
  return file == NULL || !file->exists_durably || file->durable_n <= COMMIT_AT
             ? 0
             : strtoull((const char *)file->durable + COMMIT_AT, NULL, 10);
}

static void all_is_stored(struct two *two) {
  for (uint32_t i = 0; i < two->campaigns; i++) {
    struct two_campaign *campaign = &two->campaign[i];
    campaign->closings_stored = campaign->closings;
    campaign->batches_stored = campaign->batches;
    for (uint32_t j = 0; j < SCENARIO_ARMS; j++) {
      campaign->arm[j].stored = campaign->arm[j].opened.len > 0;
    }
  }
}

void two_stored(struct two *two, uint64_t commit) {
  if (two_anchored(two->world) < commit) {
    world_fail(two->world, "S5: answers of the co-broker's commit %llu are sent, and its anchor has %llu",
               (unsigned long long)commit, (unsigned long long)two_anchored(two->world));
  }
  two->commit = commit;
  if (!two->rolled_back) {
    all_is_stored(two);
  }
}

uint64_t two_commit(const struct two *two) {
  return two->commit;
}

/* What was not told may be lost with the commit in flight; what was told may not. */
static void forget_lost(struct two *two, const struct cv_cobroker_campaign *core, struct two_campaign *campaign) {
  for (uint32_t i = 0; i < core->spec.arms; i++) {
    const struct cv_cobroker_arm *arm = &core->arm[i];
    for (uint64_t j = 0; j < two->world->scenario.tokens; j++) {
      struct share **here = at(two, campaign->here, i, j);
      bool is_open = arm->plan != 0 && j >= arm->first && j - arm->first < arm->want;
      bool is_there = is_open
                          ? cv_chunks_bit((struct cv_chunks *)(uintptr_t)&core->places, arm->round + (j - arm->first))
                          : j < arm->first;
      if (*here != NULL && !is_there) {
        if (*at(two, campaign->told, i, j) != NULL) {
          world_fail(two->world, "S2: the co-broker has told that arm %u, place %llu counts, and has lost it", i,
                     (unsigned long long)j);
        }
        *here = NULL;
      }
    }
  }
}

static void check_kept(struct two *two, const struct cv_cobroker_campaign *core, struct two_campaign *campaign) {
  if (core->closings < campaign->closings_stored || core->batches < campaign->batches_stored) {
    world_fail(two->world, "S4: campaign %u has %zu halves and %llu batches at the co-broker; it had %zu and %llu",
               core->id, core->closings, (unsigned long long)core->batches, campaign->closings_stored,
               (unsigned long long)campaign->batches_stored);
    return;
  }
  campaign->closings = campaign->closings < core->closings ? campaign->closings : core->closings;
  campaign->asked = 0;
  for (uint32_t i = 0; i < SCENARIO_ARMS; i++) {
    if (!campaign->arm[i].stored) {
      cv_buf_clear(&campaign->arm[i].opened);
    }
  }
  forget_lost(two, core, campaign);
}

void two_restarted(struct two *two, struct cv_cobroker *core) {
  if (two->recovered) {
    check_accounts(two, core);
  }
  if (two->rolled_back) {
    return;
  }
  for (const struct cv_cobroker_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    check_kept(two, each, two_campaign(two, each->id));
    check_campaign(two, each);
  }
  all_is_stored(two);
  check_accounts(two, core);
}

void two_rolled_back(struct two *two) {
  two->rolled_back = true;
}

void two_recovered(struct two *two) {
  two->rolled_back = two->recovered = true;
}

/* ---- what the broker counts ---- */

bool two_is_doubtful(const struct world *world) {
  return world->lied || world->forgot;
}

uint64_t two_share(struct two *two, uint64_t campaign, uint32_t arm, uint64_t place) {
  const struct share *share = *at(two, two_campaign(two, campaign)->told, arm, place);
  if (share == NULL || !share->has_leader) {
    world_fail(two->world, "S2: the broker counts arm %u, place %llu; the co-broker has not told that it counts", arm,
               (unsigned long long)place);
    return 0;
  }
  return scaled(two, share->leader);
}

uint64_t two_sum(struct two *two, uint64_t campaign, uint32_t arm, uint64_t first, uint64_t tokens) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < tokens; i++) {
    const struct share *share = *at(two, two_campaign(two, campaign)->told, arm, first + i);
    sum = share == NULL ? sum : cv_field_add(sum, scaled(two, share->measurement));
  }
  return sum;
}

bool two_half(const struct two *two, uint64_t campaign, uint64_t release, uint64_t *ret) {
  const struct two_campaign *its = &two->campaign[campaign];
  if (release == 0 || release > its->closings) {
    return false;
  }
  *ret = its->closing[release - 1].zero;
  return true;
}
