/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authentication codes for every row of the broker's database (common/db/proof.h): public rows, sealed rows, and the
 * database's description of itself. Without the seal key, which unwraps the key of the codes (vault.h), no one can
 * change, add, remove or restore a row unnoticed; the anchor detects that the whole database was restored.
 */
#ifndef CV_BROKER_STORE_PROOF_H
#define CV_BROKER_STORE_PROOF_H

#include "common/crypto/crypto.h"
#include "common/db/proof.h"

/* The index of each part, for row_code(). */
enum cv_sqlite_part {
  CV_PART_META,
  CV_PART_CAMPAIGN,
  CV_PART_PLAN,
  CV_PART_RELEASE,
  CV_PART_LEDGER,
  CV_PART_RECOVERY,
  CV_PART_JOURNAL,
  CV_PART_CHUNK,
  CV_PART_ENDED,
  CV_PART_KEY,
  CV_SQLITE_PARTS
};

/* Calls cv_proof_begin() with codes under `key`; `is_new` is its own. The caller owns `*ret_mac`, also after an error,
 * and frees it after the database is closed. */
CV_MUST_USE enum cv_err cv_sqlite_proof_begin(struct cv_db *db, const struct cv_key *key, bool is_new,
                                              struct cv_mac **ret_mac, struct cv_why *why);

#endif
