/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of the broker's database under codes that need its seal key (common/db/proof.h): what is in the clear, what
 * is sealed, and what the database says of itself. Nobody without the key can change, add, remove or put back a row
 * unnoticed; that the database goes back as a whole is for the anchor to notice.
 */
#ifndef CV_BROKER_PROOF_H
#define CV_BROKER_PROOF_H

#include "common/crypto/crypto.h"
#include "common/db/proof.h"

/* The parts' places, for row_code(). */
enum cv_broker_part {
  CV_PART_META,
  CV_PART_CAMPAIGN,
  CV_PART_PLAN,
  CV_PART_RELEASE,
  CV_PART_LEDGER,
  CV_PART_RECOVERY,
  CV_PART_JOURNAL,
  CV_PART_CHUNK,
  CV_PART_ENDED,
  CV_BROKER_PARTS
};

/* The schema's step after which rows have codes. */
extern const char CV_BROKER_PROOF_STEP[];

/*
 * cv_proof_begin() with the key of the database with this number, derived from `master`. `*ret_mac` belongs to the
 * caller, also after an error, and is freed after the database has been closed.
 */
CV_MUST_USE enum cv_err cv_broker_proof_begin(struct cv_db *db, const struct cv_key *master, uint64_t number,
                                              bool adopts, struct cv_mac **ret_mac, enum cv_proof *ret,
                                              struct cv_why *why);

#endif
