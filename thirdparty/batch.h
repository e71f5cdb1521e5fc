/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the core hands to storage: for each campaign that changed, what was added and how its row looks afterwards. A
 * batch is one transaction, owns all it points to and shares nothing with the core, so that a thread may store it.
 */
#ifndef CV_THIRDPARTY_BATCH_H
#define CV_THIRDPARTY_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/result.h"
#include "common/base/spec.h"
#include "thirdparty/policy/policy.h"

enum { CV_NOTE_BYTES = 200 };

/* A campaign is named by who sends it and the number it gave. */
struct cv_campaign_key {
  char broker[CV_NAME_BYTES];
  uint64_t campaign;
};

/* Where a campaign stands. */
struct cv_campaign_row {
  uint64_t releases; /* applied */
  uint64_t accepted; /* plans accepted by the broker: 1 .. accepted */
  struct cv_digest releases_hash, plans_hash;
  uint64_t plan;       /* number of the last plan, accepted or not; 0 = none yet */
  uint64_t state_plan; /* the policy's stored state is the one after this plan's last release; 0 = after none */
  uint64_t decisions;  /* made so far */
  bool policy_done;    /* the policy asks for nothing more */
  bool closed;         /* the broker has the result */
  enum cv_end end;
  char note[CV_NOTE_BYTES]; /* why it ended, if there is more to say */
};

struct cv_stored_plan {
  struct cv_plan plan; /* owned */
  bool recorded;       /* sent by the broker, not asked for by the policy */
};

struct cv_stored_decision {
  uint64_t number;  /* from 1, per campaign */
  uint64_t plan;    /* the plan whose last release led to it */
  uint64_t release; /* that release */
  struct cv_decision decision;
};

struct cv_delta {
  struct cv_delta *next;
  struct cv_campaign_key key;
  /* Only when the campaign is new. The spec has the policy's defaults filled in; the digest is over what was sent. */
  bool created;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;

  struct cv_campaign_row row;
  struct cv_release *release;
  size_t releases, releases_cap;
  struct cv_stored_plan *plan; /* in order; a later one replaces an earlier one of the same number */
  size_t plans, plans_cap;
  struct cv_stored_decision *decision;
  size_t decisions, decisions_cap;
  struct cv_standing *standing; /* of the arms that stand elsewhere than before */
  size_t standings, standings_cap;
  bool has_state;
  struct cv_buf state; /* of the policy */
};

void cv_delta_free(struct cv_delta *delta);
/* A deep copy of the plan. */
CV_MUST_USE enum cv_err cv_delta_add_plan(struct cv_delta *delta, const struct cv_plan *plan, bool recorded);
CV_MUST_USE enum cv_err cv_delta_add_release(struct cv_delta *delta, const struct cv_release *release);
CV_MUST_USE enum cv_err cv_delta_add_decision(struct cv_delta *delta, const struct cv_stored_decision *decision);
CV_MUST_USE enum cv_err cv_delta_add_standing(struct cv_delta *delta, const struct cv_standing *standing);

struct cv_batch {
  struct cv_delta *first, *last;
};
void cv_batch_fini(struct cv_batch *batch);

/* A campaign as it was stored, for cv_ranker_restore(). Of a closed one only the key is filled in, and
 * that it is closed. */
struct cv_stored_campaign {
  struct cv_campaign_key key;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;
  struct cv_campaign_row row;
  struct cv_plan plan;        /* number row.plan, if that is not 0 */
  struct cv_release *release; /* of plans after row.state_plan, in order */
  size_t releases, releases_cap;
  struct cv_buf state;
};
void cv_stored_campaign_fini(struct cv_stored_campaign *stored);

/* With wants of the copy's own, to be freed. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_plan_copy(const struct cv_plan *from, struct cv_plan *ret_to);

#endif
