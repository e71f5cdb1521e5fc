/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/signals.h"

#include <signal.h>

#include "common/base/err.h"

static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

static void on_signal(uv_signal_t *handle, int number) {
  const struct cv_signals *signals = handle->data;
  signals->caught(signals->data, number);
}

void cv_signals_start(struct cv_signals *signals, uv_loop_t *loop, void (*caught)(void *data, int number), void *data) {
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
    uv_close((uv_handle_t *)&signals->handle[i], NULL); /* restores the default action; hence the next call */
    (void)signal(numbers[i], SIG_IGN);
  }
  (void)uv_run(signals->loop, UV_RUN_DEFAULT);
  signals->loop = NULL;
}
