/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/signals.h"

#include <signal.h>
#include <stdbool.h>

#include "common/base/err.h"

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

static void on_signal(uv_signal_t *handle, int number) {
  const struct cv_signals *signals = handle->data;
  signals->caught(signals->data, number);
}

static void on_kept(uv_signal_t *handle, int number) {
}

/* libuv restores the default action with the last handle of a signal, and one more signal would then kill the process.
 * So each has a handle on a loop that nobody runs, until the process ends. */
static void keep_handled(void) {
  static uv_loop_t loop;
  static uv_signal_t kept[CV_COUNT(numbers)];
  static bool is_done;
  if (is_done || uv_loop_init(&loop) != 0) {
    return;
  }
  is_done = true;
  for (size_t i = 0; i < CV_COUNT(numbers); i++) {
    (void)uv_signal_init(&loop, &kept[i]);
    (void)uv_signal_start(&kept[i], on_kept, numbers[i]);
  }
}

void cv_signals_start(struct cv_signals *signals, uv_loop_t *loop, void (*caught)(void *data, int number), void *data) {
  keep_handled();
  signals->loop = loop;
  signals->caught = caught;
  signals->data = data;
  for (size_t i = 0; i < CV_COUNT(numbers); i++) {
    uv_signal_t *handle = &signals->handle[i];
    (void)uv_signal_init(loop, handle);
    handle->data = signals;
    (void)uv_signal_start(handle, on_signal, numbers[i]);
    /* Signals must not keep a loop running that has nothing else to do. */
    uv_unref((uv_handle_t *)handle);
  }
}

void cv_signals_stop(struct cv_signals *signals) {
  if (signals->loop == NULL) {
    return;
  }
  for (size_t i = 0; i < CV_COUNT(signals->handle); i++) {
    uv_close((uv_handle_t *)&signals->handle[i], NULL);
  }
  (void)uv_run(signals->loop, UV_RUN_DEFAULT);
  signals->loop = NULL;
}
