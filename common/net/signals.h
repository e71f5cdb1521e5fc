/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SIGTERM, SIGINT, SIGHUP and SIGUSR1 of a daemon. The handlers do not keep the loop running. From the first start on
 * these signals never have their default action again, so that a second signal during shutdown, however late, does not
 * kill the daemon with an open database.
 */
#ifndef CV_NET_SIGNALS_H
#define CV_NET_SIGNALS_H

#include <uv.h>

struct cv_signals {
  /* private */
  uv_signal_t handle[4];
  uv_loop_t *loop; /* NULL before start */
  void (*caught)(void *data, int number);
  void *data;
};

/* `caught` is called from the loop. */
void cv_signals_start(struct cv_signals *signals, uv_loop_t *loop, void (*caught)(void *data, int number), void *data);
/*
 * Call last, when the loop has no other handles; from then on the four signals are ignored. Does nothing if
 * cv_signals_start() was not called.
 */
void cv_signals_stop(struct cv_signals *signals);

#endif
