/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/state.h"
#include "tests/sim/oracle.h"
#include "tests/sim/seen.h"
#include "tests/support/mechanism.h"

enum { CAMPAIGNS = SCENARIO_CAMPAIGNS + 1, PLANS = 4096, RELEASES = 16384 };

/* An arm's mechanism as it was stored with its open epoch, or the last one. */
struct arm {
  struct cv_buf opened;
  bool stored;       /* for certain */
  uint64_t releases; /* before that epoch */
};

struct campaign {
  struct cv_plan *plan;
  size_t plans, plans_stored; /* the rest was not stored, as far as is known */
  struct cv_release *release;
  size_t releases, releases_stored;
  struct arm arm[SCENARIO_ARMS];
  bool has_seed;
  uint64_t seed;
  enum cv_end end; /* as told to the requester */
  bool finished;
  struct cv_standing standing[SCENARIO_ARMS];
  uint32_t standings;
  uint64_t ranker_releases, ranker_plans; /* stored at the third-party */
  size_t snapshot_releases, snapshot_plans;
  bool must_freeze;
};

struct truth {
  struct world *world;
  struct campaign campaign[CAMPAIGNS]; /* by id */
  struct seen places, payers;          /* acknowledged */
  struct ticket_list {
    struct cv_ticket *ticket;
    size_t n, cap;
  } acknowledged;
  uint32_t *tokens_of; /* acknowledged, per worker */
  uint64_t workers;
  uint64_t commit, snapshot_commit;
  bool thirdparty_lost;
};

struct truth *truth_new(struct world *world) {
  struct truth *truth = calloc(1, sizeof(*truth));
  CV_REQUIRE(truth != NULL);
  truth->world = world;
  truth->workers = (uint64_t)(world->scenario.crews + world->scenario.liars) * CREW_WORKERS + 1;
  truth->tokens_of = calloc(truth->workers, sizeof(*truth->tokens_of));
  CV_REQUIRE(truth->tokens_of != NULL);
  return truth;
}

void truth_free(struct truth *truth) {
  if (truth == NULL) {
    return;
  }
  for (size_t i = 0; i < CAMPAIGNS; i++) {
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
  seen_fini(&truth->places);
  seen_fini(&truth->payers);
  free(truth->acknowledged.ticket);
  free(truth->tokens_of);
  free(truth);
}

static struct campaign *campaign_of(struct truth *truth, uint64_t id) {
  if (id == 0 || id >= CAMPAIGNS) {
    world_fail(truth->world, "campaign %llu: there are %u", (unsigned long long)id, truth->world->scenario.campaigns);
    id = 1;
  }
  return &truth->campaign[id];
}

/* ---- what is said to workers ---- */

static void acknowledge(struct truth *truth, const struct cv_ticket *ticket, bool accepted) {
  struct world *world = truth->world;
  uint64_t place =
      (uint64_t)ticket->campaign << 56 | (uint64_t)ticket->plan << 36 | (uint64_t)ticket->arm << 24 | ticket->position;
  uint64_t payer = (uint64_t)ticket->campaign << 56 | ticket->worker << 16 | ticket->slot;
  if (!accepted) {
    return;
  }
  world_log(world, "broker: acknowledges plan %u, arm %u, position %u to worker %llu", ticket->plan, ticket->arm,
            ticket->position, (unsigned long long)ticket->worker);
  if (!seen_add(&truth->places, place)) {
    world_fail(world, "1: two tokens were acknowledged for plan %u, arm %u, position %u", ticket->plan, ticket->arm,
               ticket->position);
  }
  if (!seen_add(&truth->payers, payer)) {
    world_fail(world, "1: slot %u of worker %llu was acknowledged twice", ticket->slot,
               (unsigned long long)ticket->worker);
  }
  struct ticket_list *list = &truth->acknowledged;
  if (list->n == list->cap) {
    list->cap = list->cap == 0 ? 256 : list->cap * 2;
    list->ticket = realloc(list->ticket, list->cap * sizeof(*list->ticket));
    CV_REQUIRE(list->ticket != NULL);
  }
  list->ticket[list->n++] = *ticket;
  truth->tokens_of[ticket->worker]++;
}

void truth_told_crowd(struct truth *truth, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->acks && !truth->world->rolled_back; i++) {
    struct cv_ticket ticket;
    const struct cv_crowd_ack *ack = &frame->ack[i];
    if (ack->verdict != CV_VERDICT_ACCEPTED && ack->verdict != CV_VERDICT_DUPLICATE) {
      continue;
    }
    if (cv_ticket_open(ack->ticket, world_tagger(truth->world), &ticket) != CV_OK) {
      world_fail(truth->world, "1: a forged ticket was acknowledged");
      return;
    }
    acknowledge(truth, &ticket, ack->verdict == CV_VERDICT_ACCEPTED);
  }
}

