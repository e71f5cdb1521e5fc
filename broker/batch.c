/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/batch.h"

#include <stdlib.h>

void cv_batch_fini(struct cv_batch *batch) {
  if (batch == NULL) {
    return;
  }
  free(batch->op);
  cv_buf_fini(&batch->bytes);
  *batch = (struct cv_batch){0};
}

void cv_batch_clear(struct cv_batch *batch) {
  batch->commit = 0;
  batch->ops = 0;
  cv_buf_clear(&batch->bytes);
}

enum cv_err cv_batch_open(struct cv_batch *batch, enum cv_op_kind kind, uint32_t campaign, uint64_t number) {
  if (batch->ops == batch->cap) {
    size_t cap = batch->cap == 0 ? 32 : batch->cap * 2;
    struct cv_op *op = realloc(batch->op, cap * sizeof(*op));
    if (op == NULL) {
      return CV_ERR_NOMEM;
    }
    batch->op = op;
    batch->cap = cap;
  }
  batch->op[batch->ops++] =
      (struct cv_op){.kind = kind, .campaign = campaign, .number = number, .at = batch->bytes.len};
  return CV_OK;
}

void cv_batch_shut(struct cv_batch *batch) {
  struct cv_op *op = &batch->op[batch->ops - 1];
  op->n = batch->bytes.len - op->at;
}
