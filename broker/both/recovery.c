/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/recovery.h"

#include <string.h>

#include "common/base/buf.h"
#include "common/base/err.h"

void cv_recovery_put(const struct cv_recovery *recovery, struct cv_buf *out) {
  const uint64_t fields[] = {recovery->wall_ms,      recovery->commit,
                             recovery->anchored,     recovery->first,
                             recovery->last,         recovery->ended,
                             recovery->floor_micro,  recovery->added.releases,
                             recovery->added.tokens, recovery->added.promised_micro,
                             recovery->spared_micro, recovery->named};
  cv_buf_put(out, recovery->database, sizeof(recovery->database));
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    cv_buf_put_u64(out, fields[i]);
  }
  cv_buf_put_u64(out, recovery->takens);
  for (size_t i = 0; i < recovery->takens; i++) {
    cv_buf_put(out, recovery->taken[i].term_id, sizeof(recovery->taken[i].term_id));
    cv_buf_put_u64(out, recovery->taken[i].commit);
  }
}

/* False if the row is damaged. */
static bool read_taken(struct cv_reader *row, struct cv_recovery *recovery) {
  uint64_t n = cv_read_u64(row);
  if (n > CV_ANCHORS_MAX) {
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    const uint8_t *id = cv_read(row, CV_TERM_ID_BYTES);
    if (id == NULL) {
      return false;
    }
    memcpy(recovery->taken[i].term_id, id, CV_TERM_ID_BYTES);
    recovery->taken[i].commit = cv_read_u64(row);
  }
  recovery->takens = n;
  return true;
}

enum cv_err cv_recovery_read(struct cv_reader *row, struct cv_recovery *ret) {
  struct cv_recovery recovery = {0};
  uint64_t *const fields[] = {&recovery.wall_ms,      &recovery.commit,
                              &recovery.anchored,     &recovery.first,
                              &recovery.last,         &recovery.ended,
                              &recovery.floor_micro,  &recovery.added.releases,
                              &recovery.added.tokens, &recovery.added.promised_micro,
                              &recovery.spared_micro, &recovery.named};
  const uint8_t *database = cv_read(row, sizeof(recovery.database));
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    *fields[i] = cv_read_u64(row);
  }
  if (database == NULL || !read_taken(row, &recovery) || !cv_reader_done(row) || recovery.last > UINT32_MAX) {
    return CV_ERR_DAMAGED;
  }
  memcpy(recovery.database, database, sizeof(recovery.database));
  *ret = recovery;
  return CV_OK;
}
