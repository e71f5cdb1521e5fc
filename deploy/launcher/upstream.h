/* SPDX-License-Identifier: Apache-2.0 */
/* A GET over the admin socket of a party, on the loop: the whole answer, or its lines as they come. */
#ifndef CV_LAUNCHER_UPSTREAM_H
#define CV_LAUNCHER_UPSTREAM_H

#include <stddef.h>
#include <uv.h>

#include "common/base/err.h"

struct cv_upstream;

struct cv_upstream_ops {
  /* One line, without its end; NULL: the answer is wanted whole. */
  void (*line)(void *data, const char *line);
  /* The end of the answer, once, unless it was cancelled. `status` is 0 if there was none; `body` is terminated, and
   * valid during the call. */
  void (*done)(void *data, int status, const char *body, size_t n);
};

/* The loop frees it after `done`. */
CV_MUST_USE enum cv_err cv_upstream_get(uv_loop_t *loop, const char *socket, const char *url,
                                        const struct cv_upstream_ops *ops, void *data, struct cv_upstream **ret,
                                        struct cv_why *why);
/* Nothing is called any more. NULL does nothing. */
void cv_upstream_cancel(struct cv_upstream *upstream);

#endif
