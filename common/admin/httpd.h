/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd on a libuv loop, without threads: for the admin socket and for the page. */
#ifndef CV_ADMIN_HTTPD_H
#define CV_ADMIN_HTTPD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"

struct cv_httpd;

struct cv_httpd_config {
  unsigned connections; /* at a time */
  MHD_AccessHandlerCallback handler;
  MHD_RequestCompletedCallback completed; /* NULL: none */
  void *data;                             /* of both */
};

/*
 * Serves the connections of a listening, non-blocking socket; takes ownership of it, also on failure. A connection idle
 * for 30 s is closed, unless it is suspended.
 */
CV_MUST_USE enum cv_err cv_httpd_start(uv_loop_t *loop, int socket, const struct cv_httpd_config *config,
                                       struct cv_httpd **ret, struct cv_why *why);
/* Closes all connections, of which none may be suspended; the loop frees the rest. NULL does nothing. */
void cv_httpd_stop(struct cv_httpd *httpd);

/* Resumes a suspended connection, on the next turn of the loop. */
void cv_httpd_resume(struct MHD_Connection *connection);

/* True if the request's Host is absent or names this machine (host.h). */
bool cv_httpd_host_is_local(struct MHD_Connection *connection);
/* Answers with a copy of the bytes. */
enum MHD_Result cv_httpd_reply(struct MHD_Connection *connection, unsigned status, const char *type, const void *bytes,
                               size_t n);

#endif
