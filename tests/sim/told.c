/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of sent messages: to workers, and between broker and third-party. */
#include <string.h>

#include "broker/conn.h"
#include "broker/opponent.h"
#include "common/base/answered.h"
#include "common/base/array.h"
#include "proto/codec/chain.h"
#include "tests/sim/shows.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"

/* ---- what is said to workers ---- */

/* 3: a worker that gives exact sums gives to one campaign only, unless the broker has forgotten which. */
static void check_unprotected(struct truth *truth, const struct cv_ticket *ticket) {
  const struct world *world = truth->world;
  uint32_t *gave_to = &truth->gave_to[ticket->worker];
  bool forgets = world->rolled_back && !world->recovered;
  if (scenario_is_exact(&world->scenario) && *gave_to != 0 && *gave_to != ticket->campaign && !forgets) {
    world_fail(truth->world, "3: worker %llu gave exact scores to campaign %u and to campaign %u",
               (unsigned long long)ticket->worker, *gave_to, ticket->campaign);
  }
  *gave_to = ticket->campaign;
}

/* 11, for acknowledged tokens. */
static void check_limit(struct truth *truth, uint64_t worker, uint32_t shown) {
  const struct scenario *scenario = &truth->world->scenario;
  bool is_honest = worker <= (uint64_t)scenario->pools * scenario->pool_workers;
  truth->gave[worker] += shown;
  if (is_honest && scenario->own_tokens > 0 && truth->gave[worker] > scenario->own_tokens) {
    world_fail(truth->world, "11: worker %llu has given %llu scores; its own limit is %u", (unsigned long long)worker,
               (unsigned long long)truth->gave[worker], scenario->own_tokens);
  }
}

/* 14: not to a campaign of a requester that it does not serve. */
static void check_served(struct truth *truth, const struct cv_ticket *ticket) {
  const struct scenario *scenario = &truth->world->scenario;
  uint32_t owner = truth_campaign(truth, ticket->campaign)->owner;
  uint64_t last = (uint64_t)scenario->pools * scenario->pool_workers, first = last - scenario->pool_workers + 1;
  bool is_picky = scenario->picky && ticket->worker >= first && ticket->worker <= last;
  tally_add(TALLY_PICKY, is_picky);
  if (is_picky && owner > scenario->campaigns) {
    world_fail(truth->world, "14: worker %llu has given campaign %u of a requester that it does not serve",
               (unsigned long long)ticket->worker, ticket->campaign);
  }
}

/* 19: a question is a worker's once: what it has answered, it is neither asked again nor counted for again. 0: the
 * campaign repeats questions. */
static uint64_t question_of(const struct truth *truth, const struct cv_ticket *ticket) {
  const struct scenario *scenario = &truth->world->scenario;
  uint32_t opponent = 0;
  if (scenario->repeat || scenario->tokens_per_worker == 1 || scenario->budget_micro > 0 || truth->world->rolled_back) {
    return 0;
  }
  if (scenario->pairs) {
    const struct cv_opponent_place place = {
        .campaign = ticket->campaign, .plan = ticket->plan, .arm = ticket->item, .position = ticket->position};
    opponent = truth_opponent(truth, ticket->campaign, ticket->plan, ticket->item);
    CV_REQUIRE(opponent > 0 ||
               cv_opponent_draw(world_tagger(truth->world), &place, scenario->arms, &opponent) == CV_OK);
    opponent += truth_opponent(truth, ticket->campaign, ticket->plan, ticket->item) == 0;
  }
  uint64_t question = cv_answered_question(ticket->item, opponent);
  return (uint64_t)ticket->campaign << 56 | ticket->worker << 16 | (question + 1);
}