/* ---- what is said between broker and third-party ---- */

static bool same_release(const struct cv_release *a, const struct cv_release *b) {
  struct cv_digest x = {{0}}, y = {{0}};
  cv_chain_release(&x, a, cv_sha256);
  cv_chain_release(&y, b, cv_sha256);
  return memcmp(&x, &y, sizeof(x)) == 0;
}

static bool same_plan(const struct cv_plan *a, const struct cv_plan *b) {
  return a->number == b->number && a->wants == b->wants && memcmp(a->want, b->want, a->wants * sizeof(*a->want)) == 0;
}

static void check_seed(struct truth *truth, uint64_t id, uint64_t seed) {
  struct campaign *campaign = campaign_of(truth, id);
  if (campaign->has_seed && campaign->seed != seed) {
    world_fail(truth->world, "campaign %llu has had two seeds", (unsigned long long)id);
  }
  campaign->has_seed = true;
  campaign->seed = seed;
}

void truth_told_rank(struct truth *truth, const struct cv_rank_frame *frame) {
  struct world *world = truth->world;
  if (world->rolled_back) {
    return;
  }
  for (size_t i = 0; i < frame->releases; i++) {
    const struct campaign *campaign = campaign_of(truth, frame->release[i].campaign);
    const struct cv_release *release = &frame->release[i].release;
    world_log(world, "broker: sends release %llu, arm %u, sum %lld", (unsigned long long)release->number, release->arm,
              (long long)release->noisy_sum);
    if (release->number == 0 || release->number > campaign->releases_stored) {
      world_fail(world, "3: release %llu leaves before it is stored", (unsigned long long)release->number);
    } else if (!same_release(release, &campaign->release[release->number - 1])) {
      world_fail(world, "2: release %llu leaves in another shape than it was stored",
                 (unsigned long long)release->number);
    }
  }
  for (size_t i = 0; i < frame->recorded; i++) {
    const struct campaign *campaign = campaign_of(truth, frame->record[i].campaign);
    uint64_t number = frame->record[i].plan.number;
    if (number == 0 || number > campaign->plans_stored ||
        !same_plan(&frame->record[i].plan, &campaign->plan[number - 1])) {
      world_fail(world, "2: plan %llu is recorded in another shape than it was stored", (unsigned long long)number);
    }
  }
  for (size_t i = 0; i < frame->accepted; i++) {
    if (frame->accept[i].number > campaign_of(truth, frame->accept[i].campaign)->plans_stored) {
      world_fail(world, "plan %llu is accepted before it is stored", (unsigned long long)frame->accept[i].number);
    }
  }
  for (size_t i = 0; i < frame->opens; i++) {
    if (frame->open[i].has_seed) {
      check_seed(truth, frame->open[i].position.campaign, frame->open[i].seed);
    }
  }
}

