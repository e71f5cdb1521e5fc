/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Campaigns with two brokers: how a token is split into two shares, and what binds a share to its campaign, its place
 * and its worker. Public values only. Broker, co-broker and worker compute the same bytes from what each of them knows.
 *
 * The mode is described in docs/protocol.md: shares are those of Prio3 (common/prio), the broker has the leader's, the
 * co-broker the helper's.
 */
#ifndef CV_BASE_SPLIT_H
#define CV_BASE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/digest.h"
#include "common/base/spec.h"

enum {
  CV_SPLIT_DATABASE_BYTES = 16,
  CV_SPLIT_NONCE_BYTES = 16,
  CV_SPLIT_SESSION_BYTES = 16,
  CV_SPLIT_SEED_BYTES = 32,                         /* the helper's share; a verify key */
  CV_SPLIT_SEALED_BYTES = CV_SPLIT_SEED_BYTES + 16, /* with the tag of AES-256-GCM */
  CV_SPLIT_SEAL_NONCE_BYTES = 12,
  CV_SPLIT_LEADER_MOST = 8 * 47, /* the longest leader share */
  CV_SPLIT_VERIFIERS_MOST = 4,   /* elements of a verifier share */
  CV_SPLIT_BIT = 1,              /* score_bits: a token is 0 or CV_GRID, Prio3Count */
  CV_SPLIT_SCORE = 15,           /* score_bits: 0 .. 2^14, Prio3Sum */
};

/* The terms of a campaign with two brokers, beyond those of every campaign. */
struct cv_split {
  uint32_t score_bits;                       /* CV_SPLIT_BIT or CV_SPLIT_SCORE; 0: one broker, the rest is 0 */
  uint8_t database[CV_SPLIT_DATABASE_BYTES]; /* the broker's */
  struct cv_digest spec;                     /* SHA-256 of the spec's stored form, as the broker completed it */
  struct cv_digest key;                      /* SHA-256 of the verify key */
};

/* The label of the TLS exporter for the key of a session with the co-broker; the exporter's context is the campaign's
 * (cv_split_context()), and the key has CV_SPLIT_SEED_BYTES. */
#define CV_SPLIT_EXPORTER "EXPORTER-crowdveil-share"

/* The two parties of a campaign with two brokers: SHA-256 of the public keys in their certificates. */
struct cv_duo {
  struct cv_digest broker, cobroker;
};

/* The largest measurement: 1 or 2^14. */
uint64_t cv_split_maximum(uint32_t score_bits);
/* What an output share is multiplied with, so that a score of 1 counts CV_GRID. */
uint64_t cv_split_scale(uint32_t score_bits);
/* The score_bits of a campaign that does not choose: CV_SPLIT_BIT if its tokens are bits, else CV_SPLIT_SCORE. */
uint32_t cv_split_bits_of(bool tokens_are_bits);

/* Whether each token is 0 or CV_GRID, whatever the score: a comparison, or the work of a privatizer. */
bool cv_split_tokens_are_bits(const struct cv_spec *spec);
/*
 * Whether brokers and score_bits fit the rest of the campaign; part of cv_spec_check(). With two brokers a token is one
 * number from 0 to 1, proved to be one in two shares, and a mechanism has to protect it by each broker's noise alone:
 * no feedback graph, no privatizer with other tokens, no mechanism that covers no token. CV_ERR_INVALID.
 */
CV_MUST_USE enum cv_err cv_split_check(const struct cv_spec *spec, struct cv_why *why);
/* SHA-256 of the spec's stored form (cv_spec_encode()). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_split_spec(const struct cv_spec *spec, cv_digest_fn *digest, struct cv_digest *ret);
/*
 * The context of all shares of a campaign, VDAF's ctx: digest("crowdveil two brokers 1" without a terminator, then
 * broker's key, co-broker's key, database, campaign (8 bytes), spec, algorithm id (4), maximum (8), key), all numbers
 * little-endian.
 */
void cv_split_context(const struct cv_split *split, const struct cv_duo *duo, uint64_t campaign, cv_digest_fn *digest,
                      struct cv_digest *ret);

/* A token of such a campaign. */
struct cv_split_token {
  uint64_t plan;
  uint32_t arm;
  uint64_t place; /* position in the arm's stream, from 0 */
  uint64_t worker;
  uint32_t slot;
  uint8_t nonce[CV_SPLIT_NONCE_BYTES];
};

enum { CV_SPLIT_BOUND_BYTES = 32 + 8 + 4 + 8 + 8 + 4 + 16 };
/* The associated data under which the worker seals the helper's seed: context, plan, arm, place, worker, slot, and the
 * nonce, all numbers little-endian. */
void cv_split_bound(const struct cv_digest *context, const struct cv_split_token *token,
                    uint8_t ret[CV_SPLIT_BOUND_BYTES]);
/* The nonce of AES-256-GCM for it: 4 zero bytes, then the counter, big-endian. */
void cv_split_seal_nonce(uint64_t counter, uint8_t ret[CV_SPLIT_SEAL_NONCE_BYTES]);
/* The running hash over the accepted tokens of an arm's epoch, in the order of their batches: begins as the hash of the
 * plan chain at that plan; each token extends it by place (8), worker (8), slot (4) and nonce. */
void cv_split_chain(struct cv_digest *hash, const struct cv_split_token *token, cv_digest_fn *digest);

#endif
