/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/admin/httpd.h"
#include "common/admin/level.h"
#include "common/admin/path.h"
#include "common/base/text.h"

#define LOG_LEVEL "/log-level"

struct cv_admin {
  struct cv_httpd *httpd;
  struct cv_admin_ops ops;
  void *data;
  struct cv_handout handout;
  struct sockaddr_un address;
  dev_t device; /* identity of the socket's file, to remove only our own */
  ino_t inode;
};

/* --- requests --- */

static enum MHD_Result reply_text(struct MHD_Connection *connection, unsigned status, const char *text) {
  char line[512];
  int n = snprintf(line, sizeof(line), "%s\n", text);
  return cv_httpd_reply(connection, status, "text/plain; charset=utf-8", line, (size_t)n);
}

/* CV_OK is 200 "ok", or what `why` says besides; an error is 503 with its reason. */
static enum MHD_Result reply_state(struct MHD_Connection *connection, enum cv_err err, const struct cv_why *why) {
  return err == CV_OK ? reply_text(connection, MHD_HTTP_OK, why->text[0] == '\0' ? "ok" : why->text)
                      : reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, why->text);
}

static enum MHD_Result reply_health(struct cv_admin *admin, struct MHD_Connection *connection) {
  struct cv_why why = {{0}};
  enum cv_err err = admin->ops.health(admin->data, &why);
  return reply_state(connection, err, &why);
}

static enum MHD_Result reply_ready(struct cv_admin *admin, struct MHD_Connection *connection) {
  struct cv_why why = {{0}};
  enum cv_err err = admin->ops.ready(admin->data, &why);
  return reply_state(connection, err, &why);
}

static enum MHD_Result reply_active(struct cv_admin *admin, struct MHD_Connection *connection) {
  struct cv_why why = {{0}};
  enum cv_err err = admin->ops.active(admin->data, &why);
  return reply_state(connection, err, &why);
}

static enum MHD_Result reply_metrics(struct cv_admin *admin, struct MHD_Connection *connection) {
  struct cv_buf out = {0};
  admin->ops.metrics(admin->data, &out);
  enum MHD_Result result =
      cv_buf_ok(&out)
          ? cv_httpd_reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", out.data, out.len)
          : reply_text(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
  if (cv_buf_ok(&out)) {
    cv_buf_fini(&out);
  }
  return result;
}

static enum MHD_Result reply_seal(struct cv_admin *admin, struct MHD_Connection *connection) {
  struct cv_admin_line line = {.text = ""};
  admin->ops.seal(admin->data, &line);
  return reply_text(connection, MHD_HTTP_OK, line.text);
}

static enum MHD_Result reply_rewrap(struct cv_admin *admin, struct MHD_Connection *connection) {
  struct cv_admin_line line = {.text = ""};
  struct cv_why why = {{0}};
  return admin->ops.rewrap(admin->data, &line, &why) == CV_OK
             ? reply_text(connection, MHD_HTTP_OK, line.text)
             : reply_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE, why.text);
}

/* Every path of the endpoint but LOG_LEVEL, which has a body. `method` GET allows HEAD, too. `reply` NULL: the answer
 * is the copy (handout.h). */
static const struct route {
  const char *path, *method;
  enum MHD_Result (*reply)(struct cv_admin *admin, struct MHD_Connection *connection);
  bool seals;     /* only of a daemon with wrapped keys */
  bool stands_by; /* only of a daemon that may stand by */
} routes[] = {
    {"/health", MHD_HTTP_METHOD_GET, reply_health},
    {"/readyz", MHD_HTTP_METHOD_GET, reply_ready},
    {"/active", MHD_HTTP_METHOD_GET, reply_active, .stands_by = true},
    {"/metrics", MHD_HTTP_METHOD_GET, reply_metrics},
    {"/backup", MHD_HTTP_METHOD_POST, NULL},
    {"/seal", MHD_HTTP_METHOD_GET, reply_seal, .seals = true},
    {"/seal/rewrap", MHD_HTTP_METHOD_POST, reply_rewrap, .seals = true},
};

static bool has_route(const struct cv_admin *admin, const struct route *route) {
  return (!route->seals || admin->ops.seal != NULL) && (!route->stands_by || admin->ops.active != NULL);
}

static enum MHD_Result reply_unknown(const struct cv_admin *admin, struct MHD_Connection *connection) {
  const char *paths[CV_COUNT(routes) + 1];
  char list[256], text[320];
  size_t n = 0;
  for (size_t i = 0; i < CV_COUNT(routes); i++) {
    if (has_route(admin, &routes[i])) {
      paths[n++] = routes[i].path;
    }
  }
  paths[n++] = LOG_LEVEL;
  cv_text_either(paths, n, list, sizeof(list));
  (void)snprintf(text, sizeof(text), "unknown path; expected %s", list);
  return reply_text(connection, MHD_HTTP_NOT_FOUND, text);
}

static enum MHD_Result reply_wrong_method(struct MHD_Connection *connection, const char *expected) {
  char text[96];
  bool gets = strcmp(expected, MHD_HTTP_METHOD_GET) == 0;
  (void)snprintf(text, sizeof(text), "method not allowed; expected %s%s", expected, gets ? " or HEAD" : "");
  return reply_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED, text);
}

static bool has_method(const struct route *route, const char *method) {
  bool heads = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 && strcmp(route->method, MHD_HTTP_METHOD_GET) == 0;
  return heads || strcmp(method, route->method) == 0;
}

