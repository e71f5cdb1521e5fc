/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker or co-broker holds of one arm at this moment, as kinds and counts only: no token, share, sum, noise,
 * ticket or key. */
#ifndef CV_BROKER_BOTH_HOLDING_H
#define CV_BROKER_BOTH_HOLDING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"

struct cv_holding {
  uint64_t tokens;                /* accepted, of all epochs */
  uint64_t places_open;           /* of the open epoch: not filled */
  uint64_t epoch_tokens;          /* of the open epoch: accepted */
  uint64_t releases, spent_micro; /* with two brokers: its halves of releases */
  bool has_epoch;                 /* a partial sum, and noise drawn for it if `has_noise`; both sealed */
  bool has_noise;
  bool is_share; /* of two brokers: its sum is one share of the sum */
};

/* As one object of JSON: a party's column of the boundary view (docs/page.md). */
void cv_holding_tell(const struct cv_holding *holding, struct cv_buf *out);

#endif
