/* SPDX-License-Identifier: Apache-2.0 */
/* Which peers are accepted, which are not, and what each side reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "common/net/peer_state.h"
#include "deploy/launcher/pki/pki.h"
#include "world.h"

enum { YEAR_S = 365 * 86400, WORKERS = 1u << CV_ROLE_WORKER | 1u << CV_ROLE_GATEWAY, BROKERS = 1u << CV_ROLE_BROKER };

/* --- our own two sides --- */

static void expect_text(const char *text, const char *part) {
  if (strstr(text, part) == NULL || strchr(text, '\n') != NULL) {
    fail_msg("'%s' does not contain '%s'", text, part);
  }
}

/* The server refuses a client: it reports why, and so does the client, whose `opened` is never called. */
static void expect_refused_client(struct world *world, struct cv_tls *server, struct cv_tls *client,
                                  const char *server_says, const char *client_says) {
  serve(world, server);
  dial(world, client);
  wait_for(world, &world->server.closed, 1);
  wait_for(world, &world->client.failed, 1);
  assert_int_equal(world->server.opened, 0);
  assert_int_equal(world->client.opened, 0);
  assert_int_equal(strncmp(world->server.why.text, "127.0.0.1:", 10), 0);
  expect_text(world->server.why.text, server_says);
  assert_int_equal(strncmp(world->client.why.text, world->address, strlen(world->address)), 0);
  expect_text(world->client.why.text, client_says);
}

static void test_server_of_another_ca(void **state) {
  struct world *world = *state;
  struct cv_tls *server = make_tls(world, "other", "other", "crowdveil:broker/b", YEAR_S, WORKERS, true);
  expect_refused_client(world, server, worker_tls(world), "refused by the other side: our certificate is not signed",
                        "certificate is not signed by our CA");
}

static void test_client_of_a_wrong_role(void **state) {
  struct world *world = *state;
  struct cv_tls *client = make_tls(world, "ca", "ca", "crowdveil:requester/eve", YEAR_S, BROKERS, false);
  expect_refused_client(world, broker_tls(world), client,
                        "certificate is for role requester, expected worker or gateway",
                        "refused by the other side: our certificate's role may not connect there");
}

static void test_server_of_a_wrong_role(void **state) {
  struct world *world = *state;
  struct cv_tls *server = make_tls(world, "ca", "ca", "crowdveil:thirdparty/t", YEAR_S, WORKERS, true);
  expect_refused_client(world, server, worker_tls(world),
                        "refused by the other side: our certificate's role may not connect there",
                        "certificate is for role thirdparty, expected broker");
}

static struct cv_tls *worker_of(struct world *world, const char *broker) {
  const struct cv_tls_peers peers = {.roles = BROKERS, .names = broker};
  return make_tls_for(world, "ca", "ca", "crowdveil:worker/17", YEAR_S, peers, false);
}

/* A good certificate of the right role, but not of the expected party. */
static void test_server_of_another_name(void **state) {
  struct world *world = *state;
  struct cv_tls *server = make_tls(world, "ca", "ca", "crowdveil:broker/Main", YEAR_S, WORKERS, true);
  expect_refused_client(world, server, worker_of(world, "main"),
                        "refused by the other side: it expects a party with another name or key, broker/Main",
                        "certificate is of broker/Main, expected the name main");
}

static void test_client_of_another_name(void **state) {
  struct world *world = *state;
  const struct cv_tls_peers brokers = {.roles = BROKERS, .names = "main, second"};
  struct cv_tls *server = make_tls_for(world, "ca", "ca", "crowdveil:thirdparty/t", YEAR_S, brokers, true);
  struct cv_tls *client = make_tls(world, "ca", "ca", "crowdveil:broker/evil", YEAR_S, 1u << CV_ROLE_THIRDPARTY, false);
  expect_refused_client(world, server, client, "certificate is of broker/evil, expected the name main, second",
                        "refused by the other side: it expects a party with another name or key, broker/evil");
}

