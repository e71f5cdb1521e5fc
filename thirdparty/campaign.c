/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/campaign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mechanisms.h"
#include "common/base/text.h"
#include "proto/codec/chain.h"
#include "thirdparty/policy/tail.h"

static void mark(struct cv_thirdparty_campaign *campaign) {
  if (!campaign->is_dirty) {
    campaign->is_dirty = true;
    campaign->next_dirty = *campaign->dirty;
    *campaign->dirty = campaign;
  }
}

/* Returns the campaign's delta for the next batch, made if need be. The flush fills in its row. */
static enum cv_err change(struct cv_thirdparty_campaign *campaign, struct cv_delta **ret) {
  mark(campaign);
  if (campaign->delta == NULL) {
    struct cv_delta *delta = calloc(1, sizeof(*delta));
    if (delta == NULL) {
      return CV_ERR_NOMEM;
    }
    (void)snprintf(delta->key.broker, sizeof(delta->key.broker), "%s", campaign->broker_name);
    delta->key.campaign = campaign->id;
    campaign->delta = delta;
  }
  *ret = campaign->delta;
  return CV_OK;
}

static void clear_queue(struct cv_thirdparty_campaign *campaign) {
  while (campaign->queue != NULL) {
    struct cv_queued_plan *next = campaign->queue->next;
    *campaign->queued_wants -= campaign->queue->plan.wants;
    free(campaign->queue->plan.want);
    free(campaign->queue);
    campaign->queue = next;
  }
  campaign->queue_end = &campaign->queue;
}

static bool is_accepted(const struct cv_thirdparty_campaign *campaign) {
  return campaign->plan.number == campaign->row.accepted;
}

bool cv_thirdparty_campaign_is_level(const struct cv_thirdparty_campaign *campaign) {
  return campaign->row.accepted >= campaign->expected_plans && campaign->row.releases >= campaign->expected_releases;
}

bool cv_thirdparty_campaign_may_ask(const struct cv_thirdparty_campaign *campaign) {
  return campaign->row.end == CV_END_NONE && !is_accepted(campaign) &&
         campaign->row.accepted >= campaign->expected_plans;
}

void cv_thirdparty_campaign_standings(const struct cv_thirdparty_campaign *campaign, struct cv_standing *ret) {
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    cv_policy_standing(campaign->policy, i, &ret[i]);
  }
}

static enum cv_err store_standings(struct cv_thirdparty_campaign *campaign, struct cv_delta *delta) {
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    struct cv_standing now;
    cv_policy_standing(campaign->policy, i, &now);
    /* Only what changed: with thousands of arms a step settles few of them. */
    if (!cv_standing_is_same(&now, &campaign->standing[i])) {
      CV_TRY(cv_delta_add_standing(delta, &now));
      campaign->contradictions += now.contradicts && !campaign->standing[i].contradicts;
      campaign->standing[i] = now;
    }
  }
  return CV_OK;
}

static enum cv_err finish(struct cv_thirdparty_campaign *campaign, enum cv_end reason) {
  struct cv_delta *delta;
  CV_TRY(change(campaign, &delta));
  cv_policy_close(campaign->policy);
  CV_TRY(store_standings(campaign, delta));
  campaign->row.end = reason;
  if (campaign->row.note[0] == '\0') { /* no refusal of a plan has said more */
    (void)snprintf(campaign->row.note, sizeof(campaign->row.note), "%s", cv_end_usual_why(reason));
  }
  /* Recorded plans that still wait are void: nothing is applied after the end. */
  campaign->due_plan = false;
  campaign->due_result = true;
  clear_queue(campaign);
  return CV_OK;
}

/* Whether the data of an arm without a class are used up. */
static bool is_short_of_data(const struct cv_thirdparty_campaign *campaign) {
  for (uint32_t i = 0; i < campaign->spec.arms; i++) {
    struct cv_standing now;
    cv_policy_standing(campaign->policy, i, &now);
    if (now.held == CV_HELD_USED_UP) {
      return true;
    }
  }
  return false;
}

