/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of campaigns with two brokers, beside those of truth.h. It knows every token that a worker has split,
 * with its score, its place and both of its shares, and what either broker counts.
 *
 *  S1 Both halves of a release cover the same tokens: at a closing the places of the co-broker's epoch are all filled,
 *     each with a token that it has told the broker; at a release the broker's tokens are those, and both halves
 *     together are the sum of their scores and of both noises.
 *  S2 A token's two shares are in released sums of the same epoch, or neither is: the co-broker counts a token only
 *     in the plan, arm and place, and for the worker and slot, that its worker has sealed; the broker counts only
 *     what the co-broker has told that it counts. No (worker, slot) and no place is counted twice; nothing that was
 *     told is forgotten.
 *  S3 No verifier share is computed for a token under two keys or contexts; none leaves in two forms; answers to a
 *     batch that was told never change; no counter of a session seals twice.
 *  S4 The co-broker's ledger is never behind its halves, its workers' accounts never behind its tokens; the noise of an
 *     epoch is stored before its tokens come and does not change; a half that left is the same for ever.
 *  S5 Whatever the other one does: no half leaves the co-broker before it is stored, with its charge and the anchor.
 *
 * 5 holds for the co-broker's disk, too, and for what it and the broker send: no seed, no verifier share of the
 * co-broker's, no output share and no partial sum.
 */
#ifndef CV_SIM_TWO_H
#define CV_SIM_TWO_H

#include "cobroker/core.h"
#include "proto/codec/crowd.h"
#include "tests/sim/world.h"

struct two;
struct cv_broker_campaign;
struct cv_ticket;

/* NULL unless the world has campaigns with two brokers; the functions below then do nothing, if they are called. */
struct two *two_new(struct world *world);
void two_free(struct two *two);

/* A worker, honest or not, seals with this key and counter. */
void two_sealed(struct two *two, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter);
/* The measurement of the token with this nonce, as its worker has split it; false if nobody has. */
bool two_measured(const struct two *two, const uint8_t nonce[CV_SPLIT_NONCE_BYTES], uint64_t *ret);

/* A frame leaves the broker for the co-broker. */
void two_told_cobroker(struct two *two, const struct cv_share_frame *frame);
/* The co-broker has taken a frame of the broker; its answers from number `from` on are about it. */
void two_judged(struct two *two, const struct cv_share_frame *frame, const struct cv_share_frame *answers, size_t from);
/* The co-broker's core has closed a batch; it is stored and anchored; it has started from what is stored. */
void two_flushed(struct two *two, struct cv_cobroker *core);
void two_stored(struct two *two, uint64_t commit);
void two_restarted(struct two *two, struct cv_cobroker *core);
/* The commit that the co-broker's anchor would have after a power failure now. */
uint64_t two_anchored(const struct world *world);
/* A frame leaves the co-broker for the broker, or a worker. */
void two_told(struct two *two, const struct cv_share_frame *frame);
/* The co-broker's disk is an older one: what it has forgotten is not checked any more. */
void two_rolled_back(struct two *two);
/* The same, and the operator has recovered it: from then on its accounts have all that was told before. */
void two_recovered(struct two *two);
uint64_t two_commit(const struct two *two);

/* The i-th byte string that must be on no disk and in no message, of the latest ones; false past the end. */
bool two_secret(const struct two *two, size_t i, const uint8_t **ret, size_t *ret_n);
/* The same for verify keys, which the broker may be sent; NULL past the end. */
const uint8_t *two_key(const struct two *two, size_t i);
enum { TWO_WORDS = 84 /* of both, at most */ };

/* ---- for truth.c: what the broker counts ---- */

/* One of the brokers lies, or the co-broker has lost what it told: the broker's sums are anybody's guess. */
bool two_is_doubtful(const struct world *world);

/* The broker's share of what fills the place: an element. Fails the world if the co-broker does not count it. */
uint64_t two_share(struct two *two, uint64_t campaign, uint32_t arm, uint64_t place);
/* What the tokens of these places say together, an element. */
uint64_t two_sum(struct two *two, uint64_t campaign, uint32_t arm, uint64_t first, uint64_t tokens);
/* The co-broker's half of that release if all its new tokens had a share of zero there. False if it has made none. */
bool two_half(const struct two *two, uint64_t campaign, uint64_t release, uint64_t *ret);

#endif
