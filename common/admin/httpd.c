/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/httpd.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "common/admin/guard.h"
#include "common/admin/host.h"
#include "common/base/clock.h"
#include "common/base/files.h"

enum {
  MEMORY_BYTES = 32 * 1024,
  LEAVING = 64, /* dropped connections that are not closed yet */
  LEAST_CONNECTIONS = 16,
  WRONG_MS = 1000,
  WRONG_MAX = 200
};

/* Above the networks of cv_ip_network(): no address of the internet begins with ffff. */
static const uint64_t PROXY = UINT64_MAX, UNNAMED = UINT64_MAX - 1, USER = UINT64_C(0xfffe) << 32;

#define TIMES \
  { [CV_GUEST_HEAD] = 5000, [CV_GUEST_BODY] = 5000, [CV_GUEST_ANSWER] = 30000, [CV_GUEST_KEPT] = 15000 }
static const struct cv_guard_limits PUBLIC = {.connections = 1024,
                                              .address = 256,
                                              .heads = 128,
                                              .most = 1024 + LEAVING,
                                              .ms = TIMES},
                                    PRIVATE = {.connections = 16, .address = 16, .heads = 8, .most = 24, .ms = TIMES};

/* A connection. */
struct visitor {
  struct cv_httpd *httpd;
  struct MHD_Connection *connection;
  struct cv_guest *guest;
  bool is_proxy, is_asking, is_suspended;
  bool was_wrong;          /* its request may be refused now */
  uint64_t wrong_until_ms; /* while it is in `wrong` */
  struct visitor *prev, *next;
};

struct cv_httpd {
  uv_poll_t poll;
  uv_timer_t timer;
  unsigned handles; /* not closed yet */
  struct MHD_Daemon *daemon;
  struct cv_httpd_config config;
  struct cv_guard_limits limits;
  struct cv_files files;
  struct cv_guard *guard;
  bool has_resumed;
  struct visitor *wrong; /* whose refusal waits, in the order of their times */
  unsigned wrong_n;
};

/* ---- the loop ---- */

static void run(struct cv_httpd *httpd);

static void on_ready(uv_poll_t *poll, int status, int events) {
  run(poll->data);
}

static void on_timer(uv_timer_t *timer) {
  run(timer->data);
}

static void end_wrong(struct visitor *visitor) {
  DL_DELETE(visitor->httpd->wrong, visitor);
  visitor->httpd->wrong_n--;
  visitor->was_wrong = true;
  cv_httpd_resume(visitor->connection);
}

/* Until something is due, which libmicrohttpd does not know; or at once, for what it has read and not worked on yet, or
 * what was resumed meanwhile. */
static void set_timer(struct cv_httpd *httpd, uint64_t now_ms) {
  MHD_UNSIGNED_LONG_LONG ms;
  uint64_t due_ms = cv_guard_due_ms(httpd->guard);
  if (httpd->wrong != NULL && httpd->wrong->wrong_until_ms < due_ms) {
    due_ms = httpd->wrong->wrong_until_ms;
  }
  if (MHD_get_timeout(httpd->daemon, &ms) == MHD_YES) {
    due_ms = now_ms + ms < due_ms ? now_ms + ms : due_ms;
  }
  due_ms = httpd->has_resumed ? now_ms : due_ms;
  if (due_ms == UINT64_MAX) {
    (void)uv_timer_stop(&httpd->timer);
  } else {
    (void)uv_timer_start(&httpd->timer, on_timer, cv_clock_sleep_ms(due_ms > now_ms ? due_ms - now_ms : 0), 0);
  }
}

static void run(struct cv_httpd *httpd) {
  uint64_t now_ms = cv_clock_mono_ms();
  cv_guard_expire(httpd->guard, now_ms);
  while (httpd->wrong != NULL && httpd->wrong->wrong_until_ms <= now_ms) {
    end_wrong(httpd->wrong);
  }
  httpd->has_resumed = false;
  (void)MHD_run(httpd->daemon);
  set_timer(httpd, now_ms);
}

/* ---- connections ---- */

