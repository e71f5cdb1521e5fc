/* SPDX-License-Identifier: Apache-2.0 */
/* The order of commits and sends, with a daemon that records the calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/daemon/turn.h"

enum { CROWD = 4, FULL = 8 };

/* The calls, a letter each: flush, Commit here, Hand over, Say, Pace, and X for the failure. */
struct daemon {
  struct cv_turn turn;
  char done[64];
  unsigned rounds; /* batches that are pending one after another */
  size_t gathered;
  bool empty, slow, rest, borrows;
  enum cv_err flush, commit;
  char failure[512];
};

static void write_down(struct daemon *daemon, char letter) {
  size_t n = strlen(daemon->done);
  assert_true(n + 1 < sizeof(daemon->done));
  daemon->done[n] = letter;
}

static bool is_pending(void *data) {
  const struct daemon *daemon = data;
  return daemon->rounds > 0;
}

static size_t gathered(void *data) {
  const struct daemon *daemon = data;
  return daemon->gathered;
}

static enum cv_err flush(void *data, bool *ret_store) {
  struct daemon *daemon = data;
  write_down(daemon, 'f');
  CV_TRY(daemon->flush);
  daemon->rounds--;
  *ret_store = !daemon->empty;
  return CV_OK;
}

static enum cv_err commit(void *data, struct cv_why *why) {
  struct daemon *daemon = data;
  write_down(daemon, 'c');
  return daemon->commit == CV_OK ? CV_OK : cv_fail(why, daemon->commit, "no room");
}

static void hand_over(void *data) {
  write_down(data, 'h');
}

static bool is_quick(void *data) {
  const struct daemon *daemon = data;
  return !daemon->slow;
}

static void say(void *data) {
  write_down(data, 's');
}

static void pace(void *data) {
  write_down(data, 'p');
}

static bool has_rest(void *data) {
  const struct daemon *daemon = data;
  return daemon->rest;
}

static void on_failure(void *data, const char *what, const struct cv_why *why) {
  struct daemon *daemon = data;
  write_down(daemon, 'X');
  (void)snprintf(daemon->failure, sizeof(daemon->failure), "%.16s: %s", what, why->text);
}

static const struct cv_turn_ops all = {.is_pending = is_pending,
                                       .gathered = gathered,
                                       .has_rest = has_rest,
                                       .flush = flush,
                                       .commit = commit,
                                       .hand_over = hand_over,
                                       .is_quick = is_quick,
                                       .say = say,
                                       .pace = pace,
                                       .fail = on_failure};

static void begin(struct daemon *daemon, const struct cv_turn_ops *ops) {
  *daemon = (struct daemon){.rounds = 1, .gathered = 1};
  daemon->turn = (struct cv_turn){.ops = ops, .data = daemon, .crowd = CROWD, .full = FULL};
}

static void expect(struct daemon *daemon, const char *done) {
  assert_string_equal(daemon->done, done);
  memset(daemon->done, 0, sizeof(daemon->done));
}

static void committed(struct daemon *daemon, enum cv_err err) {
  const struct cv_why why = {.text = "no room"};
  cv_turn_committed(&daemon->turn, err, &why);
}

static void test_a_small_batch_is_said_after_its_commit_here(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.gathered = CROWD - 1;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fcs");
  assert_false(cv_turn_is_busy(&daemon.turn));
}

static void test_what_comes_of_saying_is_taken_at_once(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.rounds = 3;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fcsfcsfcs");
}

static void test_nothing_pending_is_nothing_done(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.rounds = 0;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
}

static void test_nothing_to_store_is_said_without_a_commit(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.empty = true;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fs");
}

static void test_a_crowds_batch_is_said_when_its_commit_has_returned(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.gathered = CROWD;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fph");
  assert_true(cv_turn_is_busy(&daemon.turn));
  daemon.rounds = 1;
  cv_turn_over(&daemon.turn); /* the next batch waits, however large it is */
  daemon.gathered = FULL;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
  committed(&daemon, CV_OK);
  expect(&daemon, "sfph");
  committed(&daemon, CV_OK);
  expect(&daemon, "s");
  assert_false(cv_turn_is_busy(&daemon.turn));
}

static void test_a_slow_disk_is_not_waited_for(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.slow = true;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fh");
  committed(&daemon, CV_OK);
  expect(&daemon, "s");
}

static void test_after_a_crowd_the_next_batch_gathers_for_a_while(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.gathered = CROWD;
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  committed(&daemon, CV_OK);
  expect(&daemon, "fphs");
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
  daemon.gathered = 1;
  cv_turn_paced(&daemon.turn);
  expect(&daemon, "fcs");
  daemon.rounds = 1;
  cv_turn_over(&daemon.turn); /* a small batch has delayed no other */
  expect(&daemon, "fcs");
}

/* The rest of one peer's requests waits like the batch after a crowd, and is handled only after other peers were
 * read. */
static void test_a_rest_waits_for_a_while(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.rest = daemon.empty = true;
  daemon.rounds = 3;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fps");
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
  cv_turn_paced(&daemon.turn);
  expect(&daemon, "fps");
  daemon.rest = false;
  cv_turn_paced(&daemon.turn);
  expect(&daemon, "fs");
}

static void test_a_full_batch_gathers_no_longer(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.gathered = CROWD;
  daemon.rounds = 3;
  cv_turn_over(&daemon.turn);
  committed(&daemon, CV_OK);
  expect(&daemon, "fphs");
  daemon.gathered = FULL;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fph");
}