static void acknowledge(struct truth *truth, const struct cv_ticket *ticket, bool accepted) {
  struct world *world = truth->world;
  if (accepted) {
    truth_owe(truth, ticket);
  }
  if (world->rolled_back) {
    return;
  }
  const uint32_t arm = scenario_arm(&world->scenario, ticket->item);
  const bool is_gold = arm >= world->scenario.arms;
  uint64_t place =
      (uint64_t)ticket->campaign << 56 | (uint64_t)ticket->plan << 36 | (uint64_t)arm << 24 | ticket->position;
  uint64_t payer = (uint64_t)ticket->campaign << 56 | ticket->worker << 16 | ticket->slot;
  tally(accepted ? TALLY_ACCEPTED : TALLY_DUPLICATE);
  if (!accepted) {
    return;
  }
  world_log(world, "broker: acknowledges plan %u, arm %u, position %u to worker %llu", ticket->plan, arm,
            ticket->position, (unsigned long long)ticket->worker);
  if (!is_gold && !seen_add(&truth->places, place)) {
    world_fail(world, "1: two tokens were acknowledged for plan %u, arm %u, position %u", ticket->plan, arm,
               ticket->position);
  }
  if (!seen_add(&truth->payers, payer)) {
    world_fail(world, "1: slot %u of worker %llu was acknowledged twice", ticket->slot,
               (unsigned long long)ticket->worker);
  }
  uint64_t question = question_of(truth, ticket);
  if (question != 0 && !seen_add(&truth->answered, question)) {
    world_fail(world, "19: worker %llu has two tokens counted about item %u", (unsigned long long)ticket->worker,
               ticket->item);
  }
  tally_add(TALLY_ASKED_ONCE, question != 0);
  struct ticket_list *list = &truth->acknowledged;
  CV_REQUIRE(CV_ARRAY_ROOM(list->ticket, list->n + 1, list->cap) == CV_OK);
  list->ticket[list->n++] = *ticket;
  struct campaign *campaign = truth_campaign(truth, ticket->campaign);
  check_served(truth, ticket);
  check_unprotected(truth, ticket);
  if (is_gold) {
    truth->spent_micro[ticket->worker] += scenario_cost(&world->scenario);
    check_limit(truth, ticket->worker, 1);
    campaign->golds[ticket->worker].acknowledged++;
    return;
  }
  truth->spent_micro[ticket->worker] += truth_price(truth, campaign, ticket->plan, arm);
  check_limit(truth, ticket->worker, truth_shown(truth, campaign, ticket->plan, arm));
  campaign->acknowledged[arm]++;
}

static void count_backoffs(const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->backoffs; i++) {
    const char *why = frame->backoff[i].why;
    tally_add(TALLY_OVERDRAWN, why != NULL && strstr(why, "lifetime epsilon") != NULL ? frame->backoff[i].workers : 0);
  }
}

/* 10: an assignment asks for the arm of its place and for the neighbours that the plan names, and for no other arm. */
static void check_shown(struct truth *truth, const struct cv_assign *assign, const struct cv_ticket *ticket) {
  const struct campaign *campaign = truth_campaign(truth, ticket->campaign);
  const struct scenario *scenario = &truth->world->scenario;
  uint32_t expected[SCENARIO_ARMS], n = 0, played = scenario_arm(scenario, ticket->item);
  if (ticket->plan >= 1 && ticket->plan <= campaign->plans_stored) { /* a gold item: in any plan, alone */
    n = played >= scenario->arms ? 1 : shows_list(scenario, &campaign->plan[ticket->plan - 1], played, expected);
  }
  expected[0] = ticket->item; /* with further arms there are no gold items, and items are arms */
  const uint32_t *arm = assign->arms == 1 ? &assign->arm.one : assign->arm.many;
  if (n == 0 || assign->arms != n || memcmp(arm, expected, n * sizeof(*arm)) != 0) {
    world_fail(truth->world, "10: an assignment of item %u in plan %u shows %u items; expected the %u of the plan",
               ticket->item, ticket->plan, assign->arms, n);
  }
  tally_add(TALLY_SHOWN, assign->arms - 1);
}

static void check_assigned(struct truth *truth, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->assigns && !truth->world->rolled_back; i++) {
    struct cv_ticket ticket;
    CV_REQUIRE(cv_ticket_open(frame->assign[i].ticket, world_tagger(truth->world), &ticket) == CV_OK);
    truth_check_hire(truth, &ticket);
    check_shown(truth, &frame->assign[i], &ticket);
    uint64_t question = question_of(truth, &ticket);
    if (question != 0 && seen_has(&truth->answered, question)) {
      world_fail(truth->world, "19: worker %llu is asked about item %u again", (unsigned long long)ticket.worker,
                 ticket.item);
    }
  }
}

