/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a broker's database: random, and stored in its table `wrapped_key` (vault_rows.h), each wrapped
 * (AES-256-GCM) by the current master key of the ring. Campaign 0 stands for the whole database. Database, campaign,
 * use and master key are bound to each wrapped key, so that none fits in another place. A purged campaign's key is
 * deleted, and what it sealed is unreadable from then on.
 *
 * Keys are in key memory (common/crypto/secret.h), or on the stack for a moment and wiped.
 */
#ifndef CV_BROKER_BOTH_VAULT_H
#define CV_BROKER_BOTH_VAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/anchor.h"
#include "broker/both/vault_rows.h"

/* Stored: numbers stay. */
enum cv_vault_use {
  CV_VAULT_SEAL = 1, /* sealed rows; of a campaign, or of campaign 0: the workers' accounts */
  CV_VAULT_ROWS,     /* codes of rows; of campaign 0 */
  CV_VAULT_TICKETS,  /* tickets; of campaign 0 */
};

struct cv_vault;

/* Copies the ring. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_vault_new(const struct cv_ring *ring, struct cv_vault **ret);
void cv_vault_free(struct cv_vault *vault);

/*
 * Before any of the functions below: the rows, whose database is borrowed, and its id.
 * CV_ERR_DAMAGED, with the names of the master keys, if the ring has none that wrapped the stored keys.
 */
CV_MUST_USE enum cv_err cv_vault_open(struct cv_vault *vault, struct cv_vault_rows rows,
                                      const uint8_t database[CV_DATABASE_ID_BYTES], struct cv_why *why);

/* The functions that change the table run in the caller's transaction. */

/* Stores a new database's own keys. */
CV_MUST_USE enum cv_err cv_vault_begin(struct cv_vault *vault, struct cv_why *why);
/* Stores a new random key; replaces an older one of the same use. */
CV_MUST_USE enum cv_err cv_vault_renew(struct cv_vault *vault, uint32_t campaign, enum cv_vault_use use,
                                       struct cv_why *why);
/* Deletes a campaign's key. */
CV_MUST_USE enum cv_err cv_vault_drop(struct cv_vault *vault, uint32_t campaign, struct cv_why *why);
/* Wraps every key anew with the ring's current key that is not wrapped by it. */
CV_MUST_USE enum cv_err cv_vault_rewrap(struct cv_vault *vault, struct cv_why *why);

/* In transactions of their own: */

/* Wraps anew what the ring's current key does not wrap. */
CV_MUST_USE enum cv_err cv_vault_keep(struct cv_vault *vault, struct cv_why *why);
/*
 * Wraps all keys anew by the current key of another ring, which must have the key that wraps now, and forgets every
 * other master key. Nothing else changes, and the anchor still fits. The old key is needed no more when this has
 * returned. CV_ERR_DAMAGED if the ring does not have the key that wraps now: nothing has changed. After another error
 * the daemon must stop. Must not be called while a commit runs.
 */
CV_MUST_USE enum cv_err cv_vault_rekey(struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why);

/* Takes another ring, copied: it must have the keys that wrap now. CV_ERR_DAMAGED, and nothing has changed. */
CV_MUST_USE enum cv_err cv_vault_trust(struct cv_vault *vault, const struct cv_ring *ring, struct cv_why *why);
/* Forgets all master keys but the current one. */
void cv_vault_distrust(struct cv_vault *vault);

/* Reads a key; the caller wipes it. CV_ERR_NOT_FOUND if there is none; CV_ERR_DAMAGED. */
CV_MUST_USE enum cv_err cv_vault_key(struct cv_vault *vault, uint32_t campaign, enum cv_vault_use use,
                                     struct cv_key *ret, struct cv_why *why);
/*
 * From now on a campaign's sealing context belongs to this term (mark.h): its key is derived from the campaign's and
 * the term's id, so that two machines that are copies of one another never seal under the same key and nonce. Contexts
 * of the term before are forgotten. Without this call, contexts use the campaigns' own keys.
 */
void cv_vault_set_term(struct cv_vault *vault, const uint8_t id[CV_TERM_ID_BYTES]);
/* A campaign's sealing context, made at first use and kept until its key is dropped. The same errors. */
CV_MUST_USE enum cv_err cv_vault_seal(struct cv_vault *vault, uint32_t campaign, struct cv_seal **ret,
                                      struct cv_why *why);

/* How many keys are stored, and how many of them the ring's current key wraps. */
CV_MUST_USE enum cv_err cv_vault_count(struct cv_vault *vault, struct cv_vault_count *ret, struct cv_why *why);
/* The current master key. */
struct cv_key_id cv_vault_current(const struct cv_vault *vault);

#endif
