/* SPDX-License-Identifier: Apache-2.0 */
/* Brokers that share a PostgreSQL database: one has the term, its commits are fenced, and anchors find other histories.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/both/recovery.h"
#include "broker/store/postgres_state.h"
#include "broker/store/term.h"
#include "common/base/clock.h"
#include "tests/unit/broker/one.h"

static void check_over(struct one *one, const char *line) {
  struct cv_why why = {.text = ""};
  uint64_t before = server_number("SELECT last_commit FROM meta");
  enum cv_err err = try_commit(one, &why);
  if (err == CV_OK || strstr(why.text, line) == NULL) {
    fail_msg("error %d: \"%s\" has no \"%s\"", err, why.text, line);
  }
  assert_int_equal(server_number("SELECT last_commit FROM meta"), before);
}

/* ---- copies of the whole database, as a backup and a restore make them ---- */

static const char *const tables[] = {"meta",  "term",     "campaign", "plan",  "release",    "ledger",
                                     "ended", "recovery", "journal",  "chunk", "wrapped_key"};

static void each_table(const char *format) {
  for (size_t i = 0; i < CV_COUNT(tables); i++) {
    char sql[400] = "", *at = sql;
    for (const char *from = format; *from != '\0'; from++) { /* each % is the table */
      at += *from == '%' ? snprintf(at, 40, "%s", tables[i]) : snprintf(at, 2, "%c", *from);
    }
    server_run(sql);
  }
}

static void save(void) {
  server_run("CREATE SCHEMA saved");
  each_table("CREATE TABLE saved.% AS TABLE crowdveil.%");
}

static void restore(void) {
  each_table("TRUNCATE crowdveil.%; INSERT INTO crowdveil.% TABLE saved.%");
}

/* ---- one is active ---- */

static void test_one_broker_has_the_term(void **state) {
  struct fixture *fixture = *state;
  struct cv_remote_view view;
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  step(&fixture->b, false, NULL);
  commit(&fixture->a);
  step(&fixture->b, false, NULL);
  cv_postgres.view(fixture->b.remote, &view);
  assert_false(view.is_active);
  assert_int_equal(view.term, 1);
  assert_int_equal(view.commit, 1);
  assert_string_equal(view.holder, "b at anchor-a");
}

static void test_the_next_broker_has_the_next_term(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  commit(&fixture->a);
  step(&fixture->b, false, NULL); /* builds its anchor */
  cv_postgres.leave(fixture->a.remote);
  server_await_no_holder();
  step(&fixture->b, true, NULL);
  assert_int_equal(fixture->b.commit, 2);
  commit(&fixture->b);
  assert_int_equal(server_number("SELECT term FROM meta"), 2);
  assert_int_equal(server_number("SELECT commit_before FROM term WHERE number = 2"), 2);
  assert_int_equal(server_number("SELECT last_commit FROM meta"), 3);
}

/* Whatever a broker believes, it commits nothing in another's term. */
static void test_a_commit_is_fenced(void **state) {
  static const struct {
    const char *sql, *line;
  } cases[] = {
      {"UPDATE crowdveil.meta SET term = term + 1", "term 1 is over"},
      {"UPDATE crowdveil.meta SET last_commit = last_commit + 1", "term 1 is over"},
      {"UPDATE crowdveil.meta SET last_commit = last_commit - 1", "term 1 is over"},
      {"UPDATE crowdveil.meta SET disputed = 'by a test'", "its history is disputed"},
      {"SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_database d ON d.oid = database"
       " WHERE locktype = 'advisory' AND datname = current_database()",
       "terminating connection due to administrator command"},
      {"SELECT pg_sleep(2.5)", "terminating connection due to idle-session timeout"},
  };
  struct fixture *fixture = *state;
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    start(fixture, &fixture->a, "anchor-a");
    step(&fixture->a, true, NULL);
    commit(&fixture->a);
    server_run(cases[i].sql);
    check_over(&fixture->a, cases[i].line);
    (void)tear_down(state);
    (void)set_up(state);
  }
}

