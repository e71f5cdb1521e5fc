/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/batch.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

static void wipe(struct cv_buf *bytes) {
  if (bytes->data != NULL) {
    explicit_bzero(bytes->data, bytes->cap);
  }
}

void cv_cobroker_batch_fini(struct cv_cobroker_batch *batch) {
  if (batch == NULL) {
    return;
  }
  wipe(&batch->bytes);
  free(batch->op);
  cv_buf_fini(&batch->bytes);
  *batch = (struct cv_cobroker_batch){0};
}

void cv_cobroker_batch_clear(struct cv_cobroker_batch *batch) {
  batch->commit = 0;
  batch->ops = 0;
  wipe(&batch->bytes);
  cv_buf_clear(&batch->bytes);
}

enum cv_err cv_cobroker_batch_add(struct cv_cobroker_batch *batch, enum cv_cobroker_op_kind kind,
                                  enum cv_cobroker_row row, uint32_t campaign, uint64_t number) {
  CV_TRY(CV_ARRAY_ROOM(batch->op, batch->ops + 1, batch->cap));
  batch->op[batch->ops++] =
      (struct cv_cobroker_op){.kind = kind, .row = row, .campaign = campaign, .number = number, .at = batch->bytes.len};
  return CV_OK;
}

enum cv_err cv_cobroker_batch_put(struct cv_cobroker_batch *batch, enum cv_cobroker_row row, uint32_t campaign,
                                  uint64_t number) {
  return cv_cobroker_batch_add(batch, CV_COOP_PUT, row, campaign, number);
}

void cv_cobroker_batch_shut(struct cv_cobroker_batch *batch) {
  /* A buffer that ran out of memory makes this length wrong; the flush discards such a batch (core.c). */
  struct cv_cobroker_op *op = &batch->op[batch->ops - 1];
  op->n = batch->bytes.len - op->at;
}
