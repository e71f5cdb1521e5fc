/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/replay.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "thirdparty/policy/tail.h"

struct cv_replay {
  struct cv_spec spec; /* shallow copy: the names are not used */
  struct cv_policy *policy;
  struct cv_policy_step step; /* the last step */
  size_t decisions_seen;      /* decisions of the step compared so far */
  bool with_decisions;
  struct cv_standing *after_step; /* per arm: standing after the last step */
  bool *open_want;                /* per arm: asked for and not released */
  uint64_t plan;
  uint32_t left;
  bool is_stuck; /* the policy cannot go on without an arm whose data are used up */
  struct cv_replay_verdict verdict;
};

static void disagree(struct cv_replay *replay, const char *fmt, ...) CV_PRINTF(2, 3);
static void disagree(struct cv_replay *replay, const char *fmt, ...) {
  /* Only the first disagreement is told: the ones after it mostly follow from it. */
  if (replay->verdict.agrees) {
    replay->verdict.agrees = false;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(replay->verdict.first.text, sizeof(replay->verdict.first.text), fmt, args);
    va_end(args);
  }
}

static const char *verb(enum cv_decision_kind kind) {
  return kind == CV_DECISION_SETTLE ? "settled in" : "removed from";
}

/* True if equal up to rounding: the libm of another machine may differ in the last digits. */
static bool is_near(double a, double b) {
  return a == b || fabs(a - b) <= 1e-9 * fmax(1, fmax(fabs(a), fabs(b)));
}

static enum cv_err make_step(struct cv_replay *replay) {
  CV_TRY(cv_policy_step(replay->policy, replay->plan + 1, &replay->step));
  replay->decisions_seen = 0;
  for (uint32_t i = 0; i < replay->spec.arms; i++) {
    cv_policy_standing(replay->policy, i, &replay->after_step[i]);
  }
  return CV_OK;
}