/* Ends the campaign on a stop or a finished policy, but only once it has all records of the broker. */
static enum cv_err finish_if_over(struct cv_thirdparty_campaign *campaign) {
  if (campaign->row.end != CV_END_NONE || !cv_thirdparty_campaign_is_level(campaign)) {
    return CV_OK;
  }
  if (campaign->stop != CV_END_NONE) {
    return finish(campaign, campaign->stop);
  }
  if (campaign->is_stuck) {
    return finish(campaign, CV_END_USED_UP);
  }
  if (campaign->row.policy_done && campaign->left == 0 && is_accepted(campaign)) {
    return finish(campaign, is_short_of_data(campaign) ? CV_END_USED_UP : CV_END_COMPLETE);
  }
  return CV_OK;
}

/* Makes *plan the current plan and takes ownership of its wants. */
static void set_plan(struct cv_thirdparty_campaign *campaign, struct cv_plan *plan) {
  free(campaign->plan.want);
  campaign->plan = *plan;
  campaign->row.plan = plan->number;
  campaign->left = plan->wants;
  memset(campaign->open_want, 0, campaign->spec.arms * sizeof(campaign->open_want[0]));
  memset(campaign->plays, 0, campaign->spec.arms * sizeof(campaign->plays[0]));
  for (uint32_t i = 0; i < plan->wants; i++) {
    /* 0 stands for an arm that the plan does not name, or whose release has come. */
    campaign->open_want[plan->want[i].arm] = i + 1;
    campaign->plays[plan->want[i].arm] = plan->want[i].tokens;
  }
}

/* Makes a copy of *plan the current plan and stores it. A recorded plan counts as accepted. */
static enum cv_err next_plan(struct cv_thirdparty_campaign *campaign, const struct cv_plan *plan, bool recorded) {
  struct cv_delta *delta;
  struct cv_plan copy;
  CV_TRY(change(campaign, &delta));
  /* One copy for the batch and one for the campaign, which may replace its plan before the batch is stored. */
  CV_TRY(cv_delta_add_plan(delta, plan, recorded));
  CV_TRY(cv_plan_copy(plan, &copy));
  set_plan(campaign, &copy);
  campaign->due_plan = !recorded;
  /* What the broker has on record it has accepted: no PlanAccepted follows. */
  if (recorded) {
    campaign->row.accepted = plan->number;
    CV_TRY(cv_chain_plan(&campaign->row.plans_hash, plan, campaign->digest));
  }
  return CV_OK;
}

static enum cv_err store_step(struct cv_thirdparty_campaign *campaign, struct cv_delta *delta) {
  for (size_t i = 0; i < campaign->step.decisions; i++) {
    struct cv_stored_decision stored = {.number = ++campaign->row.decisions,
                                        .plan = campaign->row.plan,
                                        .release = campaign->row.releases,
                                        .decision = campaign->step.decision[i]};
    CV_TRY(cv_delta_add_decision(delta, &stored));
  }
  /* A second step in the same batch replaces the first one's state; decisions and plans of both are kept. */
  cv_buf_clear(&delta->state);
  cv_policy_save(campaign->policy, &delta->state);
  delta->has_state = true;
  campaign->row.state_plan = campaign->row.plan;
  CV_TRY(cv_buf_ok(&delta->state) ? CV_OK : CV_ERR_NOMEM);
  return store_standings(campaign, delta);
}

/* Continues with the first queued plan of the broker instead of the policy's own. */
static enum cv_err adopt_from_queue(struct cv_thirdparty_campaign *campaign) {
  struct cv_queued_plan *head = campaign->queue;
  CV_TRY(next_plan(campaign, &head->plan, true));
  campaign->queue = head->next;
  if (campaign->queue == NULL) {
    campaign->queue_end = &campaign->queue;
  }
  *campaign->queued_wants -= head->plan.wants;
  free(head->plan.want);
  free(head);
  return CV_OK;
}

