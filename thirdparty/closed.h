/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of a broker's closed campaigns, as ranges. Brokers number their campaigns consecutively, so a thousand
 * numbers usually need one range.
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
/* Adds a number, which may be present already. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_closed_add(struct cv_closed *closed, uint64_t number);

#endif