/* The fence holds while the successor's commit is under way, too: it reads the row as it is after that. */
static void test_a_fence_that_waits_sees_what_it_waited_for(void **state) {
  struct fixture *fixture = *state;
  struct cv_why why;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  struct cv_pg *other = server_open_at(server_owner());
  assert_int_equal(cv_pg_script(other, "BEGIN; UPDATE crowdveil.meta SET term = term + 1", &why), CV_OK);
  /* Commits half a second later, while the fence waits for the row. */
  assert_int_equal(cv_pg_queue(other, "SELECT pg_sleep(.5)", NULL, NULL, &why), CV_OK);
  assert_int_equal(cv_pg_queue(other, "COMMIT", NULL, NULL, &why), CV_OK);
  pid_t child = fork();
  if (child == 0) {
    _exit(cv_pg_wait(other, &why) == CV_OK ? 0 : 1);
  }
  assert_true(child > 0);
  struct cv_broker_batch batch = {.commit = 1};
  enum cv_err err = cv_broker_store_commit(fixture->a.store, &batch, &why);
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(err, CV_ERR_STATE);
  assert_int_equal(server_number("SELECT last_commit FROM meta"), 0);
  cv_pg_close(other);
}

static void test_a_beat_finds_out_that_the_term_is_over(void **state) {
  struct fixture *fixture = *state;
  struct cv_why why;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  assert_int_equal(cv_postgres.beat(fixture->a.remote, &why), CV_OK);
  assert_int_equal(server_number("SELECT last_commit FROM meta"), 0);
  server_run("UPDATE crowdveil.meta SET term = 7");
  assert_int_equal(cv_postgres.beat(fixture->a.remote, &why), CV_ERR_STATE);
  assert_non_null(strstr(why.text, "term 1 is over"));
}

/* Asks the session of a broker, whatever the broker believes. */
static void ask(struct one *one, const char *sql, bool works) {
  struct cv_why why;
  if ((cv_pg_script(one->remote->pg, sql, &why) == CV_OK) != works) {
    fail_msg("%s: %s", sql, works ? why.text : "it works");
  }
}

/* It has let the lock go, and keeps its session, which nobody ends: only the fence is left. */
static void test_a_session_that_outlives_its_term_commits_nothing(void **state) {
  struct fixture *fixture = *state;
  struct cv_why why;
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  commit(&fixture->a);
  step(&fixture->b, false, NULL);
  ask(&fixture->a, "SET idle_session_timeout = 0; SELECT pg_advisory_unlock_all()", true);
  step(&fixture->b, true, NULL);
  check_over(&fixture->a, "term 1 is over");
  commit(&fixture->b);
  ask(&fixture->a, "ROLLBACK", true);
  /* on what is there, too, and with all that is stored of the next term but its number */
  fixture->a.remote->term.mark.commit = fixture->b.commit;
  fixture->a.remote->term.mark.hash = fixture->b.remote->term.mark.hash;
  assert_int_equal(cv_postgres.beat(fixture->a.remote, &why), CV_ERR_STATE);
  assert_non_null(strstr(why.text, "term 1 is over"));
  ask(&fixture->a, "ROLLBACK", true);
  ask(&fixture->a, "INSERT INTO crowdveil.term SELECT * FROM crowdveil.term WHERE number = 2", false);
  commit(&fixture->b);
  assert_int_equal(server_number("SELECT term FROM meta"), 2);
  assert_int_equal(server_number("SELECT last_commit FROM meta"), 4);
  assert_int_equal(server_number("SELECT count(*) FROM term"), 2);
}

