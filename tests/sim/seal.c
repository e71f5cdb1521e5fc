/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps cv_seal_close (the linker's --wrap) and reports each nonce, and each key that is wrapped, to the truth. */
#include "common/crypto/crypto.h"
#include "tests/sim/truth.h"

enum { KEY_BOUND = 32 /* bytes that a wrapped key is bound to: vault.c */ };

static struct truth *listening;

void truth_listen_to_seals(struct truth *truth) {
  listening = truth;
}

enum cv_err __real_cv_seal_close(struct cv_seal *seal, const void *bound, size_t bound_n, const void *plain, size_t n,
                                 struct cv_buf *out);
enum cv_err __wrap_cv_seal_close(struct cv_seal *seal, const void *bound, size_t bound_n, const void *plain, size_t n,
                                 struct cv_buf *out);

enum cv_err __wrap_cv_seal_close(struct cv_seal *seal, const void *bound, size_t bound_n, const void *plain, size_t n,
                                 struct cv_buf *out) {
  size_t before = out->len;
  enum cv_err err = __real_cv_seal_close(seal, bound, bound_n, plain, n, out);
  if (err == CV_OK && listening != NULL) {
    truth_sealed(listening, out->data + before);
    if (n == CV_KEY_BYTES && bound_n == KEY_BOUND) {
      truth_wrapped(listening, plain);
    }
  }
  return err;
}
