/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's window into a daemon: HTTP on a Unix socket that only its owner may open (mode 0600).
 *   GET /health   200 "ok", or 503 and one line that says why not
 *   GET /metrics  Prometheus text
 * A request whose Host is another machine's gets 403, another path 404, another method 405.
 */
#ifndef CV_ADMIN_H
#define CV_ADMIN_H

#include <uv.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/refusals.h"

struct cv_admin;

struct cv_admin_ops {
  /* CV_OK, or the reason in `why`. */
  enum cv_err (*health)(void *data, struct cv_why *why);
  /* Appends text, best by cv_admin_metric(). */
  void (*metrics)(void *data, struct cv_buf *out);
};

/*
 * Listens at `path`. A socket that was left there by a program that is gone is replaced; one that answers, or anything
 * that is no socket, is CV_ERR_EXISTS. `ops` is copied.
 */
CV_MUST_USE enum cv_err cv_admin_start(uv_loop_t *loop, const char *path, const struct cv_admin_ops *ops, void *data,
                                       struct cv_admin **ret, struct cv_why *why);
/* Removes the socket; the loop frees what it still uses. NULL does nothing. */
void cv_admin_stop(struct cv_admin *admin);

/*
 * One metric: its help and type lines and its value. `type` is "counter" or "gauge"; `name` may carry labels
 * (`x{arm="3"}`), the lines above it are then left out if `help` is NULL, for the second and later ones of a family.
 */
void cv_admin_metric(struct cv_buf *out, const char *name, const char *help, const char *type, double value);
/* crowdveil_refused_total, one line a reason. */
void cv_admin_refusals(struct cv_buf *out, const struct cv_refusals *refusals);

#endif