/* A transaction that has begun in the old term and has passed the fence already ends with the session that holds it. */
static void test_a_commit_that_was_under_way_ends_before_the_next_term(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  commit(&fixture->a);
  step(&fixture->b, false, NULL);
  ask(&fixture->a,
      "SET idle_session_timeout = 0; SET idle_in_transaction_session_timeout = 0;"
      "BEGIN; UPDATE crowdveil.meta SET last_commit = 3",
      true);
  uint64_t until_ms = cv_clock_mono_ms() + 20000;
  bool taken = false;
  while (!taken && cv_clock_mono_ms() < until_ms) {
    unsigned rest_ms;
    struct cv_why why;
    (void)cv_postgres.step(fixture->b.remote, &taken, &rest_ms, &why);
    server_run("SELECT pg_sleep(.2)");
  }
  assert_true(taken);
  attend(&fixture->b);
  assert_int_equal(fixture->b.commit, 2);
  commit(&fixture->b);
  ask(&fixture->a, "COMMIT", false);
  assert_int_equal(server_number("SELECT last_commit FROM meta"), 3);
  assert_int_equal(server_number("SELECT term FROM meta"), 2);
}

/* ---- anchors ---- */

static void test_a_standby_follows_one_commit_behind(void **state) {
  struct fixture *fixture = *state;
  struct cv_remote_view view;
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  for (uint64_t i = 1; i <= 5; i++) {
    commit(&fixture->a);
    step(&fixture->b, false, NULL);
    cv_postgres.view(fixture->b.remote, &view);
    assert_int_equal(view.has_anchor, i >= 2);
    assert_int_equal(view.anchor_commit, i >= 2 ? i - 1 : 0);
  }
}

static void test_a_broker_without_an_anchor_does_not_take_what_others_made(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  stop_one(&fixture->a);
  server_await_no_holder();
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->b, false, "this broker has no anchor");
  assert_int_equal(server_number("SELECT count(*) FROM meta WHERE disputed IS NOT NULL"), 0);
}

static void test_an_older_database_is_refused_by_everybody(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  commit(&fixture->a);
  save();
  commit(&fixture->a);
  start(fixture, &fixture->b, "anchor-b");
  stop_one(&fixture->a);
  server_await_no_holder();
  restore();
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, false, "the database is older than the anchor");
  assert_int_equal(server_number("SELECT count(*) FROM meta WHERE disputed IS NOT NULL"), 1);
  step(&fixture->a, false, "the database is older than the anchor");
}

/* Two histories from one copy: a larger number proves nothing. */
static void test_another_history_does_not_pass_by_its_numbers(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  commit(&fixture->a);
  step(&fixture->b, false, NULL);
  save();
  cv_postgres.leave(fixture->a.remote);
  stop_one(&fixture->a);
  server_await_no_holder();
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL); /* term 2 of the first history */
  commit(&fixture->a);
  stop_one(&fixture->a);
  server_await_no_holder();
  restore();
  step(&fixture->b, true, NULL); /* term 2 of the second */
  for (int i = 0; i < 5; i++) {
    commit(&fixture->b);
  }
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, false, "of another history");
  check_over(&fixture->b, "its history is disputed");
}

static void test_the_anchor_of_another_database_is_refused_here_alone(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  commit(&fixture->a);
  stop_one(&fixture->a);
  server_await_no_holder();
  server_reset();
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->b, true, NULL);
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, false, "the anchor is of another database");
  commit(&fixture->b);
}

/* ---- what does not fit ---- */

static void test_another_brokers_database_is_refused(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  fixture->b.remote = open_one(fixture, "anchor-b", "c");
  step(&fixture->b, false, "the database of broker b; this one is c");
}

static void test_another_key_is_refused(void **state) {
  struct fixture *fixture = *state;
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  cv_ring_fini(&fixture->ring);
  assert_int_equal(cv_ring_renew(&fixture->ring, 0), CV_OK);
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->b, false, "its keys are wrapped by seal key");
}

static void test_tables_that_do_not_fit_are_refused(void **state) {
  static const struct {
    const char *sql, *line;
  } cases[] = {
      {"DROP SCHEMA crowdveil CASCADE", "no tables; expected --migrate"},
      {"UPDATE crowdveil.version SET schema = 2", "tables of version 2.2; expected 1.2"},
      {"UPDATE crowdveil.version SET image = 7", "tables of version 1.7; expected 1.2"},
      {"UPDATE crowdveil.version SET image = 1",
       "tables of version 1.1, of a Crowdveil before 0.3.0, whose files are not read; drop the schema crowdveil"},
  };
  struct fixture *fixture = *state;
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    server_reset();
    server_run("SET client_min_messages = error");
    server_run(cases[i].sql);
    start(fixture, &fixture->a, "anchor-a");
    step(&fixture->a, false, cases[i].line);
    stop_one(&fixture->a);
  }
}