void truth_ranker_told(struct truth *truth, const struct cv_rank_frame *frame) {
  if (truth->world->rolled_back) {
    return;
  }
  for (size_t i = 0; i < frame->opened; i++) {
    const struct cv_rank_opened *opened = &frame->answer[i];
    const struct campaign *campaign = campaign_of(truth, opened->position.campaign);
    if (opened->refused != NULL) {
      world_fail(truth->world, "the third-party refuses campaign %llu: %s",
                 (unsigned long long)opened->position.campaign, opened->refused);
    } else if (opened->position.releases > campaign->ranker_releases ||
               opened->position.plans > campaign->ranker_plans) {
      world_fail(truth->world, "the third-party names release %llu, plan %llu before they are stored",
                 (unsigned long long)opened->position.releases, (unsigned long long)opened->position.plans);
    }
  }
  for (size_t i = 0; i < frame->acks; i++) {
    if (frame->ack[i].number > campaign_of(truth, frame->ack[i].campaign)->ranker_releases) {
      world_fail(truth->world, "the third-party acknowledges release %llu before it is stored",
                 (unsigned long long)frame->ack[i].number);
    }
  }
}

void truth_ranker_stored(struct truth *truth, uint64_t id, uint64_t releases, uint64_t plans) {
  struct campaign *campaign = campaign_of(truth, id);
  campaign->ranker_releases = releases;
  campaign->ranker_plans = plans;
}

void truth_thirdparty_lost(struct truth *truth) {
  truth->thirdparty_lost = true;
  for (size_t i = 0; i < CAMPAIGNS; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->ranker_releases = campaign->ranker_plans = 0;
    /* A seed that the broker has not stored yet may be drawn again. */
    campaign->has_seed = campaign->has_seed && campaign->plans_stored > 0;
  }
}

/* ---- what is stored at the broker ---- */

static void add_plan(struct campaign *campaign, const struct cv_plan *plan) {
  if (campaign->plan == NULL) {
    campaign->plan = calloc(PLANS, sizeof(*campaign->plan));
  }
  CV_REQUIRE(campaign->plan != NULL && campaign->plans < PLANS);
  struct cv_want *want = calloc(plan->wants, sizeof(*want));
  CV_REQUIRE(want != NULL);
  memcpy(want, plan->want, plan->wants * sizeof(*want));
  campaign->plan[campaign->plans++] = (struct cv_plan){.number = plan->number, .wants = plan->wants, .want = want};
}

static uint32_t wanted(const struct campaign *campaign, uint64_t plan, uint32_t arm) {
  for (uint32_t i = 0; plan >= 1 && plan <= campaign->plans && i < campaign->plan[plan - 1].wants; i++) {
    if (campaign->plan[plan - 1].want[i].arm == arm) {
      return campaign->plan[plan - 1].want[i].tokens;
    }
  }
  return 0;
}

static int64_t sum_of(const struct truth *truth, uint32_t arm, uint64_t from, uint64_t to) {
  int64_t sum = 0;
  for (uint64_t place = from; place < to; place++) {
    sum += world_value(&truth->world->scenario, arm, place);
  }
  return sum;
}

/* Of the arm's releases so far: tokens of the last one, and of all their epochs. */
static void tokens_before(const struct campaign *campaign, uint32_t arm, uint64_t *ret_last, uint64_t *ret_all) {
  *ret_last = *ret_all = 0;
  for (size_t i = 0; i < campaign->releases; i++) {
    if (campaign->release[i].arm == arm) {
      *ret_last = campaign->release[i].tokens;
      *ret_all += wanted(campaign, campaign->release[i].plan, arm);
    }
  }
}

