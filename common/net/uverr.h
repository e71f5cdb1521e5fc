/* SPDX-License-Identifier: Apache-2.0 */
/* libuv's errors as ours. */
#ifndef CV_NET_UVERR_H
#define CV_NET_UVERR_H

#include "common/base/err.h"

/* The kind of a negative status. */
enum cv_err cv_uv_err(int status);
/* "<what>: <libuv's words>" and the kind. */
CV_MUST_USE enum cv_err cv_uv_fail(struct cv_why *why, int status, const char *fmt, ...) CV_PRINTF(3, 4);

#endif
