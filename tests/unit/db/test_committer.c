/* SPDX-License-Identifier: Apache-2.0 */
/* Storage on its own thread, or on the loop's: batches and results arrive complete in both directions, without a
 * lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* The above before cmocka.h. */
#include <cmocka.h>
#include <pthread.h>
#include <time.h>

#include "common/db/committer.h"

enum { COMMITS = 500, ITEMS = 64 };

struct store {
  struct cv_committer committer;
  pthread_t loop_thread;
  uint64_t batch[ITEMS]; /* written by the loop, read by the storage thread */
  uint64_t sum;          /* the other way round */
  unsigned given, done;
  enum cv_err err;
  bool in_call, here;
  unsigned stall_ms; /* of the disk */
};

static enum cv_err commit(void *data, struct cv_why *why) {
  struct store *store = data;
  assert_int_equal(pthread_equal(pthread_self(), store->loop_thread) != 0, store->here);
  const struct timespec stall = {.tv_nsec = store->stall_ms * 1000000L};
  (void)nanosleep(&stall, NULL);
  for (size_t i = 0; i < ITEMS; i++) {
    store->sum += store->batch[i];
  }
  return store->err == CV_OK ? CV_OK : cv_fail(why, store->err, "no room");
}

static void give(struct store *store) {
  assert_false(cv_committer_is_busy(&store->committer));
  for (size_t i = 0; i < ITEMS; i++) {
    store->batch[i] = ++store->given;
  }
  store->in_call = true;
  cv_committer_run(&store->committer);
  store->in_call = false;
}

static void done(void *data, enum cv_err err, const struct cv_why *why) {
  struct store *store = data;
  assert_true(pthread_equal(pthread_self(), store->loop_thread));
  assert_false(store->in_call); /* never from inside the call */
  assert_int_equal(err, store->err);
  if (err != CV_OK) {
    assert_string_equal(why->text, "no room");
  }
  if (++store->done < COMMITS && err == CV_OK) {
    give(store);
  }
}

static void run(struct store *store, enum cv_err err) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  *store = (struct store){.loop_thread = pthread_self(), .err = err};
  store->committer = (struct cv_committer){.loop = &loop, .commit = commit, .done = done, .data = store};
  give(store);
  assert_true(cv_committer_is_busy(&store->committer));
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  assert_false(cv_committer_is_busy(&store->committer));
  assert_int_equal(uv_loop_close(&loop), 0);
}

/* On a busy machine our own commits can be slow, too. */
static void run_until_quick(struct store *store) {
  unsigned runs = 0;
  do {
    run(store, CV_OK);
  } while (!cv_committer_is_quick(&store->committer) && ++runs < COMMITS);
}

static void test_every_batch_is_stored_whole_one_at_a_time(void **state) {
  struct store store;
  run(&store, CV_OK);
  assert_int_equal(store.done, COMMITS);
  uint64_t n = (uint64_t)COMMITS * ITEMS;
  assert_true(store.sum == n * (n + 1) / 2);
}

static void test_a_failure_comes_back_with_its_reason(void **state) {
  struct store store;
  run(&store, CV_ERR_IO);
  assert_int_equal(store.done, 1);
}

/* Commits on the thread are timed, too: so a disk that has become quick is detected. */
static void test_a_disk_is_quick_after_a_row_of_quick_commits(void **state) {
  struct store store;
  run_until_quick(&store);
  assert_true(cv_committer_is_quick(&store.committer));
  store.here = true;
  store.stall_ms = 12;
  assert_int_equal(cv_committer_run_here(&store.committer, NULL), CV_OK);
  assert_false(cv_committer_is_quick(&store.committer));
  store.stall_ms = 0;
  unsigned more = 0;
  for (; !cv_committer_is_quick(&store.committer) && more < COMMITS; more++) {
    assert_int_equal(cv_committer_run_here(&store.committer, NULL), CV_OK);
  }
  assert_in_range(more, 2, COMMITS - 1);
}

static void test_nothing_is_quick_before_it_was_seen_to_be(void **state) {
  const struct cv_committer committer = {.commit = commit};
  assert_false(cv_committer_is_quick(&committer));
}

static void test_a_commit_on_the_loop_gives_its_result_and_nothing_else(void **state) {
  struct store store = {.loop_thread = pthread_self(), .here = true, .err = CV_ERR_IO, .batch = {7}};
  store.committer = (struct cv_committer){.commit = commit, .done = done, .data = &store};
  struct cv_why why = {.text = ""};
  assert_int_equal(cv_committer_run_here(&store.committer, &why), CV_ERR_IO);
  assert_string_equal(why.text, "no room");
  assert_int_equal(store.sum, 7);
  assert_int_equal(store.done, 0);
  assert_false(cv_committer_is_busy(&store.committer));
}

/* For the metrics: commits of both threads in one histogram. */
static void test_every_commit_is_timed(void **state) {
  static const double bounds[] = {.01};
  struct store store;
  run(&store, CV_ERR_IO);
  assert_int_equal(cv_histogram_upto(&store.committer.took_s, 0), 1);
  store.here = true;
  store.err = CV_OK;
  store.stall_ms = 20;
  store.committer.took_s = (struct cv_histogram){.bound = bounds, .bounds = 1};
  assert_int_equal(cv_committer_run_here(&store.committer, NULL), CV_OK);
  assert_int_equal(cv_histogram_upto(&store.committer.took_s, 0), 0);
  assert_int_equal(cv_histogram_upto(&store.committer.took_s, 1), 1);
  assert_true(store.committer.took_s.sum >= .02);
}

/* So that others learn that the disk hangs. */
static void test_a_commit_on_the_thread_has_a_duration_while_it_runs(void **state) {
  uv_loop_t loop;
  assert_int_equal(uv_loop_init(&loop), 0);
  struct store store = {.loop_thread = pthread_self(), .stall_ms = 30, .done = COMMITS};
  store.committer = (struct cv_committer){.loop = &loop, .commit = commit, .done = done, .data = &store};
  assert_int_equal(cv_committer_busy_ms(&store.committer), 0);
  give(&store);
  const struct timespec wait = {.tv_nsec = 5 * 1000000L};
  (void)nanosleep(&wait, NULL);
  assert_true(cv_committer_busy_ms(&store.committer) >= 5);
  (void)uv_run(&loop, UV_RUN_DEFAULT);
  assert_int_equal(cv_committer_busy_ms(&store.committer), 0);
  assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_batch_is_stored_whole_one_at_a_time),
      cmocka_unit_test(test_a_failure_comes_back_with_its_reason),
      cmocka_unit_test(test_a_disk_is_quick_after_a_row_of_quick_commits),
      cmocka_unit_test(test_nothing_is_quick_before_it_was_seen_to_be),
      cmocka_unit_test(test_a_commit_on_the_loop_gives_its_result_and_nothing_else),
      cmocka_unit_test(test_every_commit_is_timed),
      cmocka_unit_test(test_a_commit_on_the_thread_has_a_duration_while_it_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
