/* SPDX-License-Identifier: Apache-2.0 */
/* The admin socket, queried as by a program outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/admin/admin.h"
#include "common/admin/metrics.h"

struct fixture {
  uv_loop_t loop;
  char folder[64];
  char path[96];
  struct cv_admin *admin;
  bool ill, drains;
};

static enum cv_err health(void *data, struct cv_why *why) {
  struct fixture *fixture = data;
  return fixture->ill ? cv_fail(why, CV_ERR_STATE, "the third-party is not connected") : CV_OK;
}

static enum cv_err ready(void *data, struct cv_why *why) {
  struct fixture *fixture = data;
  return fixture->drains ? cv_fail(why, CV_ERR_STATE, "draining") : CV_OK;
}

static void metrics(void *data, struct cv_buf *out) {
  cv_metric_counter(out, "crowdveil_tokens_total", "Tokens accepted.", 12345678901);
}

static const struct cv_admin_ops OPS = {.health = health, .ready = ready, .metrics = metrics};

static void start(struct fixture *fixture) {
  struct cv_why why;
  if (cv_admin_start(&fixture->loop, fixture->path, &OPS, fixture, &fixture->admin, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static int setup(void **state) {
  struct fixture *fixture = calloc(1, sizeof(*fixture));
  if (fixture == NULL || uv_loop_init(&fixture->loop) != 0) {
    return -1;
  }
  (void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/crowdveil-admin-XXXXXX");
  if (mkdtemp(fixture->folder) == NULL) {
    return -1;
  }
  (void)snprintf(fixture->path, sizeof(fixture->path), "%s/admin.sock", fixture->folder);
  start(fixture);
  *state = fixture;
  return 0;
}

static int teardown(void **state) {
  struct fixture *fixture = *state;
  cv_admin_stop(fixture->admin);
  (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
  int status = uv_loop_close(&fixture->loop);
  (void)unlink(fixture->path);
  status |= rmdir(fixture->folder);
  free(fixture);
  return status;
}

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  return fd;
}

/* Sends one request and runs the loop until the connection ends. */
static void ask(struct fixture *fixture, const char *request, char *answer, size_t size) {
  int fd = connect_to(fixture->path);
  assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
  size_t used = 0;
  for (;;) {
    ssize_t n = recv(fd, answer + used, size - 1 - used, MSG_DONTWAIT);
    if (n == 0) {
      break;
    }
    if (n > 0) {
      used += (size_t)n;
    } else {
      (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
  }
  answer[used] = '\0';
  (void)close(fd);
}

static void expect(struct fixture *fixture, const char *request, const char *status, const char *body) {
  char answer[4096];
  char line[64];
  ask(fixture, request, answer, sizeof(answer));
  (void)snprintf(line, sizeof(line), "HTTP/1.1 %s ", status);
  const char *blank = strstr(answer, "\r\n\r\n");
  if (strncmp(answer, line, strlen(line)) != 0 || blank == NULL || strcmp(blank + 4, body) != 0) {
    fail_msg("%s\n%s", request, answer);
  }
}

#define END "Connection: close\r\n\r\n"

static void test_health(void **state) {
  struct fixture *fixture = *state;
  expect(fixture, "GET /health HTTP/1.1\r\nHost: localhost\r\n" END, "200", "ok\n");
  fixture->ill = true;
  expect(fixture, "GET /health HTTP/1.1\r\nHost: localhost\r\n" END, "503", "the third-party is not connected\n");
}

/* Its own answer: a broker without its third-party is not healthy, but takes tokens and campaigns. */
static void test_ready(void **state) {
  struct fixture *fixture = *state;
  fixture->ill = true;
  expect(fixture, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n" END, "200", "ok\n");
  fixture->drains = true;
  expect(fixture, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n" END, "503", "draining\n");
}

static void test_metrics(void **state) {
  expect(*state, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n" END, "200",
         "# HELP crowdveil_tokens_total Tokens accepted.\n"
         "# TYPE crowdveil_tokens_total counter\n"
         "crowdveil_tokens_total 12345678901\n");
}

static void test_refusals(void **state) {
  static const char *const refused = "wrong Host; expected localhost\n";
  expect(*state, "GET /health HTTP/1.1\r\nHost: evil.example\r\n" END, "403", refused);
  expect(*state, "GET /health HTTP/1.1\r\nHost: localhost.evil.example\r\n" END, "403", refused);
  expect(*state, "GET /health HTTP/1.1\r\nHost: 127.0.0.1.evil.example:80\r\n" END, "403", refused);
  expect(*state, "GET /health HTTP/1.1\r\nHost: localhost:80.evil.example\r\n" END, "403", refused);
  expect(*state, "GET /health HTTP/1.1\r\nHost: LOCALHOST:9000\r\n" END, "200", "ok\n");
  expect(*state, "GET /health HTTP/1.1\r\nHost: [::1]:9000\r\n" END, "200", "ok\n");
  expect(*state, "GET / HTTP/1.1\r\nHost: localhost\r\n" END, "404",
         "unknown path; expected /health, /readyz, /metrics, /backup or /log-level\n");
  expect(*state, "DELETE /health HTTP/1.1\r\nHost: localhost\r\n" END, "405",
         "method not allowed; expected GET or HEAD\n");
}

static void test_socket_is_private(void **state) {
  struct fixture *fixture = *state;
  struct stat found;
  assert_int_equal(lstat(fixture->path, &found), 0);
  assert_true(S_ISSOCK(found.st_mode));
  assert_int_equal(found.st_mode & 07777, 0600);
}

static void test_what_is_there_already(void **state) {
  struct fixture *fixture = *state;
  struct cv_admin *other;
  struct cv_why why;
  /* A socket in use is kept. */
  assert_int_equal(cv_admin_start(&fixture->loop, fixture->path, &OPS, fixture, &other, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "another program listens on this socket"));
  /* A stale socket is replaced. */
  cv_admin_stop(fixture->admin);
  fixture->admin = NULL;
  assert_int_equal(access(fixture->path, F_OK), -1);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", fixture->path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  (void)close(fd);
  start(fixture);
  expect(fixture, "GET /health HTTP/1.1\r\nHost: localhost\r\n" END, "200", "ok\n");
  /* A regular file is kept. */
  cv_admin_stop(fixture->admin);
  fixture->admin = NULL;
  FILE *file = fopen(fixture->path, "w");
  assert_non_null(file);
  (void)fclose(file);
  assert_int_equal(cv_admin_start(&fixture->loop, fixture->path, &OPS, fixture, &other, &why), CV_ERR_EXISTS);
  assert_non_null(strstr(why.text, "exists and is not a socket"));
  assert_int_equal(access(fixture->path, F_OK), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_health, setup, teardown),
      cmocka_unit_test_setup_teardown(test_ready, setup, teardown),
      cmocka_unit_test_setup_teardown(test_metrics, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
      cmocka_unit_test_setup_teardown(test_socket_is_private, setup, teardown),
      cmocka_unit_test_setup_teardown(test_what_is_there_already, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
