/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of persons: each row that leaves, each wish, and each person that was not asked. */
#include "tests/sim/persons.h"
#include "tests/sim/shows.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"
#include "tests/sim/two.h"

/* Whether a row says what the token says: with two brokers the token rounds it. */
static bool says(const struct world *world, uint64_t row, const struct cv_token *token) {
  uint64_t measurement, value = world->persons.value[row], scale = cv_split_scale(world->scenario.score_bits);
  if (token->share == NULL) {
    return token->values == 1 && token->value[0] == (int64_t)value;
  }
  return two_measured(world->two, token->share->nonce, &measurement) && measurement * scale < value + scale &&
         value < (measurement + 1) * scale;
}

/* A row of the worker for the arm, with that score; UINT64_MAX if it has none. One that has left with the ticket of
 * this `number` comes first. */
static uint64_t find_row(const struct truth *truth, uint64_t worker, uint32_t arm, const struct cv_token *token,
                         uint64_t number) {
  const struct world *world = truth->world;
  uint64_t row, to, found = UINT64_MAX;
  for (persons_rows(world, worker, &row, &to); row < to; row++) {
    if (world->persons.arm[row] == arm && says(world, row, token)) {
      bool is_better = truth->row_left[row] == number || (world->row_given[row] && truth->row_left[row] == 0);
      found = found == UINT64_MAX || is_better ? row : found;
      if (truth->row_left[row] == number) {
        return row;
      }
    }
  }
  return found;
}

/* The number of rows of the worker that have not left; of the arm, or of any (CV_WISH_NONE). */
static uint32_t count_left(const struct truth *truth, uint64_t worker, uint32_t arm) {
  uint64_t row, to;
  uint32_t left = 0;
  for (persons_rows(truth->world, worker, &row, &to); row < to; row++) {
    left += truth->row_left[row] == 0 && (arm == CV_WISH_NONE || truth->world->persons.arm[row] == arm);
  }
  return left;
}

void truth_gave_row(struct truth *truth, const struct cv_ticket *ticket, const struct cv_token *token,
                    uint64_t number) {
  struct world *world = truth->world;
  uint64_t row = find_row(truth, ticket->worker, ticket->item, token, number);
  if (row == UINT64_MAX) {
    world_fail(world, "16: worker %llu gives a token for arm %u; it has no such row",
               (unsigned long long)ticket->worker, ticket->item);
    return;
  }
  if (!world->row_given[row]) {
    world_fail(world, "16: row %llu of worker %llu leaves, and is not kept as given", (unsigned long long)row,
               (unsigned long long)ticket->worker);
  }
  if (truth->row_left[row] != 0 && truth->row_left[row] != number) {
    world_fail(world, "16: row %llu of worker %llu leaves for a second assignment", (unsigned long long)row,
               (unsigned long long)ticket->worker);
  }
  tally_add(TALLY_ROWS, truth->row_left[row] == 0);
  truth->row_left[row] = number;
}

void truth_came(struct truth *truth, const struct cv_arrive *arrive) {
  for (size_t i = 0; i < arrive->workers; i++) {
    uint32_t wish = arrive->wish == NULL ? CV_WISH_NONE : arrive->wish[i];
    tally_add(TALLY_WISHES, wish != CV_WISH_NONE);
    if (count_left(truth, arrive->worker[i], wish) == 0) {
      world_fail(truth->world, "16: worker %llu comes for arm %lld and has no row of it left",
                 (unsigned long long)arrive->worker[i], wish == CV_WISH_NONE ? -1LL : (long long)wish);
    }
  }
}

/* ---- what a place says ---- */

static int64_t *value_at(const struct truth *truth, const struct campaign *campaign, uint32_t arm, uint64_t place) {
  CV_REQUIRE(place < truth->world->scenario.tokens);
  return &campaign->value[arm * truth->world->scenario.tokens + place];
}

