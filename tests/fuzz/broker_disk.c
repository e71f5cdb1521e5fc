/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/broker_disk.h"

#include <stdlib.h>
#include <string.h>

#include "broker/recover.h"
#include "broker/restore.h"
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

static struct disk_row *find(const struct disk *disk, const struct cv_op *op) {
  for (size_t i = 0; i < disk->rows; i++) {
    const struct cv_op *is = &disk->row[i].op;
    if (is->kind == op->kind && is->chunk == op->chunk && is->campaign == op->campaign && is->number == op->number) {
      return &disk->row[i];
    }
  }
  return NULL;
}

static struct disk_row *insert(struct disk *disk, const struct cv_op *op) {
  struct disk_row *row = CV_ARRAY_PUSH(disk->row, disk->rows, disk->cap);
  CV_REQUIRE(row != NULL);
  *row = (struct disk_row){.op = *op};
  return row;
}

/* Whether a row of an ended campaign is dropped. */
static bool is_dropped(const struct cv_op *row, const struct cv_op *op) {
  switch (row->kind) {
    case CV_OP_PLAN:
    case CV_OP_RELEASE:
      return row->campaign == op->campaign && row->number <= op->number;
    case CV_OP_CAMPAIGN:
    case CV_OP_STATE:
    case CV_OP_STANDINGS:
    case CV_OP_LEDGER:
      return row->campaign == op->campaign && op->number == CV_DROP_ALL;
    default:
      return false;
  }
}

/* Whether this operation, which deletes rows, deletes this one. */
static bool goes(const struct disk_row *row, const struct cv_op *op) {
  bool journal = row->op.kind == CV_OP_JOURNAL;
  switch (op->kind) {
    case CV_OP_TRIM:
      return journal && row->made < op->number;
    case CV_OP_PURGE:
      return (journal || row->op.kind == CV_OP_CHUNK) && row->op.campaign == op->campaign;
    case CV_OP_FORGET:
      return row->op.kind == CV_OP_ENDED && row->op.campaign == op->campaign;
    default:
      return is_dropped(&row->op, op);
  }
}

static void sweep(struct disk *disk, const struct cv_op *op) {
  for (size_t i = disk->rows; i-- > 0;) {
    if (goes(&disk->row[i], op)) {
      drop(disk, i);
    }
  }
}

static void apply(struct disk *disk, const struct cv_broker_batch *batch, const struct cv_op *op) {
  if (op->kind == CV_OP_TRIM || op->kind == CV_OP_PURGE || op->kind == CV_OP_DROP || op->kind == CV_OP_FORGET) {
    sweep(disk, op);
    return;
  }
  struct cv_op key = *op;
  key.kind = op->kind == CV_OP_UNCHUNK ? CV_OP_CHUNK : op->kind;
  struct disk_row *row = find(disk, &key);
  if (op->kind == CV_OP_UNCHUNK) {
    if (row != NULL) {
      drop(disk, (size_t)(row - disk->row));
    }
    return;
  }
  bool replaces = op->kind == CV_OP_ENDED || op->kind == CV_OP_STATE || op->kind == CV_OP_STANDINGS ||
                  op->kind == CV_OP_LEDGER || op->kind == CV_OP_CHUNK;
  CV_REQUIRE(row == NULL || replaces);
  row = row != NULL ? row : insert(disk, &key);
  row->made = batch->commit;
  cv_buf_clear(&row->bytes);
  cv_buf_put(&row->bytes, batch->bytes.data + op->at, op->n);
  CV_REQUIRE(cv_buf_ok(&row->bytes));
}

void disk_commit(struct disk *disk, const struct cv_broker_batch *batch) {
  CV_REQUIRE(batch->commit == disk->commit + 1);
  disk->commit = batch->commit;
  for (size_t i = 0; i < batch->ops; i++) {
    CV_REQUIRE(batch->op[i].at + batch->op[i].n <= batch->bytes.len);
    apply(disk, batch, &batch->op[i]);
  }
}

static enum cv_err restore(const struct disk_row *row, struct cv_broker *broker) {
  struct cv_reader in = cv_reader_over(row->bytes.data, row->bytes.len);
  uint32_t campaign = row->op.campaign;
  switch (row->op.kind) {
    case CV_OP_ENDED:
      return cv_broker_restore_ended(broker, campaign, &in);
    case CV_OP_CAMPAIGN:
      return cv_broker_restore_campaign(broker, campaign, &in);
    case CV_OP_PLAN:
      return cv_broker_restore_plan(broker, campaign, &in);
    case CV_OP_RELEASE:
      return cv_broker_restore_release(broker, campaign, &in);
    case CV_OP_LEDGER:
      return cv_broker_restore_ledger(broker, campaign, &in);
    case CV_OP_RECOVERY:
      return cv_broker_restore_recovery(broker, (uint32_t)row->op.number, &in);
    case CV_OP_STANDINGS:
      return cv_broker_restore_standings(broker, campaign, &in);
    case CV_OP_STATE:
      return cv_broker_restore_state(broker, campaign, &in);
    case CV_OP_CHUNK:
      return cv_broker_restore_chunk(broker, campaign, row->op.chunk, row->op.number, row->made, &in);
    default:
      return cv_broker_restore_journal(broker, campaign, row->made, &in);
  }
}

static enum cv_err restore_kind(const struct disk *disk, struct cv_broker *broker, enum cv_op_kind kind,
                                uint32_t campaign) {
  for (size_t i = 0; i < disk->rows; i++) {
    const struct cv_op *op = &disk->row[i].op;
    if (op->kind == kind && (campaign == 0 || op->campaign == campaign)) {
      CV_TRY(restore(&disk->row[i], broker));
    }
  }
  return CV_OK;
}

enum cv_err disk_fetch(const struct disk *disk, struct cv_broker *broker, uint32_t campaign) {
  static const enum cv_op_kind order[] = {CV_OP_CAMPAIGN, CV_OP_PLAN,      CV_OP_RELEASE,
                                          CV_OP_LEDGER,   CV_OP_STANDINGS, CV_OP_STATE};
  for (size_t i = 0; i < CV_COUNT(order); i++) {
    CV_TRY(restore_kind(disk, broker, order[i], campaign));
  }
  return cv_broker_restore_whole(broker, campaign);
}

static bool has_record(const struct disk *disk, uint32_t campaign) {
  return find(disk, &(struct cv_op){.kind = CV_OP_ENDED, .campaign = campaign}) != NULL;
}

enum cv_err disk_load(const struct disk *disk, struct cv_broker *broker, uint64_t now_ms, uint64_t wall_ms) {
  static const enum cv_op_kind order[] = {CV_OP_RECOVERY, CV_OP_CHUNK, CV_OP_JOURNAL};
  CV_TRY(restore_kind(disk, broker, CV_OP_ENDED, 0));
  for (size_t i = 0; i < disk->rows; i++) {
    const struct cv_op *op = &disk->row[i].op;
    if (op->kind == CV_OP_CAMPAIGN && !has_record(disk, op->campaign)) {
      CV_TRY(disk_fetch(disk, broker, op->campaign));
    }
  }
  for (size_t i = 0; i < CV_COUNT(order); i++) {
    CV_TRY(restore_kind(disk, broker, order[i], 0));
  }
  return cv_broker_restore_end(broker, disk->commit, NULL, now_ms, wall_ms);
}
