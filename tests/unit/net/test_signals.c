/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <signal.h>

#include "common/base/err.h"

static int defaults; /* how often a signal got its default action */

/* In place of the C library's, for libuv as well. */
int sigaction(int number, const struct sigaction *action, struct sigaction *before) {
  int (*real)(int, const struct sigaction *, struct sigaction *);
  *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
  defaults += action != NULL && action->sa_handler == SIG_DFL;
  return real(number, action, before);
}

struct fixture {
  struct cv_signals signals;
  uv_loop_t loop;
  uv_idle_t raiser;
  int caught;
};

static void on_caught(void *data, int number) {
  struct fixture *fixture = data;
  fixture->caught = number;
  uv_close((uv_handle_t *)&fixture->raiser, NULL); /* the loop then ends */
}

static void on_idle(uv_idle_t *raiser) {
  (void)uv_idle_stop(raiser);
  assert_int_equal(raise(SIGTERM), 0);
}

/* Starts, catches a signal and stops, as a daemon does. */
static void catch_one(void) {
  struct fixture fixture = {.caught = 0};
  assert_int_equal(uv_loop_init(&fixture.loop), 0);
  cv_signals_start(&fixture.signals, &fixture.loop, on_caught, &fixture);
  assert_int_equal(uv_idle_init(&fixture.loop, &fixture.raiser), 0);
  assert_int_equal(uv_idle_start(&fixture.raiser, on_idle), 0);
  while (fixture.caught == 0) {
    (void)uv_run(&fixture.loop, UV_RUN_NOWAIT);
  }
  cv_signals_stop(&fixture.signals);
  assert_int_equal(uv_loop_close(&fixture.loop), 0);
  assert_int_equal(fixture.caught, SIGTERM);
}

/* A launcher that is killed while it has several threads may send several, and the last may come at any moment. */
static void no_signal_finds_the_default_action(void **state) {
  for (int i = 0; i < 2; i++) {
    catch_one();
    assert_int_equal(defaults, 0);
    assert_int_equal(raise(SIGTERM) + raise(SIGINT) + raise(SIGHUP) + raise(SIGUSR1), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_signal_finds_the_default_action),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
