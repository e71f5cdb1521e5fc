/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/sslerr.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

const char *cv_x509_reason(int code) {
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "certificate expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "certificate is not valid yet (is a clock wrong?)";
    case X509_V_ERR_CERT_REVOKED:
      return "certificate is revoked";
    /* For a person all of these mean the same, and have the same remedy. */
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "certificate is not signed by our CA";
    default:
      return X509_verify_cert_error_string(code);
  }
}

const char cv_ssl_other_name[] = "refused by the other side: it expects a party with another name or key";

/* The reason in the other side's TLS alert. */
static const char *alert_reason(int alert) {
  switch (alert) {
    case SSL_AD_CERTIFICATE_EXPIRED:
      return "refused by the other side: our certificate expired";
    case SSL_AD_CERTIFICATE_REVOKED:
      return "refused by the other side: our certificate is revoked";
    case SSL_AD_UNKNOWN_CA:
      return "refused by the other side: our certificate is not signed by its CA";
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
      return "refused by the other side: our certificate's role may not connect there";
    case SSL_AD_HANDSHAKE_FAILURE:
      return cv_ssl_other_name;
    case SSL_AD_BAD_CERTIFICATE:
      return "refused by the other side: our certificate is bad";
    case SSL_AD_CERTIFICATE_REQUIRED:
      return "refused by the other side: it requires a certificate";
    case SSL_AD_PROTOCOL_VERSION:
      return "refused by the other side: it does not support TLS 1.3";
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return "refused by the other side: it does not support crowdveil/1";
    case SSL_AD_DECRYPT_ERROR:
      return "refused by the other side: a signature is wrong";
    default:
      return NULL;
  }
}

static const char *own_reason(int reason) {
  switch (reason) {
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_BAD_RECORD_TYPE:
    case SSL_R_UNEXPECTED_MESSAGE:
      return "no TLS (plain text?)";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_SSL_VERSION:
      return "the other side does not offer TLS 1.3";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the other side has no certificate";
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_CALLBACK_FAILED:
      return "the other side does not support crowdveil/1 (ALPN)";
    case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
      return "a TLS record is damaged";
    default:
      return NULL;
  }
}

const char *cv_ssl_reason(void) {
  /* The first error is the cause; later ones come from its callers. */
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char *text = NULL;
  if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
    int reason = ERR_GET_REASON(code);
    text = reason >= SSL_AD_REASON_OFFSET ? alert_reason(reason - SSL_AD_REASON_OFFSET) : own_reason(reason);
  }
  if (text == NULL && code != 0) {
    text = ERR_reason_error_string(code);
  }
  return text != NULL ? text : "TLS failed";
}

enum cv_err cv_ssl_fail(struct cv_why *why, const char *fmt, ...) {
  unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
  va_list args;
  va_start(args, fmt);
  cv_why_vset(why, fmt, args);
  va_end(args);
  cv_why_because(why, reason != NULL ? reason : "OpenSSL failed");
  return ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE ? CV_ERR_NOMEM : CV_ERR_CRYPTO;
}
