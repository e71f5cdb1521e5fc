/* SPDX-License-Identifier: Apache-2.0 */
/* Brokers without a core on a PostgreSQL server: they take the term and commit numbers. Include after cmocka.h. */
#ifndef CV_TESTS_BROKER_ONE_H
#define CV_TESTS_BROKER_ONE_H

#define WORLD_POSTGRES
#include "tests/unit/broker/stored.h"

/* A broker without a core: it commits nothing but numbers. */
struct one {
  struct cv_remote *remote;
  struct cv_broker_store *store; /* NULL: it stands by */
  uint64_t commit;
};

struct fixture {
  struct folder folder;
  struct cv_ring ring;
  struct one a, b;
};

static inline struct cv_remote *open_one(const struct fixture *fixture, const char *anchor, const char *name) {
  const struct cv_remote_config config = {.store = server_owner(),
                                          .anchor = folder_file(&fixture->folder, anchor),
                                          .name = name,
                                          .address = anchor,
                                          .ring = &fixture->ring};
  struct cv_remote *remote;
  struct cv_why why;
  if (cv_postgres.open(&config, &remote, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return remote;
}

static inline void stop_one(struct one *one) {
  cv_broker_store_close(one->store);
  if (one->remote != NULL) {
    cv_postgres.close(one->remote);
  }
  *one = (struct one){.remote = NULL};
}

/* It has taken the term. */
static inline void attend(struct one *one) {
  struct cv_remote_view view;
  struct cv_why why;
  cv_postgres.view(one->remote, &view);
  one->commit = view.commit;
  assert_int_equal(cv_postgres.store(one->remote, &one->store, &why), CV_OK);
}

/* One step of a broker, which is expected to take the term, or not to, or to fail with this line. */
static inline void step(struct one *one, bool takes, const char *line) {
  struct cv_why why = {.text = ""};
  bool taken = false;
  unsigned rest_ms = 0;
  enum cv_err err = cv_postgres.step(one->remote, &taken, &rest_ms, &why);
  if ((err == CV_OK) != (line == NULL) || (line != NULL && strstr(why.text, line) == NULL)) {
    fail_msg("error %d: \"%s\"; expected \"%s\"", err, why.text, line == NULL ? "" : line);
  }
  assert_int_equal(taken, takes);
  assert_true(rest_ms > 0);
  if (taken) {
    attend(one);
  }
}

static inline void start(struct fixture *fixture, struct one *one, const char *anchor) {
  *one = (struct one){.remote = open_one(fixture, anchor, "b")};
}

static inline enum cv_err try_commit(struct one *one, struct cv_why *why) {
  struct cv_broker_batch batch = {.commit = one->commit + 1, .totals = {.tokens = one->commit + 1}};
  enum cv_err err = cv_broker_store_commit(one->store, &batch, why);
  one->commit += err == CV_OK;
  return err;
}

static inline void commit(struct one *one) {
  struct cv_why why;
  if (try_commit(one, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static inline int set_up(void **state) {
  static struct fixture fixture;
  fixture = (struct fixture){.ring = {.n = 0}};
  server_reset();
  server_run("DROP SCHEMA IF EXISTS saved CASCADE"); /* a test's copy */
  folder_make(&fixture.folder);
  assert_int_equal(cv_ring_renew(&fixture.ring, 0), CV_OK);
  *state = &fixture;
  return 0;
}

static inline int tear_down(void **state) {
  struct fixture *fixture = *state;
  stop_one(&fixture->a);
  stop_one(&fixture->b);
  cv_ring_fini(&fixture->ring);
  folder_remove(&fixture->folder);
  server_await_no_holder();
  return 0;
}

#endif
