/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd on a libuv loop, without threads: for the admin socket and for the dashboard. */
#ifndef CV_ADMIN_HTTPD_H
#define CV_ADMIN_HTTPD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"

struct cv_httpd;

/*
 * Serves the connections of a listening, non-blocking socket; takes ownership of it, also on failure. At most
 * `connections` at a time; a connection idle for 30 s is closed. `ended` (NULL: none) is called when a request is over,
 * also if the connection broke.
 */
CV_MUST_USE enum cv_err cv_httpd_start(uv_loop_t *loop, int socket, unsigned connections,
                                       MHD_AccessHandlerCallback handler, MHD_RequestCompletedCallback ended,
                                       void *data, struct cv_httpd **ret, struct cv_why *why);
/* Resumes a suspended connection, outside of MHD's calls: without threads MHD does not notice by itself. */
void cv_httpd_resume(struct cv_httpd *httpd, struct MHD_Connection *connection);
/* Closes all connections; the loop frees the rest. NULL does nothing. */
void cv_httpd_stop(struct cv_httpd *httpd);

/* True if the request's Host is absent or names this machine (host.h). */
bool cv_httpd_host_is_local(struct MHD_Connection *connection);
/* Answers with a copy of the bytes. */
enum MHD_Result cv_httpd_reply(struct MHD_Connection *connection, unsigned status, const char *type, const void *bytes,
                               size_t n);

#endif
