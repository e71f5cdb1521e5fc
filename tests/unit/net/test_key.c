/* SPDX-License-Identifier: Apache-2.0 */
/* The key in a certificate: its digest, a peer that must have one key, and secrets from the connection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "common/base/fingerprint.h"
#include "common/net/peer_state.h"
#include "world.h"

enum { YEAR_S = 365 * 86400, BROKERS = 1u << CV_ROLE_BROKER, COBROKERS = 1u << CV_ROLE_COBROKER, SECRET_BYTES = 32 };

static struct cv_tls *cobroker_tls(struct world *world) {
  return make_tls(world, "ca", "ca", "crowdveil:cobroker/second", YEAR_S, BROKERS, true);
}

static struct cv_tls *broker_for(struct world *world, const struct cv_digest *key) {
  const struct cv_tls_peers peers = {.roles = COBROKERS, .names = "second", .key = key};
  return make_tls_for(world, "ca", "ca", "crowdveil:broker/main", YEAR_S, peers, false);
}

/* Both sides know the other's key, and it is the one that each has itself. */
static void test_each_side_knows_both_keys(void **state) {
  struct world *world = *state;
  struct cv_tls *server = cobroker_tls(world), *client = broker_for(world, NULL);
  const struct cv_digest cobroker = cv_tls_identity(server)->key, broker = cv_tls_identity(client)->key;
  assert_false(cv_digest_is_same(&cobroker, &broker));
  serve(world, server);
  dial(world, client);
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
  assert_int_equal(world->client.identity.role, CV_ROLE_COBROKER);
  assert_memory_equal(&world->client.identity.key, &cobroker, sizeof(cobroker));
  assert_memory_equal(&world->server.identity.key, &broker, sizeof(broker));
}

/* The digest is that of the whole SubjectPublicKeyInfo, as `openssl pkey -pubin -outform DER | sha256sum` prints it. */
static void test_the_key_is_that_of_the_certificate(void **state) {
  struct world *world = *state;
  struct cv_tls *server = cobroker_tls(world), *client = broker_for(world, NULL);
  serve(world, server);
  dial(world, client);
  wait_for(world, &world->client.opened, 1);
  wait_for(world, &world->server.opened, 1);
  EVP_PKEY *key = X509_get_pubkey(SSL_get0_peer_certificate(world->client.peer->conn.ssl));
  unsigned char *der = NULL;
  int n = i2d_PUBKEY(key, &der);
  uint8_t digest[CV_DIGEST_BYTES];
  assert_true(n > 0 && EVP_Q_digest(NULL, "SHA256", NULL, der, (size_t)n, digest, NULL) == 1);
  assert_memory_equal(world->client.identity.key.bytes, digest, sizeof(digest));
  OPENSSL_free(der);
  EVP_PKEY_free(key);
}

static void test_a_peer_with_the_pinned_key_is_accepted(void **state) {
  struct world *world = *state;
  struct cv_tls *server = cobroker_tls(world);
  const struct cv_digest key = cv_tls_identity(server)->key;
  serve(world, server);
  dial(world, broker_for(world, &key));
  wait_for(world, &world->client.opened, 1);
  assert_string_equal(world->client.identity.name, "second");
}

/* The right name from the right CA is not enough. */
static void test_a_peer_with_another_key_is_refused(void **state) {
  struct world *world = *state;
  struct cv_tls *server = cobroker_tls(world);
  struct cv_digest key = cv_tls_identity(server)->key;
  const struct cv_fingerprint has = cv_fingerprint_of(&key);
  key.bytes[31] ^= 1;
  const struct cv_fingerprint expected = cv_fingerprint_of(&key);
  serve(world, server);
  dial(world, broker_for(world, &key));
  wait_for(world, &world->server.closed, 1);
  wait_for(world, &world->client.failed, 1);
  assert_int_equal(world->client.opened, 0);
  assert_int_equal(world->server.opened, 0);
  char line[400];
  (void)snprintf(line, sizeof(line), "certificate of cobroker/second has the key %s, expected %s", has.text,
                 expected.text);
  assert_non_null(strstr(world->client.why.text, line));
  assert_non_null(strstr(world->server.why.text, "it expects a party with another name or key, cobroker/second"));
}

static void secret_of(const struct side *side, const char *label, const char *context, uint8_t ret[SECRET_BYTES]) {
  assert_int_equal(cv_peer_export(side->peer, label, context, strlen(context), ret, SECRET_BYTES), CV_OK);
}

static void test_both_ends_export_the_same(void **state) {
  struct world *world = *state;
  uint8_t ours[SECRET_BYTES], theirs[SECRET_BYTES], other[SECRET_BYTES];
  connect_both(world);
  secret_of(&world->server, "EXPORTER-crowdveil-test", "one", ours);
  secret_of(&world->client, "EXPORTER-crowdveil-test", "one", theirs);
  assert_memory_equal(ours, theirs, sizeof(ours));
  secret_of(&world->client, "EXPORTER-crowdveil-test", "two", other);
  assert_memory_not_equal(ours, other, sizeof(ours));
  secret_of(&world->client, "EXPORTER-crowdveil-text", "one", other);
  assert_memory_not_equal(ours, other, sizeof(ours));
}

/* A resumed session has secrets of its own: a nonce that was used on the connection before is fresh again. */
static void test_each_connection_exports_another(void **state) {
  struct world *world = *state;
  uint8_t before[SECRET_BYTES], ours[SECRET_BYTES], theirs[SECRET_BYTES];
  connect_both(world);
  secret_of(&world->server, "EXPORTER-crowdveil-test", "one", before);
  cv_peer_close(world->server.peer, "again");
  wait_for(world, &world->client.opened, 2);
  wait_for(world, &world->server.opened, 2);
  assert_true(SSL_session_reused(world->client.peer->conn.ssl));
  secret_of(&world->server, "EXPORTER-crowdveil-test", "one", ours);
  secret_of(&world->client, "EXPORTER-crowdveil-test", "one", theirs);
  assert_memory_equal(ours, theirs, sizeof(ours));
  assert_memory_not_equal(ours, before, sizeof(ours));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_each_side_knows_both_keys, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_the_key_is_that_of_the_certificate, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_peer_with_the_pinned_key_is_accepted, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_peer_with_another_key_is_refused, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_both_ends_export_the_same, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_each_connection_exports_another, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