/* Makes the next step, after the last release of the plan (or before the first plan). */
static enum cv_err advance(struct cv_thirdparty_campaign *campaign) {
  struct cv_delta *delta;
  CV_TRY(change(campaign, &delta));
  CV_TRY(cv_policy_step(campaign->policy, campaign->row.plan + 1, &campaign->step));
  campaign->row.policy_done = campaign->step.done;
  CV_TRY(store_step(campaign, delta));
  /* A recorded plan goes before the policy's own plan: the broker has already run it. */
  if (campaign->queue != NULL) {
    return adopt_from_queue(campaign);
  }
  if (!campaign->step.done) {
    struct cv_plan plan = {
        .number = campaign->row.plan + 1, .wants = (uint32_t)campaign->step.wants, .want = campaign->step.want};
    return next_plan(campaign, &plan, false);
  }
  return finish_if_over(campaign);
}

/* Allocates the arrays and the policy of an open campaign. */
static enum cv_err equip(struct cv_thirdparty_campaign *campaign, const struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(cv_spec_copy(spec, &campaign->spec));
  campaign->standing = calloc(spec->arms, sizeof(campaign->standing[0]));
  campaign->open_want = calloc(spec->arms, sizeof(campaign->open_want[0]));
  campaign->plays = calloc(spec->arms, sizeof(campaign->plays[0]));
  if (campaign->standing == NULL || campaign->open_want == NULL || campaign->plays == NULL) {
    return CV_ERR_NOMEM;
  }
  CV_TRY(cv_neighbours_init(&campaign->spec, &campaign->graph));
  enum cv_err err = cv_policy_new(&campaign->spec, campaign->seed, &campaign->policy);
  if (err != CV_OK && err != CV_ERR_NOMEM) {
    return cv_fail(why, err, "policy %s cannot work with privatizer %s", spec->policy.name, spec->privatizer.name);
  }
  return err;
}

enum cv_err cv_thirdparty_campaign_create(const struct cv_spec *spec, const struct cv_digest *spec_digest,
                                          uint64_t seed, struct cv_thirdparty_campaign *campaign, struct cv_why *why) {
  struct cv_delta *delta;
  campaign->seed = seed;
  campaign->spec_digest = *spec_digest;
  campaign->queue_end = &campaign->queue;
  CV_TRY(equip(campaign, spec, why));
  CV_TRY(change(campaign, &delta));
  delta->created = true;
  delta->seed = seed;
  delta->spec_digest = *spec_digest;
  CV_TRY(cv_spec_copy(spec, &delta->spec));
  return advance(campaign);
}

static enum cv_err restore_plan(const struct cv_stored_campaign *stored, struct cv_thirdparty_campaign *campaign,
                                struct cv_why *why) {
  struct cv_reader reader = cv_reader_over(stored->state.data, stored->state.len);
  enum cv_err err = cv_policy_load(campaign->policy, &reader);
  if (err != CV_OK) {
    return cv_fail(why, err, "the policy's state is damaged or of another version");
  }
  /* Set `standing` before the releases below are applied: the store has standings as of the last step. */
  cv_thirdparty_campaign_standings(campaign, campaign->standing);
  struct cv_plan plan;
  CV_TRY(cv_plan_copy(&stored->plan, &plan));
  set_plan(campaign, &plan);
  /* The stored state already includes this plan's releases: nothing of it is open. */
  if (stored->row.state_plan == plan.number) {
    memset(campaign->open_want, 0, campaign->spec.arms * sizeof(campaign->open_want[0]));
    campaign->left = 0;
  }
  for (size_t i = 0; i < stored->releases; i++) {
    const struct cv_release *release = &stored->release[i];
    if (release->arm >= campaign->spec.arms || campaign->open_want[release->arm] == 0 ||
        !cv_release_is_whole(release) || !cv_tail_is_valid(&release->noise)) {
      return cv_fail(why, CV_ERR_DAMAGED, "release %" PRIu64 " does not fit plan %" PRIu64, release->number,
                     plan.number);
    }
    campaign->is_stuck = !cv_policy_take(campaign->policy, release) || campaign->is_stuck;
    campaign->open_want[release->arm] = 0;
    campaign->left--;
  }
  return CV_OK;
}

