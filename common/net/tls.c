/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function, judge(), checks a certificate: signature, dates, revoked serial numbers, identity, role, name, key. It
 * runs twice for a new connection: inside the handshake, so that the other side gets a specific alert, and after it, so
 * that a resumed session passes the same checks. It runs again for open connections when the files are reloaded and
 * when a certificate expires.
 */
#include "common/net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/fingerprint.h"
#include "common/base/party.h"
#include "common/net/certificate.h"
#include "common/net/crl.h"
#include "common/net/denied.h"
#include "common/net/membio.h"
#include "common/net/sslerr.h"
#include "common/net/tls_conn.h"

/* A resumed session skips the signature checks: it may be used for five minutes after a full handshake. */
enum { SESSION_SECONDS = 300, SESSIONS_MAX = 4096 };

static const unsigned char ALPN[] =
    "\x0b"
    "crowdveil/1";
enum { ALPN_BYTES = sizeof(ALPN) - 1 };

struct cv_tls {
  unsigned refs;
  bool server;
  struct cv_tls_peers peers;
  SSL_CTX *ctx;
  X509_STORE *store; /* the CAs; owned by the context */
  struct cv_denied denied;
  struct cv_crls crls;
  struct cv_identity identity;
  struct cv_tls_ends ends;
};

/* --- judging certificates --- */

static void list_roles(unsigned roles, char *text, size_t size) {
  text[0] = '\0';
  for (int role = CV_ROLE_REQUESTER; role < CV_ROLE_COUNT; role++) {
    if (roles & 1u << role) {
      size_t used = strlen(text);
      (void)snprintf(text + used, size - used, "%s%s", used > 0 ? " or " : "", cv_role_text((enum cv_role)role));
    }
  }
}

static enum cv_err check_role(const struct cv_identity *identity, unsigned roles, struct cv_why *why) {
  if (roles & 1u << identity->role) {
    return CV_OK;
  }
  char expected[96];
  list_roles(roles, expected, sizeof(expected));
  return cv_fail(why, CV_ERR_DENIED, "certificate is for role %s, expected %s", cv_role_text(identity->role), expected);
}

static enum cv_err check_name(const struct cv_identity *identity, const char *names, struct cv_why *why) {
  if (names == NULL || cv_party_list_has(names, identity->name)) {
    return CV_OK;
  }
  const char *role = cv_role_text(identity->role);
  return cv_fail(why, CV_ERR_DENIED, "certificate is of %s/%s, expected the name %s", role, identity->name, names);
}

/* A name is what a CA says; a key that was agreed on beforehand holds against the CA, too. */
static enum cv_err check_key(const struct cv_identity *identity, const struct cv_digest *key, struct cv_why *why) {
  if (key == NULL || cv_digest_is_same(key, &identity->key)) {
    return CV_OK;
  }
  struct cv_fingerprint has = cv_fingerprint_of(&identity->key), expected = cv_fingerprint_of(key);
  return cv_fail(why, CV_ERR_DENIED, "certificate of %s/%s has the key %s, expected %s", cv_role_text(identity->role),
                 identity->name, has.text, expected.text);
}

/* Fails if a certificate is revoked, or if that cannot be known. */
static enum cv_err judge_revoked(const struct cv_tls *tls, X509_STORE_CTX *store, const X509 *cert,
                                 struct cv_why *why) {
  enum cv_crl_verdict verdict =
      cv_denied_has(&tls->denied, cert) ? CV_CRL_REVOKED : cv_crls_judge(&tls->crls, cert, (int64_t)time(NULL));
  switch (verdict) {
    case CV_CRL_GOOD:
      return CV_OK;
    case CV_CRL_REVOKED:
      X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REVOKED);
      return cv_fail(why, CV_ERR_DENIED, "%s", cv_x509_reason(X509_V_ERR_CERT_REVOKED));
    default:
      /* The peer's certificate may be good: an alert about it would mislead. */
      X509_STORE_CTX_set_error(store, X509_V_ERR_UNSPECIFIED);
      return cv_fail(
          why, CV_ERR_DENIED,
          verdict == CV_CRL_EXPIRED ? "our CRL has expired (tls.crl)" : "our CRL is not of its CA (tls.crl)");
  }
}