void truth_told_crowd(struct truth *truth, const struct cv_crowd_frame *frame) {
  count_backoffs(frame);
  check_assigned(truth, frame);
  for (size_t i = 0; i < frame->acks; i++) {
    struct cv_ticket ticket;
    const struct cv_crowd_ack *ack = &frame->ack[i];
    tally_add(TALLY_EXPIRED, ack->verdict == CV_VERDICT_EXPIRED);
    tally_add(TALLY_REFUSED_TOKEN, ack->verdict == CV_VERDICT_REFUSED);
    if (ack->verdict != CV_VERDICT_ACCEPTED && ack->verdict != CV_VERDICT_DUPLICATE) {
      continue;
    }
    if (cv_ticket_open(ack->ticket, world_tagger(truth->world), &ticket) != CV_OK) {
      world_fail(truth->world, "1: a forged ticket was acknowledged");
      return;
    }
    memcpy(truth->ticket[truth->tickets++ % SPIED], ack->ticket, CV_TICKET_BYTES);
    acknowledge(truth, &ticket, ack->verdict == CV_VERDICT_ACCEPTED);
    truth_check_hire(truth, &ticket);
  }
}

/* ---- who may speak for workers ---- */

static bool is_crowd(const struct cv_identity *identity) {
  return identity->role == CV_ROLE_WORKER || identity->role == CV_ROLE_GATEWAY;
}

static bool is_same(const struct cv_identity *a, const struct cv_identity *b) {
  return a->role == b->role && strcmp(a->name, b->name) == 0;
}

/* The number of connections that stay and are the `same` as this one; or are different and cover one of its workers. */
static unsigned count_conns(const struct cv_broker *core, const struct cv_identity *identity, bool same) {
  unsigned count = 0;
  for (const struct cv_broker_conn *conn = core->conns; conn != NULL; conn = conn->next) {
    const struct cv_identity *other = &conn->identity;
    bool meets = is_crowd(other) && other->last >= identity->first && other->first <= identity->last;
    count += !conn->close_due && (same ? is_same(other, identity) : meets && !is_same(other, identity));
  }
  return count;
}

void truth_joined(struct truth *truth, const struct cv_broker *core, const struct cv_identity *identity, bool joined) {
  struct world *world = truth->world;
  if (!is_crowd(identity)) {
    if (!joined) {
      world_fail(world, "12: %s is turned away", identity->name);
    }
    return;
  }
  unsigned others = count_conns(core, identity, false);
  if (joined && others > 0) {
    world_fail(world, "12: %s/%s covers workers of %u other connections", cv_role_text(identity->role), identity->name,
               others);
  } else if (joined && count_conns(core, identity, true) != 1) {
    world_fail(world, "12: %s is connected twice", identity->name);
  } else if (!joined && others == 0) {
    world_fail(world, "12: %s is turned away, and no other connection covers its workers", identity->name);
  }
}

/* ---- what is said by workers ---- */

/* Opens a ticket whatever its tag: compares that with the ticket's own. Only what masks a ticket needs the key. */
static enum cv_err same_tag(void *data, const void *bytes, size_t bytes_n, uint8_t *tag, size_t n) {
  const struct cv_tagger *tagger = data;
  if (n != CV_BROKER_TICKET_TAG) {
    return tagger->tag(tagger->data, bytes, bytes_n, tag, n);
  }
  memcpy(tag, (const uint8_t *)bytes + bytes_n, n);
  return CV_OK;
}

void truth_open(const struct truth *truth, const uint8_t *bytes, struct cv_ticket *ret) {
  struct cv_tagger real = *world_tagger(truth->world);
  const struct cv_tagger any = {.tag = same_tag, .data = &real};
  CV_REQUIRE(cv_ticket_open(bytes, &any, ret) == CV_OK);
}

/* 11: a token leaves, for the first time or again. */
static void check_kept(struct truth *truth, const struct cv_ticket *ticket, const struct cv_token *token,
                       uint64_t number) {
  truth->left[ticket->worker] += !seen_add(&truth->given, number) ? 0 : token->share != NULL ? 1 : token->values;
  if (truth->left[ticket->worker] > truth->world->given[ticket->worker]) {
    world_fail(truth->world, "11: score %llu of worker %llu leaves, and %u are stored as given",
               (unsigned long long)truth->left[ticket->worker], (unsigned long long)ticket->worker,
               truth->world->given[ticket->worker]);
  }
}

