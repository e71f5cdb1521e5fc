/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a campaign with two brokers has beyond others: the terms of its shares, the tokens that wait for the co-broker's
 * verdict, the closings that wait for its half, and what its connection (cobroker.h) has of the campaign.
 *
 * An arm whose epoch is complete is closed at once: the ledger is charged and this broker's half is made (epoch.h). The
 * closing waits for the other half, and with it becomes the release of the same number. So closings wait in the order
 * of their numbers, the first one right after the last release.
 */
#ifndef CV_BROKER_TWO_H
#define CV_BROKER_TWO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/batch.h"
#include "broker/campaign.h"
#include "broker/docket.h"
#include "common/base/split.h"
#include "common/prio/prio.h"

/* A closing, and the release that it becomes: of that, `noisy_sum` is this broker's half, an element. */
struct cv_two_closing {
  struct cv_share_close close;
  struct cv_broker_release row;
  struct cv_digest hash; /* the chain of all closings up to this one (cv_chain_close()) */
  bool is_stored;
};

struct cv_broker_two {
  struct cv_prio prio;
  struct cv_split split;
  bool is_known;                    /* the verify key was drawn: split.key is its hash */
  bool has_key;                     /* and it is here */
  uint8_t key[CV_SPLIT_SEED_BYTES]; /* secret */
  struct cv_digest context;         /* of all shares; fixed with the key */
  struct cv_docket docket;
  struct cv_offers spent; /* workers who may give nothing more at the co-broker, at most CV_DOCKET_MAX; not stored */
  uint32_t spent_count;
  uint32_t leased;                /* open assignments */
  uint64_t spoiled;               /* slots used up by tokens whose proof failed */
  struct cv_two_closing *closing; /* those that wait; owned */
  size_t closings, closings_cap;
  struct cv_digest closed_hash; /* the chain of the closings that have become releases */
  struct cv_plan plan;          /* the next one, until the co-broker has opened it; no wants: none. Not stored */
  bool changed;                 /* since the last batch */
  bool ended;                   /* the co-broker has deleted what it had, or never had anything */
  uint64_t erased_batches, erased_closings; /* numbers up to which their rows are deleted */

  /* state of the co-broker's current connection for this campaign */
  struct {
    bool open_sent, opened, over_sent, plan_sent;
    bool is_ahead; /* it has opened the next plan already: its chain is ahead_hash */
    struct cv_digest ahead_hash;
    uint64_t batches, closings, done; /* number of the last one sent */
  } link;
};

/* On the heap; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_new(const struct cv_spec *spec, const struct cv_broker *broker,
                                   struct cv_broker_two **ret);
void cv_two_free(struct cv_broker_two *two);
/* Frees what only a running campaign needs: key, tokens, closings. */
void cv_two_free_secrets(struct cv_broker_two *two);

/* Takes the co-broker's verify key, once; false if another one, or another pair of brokers, was there before. */
bool cv_two_take_key(const struct cv_broker *broker, struct cv_broker_campaign *campaign,
                     const uint8_t key[CV_SPLIT_SEED_BYTES]);
/* Whether the key was given to these two brokers; true before there is a key. */
bool cv_two_is_ours(const struct cv_broker *broker, const struct cv_broker_campaign *campaign);

/* Whether places of the campaign may be assigned now; true for one broker. */
bool cv_two_may_assign(const struct cv_broker_campaign *campaign);
/* Whether the campaign waits for the co-broker, so that no silence is its workers'; false for one broker. */
bool cv_two_waits(const struct cv_broker_campaign *campaign);
/* Leaves the place, or the slot, to the waiting token that holds it, if there is one: it is free again when the token
 * does not count. */
bool cv_two_leave_place(const struct cv_broker_campaign *campaign, uint64_t place);
bool cv_two_leave_payer(const struct cv_broker_campaign *campaign, uint64_t payer);
/* Whether a waiting token holds the slot; whether one of the arm waits. */
bool cv_two_holds_payer(const struct cv_broker_campaign *campaign, uint64_t payer);
bool cv_two_holds_arm(const struct cv_broker_campaign *campaign, uint32_t arm);
/* The co-broker takes no further token of the worker: it is asked for none, until a restart. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_spend(struct cv_broker_two *two, uint64_t worker);
/* Whether that is so; false for one broker. */
bool cv_two_is_spent(const struct cv_broker_campaign *campaign, uint64_t worker);
/* What the worker's waiting tokens of all campaigns will cost it, in micro-epsilon. */
uint64_t cv_two_waiting_micro(const struct cv_broker *broker, uint64_t worker);

/* Keeps a copy of the campaign's next plan until the co-broker has opened it. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_keep_plan(struct cv_broker_two *two, const struct cv_plan *plan);
void cv_two_drop_plan(struct cv_broker_two *two);
/* The number of the last closing; the chain of closings up to a number, NULL if it is none from the last release to the
 * last closing. */
uint64_t cv_two_closed(const struct cv_broker_campaign *campaign);
const struct cv_digest *cv_two_hash_at(const struct cv_broker_campaign *campaign, uint64_t number);
/* Adds the closing that becomes this release. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_close(struct cv_broker *broker, struct cv_broker_campaign *campaign,
                                     const struct cv_broker_release *row, uint64_t count, bool discard);
/* The first closing, which is no longer kept; its release takes its place. */
struct cv_two_closing cv_two_take_closing(struct cv_broker_campaign *campaign);

/* Cuts the tokens that came since the last flush into batches. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_cut(struct cv_broker *broker);

/* ---- the stored form: chunks of the campaign of three kinds, all sealed ---- */

/* Adds what changed since the last batch. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_fill(struct cv_broker_campaign *campaign, struct cv_broker_batch *batch);
/* Reads one of these chunks. CV_ERR_DAMAGED, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_restore(struct cv_broker_campaign *campaign, enum cv_kind kind, uint64_t number,
                                       struct cv_reader *in);
/* After all rows of the campaign are read: checks them against each other. CV_ERR_DAMAGED, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_two_settle(struct cv_broker *broker, struct cv_broker_campaign *campaign);

#endif
