/* SPDX-License-Identifier: Apache-2.0 */
/* Under a test's clock the loop's timer only looks, every few milliseconds, whether the time has come. */
#include "common/net/timer.h"

#include "common/base/clock.h"

void cv_timer_init(uv_loop_t *loop, struct cv_timer *timer, void *data) {
  (void)uv_timer_init(loop, &timer->uv);
  timer->uv.data = data;
}

static struct cv_timer *timer_of(uv_timer_t *uv) {
  return (struct cv_timer *)uv; /* the first member */
}

static void on_due(uv_timer_t *uv) {
  struct cv_timer *timer = timer_of(uv);
  timer->due(timer);
}

static void on_look(uv_timer_t *uv) {
  struct cv_timer *timer = timer_of(uv);
  if (cv_clock_mono_ms() >= timer->due_ms) {
    (void)uv_timer_stop(uv);
    timer->due(timer);
  }
}

void cv_timer_start(struct cv_timer *timer, void (*due)(struct cv_timer *timer), uint64_t ms) {
  timer->due = due;
  if (cv_clock_is_followed()) {
    uint64_t look_ms = cv_clock_sleep_ms(UINT64_MAX);
    timer->due_ms = cv_clock_mono_ms() + ms;
    (void)uv_timer_start(&timer->uv, on_look, ms == 0 ? 0 : look_ms, look_ms);
  } else {
    (void)uv_timer_start(&timer->uv, on_due, ms, 0);
  }
}

void cv_timer_stop(struct cv_timer *timer) {
  (void)uv_timer_stop(&timer->uv);
}

void cv_timer_close(struct cv_timer *timer, uv_close_cb closed) {
  uv_close((uv_handle_t *)&timer->uv, closed);
}

uint64_t cv_timer_now_ms(const uv_loop_t *loop) {
  return cv_clock_is_followed() ? cv_clock_mono_ms() : uv_now(loop);
}