/* Fails if a certificate of the chain is revoked; otherwise returns when the first one, or a list, expires. */
static enum cv_err judge_chain(const struct cv_tls *tls, X509_STORE_CTX *store, int64_t *ret_until_s,
                               struct cv_why *why) {
  const STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(store);
  int64_t until_s = cv_crls_end_s(&tls->crls);
  for (int i = 0; i < sk_X509_num(chain); i++) {
    const X509 *cert = sk_X509_value(chain, i);
    /* Each certificate of the chain: a revoked intermediate CA revokes all that it signed. */
    CV_TRY(judge_revoked(tls, store, cert, why));
    int64_t end_s = cv_certificate_end_s(cert);
    until_s = end_s < until_s ? end_s : until_s;
  }
  *ret_until_s = until_s;
  return CV_OK;
}

/* Verifies the certificate of `store`; on failure sets an X509_V_ERR_... there. */
static enum cv_err judge(const struct cv_tls *tls, X509_STORE_CTX *store, struct cv_tls_passed *ret,
                         struct cv_why *why) {
  if (X509_verify_cert(store) <= 0) {
    int code = X509_STORE_CTX_get_error(store);
    if (code == X509_V_OK) {
      X509_STORE_CTX_set_error(store, X509_V_ERR_UNSPECIFIED);
    }
    return cv_fail(why, CV_ERR_DENIED, "%s", cv_x509_reason(code));
  }
  struct cv_identity identity;
  int64_t until_s;
  CV_TRY(judge_chain(tls, store, &until_s, why));
  enum cv_err err = cv_certificate_identity(X509_STORE_CTX_get0_cert(store), &identity, why);
  if (err == CV_OK) {
    err = check_role(&identity, tls->peers.roles, why);
  }
  if (err != CV_OK) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE);
    return err;
  }
  err = check_name(&identity, tls->peers.names, why);
  if (err == CV_OK) {
    err = check_key(&identity, tls->peers.key, why);
  }
  if (err != CV_OK) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION); /* sends the alert handshake_failure */
    return err;
  }
  *ret = (struct cv_tls_passed){.identity = identity, .until_s = until_s};
  return CV_OK;
}

static int judge_in_handshake(X509_STORE_CTX *store, void *data) {
  SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  struct cv_tls_conn *conn = SSL_get_app_data(ssl);
  struct cv_tls_passed passed;
  return judge(data, store, &passed, &conn->refusal) == CV_OK;
}

enum cv_err cv_tls_conn_check(const struct cv_tls *tls, const struct cv_tls_conn *conn, struct cv_tls_passed *ret,
                              struct cv_why *why) {
  const unsigned char *alpn = NULL;
  unsigned n = 0;
  SSL_get0_alpn_selected(conn->ssl, &alpn, &n);
  /* A program that speaks another protocol over the same CA's certificates is told so before any frame. */
  if (n != ALPN_BYTES - 1 || memcmp(alpn, ALPN + 1, n) != 0) {
    return cv_fail(why, CV_ERR_DENIED, "the other side does not support crowdveil/1 (ALPN)");
  }
  X509 *cert = SSL_get0_peer_certificate(conn->ssl);
  X509_STORE_CTX *store = X509_STORE_CTX_new();
  enum cv_err err;
  if (cert == NULL) {
    err = cv_fail(why, CV_ERR_DENIED, "the other side has no certificate");
  } else if (store == NULL || !X509_STORE_CTX_init(store, tls->store, cert, SSL_get_peer_cert_chain(conn->ssl)) ||
             !X509_STORE_CTX_set_default(store, tls->server ? "ssl_client" : "ssl_server")) {
    err = cv_ssl_fail(why, "cannot verify the certificate");
  } else {
    err = judge(tls, store, ret, why);
  }
  X509_STORE_CTX_free(store);
  ERR_clear_error();
  return err;
}

/* --- sessions --- */

static CRYPTO_ONCE index_once = CRYPTO_ONCE_STATIC_INIT;
static int first_seen_index = -1;