/* With two brokers a slot counts once, whatever is sent for it. */
static uint64_t number_of(const struct cv_token *token, const struct cv_ticket *ticket) {
  uint64_t number = 1;
  if (token->share != NULL) {
    return (uint64_t)ticket->campaign << 56 | ticket->worker << 16 | ticket->slot;
  }
  for (size_t i = 0; i < CV_TICKET_BYTES; i++) {
    number = cv_mix64(number ^ token->ticket[i]);
  }
  return number;
}

static void check_token(struct truth *truth, const struct cv_token *token) {
  struct cv_ticket ticket;
  truth_open(truth, token->ticket, &ticket);
  uint64_t number = number_of(token, &ticket);
  if (truth->world->scenario.persons) {
    truth_gave_row(truth, &ticket, token, number);
  }
  truth_check_opinions(truth, &ticket, token);
  if (!truth->world->rolled_back) {
    check_kept(truth, &ticket, token, number);
  }
}

void truth_gave(struct truth *truth, const struct cv_crowd_frame *frame) {
  for (size_t i = 0; i < frame->tokens; i++) {
    check_token(truth, &frame->token[i]);
  }
  for (size_t i = 0; i < frame->arrives && truth->world->scenario.persons; i++) {
    truth_came(truth, &frame->arrive[i]);
  }
}

/* ---- what is said between broker and third-party ---- */

bool truth_same_release(const struct cv_release *a, const struct cv_release *b) {
  struct cv_digest x = {{0}}, y = {{0}};
  cv_chain_release(&x, a, cv_sha256);
  cv_chain_release(&y, b, cv_sha256);
  return memcmp(&x, &y, sizeof(x)) == 0;
}

bool truth_same_plan(const struct cv_plan *a, const struct cv_plan *b) {
  return a->number == b->number && a->wants == b->wants && memcmp(a->want, b->want, a->wants * sizeof(*a->want)) == 0;
}

void truth_check_seed(struct truth *truth, uint64_t id, uint64_t seed) {
  struct campaign *campaign = truth_campaign(truth, id);
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
    struct campaign *campaign = truth_campaign(truth, frame->release[i].campaign);
    const struct cv_release *release = &frame->release[i].release;
    tally(TALLY_RELEASES_SENT);
    tally_add(TALLY_RELEASES_AGAIN, release->number <= campaign->releases_sent);
    campaign->releases_sent = release->number > campaign->releases_sent ? release->number : campaign->releases_sent;
    world_log(world, "broker: sends release %llu, arm %u, sum %lld", (unsigned long long)release->number, release->arm,
              (long long)release->noisy_sum);
    if (release->number == 0 || release->number > campaign->releases_stored) {
      world_fail(world, "3: release %llu leaves before it is stored", (unsigned long long)release->number);
    } else if (!truth_same_release(release, &campaign->release[release->number - 1])) {
      world_fail(world, "2: release %llu leaves with other contents than were stored",
                 (unsigned long long)release->number);
    }
  }
  for (size_t i = 0; i < frame->recorded; i++) {
    const struct campaign *campaign = truth_campaign(truth, frame->record[i].campaign);
    uint64_t number = frame->record[i].plan.number;
    tally(TALLY_PLANS_AGAIN);
    if (number == 0 || number > campaign->plans_stored ||
        !truth_same_plan(&frame->record[i].plan, &campaign->plan[number - 1])) {
      world_fail(world, "2: plan %llu is recorded with other contents than were stored", (unsigned long long)number);
    }
  }
  for (size_t i = 0; i < frame->accepted; i++) {
    if (frame->accept[i].number > truth_campaign(truth, frame->accept[i].campaign)->plans_stored) {
      world_fail(world, "plan %llu is accepted before it is stored", (unsigned long long)frame->accept[i].number);
    }
  }
  for (size_t i = 0; i < frame->opens; i++) {
    if (frame->open[i].has_seed) {
      truth_check_seed(truth, frame->open[i].position.campaign, frame->open[i].seed);
    }
  }
}