/* The noise that was stored with the epoch, and the scores of its places, must give the release. */
static void check_release(struct truth *truth, const struct cv_campaign *core, struct campaign *campaign,
                          const struct cv_release *release, uint64_t spent_micro) {
  struct world *world = truth->world;
  const struct arm *arm = &campaign->arm[release->arm];
  struct cv_reader in = cv_reader_over(arm->opened.data, arm->opened.len);
  struct cv_mechanism *mechanism = NULL;
  uint32_t tokens = wanted(campaign, release->plan, release->arm);
  uint64_t last, first;
  tokens_before(campaign, release->arm, &last, &first);
  if (!arm->stored || cv_mechanism_load(&core->privacy.law, &in, &mechanism) != CV_OK || !mechanism->drawn) {
    cv_mechanism_free(mechanism);
    world_fail(world, "2: release %llu of arm %u: its noise was not stored before its tokens came",
               (unsigned long long)release->number, release->arm);
    return;
  }
  int64_t sum = cv_mechanism_release(mechanism, sum_of(truth, release->arm, first, first + tokens));
  uint64_t summed = mechanism_tokens(&core->privacy.law, mechanism->releases, last, tokens, first + tokens);
  uint64_t spent = cv_privacy_spent_micro(&core->privacy, mechanism->releases);
  cv_mechanism_free(mechanism);
  if (tokens == 0 || release->tokens != summed) {
    world_fail(world, "1: release %llu of arm %u has %llu tokens; expected %llu", (unsigned long long)release->number,
               release->arm, (unsigned long long)release->tokens, (unsigned long long)summed);
  }
  if (sum != release->noisy_sum) {
    world_fail(world, "1: release %llu of arm %u is %lld; its tokens and its noise give %lld",
               (unsigned long long)release->number, release->arm, (long long)release->noisy_sum, (long long)sum);
  }
  if (spent_micro < spent) {
    world_fail(world, "3: release %llu was charged %llu micro-epsilon; it costs %llu",
               (unsigned long long)release->number, (unsigned long long)spent_micro, (unsigned long long)spent);
  }
}

static void add_release(struct campaign *campaign, const struct cv_release *release) {
  if (campaign->release == NULL) {
    campaign->release = calloc(RELEASES, sizeof(*campaign->release));
  }
  CV_REQUIRE(campaign->release != NULL && campaign->releases < RELEASES);
  campaign->release[campaign->releases++] = *release;
}

/* What is new; `again`: what was there before, too. */
static void check_history(struct truth *truth, const struct cv_campaign *core, struct campaign *campaign, bool again) {
  struct world *world = truth->world;
  for (size_t i = again ? 0 : campaign->plans; i < core->plans; i++) {
    if (i == campaign->plans) {
      add_plan(campaign, &core->plan[i]);
    } else if (!same_plan(&core->plan[i], &campaign->plan[i])) {
      world_fail(world, "2: plan %zu of campaign %u is another one than before", i + 1, core->id);
    }
  }
  for (size_t i = again ? 0 : campaign->releases; i < core->releases; i++) {
    struct cv_release release;
    cv_campaign_release(core, i, &release);
    if (i == campaign->releases) {
      check_release(truth, core, campaign, &release, core->ledger.arm[release.arm].spent_micro);
      add_release(campaign, &release);
    } else if (!same_release(&release, &campaign->release[i])) {
      world_fail(world, "2: release %zu of campaign %u is another one than before", i + 1, core->id);
    }
  }
}