/* The plan after the last accepted one may wait for its acceptance. The state is as of the last plan, if all of it is
 * released and the policy asks for no more, or as of the one before, whose step made the last plan. */
static bool row_is_plausible(const struct cv_stored_campaign *stored) {
  const struct cv_thirdparty_campaign_row *row = &stored->row;
  bool plan_fits = row->accepted == row->plan || row->accepted + 1 == row->plan;
  for (uint32_t i = 0; i < stored->plan.wants; i++) {
    plan_fits = plan_fits && stored->plan.want[i].arm < stored->spec.arms &&
                cv_want_opponent_fits(&stored->plan.want[i], stored->spec.pairs, stored->spec.arms);
  }
  bool state_fits = row->state_plan == row->plan || row->state_plan + 1 == row->plan;
  return plan_fits && state_fits && row->plan >= 1 && stored->plan.number == row->plan && row->end < CV_END_COUNT;
}

enum cv_err cv_thirdparty_campaign_restore(const struct cv_stored_campaign *stored,
                                           struct cv_thirdparty_campaign *campaign, struct cv_why *why) {
  campaign->seed = stored->seed;
  campaign->spec_digest = stored->spec_digest;
  campaign->row = stored->row;
  campaign->queue_end = &campaign->queue;
  if (cv_spec_check(&stored->spec, why) != CV_OK || !row_is_plausible(stored)) {
    return cv_fail(why, CV_ERR_DAMAGED, "the stored spec or the numbers of plans do not fit together");
  }
  CV_TRY(equip(campaign, &stored->spec, why));
  CV_TRY(restore_plan(stored, campaign, why));
  if (stored->row.end != CV_END_NONE) {
    cv_thirdparty_campaign_standings(campaign, campaign->standing);
  }
  return CV_OK;
}

void cv_thirdparty_campaign_fini(struct cv_thirdparty_campaign *campaign) {
  clear_queue(campaign);
  cv_policy_free(campaign->policy);
  cv_policy_step_fini(&campaign->step);
  cv_spec_fini(&campaign->spec);
  free(campaign->standing);
  free(campaign->open_want);
  free(campaign->plays);
  cv_neighbours_fini(&campaign->graph);
  free(campaign->plan.want);
  cv_delta_free(campaign->delta);
}

enum cv_err cv_thirdparty_campaign_open(struct cv_thirdparty_campaign *campaign, const struct cv_position *position,
                                        enum cv_end stop, struct cv_why *why) {
  /* Only the policy can know that a ranking is complete. */
  if (stop == CV_END_COMPLETE || stop >= CV_END_COUNT) {
    return cv_fail(why, CV_ERR_INVALID,
                   "campaign %" PRIu64 " was stopped for a reason that only the third-party may give", campaign->id);
  }
  struct cv_delta *delta;
  mark(campaign);
  /* Opened reports this side's position, so everything in that position must be stored first. */
  CV_TRY(campaign->accepted_unstored ? change(campaign, &delta) : CV_OK);
  clear_queue(campaign);
  campaign->due_opened = true;
  campaign->due_plan = !is_accepted(campaign);
  campaign->due_result = campaign->row.end != CV_END_NONE;
  /* Until this side has these, it neither asks for more nor ends: what it would decide now, the broker has already gone
   * past. */
  campaign->expected_plans = position->plans;
  campaign->expected_releases = position->releases;
  if (stop == CV_END_NONE) {
    return finish_if_over(campaign);
  }
  return cv_thirdparty_campaign_stop(campaign, stop, why);
}

