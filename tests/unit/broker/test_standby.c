/* SPDX-License-Identifier: Apache-2.0 */
/* When a broker that shares its database steps, loads, serves, beats and rests, and what it says of that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* The above before cmocka.h. */
#include <cmocka.h>

#include "broker/standby.h"

enum { POLL_MS = 200, BEAT_MS = 1000, FAILED_LOAD_MS = 30000, LINES = 8 };

/* The database, and what became of each call. */
struct cv_remote {
  struct cv_remote_view view;
  bool has_term, free; /* the next step takes the term */
  const char *fails;   /* the name of the function that fails */
  char called[200];
};

static struct cv_remote *only;

struct shell {
  struct cv_remote remote;
  struct cv_standby standby;
  bool is_storing, borrowed; /* the storage is not free; the work waits */
  bool has_loaded, serves, failed;
  char line[LINES][600], health_at[LINES][600], status_at[LINES][600];
  size_t lines;
};

static enum cv_err call(struct cv_remote *remote, const char *name, struct cv_why *why) {
  size_t n = strlen(remote->called);
  (void)snprintf(remote->called + n, sizeof(remote->called) - n, "%s%s", n == 0 ? "" : " ", name);
  return remote->fails != NULL && strcmp(remote->fails, name) == 0
             ? cv_fail(why, CV_ERR_IO, "the server: %s fails; expected it not to", name)
             : CV_OK;
}

static enum cv_err open_remote(const struct cv_remote_config *config, struct cv_remote **ret, struct cv_why *why) {
  *ret = only;
  return call(only, "open", why);
}

static enum cv_err step(struct cv_remote *remote, bool *ret_taken, unsigned *ret_rest_ms, struct cv_why *why) {
  *ret_rest_ms = POLL_MS;
  CV_TRY(call(remote, "step", why));
  *ret_taken = remote->has_term = remote->free;
  if (remote->has_term) {
    remote->view.term++;
    (void)snprintf(remote->view.holder, sizeof(remote->view.holder), "main at here:1");
  }
  return CV_OK;
}

static enum cv_err store(struct cv_remote *remote, struct cv_broker_store **ret, struct cv_why *why) {
  return call(remote, "store", why);
}

static enum cv_err beat(struct cv_remote *remote, struct cv_why *why) {
  return call(remote, "beat", why);
}

static void leave(struct cv_remote *remote) {
  remote->has_term = false;
  (void)!call(remote, "leave", NULL);
}

static void view(const struct cv_remote *remote, struct cv_remote_view *ret) {
  *ret = remote->view;
}

static void close_remote(struct cv_remote *remote) {
  (void)!call(remote, "close", NULL);
}

static const struct cv_remote_ops remote_ops = {.open = open_remote,
                                                .step = step,
                                                .store = store,
                                                .beat = beat,
                                                .leave = leave,
                                                .view = view,
                                                .close = close_remote};

static bool borrow(void *party) {
  struct shell *shell = party;
  assert_false(shell->borrowed);
  shell->borrowed = !shell->is_storing;
  return shell->borrowed;
}

static enum cv_err load(void *party, struct cv_broker_store *given, struct cv_why *why) {
  struct shell *shell = party;
  assert_false(shell->has_loaded);
  assert_true(shell->remote.has_term);
  shell->has_loaded = true;
  return call(&shell->remote, "load", why);
}

static void unload(void *party) {
  struct shell *shell = party;
  shell->has_loaded = false;
  (void)!call(&shell->remote, "unload", NULL);
}

static void active(void *party) {
  struct shell *shell = party;
  assert_true(shell->has_loaded);
  shell->serves = true;
}

static void note(void *party, const struct cv_note *given) {
  struct shell *shell = party;
  struct cv_why why;
  assert_true(shell->lines < LINES);
  (void)snprintf(shell->line[shell->lines], sizeof(shell->line[0]), "%d %s", (int)given->level, given->text);
  (void)!cv_standby_health(&shell->standby, &why);
  (void)snprintf(shell->health_at[shell->lines], sizeof(shell->health_at[0]), "%s", why.text);
  cv_standby_status(&shell->standby, shell->status_at[shell->lines], sizeof(shell->status_at[0]));
  assert_false(shell->serves);
  shell->lines++;
}

