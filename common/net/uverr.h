/* SPDX-License-Identifier: Apache-2.0 */
/* Maps libuv's errors. */
#ifndef CV_NET_UVERR_H
#define CV_NET_UVERR_H

#include "common/base/err.h"

/* The error code for a negative status. */
enum cv_err cv_uv_err(int status);
/* Writes "<what>: <libuv's message>" and returns the error code. */
CV_MUST_USE enum cv_err cv_uv_fail(struct cv_why *why, int status, const char *fmt, ...) CV_PRINTF(3, 4);

#endif
