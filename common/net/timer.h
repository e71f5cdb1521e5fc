/* SPDX-License-Identifier: Apache-2.0 */
/* A timer of a limit, of a loop: as uv_timer_t, but by the monotonic clock (base/clock.h), which may be a test's. */
#ifndef CV_NET_TIMER_H
#define CV_NET_TIMER_H

#include <stdint.h>
#include <uv.h>

struct cv_timer {
  uv_timer_t uv; /* its `data` and the closing of it are the owner's */
  void (*due)(struct cv_timer *timer);
  uint64_t due_ms;
};

void cv_timer_init(uv_loop_t *loop, struct cv_timer *timer, void *data);
/* Calls `due` once, in `ms`. Starting it again forgets the earlier start. */
void cv_timer_start(struct cv_timer *timer, void (*due)(struct cv_timer *timer), uint64_t ms);
void cv_timer_stop(struct cv_timer *timer);
void cv_timer_close(struct cv_timer *timer, uv_close_cb closed);
/* The same clock, as of the present turn of the loop. */
uint64_t cv_timer_now_ms(const uv_loop_t *loop);

#endif
