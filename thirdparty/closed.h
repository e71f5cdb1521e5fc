/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of a broker's campaigns that are closed, as ranges: brokers number their campaigns one after the other, so a
 * thousand of them take the room of one.
 */
#ifndef CV_THIRDPARTY_CLOSED_H
#define CV_THIRDPARTY_CLOSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

struct cv_closed_range {
  uint64_t first, last;
};

/* All zero: none. */
struct cv_closed {
  struct cv_closed_range *range; /* ascending, with gaps between them; owned */
  size_t count, cap;
};

void cv_closed_fini(struct cv_closed *closed);
bool cv_closed_has(const struct cv_closed *closed, uint64_t number);
/* One more, which may be there already. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_closed_add(struct cv_closed *closed, uint64_t number);

#endif
