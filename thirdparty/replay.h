/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay runs the policy again on the recorded releases and compares every plan, decision and standing with the
 * records. The third-party replays from its database; the broker's side replays from its export, which has plans and
 * the result but no decisions.
 *
 * Feed a campaign in order: a plan, its releases by number, then (if known) the decisions after them; the next plan;
 * ...; the end. The verdict has the first disagreement; later records are only counted.
 */
#ifndef CV_THIRDPARTY_REPLAY_H
#define CV_THIRDPARTY_REPLAY_H

#include "common/base/result.h"
#include "common/base/spec.h"
#include "thirdparty/batch.h"
#include "thirdparty/policy/policy.h"

struct cv_replay_verdict {
  bool agrees;
  uint64_t plans, releases, decisions, standings; /* fed */
  struct cv_why first; /* the first disagreement, one line: which arm, what is on record, what was recomputed */
};

struct cv_replay;

/* Borrows the spec and checks its policy. `with_decisions`: the caller feeds decisions, and a missing one is a
 * disagreement. */
CV_MUST_USE enum cv_err cv_replay_new(const struct cv_spec *spec, uint64_t seed, bool with_decisions,
                                      struct cv_replay **ret, struct cv_why *why);
void cv_replay_free(struct cv_replay *replay);

/* Return CV_OK or CV_ERR_NOMEM: records that do not fit are a disagreement. */
CV_MUST_USE enum cv_err cv_replay_plan(struct cv_replay *replay, const struct cv_plan *plan);
CV_MUST_USE enum cv_err cv_replay_release(struct cv_replay *replay, const struct cv_release *release);
void cv_replay_decision(struct cv_replay *replay, const struct cv_decision *stored);
/* Compares the standings: with CV_END_NONE those after the last step, else those after every release. standings = 0:
 * no comparison. */
void cv_replay_end(struct cv_replay *replay, enum cv_end end, const struct cv_standing *standing, size_t standings,
                   struct cv_replay_verdict *ret);

/* A campaign as arrays, as in an export. */
struct cv_replay_records {
  const struct cv_spec *spec;
  uint64_t seed;
  const struct cv_plan *plan; /* in order; all accepted ones */
  size_t plans;
  const struct cv_release *release; /* in order */
  size_t releases;
  const struct cv_stored_decision *decision; /* in order; NULL: not known */
  size_t decisions;
  enum cv_end end;
  const struct cv_standing *standing;
  size_t standings;
  struct cv_policy_lies *ret_lies; /* of each arm, all 0 if the records disagree; NULL: not wanted */
  double *ret_need;                /* cv_policy_need() of each arm at the end; NULL: not wanted */
};
CV_MUST_USE enum cv_err cv_replay_records(const struct cv_replay_records *records, struct cv_replay_verdict *ret,
                                          struct cv_why *why);

/* Replays every campaign of a third-party's database (replay_db.c). Stops with an error at a damaged campaign. */
/* Before them `stranger`, if not NULL, is called for what somebody has added to the database (common/db/db.h). */
typedef void cv_replay_each_fn(void *data, const struct cv_stored_campaign *campaign,
                               const struct cv_replay_verdict *verdict);
CV_MUST_USE enum cv_err cv_replay_database(const char *path, cv_replay_each_fn *each,
                                           void (*stranger)(void *data, const char *what), void *data,
                                           struct cv_why *why);

#endif
