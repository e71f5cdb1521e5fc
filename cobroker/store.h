/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The co-broker's database. One batch is one transaction, followed by the anchor. Secrets (the verify key, shares of
 * sums, noise, halves, who gave what) are sealed with a random key per campaign (vault.h); database, campaign, kind,
 * number and commit are bound to each sealed row, so that none can be moved to another place.
 *
 * Tables: meta, clear_row, sealed_row, wrapped_key. Every row has a code (common/db/proof.h).
 */
#ifndef CV_COBROKER_STORE_H
#define CV_COBROKER_STORE_H

#include "broker/both/anchor.h"
#include "broker/both/vault.h"
#include "cobroker/batch.h"
#include "cobroker/core.h"
#include "common/crypto/ring.h"
#include "common/db/db.h"

struct cv_cobroker_store;

/*
 * Opens or creates the database and compares it with its anchor. CV_ERR_DAMAGED, with both commit numbers, if the
 * database is older than its anchor, of another history, or exists without an anchor; also if the ring has no key that
 * fits. `ring` is borrowed for the call. Unless `readonly`, all keys are wrapped by the ring's current key afterwards.
 */
CV_MUST_USE enum cv_err cv_cobroker_store_open(const struct cv_store_files *files, const struct cv_ring *ring,
                                               struct cv_cobroker_store **ret, struct cv_why *why);
void cv_cobroker_store_close(struct cv_cobroker_store *store);
/* The open database, for a copy of it. */
struct cv_db *cv_cobroker_store_database(const struct cv_cobroker_store *store);
/* Whether a database exists at the path. */
bool cv_cobroker_store_exists(const char *database);

/* The keys of its secrets. */
struct cv_vault *cv_cobroker_store_vault(struct cv_cobroker_store *store);

/* What was found when the store was opened. */
/* cv_db_strangers() of its database. */
CV_MUST_USE enum cv_err cv_cobroker_store_strangers(struct cv_cobroker_store *store,
                                                    void (*told)(void *data, const char *what), void *data,
                                                    struct cv_why *why);
void cv_cobroker_store_marks(const struct cv_cobroker_store *store, struct cv_store_marks *ret);
/* For repair: sets the number of the next commit, which must be above the last one; writes the anchor from the
 * database's mark. */
void cv_cobroker_store_leap(struct cv_cobroker_store *store, uint64_t commit);
CV_MUST_USE enum cv_err cv_cobroker_store_anchor(struct cv_cobroker_store *store, struct cv_why *why);

/* Restores a new core. */
CV_MUST_USE enum cv_err cv_cobroker_store_load(struct cv_cobroker_store *store, struct cv_cobroker *core,
                                               uint64_t now_ms, uint64_t wall_ms, struct cv_why *why);
/* Commits, then writes the anchor. After an error the daemon must stop: it is unknown whether the batch is stored. */
CV_MUST_USE enum cv_err cv_cobroker_store_commit(struct cv_cobroker_store *store, const struct cv_cobroker_batch *batch,
                                                 struct cv_why *why);

#endif
