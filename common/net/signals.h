/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM, SIGINT and SIGHUP of a daemon. They do not keep its loop going, and they stay caught until the very end: a
 * signal that comes a second time, while the daemon closes, must not kill it over an open database.
 */
#ifndef CV_NET_SIGNALS_H
#define CV_NET_SIGNALS_H

#include <uv.h>

struct cv_signals {
  /* private */
  uv_signal_t handle[3];
  uv_loop_t *loop; /* NULL before start */
  void (*caught)(void *data, int number);
  void *data;
};

/* `caught` is called from the loop. */
void cv_signals_start(struct cv_signals *signals, uv_loop_t *loop, void (*caught)(void *data, int number), void *data);
/*
 * The last thing a daemon does with its loop, which has nothing else left; from then on the three signals are ignored.
 * Nothing happens if it was never started.
 */
void cv_signals_stop(struct cv_signals *signals);

#endif