/* 14 */
static void check_anothers(struct truth *truth, uint64_t campaign, const char *what) {
  if (truth_campaign(truth, campaign)->plans_stored > 0) {
    world_fail(truth->world, "14: another third-party receives %s of campaign %llu, which it has not opened", what,
               (unsigned long long)campaign);
  }
}

void truth_told_impostor(struct truth *truth, const struct cv_rank_frame *frame) {
  if (truth->world->rolled_back) {
    return;
  }
  for (size_t i = 0; i < frame->opens; i++) {
    check_anothers(truth, frame->open[i].position.campaign, "the terms");
  }
  for (size_t i = 0; i < frame->recorded; i++) {
    check_anothers(truth, frame->record[i].campaign, "a plan");
  }
  for (size_t i = 0; i < frame->releases; i++) {
    check_anothers(truth, frame->release[i].campaign, "a release");
  }
  for (size_t i = 0; i < frame->stops; i++) {
    check_anothers(truth, frame->stop[i].campaign, "the end");
  }
}

uint64_t truth_opened(const struct truth *truth, uint64_t which) {
  uint64_t id = truth->campaigns < 2 ? 0 : 1 + which % (truth->campaigns - 1);
  return id > 0 && truth->campaign[id].plans_stored > 0 ? id : 0;
}

void truth_thirdparty_told(struct truth *truth, const struct cv_rank_frame *frame) {
  if (truth->world->rolled_back) {
    return;
  }
  for (size_t i = 0; i < frame->opened; i++) {
    const struct cv_rank_opened *opened = &frame->answer[i];
    const struct campaign *campaign = truth_campaign(truth, opened->position.campaign);
    if (opened->refused != NULL && truth->world->scenario.thirdparty_campaigns == 0) {
      world_fail(truth->world, "the third-party refuses campaign %llu: %s",
                 (unsigned long long)opened->position.campaign, opened->refused);
    } else if (opened->refused == NULL && (opened->position.releases > campaign->thirdparty_releases ||
                                           opened->position.plans > campaign->thirdparty_plans)) {
      world_fail(truth->world, "the third-party names release %llu, plan %llu before they are stored",
                 (unsigned long long)opened->position.releases, (unsigned long long)opened->position.plans);
    }
  }
  for (size_t i = 0; i < frame->acks; i++) {
    if (frame->ack[i].number > truth_campaign(truth, frame->ack[i].campaign)->thirdparty_releases) {
      world_fail(truth->world, "the third-party acknowledges release %llu before it is stored",
                 (unsigned long long)frame->ack[i].number);
    }
  }
}

void truth_thirdparty_stored(struct truth *truth, uint64_t id, uint64_t releases, uint64_t plans) {
  struct campaign *campaign = truth_campaign(truth, id);
  campaign->thirdparty_releases = releases;
  campaign->thirdparty_plans = plans;
}

void truth_thirdparty_lost(struct truth *truth) {
  truth->thirdparty_lost = true;
  for (size_t i = 0; i < truth->campaigns; i++) {
    struct campaign *campaign = &truth->campaign[i];
    campaign->thirdparty_releases = campaign->thirdparty_plans = 0;
    /* The third-party may draw another seed if the broker has not stored the first one. */
    campaign->has_seed = campaign->has_seed && campaign->plans_stored > 0;
  }
}

/* ---- what is said between requesters and broker ---- */

void truth_asking(struct truth *truth, uint32_t owner) {
  CV_REQUIRE(owner > 0 && owner < truth->campaigns);
  if (truth->asked_ms[owner] == 0) {
    truth->asked_ms[owner] = truth->world->now_ms;
    truth->asked_jumps[owner] = truth->world->jumps;
  }
}

void truth_accepted(struct truth *truth, uint32_t owner, uint64_t id) {
  struct world *world = truth->world;
  if (world->rolled_back) {
    return;
  }
  struct campaign *campaign = truth_campaign(truth, id);
  for (uint32_t i = 1; i < truth->campaigns; i++) {
    if (truth->campaign[i].owner == owner && i != id) {
      world_fail(world, "a campaign that was submitted again was accepted as number %u and as %llu", i,
                 (unsigned long long)id);
    }
  }
  if (campaign->owner != 0 && campaign->owner != owner) {
    world_fail(world, "campaign %llu was accepted from two requesters", (unsigned long long)id);
  }
  campaign->owner = owner;
}
