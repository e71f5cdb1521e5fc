/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open campaign as the co-broker knows it: its spec, its verify key, its arms with their open epochs, and the
 * position: how many plans, batches and closings there were, with hashes. Once it has ended only a record of it is left
 * (ended.h).
 */
#ifndef CV_COBROKER_CAMPAIGN_H
#define CV_COBROKER_CAMPAIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/both/anchor.h"
#include "broker/both/gate.h"
#include "broker/both/ledger.h"
#include "broker/mechanism/mechanism.h"
#include "common/base/answered.h"
#include "common/base/buf.h"
#include "common/base/chunks.h"
#include "common/base/digest.h"
#include "common/base/result.h"
#include "common/base/spec.h"
#include "common/base/split.h"
#include "common/base/table.h"
#include "common/prio/prio.h"
#include "proto/codec/share.h"

struct cv_cobroker;

/* What was judged, as recorded in the journal: an accepted token, or with arm CV_COBROKER_ARM_NONE a slot and a
 * question that a failed proof has used up. */
struct cv_cobroker_entry {
  uint64_t place; /* its bit; of a failed proof the question, which is the arm of its token */
  uint64_t worker;
  uint32_t arm, slot;
};

#define CV_COBROKER_ARM_NONE UINT32_MAX

struct cv_cobroker_arm {
  struct cv_mechanism *mechanism; /* NULL once its data are used up */
  uint64_t plan;                  /* of the open epoch; 0 = none open */
  uint64_t first;                 /* places of all earlier epochs */
  uint64_t round;                 /* bit of the open epoch's first place: places of all arms planned before it */
  uint32_t want, filled;          /* of the open epoch: places; accepted tokens */
  uint64_t sum;                   /* of the open epoch: the share of it, an element */
  struct cv_digest chain;         /* of the open epoch: over its accepted tokens (split.h) */
  bool listed;                    /* among `news` */
  bool touched;                   /* sum, filled and chain changed since the last batch */
  bool changed;                   /* anything else changed since the last batch */
  uint64_t dirty_since;
  uint64_t written; /* while restoring: the commit of the stored image */
};

/* A closing that was answered: the hash over all closings up to it, and the half. */
struct cv_cobroker_closing {
  struct cv_digest hash;
  uint64_t half;
};

/* The answers to a batch that the broker has not yet booked. */
struct cv_cobroker_answers {
  struct cv_digest before, after; /* the hash over all batches */
  uint16_t tokens;
  uint8_t *answer; /* enum cv_share_answer each; owned */
};

struct cv_cobroker_campaign {
  uint32_t id;
  UT_hash_handle hh;
  char requester[CV_NAME_BYTES];
  struct cv_spec spec; /* complete, as the broker sent it */
  struct cv_privacy privacy;
  struct cv_split split;    /* of its terms */
  struct cv_digest context; /* of its shares */
  struct cv_prio prio;
  uint8_t key[CV_SPLIT_SEED_BYTES];       /* the verify key */
  uint64_t deadline_wall_ms, deadline_ms; /* 0 = none; the campaign ends when either clock reaches it */
  bool told;                              /* the broker has opened it on its present connection */

  struct cv_cobroker_arm *arm; /* spec.arms of them; owned */
  uint32_t *news;              /* arms that changed since the last batch; owned */
  uint32_t news_count;
  uint32_t open_arms;      /* with an open epoch */
  uint64_t tokens, failed; /* accepted; proofs that failed */
  struct cv_chunks places; /* bits: arm->round + place - arm->first */
  struct cv_chunks slots;  /* bits: worker * tokens_per_worker + slot */
  /* The arms of which each worker has answered, one of each at most. Nothing is recorded if the campaign repeats
   * questions, nor in one of pairs: the broker draws the opponents, and does not tell them here. */
  struct cv_answered answered;
  struct cv_ledger ledger; /* of its arms */

  uint64_t plans;
  struct cv_digest *plan_hash; /* after each plan; owned */
  size_t plan_hash_cap;
  struct cv_plan last; /* the last plan; owned */
  uint64_t planned;    /* places of all plans but the last */
  uint64_t rounds;     /* places of all plans */

  uint64_t batches, done; /* judged; of which the broker has booked */
  struct cv_digest batches_hash;
  struct cv_cobroker_answers *undone; /* ring of batches - done; owned */
  size_t undone_count, undone_head, undone_cap;
  uint64_t undone_tokens;

  struct cv_cobroker_closing *closing; /* owned */
  size_t closings, closings_cap;
  uint32_t closed; /* of the last plan */

  /* changes since the last batch */
  bool fresh, changed;
  uint64_t stored_batches, stored_done;
  struct cv_buf news_plans;    /* rows of the new plans, one after the other */
  struct cv_buf news_closings; /* rows of the new closings, one after the other, CV_COBROKER_CLOSING_BYTES each */
  struct cv_buf journal;       /* struct cv_cobroker_entry each */
};

/* A closing's row: plan, its hash, arm, count, chain, discard, half. */
enum { CV_COBROKER_CLOSING_BYTES = 8 + CV_DIGEST_BYTES + 4 + 8 + CV_DIGEST_BYTES + 1 + 8 };

/* The open campaign of this number; NULL if there is none. */
struct cv_cobroker_campaign *cv_cobroker_campaign_find(struct cv_cobroker *core, uint64_t id);
/*
 * Makes an open campaign with this verify key; the core owns it. Copies `spec`, which the gate has let through.
 * CV_ERR_NOMEM, and the errors of cv_privacy_init() and cv_prio_init().
 */
CV_MUST_USE enum cv_err cv_cobroker_campaign_new(struct cv_cobroker *core, uint32_t id, const struct cv_spec *spec,
                                                 const uint8_t database[CV_SPLIT_DATABASE_BYTES],
                                                 const struct cv_digest *key, struct cv_cobroker_campaign **ret);
/* Removes it from the core and wipes it. */
void cv_cobroker_campaign_drop(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign);
void cv_cobroker_campaign_free(struct cv_cobroker_campaign *campaign);

/* Lists the arm as changed since the last batch. */
void cv_cobroker_campaign_list(struct cv_cobroker_campaign *campaign, uint32_t arm);
/* Marks its state as changed: it is written with the next batch. */
void cv_cobroker_campaign_mark(struct cv_cobroker *core, struct cv_cobroker_campaign *campaign);
/* Whether its data are used up. */
bool cv_cobroker_arm_is_spent(const struct cv_cobroker_arm *arm);
/* Its cost of the arm's next release, in micro-epsilon. */
uint64_t cv_cobroker_campaign_price(const struct cv_cobroker_campaign *campaign, uint32_t arm);
/* The bit of a worker's slot. */
uint64_t cv_cobroker_campaign_slot(const struct cv_cobroker_campaign *campaign, uint64_t worker, uint32_t slot);
/* What it adds to the core's totals, and what its tokens cost their workers in all. */
void cv_cobroker_campaign_totals(const struct cv_cobroker_campaign *campaign, struct cv_totals *ret,
                                 uint64_t *ret_cost_micro);
/* How far it is. */
void cv_cobroker_campaign_position(const struct cv_cobroker_campaign *campaign, struct cv_share_position *ret);
/* The hash of the plan chain after plan n <= plans; zeros for 0. */
struct cv_digest cv_cobroker_campaign_plan_hash(const struct cv_cobroker_campaign *campaign, uint64_t n);
/* The hash over its first n <= closings closings; zeros for 0. */
struct cv_digest cv_cobroker_campaign_closing_hash(const struct cv_cobroker_campaign *campaign, uint64_t n);

#endif