static enum cv_err check_plan(const struct cv_thirdparty_campaign *campaign, const struct cv_plan *plan,
                              struct cv_why *why) {
  const uint32_t arms = campaign->spec.arms;
  uint8_t *seen = calloc(arms, 1);
  if (seen == NULL) {
    return CV_ERR_NOMEM;
  }
  bool fits = plan->wants >= 1 && plan->wants <= arms;
  for (uint32_t i = 0; fits && i < plan->wants; i++) {
    fits = plan->want[i].arm < arms && !seen[plan->want[i].arm] &&
           (plan->want[i].tokens >= 1 || campaign->spec.edges > 0) &&
           cv_want_opponent_fits(&plan->want[i], campaign->spec.pairs, arms);
    if (fits) {
      seen[plan->want[i].arm] = 1;
    }
  }
  free(seen);
  return fits ? CV_OK
              : cv_fail(why, CV_ERR_INVALID,
                        "recorded plan %" PRIu64 " of campaign %" PRIu64
                        " is empty, or has an arm twice, an arm or an opponent out of range, or an arm without tokens",
                        plan->number, campaign->id);
}

static enum cv_err enqueue(struct cv_thirdparty_campaign *campaign, const struct cv_plan *plan, size_t limit,
                           struct cv_why *why) {
  /* Counted over all campaigns of the broker: many small queues cost as much memory as a large one. */
  if (*campaign->queued_wants + plan->wants > limit) {
    return cv_fail(why, CV_ERR_LIMIT, "recorded plans run more than %zu wants ahead of their releases", limit);
  }
  struct cv_queued_plan *queued = calloc(1, sizeof(*queued));
  if (queued == NULL || cv_plan_copy(plan, &queued->plan) != CV_OK) {
    free(queued);
    return CV_ERR_NOMEM;
  }
  *campaign->queued_wants += plan->wants;
  *campaign->queue_end = queued;
  campaign->queue_end = &queued->next;
  campaign->queue_last = plan->number;
  return CV_OK;
}

/*
 * The broker accepted the last plan. The next commit stores the acceptance; nothing depends on it before, since a
 * broker states its plans again on each connection. A round therefore costs one commit, with its releases, and not two.
 */
static enum cv_err take_accepted(struct cv_thirdparty_campaign *campaign) {
  campaign->row.accepted = campaign->plan.number;
  campaign->due_plan = false;
  campaign->accepted_unstored = true;
  CV_TRY(cv_chain_plan(&campaign->row.plans_hash, &campaign->plan, campaign->digest));
  /* Unless an Opened is due: it will report the acceptance. */
  struct cv_delta *delta;
  return campaign->due_opened ? change(campaign, &delta) : CV_OK;
}

enum cv_err cv_thirdparty_campaign_record(struct cv_thirdparty_campaign *campaign, const struct cv_plan *plan,
                                          size_t limit, struct cv_why *why) {
  uint64_t last = campaign->queue != NULL ? campaign->queue_last : campaign->row.accepted;
  if (campaign->row.end != CV_END_NONE || plan->number <= last) {
    return CV_OK;
  }
  if (plan->number > last + 1) {
    return cv_fail(why, CV_ERR_STATE, "recorded plan %" PRIu64 " of campaign %" PRIu64 " follows plan %" PRIu64,
                   plan->number, campaign->id, last);
  }
  CV_TRY(check_plan(campaign, plan, why));
  /* The broker's record equals the own plan: only its PlanAccepted was lost. */
  if (plan->number == campaign->plan.number && cv_plan_asks_same(plan, &campaign->plan)) {
    CV_TRY(take_accepted(campaign));
    return finish_if_over(campaign);
  }
  if (is_accepted(campaign) && campaign->left > 0) {
    return enqueue(campaign, plan, limit, why);
  }
  CV_TRY(next_plan(campaign, plan, true));
  return finish_if_over(campaign);
}