static struct visitor *visitor_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static int descriptor_of(struct MHD_Connection *connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static void move(struct visitor *visitor, enum cv_guest_state to) {
  cv_guard_move(visitor->httpd->guard, visitor->guest, to, cv_clock_mono_ms());
}

/* libmicrohttpd then finds its end, and closes it. */
static void drop(void *whose) {
  const struct visitor *visitor = whose;
  (void)shutdown(descriptor_of(visitor->connection), SHUT_RDWR);
}

/* By which the connection counts: its address, or the user at the other end of a Unix socket. */
static uint64_t number_of(struct visitor *visitor) {
  const struct sockaddr *address =
      MHD_get_connection_info(visitor->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
  struct ucred user = {.uid = 0};
  socklen_t user_n = sizeof(user);
  struct cv_ip ip;
  if (!cv_ip_of(address, &ip)) {
    (void)getsockopt(descriptor_of(visitor->connection), SOL_SOCKET, SO_PEERCRED, &user, &user_n);
    return USER | user.uid;
  }
  visitor->is_proxy = cv_proxies_have(&visitor->httpd->config.proxies, &ip);
  return visitor->is_proxy ? PROXY : cv_ip_network(&ip);
}

static struct visitor *welcome(struct cv_httpd *httpd, struct MHD_Connection *connection) {
  struct visitor *visitor = calloc(1, sizeof(*visitor));
  if (visitor == NULL) {
    return NULL;
  }
  *visitor = (struct visitor){.httpd = httpd, .connection = connection};
  uint64_t number = number_of(visitor);
  if (cv_guard_enter(httpd->guard, number, visitor->is_proxy, visitor, cv_clock_mono_ms(), &visitor->guest) != CV_OK) {
    free(visitor);
    return NULL;
  }
  return visitor;
}

static void on_connection(void *data, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
  struct cv_httpd *httpd = data;
  struct visitor *visitor = *context;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    *context = visitor = welcome(httpd, connection);
    if (visitor == NULL) {
      (void)shutdown(descriptor_of(connection), SHUT_RDWR);
    }
  } else if (visitor != NULL) {
    cv_guard_leave(httpd->guard, visitor->guest);
    free(visitor);
    *context = NULL;
  }
}

/* ---- requests ---- */

/* Of a request's head. */
struct lines {
  const char *x_forwarded_for, *forwarded, *coding; /* the last of each */
  unsigned hosts, lengths, codings;
};

static enum MHD_Result take_line(void *data, enum MHD_ValueKind kind, const char *key, const char *value) {
  struct lines *lines = data;
  value = value == NULL ? "" : value;
  if (strcasecmp(key, "X-Forwarded-For") == 0) {
    lines->x_forwarded_for = value;
  } else if (strcasecmp(key, "Forwarded") == 0) {
    lines->forwarded = value;
  } else if (strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
    lines->coding = value;
    lines->codings++;
  } else if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
    lines->lengths++;
  } else if (strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0) {
    lines->hosts++;
  }
  return MHD_YES;
}

/* During a request a proxy's connection counts for who asks; all whose name is missing or wrong are one address. */
static void name(struct visitor *visitor, const struct lines *lines) {
  struct cv_ip ip;
  bool is_named = cv_forwarded_read(lines->x_forwarded_for, lines->forwarded, &ip);
  cv_guard_rename(visitor->httpd->guard, visitor->guest, is_named ? cv_ip_network(&ip) : UNNAMED, false);
}

/* What a proxy may read otherwise: where a request ends, or whom it is for. libmicrohttpd takes the first line of each,
 * and what comes after such a request could be taken for another one's. */
static bool is_ambiguous(const struct lines *lines) {
  return lines->hosts > 1 || lines->lengths + lines->codings > 1 ||
         (lines->codings == 1 && strcasecmp(lines->coding, "chunked") != 0);
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_n, void **request) {
  const struct cv_httpd *httpd = data;
  struct visitor *visitor = visitor_of(connection);
  if (visitor == NULL) {
    return MHD_NO;
  }
  static const char ambiguous[] =
      "ambiguous head; expected one Host, and one Content-Length or Transfer-Encoding: chunked\n";
  struct lines lines = {.hosts = 0};
  bool begins = !visitor->is_asking;
  if (begins) {
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, take_line, &lines);
  }
  if (begins && visitor->is_proxy) {
    name(visitor, &lines);
  }
  visitor->is_asking = true;
  enum MHD_Result result =
      is_ambiguous(&lines)
          ? cv_httpd_reply(connection, MHD_HTTP_BAD_REQUEST, "text/plain; charset=utf-8", ambiguous, strlen(ambiguous))
          : httpd->config.handler(httpd->config.data, connection, url, method, version, upload, upload_n, request);
  if (MHD_get_connection_info(connection, MHD_CONNECTION_INFO_HTTP_STATUS) != NULL) {
    move(visitor, CV_GUEST_ANSWER);
  } else if (!visitor->is_suspended && (begins || cv_guest_state(visitor->guest) == CV_GUEST_WAITS)) {
    move(visitor, CV_GUEST_BODY);
  }
  return result;
}

static void on_completed(void *data, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode code) {
  const struct cv_httpd *httpd = data;
  struct visitor *visitor = visitor_of(connection);
  if (httpd->config.completed != NULL) {
    httpd->config.completed(httpd->config.data, connection, request, code);
  }
  if (visitor != NULL) {
    visitor->is_asking = visitor->was_wrong = false;
    if (visitor->is_proxy) {
      cv_guard_rename(httpd->guard, visitor->guest, PROXY, true);
    }
    move(visitor, CV_GUEST_KEPT);
  }
}

