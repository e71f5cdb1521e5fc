/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of payments: the seed's costs, workers and budget against the broker's records. */
#include "broker/statement.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"

static uint32_t wanted(const struct cv_plan *plan, uint32_t arm) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    if (plan->want[i].arm == arm) {
      return plan->want[i].tokens;
    }
  }
  return 0;
}

/* Tokens of the arm in closed epochs, and in all that were opened. */
static void bounds(const struct campaign *campaign, uint32_t arm, uint64_t *ret_least, uint64_t *ret_most) {
  *ret_least = *ret_most = 0;
  for (size_t i = 0; i < campaign->plans; i++) {
    *ret_most += wanted(&campaign->plan[i], arm);
  }
  for (size_t i = 0; i < campaign->releases; i++) {
    if (campaign->release[i].arm == arm) {
      *ret_least += wanted(&campaign->plan[campaign->release[i].plan - 1], arm);
    }
  }
}

/* For a running campaign exactly as many as its image counts; for an ended one at least those of its epochs. */
static void check_arm(struct truth *truth, const struct cv_broker_campaign *core, const struct campaign *campaign,
                      uint32_t index) {
  uint64_t least, most, paid = core->payroll.tokens[index];
  bounds(campaign, index, &least, &most);
  if (core->arm != NULL) {
    uint64_t accepted = core->arm[index].first + core->arm[index].filled;
    most = accepted < most ? accepted : most;
    least = accepted > least ? accepted : least;
  }
  least = campaign->acknowledged[index] > least ? campaign->acknowledged[index] : least;
  if (paid < least || paid > most) {
    world_fail(truth->world, "9: arm %u of campaign %u has been paid for %llu tokens; it has given %llu to %llu", index,
               core->id, (unsigned long long)paid, (unsigned long long)least, (unsigned long long)most);
  }
}

void truth_check_payments(struct truth *truth, const struct cv_broker_campaign *core, const struct campaign *campaign) {
  const struct scenario *scenario = &truth->world->scenario;
  if (scenario->budget_micro == 0) {
    return;
  }
  if (!cv_payroll_is_kept(&core->payroll)) {
    world_fail(truth->world, "9: campaign %u has no payments", core->id);
    return;
  }
  uint64_t paid = 0, promised = 0, tokens = 0;
  for (uint32_t i = 0; i < scenario->arms; i++) {
    if (!truth->world->rolled_back) {
      check_arm(truth, core, campaign, i);
    }
    tokens += core->payroll.tokens[i];
    paid += core->payroll.tokens[i] * scenario->cost_micro[i];
    const struct cv_arm *arm = core->arm == NULL ? NULL : &core->arm[i];
    promised += arm == NULL ? 0 : (uint64_t)(arm->want - arm->filled) * scenario->cost_micro[i];
  }
  if (paid != core->payroll.paid_micro || tokens != core->tokens) {
    world_fail(truth->world, "9: campaign %u has paid %llu micro-units for %llu tokens; its %llu payments come to %llu",
               core->id, (unsigned long long)core->payroll.paid_micro, (unsigned long long)core->tokens,
               (unsigned long long)tokens, (unsigned long long)paid);
  }
  if (paid + promised > scenario->budget_micro) {
    world_fail(truth->world, "9: campaign %u has paid %llu micro-units and promised %llu; its budget is %llu", core->id,
               (unsigned long long)paid, (unsigned long long)promised, (unsigned long long)scenario->budget_micro);
  }
}

void truth_check_paid(struct truth *truth, struct cv_broker *core, uint64_t id) {
  const struct scenario *scenario = &truth->world->scenario;
  const struct campaign *campaign = truth_campaign(truth, id);
  const struct cv_broker_campaign *its = broker_campaign(world_broker(truth->world), (uint32_t)id);
  struct cv_statement *statement;
  if (its == NULL || scenario->budget_micro == 0) {
    return;
  }
  truth_check_payments(truth, its, campaign);
  CV_REQUIRE(cv_broker_statement_of(core, its, &statement) == CV_OK);
  uint64_t paid = 0;
  bool same = statement->arms == scenario->arms && statement->budget_micro == scenario->budget_micro;
  for (uint32_t i = 0; same && i < scenario->arms; i++) {
    const struct cv_account *account = &statement->account[i];
    same = account->worker == scenario->worker[i] && account->hires == its->payroll.tokens[i] &&
           account->paid_micro == account->hires * scenario->cost_micro[i];
    paid += account->paid_micro;
  }
  if (!same || paid != campaign->paid_micro) {
    world_fail(truth->world, "9: the requester received that campaign %llu has paid %llu; its statement says %llu",
               (unsigned long long)id, (unsigned long long)campaign->paid_micro, (unsigned long long)paid);
  }
  cv_broker_statement_free(statement);
  tally(truth->world->rolled_back ? TALLY_PAID_ON : TALLY_PAID);
}

/* The worker keeps the acknowledgement even if the broker forgets it. */
void truth_owe(struct truth *truth, const struct cv_ticket *ticket) {
  const struct scenario *scenario = &truth->world->scenario;
  if (scenario->budget_micro == 0 || ticket->item >= scenario->arms) {
    return;
  }
  struct campaign *campaign = truth_campaign(truth, ticket->campaign);
  campaign->owed_micro += scenario->cost_micro[ticket->item];
  if (campaign->is_void) {
    world_fail(truth->world, "9: a token of campaign %u is acknowledged, which a recovery has ended", ticket->campaign);
  }
  if (campaign->owed_micro > scenario->budget_micro) {
    world_fail(truth->world, "9: campaign %u has acknowledged tokens for %llu micro-units; its budget is %llu",
               ticket->campaign, (unsigned long long)campaign->owed_micro, (unsigned long long)scenario->budget_micro);
  }
}

void truth_check_hire(struct truth *truth, const struct cv_ticket *ticket) {
  const struct scenario *scenario = &truth->world->scenario;
  if (scenario->budget_micro > 0 &&
      (ticket->item >= scenario->arms || scenario->worker[ticket->item] != ticket->worker)) {
    world_fail(truth->world, "9: worker %llu has a place of arm %u", (unsigned long long)ticket->worker, ticket->item);
  }
}
