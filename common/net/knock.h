/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A knock: whether a process serves at an address. It connects by plain TCP, says that nothing will follow, and waits
 * for the other side to end the connection, too, which a listener does at once.
 *
 * A standby, which is bound and does not listen, refuses. A connection alone proves nothing: the kernel of a broker
 * that stands still (SIGSTOP) accepts in its name. Only a process that runs ends it, so only this is an answer.
 */
#ifndef CV_NET_KNOCK_H
#define CV_NET_KNOCK_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/address.h"
#include "common/base/err.h"

struct cv_knock;
/*
 * Knocks at the hosts that the name stands for, one after the other, until one answers; `limit_ms` in all. `over` is
 * called once, from the loop, which frees the knock afterwards. CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_knock_start(uv_loop_t *loop, const struct cv_address *address, unsigned limit_ms,
                                       void (*over)(void *data, bool answered), void *data, struct cv_knock **ret);
/* `over` is not called any more. `knock` may be NULL. */
void cv_knock_stop(struct cv_knock *knock);

#endif
