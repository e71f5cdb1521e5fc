/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed values of a broker's database: journal rows and chunks. Each is bound to database, campaign, kind, number and
 * commit, so that none can be moved to another place, and an older value of the same row does not open.
 */
#ifndef CV_BROKER_STORE_SEALED_H
#define CV_BROKER_STORE_SEALED_H

#include "broker/both/vault.h"

struct cv_sealed {
  struct cv_vault *vault; /* borrowed */
  uint8_t database[CV_DATABASE_ID_BYTES];
  struct cv_buf out; /* the result of the last call */
};

/* Where a value is. A journal row is numbered by its commit and has no kind. */
struct cv_sealed_place {
  uint32_t campaign, kind;
  uint64_t number, commit;
};

/* Wipes and frees the buffer. */
void cv_sealed_fini(struct cv_sealed *sealed);
/* Seals into `out`. CV_ERR_NOT_FOUND if the campaign has no key, CV_ERR_DAMAGED, CV_ERR_CRYPTO, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_sealed_close(struct cv_sealed *sealed, const struct cv_sealed_place *place,
                                        const void *bytes, size_t n, struct cv_why *why);
/* Opens into `out`. The same errors; CV_ERR_DAMAGED if the value was not sealed for this place. */
CV_MUST_USE enum cv_err cv_sealed_open(struct cv_sealed *sealed, const struct cv_sealed_place *place, const void *bytes,
                                       size_t n);

#endif
