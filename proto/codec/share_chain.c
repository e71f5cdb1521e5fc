/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/le.h"
#include "proto/codec/share.h"

/* docs/protocol.md, "Chains". */
enum { CLOSE_BYTES = 8 + 8 + CV_DIGEST_BYTES + 4 + 8 + CV_DIGEST_BYTES + 1 };

static void put_pending(struct cv_buf *out, const struct cv_share_pending *pending) {
  cv_buf_put_u64(out, pending->token.plan);
  cv_buf_put_u32(out, pending->token.arm);
  cv_buf_put_u64(out, pending->token.place);
  cv_buf_put_u64(out, pending->token.worker);
  cv_buf_put_u32(out, pending->token.slot);
  cv_buf_put(out, pending->token.nonce, sizeof(pending->token.nonce));
  cv_buf_put(out, pending->session, sizeof(pending->session));
  cv_buf_put_u64(out, pending->counter);
  cv_buf_put(out, pending->sealed, sizeof(pending->sealed));
  cv_buf_put_u32(out, pending->verifiers);
  for (uint32_t i = 0; i < pending->verifiers; i++) {
    cv_buf_put_u64(out, pending->verifier[i]);
  }
}

enum cv_err cv_chain_batch(struct cv_digest *hash, const struct cv_share_batch *batch, cv_digest_fn *digest) {
  CV_REQUIRE(batch->tokens <= CV_BATCH_TOKENS);
  struct cv_buf record = {0};
  cv_buf_put_u64(&record, batch->number);
  cv_buf_put_u32(&record, (uint32_t)batch->tokens);
  for (size_t i = 0; i < batch->tokens; i++) {
    CV_REQUIRE(batch->token[i].verifiers <= CV_SPLIT_VERIFIERS_MOST);
    put_pending(&record, &batch->token[i]);
  }
  bool ok = cv_buf_ok(&record);
  if (ok) {
    cv_digest_extend(hash, record.data, record.len, digest);
  }
  cv_buf_fini(&record);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

void cv_chain_close(struct cv_digest *hash, const struct cv_share_close *close, cv_digest_fn *digest) {
  uint8_t record[CLOSE_BYTES];
  uint8_t *at = cv_le_put(record, close->number, 8);
  at = cv_le_put(at, close->plan, 8);
  at = cv_le_put_bytes(at, close->plan_hash.bytes, CV_DIGEST_BYTES);
  at = cv_le_put(at, close->arm, 4);
  at = cv_le_put(at, close->count, 8);
  at = cv_le_put_bytes(at, close->chain.bytes, CV_DIGEST_BYTES);
  at = cv_le_put(at, close->discard, 1);
  cv_digest_extend(hash, record, (size_t)(at - record), digest);
}
