/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/plan.h"

#include "broker/campaign.h"
#include "broker/epoch.h"
#include "broker/shown.h"

static enum cv_err refuse(struct cv_rank_refused *ret, enum cv_end reason, uint64_t asked, uint64_t left) {
  ret->reason = reason;
  ret->asked = asked;
  ret->left = left;
  return CV_ERR_DENIED;
}

/* Every arm is valid and named once, and so is every opponent. */
static enum cv_err check_names(const struct cv_broker_campaign *campaign, const struct cv_plan *plan,
                               struct cv_why *why) {
  uint8_t seen[CV_ARMS_MAX / 8] = {0};
  if (plan->wants == 0) {
    return cv_fail(why, CV_ERR_DENIED, "plan %llu is empty; expected at least one arm",
                   (unsigned long long)plan->number);
  }
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t arm = plan->want[i].arm;
    if (arm >= campaign->spec.arms) {
      return cv_fail(why, CV_ERR_DENIED, "arm %llu is unknown; expected 1 to %u", (unsigned long long)arm + 1,
                     campaign->spec.arms);
    }
    if (!cv_want_opponent_fits(&plan->want[i], campaign->spec.pairs, campaign->spec.arms)) {
      return campaign->spec.pairs
                 ? cv_fail(why, CV_ERR_DENIED, "arm %u is to be compared with arm %u; expected another one of 1 to %u",
                           arm + 1, plan->want[i].opponent, campaign->spec.arms)
                 : cv_fail(why, CV_ERR_DENIED, "arm %u has an opponent; expected none: the campaign has no pairs",
                           arm + 1);
    }
    if (campaign->arm[arm].is_spent) {
      return cv_fail(why, CV_ERR_DENIED,
                     "arm %u has no data left; expected only arms whose last release has not been made", arm + 1);
    }
    if ((seen[arm / 8] >> (arm % 8) & 1) != 0) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u is named twice; expected each arm once", arm + 1);
    }
    seen[arm / 8] |= (uint8_t)(1U << (arm % 8));
  }
  return CV_OK;
}

/* Every release has at least the operator's smallest number of tokens and at most as many as a plan may ask for. */
static enum cv_err check_sizes(const struct cv_broker_campaign *campaign, const struct cv_plan *plan,
                               struct cv_why *why) {
  const uint64_t *shown = cv_shown_by(campaign, plan);
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    if (shown[i] < campaign->privacy.least_tokens || want->tokens > CV_PLAN_TOKENS_MAX) {
      return cv_fail(why, CV_ERR_DENIED,
                     "%llu tokens of arm %u in one release; expected %u (the smallest release) to %d",
                     (unsigned long long)shown[i], want->arm + 1, campaign->privacy.least_tokens, CV_PLAN_TOKENS_MAX);
    }
  }
  return CV_OK;
}

/* Whether each arm's account has room for its next release; else the amount asked for and left, in micro-epsilon. */
static enum cv_err check_ledger(const struct cv_broker_campaign *campaign, const struct cv_plan *plan,
                                uint64_t *ret_asked, uint64_t *ret_left, struct cv_why *why) {
  for (uint32_t i = 0; i < plan->wants; i++) {
    uint32_t arm = plan->want[i].arm;
    if (cv_mechanism_is_spent(campaign->arm[arm].mechanism)) {
      return cv_fail(why, CV_ERR_DENIED, "arm %u has reached its horizon of %llu releases", arm + 1,
                     (unsigned long long)campaign->privacy.law.horizon);
    }
    uint64_t price = cv_epoch_price(campaign, arm);
    /* Asked here, before the plan's noise is drawn, so that the charge at the end of the epoch cannot fail. */
    if (cv_ledger_ask(&campaign->ledger, arm, price, why) != CV_OK) {
      *ret_asked = price;
      *ret_left = cv_ledger_left(&campaign->ledger, arm);
      return CV_ERR_DENIED;
    }
  }
  return CV_OK;
}

enum cv_err cv_broker_plan_check(const struct cv_broker_campaign *campaign, const struct cv_plan *plan,
                                 struct cv_rank_refused *ret_refused, struct cv_why *why) {
  uint64_t asked = 0;
  /* No epoch is open when a plan arrives (thirdparty.c), so no token is reserved. */
  uint64_t left = campaign->spec.tokens - campaign->tokens;
  for (uint32_t i = 0; i < plan->wants; i++) {
    asked += plan->want[i].tokens;
  }
  /* The order of the checks decides the reason that the campaign ends with. */
  if (check_names(campaign, plan, why) != CV_OK) {
    return refuse(ret_refused, CV_END_REFUSED, asked, left);
  }
  if (check_sizes(campaign, plan, why) != CV_OK) {
    /* A phase larger than every plan that also exceeds the token limit ends the campaign by its token limit. */
    return refuse(ret_refused, asked > CV_PLAN_TOKENS_MAX && asked > left ? CV_END_TOKENS : CV_END_REFUSED, asked,
                  left);
  }
  uint64_t epsilon = asked, rest = left;
  if (check_ledger(campaign, plan, &epsilon, &rest, why) != CV_OK) {
    return refuse(ret_refused, CV_END_LEDGER, epsilon, rest);
  }
  if (campaign->spec.cost_micro != NULL) {
    uint64_t price = cv_payroll_price(&campaign->spec, plan);
    uint64_t money = campaign->spec.budget_micro - campaign->payroll.paid_micro;
    if (price > money) {
      (void)cv_fail(why, CV_ERR_DENIED, "the plan costs %.6f; expected at most %.6f, which is left of %.6f",
                    (double)price / 1e6, (double)money / 1e6, (double)campaign->spec.budget_micro / 1e6);
      return refuse(ret_refused, CV_END_BUDGET, price, money);
    }
  }
  if (asked > left) {
    (void)cv_fail(why, CV_ERR_DENIED, "the plan asks for %llu tokens; expected at most %llu, which are left of %llu",
                  (unsigned long long)asked, (unsigned long long)left, (unsigned long long)campaign->spec.tokens);
    return refuse(ret_refused, CV_END_TOKENS, asked, left);
  }
  /* The plan's places may begin and end inside a chunk; half of the chunks may still be those of the plan before. */
  if (asked / CV_CHUNK_BITS + 2 > campaign->places.most / 2) {
    (void)cv_fail(why, CV_ERR_DENIED, "the plan has %llu places at once; expected fewer", (unsigned long long)asked);
    return refuse(ret_refused, CV_END_REFUSED, asked, left);
  }
  return CV_OK;
}
