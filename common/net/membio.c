/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/membio.h"

#include <openssl/crypto.h>
#include <string.h>

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
static BIO_METHOD *method; /* one for the process, never freed */

static int read_in(BIO *bio, char *bytes, size_t n, size_t *ret_n) {
  struct cv_tls_conn *conn = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  /* No end of file: the loop brings the next bytes. */
  if (conn->in_left == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  if (n > conn->in_left) {
    n = conn->in_left;
  }
  memcpy(bytes, conn->in, n);
  conn->in += n;
  conn->in_left -= n;
  *ret_n = n;
  return 1;
}

/* Never refuses while there is memory: what leaves is bounded by the peer's queue (ship() in peer.c). */
static int write_out(BIO *bio, const char *bytes, size_t n, size_t *ret_n) {
  struct cv_tls_conn *conn = BIO_get_data(bio);
  BIO_clear_retry_flags(bio);
  cv_buf_put(conn->out, bytes, n);
  if (!cv_buf_ok(conn->out)) {
    return 0;
  }
  *ret_n = n;
  return 1;
}

static long control(BIO *bio, int command, long number, void *pointer) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void make_method(void) {
  BIO_METHOD *made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "crowdveil memory");
  if (made != NULL && BIO_meth_set_read_ex(made, read_in) && BIO_meth_set_write_ex(made, write_out) &&
      BIO_meth_set_ctrl(made, control)) {
    method = made;
  } else {
    BIO_meth_free(made);
  }
}

BIO *cv_membio_new(struct cv_tls_conn *conn) {
  if (!CRYPTO_THREAD_run_once(&once, make_method) || method == NULL) {
    return NULL;
  }
  BIO *bio = BIO_new(method);
  if (bio != NULL) {
    BIO_set_data(bio, conn);
    BIO_set_init(bio, 1);
  }
  return bio;
}
