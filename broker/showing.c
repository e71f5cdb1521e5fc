/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/showing.h"

#include "broker/column.h"

enum cv_page_found cv_broker_showing(struct cv_broker *broker, uint64_t id, uint64_t arm, struct cv_buf *out) {
  struct cv_holding column;
  if (!cv_broker_column(broker, id, arm, &column)) {
    return CV_PAGE_ABSENT;
  }
  cv_holding_tell(&column, out);
  return CV_PAGE_HERE;
}
