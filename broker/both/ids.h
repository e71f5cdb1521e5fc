/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of campaigns in the broker's database, one after the other. */
#ifndef CV_BROKER_BOTH_IDS_H
#define CV_BROKER_BOTH_IDS_H

#include <stdint.h>

#include "common/db/db.h"

/*
 * Reads one number above `after` with `sql`, a string literal that selects it for parameter 1; *ret is 0 if there is
 * none. The statement is reset, so that the caller may use the database before the next call. CV_ERR_DAMAGED for a
 * number that is no campaign's, and the errors of the database.
 */
CV_MUST_USE enum cv_err cv_ids_next(struct cv_db *db, const char *sql, uint32_t after, uint32_t *ret,
                                    struct cv_why *why);

#endif
