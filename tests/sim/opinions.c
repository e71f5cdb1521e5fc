/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which opinion each token of an honest gateway discloses. A gateway tells the score and the value of each one that it
 * is asked for, before the token leaves; a worker has one unacknowledged token at a time, so the token that leaves is
 * of the latest ones.
 *
 * Opinions, tickets and values are kept in sets: an opinion that has left before, together with a value that has not
 * left with it, has left with another value.
 */
#include "tests/sim/parts.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"
#include "tests/sim/two.h"

static uint64_t mix(uint64_t number, uint64_t more) {
  uint64_t mixed = cv_mix64(cv_mix64(number) + more);
  return mixed == 0 ? 1 : mixed;
}

void truth_said(struct truth *truth, uint64_t worker, const struct part *part, int64_t value) {
  enum { PLACE_BITS = 40 }; /* places of further arms of an assignment are beyond these */
  struct said *said = &truth->said[worker];
  said->values = part->at >> PLACE_BITS == 0 ? 0 : said->values;
  CV_REQUIRE(said->values < SCENARIO_ARMS);
  said->of[said->values++] = (struct opinion){
      .arm = part->arm, .opponent = part->opponent, .at = part->at, .number = part->number, .value = value};
}

/* What the coin of the opinion gives. */
static int64_t value_of(const struct scenario *scenario, const struct opinion *said) {
  const struct cv_opinion opinion = {.source = scenario->parts ? PARTS_PRINT : 0,
                                     .arm = said->arm,
                                     .opponent = said->opponent,
                                     .number = said->number};
  struct cv_coin coin;
  cv_coin_init(&coin, scenario->coin_key, &scenario->applied.law, &opinion);
  return cv_privatizer_apply(&scenario->applied, said->arm, world_score(scenario, said->arm, said->number),
                             &coin.bits.rng);
}

/* With two brokers the token rounds the value. */
static bool is_value(const struct world *world, const struct cv_token *token, size_t i, int64_t value) {
  int64_t measured, scale = (int64_t)cv_split_scale(world->scenario.score_bits);
  uint64_t measurement;
  if (token->share == NULL) {
    return token->value[i] == value;
  }
  if (!two_measured(world->two, token->share->nonce, &measurement)) {
    return false;
  }
  measured = (int64_t)measurement * scale;
  return measured < value + scale && value < measured + scale;
}

/* A row of a part leaves once to a campaign, for one ticket, and after its gateway has stored that. */
static void check_row(struct truth *truth, const struct cv_ticket *ticket, const struct opinion *said,
                      uint64_t number) {
  struct world *world = truth->world;
  uint32_t gateway = (uint32_t)((ticket->worker - 1) / world->scenario.pool_workers);
  uint64_t row = mix(mix(mix(ticket->campaign, said->arm), said->number), PARTS_PRINT);
  bool is_new = seen_add(&truth->opinions, row);
  tally_add(TALLY_PART_ROWS, is_new);
  if (seen_add(&truth->disclosed, mix(row, number)) && !is_new) {
    world_fail(world, "18: row %llu of arm %u leaves to campaign %u for a second ticket",
               (unsigned long long)said->number, said->arm, ticket->campaign);
  }
  if (said->at >= *parts_taken(world, gateway, ticket->campaign, said->arm)) {
    world_fail(world, "18: row %llu of arm %u leaves after %llu others, and %llu are stored as taken",
               (unsigned long long)said->number, said->arm, (unsigned long long)said->at,
               (unsigned long long)*parts_taken(world, gateway, ticket->campaign, said->arm));
  }
}

/* A place has one value, whoever answers it, in whatever campaign. `first`: the ticket leaves for the first time. */
static void check_place(struct truth *truth, const struct opinion *said, bool first) {
  uint64_t place = mix(mix(mix(said->arm, said->number), said->opponent), 0);
  bool is_new = seen_add(&truth->opinions, place);
  bool is_local = truth->world->scenario.applied.law.epsilon_micro != CV_EPSILON_NONE;
  tally_add(TALLY_SAME_TOKEN, first && !is_new && is_local);
  if (seen_add(&truth->disclosed, mix(place, (uint64_t)said->value)) && !is_new) {
    world_fail(truth->world, "18: place %llu of arm %u has another token than before", (unsigned long long)said->number,
               said->arm);
  }
}

void truth_check_opinions(struct truth *truth, const struct cv_ticket *ticket, const struct cv_token *token) {
  struct world *world = truth->world;
  const struct said *said = &truth->said[ticket->worker];
  uint64_t number = 1;
  if (world->scenario.persons || world->scenario.golds > 0) { /* the value depends on the worker */
    return;
  }
  for (size_t i = 0; i < CV_TICKET_BYTES; i++) {
    number = mix(number, token->ticket[i]);
  }
  bool first = seen_add(&truth->tickets_left, number);
  if (said->values != (token->share == NULL ? token->values : 1) || said->of[0].arm != ticket->item) {
    world_fail(world, "18: worker %llu gives a token of arm %u; it was asked for %u scores, the first of arm %u",
               (unsigned long long)ticket->worker, ticket->item, said->values, said->of[0].arm);
    return;
  }
  for (uint32_t i = 0; i < said->values; i++) {
    const struct opinion *opinion = &said->of[i];
    if (!is_value(world, token, i, opinion->value) || opinion->value != value_of(&world->scenario, opinion)) {
      world_fail(world, "18: worker %llu gives another token of arm %u than the coin of its opinion %llu",
                 (unsigned long long)ticket->worker, opinion->arm, (unsigned long long)opinion->number);
    }
    if (world->scenario.parts) {
      check_row(truth, ticket, opinion, number);
    } else {
      check_place(truth, opinion, first);
    }
  }
}

uint64_t truth_rows_left(const struct truth *truth, uint64_t campaign, uint32_t arm) {
  const struct scenario *scenario = &truth->world->scenario;
  uint64_t left = 0;
  for (uint32_t gateway = 0; gateway < scenario->pools; gateway++) {
    left += parts_rows(scenario, gateway, arm) - *parts_taken(truth->world, gateway, campaign, arm);
  }
  return left;
}