/* What was on its way to the disk may be lost, what was stored may not. */
static void check_kept(struct truth *truth, const struct cv_campaign *core, struct campaign *campaign) {
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

/* The open epoch: as many tokens and the sum as its filled places say. */
static void check_epoch(struct truth *truth, struct cv_campaign *core, uint32_t index) {
  const struct cv_arm *arm = &core->arm[index];
  int64_t sum = 0;
  uint32_t filled = 0;
  for (uint32_t i = 0; i < arm->want; i++) {
    if (cv_chunks_bit(&core->places, cv_epoch_place_bit(index, arm->first + i))) {
      filled++;
      sum += world_value(&truth->world->scenario, index, arm->first + i);
    }
  }
  if (filled != arm->filled || sum != arm->sum) {
    world_fail(truth->world, "1: arm %u counts %u tokens with sum %lld; its places say %u and %lld", index, arm->filled,
               (long long)arm->sum, filled, (long long)sum);
  }
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

static void check_open(struct truth *truth, struct cv_campaign *core, struct campaign *campaign) {
  uint64_t tokens = 0, reserved = 0;
  for (uint32_t i = 0; i < core->spec.arms; i++) {
    const struct cv_arm *arm = &core->arm[i];
    tokens += arm->first;
    if (arm->plan != 0) {
      check_noise(truth, i, arm, &campaign->arm[i]);
      check_epoch(truth, core, i);
      tokens += arm->filled;
      reserved += arm->want - arm->filled;
    }
  }
  if (tokens != core->tokens || bits_in(&core->payers) != tokens) {
    world_fail(truth->world, "1: campaign %u counts %llu tokens in its arms, %llu in all, and %llu slots are taken",
               core->id, (unsigned long long)tokens, (unsigned long long)core->tokens,
               (unsigned long long)bits_in(&core->payers));
  }
  if (reserved != core->reserved || core->tokens + reserved > core->spec.tokens) {
    world_fail(truth->world, "3: campaign %u has %llu tokens and reserved %llu; its epochs say %llu, its limit is %llu",
               core->id, (unsigned long long)core->tokens, (unsigned long long)core->reserved,
               (unsigned long long)reserved, (unsigned long long)core->spec.tokens);
  }
}

static void check_accounts(struct truth *truth, struct cv_broker *core) {
  uint64_t epsilon = truth->world->scenario.epsilon_micro;
  for (uint64_t worker = 1; worker < truth->workers; worker++) {
    uint64_t spent = cv_accounts_spent(&core->accounts, worker);
    if (spent < truth->tokens_of[worker] * epsilon) {
      world_fail(truth->world, "3: worker %llu has spent %llu micro-epsilon on record; %u tokens were acknowledged",
                 (unsigned long long)worker, (unsigned long long)spent, truth->tokens_of[worker]);
    }
  }
}

static void check_acknowledged(struct truth *truth, struct cv_broker *core) {
  for (size_t i = 0; i < truth->acknowledged.n; i++) {
    const struct cv_ticket *ticket = &truth->acknowledged.ticket[i];
    struct cv_campaign *campaign = cv_campaign_find(core, ticket->campaign);
    if (campaign == NULL) {
      world_fail(truth->world, "1: campaign %u is gone, with its tokens", ticket->campaign);
      return;
    }
    if (campaign->arm != NULL &&
        !cv_chunks_bit(&campaign->payers, ticket->worker * campaign->spec.tokens_per_worker + ticket->slot)) {
      world_fail(truth->world, "1: the token of worker %llu, slot %u, was acknowledged and is lost",
                 (unsigned long long)ticket->worker, ticket->slot);
      return;
    }
  }
}

static void check_bounds(struct truth *truth, struct cv_broker *core) {
  for (const struct cv_broker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    if (conn->waiting_count > core->config.limits.queue || conn->outstanding > CV_CREDIT_MAX ||
        conn->requests > CV_REQUESTS_MAX || conn->dealings > 256) {
      world_fail(truth->world, "6: %s has %u workers waiting, %u assignments, %u requests", conn->identity.name,
                 conn->waiting_count, conn->outstanding, conn->requests);
    }
  }
  if (core->open_count > core->config.limits.campaigns) {
    world_fail(truth->world, "6: %u campaigns are open", core->open_count);
  }
}

static void check_all(struct truth *truth, struct cv_broker *core, bool again) {
  for (struct cv_campaign *each = core->campaigns; each != NULL; each = each->hh.next) {
    struct campaign *campaign = campaign_of(truth, each->id);
    if (again) {
      check_kept(truth, each, campaign);
    }
    check_history(truth, each, campaign, again);
    if (each->arm != NULL) {
      check_open(truth, each, campaign);
    }
    if (each->has_seed) {
      check_seed(truth, each->id, each->seed);
    } else if (again && truth->thirdparty_lost) { /* the seed was on its way to both disks, and reached neither */
      campaign->has_seed = false;
    }
  }
}

void truth_flushed(struct truth *truth, struct cv_broker *core) {
  check_bounds(truth, core);
  if (!truth->world->rolled_back) {
    check_all(truth, core, false);
  }
}

static void all_is_stored(struct truth *truth) {
  for (size_t i = 0; i < CAMPAIGNS; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->plans_stored = campaign->plans;
    campaign->releases_stored = campaign->releases;
    for (size_t j = 0; j < SCENARIO_ARMS; j++) {
      campaign->arm[j].stored = campaign->arm[j].opened.len > 0;
    }
  }
}

/* "crowdveil-anchor 2 DATABASE COMMIT ...": what a power failure leaves of it. */
static uint64_t anchored(const struct world *world) {
  enum { COMMIT_AT = 52 };
  const struct disk_file *file = disk_find(&world->disk_broker, "B/anchor");
  return file == NULL || file->durable_n <= COMMIT_AT ? 0 : strtoull((const char *)file->durable + COMMIT_AT, NULL, 10);
}

void truth_stored(struct truth *truth, uint64_t commit) {
  if (anchored(truth->world) < commit) {
    world_fail(truth->world, "3: commit %llu is told, and its anchor says %llu", (unsigned long long)commit,
               (unsigned long long)anchored(truth->world));
  }
  truth->commit = commit;
  all_is_stored(truth);
}

void truth_restarted(struct truth *truth, struct cv_broker *core) {
  if (truth->world->rolled_back) {
    return;
  }
  check_all(truth, core, true);
  all_is_stored(truth);
  check_accounts(truth, core);
  check_acknowledged(truth, core);
}

/* ---- going back ---- */

void truth_snapshot(struct truth *truth) {
  truth->snapshot_commit = truth->commit;
  for (size_t i = 0; i < CAMPAIGNS; i++) {
    truth->campaign[i].snapshot_releases = truth->campaign[i].releases_stored;
    truth->campaign[i].snapshot_plans = truth->campaign[i].plans_stored;
  }
}

bool truth_has_moved(const struct truth *truth) {
  return truth->commit > truth->snapshot_commit + 1;
}

bool truth_is_behind(const struct truth *truth) {
  return truth_has_moved(truth);
}

/* What was durable at the snapshot may be one commit ahead of what was known then: one plan, or a few releases. */
void truth_rolled_back(struct truth *truth) {
  for (size_t i = 0; i < CAMPAIGNS; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->must_freeze = campaign->ranker_releases > campaign->snapshot_releases + SCENARIO_ARMS ||
                            campaign->ranker_plans > campaign->snapshot_plans + 1;
    campaign->finished = false;
  }
}

/* ---- the end ---- */

static bool same_standings(const struct cv_standing *a, const struct cv_standing *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (a[i].rank_class != b[i].rank_class || a[i].tokens != b[i].tokens || a[i].mean != b[i].mean ||
        a[i].radius != b[i].radius) {
      return false;
    }
  }
  return true;
}

void truth_finished(struct truth *truth, const struct cv_finished *finished) {
  struct campaign *campaign = campaign_of(truth, finished->progress.campaign);
  world_log(truth->world, "requester: campaign %llu is over: %s, %llu tokens",
            (unsigned long long)finished->progress.campaign, cv_end_text(finished->progress.end),
            (unsigned long long)finished->progress.tokens);
  if (campaign->finished && (campaign->end != finished->progress.end || campaign->standings != finished->standings ||
                             !same_standings(campaign->standing, finished->standing, finished->standings))) {
    world_fail(truth->world, "campaign %llu has ended twice, each time otherwise",
               (unsigned long long)finished->progress.campaign);
  }
  campaign->finished = true;
  campaign->end = finished->progress.end;
  campaign->standings = finished->standings <= SCENARIO_ARMS ? finished->standings : SCENARIO_ARMS;
  for (uint32_t i = 0; i < campaign->standings; i++) {
    campaign->standing[i] = finished->standing[i];
  }
  bool froze = campaign->end == CV_END_FROZEN || campaign->end == CV_END_REFUSED;
  if (campaign->must_freeze && !froze) {
    world_fail(truth->world, "2: the third-party knew more than the rolled-back broker, and campaign %llu went on: %s",
               (unsigned long long)finished->progress.campaign, cv_end_text(campaign->end));
  }
  if (froze && !truth->world->rolled_back) {
    world_fail(truth->world, "campaign %llu ends as %s", (unsigned long long)finished->progress.campaign,
               cv_end_text(campaign->end));
  }
}

void truth_exported(struct truth *truth, const struct cv_part *part) {
  const struct campaign *campaign = campaign_of(truth, part->campaign);
  for (size_t i = 0; i < part->releases && !truth->world->rolled_back; i++) {
    uint64_t number = part->release[i].number;
    if (number == 0 || number > campaign->releases ||
        !same_release(&part->release[i], &campaign->release[number - 1])) {
      world_fail(truth->world, "2: the export has another release %llu", (unsigned long long)number);
    }
  }
}

static const struct cv_release *nth_of(const struct campaign *campaign, uint32_t arm, uint64_t n) {
  for (size_t i = 0; i < campaign->releases; i++) {
    if (campaign->release[i].arm == arm && n-- == 0) {
      return &campaign->release[i];
    }
  }
  return NULL;
}

/* Plans and releases as the calm run has them: all of them, or, if something ended it, as many as there are. */
static void compare(struct truth *truth, uint64_t id, const struct campaign *campaign, const struct oracle *oracle) {
  struct world *world = truth->world;
  bool plain = campaign->end == oracle->end;
  if (campaign->plans > oracle->plans || (plain && campaign->plans != oracle->plans) ||
      (plain && campaign->releases != oracle->releases)) {
    world_fail(world, "7: campaign %llu had %zu plans and %zu releases; without faults it has %zu and %zu",
               (unsigned long long)id, campaign->plans, campaign->releases, oracle->plans, oracle->releases);
    return;
  }
  for (size_t i = 0; i < campaign->plans; i++) {
    if (!same_plan(&campaign->plan[i], &oracle->plan[i])) {
      world_fail(world, "7: plan %zu of campaign %llu differs from that without faults", i + 1, (unsigned long long)id);
    }
  }
  uint64_t nth[SCENARIO_ARMS] = {0};
  for (size_t i = 0; i < oracle->releases; i++) {
    const struct cv_release *expected = &oracle->release[i];
    const struct cv_release *release = nth_of(campaign, expected->arm, nth[expected->arm]++);
    if (release != NULL && (release->noisy_sum != expected->noisy_sum || release->tokens != expected->tokens ||
                            release->plan != expected->plan)) {
      world_fail(world, "7: release %llu of arm %u is %lld; without faults it is %lld",
                 (unsigned long long)release->number, release->arm, (long long)release->noisy_sum,
                 (long long)expected->noisy_sum);
    }
  }
  if (plain &&
      (campaign->standings != oracle->arms || !same_standings(campaign->standing, oracle->standing, oracle->arms))) {
    world_fail(world, "7: campaign %llu ranks otherwise than without faults", (unsigned long long)id);
  }
}

void truth_end(struct truth *truth) {
  struct world *world = truth->world;
  enum ending ending = world->scenario.ending;
  char path[64];
  (void)snprintf(path, sizeof(path), "/tmp/cv-sim-%d.db", (int)getpid());
  for (uint64_t id = 1; id <= world->scenario.campaigns && !world->rolled_back; id++) {
    const struct campaign *campaign = &truth->campaign[id];
    if (ending == ENDING_PLAIN && campaign->end != CV_END_COMPLETE && campaign->end != CV_END_TOKENS) {
      world_fail(world, "campaign %llu ends as %s", (unsigned long long)id, cv_end_text(campaign->end));
    }
    if (world->scenario.noise_seeded) {
      struct oracle oracle;
      oracle_ask(&world->scenario, campaign->seed, &oracle);
      compare(truth, id, campaign, &oracle);
      oracle_fini(&oracle);
    }
  }
  ranker_replay(world->thirdparty, path);
}
