/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/cobroker_disk.h"

#include <stdlib.h>
#include <string.h>

#include "cobroker/restore.h"
#include "common/base/array.h"

static void drop(struct disk *disk, size_t at) {
  cv_buf_fini(&disk->row[at].bytes);
  disk->rows--;
  memmove(&disk->row[at], &disk->row[at + 1], (disk->rows - at) * sizeof(*disk->row)); /* the order stays */
}

void disk_fini(struct disk *disk) {
  while (disk->rows > 0) {
    drop(disk, disk->rows - 1);
  }
  free(disk->row);
}

/* Before, at or behind the operation's row: below, equal to or above 0. */
static int compare(const struct disk_row *row, const struct cv_cobroker_op *op) {
  if (row->campaign != op->campaign) {
    return row->campaign < op->campaign ? -1 : 1;
  }
  if (row->kind != op->row) {
    return row->kind < op->row ? -1 : 1;
  }
  return row->number == op->number ? 0 : row->number < op->number ? -1 : 1;
}

/* The place of the operation's row, which may be there or not. */
static size_t find(const struct disk *disk, const struct cv_cobroker_op *op) {
  size_t at = 0;
  while (at < disk->rows && compare(&disk->row[at], op) < 0) {
    at++;
  }
  return at;
}

static bool is_at(const struct disk *disk, size_t at, const struct cv_cobroker_op *op) {
  return at < disk->rows && compare(&disk->row[at], op) == 0;
}

static bool is_replaced(enum cv_cobroker_row kind) {
  return kind == CV_COROW_LEDGER || kind == CV_COROW_STATE || kind == CV_COROW_ENDED || kind == CV_COROW_ARM ||
         kind == CV_COROW_PLACES || kind == CV_COROW_SLOTS || kind == CV_COROW_ANSWERED || kind == CV_COROW_ACCOUNTS;
}

static void put(struct disk *disk, const struct cv_cobroker_batch *batch, const struct cv_cobroker_op *op) {
  size_t at = find(disk, op);
  if (!is_at(disk, at, op)) {
    CV_REQUIRE(CV_ARRAY_PUSH(disk->row, disk->rows, disk->cap) != NULL);
    memmove(&disk->row[at + 1], &disk->row[at], (disk->rows - 1 - at) * sizeof(*disk->row));
    disk->row[at] = (struct disk_row){.kind = op->row, .campaign = op->campaign, .number = op->number};
  } else {
    CV_REQUIRE(is_replaced(op->row));
  }
  struct disk_row *row = &disk->row[at];
  row->made = batch->commit;
  cv_buf_clear(&row->bytes);
  cv_buf_put(&row->bytes, batch->bytes.data + op->at, op->n);
  CV_REQUIRE(cv_buf_ok(&row->bytes));
}

/* Whether this operation, which deletes rows, deletes this one. */
static bool goes(const struct disk_row *row, const struct cv_cobroker_op *op) {
  return op->kind == CV_COOP_PURGE ? row->campaign == op->campaign : row->kind == op->row && row->number < op->number;
}

static void sweep(struct disk *disk, const struct cv_cobroker_op *op) {
  for (size_t i = disk->rows; i-- > 0;) {
    if (goes(&disk->row[i], op)) {
      drop(disk, i);
    }
  }
}

static void apply(struct disk *disk, const struct cv_cobroker_batch *batch, const struct cv_cobroker_op *op) {
  size_t at;
  switch (op->kind) {
    case CV_COOP_PUT:
      put(disk, batch, op);
      return;
    case CV_COOP_DELETE:
      at = find(disk, op);
      if (is_at(disk, at, op)) {
        drop(disk, at);
      }
      return;
    default:
      CV_REQUIRE(op->kind == CV_COOP_PURGE || op->row == CV_COROW_JOURNAL);
      sweep(disk, op);
  }
}

void disk_commit(struct disk *disk, const struct cv_cobroker_batch *batch) {
  CV_REQUIRE(batch->commit == disk->commit + 1);
  disk->commit = batch->commit;
  disk->totals = batch->totals;
  for (size_t i = 0; i < batch->ops; i++) {
    CV_REQUIRE(batch->op[i].at + batch->op[i].n <= batch->bytes.len);
    apply(disk, batch, &batch->op[i]);
  }
}

static enum cv_err restore(const struct disk_row *row, struct cv_cobroker *core) {
  const struct cv_cobroker_name name = {.campaign = row->campaign,
                                        .kind = row->kind,
                                        .number = row->number,
                                        .commit = cv_cobroker_row_is_sealed(row->kind) ? row->made : 0};
  struct cv_reader in = cv_reader_over(row->bytes.data, row->bytes.len);
  return cv_cobroker_restore(core, &name, &in);
}

static enum cv_err restore_some(const struct disk *disk, struct cv_cobroker *core, bool sealed) {
  for (size_t i = 0; i < disk->rows; i++) {
    const struct disk_row *row = &disk->row[i];
    if (row->kind != CV_COROW_JOURNAL && cv_cobroker_row_is_sealed(row->kind) == sealed) {
      CV_TRY(restore(row, core));
    }
  }
  return CV_OK;
}

/* By commit: one that is not there is skipped. */
static enum cv_err restore_journal(const struct disk *disk, struct cv_cobroker *core) {
  for (uint64_t commit = 1; commit <= disk->commit; commit++) {
    for (size_t i = 0; i < disk->rows; i++) {
      if (disk->row[i].kind == CV_COROW_JOURNAL && disk->row[i].number == commit) {
        CV_TRY(restore(&disk->row[i], core));
      }
    }
  }
  return CV_OK;
}

enum cv_err disk_load(const struct disk *disk, struct cv_cobroker *core, uint64_t now_ms, uint64_t wall_ms) {
  CV_TRY(restore_some(disk, core, false));
  CV_TRY(restore_some(disk, core, true));
  CV_TRY(restore_journal(disk, core));
  return cv_cobroker_restore_end(core, disk->commit, &disk->totals, now_ms, wall_ms);
}