/* The same name in a renewed certificate is the same party, live and in a resumed session; another name is not. */
static void test_names_when_files_are_read_again(void **state) {
  struct world *world = *state;
  serve(world, broker_tls(world));
  dial(world, worker_of(world, "main"));
  wait_for(world, &world->client.opened, 1);
  struct cv_tls *renewed = broker_tls(world);
  cv_listener_set_tls(world->listener, renewed);
  cv_tls_unref(renewed);
  wait_for(world, &world->server.opened, 1);
  cv_peer_close(world->server.peer, "again");
  wait_for(world, &world->client.opened, 2);
  struct cv_tls *picky = worker_of(world, "other");
  cv_dialer_set_tls(world->dialer, picky);
  cv_tls_unref(picky);
  wait_for(world, &world->client.closed, 2);
  expect_text(world->client.why.text, ": certificate is of broker/main, expected the name other");
}

/* --- the end of a certificate --- */

static int64_t wall_s(void) {
  return (int64_t)time(NULL);
}

static void test_a_client_that_expires_is_closed_on(void **state) {
  struct world *world = *state;
  serve(world, broker_tls(world));
  int64_t from_s = wall_s();
  dial(world, make_tls(world, "ca", "ca", "crowdveil:worker/20", 3, BROKERS, false));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->server.closed, 1);
  expect_text(world->server.why.text, ": certificate expired");
  assert_int_equal(world->server.refusal, CV_REFUSED_HANDSHAKE);
  assert_in_range(wall_s() - from_s, 3, 4);
  wait_for(world, &world->client.failed, 1); /* its session is not resumed */
  assert_int_equal(world->server.opened, 1);
}

static void test_a_server_that_expires_is_closed_on(void **state) {
  struct world *world = *state;
  int64_t from_s = wall_s();
  serve(world, make_tls(world, "ca", "ca", "crowdveil:broker/main", 3, WORKERS, true));
  dial(world, worker_tls(world));
  wait_for(world, &world->client.opened, 1);
  wait_for(world, &world->client.closed, 1);
  expect_text(world->client.why.text, ": certificate expired");
  assert_in_range(wall_s() - from_s, 3, 4);
}

static void test_a_ca_that_expires_ends_its_certificates(void **state) {
  struct world *world = *state;
  char folder[96];
  struct cv_why why;
  path_of(world, "brief", folder, sizeof(folder));
  int64_t from_s = wall_s();
  assert_int_equal(cv_pki_make_ca(folder, "brief", 3, &why), CV_OK);
  struct cv_tls *server = make_tls(world, "brief", "brief", "crowdveil:broker/main", YEAR_S, WORKERS, true);
  struct cv_tls *client = make_tls(world, "brief", "brief", "crowdveil:worker/17", YEAR_S, BROKERS, false);
  serve(world, server);
  dial(world, client);
  wait_for(world, &world->client.opened, 1);
  wait_for(world, &world->client.closed, 1);
  wait_for(world, &world->server.closed, 1);
  assert_in_range(wall_s() - from_s, 3, 4);
}

/* --- files --- */

