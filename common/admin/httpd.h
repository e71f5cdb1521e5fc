/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd on a libuv loop, without threads: for the admin socket, the page and the form. A guard (guard.h) keeps
 * the server open to others while some connections are slow, silent or too many:
 *
 *   head of a request, and its body      5 s each, whatever arrives
 *   answer, or a piece of one            30 s to be read
 *   kept open without a further request  15 s
 *   wrong token                          answered after 1 s, 200 of them at a time; the connection of a further one is
 *                                        closed
 *   connections                          1,024; 16 of a private server
 *     of one address (user)              256; 16
 *     whose first head is not complete   128; 8
 *
 * If there are more, one makes way: the oldest of the address that has most. The address of a request that comes
 * through a reverse proxy is the one that the proxy names (forwarded.h). A request that waits for the server
 * (cv_httpd_suspend) has no limit here, and never makes way.
 */
#ifndef CV_ADMIN_HTTPD_H
#define CV_ADMIN_HTTPD_H

#include <microhttpd.h>
#include <stdbool.h>
#include <uv.h>

#include "common/admin/forwarded.h"
#include "common/base/err.h"

struct cv_httpd;

struct cv_httpd_config {
  bool is_private; /* only the owner of the socket's file can connect */
  struct cv_proxies proxies;
  MHD_AccessHandlerCallback handler;
  MHD_RequestCompletedCallback completed; /* NULL: none */
  void *data;                             /* of both */
};

/*
 * Serves the connections of a listening, non-blocking socket; takes ownership of it, also on failure. Raises the limit
 * of open files; if the system does not permit that, there are fewer connections. CV_ERR_LIMIT: fewer than 16.
 */
CV_MUST_USE enum cv_err cv_httpd_start(uv_loop_t *loop, int socket, const struct cv_httpd_config *config,
                                       struct cv_httpd **ret, struct cv_why *why);
/* Closes all connections, of which none may be suspended; the loop frees the rest. NULL does nothing. */
void cv_httpd_stop(struct cv_httpd *httpd);

/* Suspends a request: its handler, or the callback that makes its answer, is called again after cv_httpd_resume(). */
void cv_httpd_suspend(struct MHD_Connection *connection);
/* Resumes a suspended connection, on the next turn of the loop. */
void cv_httpd_resume(struct MHD_Connection *connection);
/* A further piece of the answer is read: the time for the next one begins. */
void cv_httpd_goes_on(struct MHD_Connection *connection);
/*
 * The request has a wrong token. True: refuse it now. False: the handler returns *ret, and is called again when the
 * request may be refused, if it is at all.
 */
bool cv_httpd_may_refuse(struct MHD_Connection *connection, enum MHD_Result *ret);

/* True if the request's Host is absent or names this machine (host.h). */
bool cv_httpd_host_is_local(struct MHD_Connection *connection);
/* Answers with a copy of the bytes. */
enum MHD_Result cv_httpd_reply(struct MHD_Connection *connection, unsigned status, const char *type, const void *bytes,
                               size_t n);

#endif