static void test_rows_of_the_history_that_were_changed_are_noticed(void **state) {
  static const struct {
    const char *sql, *line;
  } cases[] = {
      {"UPDATE crowdveil.meta SET tokens = tokens + 1", "crowdveil.meta is not as it was stored"},
      {"UPDATE crowdveil.meta SET last_hash = sha256(last_hash)", "crowdveil.meta is not as it was stored"},
      {"UPDATE crowdveil.term SET commit_before = 1", "crowdveil.term is not as it was stored"},
      {"UPDATE crowdveil.term SET timeline = 9", "crowdveil.term is not as it was stored"},
      {"UPDATE crowdveil.term SET id = sha256(id)", "crowdveil.term is not as it was stored"},
      {"UPDATE crowdveil.wrapped_key SET wrapped = sha256(wrapped)", "wrapped_key, campaign 0"},
      {"UPDATE crowdveil.wrapped_key SET use = 9 WHERE use = 2", "no key of campaign 0, use 2"},
  };
  struct fixture *fixture = *state;
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    start(fixture, &fixture->a, "anchor-a");
    step(&fixture->a, true, NULL);
    commit(&fixture->a);
    stop_one(&fixture->a);
    server_await_no_holder();
    server_run(cases[i].sql);
    start(fixture, &fixture->a, "anchor-a");
    step(&fixture->a, false, cases[i].line);
    (void)tear_down(state);
    (void)set_up(state);
  }
}

/* ---- recovery ---- */

/* An operator's recovery of a core without campaigns: a row with what was taken in, and the anchor. */
static enum cv_err recover(struct fixture *fixture, const char *anchor, const char *other, bool lost,
                           struct cv_store_marks *marks, struct cv_why *why) {
  const char *const further[] = {folder_file(&fixture->folder, other == NULL ? anchor : other)};
  const struct cv_remote_work work = {
      .task = CV_REMOTE_RECOVER, .lost = lost, .anchor = further, .anchors = other == NULL ? 0 : 1};
  struct cv_remote *remote = open_one(fixture, anchor, "b");
  struct cv_broker_store *store = NULL;
  enum cv_err err = cv_postgres.work(remote, &work, marks, why);
  if (err == CV_OK && marks->takens > 0) {
    struct cv_recovery recovery = {.anchored = marks->anchor.commit, .takens = marks->takens};
    struct cv_broker_batch batch = {.commit = marks->anchor.commit + 1000, .totals = marks->anchor.totals};
    memcpy(recovery.taken, marks->taken, sizeof(recovery.taken));
    assert_int_equal(cv_postgres.store(remote, &store, why), CV_OK);
    size_t at = batch.bytes.len;
    cv_recovery_put(&recovery, &batch.bytes);
    struct cv_op op = {.kind = CV_OP_RECOVERY,
                       .number = server_number("SELECT count(*) FROM recovery") + 1,
                       .at = at,
                       .n = batch.bytes.len - at};
    batch.op = &op;
    batch.ops = 1;
    cv_broker_store_leap(store, batch.commit);
    err = cv_broker_store_commit(store, &batch, why);
    cv_buf_fini(&batch.bytes);
  }
  cv_broker_store_close(store);
  cv_postgres.close(remote);
  server_await_no_holder();
  return err;
}

/* Two brokers at commits 5 and 4 of the first term; then the database is put back to commit 2. */
static void restored(struct fixture *fixture) {
  start(fixture, &fixture->a, "anchor-a");
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->a, true, NULL);
  for (int i = 0; i < 5; i++) {
    commit(&fixture->a);
    if (i == 1) {
      save();
    }
  }
  step(&fixture->b, false, NULL);
  stop_one(&fixture->a);
  stop_one(&fixture->b);
  server_await_no_holder();
  restore();
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->b, false, "the database is older than the anchor");
  stop_one(&fixture->b);
}