/*
 * True if a release may sum this number of tokens: all tokens of the arm, or those of this plan alone, or, with a
 * mechanism that repeats releases, any number not below that of the last release. The last release of an arm may lack
 * any number of those that the plan asked for.
 */
static bool may_sum(const struct cv_spec *spec, const struct cv_release *release, uint64_t asked, uint64_t before) {
  uint64_t tokens = release->tokens;
  bool repeats = cv_traits_repeats(cv_traits_of(spec->mechanism.name));
  if (release->last && spec->edges == 0) {
    return tokens <= (repeats ? spec->tokens : before + asked);
  }
  if (tokens == asked || tokens == before + asked) {
    return true;
  }
  if (spec->edges > 0) { /* standings count plays, and a play shows neighbours too: there are more tokens than plays */
    return tokens > asked && tokens <= spec->tokens;
  }
  return repeats && before > 0 && tokens >= before && tokens <= spec->tokens;
}

static enum cv_err check_release(const struct cv_thirdparty_campaign *campaign, const struct cv_release *release,
                                 struct cv_why *why) {
  const uint64_t id = campaign->id, number = release->number;
  /* Applied out of order, a release could step the policy before an earlier one has come. */
  if (number > campaign->row.releases + 1) {
    return cv_fail(why, CV_ERR_STATE, "release %" PRIu64 " of campaign %" PRIu64 " follows release %" PRIu64, number,
                   id, campaign->row.releases);
  }
  if (release->plan != campaign->plan.number || !is_accepted(campaign)) {
    return cv_fail(why, CV_ERR_STATE,
                   "release %" PRIu64 " of campaign %" PRIu64 " is for plan %" PRIu64 "; the last accepted is %" PRIu64,
                   number, id, release->plan, campaign->row.accepted);
  }
  uint32_t open = release->arm < campaign->spec.arms ? campaign->open_want[release->arm] : 0;
  if (open == 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "release %" PRIu64 " of campaign %" PRIu64 " is for arm %" PRIu64 ", which plan %" PRIu64
                   " does not ask for, or not again",
                   number, id, (uint64_t)release->arm + 1, release->plan);
  }
  struct cv_standing before;
  cv_policy_standing(campaign->policy, release->arm, &before);
  uint64_t asked = cv_neighbours_shown(&campaign->graph, campaign->plays, release->arm);
  if (!may_sum(&campaign->spec, release, asked, before.tokens)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "release %" PRIu64 " of campaign %" PRIu64 " sums %" PRIu64 " tokens; expected %" PRIu64
                   " or %" PRIu64,
                   number, id, release->tokens, asked, before.tokens + asked);
  }
  /* With less noise stated than there is the radii would be too small, and decisions wrong without a trace. */
  bool has_noise = cv_spec_has_noise(&campaign->spec) && release->tokens > 0;
  if (!cv_tail_is_valid(&release->noise) || (release->noise.groups > 0) != has_noise ||
      !cv_noise_is_of(&release->noise, campaign->spec.brokers) || (release->tokens == 0 && release->noisy_sum != 0)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "release %" PRIu64 " of campaign %" PRIu64 " has noise that mechanism %s does not add", number, id,
                   campaign->spec.mechanism.name);
  }
  return CV_OK;
}

