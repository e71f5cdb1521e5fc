/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin endpoint of a daemon: HTTP on a Unix socket that only its owner may open (mode 0600).
 *   GET /health   200 "ok" or another line, or 503 and one line with the reason: does the daemon do its work now?
 *   GET /readyz   the same answers: may peers be sent to it?
 *   GET /active   the same answers: does it serve, or stand by? Of a daemon that may stand by
 *   GET /metrics  Prometheus text
 *   GET, PUT and POST /log-level (level.h)
 *   POST /backup  a copy of the daemon's database (handout.h), or 503 or 409 and one line with the reason
 *   GET /seal     the name of the master key that wraps the stored keys
 *   POST /seal/rewrap  reads the key file again, and begins to wrap by its current key, whose name is the answer;
 *                 GET /seal has that name when it is done. 503 and one line if the file does not fit
 *   further paths of a daemon that has a page
 * To a daemon without wrapped keys the two of /seal are unknown paths. A request whose Host is not this machine gets
 * 403, an unknown path 404, another method 405.
 */
#ifndef CV_ADMIN_H
#define CV_ADMIN_H

#include <microhttpd.h>
#include <stdbool.h>
#include <uv.h>

#include "common/admin/handout.h"
#include "common/base/buf.h"
#include "common/base/err.h"

struct cv_admin;

struct cv_admin_line {
  char text[256];
};

struct cv_admin_ops {
  /* All return CV_OK, or an error with the reason in `why`. */
  enum cv_err (*health)(void *data, struct cv_why *why);
  enum cv_err (*ready)(void *data, struct cv_why *why);
  enum cv_err (*active)(void *data, struct cv_why *why); /* NULL: the daemon never stands by */
  /* Appends metrics (metrics.h). */
  void (*metrics)(void *data, struct cv_buf *out);
  /* Begins a copy of the database; cv_admin_copied() follows, never from inside this call and not after
   * cv_admin_stop(). */
  cv_handout_begin_fn *backup;
  /* Both write a line's text into `ret`; NULL: the daemon has no wrapped keys. */
  void (*seal)(void *data, struct cv_admin_line *ret);
  enum cv_err (*rewrap)(void *data, struct cv_admin_line *ret, struct cv_why *why);
  /* Answers the paths of the page (common/page/page.h), if the daemon has one; NULL: it has none. */
  bool (*page)(void *data, struct MHD_Connection *connection, const char *url, void **request, enum MHD_Result *ret);
  void (*ended)(void *data, void **request); /* a request is over, of the page or of another path; NULL: as for page */
};

/*
 * Listens at `path`. Replaces a stale socket on which no program listens; CV_ERR_EXISTS if a program answers there or
 * the path is not a socket. `ops` is copied.
 */
CV_MUST_USE enum cv_err cv_admin_start(uv_loop_t *loop, const char *path, const struct cv_admin_ops *ops, void *data,
                                       struct cv_admin **ret, struct cv_why *why);
/* The copy that `backup` began is made: takes its file `fd`; or `fd` is -1 and `why` has the reason. */
void cv_admin_copied(struct cv_admin *admin, int fd, uint64_t bytes, const struct cv_why *why);
/* Removes the socket; the loop frees the rest. NULL does nothing. */
void cv_admin_stop(struct cv_admin *admin);

#endif