static void make_index(void) {
  first_seen_index = SSL_SESSION_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

/* The seconds for which a session may be resumed, counted from its full handshake, however often it was resumed. */
static long session_left(const struct cv_tls *tls, SSL_SESSION *session) {
  intptr_t now = (intptr_t)time(NULL);
  intptr_t first = (intptr_t)SSL_SESSION_get_ex_data(session, first_seen_index);
  /* The time of the full handshake is kept in the session itself and copied with each resumption. */
  if (first == 0) {
    first = now;
    if (!SSL_SESSION_set_ex_data(session, first_seen_index, (void *)first)) {
      return 0;
    }
  }
  int64_t left = now < first ? 0 : first + SESSION_SECONDS - now;
  X509 *cert = SSL_SESSION_get0_peer(session);
  /* A session must not outlive the certificate that it was made with, nor the list that cleared the certificate. */
  int64_t cert_left = cert == NULL ? 0 : cv_certificate_end_s(cert) - now;
  int64_t list_left = cv_crls_end_s(&tls->crls) - now;
  left = left < cert_left ? left : cert_left;
  left = left < list_left ? left : list_left;
  return left > 0 ? (long)left : 0;
}

/* A server has cached the session already; a client keeps its newest session. */
static int on_new_session(SSL *ssl, SSL_SESSION *session) {
  struct cv_tls_conn *conn = SSL_get_app_data(ssl);
  long left = session_left(conn->made_by, session);
  SSL_SESSION_set_timeout(session, left);
  if (SSL_is_server(ssl)) {
    return 0;
  }
  conn->ticket_seen = true;
  if (conn->slot == NULL || left == 0) {
    return 0;
  }
  SSL_SESSION_free(*conn->slot);
  *conn->slot = session;
  return 1;
}

/* --- key updates --- */

/* A key update costs the receiver more than the sender. Beyond CV_REKEYS_MAX nothing more is read from the peer. */
static void count_rekeys(int is_ours, int version, int type, const void *bytes, size_t n, SSL *ssl, void *data) {
  struct cv_tls_conn *conn = SSL_get_app_data(ssl);
  if (!is_ours && type == SSL3_RT_HANDSHAKE && n > 0 && *(const uint8_t *)bytes == SSL3_MT_KEY_UPDATE &&
      ++conn->rekeys > CV_REKEYS_MAX) {
    conn->in_left = 0;
  }
}

/* --- ALPN --- */

static int select_alpn(SSL *ssl, const unsigned char **ret, unsigned char *ret_n, const unsigned char *in, unsigned n,
                       void *data) {
  unsigned char *found;
  if (SSL_select_next_proto(&found, ret_n, ALPN, ALPN_BYTES, in, n) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *ret = found;
  return SSL_TLSEXT_ERR_OK;
}

/* Rejects a client that offers TLS 1.3 without ALPN: OpenSSL does not call select_alpn for it. Older versions fail
 * by themselves. */
static int require_alpn(SSL *ssl, int *alert, void *data) {
  const unsigned char *bytes;
  size_t n;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_supported_versions, &bytes, &n) &&
      !SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes, &n)) {
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
  }
  return SSL_CLIENT_HELLO_SUCCESS;
}

/* The hello is the first expensive step, so the rate limit applies here. */
static int on_hello(SSL *ssl, int *alert, void *data) {
  struct cv_tls_conn *conn = SSL_get_app_data(ssl);
  if (!conn->greeted) { /* called twice after a HelloRetryRequest */
    conn->greeted = true;
    conn->turned_away = conn->answers != NULL && !conn->answers(conn);
  }
  *alert = SSL_AD_INTERNAL_ERROR;
  return conn->turned_away ? SSL_CLIENT_HELLO_ERROR : require_alpn(ssl, alert, data);
}

/* --- files --- */

static enum cv_err open_file(const char *path, FILE **ret, struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  *ret = file;
  return CV_OK;
}

static enum cv_err read_cert(const char *path, X509 **ret, struct cv_why *why) {
  FILE *file = NULL;
  CV_TRY(open_file(path, &file, why));
  X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
  (void)fclose(file);
  ERR_clear_error();
  if (cert == NULL) {
    return cv_fail(why, CV_ERR_FORMAT, "%s: no certificate in PEM form", path);
  }
  *ret = cert;
  return CV_OK;
}

/* Without this callback OpenSSL would prompt for the password of an encrypted key. */
static int no_password(char *text, int size, int writing, void *data) {
  return -1;
}

