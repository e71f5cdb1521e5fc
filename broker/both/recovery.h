/* SPDX-License-Identifier: Apache-2.0 */
/* The stored form of a recovery (recover.h): one row. */
#ifndef CV_BROKER_BOTH_RECOVERY_H
#define CV_BROKER_BOTH_RECOVERY_H

#include <stdint.h>

#include "broker/both/mark.h"
#include "common/base/buf.h"

struct cv_recovery {
  uint64_t wall_ms;
  uint64_t commit;                        /* of the database that was recovered */
  uint8_t database[CV_DATABASE_ID_BYTES]; /* the anchor's; zeros if there is no anchor */
  uint64_t anchored;                      /* commit of the anchor */
  uint64_t first, last;                   /* lost campaigns; first > last: none */
  uint64_t ended;                         /* campaigns that were open */
  uint64_t floor_micro;                   /* charged to every worker */
  uint64_t spared_micro;                  /* taken off single accounts where the floor charged too much; sum */
  uint64_t named;                         /* workers that were charged individually */
  struct cv_totals added;                 /* to the totals that follow from the other rows */
  /* Of a shared database: anchors whose totals are in the charges, and so those of the same term with a smaller
   * commit. */
  struct cv_anchor_place taken[CV_ANCHORS_MAX];
  size_t takens;
};

/* The stored form; without anchors that were taken in it ends before their number. CV_ERR_DAMAGED. */
void cv_recovery_put(const struct cv_recovery *recovery, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_recovery_read(struct cv_reader *row, struct cv_recovery *ret);

#endif
