/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of campaigns with two brokers, for two.c (counted), two_told.c (split, verified, sent) only. */
#ifndef CV_SIM_TWO_STATE_H
#define CV_SIM_TWO_STATE_H

#include "common/base/buf.h"
#include "common/base/table.h"
#include "proto/codec/share.h"
#include "tests/sim/seen.h"
#include "tests/sim/two.h"

/* A token that a worker has split. */
struct share {
  uint8_t nonce[CV_SPLIT_NONCE_BYTES];
  UT_hash_handle hh;
  uint64_t campaign;
  struct cv_split_token token; /* as it was sealed */
  uint64_t measurement;
  bool has_leader;         /* the broker has verified its share */
  uint64_t leader, helper; /* output shares */
  /* As numbers, 0: not yet. The leader's share as split, and the helper's seed; key and context that each was verified
   * under; the broker's verifier share as it left. */
  uint64_t leader_share, seed, leader_under, helper_under, verifier;
};

/* The co-broker's mechanism of an arm as stored with its open epoch, or with the last one, and the epoch's places. */
struct two_arm {
  struct cv_buf opened;
  bool stored;
  uint64_t releases, first;
  uint32_t want;
};

struct two_closing {
  uint32_t arm;
  uint64_t half, zero; /* as made; if its new tokens had a share of zero */
};

/* A batch that the co-broker has judged, in this life or an earlier one. */
struct two_batch {
  struct share **token; /* NULL: nobody has split it */
  uint8_t *answer;
  size_t tokens;
  bool told;
};

struct two_campaign {
  struct share **here, **told; /* by arm and place: counted by the co-broker; and told to the broker */
  struct two_arm arm[SCENARIO_ARMS];
  struct two_batch *batch; /* by number, from 1 */
  size_t batch_count, batch_cap;
  uint64_t batches, batches_stored;
  struct two_closing *closing;
  size_t closings, closings_stored, closings_cap;
  struct cv_share_close ask[SCENARIO_ARMS]; /* closings that the broker has asked for since the last batch */
  uint32_t asked;
};

enum { TWO_SPIED = 16 };

struct two {
  struct world *world;
  struct two_campaign *campaign; /* by id */
  uint32_t campaigns;
  struct share *shares; /* by nonce */
  struct seen sealed, slots;
  uint64_t *told_of; /* by worker, its tokens that were told to count */
  uint64_t commit;
  bool rolled_back, recovered;
  /* rings of byte strings that must not be on a disk, or on the wire */
  uint8_t seed[TWO_SPIED][CV_SPLIT_SEED_BYTES];
  uint64_t element[4 * TWO_SPIED];     /* output shares, the co-broker's verifier shares, partial sums */
  uint8_t key[4][CV_SPLIT_SEED_BYTES]; /* verify keys: on no disk, but on the wire */
  size_t seeds, elements, keys;
};

struct two_campaign *two_campaign(struct two *two, uint64_t id);
struct share *two_find(const struct two *two, const uint8_t nonce[CV_SPLIT_NONCE_BYTES]);
/* From here on it learns of what is split, and of what is verified. NULL: nobody does. */
void two_listen(struct two *two);
/* A sum that must not be seen. */
void two_spy_sum(struct two *two, uint64_t sum);

#endif