static void test_a_recovery_takes_in_all_anchors(void **state) {
  struct fixture *fixture = *state;
  struct cv_store_marks marks;
  struct cv_why why;
  restored(fixture);
  assert_int_equal(recover(fixture, "anchor-b", "anchor-a", false, &marks, &why), CV_OK);
  assert_true(marks.is_anchored && marks.is_same);
  assert_int_equal(marks.takens, 1); /* of one term */
  assert_int_equal(marks.taken[0].commit, 5);
  assert_int_equal(marks.anchor.commit, 5);
  assert_int_equal(marks.anchor.totals.tokens, 5); /* the larger ones */
  assert_int_equal(server_number("SELECT count(*) FROM meta WHERE disputed IS NOT NULL"), 0);
  assert_int_equal(server_number("SELECT term FROM meta"), 2);
  /* The broker whose anchor was taken in goes on, and the next time its anchor is of this history. */
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
  assert_int_equal(fixture->a.commit, 1005);
  commit(&fixture->a);
  stop_one(&fixture->a);
  server_await_no_holder();
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->b, true, NULL);
  assert_int_equal(recover(fixture, "anchor-b", NULL, false, &marks, &why), CV_ERR_STATE);
  assert_non_null(strstr(why.text, "a broker is active; expected it to be stopped first"));
}

static void test_a_recovery_without_the_larger_anchor_does_not_accept_it(void **state) {
  struct fixture *fixture = *state;
  struct cv_store_marks marks;
  struct cv_why why;
  restored(fixture);
  assert_int_equal(recover(fixture, "anchor-b", NULL, false, &marks, &why), CV_OK);
  assert_int_equal(marks.taken[0].commit, 4);
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, false, "the database is older than the anchor");
  stop_one(&fixture->a);
  /* Nor is the dispute settled by others' anchors. */
  assert_int_equal(recover(fixture, "anchor-b", NULL, false, &marks, &why), CV_ERR_DAMAGED);
  assert_non_null(strstr(why.text, "expected the anchor of that broker, too"));
  /* What it counted may have happened beside what the first recovery charged: all that was promised counts. */
  assert_int_equal(recover(fixture, "anchor-b", "anchor-a", true, &marks, &why), CV_OK);
  assert_false(marks.is_same);
  start(fixture, &fixture->a, "anchor-a");
  step(&fixture->a, true, NULL);
}

/* Before the recovery is stored nothing has changed that the next one needs. */
static void test_a_recovery_that_stops_half_way_can_be_repeated(void **state) {
  struct fixture *fixture = *state;
  struct cv_store_marks marks;
  struct cv_why why;
  restored(fixture);
  for (int i = 0; i < 2; i++) {
    const struct cv_remote_work work = {.task = CV_REMOTE_RECOVER};
    struct cv_remote *remote = open_one(fixture, "anchor-b", "b");
    assert_int_equal(cv_postgres.work(remote, &work, &marks, &why), CV_OK);
    assert_true(marks.is_same);
    assert_int_equal(marks.takens, 1);
    cv_postgres.close(remote);
    server_await_no_holder();
  }
  assert_int_equal(server_number("SELECT count(*) FROM meta WHERE disputed IS NOT NULL"), 1);
  start(fixture, &fixture->b, "anchor-b");
  step(&fixture->b, false, "the database is older than the anchor");
  stop_one(&fixture->b);
  assert_int_equal(recover(fixture, "anchor-b", "anchor-a", false, &marks, &why), CV_OK);
  assert_true(marks.is_same);
}

static const char *nowhere(void *data) {
  return "a server";
}

static const struct cv_term_ops no_ops = {.where = nowhere};

/* A database at commit 5 of its only term, and an anchor of a commit of it. */
static void weighed_make(struct cv_term *term, struct cv_anchor_mark *anchor, uint64_t commit) {
  struct cv_lineage_term item = {.number = 1, .id = {1}};
  *term = (struct cv_term){.ops = &no_ops, .mark = {.commit = 5, .term = 1, .term_id = {1}}};
  assert_int_equal(cv_lineage_add(&term->lineage, &item), CV_OK);
  *anchor = term->mark;
  anchor->commit = commit;
}

