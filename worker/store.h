/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker must not forget, in the file given.db of the state folder:
 *
 *   - the scores that each worker of a range has given over all runs, so that its limit survives restarts;
 *   - a key, drawn once: the order of a data file's rows and the coins of its scores follow from it (coin.h), and
 *     no start has others;
 *   - of each data file its fingerprint, the campaigns that it has served, and the rows that have left;
 *   - of people and programs the questions that each worker has answered in each campaign; behind a privatizer, in
 *     all campaigns of a name, and a digest of the items that these questions number.
 *
 * The shell commits a count before the token leaves, since the broker may have seen any token that left. An older copy
 * of the file has the same key: a row that left after the copy was made leaves again, if at all, as the same token.
 */
#ifndef CV_WORKER_STORE_H
#define CV_WORKER_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/digest.h"
#include "common/base/err.h"
#include "common/base/rng.h"
#include "common/db/db.h"
#include "worker/coin.h"

struct cv_worker_store;

/* `state` is an existing folder; counts of other ranges in the same file stay. A new file's key is `key`, or drawn from
 * `rng` if that is NULL, and stored at once. CV_ERR_INVALID if the file has another key than `key`; errors as for
 * cv_db_open(). */
CV_MUST_USE enum cv_err cv_worker_store_open(const char *state, uint64_t first, uint64_t last, const uint8_t *key,
                                             struct cv_rng *rng, struct cv_worker_store **ret, struct cv_why *why);
void cv_worker_store_close(struct cv_worker_store *store);
/* Checks a copy of a database as cv_backup_check_fn says (common/daemon/backup_command.h); *ret_commit is 0. */
CV_MUST_USE enum cv_err cv_worker_check_copy(const void *settings, const char *path, uint64_t *ret_commit,
                                             struct cv_why *why);
/* The open database, for a copy of it. */
struct cv_db *cv_worker_store_database(const struct cv_worker_store *store);

/* CV_COIN_KEY_BYTES, owned by `store`. */
const uint8_t *cv_worker_store_key(const struct cv_worker_store *store);
/* The scores given per worker, from `first` on; owned by `store`. */
const uint32_t *cv_worker_store_scores(const struct cv_worker_store *store);
/* Sets the total of a worker of the range; the next cv_worker_store_commit() stores it. */
void cv_worker_store_note(struct cv_worker_store *store, uint64_t worker, uint32_t scores);
/* Stores at once that the data file has this fingerprint (data.h). CV_ERR_INVALID if it had another one: rows are known
 * by number, and in another file the same numbers are other scores. */
CV_MUST_USE enum cv_err cv_worker_store_data(struct cv_worker_store *store, const char *path, uint64_t print,
                                             struct cv_why *why);
/* Calls told() once for each stored row of a data set, in order. CV_ERR_INVALID if told() returns false. */
CV_MUST_USE enum cv_err cv_worker_store_rows(struct cv_worker_store *store, uint64_t print,
                                             bool (*told)(void *data, uint64_t row), void *data, struct cv_why *why);
/* Adds given rows of the data set above; the next cv_worker_store_commit() stores them. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_store_note_rows(struct cv_worker_store *store, const uint32_t *row, size_t rows);

/* No campaign has this number. */
enum { CV_SERVED_ANY = 0 };

/* A campaign, as its broker numbers and names it. */
struct cv_served_campaign {
  uint64_t id; /* CV_SERVED_ANY: of answers, those behind a privatizer in all campaigns of the name */
  const char *name;
  uint64_t law;                  /* cv_coin_law() of its privatizer */
  const struct cv_digest *items; /* of answers: what its questions number */
};
/* Stores at once that a data set serves a campaign under its law. CV_ERR_DENIED if it has been disclosed `most` times,
 * to other campaigns or under other laws; 0: any number. */
CV_MUST_USE enum cv_err cv_worker_store_serve(struct cv_worker_store *store, uint64_t print,
                                              const struct cv_served_campaign *campaign, uint64_t most,
                                              struct cv_why *why);
/* Of a part of a data set: how many rows of each arm have left to the campaign, as stored or noted. */
CV_MUST_USE enum cv_err cv_worker_store_taken(struct cv_worker_store *store, uint64_t print,
                                              const struct cv_served_campaign *campaign, uint32_t arms,
                                              uint64_t *ret_taken, struct cv_why *why);
/* Sets the number for an arm; the next cv_worker_store_commit() stores it. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_store_note_taken(struct cv_worker_store *store, uint64_t print,
                                                   const struct cv_served_campaign *campaign, uint32_t arm,
                                                   uint64_t taken);

/* ---- answers of people and programs ---- */

/* Calls tell() for each question that a worker of the range has answered in the campaign, those that were noted before,
 * too: these are stored first. CV_ERR_DENIED if CV_SERVED_ANY has answers about other items; errors of tell(), and as
 * for cv_db_commit(). */
CV_MUST_USE enum cv_err cv_worker_store_answered(struct cv_worker_store *store,
                                                 const struct cv_served_campaign *campaign,
                                                 enum cv_err (*tell)(void *to, uint64_t worker, uint64_t question),
                                                 void *to, struct cv_why *why);
/* The worker has answered the question, or (not `is_answered`) may be asked it again; the next
 * cv_worker_store_commit() stores it. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_worker_store_note_answer(struct cv_worker_store *store,
                                                    const struct cv_served_campaign *campaign, uint64_t worker,
                                                    uint64_t question, bool is_answered);

/* Writes all noted counts, rows and answers to disk. Errors as for cv_db_commit(): the outcome is unknown, so no token
 * may leave. */
CV_MUST_USE enum cv_err cv_worker_store_commit(struct cv_worker_store *store, struct cv_why *why);

#endif
