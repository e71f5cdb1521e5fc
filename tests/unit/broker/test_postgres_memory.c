/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every single allocation of a broker on a PostgreSQL server fails once: while it connects, stands by, takes the term,
 * beats and commits. It says so in one line; what it has acknowledged is stored, and the next attempt goes on.
 */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <openssl/crypto.h>

#include "tests/support/alloc_fault.h"
#include "tests/unit/broker/one.h"

/* A failure is one line, and only for want of memory, which nobody waits for. */
static bool passes(enum cv_err err, const struct cv_why *why) {
  alloc_fault_pause();
  bool is_clear = why->text[0] != '\0' && strpbrk(why->text, "\r\n") == NULL && strstr(why->text, "no answer") == NULL;
  if (err != CV_OK && !(alloc_fault_hit() && is_clear)) {
    fail_msg("error %d: \"%s\"", err, why->text);
  }
  return err == CV_OK;
}

/* One step with failing allocations; after an error another one with all of them. */
static void starving_step(struct one *one, bool takes) {
  struct cv_why why = {.text = ""};
  bool taken = false;
  unsigned rest_ms = 0;
  alloc_fault_arm();
  enum cv_err err = cv_postgres.step(one->remote, &taken, &rest_ms, &why);
  if (passes(err, &why)) {
    assert_int_equal(taken, takes);
    if (taken) {
      attend(one);
    }
    return;
  }
  assert_false(taken);
  assert_true(rest_ms > 0);
  if (takes) {
    server_await_no_holder(); /* a failed one keeps no lock */
  }
  step(one, takes, NULL);
}

/* A term that a failure has ended: what it acknowledged is stored, and another process has the next term. */
static void replace(struct fixture *fixture, struct one *one) {
  uint64_t commit = one->commit;
  stop_one(one);
  server_await_no_holder();
  start(fixture, one, "anchor-a");
  step(one, true, NULL);
  assert_in_range(one->commit, commit, commit + 1);
}

/* `round` once without a failure, for what libraries allocate once and keep; then with one, or all from one on. */
static void each_allocation(struct fixture *fixture, uint64_t step, void (*round)(struct fixture *fixture)) {
  round(fixture);
  for (int all_after = 0; all_after < 2; all_after++) {
    ALLOC_FAULT_EACH(fault, .rest = all_after != 0, .step = all_after ? 3 * step : step) {
      OPENSSL_thread_stop(); /* its state of errors */
      int64_t before = alloc_fault_live();
      round(fixture);
      OPENSSL_thread_stop();
      assert_int_equal(alloc_fault_live(), before);
    }
  }
}

static void connect_and_take(struct fixture *fixture) {
  start(fixture, &fixture->a, "anchor-a");
  starving_step(&fixture->a, true);
  stop_one(&fixture->a);
  server_await_no_holder();
}

/* A sample: most allocations are those of the handshake, and libpq 15 frees no TLS object that it could not set up. */
static void test_a_session_begins(void **state) {
  each_allocation(*state, 3001, connect_and_take);
}

static void follow_and_take(struct fixture *fixture) {
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  step(&fixture->b, false, NULL);
  commit(&fixture->a);
  commit(&fixture->a);
  starving_step(&fixture->b, false);
  uint64_t acknowledged = fixture->a.commit;
  stop_one(&fixture->a);
  server_await_no_holder();
  starving_step(&fixture->b, true);
  assert_int_equal(fixture->b.commit, acknowledged);
  stop_one(&fixture->b);
  server_await_no_holder();
}

static void test_a_standby_follows_and_takes_the_term(void **state) {
  each_allocation(*state, 37, follow_and_take);
}

static void beat_and_commit(struct fixture *fixture) {
  struct cv_why why = {.text = ""};
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  alloc_fault_arm();
  if (!passes(cv_postgres.beat(fixture->a.remote, &why), &why)) {
    replace(fixture, &fixture->a);
  }
  for (int i = 0; i < 2; i++) {
    alloc_fault_arm();
    if (!passes(try_commit(&fixture->a, &why), &why)) {
      replace(fixture, &fixture->a);
    }
    assert_int_equal(server_number("SELECT last_commit FROM meta"), fixture->a.commit);
  }
  stop_one(&fixture->a);
  server_await_no_holder();
}

static void test_an_active_broker_beats_and_commits(void **state) {
  each_allocation(*state, 5, beat_and_commit);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(test_a_session_begins),
      TEST(test_a_standby_follows_and_takes_the_term),
      TEST(test_an_active_broker_beats_and_commits),
  };
  return STORED_RUN("postgres_memory", tests);
}
