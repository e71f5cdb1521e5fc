/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changes that the core passes to the store: for each changed campaign its new records and its updated row. A batch
 * is one transaction. It owns all memory it points to and shares nothing with the core, so that another thread may
 * store it.
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

/* Identifies a campaign: the broker and the broker's number for it. */
struct cv_thirdparty_campaign_key {
  char broker[CV_NAME_BYTES];
  uint64_t campaign;
};

/* The progress of a campaign, stored as one row. */
struct cv_thirdparty_campaign_row {
  uint64_t releases; /* applied */
  uint64_t accepted; /* plans accepted by the broker: 1 .. accepted */
  struct cv_digest releases_hash, plans_hash;
  uint64_t plan;       /* number of the last plan, accepted or not; 0 = none yet */
  uint64_t state_plan; /* the stored policy state includes all releases up to this plan; 0 = no release */
  uint64_t decisions;  /* made so far */
  bool policy_done;    /* the policy makes no further plan */
  bool closed;         /* the broker has the result */
  enum cv_end end;
  char note[CV_NOTE_BYTES]; /* details of the end; may be empty */
};

struct cv_stored_plan {
  struct cv_plan plan; /* owned */
  bool recorded;       /* the broker sent it back from its records; the policy did not make it */
};

struct cv_stored_decision {
  uint64_t number;  /* from 1, per campaign */
  uint64_t plan;    /* the plan whose last release caused the decision */
  uint64_t release; /* number of that release */
  struct cv_decision decision;
};

struct cv_delta {
  struct cv_delta *next;
  struct cv_thirdparty_campaign_key key;
  /* For a new campaign only. The spec includes the policy's defaults; the digest covers the spec as sent. */
  bool created;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;

  struct cv_thirdparty_campaign_row row;
  struct cv_release *release;
  size_t releases, releases_cap;
  struct cv_stored_plan *plan; /* in order; a later one replaces an earlier one of the same number */
  size_t plans, plans_cap;
  struct cv_stored_decision *decision;
  size_t decisions, decisions_cap;
  struct cv_standing *standing; /* of the arms whose standing changed */
  size_t standings, standings_cap;
  bool has_state;
  struct cv_buf state; /* of the policy */
};

void cv_delta_free(struct cv_delta *delta);
/* Each of these appends one record; cv_delta_add_plan() makes a deep copy of the plan. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_delta_add_plan(struct cv_delta *delta, const struct cv_plan *plan, bool recorded);
CV_MUST_USE enum cv_err cv_delta_add_release(struct cv_delta *delta, const struct cv_release *release);
CV_MUST_USE enum cv_err cv_delta_add_decision(struct cv_delta *delta, const struct cv_stored_decision *decision);
CV_MUST_USE enum cv_err cv_delta_add_standing(struct cv_delta *delta, const struct cv_standing *standing);

struct cv_thirdparty_batch {
  struct cv_delta *first, *last;
};
void cv_thirdparty_batch_fini(struct cv_thirdparty_batch *batch);

/* A stored campaign, for cv_thirdparty_restore(). For a closed campaign only `key` and `row.closed` are set. */
struct cv_stored_campaign {
  struct cv_thirdparty_campaign_key key;
  struct cv_spec spec;
  struct cv_digest spec_digest;
  uint64_t seed;
  struct cv_thirdparty_campaign_row row;
  struct cv_plan plan;        /* number row.plan, if that is not 0 */
  struct cv_release *release; /* of plans after row.state_plan, in order */
  size_t releases, releases_cap;
  struct cv_buf state;
};
void cv_stored_campaign_fini(struct cv_stored_campaign *stored);

#endif
