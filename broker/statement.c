/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/statement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admission.h"
#include "broker/campaign.h"
#include "broker/state.h"

void cv_broker_statement_free(struct cv_statement *statement) {
  if (statement != NULL) {
    free(statement->account);
    free(statement);
  }
}

static enum cv_err make(const struct cv_broker *broker, const struct cv_spec *spec, const struct cv_privacy *privacy,
                        struct cv_statement **ret) {
  struct cv_statement *statement = calloc(1, sizeof(*statement));
  struct cv_account *account = calloc(spec->arms, sizeof(*account));
  if (statement == NULL || account == NULL) {
    free(statement);
    free(account);
    return CV_ERR_NOMEM;
  }
  *statement = (struct cv_statement){.is_exact = privacy->is_exact,
                                     .epsilon_micro = cv_privacy_limit_micro(privacy),
                                     .tokens_per_worker = spec->tokens_per_worker,
                                     .worker_epsilon_micro = cv_privacy_worker_micro(privacy, spec),
                                     .lifetime_epsilon_micro = broker->config.limits.worker_epsilon_micro,
                                     .delta_pico = cv_privacy_delta_pico(privacy),
                                     .release_tokens = privacy->least_tokens,
                                     .floor_micro = broker->accounts.floor_micro,
                                     .budget_micro = spec->budget_micro,
                                     .arms = spec->arms,
                                     .account = account};
  for (uint32_t i = 0; spec->worker != NULL && i < spec->arms; i++) {
    account[i].worker = spec->worker[i];
  }
  memcpy(statement->name, spec->name, sizeof(statement->name));
  memcpy(statement->mechanism, spec->mechanism.name, sizeof(statement->mechanism));
  memcpy(statement->privatizer, spec->privatizer.name, sizeof(statement->privatizer));
  (void)snprintf(statement->guarantee, sizeof(statement->guarantee), "%s", cv_privacy_guarantee(privacy));
  *ret = statement;
  return CV_OK;
}

enum cv_err cv_broker_statement_of(struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                   struct cv_statement **ret) {
  struct cv_statement *statement;
  CV_TRY(make(broker, &campaign->spec, &campaign->privacy, &statement));
  statement->campaign = campaign->id;
  statement->end = campaign->end;
  memcpy(statement->why, campaign->why, sizeof(statement->why));
  /* From the ledger, not from the releases: it also has what a recovery charged for releases that are lost. */
  for (uint32_t i = 0; i < campaign->ledger.arms; i++) {
    statement->account[i].spent_micro = campaign->ledger.arm[i].spent_micro;
    statement->account[i].lost_micro = campaign->ledger.arm[i].lost_micro;
  }
  for (uint32_t i = 0; i < campaign->payroll.arms && cv_payroll_is_kept(&campaign->payroll); i++) {
    statement->account[i].hires = campaign->payroll.tokens[i];
    statement->account[i].paid_micro = campaign->payroll.tokens[i] * campaign->spec.cost_micro[i];
  }
  for (size_t i = 0; i < campaign->releases; i++) {
    const struct cv_broker_release *row = &campaign->release[i];
    struct cv_account *account = &statement->account[row->arm];
    /* A release that covers all items includes the tokens of the previous ones. */
    if (row->nth == 0) { /* empty: nothing was charged */
      continue;
    }
    bool is_prefix = cv_mechanism_cover(&campaign->privacy.law, row->nth) != CV_COVER_ITEM;
    account->releases++;
    account->tokens = row->tokens + (is_prefix ? 0 : account->tokens);
  }
  *ret = statement;
  return CV_OK;
}

enum cv_err cv_broker_statement_plan(struct cv_broker *broker, const struct cv_spec *spec, const struct cv_gold *gold,
                                     struct cv_statement **ret, struct cv_why *why) {
  /* The same gate as for a submission: a campaign that would be refused gets the reason instead of a price. */
  struct cv_spec completed = *spec;
  CV_TRY(cv_admission_check(broker, &completed, gold, why));
  struct cv_privacy privacy;
  CV_TRY(cv_privacy_init(&completed, &privacy, why));
  cv_privacy_add_cost(&privacy, gold->epsilon_micro);
  return make(broker, spec, &privacy, ret);
}
