/* SPDX-License-Identifier: Apache-2.0 */
/* Connections under a list of revoked certificates: new ones, live ones, and those that outlive the list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/net/identity.h"
#include "deploy/launcher/pki/revoke.h"
#include "tests/unit/net/lists.h"
#include "tests/unit/net/world.h"

enum { DAY_S = 86400, WORKERS = 1u << CV_ROLE_WORKER, BROKERS = 1u << CV_ROLE_BROKER };

struct party {
  char folder[96], ca[128], crl[128];
  struct cv_pki_files files;
};

static struct party issue(struct world *world, const char *name, const char *identity) {
  static const char *const local[] = {"localhost"};
  const struct cv_pki_request request = {.identity = identity, .hosts = local, .hosts_n = 1, .valid_s = DAY_S};
  struct party party;
  struct cv_why why;
  char ca[96];
  path_of(world, "ca", ca, sizeof(ca));
  path_of(world, name, party.folder, sizeof(party.folder));
  (void)snprintf(party.ca, sizeof(party.ca), "%s/ca.pem", party.folder);
  (void)snprintf(party.crl, sizeof(party.crl), "%s/crl.pem", party.folder);
  if (cv_pki_issue(ca, party.folder, &request, &party.files, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return party;
}

static enum cv_err try_load(const struct party *party, enum cv_role own, unsigned peers, const char *crl,
                            struct cv_tls **ret, struct cv_why *why) {
  const struct cv_tls_files files = {.ca = party->ca, .cert = party->files.cert, .key = party->files.key, .crl = crl};
  return cv_tls_new(&files, own, (struct cv_tls_peers){.roles = peers}, own == CV_ROLE_BROKER, ret, why);
}

static struct cv_tls *load(const struct party *party, enum cv_role own, unsigned peers, const char *crl) {
  struct cv_tls *tls;
  struct cv_why why;
  if (try_load(party, own, peers, crl, &tls, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return tls;
}

static void ignore(void *data, const struct cv_pki_entry *entry) {
}

static void revoke_in(struct world *world, const char *identity, char crl[160]) {
  char ca[96];
  struct cv_why why;
  path_of(world, "ca", ca, sizeof(ca));
  (void)snprintf(crl, 160, "%s/crl.pem", ca);
  if (cv_pki_revoke(ca, identity, ignore, NULL, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void expect_text(const char *text, const char *part) {
  if (strstr(text, part) == NULL) {
    fail_msg("'%s' does not contain '%s'", text, part);
  }
}

static void connect_parties(struct world *world, struct party *broker, struct party *worker) {
  *broker = issue(world, "b", "broker/b");
  *worker = issue(world, "w", "worker/1");
  serve(world, load(broker, CV_ROLE_BROKER, WORKERS, broker->crl));
  dial(world, load(worker, CV_ROLE_WORKER, BROKERS, worker->crl));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
}

/* A revoked client loses its connection, is told why, and does not come back, not even with its session. */
static void test_a_revoked_client(void **state) {
  struct world *world = *state;
  struct party broker, worker;
  char crl[160];
  connect_parties(world, &broker, &worker);
  revoke_in(world, "worker/1", crl);
  struct cv_tls *tls = load(&broker, CV_ROLE_BROKER, WORKERS, crl);
  cv_listener_set_tls(world->listener, tls);
  cv_tls_unref(tls);
  wait_for(world, &world->server.closed, 1);
  expect_text(world->server.why.text, ": certificate is revoked");
  wait_for(world, &world->client.failed, 1);
  expect_text(world->client.why.text, "refused by the other side: our certificate is revoked");
  assert_int_equal(world->client.opened, 1);
}

/* The other direction: a dialer leaves a server whose certificate is revoked. */
static void test_a_revoked_server(void **state) {
  struct world *world = *state;
  struct party broker, worker;
  char crl[160];
  connect_parties(world, &broker, &worker);
  revoke_in(world, "broker/b", crl);
  struct cv_tls *tls = load(&worker, CV_ROLE_WORKER, BROKERS, crl);
  cv_dialer_set_tls(world->dialer, tls);
  cv_tls_unref(tls);
  wait_for(world, &world->client.closed, 1);
  expect_text(world->client.why.text, ": certificate is revoked");
  wait_for(world, &world->client.failed, 1);
  assert_int_equal(world->client.opened, 1);
}

