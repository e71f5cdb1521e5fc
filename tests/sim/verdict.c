/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what the requesters receive, and of the whole run at its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/cobroker.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"
#include "tests/sim/two.h"

static bool same_standings(const struct cv_standing *a, const struct cv_standing *b, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (!cv_standing_is_same(&a[i], &b[i])) {
      return false;
    }
  }
  return true;
}

static void count_end(enum cv_end end, bool again) {
  static const enum tally which[CV_END_COUNT] = {
      [CV_END_COMPLETE] = TALLY_END_COMPLETE,   [CV_END_TOKENS] = TALLY_END_TOKENS,
      [CV_END_DEADLINE] = TALLY_END_DEADLINE,   [CV_END_IDLE] = TALLY_END_IDLE,
      [CV_END_CANCELLED] = TALLY_END_CANCELLED, [CV_END_LEDGER] = TALLY_END_LEDGER,
      [CV_END_FROZEN] = TALLY_END_FROZEN,       [CV_END_REFUSED] = TALLY_END_REFUSED,
      [CV_END_BUDGET] = TALLY_END_BUDGET,       [CV_END_RECOVERED] = TALLY_END_RECOVERED,
      [CV_END_USED_UP] = TALLY_END_USED_UP,
  };
  if (!again && end != CV_END_NONE) {
    tally(which[end]);
  }
}

/* Whether a plan asks for far too much, or for a smaller release than the operator allows. */
static bool may_be_refused(const struct scenario *scenario) {
  return scenario->greed > 0 || scenario_least(scenario) > 1;
}

void truth_finished(struct truth *truth, const struct cv_finished *finished) {
  struct campaign *campaign = truth_campaign(truth, finished->progress.campaign);
  world_log(truth->world, "requester: campaign %llu is over: %s, %llu tokens",
            (unsigned long long)finished->progress.campaign, cv_end_text(finished->progress.end),
            (unsigned long long)finished->progress.tokens);
  if (campaign->finished && (campaign->end != finished->progress.end || campaign->standings != finished->standings ||
                             !same_standings(campaign->standing, finished->standing, finished->standings))) {
    world_fail(truth->world, "campaign %llu has ended twice, with different ends",
               (unsigned long long)finished->progress.campaign);
  }
  if (campaign->is_purged && !truth->world->rolled_back) {
    world_fail(truth->world, "15: campaign %llu was purged and is present again",
               (unsigned long long)finished->progress.campaign);
  }
  campaign->tokens = finished->progress.tokens;
  count_end(finished->progress.end, campaign->finished);
  campaign->finished = true;
  campaign->end = finished->progress.end;
  campaign->spent_micro = finished->progress.epsilon_spent_micro;
  campaign->paid_micro = finished->progress.paid_micro;
  campaign->standings = finished->standings <= SCENARIO_ARMS ? finished->standings : SCENARIO_ARMS;
  for (uint32_t i = 0; i < campaign->standings; i++) {
    campaign->standing[i] = finished->standing[i];
  }
  const struct scenario *scenario = &truth->world->scenario;
  bool refused = campaign->end == CV_END_REFUSED && scenario->thirdparty_campaigns == 0;
  bool recovered = campaign->end == CV_END_RECOVERED;
  bool froze = campaign->end == CV_END_FROZEN || refused || recovered;
  if (campaign->must_freeze && !froze) {
    world_fail(truth->world, "2: the third-party knew more than the rolled-back broker, and campaign %llu went on: %s",
               (unsigned long long)finished->progress.campaign, cv_end_text(campaign->end));
  }
  bool late = refused && scenario->two && scenario->ending == ENDING_DEADLINE; /* before the co-broker knew of it */
  bool greedy = late || (refused && may_be_refused(scenario)), disagree = truth->world->lied || truth->world->forgot;
  if (campaign->end == CV_END_FROZEN && truth->world->lied && !truth->world->blamed) {
    world_fail(truth->world, "S5: a lie has frozen campaign %llu, and no log says whose",
               (unsigned long long)finished->progress.campaign);
  }
  if (froze && !greedy && !truth->world->rolled_back && !disagree) {
    world_fail(truth->world, "campaign %llu ends as %s", (unsigned long long)finished->progress.campaign,
               cv_end_text(campaign->end));
  }
}

void truth_exported(struct truth *truth, const struct cv_part *part) {
  struct campaign *campaign = truth_campaign(truth, part->campaign);
  bool is_exact = strcmp(truth->world->scenario.mechanism, "none") == 0 &&
                  strcmp(truth->world->scenario.privatizer.name, "none") == 0;
  campaign->exported = (part->first ? 0 : campaign->exported) + part->releases;
  if (part->last && !is_exact && campaign->exported != campaign->releases && !truth->world->rolled_back) {
    world_fail(truth->world, "15: the export of campaign %llu has %zu releases; it made %zu",
               (unsigned long long)part->campaign, campaign->exported, campaign->releases);
  }
  for (size_t i = 0; i < part->releases && !truth->world->rolled_back; i++) {
    uint64_t number = part->release[i].number;
    if (number == 0 || number > campaign->releases ||
        !truth_same_release(&part->release[i], &campaign->release[number - 1])) {
      world_fail(truth->world, "2: the export has another release %llu", (unsigned long long)number);
    }
  }
}

