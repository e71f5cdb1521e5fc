/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker holds of one arm at this moment, as kinds and counts only: no token, sum, noise, ticket or key. */
#ifndef CV_BROKER_COLUMN_H
#define CV_BROKER_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

struct cv_broker;

struct cv_broker_column {
  uint64_t tokens;       /* accepted, of all epochs */
  uint64_t places_open;  /* of the open epoch: not filled */
  uint64_t epoch_tokens; /* of the open epoch: accepted */
  uint64_t releases, spent_micro;
  bool has_epoch; /* a partial sum, and noise drawn for it if `has_noise`; both sealed */
  bool has_noise;
};

/* False if there is no such campaign or arm in memory. */
bool cv_broker_column(struct cv_broker *broker, uint64_t campaign, uint64_t arm, struct cv_broker_column *ret);

#endif
