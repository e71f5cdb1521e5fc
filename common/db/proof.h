/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integrity of all rows of a database: detects a flipped bit, and a row that was deleted, inserted or restored from an
 * older copy. SQLite's preupdate hook reports each change of a covered table, so no statement can bypass the check.
 *
 * Each row has a code of 32 bytes. Its first half may be stored in a column of the row; it identifies the damaged row
 * in messages. The second half is never stored: the sums of these halves, one for each group of rows and table, are in
 * memory. The table `proof` holds only codes of the sums, written in the transaction that changes the rows, in time
 * proportional to the change. One code covers all sums, so that no single group can be rolled back alone.
 *
 * With a keyed code nobody can forge a row or a sum without the key. Without a key (`code` NULL) the codes are
 * checksums, which find accidents only. broker/both/anchor.h detects a rollback of the whole database.
 */
#ifndef CV_DB_PROOF_H
#define CV_DB_PROOF_H

#include <stdint.h>

#include "common/db/db.h"

enum { CV_PROOF_PARTS_MAX = 16, CV_PROOF_CODE_BYTES = 16 };

/* Creates the table `proof`. Columns for codes are BLOB. */
#define CV_PROOF_TABLE "CREATE TABLE proof (grp INTEGER PRIMARY KEY, codes BLOB NOT NULL);"

/* A covered table. Parts keep their index: later versions append theirs. */
struct cv_proof_part {
  const char *table;
  const char *group;  /* column with the group number; NULL: all rows belong to group 0 */
  const char *code;   /* column of the rows' codes; NULL: codes are not stored */
  const char *sealed; /* column of values from cv_seal_close(), or NULL; the code covers only nonce and tag */
};

struct cv_proof_config {
  const struct cv_proof_part *part;
  size_t parts; /* a database may have been written with fewer: later ones had no rows then */
  /* Computes a keyed code; its only error is CV_ERR_NOMEM. NULL: a checksum. */
  enum cv_err (*code)(void *data, const void *bytes, size_t n, uint8_t ret[2 * CV_PROOF_CODE_BYTES]);
  void *data;
  bool is_new; /* the open transaction has made all rows: none is checked, and its commit stores their sums */
};

/*
 * Call once after cv_db_open(): verifies every covered row against its code and sum, then tracks changes. From then on
 * covered tables may change inside transactions only, and the SQL function row_code(part, value of each other column in
 * turn) gives the value of the code column for an INSERT or UPDATE.
 *
 * A database without sums fits if it has no row. CV_ERR_DAMAGED names the table and row, or table and group, that do
 * not match.
 */
CV_MUST_USE enum cv_err cv_proof_begin(struct cv_db *db, const struct cv_proof_config *config, struct cv_why *why);
/* Verifies the rows of one group again. Call outside transactions. */
CV_MUST_USE enum cv_err cv_proof_check(struct cv_db *db, int64_t group, struct cv_why *why);

#endif
