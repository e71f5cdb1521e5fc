/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of a database accounted for: a bit that flips, a row that goes, comes or is put back from an older copy is
 * noticed. SQLite itself reports each change of a covered table, so no statement can be forgotten.
 *
 * A row has a code of 32 bytes. Its first half may be stored in a column of the row, which names a row that is damaged.
 * The second half is never stored: the sums of them, for each group of rows and table, are in memory, and on disk, in
 * the table `proof`, only codes of the sums, written in the transaction that changes the rows, in time that depends on
 * what changed. One code is over all sums, so that no group can go back alone.
 *
 * With a code that needs a key nobody without it can write a row or a sum that fits. Without (`code` NULL) the codes
 * are checksums: they find accidents, not lies. Going back as a whole is for others to notice (broker/anchor.h).
 */
#ifndef CV_DB_PROOF_H
#define CV_DB_PROOF_H

#include <stdint.h>

#include "common/db/db.h"

enum { CV_PROOF_PARTS_MAX = 12, CV_PROOF_CODE_BYTES = 16 };

/* For the schema's step that begins to account for rows; columns for codes are BLOB, NULL until then. */
#define CV_PROOF_TABLE "CREATE TABLE proof (grp INTEGER PRIMARY KEY, codes BLOB NOT NULL);"

/* A covered table. Parts keep their places: later versions add theirs at the end. */
struct cv_proof_part {
  const char *table;
  const char *group;  /* column, or NULL: its rows belong to group 0 */
  const char *code;   /* column of the rows' codes, or NULL: it has none */
  const char *sealed; /* column of values from cv_seal_close(), whose nonce and tag stand for them, or NULL */
};

struct cv_proof_config {
  const struct cv_proof_part *part;
  size_t parts;
  /* CV_ERR_NOMEM at most. NULL: a checksum. */
  enum cv_err (*code)(void *data, const void *bytes, size_t n, uint8_t ret[2 * CV_PROOF_CODE_BYTES]);
  void *data;
  bool adopts; /* takes rows that have no codes as they are, and gives them codes */
};

/* The rows have no codes (read only, or of an earlier version); all fit; they have been given codes. */
enum cv_proof { CV_PROOF_NONE, CV_PROOF_FITS, CV_PROOF_ADDED };

/*
 * Once, after cv_db_open(): reads every covered row and holds it against its code and sum, then follows what changes.
 * From then on covered tables change inside of transactions only, and the SQL function
 * row_code(part, value of each other column in turn) gives what an INSERT or UPDATE puts into the code's column.
 *
 * CV_ERR_DAMAGED names table and row, or table and group, that do not fit. Rows that get
 * codes are one line in the log.
 */
CV_MUST_USE enum cv_err cv_proof_begin(struct cv_db *db, const struct cv_proof_config *config, enum cv_proof *ret,
                                       struct cv_why *why);
/* The rows of one group, read again. Outside of transactions. */
CV_MUST_USE enum cv_err cv_proof_check(struct cv_db *db, int64_t group, struct cv_why *why);

#endif