void truth_purging(struct truth *truth, uint64_t id) {
  truth_campaign(truth, id)->purging = true;
}

void truth_purged(struct truth *truth, uint64_t id) {
  truth_campaign(truth, id)->is_purged = true;
  tally(TALLY_PURGED);
}

void truth_gone(struct truth *truth, uint64_t id) {
  if (!truth_campaign(truth, id)->purging && !truth->world->rolled_back) {
    world_fail(truth->world, "15: campaign %llu is reported as purged; no requester has asked for it",
               (unsigned long long)id);
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

/* The calm run's plans and releases: all of them, or, if the campaign was ended early, the first of them. */
static void compare(struct truth *truth, uint64_t id, const struct campaign *campaign, const struct oracle *oracle) {
  struct world *world = truth->world;
  bool was_opened = world->scenario.thirdparty_campaigns == 0 || campaign->standings > 0;
  bool plain = was_opened && campaign->end == oracle->end;
  bool undisturbed = world->scenario.ending == ENDING_PLAIN && world->scenario.thirdparty_campaigns == 0;
  if (undisturbed && !plain) {
    world_fail(world, "7: campaign %llu ends as %s; without faults as %s", (unsigned long long)id,
               cv_end_text(campaign->end), cv_end_text(oracle->end));
  }
  if (campaign->plans > oracle->plans || (plain && campaign->plans != oracle->plans) ||
      (plain && campaign->releases != oracle->releases)) {
    world_fail(world, "7: campaign %llu had %zu plans and %zu releases; without faults it has %zu and %zu",
               (unsigned long long)id, campaign->plans, campaign->releases, oracle->plans, oracle->releases);
    return;
  }
  for (size_t i = 0; i < campaign->plans; i++) {
    if (!truth_same_plan(&campaign->plan[i], &oracle->plan[i])) {
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
    world_fail(world, "7: campaign %llu has another ranking than without faults", (unsigned long long)id);
  }
  if (plain && campaign->spent_micro != oracle->spent_micro) {
    world_fail(world, "7: campaign %llu has spent %llu micro-epsilon; without faults %llu", (unsigned long long)id,
               (unsigned long long)campaign->spent_micro, (unsigned long long)oracle->spent_micro);
  }
}

/* The campaign reached its own end. */
static bool is_plain(const struct scenario *scenario, enum cv_end end) {
  switch (end) {
    case CV_END_COMPLETE:
    case CV_END_TOKENS:
      return true;
    case CV_END_BUDGET:
      return scenario->budget_micro > 0;
    case CV_END_LEDGER:
      return scenario->horizon > 0;
    case CV_END_REFUSED:
      return scenario->thirdparty_campaigns > 0 || may_be_refused(scenario);
    default:
      return false;
  }
}

void truth_end(struct truth *truth) {
  struct world *world = truth->world;
  enum ending ending = world->scenario.ending;
  char path[64];
  (void)snprintf(path, sizeof(path), "/tmp/cv-sim-%d.db", (int)getpid());
  for (uint64_t id = 1; id < truth->campaigns && !world->rolled_back; id++) {
    const struct campaign *campaign = &truth->campaign[id];
    if (world->lied || world->forgot) { /* whatever its end, it costs no more than the campaign */
      continue;
    }
    if (ending == ENDING_PLAIN && !is_plain(&world->scenario, campaign->end)) {
      world_fail(world, "campaign %llu ends as %s", (unsigned long long)id, cv_end_text(campaign->end));
    }
    truth_check_idle(truth, campaign);
    if (world->scenario.noise_seeded) {
      struct oracle oracle;
      oracle_ask(&world->scenario, campaign->seed, &oracle);
      compare(truth, id, campaign, &oracle);
      tally(TALLY_COMPARED);
      oracle_fini(&oracle);
    }
  }
  if (world->cobroker != NULL && world->cobroker->up && !world->forgot) {
    two_flushed(world->two, cobroker_core(world->cobroker));
  }
  const struct party *broker = world_broker(world);
  if (broker != NULL && !world->rolled_back) {
    truth_check_sum_of_accounts(truth, broker_core(broker));
  }
  for (uint64_t id = 1; id < truth->campaigns && broker != NULL; id++) {
    if (truth->campaign[id].finished) {
      truth_check_paid(truth, broker_core(broker), id);
    }
  }
  truth_search(truth);
  thirdparty_replay(world->thirdparty, path);
  tally(TALLY_REPLAYS);
}
