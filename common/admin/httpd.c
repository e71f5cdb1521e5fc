/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/httpd.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/admin/host.h"

enum { IDLE_S = 30, MEMORY_BYTES = 32 * 1024 };

struct cv_httpd {
  uv_poll_t poll;
  uv_timer_t timer;
  unsigned handles; /* not closed yet */
  struct MHD_Daemon *daemon;
};

static void run(struct cv_httpd *httpd);

static void on_ready(uv_poll_t *poll, int status, int events) {
  run(poll->data);
}

static void on_timer(uv_timer_t *timer) {
  run(timer->data);
}

static void run(struct cv_httpd *httpd) {
  (void)MHD_run(httpd->daemon);
  /* libmicrohttpd's own timeout drives its idle connections; the loop's timer follows it. */
  MHD_UNSIGNED_LONG_LONG ms;
  if (MHD_get_timeout(httpd->daemon, &ms) == MHD_YES) {
    (void)uv_timer_start(&httpd->timer, on_timer, ms, 0);
  } else {
    (void)uv_timer_stop(&httpd->timer);
  }
}

static void on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
  *context = data;
}

void cv_httpd_resume(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  struct cv_httpd *httpd = info->socket_context;
  MHD_resume_connection(connection);
  /* Without a thread of its own libmicrohttpd does not notice; and it must not run inside the caller's work. */
  (void)uv_timer_start(&httpd->timer, on_timer, 0, 0);
}

static void on_closed(uv_handle_t *handle) {
  struct cv_httpd *httpd = handle->data;
  if (--httpd->handles == 0) {
    free(httpd);
  }
}

enum cv_err cv_httpd_start(uv_loop_t *loop, int socket, const struct cv_httpd_config *config, struct cv_httpd **ret,
                           struct cv_why *why) {
  struct cv_httpd *httpd = calloc(1, sizeof(*httpd));
  if (httpd == NULL) {
    (void)close(socket);
    return cv_fail(why, CV_ERR_NOMEM, "no memory for the HTTP server");
  }
  httpd->daemon = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, config->handler, config->data, MHD_OPTION_LISTEN_SOCKET,
      socket, MHD_OPTION_CONNECTION_LIMIT, config->connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_NOTIFY_COMPLETED, config->completed,
      config->data, MHD_OPTION_NOTIFY_CONNECTION, on_connection, httpd, MHD_OPTION_END);
  if (httpd->daemon == NULL) {
    (void)close(socket);
    free(httpd);
    return cv_fail(why, CV_ERR_IO, "cannot start the HTTP server");
  }
  /* One descriptor for all its connections: the loop waits for it, and no second thread runs. */
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);
  if (info == NULL || uv_poll_init(loop, &httpd->poll, info->epoll_fd) != 0) {
    MHD_stop_daemon(httpd->daemon);
    free(httpd);
    return cv_fail(why, CV_ERR_IO, "cannot poll the HTTP server");
  }
  (void)uv_timer_init(loop, &httpd->timer);
  httpd->poll.data = httpd->timer.data = httpd;
  httpd->handles = 2;
  (void)uv_poll_start(&httpd->poll, UV_READABLE, on_ready);
  *ret = httpd;
  return CV_OK;
}

void cv_httpd_stop(struct cv_httpd *httpd) {
  if (httpd == NULL) {
    return;
  }
  uv_close((uv_handle_t *)&httpd->poll, on_closed);
  uv_close((uv_handle_t *)&httpd->timer, on_closed);
  MHD_stop_daemon(httpd->daemon); /* after uv_close(), since the loop polls its descriptor */
}

bool cv_httpd_host_is_local(struct MHD_Connection *connection) {
  const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  return host == NULL || cv_host_is_local(host);
}

enum MHD_Result cv_httpd_reply(struct MHD_Connection *connection, unsigned status, const char *type, const void *bytes,
                               size_t n) {
  /* MHD_RESPMEM_MUST_COPY copies the bytes and does not write them, although the parameter is not const. */
  union {
    const void *in;
    void *out;
  } body = {.in = bytes};
  struct MHD_Response *response = MHD_create_response_from_buffer(n, body.out, MHD_RESPMEM_MUST_COPY);
  if (response == NULL) {
    return MHD_NO;
  }
  enum MHD_Result result = MHD_NO;
  if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
      MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES &&
      MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES) {
    result = MHD_queue_response(connection, status, response);
  }
  MHD_destroy_response(response);
  return result;
}
