/* SPDX-License-Identifier: Apache-2.0 */
#include <openssl/err.h>
#include <string.h>

#include "common/net/peer_state.h"

enum cv_err cv_peer_export(const struct cv_peer *peer, const char *label, const void *context, size_t context_n,
                           uint8_t *ret, size_t n) {
  if (!peer->was_open) {
    return CV_ERR_CLOSED;
  }
  bool ok = SSL_export_keying_material(peer->conn.ssl, ret, n, label, strlen(label), context, context_n, 1) == 1;
  ERR_clear_error();
  return ok ? CV_OK : CV_ERR_CRYPTO;
}