static void test_of_another_server_only_the_last_anchor_says_that_nothing_is_missing(void **state) {
  for (uint64_t commit = 4; commit <= 6; commit++) {
    struct cv_term term;
    struct cv_anchor_mark anchor;
    struct cv_store_marks marks;
    struct cv_why why;
    weighed_make(&term, &anchor, commit);
    assert_int_equal(cv_term_weigh(&term, &anchor, 1, false, false, &marks, &why), CV_OK);
    enum cv_err err = cv_term_weigh(&term, &anchor, 1, true, false, &marks, &why);
    assert_int_equal(err, commit == 4 ? CV_ERR_DAMAGED : CV_OK);
    assert_int_equal(cv_term_weigh(&term, &anchor, 1, true, true, &marks, &why), CV_OK);
    assert_int_equal(marks.is_anchored, commit > 4); /* accepted: nothing bounds what is missing */
    assert_int_equal(marks.takens, commit > 5);
    cv_lineage_fini(&term.lineage);
  }
}

static void test_promises_of_other_histories_are_added(void **state) {
  struct cv_term term;
  struct cv_anchor_mark anchor[4];
  struct cv_store_marks marks;
  struct cv_why why;
  weighed_make(&term, &anchor[0], 7);
  for (size_t i = 1; i < CV_COUNT(anchor); i++) { /* two of one term, and one of another */
    anchor[i] = anchor[0];
    anchor[i].term = 8 + i / 3;
    anchor[i].term_id[0] = (uint8_t)(8 + i / 3);
    anchor[i].commit = 10 + i;
  }
  for (size_t i = 0; i < CV_COUNT(anchor); i++) {
    anchor[i].totals.promised_micro = i + 1;
  }
  assert_int_equal(cv_term_weigh(&term, anchor, 1, false, false, &marks, &why), CV_OK);
  assert_true(marks.is_same && marks.anchor.totals.promised_micro == 1);
  assert_int_equal(cv_term_weigh(&term, anchor, CV_COUNT(anchor), false, true, &marks, &why), CV_OK);
  assert_false(marks.is_same);
  assert_int_equal(marks.anchor.totals.promised_micro, 1 + 3 + 4);
  assert_int_equal(marks.takens, 3);
  assert_int_equal(marks.anchor.commit, 13);
  cv_lineage_fini(&term.lineage);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
      TEST(test_one_broker_has_the_term),
      TEST(test_the_next_broker_has_the_next_term),
      TEST(test_a_commit_is_fenced),
      TEST(test_a_fence_that_waits_sees_what_it_waited_for),
      TEST(test_a_session_that_outlives_its_term_commits_nothing),
      TEST(test_a_commit_that_was_under_way_ends_before_the_next_term),
      TEST(test_a_beat_finds_out_that_the_term_is_over),
      TEST(test_a_standby_follows_one_commit_behind),
      TEST(test_a_broker_without_an_anchor_does_not_take_what_others_made),
      TEST(test_an_older_database_is_refused_by_everybody),
      TEST(test_another_history_does_not_pass_by_its_numbers),
      TEST(test_the_anchor_of_another_database_is_refused_here_alone),
      TEST(test_another_brokers_database_is_refused),
      TEST(test_another_key_is_refused),
      TEST(test_tables_that_do_not_fit_are_refused),
      TEST(test_rows_of_the_history_that_were_changed_are_noticed),
      TEST(test_a_recovery_takes_in_all_anchors),
      TEST(test_a_recovery_without_the_larger_anchor_does_not_accept_it),
      TEST(test_a_recovery_that_stops_half_way_can_be_repeated),
      TEST(test_of_another_server_only_the_last_anchor_says_that_nothing_is_missing),
      TEST(test_promises_of_other_histories_are_added),
  };
  return STORED_RUN("postgres", tests);
}
