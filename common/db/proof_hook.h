/* SPDX-License-Identifier: Apache-2.0 */
/* What db.c and proof.c know of each other. */
#ifndef CV_DB_PROOF_HOOK_H
#define CV_DB_PROOF_HOOK_H

#include "common/db/db.h"

struct cv_proof_sums;

sqlite3 *cv_db_handle(struct cv_db *db);
/* The line and the kind for a code of SQLite's. */
enum cv_err cv_db_failed(struct cv_db *db, int code, struct cv_why *why);
const char *cv_db_path(const struct cv_db *db);
bool cv_db_is_readonly(const struct cv_db *db);
void cv_db_set_sums(struct cv_db *db, struct cv_proof_sums *sums);
struct cv_proof_sums *cv_db_sums(struct cv_db *db);

/* Inside the transaction, before it is committed; then one of the two. */
CV_MUST_USE enum cv_err cv_proof_write(struct cv_proof_sums *sums, struct cv_why *why);
void cv_proof_keep(struct cv_proof_sums *sums);
void cv_proof_undo(struct cv_proof_sums *sums);
void cv_proof_free(struct cv_proof_sums *sums);

#endif