static void expect_unloadable(const struct cv_tls_files *files, enum cv_role own, const char *part) {
  struct cv_tls *tls;
  struct cv_why why = {{0}};
  assert_int_not_equal(cv_tls_new(files, own, (struct cv_tls_peers){.roles = BROKERS}, false, &tls, &why), CV_OK);
  expect_text(why.text, part);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

struct party {
  char ca_folder[96], ca[96];
  struct cv_pki_files files;
};

static void issue_by(struct world *world, const char *ca, const char *name, const char *identity, int64_t valid_s,
                     struct party *ret) {
  char folder[96];
  struct cv_why why;
  path_of(world, ca, ret->ca_folder, sizeof(ret->ca_folder));
  (void)snprintf(ret->ca, sizeof(ret->ca), "%s/%s/ca.pem", world->folder, ca);
  path_of(world, name, folder, sizeof(folder));
  static const char *const local[] = {"localhost", "127.0.0.1"};
  struct cv_pki_request request = {
      .identity = identity, .hosts = local, .hosts_n = CV_COUNT(local), .valid_s = valid_s, .renew = true};
  if (cv_pki_issue(ret->ca_folder, folder, &request, &ret->files, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void issue(struct world *world, const char *name, const char *identity, int64_t valid_s, struct party *ret) {
  issue_by(world, "ca", name, identity, valid_s, ret);
}

static void test_bad_files(void **state) {
  struct world *world = *state;
  struct party good;
  struct party old;
  struct party other;
  char ca2[96];
  char junk[96];
  issue(world, "p", "worker/1", YEAR_S, &good);
  issue(world, "p", "worker/2", -5, &old);
  issue(world, "p", "worker/3", YEAR_S, &other);
  path_of(world, "other/ca.pem", ca2, sizeof(ca2));
  path_of(world, "junk", junk, sizeof(junk));
  write_file(junk, "junk\n");
  assert_int_equal(chmod(junk, 0600), 0);
  const struct {
    struct cv_tls_files files;
    enum cv_role own;
    const char *part;
  } cases[] = {
      {{"/nowhere/ca.pem", good.files.cert, good.files.key, NULL}, CV_ROLE_WORKER, "/nowhere/ca.pem: No such file"},
      {{junk, good.files.cert, good.files.key, NULL}, CV_ROLE_WORKER, "junk: no certificate in PEM form"},
      {{good.files.cert, good.files.cert, good.files.key, NULL}, CV_ROLE_WORKER, "not the certificate of a CA"},
      {{good.ca, junk, good.files.key, NULL}, CV_ROLE_WORKER, "junk: no certificate in PEM form"},
      {{good.ca, good.files.cert, junk, NULL}, CV_ROLE_WORKER, "junk: no private key"},
      {{good.ca, good.files.cert, other.files.key, NULL}, CV_ROLE_WORKER, "the key does not belong to"},
      {{ca2, good.files.cert, good.files.key, NULL},
       CV_ROLE_WORKER,
       "worker-1.pem: certificate is not signed by our CA"},
      {{good.ca, old.files.cert, old.files.key, NULL}, CV_ROLE_WORKER, "worker-2.pem: certificate expired"},
      {{good.ca, good.files.cert, good.files.key, NULL},
       CV_ROLE_BROKER,
       "worker-1.pem: certificate is for role worker, expected broker"},
      {{good.ca, good.files.cert, good.files.key, junk}, CV_ROLE_WORKER, "junk:1: expected one serial number in hex"},
      {{good.ca, good.files.cert, good.files.key, "/nowhere/denied"}, CV_ROLE_WORKER, "/nowhere/denied: No such file"},
  };
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    expect_unloadable(&cases[i].files, cases[i].own, cases[i].part);
  }
}

static void test_key_that_others_can_read(void **state) {
  struct world *world = *state;
  struct party party;
  issue(world, "p", "worker/1", YEAR_S, &party);
  struct cv_tls_files files = {party.ca, party.files.cert, party.files.key, NULL};
  static const mode_t bad[] = {0640, 0604, 0610, 0666};
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    assert_int_equal(chmod(party.files.key, bad[i]), 0);
    expect_unloadable(&files, CV_ROLE_WORKER, "only the owner may have access to a key (chmod 600)");
  }
  assert_int_equal(chmod(party.files.key, 0400), 0);
  struct cv_tls *tls;
  assert_int_equal(cv_tls_new(&files, CV_ROLE_WORKER, (struct cv_tls_peers){.roles = BROKERS}, false, &tls, NULL),
                   CV_OK);
  assert_true(cv_tls_identity(tls)->first == 1);
  cv_tls_unref(tls);
}

/* --- a client that is not ours --- */

/* Plain OpenSSL, without blocking, over a uv_tcp_t of its own. */
struct stranger {
  uv_tcp_t tcp;
  uv_connect_t connect;
  uv_write_t write;
  const char *first; /* plain text to send instead of TLS */
  SSL_CTX *ctx;
  SSL *ssl;
  BIO *in, *out;
  struct world *world;
  char buffer[4096];
};

static void stranger_push(struct stranger *stranger) {
  char bytes[8192];
  int n = BIO_read(stranger->out, bytes, sizeof(bytes));
  if (n > 0) {
    uv_buf_t buf = uv_buf_init(bytes, (unsigned)n);
    assert_int_equal(uv_try_write((uv_stream_t *)&stranger->tcp, &buf, 1), n);
  }
}

static void stranger_alloc(uv_handle_t *handle, size_t n, uv_buf_t *buf) {
  struct stranger *stranger = handle->data;
  *buf = uv_buf_init(stranger->buffer, sizeof(stranger->buffer));
}

static void stranger_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct stranger *stranger = stream->data;
  if (n < 0) {
    uv_close((uv_handle_t *)stream, NULL);
  } else if (stranger->ssl != NULL) {
    (void)BIO_write(stranger->in, buf->base, (int)n);
    (void)SSL_do_handshake(stranger->ssl);
    stranger_push(stranger);
  }
}

static void stranger_connected(uv_connect_t *req, int status) {
  struct stranger *stranger = req->data;
  assert_int_equal(status, 0);
  assert_int_equal(uv_read_start((uv_stream_t *)&stranger->tcp, stranger_alloc, stranger_read), 0);
  if (stranger->first != NULL) {
    uv_buf_t buf = uv_buf_init(stranger->buffer, (unsigned)strlen(stranger->first));
    memcpy(stranger->buffer, stranger->first, strlen(stranger->first));
    assert_int_equal(uv_try_write((uv_stream_t *)&stranger->tcp, &buf, 1), strlen(stranger->first));
  } else if (stranger->ssl != NULL) {
    (void)SSL_do_handshake(stranger->ssl);
    stranger_push(stranger);
  }
}

static void stranger_use_tls(struct stranger *stranger, const struct cv_pki_files *files, bool alpn, int max_version) {
  static const unsigned char protocols[] =
      "\x0b"
      "crowdveil/1";
  stranger->ctx = SSL_CTX_new(TLS_client_method());
  assert_non_null(stranger->ctx);
  assert_true(SSL_CTX_set_max_proto_version(stranger->ctx, max_version));
  if (files != NULL) {
    assert_int_equal(SSL_CTX_use_certificate_file(stranger->ctx, files->cert, SSL_FILETYPE_PEM), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(stranger->ctx, files->key, SSL_FILETYPE_PEM), 1);
  }
  if (alpn) {
    assert_int_equal(SSL_CTX_set_alpn_protos(stranger->ctx, protocols, sizeof(protocols) - 1), 0);
  }
  stranger->ssl = SSL_new(stranger->ctx);
  stranger->in = BIO_new(BIO_s_mem());
  stranger->out = BIO_new(BIO_s_mem());
  SSL_set_bio(stranger->ssl, stranger->in, stranger->out);
  SSL_set_connect_state(stranger->ssl);
}

/* Connects and waits until the server has closed it. */
static void expect_thrown_out(struct world *world, struct stranger *stranger, const char *server_says) {
  struct sockaddr_in address;
  if (world->listener == NULL) {
    serve(world, broker_tls(world));
  }
  assert_int_equal(uv_ip4_addr("127.0.0.1", (int)cv_listener_port(world->listener), &address), 0);
  assert_int_equal(uv_tcp_init(&world->loop, &stranger->tcp), 0);
  stranger->tcp.data = stranger->connect.data = stranger;
  assert_int_equal(uv_tcp_connect(&stranger->connect, &stranger->tcp, (struct sockaddr *)&address, stranger_connected),
                   0);
  unsigned closed = world->server.closed;
  wait_for(world, &world->server.closed, closed + 1);
  expect_text(world->server.why.text, server_says);
  assert_int_equal(world->server.opened, 0);
  if (!uv_is_closing((uv_handle_t *)&stranger->tcp)) {
    uv_close((uv_handle_t *)&stranger->tcp, NULL);
  }
  (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  SSL_free(stranger->ssl);
  SSL_CTX_free(stranger->ctx);
}

static void test_plain_text(void **state) {
  struct stranger http = {.first = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"};
  struct stranger text = {.first = "hello, is this crowdveil? please let me in\n"};
  expect_thrown_out(*state, &http, ": no TLS (plain text?)");
  expect_thrown_out(*state, &text, ": no TLS (plain text?)");
}

static void test_strangers(void **state) {
  struct world *world = *state;
  struct party party;
  struct party old;
  struct party gone;
  struct party foreign;
  issue(world, "p", "worker/1", YEAR_S, &party);
  issue(world, "p", "worker/2", -5, &old);
  issue(world, "p", "thirdparty/t", YEAR_S, &gone);
  issue_by(world, "other", "p", "worker/9", YEAR_S, &foreign);
  struct stranger stranger = {0};
  stranger_use_tls(&stranger, &party.files, true, TLS1_2_VERSION);
  expect_thrown_out(world, &stranger, ": the other side does not offer TLS 1.3");
  stranger = (struct stranger){0};
  stranger_use_tls(&stranger, NULL, true, TLS1_3_VERSION);
  expect_thrown_out(world, &stranger, ": the other side has no certificate");
  stranger = (struct stranger){0};
  stranger_use_tls(&stranger, &party.files, false, TLS1_3_VERSION);
  expect_thrown_out(world, &stranger, ": the other side does not support crowdveil/1 (ALPN)");
  stranger = (struct stranger){0};
  stranger_use_tls(&stranger, &old.files, true, TLS1_3_VERSION);
  expect_thrown_out(world, &stranger, ": certificate expired");
  stranger = (struct stranger){0};
  stranger_use_tls(&stranger, &gone.files, true, TLS1_3_VERSION);
  expect_thrown_out(world, &stranger, ": certificate is for role thirdparty, expected worker or gateway");
  stranger = (struct stranger){0};
  stranger_use_tls(&stranger, &foreign.files, true, TLS1_3_VERSION);
  expect_thrown_out(world, &stranger, ": certificate is not signed by our CA");
}

static void test_wrong_alpn(void **state) {
  struct world *world = *state;
  struct party party;
  struct stranger stranger = {0};
  issue(world, "p", "worker/1", YEAR_S, &party);
  stranger_use_tls(&stranger, &party.files, false, TLS1_3_VERSION);
  assert_int_equal(SSL_set_alpn_protos(stranger.ssl, (const unsigned char *)"\x02h2", 3), 0);
  expect_thrown_out(world, &stranger, ": the other side does not support crowdveil/1 (ALPN)");
}

/* A silent connection is closed after the handshake's time limit, and the reason says so. */
static void test_silence(void **state) {
  struct world *world = *state;
  world->limits.handshake_ms = 50;
  struct stranger stranger = {0};
  expect_thrown_out(world, &stranger, ": no TLS handshake within 50 ms");
}

/* A client that sends something, closes, and resets the connection during our answer does not end the process. */
static void test_reset_under_our_answer(void **state) {
  struct world *world = *state;
  struct sockaddr_in address;
  struct linger at_once = {.l_onoff = 1};
  static const uint8_t hello[] = {22, 3, 1, 0, 5, 1, 0, 0, 1, 0}; /* a ClientHello cut short: answered with an alert */
  serve(world, broker_tls(world));
  assert_int_equal(uv_ip4_addr("127.0.0.1", (int)cv_listener_port(world->listener), &address), 0);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(send(fd, hello, sizeof(hello), 0), sizeof(hello));
  assert_int_equal(shutdown(fd, SHUT_WR), 0);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
  assert_int_equal(close(fd), 0);
  wait_for(world, &world->server.closed, 1);
}

/* --- sessions --- */

static bool is_resumed(struct side *side) {
  return SSL_session_reused(side->peer->conn.ssl);
}

/* Closes the connection from the server's side and waits until the client has reconnected. */
static void reconnect(struct world *world) {
  unsigned opened = world->client.opened;
  unsigned server_opened = world->server.opened;
  cv_peer_close(world->server.peer, "again");
  wait_for(world, &world->client.opened, opened + 1);
  wait_for(world, &world->server.opened, server_opened + 1);
}

static void test_resumption(void **state) {
  struct world *world = *state;
  connect_both(world);
  assert_false(is_resumed(&world->server));
  reconnect(world);
  assert_true(is_resumed(&world->server));
  assert_true(is_resumed(&world->client));
  /* A resumed connection still knows its peer. */
  assert_true(world->server.identity.first == 17);
  assert_string_equal(world->client.identity.name, "main");
  reconnect(world);
  assert_true(is_resumed(&world->server));
  /* A new context has no sessions. */
  struct cv_tls *tls = broker_tls(world);
  cv_listener_set_tls(world->listener, tls);
  cv_tls_unref(tls);
  assert_non_null(world->server.peer);
  reconnect(world);
  assert_false(is_resumed(&world->server));
  reconnect(world);
  assert_true(is_resumed(&world->server));
}

/* However often it is resumed, a session ends after its five minutes or at the certificate's expiry. */
static void test_session_lifetime(void **state) {
  struct world *world = *state;
  serve(world, broker_tls(world));
  dial(world, make_tls(world, "ca", "ca", "crowdveil:worker/20", 60, BROKERS, false));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
  long timeout = SSL_SESSION_get_timeout(SSL_get_session(world->server.peer->conn.ssl));
  assert_in_range(timeout, 1, 60);
  cv_dialer_stop(world->dialer);
  world->dialer = NULL;
  wait_for(world, &world->server.closed, 1);
  dial(world, worker_tls(world));
  wait_for(world, &world->server.opened, 2);
  timeout = SSL_SESSION_get_timeout(SSL_get_session(world->server.peer->conn.ssl));
  assert_in_range(timeout, 290, 300);
}

/* --- reloading --- */

static struct cv_tls *load(const struct party *party, enum cv_role own, unsigned peers, bool server,
                           const char *denied) {
  struct cv_tls_files files = {party->ca, party->files.cert, party->files.key, denied};
  struct cv_tls *tls = NULL;
  struct cv_why why;
  if (cv_tls_new(&files, own, (struct cv_tls_peers){.roles = peers}, server, &tls, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return tls;
}

static void serial_of(const struct cv_pki_files *files, char *ret, size_t size) {
  FILE *file = fopen(files->cert, "r");
  assert_non_null(file);
  X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
  (void)fclose(file);
  BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
  char *hex = BN_bn2hex(number);
  (void)snprintf(ret, size, "%s", hex);
  OPENSSL_free(hex);
  BN_free(number);
  X509_free(cert);
}

/* A denied serial number ends the live connection, and its session cannot be resumed. */
static void test_denied_serial(void **state) {
  struct world *world = *state;
  struct party worker;
  struct party broker;
  char denied[96];
  char serial[64];
  char lines[256];
  issue(world, "p", "worker/1", YEAR_S, &worker);
  issue(world, "p", "broker/b", YEAR_S, &broker);
  serve(world, load(&broker, CV_ROLE_BROKER, WORKERS, true, NULL));
  dial(world, load(&worker, CV_ROLE_WORKER, BROKERS, false, NULL));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
  serial_of(&worker.files, serial, sizeof(serial));
  for (char *c = serial; *c != '\0'; c++) {
    *c = *c >= 'A' ? (char)(*c + 'a' - 'A') : *c;
  }
  (void)snprintf(lines, sizeof(lines), "# denied since May\nabcdef01\n  00%s  # stolen\n\n", serial);
  path_of(world, "denied", denied, sizeof(denied));
  write_file(denied, lines);
  struct cv_tls *tls = load(&broker, CV_ROLE_BROKER, WORKERS, true, denied);
  world->server.in_call = true;
  cv_listener_set_tls(world->listener, tls);
  world->server.in_call = false;
  cv_tls_unref(tls);
  wait_for(world, &world->server.closed, 1);
  expect_text(world->server.why.text, ": certificate is revoked");
  wait_for(world, &world->client.failed, 1);
  assert_int_equal(world->client.opened, 1);
  expect_text(world->client.why.text, "refused by the other side: our certificate is revoked");
}

/* Denying a CA denies all of its certificates. */
static void test_denied_ca(void **state) {
  struct world *world = *state;
  struct party broker;
  struct cv_pki_files ca;
  char denied[96];
  char serial[64];
  issue(world, "p", "broker/b", YEAR_S, &broker);
  serve(world, load(&broker, CV_ROLE_BROKER, WORKERS, true, NULL));
  dial(world, worker_tls(world));
  wait_for(world, &world->server.opened, 1);
  (void)snprintf(ca.cert, sizeof(ca.cert), "%s", broker.ca);
  serial_of(&ca, serial, sizeof(serial));
  path_of(world, "denied", denied, sizeof(denied));
  write_file(denied, serial);
  struct cv_tls *tls = load(&broker, CV_ROLE_BROKER, WORKERS, true, denied);
  cv_listener_set_tls(world->listener, tls);
  cv_tls_unref(tls);
  wait_for(world, &world->server.closed, 1);
  expect_text(world->server.why.text, ": certificate is revoked");
}

/* With a context that still accepts them live connections stay; with one of another CA they end. */
static void test_reload_checks_live_peers(void **state) {
  struct world *world = *state;
  connect_both(world);
  struct cv_tls *same = broker_tls(world);
  cv_listener_set_tls(world->listener, same);
  cv_tls_unref(same);
  assert_int_equal(cv_peer_send(world->server.peer, "x", 1), CV_OK);
  wait_bytes(world, &world->client.frames, 1);
  struct cv_tls *other = make_tls(world, "other", "other", "crowdveil:broker/main", YEAR_S, WORKERS, true);
  cv_listener_set_tls(world->listener, other);
  cv_tls_unref(other);
  wait_for(world, &world->server.closed, 1);
  expect_text(world->server.why.text, ": certificate is not signed by our CA");
  wait_for(world, &world->client.closed, 1);
}

/* Contexts may be replaced at any moment of a handshake; the newest one applies. */
static void test_reload_during_handshakes(void **state) {
  struct world *world = *state;
  serve(world, broker_tls(world));
  dial(world, worker_tls(world));
  for (unsigned turn = 0; world->server.opened == 0 && turn < 1000; turn++) {
    struct cv_tls *server = broker_tls(world);
    struct cv_tls *client = worker_tls(world);
    cv_listener_set_tls(world->listener, server);
    cv_dialer_set_tls(world->dialer, client);
    cv_tls_unref(server);
    cv_tls_unref(client);
    (void)uv_run(&world->loop, UV_RUN_ONCE);
  }
  wait_for(world, &world->client.opened, 1);
  assert_int_equal(world->server.opened, 1);
  assert_int_equal(world->client.failed, 0);
}

static void test_dialer_reload(void **state) {
  struct world *world = *state;
  connect_both(world);
  struct cv_tls *tls = worker_tls(world);
  cv_dialer_set_tls(world->dialer, tls);
  cv_tls_unref(tls);
  reconnect(world);
  assert_false(is_resumed(&world->client));
  struct cv_tls *picky = make_tls(world, "ca", "ca", "crowdveil:worker/17", YEAR_S, 1u << CV_ROLE_THIRDPARTY, false);
  cv_dialer_set_tls(world->dialer, picky);
  cv_tls_unref(picky);
  wait_for(world, &world->client.closed, 2);
  expect_text(world->client.why.text, ": certificate is for role broker, expected thirdparty");
}

static void append(const char *from, const char *to) {
  char text[4096];
  FILE *in = fopen(from, "r");
  FILE *out = fopen(to, "a");
  assert_true(in != NULL && out != NULL);
  size_t n = fread(text, 1, sizeof(text), in);
  assert_int_equal(fwrite(text, 1, n, out), n);
  assert_int_equal(fclose(in) | fclose(out), 0);
}

/* While an authority is replaced, the file names the old one and the new one, in either order. */
static void test_two_authorities(void **state) {
  struct world *world = *state;
  struct party broker;
  struct party worker;
  struct cv_why why;
  struct cv_tls *tls;
  char both[96];
  issue(world, "p", "broker/b", YEAR_S, &broker);
  issue_by(world, "other", "q", "worker/1", YEAR_S, &worker);
  path_of(world, "both.pem", both, sizeof(both));
  append(broker.ca, both);
  append(worker.ca, both);
  (void)snprintf(broker.ca, sizeof(broker.ca), "%s", both);
  (void)snprintf(worker.ca, sizeof(worker.ca), "%s", both);
  serve(world, load(&broker, CV_ROLE_BROKER, WORKERS, true, NULL));
  dial(world, load(&worker, CV_ROLE_WORKER, BROKERS, false, NULL));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);

  struct cv_tls_files files = {both, worker.files.cert, worker.files.key, NULL};
  append(worker.files.cert, both);
  assert_int_equal(cv_tls_new(&files, CV_ROLE_WORKER, (struct cv_tls_peers){.roles = BROKERS}, false, &tls, &why),
                   CV_ERR_INVALID);
  expect_text(why.text, "both.pem: not the certificate of a CA");
  path_of(world, "cut.pem", both, sizeof(both));
  append(worker.ca, both);
  write_file(both, "-----BEGIN CERTIFICATE-----\nMIIB\n");
  assert_int_equal(cv_tls_new(&files, CV_ROLE_WORKER, (struct cv_tls_peers){.roles = BROKERS}, false, &tls, &why),
                   CV_ERR_FORMAT);
  expect_text(why.text, "cut.pem: certificate 1 is not in PEM form");
}

/* Files that are read again cannot turn a party into another one. */
static void test_renewal(void **state) {
  struct world *world = *state;
  struct party worker;
  struct party other;
  struct cv_why why;
  struct cv_tls *tls = NULL;
  issue(world, "p", "worker/1", YEAR_S, &worker);
  issue(world, "p", "worker/2", YEAR_S, &other);
  struct cv_tls *old = load(&worker, CV_ROLE_WORKER, BROKERS, false, NULL);
  const struct cv_tls_files same = {worker.ca, worker.files.cert, worker.files.key, NULL};
  const struct cv_tls_files others = {other.ca, other.files.cert, other.files.key, NULL};
  assert_int_equal(cv_tls_renew(old, &others, &tls, &why), CV_ERR_INVALID);
  assert_null(tls);
  expect_text(why.text, "worker-2.pem: certificate is for worker/2, expected worker/1");
  struct party role;
  issue(world, "q", "requester/1", YEAR_S, &role);
  const struct cv_tls_files of_role = {role.ca, role.files.cert, role.files.key, NULL};
  assert_int_equal(cv_tls_renew(old, &of_role, &tls, &why), CV_ERR_DENIED);
  expect_text(why.text, "requester-1.pem: certificate is for role requester, expected worker");
  assert_int_equal(cv_tls_renew(old, &same, &tls, &why), CV_OK);
  cv_tls_unref(old);
  cv_tls_unref(tls);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_server_of_another_ca, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_client_of_a_wrong_role, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_server_of_a_wrong_role, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_server_of_another_name, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_client_of_another_name, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_names_when_files_are_read_again, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_client_that_expires_is_closed_on, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_server_that_expires_is_closed_on, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_ca_that_expires_ends_its_certificates, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_bad_files, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_key_that_others_can_read, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_plain_text, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_strangers, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_wrong_alpn, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_silence, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_reset_under_our_answer, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_resumption, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_session_lifetime, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_denied_serial, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_denied_ca, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_reload_checks_live_peers, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_reload_during_handshakes, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_dialer_reload, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_two_authorities, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_renewal, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