void cv_httpd_suspend(struct MHD_Connection *connection) {
  struct visitor *visitor = visitor_of(connection);
  visitor->is_suspended = true;
  move(visitor, CV_GUEST_WAITS);
  MHD_suspend_connection(connection);
}

void cv_httpd_resume(struct MHD_Connection *connection) {
  struct visitor *visitor = visitor_of(connection);
  visitor->is_suspended = false;
  visitor->httpd->has_resumed = true;
  MHD_resume_connection(connection);
  /* Without a thread of its own libmicrohttpd does not notice; and it must not run inside the caller's work. */
  (void)uv_timer_start(&visitor->httpd->timer, on_timer, 0, 0);
}

void cv_httpd_goes_on(struct MHD_Connection *connection) {
  move(visitor_of(connection), CV_GUEST_ANSWER);
}

bool cv_httpd_may_refuse(struct MHD_Connection *connection, enum MHD_Result *ret) {
  struct visitor *visitor = visitor_of(connection);
  struct cv_httpd *httpd = visitor->httpd;
  if (visitor->was_wrong) {
    return true;
  }
  *ret = httpd->wrong_n < WRONG_MAX ? MHD_YES : MHD_NO;
  if (*ret == MHD_YES) {
    visitor->wrong_until_ms = cv_clock_mono_ms() + WRONG_MS;
    DL_APPEND(httpd->wrong, visitor);
    httpd->wrong_n++;
    cv_httpd_suspend(connection);
  }
  return false;
}

/* ---- life ---- */

static void free_httpd(struct cv_httpd *httpd) {
  cv_guard_free(httpd->guard);
  cv_files_release(&httpd->files);
  free(httpd);
}

static void on_closed(uv_handle_t *handle) {
  struct cv_httpd *httpd = handle->data;
  if (--httpd->handles == 0) {
    free_httpd(httpd);
  }
}

/* Lowers the number of connections to what the system permits. */
static enum cv_err allow_files(struct cv_httpd *httpd, struct cv_why *why) {
  struct cv_guard_limits *limits = &httpd->limits;
  httpd->files = cv_files_reserve(limits->most);
  if (httpd->files.granted < LEAST_CONNECTIONS + LEAVING) {
    cv_files_release(&httpd->files);
    return cv_fail(why, CV_ERR_LIMIT,
                   "an HTTP server needs %d open files, but the system leaves %u of %llu (ulimit -n)",
                   LEAST_CONNECTIONS + LEAVING, httpd->files.granted, (unsigned long long)httpd->files.most);
  }
  limits->most = httpd->files.granted;
  limits->connections = limits->most - LEAVING;
  return CV_OK;
}

static enum cv_err start_daemon(struct cv_httpd *httpd, int socket, struct cv_why *why) {
  if (cv_guard_new(&httpd->limits, drop, &httpd->guard) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "no memory for the HTTP server");
  }
  httpd->daemon =
      MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, httpd,
                       MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, httpd->limits.most,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_NOTIFY_COMPLETED,
                       on_completed, httpd, MHD_OPTION_NOTIFY_CONNECTION, on_connection, httpd, MHD_OPTION_END);
  return httpd->daemon != NULL ? CV_OK : cv_fail(why, CV_ERR_IO, "cannot start the HTTP server");
}

/* On failure the socket is closed. */
static enum cv_err start(struct cv_httpd *httpd, uv_loop_t *loop, int socket, struct cv_why *why) {
  enum cv_err err = start_daemon(httpd, socket, why);
  if (err != CV_OK) {
    (void)close(socket);
    return err;
  }
  /* One descriptor for all its connections: the loop waits for it, and no second thread runs. */
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);
  if (info == NULL || uv_poll_init(loop, &httpd->poll, info->epoll_fd) != 0) {
    MHD_stop_daemon(httpd->daemon);
    return cv_fail(why, CV_ERR_IO, "cannot poll the HTTP server");
  }
  return CV_OK;
}

enum cv_err cv_httpd_start(uv_loop_t *loop, int socket, const struct cv_httpd_config *config, struct cv_httpd **ret,
                           struct cv_why *why) {
  struct cv_httpd *httpd = calloc(1, sizeof(*httpd));
  if (httpd == NULL) {
    (void)close(socket);
    return cv_fail(why, CV_ERR_NOMEM, "no memory for the HTTP server");
  }
  httpd->config = *config;
  httpd->limits = config->is_private ? PRIVATE : PUBLIC;
  enum cv_err err = config->is_private ? CV_OK : allow_files(httpd, why);
  if (err != CV_OK) {
    (void)close(socket);
    free(httpd);
    return err;
  }
  err = start(httpd, loop, socket, why);
  if (err != CV_OK) {
    free_httpd(httpd);
    return err;
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
  while (httpd->wrong != NULL) {
    end_wrong(httpd->wrong);
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
