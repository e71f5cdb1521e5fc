/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/batch.h"

#include <stdlib.h>

#include "common/base/array.h"

void cv_broker_batch_fini(struct cv_broker_batch *batch) {
  if (batch == NULL) {
    return;
  }
  free(batch->op);
  cv_buf_fini(&batch->bytes);
  *batch = (struct cv_broker_batch){0};
}

void cv_broker_batch_clear(struct cv_broker_batch *batch) {
  batch->commit = 0;
  batch->ops = 0;
  cv_buf_clear(&batch->bytes);
}

enum cv_err cv_broker_batch_open(struct cv_broker_batch *batch, enum cv_op_kind kind, uint32_t campaign,
                                 uint64_t number) {
  CV_TRY(CV_ARRAY_ROOM(batch->op, batch->ops + 1, batch->cap));
  batch->op[batch->ops++] =
      (struct cv_op){.kind = kind, .campaign = campaign, .number = number, .at = batch->bytes.len};
  return CV_OK;
}

void cv_broker_batch_shut(struct cv_broker_batch *batch) {
  /* A buffer that ran out of memory makes this length wrong; the flush discards such a batch (core.c). */
  struct cv_op *op = &batch->op[batch->ops - 1];
  op->n = batch->bytes.len - op->at;
}
