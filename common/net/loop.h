/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop and the threads of libuv, where limits of descriptors, processes or memory may be too small for them:
 * libuv itself ends the process there, without a word.
 */
#ifndef CV_NET_LOOP_H
#define CV_NET_LOOP_H

#include <uv.h>

#include "common/base/err.h"

/* Opens the loop. CV_ERR_LIMIT: there are too few descriptors left for it and what it begins with. */
CV_MUST_USE enum cv_err cv_loop_open(uv_loop_t *loop, struct cv_why *why);
/*
 * Starts the threads on which names are looked up and commits are stored, if they do not run yet. To be called once no
 * right is given up any more (threads would keep it), and before anything is queued for them; the loop has to run, or
 * to be run until it has no more to do. CV_ERR_LIMIT: they cannot be started.
 */
CV_MUST_USE enum cv_err cv_loop_start_threads(uv_loop_t *loop, struct cv_why *why);

#endif
