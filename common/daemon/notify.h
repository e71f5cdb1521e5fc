/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the service manager is told, by the protocol of sd_notify(3), without libsystemd: a datagram of lines NAME=VALUE
 * to the socket that NOTIFY_SOCKET names. There is one such socket for the process. Without one every call does
 * nothing.
 */
#ifndef CV_DAEMON_NOTIFY_H
#define CV_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

enum { CV_NOTIFY_START_MS = 60000 /* a step of a start takes less */ };

/*
 * Opens the socket; a socket that cannot be used is one warning in the log. Call before the sandbox. Takes
 * NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no other program inherits them.
 */
void cv_notify_open(void);
/* Time without cv_notify_alive() after which the manager restarts this process; 0: it does not watch. */
uint64_t cv_notify_watchdog_ms(void);

/* READY=1: the start, or a reload, is complete. */
void cv_notify_ready(void);
/* RELOADING=1; cv_notify_ready() follows. */
void cv_notify_reloading(void);
/* STOPPING=1: the process ends by itself within `most_ms`. */
void cv_notify_stopping(uint64_t most_ms);
/* EXTEND_TIMEOUT_USEC: a start goes on, and needs at most `more_ms` until the next call or the end of the start. */
void cv_notify_extend(uint64_t more_ms);
/* WATCHDOG=1. */
void cv_notify_alive(void);
/* STATUS: one line for a person. Nothing is sent if it is the last one again. */
void cv_notify_status(const char *text);

#endif