static enum cv_err read_key(const char *path, EVP_PKEY **ret, struct cv_why *why) {
  FILE *file = NULL;
  CV_TRY(open_file(path, &file, why));
  struct stat stat;
  EVP_PKEY *key = NULL;
  enum cv_err err = CV_OK;
  if (fstat(fileno(file), &stat) != 0) {
    err = cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  } else if (stat.st_mode & (S_IRWXG | S_IRWXO)) {
    err = cv_fail(why, CV_ERR_DENIED, "%s: mode is %04o, but only the owner may have access to a key (chmod 600)", path,
                  (unsigned)stat.st_mode & 07777);
  } else if ((key = PEM_read_PrivateKey(file, NULL, no_password, NULL)) == NULL) {
    err = cv_fail(why, CV_ERR_FORMAT, "%s: no private key in PEM form without a password", path);
  }
  (void)fclose(file);
  ERR_clear_error();
  if (err == CV_OK) {
    *ret = key;
  }
  return err;
}

/* --- contexts --- */

static enum cv_err add_ca(struct cv_tls *tls, const char *path, X509 *ca, struct cv_why *why) {
  /* A party's own certificate in this file would make that party a CA. */
  if (X509_check_ca(ca) != 1) {
    return cv_fail(why, CV_ERR_INVALID, "%s: not the certificate of a CA", path);
  }
  return X509_STORE_add_cert(tls->store, ca) ? CV_OK : cv_ssl_fail(why, "%s", path);
}

/* Loads every certificate in the file, so that an old CA and its successor can both be trusted for some time. */
static enum cv_err load_ca(struct cv_tls *tls, const char *path, struct cv_why *why) {
  FILE *file = NULL;
  CV_TRY(open_file(path, &file, why));
  tls->store = SSL_CTX_get_cert_store(tls->ctx);
  enum cv_err err = CV_OK;
  unsigned count = 0;
  X509 *ca;
  while (err == CV_OK && (ca = PEM_read_X509(file, NULL, NULL, NULL)) != NULL) {
    err = add_ca(tls, path, ca, why);
    X509_free(ca);
    count++;
  }
  (void)fclose(file);
  /* The end of the file is reported as a missing start line; anything else is a damaged certificate. */
  if (err == CV_OK && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    err = cv_fail(why, CV_ERR_FORMAT, "%s: certificate %u is not in PEM form", path, count + 1);
  } else if (err == CV_OK && count == 0) {
    err = cv_fail(why, CV_ERR_FORMAT, "%s: no certificate in PEM form", path);
  }
  ERR_clear_error();
  return err;
}

/* `chain` begins with the own certificate; a CA may sign itself, which then stands alone in it. */
static struct cv_tls_ends ends_of(const STACK_OF(X509) * chain) {
  struct cv_tls_ends ends = {.own_s = cv_certificate_end_s(sk_X509_value(chain, 0)), .ca_s = INT64_MAX};
  for (int i = 1; i < sk_X509_num(chain); i++) {
    int64_t end_s = cv_certificate_end_s(sk_X509_value(chain, i));
    ends.ca_s = end_s < ends.ca_s ? end_s : ends.ca_s;
  }
  return ends;
}

static enum cv_err check_own(struct cv_tls *tls, X509 *cert, enum cv_role own, struct cv_why *why) {
  X509_STORE_CTX *store = X509_STORE_CTX_new();
  if (store == NULL || !X509_STORE_CTX_init(store, tls->store, cert, NULL)) {
    X509_STORE_CTX_free(store);
    return cv_ssl_fail(why, "cannot verify the certificate");
  }
  enum cv_err err = CV_OK;
  if (X509_verify_cert(store) <= 0) {
    err = cv_fail(why, CV_ERR_DENIED, "%s", cv_x509_reason(X509_STORE_CTX_get_error(store)));
  } else {
    tls->ends = ends_of(X509_STORE_CTX_get0_chain(store));
  }
  X509_STORE_CTX_free(store);
  ERR_clear_error();
  CV_TRY(err);
  CV_TRY(cv_certificate_identity(cert, &tls->identity, why));
  return check_role(&tls->identity, 1u << own, why);
}