static void fail_shell(void *party, const char *what, const struct cv_why *why) {
  struct shell *shell = party;
  assert_string_equal(what, "the term is over");
  shell->failed = true;
}

static void shell_open(struct shell *shell) {
  *shell = (struct shell){.remote = {.has_term = false}};
  only = &shell->remote;
  shell->standby = (struct cv_standby){.ops = &remote_ops,
                                       .borrow = borrow,
                                       .load = load,
                                       .unload = unload,
                                       .active = active,
                                       .note = note,
                                       .fail = fail_shell,
                                       .party = shell};
  assert_int_equal(cv_standby_open(&shell->standby, NULL), CV_OK);
  shell->remote.called[0] = '\0';
}

/* A tick; what it has borrowed ends at the same moment. The calls meanwhile are `called`; "": it is not time. */
static void at(struct shell *shell, uint64_t now_ms, const char *called) {
  struct cv_why why = {.text = ""};
  shell->remote.called[0] = '\0';
  cv_standby_tick(&shell->standby, now_ms);
  if (shell->borrowed) {
    enum cv_err err = cv_standby_work(&shell->standby, &why);
    shell->borrowed = false;
    cv_standby_worked(&shell->standby, err, &why, now_ms);
  }
  assert_string_equal(shell->remote.called, called);
}

static void assert_health(const struct shell *shell, enum cv_err expected, const char *begin) {
  struct cv_why why;
  assert_int_equal(cv_standby_health(&shell->standby, &why), expected);
  assert_memory_equal(why.text, begin, strlen(begin));
}

static void assert_gauge(const struct shell *shell, const char *line) {
  struct cv_buf out = {.data = NULL};
  cv_standby_metrics(&shell->standby, &out);
  cv_buf_put_u8(&out, 0);
  assert_non_null(strstr((const char *)out.data, line));
  cv_buf_fini(&out);
}

static void test_it_asks_again_and_again_until_it_has_the_term(void **state) {
  struct shell shell;
  shell_open(&shell);
  at(&shell, 1000, "step");
  at(&shell, 1199, "");
  at(&shell, 1200, "step");
  assert_health(&shell, CV_OK, "ok role=standby term=0 ");
  shell.remote.free = true;
  at(&shell, 1400, "step store load beat");
  assert_true(shell.serves);
  assert_health(&shell, CV_OK, "ok role=active term=1 ");
  assert_gauge(&shell, "\ncrowdveil_broker_active 1\n");
  assert_int_equal(shell.lines, 1);
  assert_string_equal(shell.line[0], "2 active: term 1, after commit 0");
  cv_standby_leave(&shell.standby);
  cv_standby_close(&shell.standby);
  cv_standby_close(&shell.standby);
  assert_string_equal(shell.remote.called, "step store load beat leave close");
}

static void test_the_state_is_first_and_then_the_line_and_then_health(void **state) {
  struct shell shell;
  shell_open(&shell);
  shell.remote.fails = "step";
  at(&shell, 1, "step");
  assert_memory_equal(shell.health_at[0], "ok role=standby", 15);
  assert_health(&shell, CV_ERR_STATE, "role=standby: the server: step fails");
  shell.remote.fails = NULL;
  shell.remote.free = true;
  at(&shell, 500, "step store load beat");
  assert_memory_equal(shell.status_at[1], "role=active term=1 ", 19);
  assert_string_equal(shell.health_at[1], "role=active, but not serving yet");
  assert_health(&shell, CV_OK, "ok role=active");
}

static void test_nothing_begins_while_the_storage_works(void **state) {
  struct shell shell;
  shell_open(&shell);
  shell.is_storing = true;
  at(&shell, 1, "");
  shell.is_storing = false;
  cv_standby_tick(&shell.standby, 2);
  assert_true(shell.borrowed);
  cv_standby_tick(&shell.standby, 5000); /* borrow() would object */
  at(&shell, 6000, "step");
  at(&shell, 6199, "");
  at(&shell, 6200, "step");
}

