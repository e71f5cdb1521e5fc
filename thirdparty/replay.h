/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: the policy runs again on what was released, and every plan, decision and standing is compared with what is
 * on record. Whoever has the releases can do it: the third-party from its database, the broker's side from its export,
 * where decisions are not known but plans and the result are.
 *
 * Feed a campaign in order: a plan, its releases by number, then (if they are known) the decisions that it led to; the
 * next plan; ... and at last the end. The first disagreement is kept, what follows is only counted.
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

/* The spec is borrowed; its policy is checked here. `with_decisions`: decisions are fed, and a missing one counts. */
CV_MUST_USE enum cv_err cv_replay_new(const struct cv_spec *spec, uint64_t seed, bool with_decisions,
                                      struct cv_replay **ret, struct cv_why *why);
void cv_replay_free(struct cv_replay *replay);

/* Only CV_ERR_NOMEM comes back: what does not fit is a disagreement. */
CV_MUST_USE enum cv_err cv_replay_plan(struct cv_replay *replay, const struct cv_plan *plan);
CV_MUST_USE enum cv_err cv_replay_release(struct cv_replay *replay, const struct cv_release *release);
void cv_replay_decision(struct cv_replay *replay, const struct cv_decision *stored);
/* With CV_END_NONE the standings are those after the last step, else those with every release; none: not compared. */
void cv_replay_end(struct cv_replay *replay, enum cv_end end, const struct cv_standing *standing, size_t standings,
                   struct cv_replay_verdict *ret);

/* A campaign as arrays, as an export gives it. */
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
};
CV_MUST_USE enum cv_err cv_replay_records(const struct cv_replay_records *records, struct cv_replay_verdict *ret,
                                          struct cv_why *why);

/* Every campaign of a third-party's database (replay_db.c). A damaged one ends it with an error. */
typedef void cv_replay_each_fn(void *data, const struct cv_stored_campaign *campaign,
                               const struct cv_replay_verdict *verdict);
CV_MUST_USE enum cv_err cv_replay_database(const char *path, cv_replay_each_fn *each, void *data, struct cv_why *why);

#endif
