/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pg/meter.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>

void cv_pg_meter_allow(struct cv_pg_meter *meter, size_t bytes) {
  meter->room = meter->is_over ? 0 : bytes;
}

static void take(struct cv_pg_meter *meter, size_t n) {
  meter->is_over = meter->is_over || n > meter->room;
  meter->room = n > meter->room ? 0 : meter->room - n;
}

/* Before and after each reading of TLS. */
static long on_read(BIO *bio, int operation, const char *data, size_t n, int number, long more, int result,
                    size_t *done) {
  struct cv_pg_meter *meter = (struct cv_pg_meter *)BIO_get_callback_arg(bio);
  if (operation == (BIO_CB_READ | BIO_CB_RETURN) && result > 0 && done != NULL) {
    take(meter, *done);
  }
  return operation == BIO_CB_READ && meter->is_over ? 0 : result;
}

bool cv_pg_meter_admits(struct cv_pg_meter *meter, PGconn *conn) {
  SSL *tls = PQsslStruct(conn, "OpenSSL");
  int waits = 0;
  if (tls == NULL) {
    take(meter, ioctl(PQsocket(conn), FIONREAD, &waits) == 0 && waits > 0 ? (size_t)waits : 0);
  } else if (!meter->is_tls) {
    meter->is_tls = true;
    BIO_set_callback_arg(SSL_get_rbio(tls), (char *)meter);
    BIO_set_callback_ex(SSL_get_rbio(tls), on_read);
  }
  return !meter->is_over;
}