static void test_an_idle_broker_beats(void **state) {
  struct shell shell;
  shell_open(&shell);
  shell.remote.free = true;
  at(&shell, 100, "step store load beat");
  at(&shell, 100 + BEAT_MS - 1, "");
  at(&shell, 100 + BEAT_MS, "beat");
  at(&shell, 101 + BEAT_MS, "");
  cv_standby_stored(&shell.standby, 1500);
  at(&shell, 1499 + BEAT_MS, "");
  at(&shell, 1500 + BEAT_MS, "beat");
  assert_false(shell.failed);
  shell.remote.fails = "beat";
  at(&shell, 1500 + 2 * BEAT_MS, "beat");
  assert_true(shell.failed);
}

static void test_whatever_cannot_be_loaded_is_given_back(void **state) {
  static const struct {
    const char *fails, *called;
  } cases[] = {{"store", "step store leave unload"},
               {"load", "step store load leave unload"},
               {"beat", "step store load beat leave unload"}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    struct shell shell;
    char begin[60];
    shell_open(&shell);
    shell.remote.free = true;
    shell.remote.fails = cases[i].fails;
    at(&shell, 100, cases[i].called);
    assert_false(shell.serves || shell.failed || shell.has_loaded || shell.remote.has_term);
    (void)snprintf(begin, sizeof(begin), "role=standby: the server: %s fails", cases[i].fails);
    assert_health(&shell, CV_ERR_STATE, begin);
    assert_gauge(&shell, "\ncrowdveil_broker_active 0\n");
    at(&shell, 99 + FAILED_LOAD_MS, "");
    assert_health(&shell, CV_ERR_STATE, begin);
    at(&shell, 100 + FAILED_LOAD_MS, cases[i].called);
    assert_int_equal(shell.lines, 1);
    shell.remote.fails = NULL;
    at(&shell, 100 + 2 * FAILED_LOAD_MS, "step store load beat");
    assert_true(shell.serves);
    assert_health(&shell, CV_OK, "ok role=active term=3 ");
  }
}

static void test_each_is_said_once_until_there_is_another(void **state) {
  static const char *const expected[] = {"1 standing by: the server: step fails; expected it not to",
                                         "2 standing by: term 7 of main at there:1 is active",
                                         "1 standing by: the server: step fails; expected it not to",
                                         "2 standing by: term 8 of main at there:1 is active"};
  struct shell shell;
  shell_open(&shell);
  for (uint64_t now_ms = 1000; now_ms < 9000; now_ms += 500) {
    shell.remote.fails = now_ms < 3000 || (now_ms >= 5000 && now_ms < 7000) ? "step" : NULL;
    shell.remote.view.term = now_ms < 7000 ? 7 : 8;
    (void)snprintf(shell.remote.view.holder, sizeof(shell.remote.view.holder), "main at there:1");
    at(&shell, now_ms, "step");
    assert_health(&shell, shell.remote.fails == NULL ? CV_OK : CV_ERR_STATE,
                  shell.remote.fails == NULL ? "ok role=standby" : "role=standby: the server: step fails");
  }
  assert_int_equal(shell.lines, CV_COUNT(expected));
  for (size_t i = 0; i < CV_COUNT(expected); i++) {
    assert_string_equal(shell.line[i], expected[i]);
  }
}

static void test_without_a_shared_database_nothing_happens(void **state) {
  struct cv_standby standby = {.ops = NULL};
  cv_standby_tick(&standby, 1000);
  cv_standby_leave(&standby);
  cv_standby_close(&standby);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_asks_again_and_again_until_it_has_the_term),
      cmocka_unit_test(test_the_state_is_first_and_then_the_line_and_then_health),
      cmocka_unit_test(test_nothing_begins_while_the_storage_works),
      cmocka_unit_test(test_an_idle_broker_beats),
      cmocka_unit_test(test_whatever_cannot_be_loaded_is_given_back),
      cmocka_unit_test(test_each_is_said_once_until_there_is_another),
      cmocka_unit_test(test_without_a_shared_database_nothing_happens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
