/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the rows of a data file may take while they are read: a small packed file, or a query, may say any
 * number of them. */
#ifndef CV_WORKER_BUDGET_H
#define CV_WORKER_BUDGET_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_budget {
  uint64_t bytes, most;
};

/* The bytes that `items.memory` permits; 0 MiB: its default. */
uint64_t cv_budget_bytes(uint64_t mib);
/* Before so many bytes are allocated, for a row at `place`. CV_ERR_LIMIT. */
CV_MUST_USE enum cv_err cv_budget_take(struct cv_budget *budget, uint64_t bytes, const char *place, struct cv_why *why);

#endif