static enum cv_err load_own(struct cv_tls *tls, const struct cv_tls_files *files, enum cv_role own,
                            struct cv_why *why) {
  X509 *cert = NULL;
  EVP_PKEY *key = NULL;
  enum cv_err err = read_cert(files->cert, &cert, why);
  if (err == CV_OK) {
    err = read_key(files->key, &key, why);
  }
  if (err == CV_OK && X509_check_private_key(cert, key) != 1) {
    err = cv_fail(why, CV_ERR_INVALID, "%s: the key does not belong to %s", files->key, files->cert);
  }
  if (err == CV_OK) {
    err = check_own(tls, cert, own, why);
    if (err != CV_OK) {
      cv_why_prefix(why, "%s", files->cert);
    }
  }
  if (err == CV_OK && (!SSL_CTX_use_certificate(tls->ctx, cert) || !SSL_CTX_use_PrivateKey(tls->ctx, key))) {
    err = cv_ssl_fail(why, "%s", files->cert);
  }
  X509_free(cert);
  EVP_PKEY_free(key);
  ERR_clear_error();
  return err;
}

static enum cv_err load_crls(struct cv_tls *tls, const char *path, struct cv_why *why) {
  STACK_OF(X509) *cas = X509_STORE_get1_all_certs(tls->store);
  enum cv_err err = cas == NULL ? cv_fail(why, CV_ERR_NOMEM, "%s: no memory", path)
                                : cv_crls_load(path, cas, (int64_t)time(NULL), &tls->crls, why);
  sk_X509_pop_free(cas, X509_free);
  return err;
}

static bool set_up_sessions(struct cv_tls *tls) {
  static const unsigned char name[] = "crowdveil";
  if (!CRYPTO_THREAD_run_once(&index_once, make_index) || first_seen_index < 0) {
    return false;
  }
  SSL_CTX_sess_set_new_cb(tls->ctx, on_new_session);
  SSL_CTX_set_timeout(tls->ctx, SESSION_SECONDS);
  if (!tls->server) {
    SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    return true;
  }
  /* In TLS 1.3 this option makes tickets references to sessions in the server's cache. */
  SSL_CTX_set_options(tls->ctx, SSL_OP_NO_TICKET);
  /* Sessions are kept in the server's memory: there is no ticket key to protect, and a restart forgets all of them. */
  SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_SERVER);
  SSL_CTX_sess_set_cache_size(tls->ctx, SESSIONS_MAX);
  return SSL_CTX_set_num_tickets(tls->ctx, 1) && SSL_CTX_set_session_id_context(tls->ctx, name, sizeof(name) - 1);
}

static enum cv_err make_context(struct cv_tls *tls, struct cv_why *why) {
  tls->ctx = SSL_CTX_new(tls->server ? TLS_server_method() : TLS_client_method());
  if (tls->ctx == NULL || !SSL_CTX_set_min_proto_version(tls->ctx, TLS1_3_VERSION) || !set_up_sessions(tls) ||
      SSL_CTX_set_alpn_protos(tls->ctx, ALPN, ALPN_BYTES) != 0) {
    return cv_ssl_fail(why, "cannot set up TLS");
  }
  SSL_CTX_set_mode(tls->ctx, SSL_MODE_RELEASE_BUFFERS);
  /* Both sides, always: the certificate is the only proof of who a peer is. */
  SSL_CTX_set_verify(tls->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  SSL_CTX_set_cert_verify_callback(tls->ctx, judge_in_handshake, tls);
  SSL_CTX_set_msg_callback(tls->ctx, count_rekeys);
  if (tls->server) {
    SSL_CTX_set_alpn_select_cb(tls->ctx, select_alpn, NULL);
    SSL_CTX_set_client_hello_cb(tls->ctx, on_hello, NULL);
  }
  return CV_OK;
}

enum cv_err cv_tls_new(const struct cv_tls_files *files, enum cv_role own, struct cv_tls_peers peers, bool server,
                       struct cv_tls **ret, struct cv_why *why) {
  struct cv_tls *tls = calloc(1, sizeof(*tls));
  if (tls == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "no memory for TLS");
  }
  *tls = (struct cv_tls){.refs = 1, .server = server, .peers = peers};
  ERR_clear_error();
  enum cv_err err = make_context(tls, why);
  if (err == CV_OK) {
    err = load_ca(tls, files->ca, why);
  }
  if (err == CV_OK) {
    err = load_own(tls, files, own, why);
  }
  if (err == CV_OK && files->denied != NULL) {
    err = cv_denied_load(files->denied, &tls->denied, why);
  }
  if (err == CV_OK && files->crl != NULL) {
    err = load_crls(tls, files->crl, why);
  }
  if (err != CV_OK) {
    cv_tls_unref(tls);
    return err;
  }
  *ret = tls;
  return CV_OK;
}

