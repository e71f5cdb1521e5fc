/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interface between db.c and proof.c. */
#ifndef CV_DB_PROOF_HOOK_H
#define CV_DB_PROOF_HOOK_H

#include "common/db/db.h"

struct cv_proof_sums;

sqlite3 *cv_db_handle(struct cv_db *db);
/* Maps an SQLite code to an error and writes the message. */
enum cv_err cv_db_failed(struct cv_db *db, int code, struct cv_why *why);
const char *cv_db_path(const struct cv_db *db);
bool cv_db_is_readonly(const struct cv_db *db);
void cv_db_set_sums(struct cv_db *db, struct cv_proof_sums *sums);
struct cv_proof_sums *cv_db_sums(struct cv_db *db);

/* Write the codes of changed sums inside the transaction, before the commit. Then keep the sums after a commit, or
 * undo them after a rollback. */
CV_MUST_USE enum cv_err cv_proof_write(struct cv_proof_sums *sums, struct cv_why *why);
void cv_proof_keep(struct cv_proof_sums *sums);
void cv_proof_undo(struct cv_proof_sums *sums);
void cv_proof_free(struct cv_proof_sums *sums);

#endif