enum cv_err cv_thirdparty_campaign_release(struct cv_thirdparty_campaign *campaign, const struct cv_release *release,
                                           struct cv_why *why) {
  struct cv_delta *delta;
  /* A release that came before, or after the end, is acknowledged again but not applied. */
  if (campaign->row.end != CV_END_NONE || release->number <= campaign->row.releases) {
    campaign->due_ack = true;
    mark(campaign);
    return CV_OK;
  }
  /* From here to the end all of it is one commit: the release, what the policy makes of it, and the next plan. */
  CV_TRY(check_release(campaign, release, why));
  CV_TRY(change(campaign, &delta));
  CV_TRY(cv_delta_add_release(delta, release));
  campaign->is_stuck = !cv_policy_take(campaign->policy, release) || campaign->is_stuck;
  cv_chain_release(&campaign->row.releases_hash, release, campaign->digest);
  campaign->row.releases++;
  campaign->open_want[release->arm] = 0;
  campaign->left--;
  campaign->due_ack = true;
  if (campaign->left == 0 && !campaign->is_stuck) {
    CV_TRY(advance(campaign));
  }
  return finish_if_over(campaign);
}

enum cv_err cv_thirdparty_campaign_accept(struct cv_thirdparty_campaign *campaign, uint64_t plan, struct cv_why *why) {
  /* The broker repeats an acceptance that it cannot know to have arrived. */
  if (plan <= campaign->row.accepted) {
    return CV_OK;
  }
  if (plan != campaign->row.plan) {
    return cv_fail(why, CV_ERR_STATE, "plan %" PRIu64 " of campaign %" PRIu64 " was accepted; the last one is %" PRIu64,
                   plan, campaign->id, campaign->row.plan);
  }
  return take_accepted(campaign);
}

enum cv_err cv_thirdparty_campaign_refuse(struct cv_thirdparty_campaign *campaign,
                                          const struct cv_rank_refused *refused, struct cv_why *why) {
  if (campaign->row.end != CV_END_NONE) {
    return CV_OK;
  }
  /* In particular no refusal may end a campaign as complete. */
  if (refused->plan != campaign->row.plan || is_accepted(campaign) || refused->reason == CV_END_NONE ||
      refused->reason == CV_END_COMPLETE || refused->reason >= CV_END_COUNT) {
    return cv_fail(why, CV_ERR_STATE,
                   "plan %" PRIu64 " of campaign %" PRIu64
                   " was refused after it was accepted, or for a reason that "
                   "refuses no plan",
                   refused->plan, campaign->id);
  }
  cv_text_print(campaign->row.note, sizeof(campaign->row.note),
                "plan %" PRIu64 " refused: asked %" PRIu64 ", left %" PRIu64 "%s%.120s", refused->plan, refused->asked,
                refused->left, refused->why != NULL ? ", " : "", refused->why != NULL ? refused->why : "");
  return finish(campaign, refused->reason);
}

enum cv_err cv_thirdparty_campaign_stop(struct cv_thirdparty_campaign *campaign, enum cv_end reason,
                                        struct cv_why *why) {
  if (campaign->row.end != CV_END_NONE) {
    return CV_OK;
  }
  if (reason == CV_END_NONE || reason == CV_END_COMPLETE || reason >= CV_END_COUNT) {
    return cv_fail(why, CV_ERR_INVALID, "campaign %" PRIu64 " was stopped without a valid reason", campaign->id);
  }
  campaign->stop = reason;
  /* End a frozen campaign at once: its missing releases may never come. */
  return reason == CV_END_FROZEN ? finish(campaign, reason) : finish_if_over(campaign);
}

enum cv_err cv_thirdparty_campaign_close(struct cv_thirdparty_campaign *campaign) {
  struct cv_delta *delta;
  if (campaign->row.end == CV_END_NONE) {
    CV_TRY(finish(campaign, CV_END_CANCELLED));
    (void)snprintf(campaign->row.note, sizeof(campaign->row.note), "closed by the broker before there was a result");
  }
  CV_TRY(change(campaign, &delta));
  /* Stored although nothing is sent: otherwise the next start would load and continue the campaign. */
  campaign->row.closed = true;
  campaign->due_opened = campaign->due_ack = campaign->due_plan = campaign->due_result = false;
  return CV_OK;
}