static enum MHD_Result on_request(void *data, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_n, void **request) {
  struct cv_admin *admin = data;
  /* A page from elsewhere whose name resolves to this machine (DNS rebinding) is sent with its own name here. */
  if (!cv_httpd_host_is_local(connection)) {
    return reply_text(connection, MHD_HTTP_FORBIDDEN, "wrong Host; expected localhost");
  }
  if (strcmp(url, LOG_LEVEL) == 0) {
    return cv_admin_level(connection, method, upload, upload_n, request);
  }
  for (size_t i = 0; i < CV_COUNT(routes); i++) {
    if (strcmp(url, routes[i].path) == 0 && has_route(admin, &routes[i])) {
      return !has_method(&routes[i], method) ? reply_wrong_method(connection, routes[i].method)
             : routes[i].reply != NULL
                 ? routes[i].reply(admin, connection)
                 : cv_handout_request(&admin->handout, connection, upload_n, request, admin->ops.backup, admin->data);
    }
  }
  enum MHD_Result result;
  bool reads = strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
  if (reads && admin->ops.page != NULL && admin->ops.page(admin->data, connection, url, request, &result)) {
    return result;
  }
  return reply_unknown(admin, connection);
}

/* Each part of the endpoint has its own objects for requests that it has begun. */
static void on_ended(void *data, struct MHD_Connection *connection, void **request,
                     enum MHD_RequestTerminationCode code) {
  struct cv_admin *admin = data;
  if (*request == &admin->handout) {
    cv_handout_ended(&admin->handout);
  } else if (admin->ops.ended != NULL) {
    admin->ops.ended(admin->data, request);
  }
}

void cv_admin_copied(struct cv_admin *admin, int fd, uint64_t bytes, const struct cv_why *why) {
  cv_handout_made(&admin->handout, fd, bytes, why);
}

/* --- the socket --- */

static enum cv_err fail_errno(struct cv_why *why, const char *path, const char *what) {
  return cv_fail(why, errno == EACCES ? CV_ERR_DENIED : CV_ERR_IO, "%s: %s: %s", path, what, strerror(errno));
}

/* Removes a stale socket: one on which no program listens. */
static enum cv_err remove_stale(const struct sockaddr_un *address, struct cv_why *why) {
  struct stat found;
  if (lstat(address->sun_path, &found) != 0) {
    return errno == ENOENT ? CV_OK : fail_errno(why, address->sun_path, "cannot stat");
  }
  if (!S_ISSOCK(found.st_mode)) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: exists and is not a socket", address->sun_path);
  }
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return fail_errno(why, address->sun_path, "cannot create a socket");
  }
  /* Tried, not guessed: a socket file alone does not tell whether its program still runs. */
  int error = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? 0 : errno;
  (void)close(fd);
  if (error == 0 || error == EAGAIN) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: another program listens on this socket", address->sun_path);
  }
  if (error != ECONNREFUSED && error != ENOENT) {
    errno = error;
    return fail_errno(why, address->sun_path, "cannot find out whether a program listens on this socket");
  }
  return unlink(address->sun_path) == 0 || errno == ENOENT ? CV_OK
                                                           : fail_errno(why, address->sun_path, "cannot remove");
}

/* The file inherits the socket's mode when it is bound, so that other users can never connect. */
static enum cv_err listen_at(const struct sockaddr_un *address, int *ret, struct cv_why *why) {
  CV_TRY(remove_stale(address, why));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return fail_errno(why, address->sun_path, "cannot create a socket");
  }
  if (fchmod(fd, 0600) != 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    enum cv_err err = fail_errno(why, address->sun_path, "cannot listen");
    (void)close(fd);
    return err;
  }
  *ret = fd;
  return CV_OK;
}

static void remove_own(const struct cv_admin *admin) {
  struct stat found;
  /* A successor may have put its own socket there already. */
  if (lstat(admin->address.sun_path, &found) == 0 && found.st_dev == admin->device && found.st_ino == admin->inode) {
    (void)unlink(admin->address.sun_path);
  }
}

static enum cv_err start(uv_loop_t *loop, struct cv_admin *admin, struct cv_why *why) {
  int fd = -1;
  struct stat found = {0};
  CV_TRY(listen_at(&admin->address, &fd, why));
  (void)lstat(admin->address.sun_path, &found);
  admin->device = found.st_dev;
  admin->inode = found.st_ino;
  const struct cv_httpd_config config = {
      .is_private = true, .handler = on_request, .completed = on_ended, .data = admin};
  enum cv_err err = cv_httpd_start(loop, fd, &config, &admin->httpd, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", admin->address.sun_path);
    remove_own(admin);
  }
  return err;
}

enum cv_err cv_admin_start(uv_loop_t *loop, const char *path, const struct cv_admin_ops *ops, void *data,
                           struct cv_admin **ret, struct cv_why *why) {
  struct cv_admin *admin = calloc(1, sizeof(*admin));
  if (admin == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: no memory", path);
  }
  *admin = (struct cv_admin){.ops = *ops, .data = data, .handout = {.fd = -1}};
  enum cv_err err = cv_admin_path(path, &admin->address, why);
  if (err == CV_OK) {
    err = start(loop, admin, why);
  }
  if (err != CV_OK) {
    free(admin);
    return err;
  }
  *ret = admin;
  return CV_OK;
}

void cv_admin_stop(struct cv_admin *admin) {
  if (admin == NULL) {
    return;
  }
  remove_own(admin);
  cv_handout_stop(&admin->handout);
  cv_httpd_stop(admin->httpd);
  free(admin);
}
