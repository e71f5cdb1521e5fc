/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/budget.h"

#include "common/campaign/items.h"

uint64_t cv_budget_bytes(uint64_t mib) {
  return (mib > 0 ? mib : CV_ITEMS_MEMORY_MIB) << 20;
}

enum cv_err cv_budget_take(struct cv_budget *budget, uint64_t bytes, const char *place, struct cv_why *why) {
  if (bytes > budget->most - budget->bytes) {
    return cv_fail(why, CV_ERR_LIMIT,
                   "%s: the rows up to here take more than %llu MiB of memory; expected at most that, or a larger "
                   "items.memory",
                   place, (unsigned long long)(budget->most >> 20));
  }
  budget->bytes += bytes;
  return CV_OK;
}
