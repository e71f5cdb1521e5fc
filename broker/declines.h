/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why connections declined a campaign, for its requester: at most CV_DECLINE_REASONS different reasons, each with the
 * number of connections that gave it. A connection counts once, also after it has left, until its certificate connects
 * again. Memory is bounded: of more than CV_DECLINERS connections the first count.
 */
#ifndef CV_BROKER_DECLINES_H
#define CV_BROKER_DECLINES_H

#include <stdint.h>

#include "common/base/err.h"
#include "proto/codec/order.h"

enum { CV_DECLINE_REASONS = 16, CV_DECLINERS = 1024 };

struct cv_decliner {
  uint64_t who; /* hash of its role and name */
  uint32_t reason;
};

/* All zero is empty. */
struct cv_declines {
  struct cv_declined *reason; /* CV_DECLINE_REASONS of them once there is one; owned */
  uint32_t reasons;
  struct cv_decliner *decliner; /* owned */
  uint32_t decliners;
  size_t cap;
};

void cv_declines_fini(struct cv_declines *declines);
/* `why` is clean text, cut if it is long; NULL: no reason given. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_declines_add(struct cv_declines *declines, const char *who, const char *why);
/* The connection's reason counts no longer. */
void cv_declines_forget(struct cv_declines *declines, const char *who);
/* Fills in the reasons that most connections gave, and the number of connections. */
void cv_declines_tell(const struct cv_declines *declines, struct cv_progress *ret);

#endif