enum cv_err cv_tls_renew(const struct cv_tls *old, const struct cv_tls_files *files, struct cv_tls **ret,
                         struct cv_why *why) {
  struct cv_tls *tls;
  CV_TRY(cv_tls_new(files, old->identity.role, old->peers, old->server, &tls, why));
  /* Peers and databases know this party by its name: another one needs a restart. */
  if (strcmp(tls->identity.name, old->identity.name) != 0) {
    const char *role = cv_role_text(old->identity.role);
    enum cv_err err = cv_fail(why, CV_ERR_INVALID, "%s: certificate is for %s/%s, expected %s/%s", files->cert, role,
                              tls->identity.name, role, old->identity.name);
    cv_tls_unref(tls);
    return err;
  }
  enum cv_err err = files->crl == NULL ? CV_OK : cv_crls_follow(&tls->crls, &old->crls, files->crl, why);
  if (err != CV_OK) {
    cv_tls_unref(tls);
    return err;
  }
  *ret = tls;
  return CV_OK;
}

void cv_tls_ref(struct cv_tls *tls) {
  tls->refs++;
}

void cv_tls_unref(struct cv_tls *tls) {
  if (tls == NULL || --tls->refs > 0) {
    return;
  }
  SSL_CTX_free(tls->ctx);
  cv_denied_fini(&tls->denied);
  cv_crls_fini(&tls->crls);
  free(tls);
}

const struct cv_identity *cv_tls_identity(const struct cv_tls *tls) {
  return &tls->identity;
}

bool cv_tls_is_revoked(const struct cv_tls *tls) {
  const X509 *own = SSL_CTX_get0_certificate(tls->ctx);
  return cv_denied_has(&tls->denied, own) || cv_crls_judge(&tls->crls, own, (int64_t)time(NULL)) == CV_CRL_REVOKED;
}

bool cv_tls_refuses(const struct cv_tls *tls, const char *serial) {
  return cv_denied_lists(&tls->denied, serial) || cv_crls_list(&tls->crls, serial);
}

struct cv_tls_ends cv_tls_ends(const struct cv_tls *tls) {
  struct cv_tls_ends ends = tls->ends;
  ends.crl_s = tls->crls.count == 0 ? 0 : cv_crls_end_s(&tls->crls);
  return ends;
}

size_t cv_tls_denied_beyond(const struct cv_tls *tls, const struct cv_tls *other) {
  return cv_denied_beyond(&tls->denied, &other->denied) + cv_crls_beyond(&tls->crls, &other->crls);
}

/* --- connections --- */

enum cv_err cv_tls_conn_open(struct cv_tls *tls, struct cv_tls_conn *conn, struct cv_why *why) {
  /* OpenSSL's error queue is per thread: what another connection has left must not be taken for ours. */
  ERR_clear_error();
  conn->ssl = SSL_new(tls->ctx);
  BIO *bio = conn->ssl != NULL ? cv_membio_new(conn) : NULL;
  if (bio == NULL) {
    SSL_free(conn->ssl);
    conn->ssl = NULL;
    return cv_ssl_fail(why, "cannot start TLS");
  }
  /* Held, because the callbacks of this connection use the context that made it, also after a reload. */
  conn->made_by = tls;
  cv_tls_ref(tls);
  SSL_set_bio(conn->ssl, bio, bio);
  SSL_set_app_data(conn->ssl, conn);
  if (tls->server) {
    SSL_set_accept_state(conn->ssl);
  } else {
    SSL_set_connect_state(conn->ssl);
  }
  return CV_OK;
}

void cv_tls_conn_offer(struct cv_tls_conn *conn) {
  if (conn->slot == NULL || *conn->slot == NULL) {
    return;
  }
  if (session_left(conn->made_by, *conn->slot) > 0) {
    (void)SSL_set_session(conn->ssl, *conn->slot);
  }
  SSL_SESSION_free(*conn->slot);
  *conn->slot = NULL;
}

void cv_tls_conn_close(struct cv_tls_conn *conn) {
  SSL_free(conn->ssl);
  conn->ssl = NULL;
  cv_tls_unref(conn->made_by);
  conn->made_by = NULL;
}