static void test_the_while_may_end_during_a_commit(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.gathered = CROWD;
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  cv_turn_paced(&daemon.turn);
  expect(&daemon, "fph");
  committed(&daemon, CV_OK);
  expect(&daemon, "sfph");
}

/* Nothing of the batch is sent, and nothing after it. */
static void test_a_commit_that_fails_is_the_last_thing(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.commit = CV_ERR_IO;
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fcX");
  assert_string_equal(daemon.failure, "cannot store: no room");
  assert_true(cv_turn_has_failed(&daemon.turn));
  cv_turn_over(&daemon.turn);
  cv_turn_paced(&daemon.turn);
  expect(&daemon, "");
}

static void test_a_commit_that_fails_elsewhere_is_the_last_thing(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.slow = true;
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  committed(&daemon, CV_ERR_IO);
  expect(&daemon, "fhX");
  assert_string_equal(daemon.failure, "cannot store: no room");
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
}

static void test_no_memory_is_the_last_thing(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.flush = CV_ERR_NOMEM;
  daemon.gathered = CROWD;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fX");
  assert_string_equal(daemon.failure, "cannot continue: out of memory");
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
}

/* What is in flight to the disk then may be stored, but is not sent. */
static void test_after_another_failure_a_commit_is_not_said(void **state) {
  struct daemon daemon;
  const struct cv_why why = {.text = "out of memory"};
  begin(&daemon, &all);
  daemon.slow = true;
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  cv_turn_fail(&daemon.turn, "cannot continue", &why);
  expect(&daemon, "fhX");
  committed(&daemon, CV_OK);
  cv_turn_fail(&daemon.turn, "cannot continue", &why);
  expect(&daemon, "");
}

static void test_without_a_storage_thread_all_is_stored_here(void **state) {
  const struct cv_turn_ops few = {
      .is_pending = is_pending, .flush = flush, .commit = commit, .say = say, .fail = on_failure};
  struct daemon daemon;
  begin(&daemon, &few);
  daemon.slow = true;
  daemon.gathered = FULL;
  daemon.turn.crowd = 0;
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "fcsfcs");
}

/* A copy uses the storage between two batches: what comes meanwhile waits, and goes on at once afterwards. */
static void test_other_work_holds_batches_back(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  assert_true(cv_turn_take(&daemon.turn));
  assert_false(cv_turn_take(&daemon.turn));
  daemon.rounds = 2;
  cv_turn_over(&daemon.turn);
  expect(&daemon, "");
  assert_true(cv_turn_is_busy(&daemon.turn));
  cv_turn_give_back(&daemon.turn);
  expect(&daemon, "fcsfcs");
  assert_false(cv_turn_is_busy(&daemon.turn));
}

static void take_once(void *data) {
  struct daemon *daemon = data;
  write_down(daemon, 'b');
  if (daemon->borrows) {
    daemon->borrows = false;
    assert_true(cv_turn_take(&daemon->turn));
  }
}

/* What begins between two batches holds the next one back, and that alone. */
static void test_work_that_begins_between_batches_holds_the_next_one_back(void **state) {
  struct daemon daemon;
  struct cv_turn_ops ops = all;
  ops.between = take_once;
  begin(&daemon, &ops);
  daemon.borrows = true;
  cv_turn_over(&daemon.turn);
  cv_turn_over(&daemon.turn);
  expect(&daemon, "b");
  cv_turn_give_back(&daemon.turn);
  expect(&daemon, "bfcsb");
}

static void test_other_work_waits_for_a_batch_and_ends_with_a_failure(void **state) {
  struct daemon daemon;
  begin(&daemon, &all);
  daemon.slow = true;
  daemon.rounds = 1;
  cv_turn_over(&daemon.turn);
  assert_false(cv_turn_take(&daemon.turn));
  committed(&daemon, CV_OK);
  assert_true(cv_turn_take(&daemon.turn));
  const struct cv_why why = {.text = "out of memory"};
  cv_turn_fail(&daemon.turn, "cannot continue", &why);
  daemon.rounds = 1;
  cv_turn_give_back(&daemon.turn);
  expect(&daemon, "fhsX");
  assert_false(cv_turn_take(&daemon.turn));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_small_batch_is_said_after_its_commit_here),
      cmocka_unit_test(test_what_comes_of_saying_is_taken_at_once),
      cmocka_unit_test(test_nothing_pending_is_nothing_done),
      cmocka_unit_test(test_nothing_to_store_is_said_without_a_commit),
      cmocka_unit_test(test_a_crowds_batch_is_said_when_its_commit_has_returned),
      cmocka_unit_test(test_a_slow_disk_is_not_waited_for),
      cmocka_unit_test(test_after_a_crowd_the_next_batch_gathers_for_a_while),
      cmocka_unit_test(test_a_rest_waits_for_a_while),
      cmocka_unit_test(test_a_full_batch_gathers_no_longer),
      cmocka_unit_test(test_the_while_may_end_during_a_commit),
      cmocka_unit_test(test_a_commit_that_fails_is_the_last_thing),
      cmocka_unit_test(test_a_commit_that_fails_elsewhere_is_the_last_thing),
      cmocka_unit_test(test_no_memory_is_the_last_thing),
      cmocka_unit_test(test_after_another_failure_a_commit_is_not_said),
      cmocka_unit_test(test_other_work_holds_batches_back),
      cmocka_unit_test(test_work_that_begins_between_batches_holds_the_next_one_back),
      cmocka_unit_test(test_other_work_waits_for_a_batch_and_ends_with_a_failure),
      cmocka_unit_test(test_without_a_storage_thread_all_is_stored_here),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