int64_t truth_value(const struct truth *truth, const struct campaign *campaign, uint32_t played, uint64_t place,
                    uint32_t arm) {
  const struct scenario *scenario = &truth->world->scenario;
  return campaign->value != NULL ? *value_at(truth, campaign, arm, place) : world_shown(scenario, played, place, arm);
}

int64_t truth_sum(const struct truth *truth, const struct campaign *campaign, const struct cv_plan *plan,
                  const uint64_t *first, uint32_t arm) {
  const struct scenario *scenario = &truth->world->scenario;
  const struct cv_want *want = shows_want(plan, arm);
  int64_t sum = 0;
  if (campaign->value == NULL) {
    return shows_sum(scenario, plan, first, arm);
  }
  for (uint32_t i = 0; i < want->tokens; i++) {
    sum += *value_at(truth, campaign, arm, first[arm] + i);
  }
  return sum;
}

/* Runs while memory may run out: nothing is allocated. */
void truth_counted(struct truth *truth, const struct cv_crowd_frame *answers, size_t from,
                   const struct cv_token *token) {
  const struct scenario *scenario = &truth->world->scenario;
  bool is_told = scenario_values_vary(scenario) && !scenario->two && !truth->world->rolled_back;
  for (size_t i = from; i < answers->acks && is_told; i++) {
    struct cv_ticket ticket;
    uint64_t first[SCENARIO_ARMS];
    if (answers->ack[i].verdict == CV_VERDICT_ACCEPTED) {
      truth_open(truth, answers->ack[i].ticket, &ticket);
      struct campaign *campaign = truth_campaign(truth, ticket.campaign);
      uint32_t arm = scenario_arm(scenario, ticket.item);
      int64_t value = token[i - from].value[0];
      if (arm >= scenario->arms) {
        truth_gold_answer(truth, campaign, &ticket, value);
        continue;
      }
      shows_plays(campaign->plan, ticket.plan - 1, first);
      *value_at(truth, campaign, arm, first[arm] + ticket.position) =
          scenario->golds == 0 ? value : truth_gold_value(campaign, ticket.worker, arm, value);
    }
  }
}

/* ---- the end ---- */

/* Each item is asked of a person once. */
static bool is_answered(const struct truth *truth, uint64_t worker, uint32_t arm) {
  uint64_t row, to;
  bool is = false;
  for (persons_rows(truth->world, worker, &row, &to); row < to; row++) {
    is = is || (truth->row_left[row] != 0 && truth->world->persons.arm[row] == arm);
  }
  return is;
}

/* Some person with rows of the arm could have been asked for more, within its rows and the terms. */
uint64_t truth_find_idle(const struct truth *truth, uint32_t arm) {
  const struct scenario *scenario = &truth->world->scenario;
  for (uint64_t worker = 1; worker <= (uint64_t)scenario->pools * scenario->pool_workers; worker++) {
    bool is_over = scenario->own_tokens > 0 && truth->left[worker] >= scenario->own_tokens;
    if (!is_over && truth->gave[worker] < scenario->tokens_per_worker && count_left(truth, worker, arm) > 0 &&
        !is_answered(truth, worker, arm)) {
      return worker;
    }
  }
  return 0;
}

void truth_check_idle(struct truth *truth, const struct campaign *campaign) {
  const struct scenario *scenario = &truth->world->scenario;
  uint64_t wanted[SCENARIO_ARMS];
  if (!scenario->persons || campaign->end != CV_END_IDLE) {
    return;
  }
  tally(TALLY_USED_UP);
  shows_plays(campaign->plan, campaign->plans, wanted);
  for (uint32_t arm = 0; arm < scenario->arms && scenario->peaceful; arm++) {
    uint64_t worker = campaign->acknowledged[arm] < wanted[arm] ? truth_find_idle(truth, arm) : 0;
    if (worker != 0) {
      world_fail(truth->world, "16: no worker came for arm %u, and worker %llu has a row of it", arm,
                 (unsigned long long)worker);
    }
  }
}
