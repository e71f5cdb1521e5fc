/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilds the co-broker's core from stored rows, before the first event.
 *
 * Call order: the rows in the clear by campaign, kind and number; in the same order the sealed ones apart from the
 * journal; the journal by number; the end.
 */
#ifndef CV_COBROKER_RESTORE_H
#define CV_COBROKER_RESTORE_H

#include <stdint.h>

#include "cobroker/batch.h"
#include "common/base/buf.h"
#include "common/base/err.h"

struct cv_cobroker;

/* The name of a row, as a batch wrote it. `commit` is that of the batch, for a sealed row. */
struct cv_cobroker_name {
  uint32_t campaign;
  uint32_t kind; /* enum cv_cobroker_row */
  uint64_t number, commit;
};

/* Reads a row. CV_ERR_DAMAGED if it is malformed or contradicts earlier rows; CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_restore(struct cv_cobroker *core, const struct cv_cobroker_name *name,
                                            struct cv_reader *row);
/* `commit` is the last stored commit, `totals` the totals stored with it. CV_ERR_DAMAGED if rows contradict each other
 * or are missing. */
CV_MUST_USE enum cv_err cv_cobroker_restore_end(struct cv_cobroker *core, uint64_t commit,
                                                const struct cv_totals *totals, uint64_t now_ms, uint64_t wall_ms);
/* A word for the kind of a row, for messages; never NULL. */
const char *cv_cobroker_row_text(uint32_t kind);

#endif