/* Another one's revocation ends nothing. */
static void test_others_go_on(void **state) {
  struct world *world = *state;
  struct party broker, worker;
  char crl[160];
  connect_parties(world, &broker, &worker);
  (void)issue(world, "w2", "worker/2");
  revoke_in(world, "worker/2", crl);
  struct cv_tls *tls = load(&broker, CV_ROLE_BROKER, WORKERS, crl);
  cv_listener_set_tls(world->listener, tls);
  cv_tls_unref(tls);
  assert_int_equal(cv_peer_send(world->server.peer, "x", 1), CV_OK);
  wait_bytes(world, &world->client.frames, 1);
  assert_int_equal(world->server.closed + world->client.closed, 0);
}

/* An expired list fails closed: it ends live connections, and no new one is made. */
static void test_a_list_that_expires(void **state) {
  struct world *world = *state;
  struct party broker = issue(world, "b", "broker/b"), worker = issue(world, "w", "worker/1");
  char ca[96], crl[128];
  path_of(world, "ca", ca, sizeof(ca));
  path_of(world, "brief.pem", crl, sizeof(crl));
  const struct list_plan plan = {.ca = ca, .from_s = -1, .until_s = 3};
  int64_t from_s = (int64_t)time(NULL);
  list_write(&plan, crl, false);
  serve(world, load(&broker, CV_ROLE_BROKER, WORKERS, crl));
  dial(world, load(&worker, CV_ROLE_WORKER, BROKERS, worker.crl));
  wait_for(world, &world->client.opened, 1);
  wait_for(world, &world->server.closed, 1);
  expect_text(world->server.why.text, ": our CRL has expired (tls.crl)");
  assert_in_range((int64_t)time(NULL) - from_s, 3, 4);
  wait_for(world, &world->client.failed, 1); /* its session is not resumed */
  assert_int_equal(world->server.opened, 1);
  /* Nor does a program start with it. */
  struct cv_tls *tls;
  struct cv_why why;
  assert_int_equal(try_load(&broker, CV_ROLE_BROKER, WORKERS, crl, &tls, &why), CV_ERR_DENIED);
  expect_text(why.text, "brief.pem: the CRL expired on ");
}

static void test_files_that_are_refused(void **state) {
  struct world *world = *state;
  struct party worker = issue(world, "w", "worker/1");
  struct cv_tls *tls;
  struct cv_why why;
  char other[128];
  path_of(world, "other/crl.pem", other, sizeof(other));
  assert_int_equal(try_load(&worker, CV_ROLE_WORKER, BROKERS, other, &tls, &why), CV_ERR_INVALID);
  expect_text(why.text, "other/crl.pem: a CRL is not signed by our CA");
  assert_int_equal(try_load(&worker, CV_ROLE_WORKER, BROKERS, "/nowhere/crl.pem", &tls, &why), CV_ERR_NOT_FOUND);
  expect_text(why.text, "/nowhere/crl.pem: No such file");
  assert_int_equal(try_load(&worker, CV_ROLE_WORKER, BROKERS, worker.files.cert, &tls, &why), CV_ERR_FORMAT);
}

/* A party knows of its own revocation, but takes the new list all the same: it must refuse others. */
static void test_our_own(void **state) {
  struct world *world = *state;
  struct party worker = issue(world, "w", "worker/1");
  char crl[160];
  struct cv_tls *tls = load(&worker, CV_ROLE_WORKER, BROKERS, worker.crl);
  assert_false(cv_tls_is_revoked(tls));
  cv_tls_unref(tls);
  revoke_in(world, "worker/1", crl);
  tls = load(&worker, CV_ROLE_WORKER, BROKERS, crl);
  assert_true(cv_tls_is_revoked(tls));
  cv_tls_unref(tls);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_revoked_client, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_revoked_server, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_others_go_on, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_list_that_expires, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_files_that_are_refused, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_our_own, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