static enum cv_err set_up(struct cv_replay *replay, uint64_t seed, struct cv_why *why) {
  const struct cv_param *bad;
  CV_TRY(cv_spec_check(&replay->spec, why));
  CV_TRY(cv_policy_check(&replay->spec.policy, &bad, why));
  CV_TRY(cv_policy_fits(&replay->spec, why));
  enum cv_err err = cv_policy_new(&replay->spec, seed, &replay->policy);
  if (err != CV_OK) {
    return cv_fail(why, err, "policy %s cannot be run on this campaign: %s", replay->spec.policy.name,
                   cv_err_text(err));
  }
  replay->after_step = calloc(replay->spec.arms, sizeof(*replay->after_step));
  replay->open_want = calloc(replay->spec.arms, sizeof(*replay->open_want));
  /* The first plan comes from a step before any release. */
  if (replay->after_step == NULL || replay->open_want == NULL || make_step(replay) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  return CV_OK;
}

enum cv_err cv_replay_new(const struct cv_spec *spec, uint64_t seed, bool with_decisions, struct cv_replay **ret,
                          struct cv_why *why) {
  struct cv_replay *replay = calloc(1, sizeof(*replay));
  if (replay == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  replay->spec = *spec;
  replay->spec.names = NULL;
  replay->with_decisions = with_decisions;
  replay->verdict.agrees = true;
  enum cv_err err = set_up(replay, seed, why);
  if (err != CV_OK) {
    cv_replay_free(replay);
    return err;
  }
  *ret = replay;
  return CV_OK;
}

void cv_replay_free(struct cv_replay *replay) {
  if (replay != NULL) {
    cv_policy_free(replay->policy);
    cv_policy_step_fini(&replay->step);
    free(replay->after_step);
    free(replay->open_want);
    free(replay);
  }
}

/* Call at the next plan or the end: recomputed decisions that were not fed are missing from the records. */
static void expect_no_more_decisions(struct cv_replay *replay) {
  if (replay->with_decisions && replay->decisions_seen < replay->step.decisions) {
    const struct cv_decision *missing = &replay->step.decision[replay->decisions_seen];
    disagree(replay, "after plan %" PRIu64 ": no decision on record; recomputed: arm %" PRIu32 " %s class %" PRIu32,
             replay->plan, missing->arm + 1, verb(missing->kind), missing->rank_class);
  }
}

struct opponent_text {
  char text[32];
};

static struct opponent_text opponent_text(const struct cv_want *want) {
  struct opponent_text said = {.text = "drawn arms"};
  if (want->opponent > 0) {
    (void)snprintf(said.text, sizeof(said.text), "arm %" PRIu32, want->opponent);
  }
  return said;
}

static void compare_wants(struct cv_replay *replay, const struct cv_plan *plan) {
  if (replay->is_stuck) {
    disagree(replay,
             "plan %" PRIu64
             " is on record; recomputed: the policy could not go on without the arm whose data "
             "were used up in plan %" PRIu64,
             plan->number, replay->plan);
  } else if (replay->step.done) {
    disagree(replay, "plan %" PRIu64 " is on record; recomputed: nothing was left to ask after plan %" PRIu64,
             plan->number, replay->plan);
  } else if (plan->wants != replay->step.wants) {
    disagree(replay, "plan %" PRIu64 " asks for %" PRIu32 " arms; recomputed: %zu", plan->number, plan->wants,
             replay->step.wants);
  }
  for (uint32_t i = 0; i < plan->wants && i < replay->step.wants; i++) {
    const struct cv_want *stored = &plan->want[i], *mine = &replay->step.want[i];
    if (stored->opponent != mine->opponent) {
      disagree(replay, "plan %" PRIu64 " compares arm %" PRIu32 " with %s; recomputed: %s", plan->number,
               stored->arm + 1, opponent_text(stored).text, opponent_text(mine).text);
    }
    if (stored->arm != mine->arm || stored->tokens != mine->tokens) {
      disagree(replay,
               "plan %" PRIu64 " asks for %" PRIu32 " tokens of arm %" PRIu32 "; recomputed: %" PRIu32
               " tokens of arm %" PRIu32,
               plan->number, stored->tokens, stored->arm + 1, mine->tokens, mine->arm + 1);
    }
  }
}

/* Continues with the recorded plan, also if it differs, so that its releases can be compared. */
static void take_plan(struct cv_replay *replay, const struct cv_plan *plan) {
  replay->plan = plan->number;
  replay->left = 0;
  memset(replay->open_want, 0, replay->spec.arms * sizeof(replay->open_want[0]));
  for (uint32_t i = 0; i < plan->wants; i++) {
    const struct cv_want *want = &plan->want[i];
    if (want->arm >= replay->spec.arms || (want->tokens == 0 && replay->spec.edges == 0) ||
        replay->open_want[want->arm] || !cv_want_opponent_fits(want, replay->spec.pairs, replay->spec.arms)) {
      disagree(replay,
               "plan %" PRIu64 " has arm %" PRIu64 " twice, out of range, without tokens or with a wrong opponent",
               plan->number, (uint64_t)want->arm + 1); /* skipped, so that `left` counts each arm once */
      continue;
    }
    replay->open_want[want->arm] = true;
    replay->left++;
  }
}

enum cv_err cv_replay_plan(struct cv_replay *replay, const struct cv_plan *plan) {
  replay->verdict.plans++;
  if (!replay->verdict.agrees) {
    return CV_OK;
  }
  expect_no_more_decisions(replay);
  if (plan->number != replay->plan + 1 || replay->left > 0) {
    disagree(replay, "plan %" PRIu64 " follows plan %" PRIu64 ", of which %" PRIu32 " releases are missing",
             plan->number, replay->plan, replay->left);
    return CV_OK;
  }
  compare_wants(replay, plan);
  take_plan(replay, plan);
  return CV_OK;
}

static bool release_fits(struct cv_replay *replay, const struct cv_release *release) {
  if (release->number != replay->verdict.releases) {
    disagree(replay, "release %" PRIu64 " is on record where release %" PRIu64 " is expected", release->number,
             replay->verdict.releases);
  } else if (release->plan != replay->plan || release->arm >= replay->spec.arms || !replay->open_want[release->arm]) {
    disagree(replay, "release %" PRIu64 " is for arm %" PRIu64 ", which plan %" PRIu64 " does not ask for",
             release->number, (uint64_t)release->arm + 1, replay->plan);
  } else if (!cv_release_is_whole(release) || !cv_tail_is_valid(&release->noise)) {
    disagree(replay, "release %" PRIu64 " has no tokens or impossible noise", release->number);
  }
  return replay->verdict.agrees;
}

enum cv_err cv_replay_release(struct cv_replay *replay, const struct cv_release *release) {
  replay->verdict.releases++;
  if (!replay->verdict.agrees || !release_fits(replay, release)) {
    return CV_OK;
  }
  replay->is_stuck = !cv_policy_take(replay->policy, release) || replay->is_stuck;
  replay->open_want[release->arm] = false;
  replay->left--;
  /* The same moment as in the third-party: after the last release of a plan. */
  return replay->left == 0 && !replay->is_stuck ? make_step(replay) : CV_OK;
}

void cv_replay_decision(struct cv_replay *replay, const struct cv_decision *stored) {
  replay->verdict.decisions++;
  if (!replay->verdict.agrees) {
    return;
  }
  if (replay->left > 0 || replay->decisions_seen >= replay->step.decisions) {
    disagree(replay,
             "decision %" PRIu64 " is on record (arm %" PRIu32 " %s class %" PRIu32
             "); recomputed: none after plan %" PRIu64,
             replay->verdict.decisions, stored->arm + 1, verb(stored->kind), stored->rank_class, replay->plan);
    return;
  }
  const struct cv_decision *mine = &replay->step.decision[replay->decisions_seen++];
  if (stored->kind != mine->kind || stored->arm != mine->arm || stored->rank_class != mine->rank_class ||
      stored->tokens != mine->tokens || !is_near(stored->mean, mine->mean) || !is_near(stored->radius, mine->radius) ||
      !is_near(stored->reference, mine->reference)) {
    disagree(replay,
             "decision %" PRIu64 ": arm %" PRIu32 " %s class %" PRIu32
             " (mean %.9g, radius %.9g, against %.9g, %" PRIu64 " tokens); recomputed: arm %" PRIu32
             " %s class %" PRIu32 " (mean %.9g, radius %.9g, against %.9g, %" PRIu64 " tokens)",
             replay->verdict.decisions, stored->arm + 1, verb(stored->kind), stored->rank_class, stored->mean,
             stored->radius, stored->reference, stored->tokens, mine->arm + 1, verb(mine->kind), mine->rank_class,
             mine->mean, mine->radius, mine->reference, mine->tokens);
  }
}

static void compare_standing(struct cv_replay *replay, const struct cv_standing *stored, enum cv_end end) {
  struct cv_standing mine;
  if (stored->arm >= replay->spec.arms) {
    disagree(replay, "a standing is on record for arm %" PRIu64 " of %" PRIu32, (uint64_t)stored->arm + 1,
             replay->spec.arms);
    return;
  }
  /* A running campaign has standings on record as of its last step; at the end they include every release. */
  if (end == CV_END_NONE) {
    mine = replay->after_step[stored->arm];
  } else {
    cv_policy_standing(replay->policy, stored->arm, &mine);
  }
  if (stored->rank_class != mine.rank_class || stored->rank_last != mine.rank_last || stored->held != mine.held) {
    disagree(replay,
             "arm %" PRIu32 " stands in class %" PRIu32 " to %" PRIu32 " (held: %s); recomputed: class %" PRIu32
             " to %" PRIu32 " (held: %s)",
             stored->arm + 1, stored->rank_class, stored->rank_last,
             stored->held == CV_HELD_NO ? "no" : cv_held_text(stored->held), mine.rank_class, mine.rank_last,
             mine.held == CV_HELD_NO ? "no" : cv_held_text(mine.held));
  } else if (stored->tokens != mine.tokens || !is_near(stored->mean, mine.mean) ||
             !is_near(stored->radius, mine.radius)) {
    disagree(replay,
             "arm %" PRIu32 " stands in class %" PRIu32 " (mean %.9g, radius %.9g, %" PRIu64
             " tokens); recomputed: class %" PRIu32 " (mean %.9g, radius %.9g, %" PRIu64 " tokens)",
             stored->arm + 1, stored->rank_class, stored->mean, stored->radius, stored->tokens, mine.rank_class,
             mine.mean, mine.radius, mine.tokens);
  }
}

void cv_replay_end(struct cv_replay *replay, enum cv_end end, const struct cv_standing *standing, size_t standings,
                   struct cv_replay_verdict *ret) {
  expect_no_more_decisions(replay);
  if (end == CV_END_COMPLETE && (replay->is_stuck || !replay->step.done || replay->left > 0)) {
    disagree(replay, "the campaign is on record as complete; recomputed: plan %" PRIu64 " was to follow",
             replay->plan + 1);
  }
  if (standings > 0 && standings != replay->spec.arms) {
    disagree(replay, "%zu arms have a standing on record; expected %" PRIu32, standings, replay->spec.arms);
  }
  replay->verdict.standings = standings;
  if (end != CV_END_NONE) {
    cv_policy_close(replay->policy);
  }
  for (size_t i = 0; i < standings; i++) {
    compare_standing(replay, &standing[i], end);
  }
  *ret = replay->verdict;
}

/* Feeds the records in the order of the campaign: per plan its releases, then the decisions after them. */
static enum cv_err feed(struct cv_replay *replay, const struct cv_replay_records *records) {
  size_t release = 0, decision = 0;
  for (size_t i = 0; i < records->plans; i++) {
    const uint64_t number = records->plan[i].number;
    CV_TRY(cv_replay_plan(replay, &records->plan[i]));
    for (; release < records->releases && records->release[release].plan == number; release++) {
      CV_TRY(cv_replay_release(replay, &records->release[release]));
    }
    for (; decision < records->decisions && records->decision[decision].plan == number; decision++) {
      cv_replay_decision(replay, &records->decision[decision].decision);
    }
  }
  /* Records that belong to no plan are fed, too: they are disagreements, and must not go unnoticed. */
  for (; release < records->releases; release++) {
    CV_TRY(cv_replay_release(replay, &records->release[release]));
  }
  for (; decision < records->decisions; decision++) {
    cv_replay_decision(replay, &records->decision[decision].decision);
  }
  return CV_OK;
}

enum cv_err cv_replay_records(const struct cv_replay_records *records, struct cv_replay_verdict *ret,
                              struct cv_why *why) {
  struct cv_replay *replay;
  CV_TRY(cv_replay_new(records->spec, records->seed, records->decision != NULL, &replay, why));
  if (records->ret_lies != NULL) {
    cv_policy_count_lies(replay->policy);
  }
  enum cv_err err = feed(replay, records);
  if (err == CV_OK) {
    cv_replay_end(replay, records->end, records->standing, records->standings, ret);
    for (uint32_t i = 0; i < records->spec->arms && records->ret_lies != NULL; i++) {
      records->ret_lies[i] = ret->agrees ? cv_policy_lies(replay->policy, i) : (struct cv_policy_lies){0};
    }
    for (uint32_t i = 0; i < records->spec->arms && records->ret_need != NULL; i++) {
      records->ret_need[i] = cv_policy_need(replay->policy, i);
    }
  } else {
    err = cv_fail(why, err, "out of memory");
  }
  cv_replay_free(replay);
  return err;
}
