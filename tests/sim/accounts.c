/* SPDX-License-Identifier: Apache-2.0 */
/* 3: the workers' accounts at the broker, against what their tokens cost. */
#include "tests/sim/truth_state.h"

/* A recovery charges no worker more than it had left; that replaces charges which no account could cover. */
void truth_check_accounts(struct truth *truth, struct cv_broker *core) {
  uint64_t enough = truth->world->recovered ? core->config.limits.worker_epsilon_micro : UINT64_MAX;
  for (uint64_t worker = 1; worker < truth->workers; worker++) {
    uint64_t spent = cv_accounts_spent(&core->accounts, worker);
    if (spent < truth->spent_micro[worker] && spent < enough) {
      world_fail(truth->world, "3: worker %llu has spent %llu micro-epsilon on record; what was acknowledged cost %llu",
                 (unsigned long long)worker, (unsigned long long)spent, (unsigned long long)truth->spent_micro[worker]);
    }
  }
}

static bool has_last(const struct campaign *campaign) {
  size_t i = 0;
  while (i < campaign->releases && !campaign->release[i].last) {
    i++;
  }
  return i < campaign->releases;
}

/* The cost of the campaign's tokens to their workers. For an ended campaign it is known how many places of its last
 * plan were filled, but not which. */
static void cost_of(struct truth *truth, const struct cv_arm *arms, uint64_t tokens, const struct campaign *campaign,
                    uint64_t *least, uint64_t *most) {
  uint64_t left = tokens, low = UINT64_MAX, high = 0, rest = 0;
  if (has_last(campaign)) { /* not all places of its plans are filled; without a graph each costs the same */
    *least += tokens * scenario_cost(&truth->world->scenario);
    *most += tokens * scenario_cost(&truth->world->scenario);
    return;
  }
  for (size_t i = 0; i < campaign->plans; i++) {
    const struct cv_plan *plan = &campaign->plan[i];
    bool is_last = i + 1 == campaign->plans;
    for (uint32_t j = 0; j < plan->wants; j++) {
      const struct cv_want *want = &plan->want[j];
      const struct cv_arm *arm = arms == NULL ? NULL : &arms[want->arm];
      uint64_t price = truth_price(truth, campaign, plan->number, want->arm);
      bool is_known = !is_last || arm != NULL;
      uint64_t plays = is_last && arm != NULL && arm->plan == plan->number ? arm->filled : want->tokens;
      *least += is_known ? plays * price : 0;
      *most += is_known ? plays * price : 0;
      left -= is_known ? plays : 0;
      rest += is_known ? 0 : plays * price;
      low = !is_known && plays > 0 && price < low ? price : low;
      high = !is_known && plays > 0 && price > high ? price : high;
    }
  }
  uint64_t fewest = left == 0 ? 0 : left * low;
  *least += fewest < rest ? fewest : rest;
  *most += left * high < rest ? left * high : rest;
}

/* With exact sums an account is untouched or marked unprotected: for every worker that gave, and for no more. */
static void check_unprotected(struct truth *truth, struct cv_broker *core) {
  uint64_t unprotected = 0, least = 0, most = core->totals.tokens;
  for (uint64_t worker = 1; worker < truth->workers; worker++) {
    uint64_t its = cv_accounts_spent(&core->accounts, worker);
    unprotected += its == UINT64_MAX;
    least += truth->spent_micro[worker] > 0;
    if (its != UINT64_MAX && (its > 0 || truth->spent_micro[worker] > 0)) {
      world_fail(truth->world, "3: worker %llu has spent %llu micro-epsilon; expected nothing, or no limit",
                 (unsigned long long)worker, (unsigned long long)its);
    }
  }
  if (unprotected < least || unprotected > most) {
    world_fail(truth->world, "3: %llu workers are unprotected; %llu are known to have given, %llu tokens in all",
               (unsigned long long)unprotected, (unsigned long long)least, (unsigned long long)most);
  }
}

void truth_check_sum_of_accounts(struct truth *truth, struct cv_broker *core) {
  if (scenario_is_exact(&truth->world->scenario)) {
    check_unprotected(truth, core);
    return;
  }
  uint64_t spent = 0, least = 0, most = 0, limit = core->config.limits.worker_epsilon_micro;
  for (uint64_t worker = 1; worker < truth->workers; worker++) {
    uint64_t its = cv_accounts_spent(&core->accounts, worker);
    spent += its;
    if (its > limit) {
      world_fail(truth->world, "3: worker %llu has spent %llu micro-epsilon; its limit is %llu",
                 (unsigned long long)worker, (unsigned long long)its, (unsigned long long)limit);
    }
  }
  for (uint32_t id = 1; id < truth->campaigns; id++) {
    const struct campaign *campaign = &truth->campaign[id];
    const struct cv_broker_campaign *each = cv_broker_campaign_find(core, id);
    const struct cv_ended *ended = cv_archive_find(&core->archive, id);
    uint64_t tokens = each != NULL ? each->tokens : ended != NULL ? ended->progress.tokens : campaign->tokens;
    if (each == NULL && ended == NULL && !campaign->finished) { /* it is not stored yet */
      continue;
    }
    cost_of(truth, each != NULL ? each->arm : NULL, tokens, campaign, &least, &most);
    truth_gold_most(truth, campaign, &least, &most);
  }
  if (spent < least || spent > most) {
    world_fail(truth->world, "3: the workers' accounts sum to %llu micro-epsilon, the tokens cost %llu to %llu",
               (unsigned long long)spent, (unsigned long long)least, (unsigned long long)most);
  }
}
