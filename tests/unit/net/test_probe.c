/* SPDX-License-Identifier: Apache-2.0 */
/* --probe with servers that are not our daemons: silent, rude, talkative. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/admin/path.h"
#include "common/admin/probe.h"
#include "common/base/clock.h"

enum { SOON_MS = 200, LONG_MS = 20000 };

static char folder[64], path[96];

static int setup(void **state) {
  (void)snprintf(folder, sizeof(folder), "/tmp/crowdveil-probe-XXXXXX");
  if (mkdtemp(folder) == NULL) {
    return -1;
  }
  (void)snprintf(path, sizeof(path), "%s/admin.sock", folder);
  return 0;
}

static int teardown(void **state) {
  (void)unlink(path);
  return rmdir(folder);
}

static int listen_there(int backlog) {
  struct sockaddr_un address;
  assert_int_equal(cv_admin_path(path, &address, NULL), CV_OK);
  (void)unlink(path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  assert_int_equal(listen(fd, backlog), 0);
  return fd;
}

/* A server for one connection: reads the request, sends its answer, and closes, or waits until the caller closes. */
struct server {
  pthread_t thread;
  int listener;
  const char *says;
  size_t n;
  bool listens, lingers;
  char asked[512];
};

static void *serve(void *data) {
  struct server *server = data;
  int fd = accept(server->listener, NULL, NULL);
  if (server->listens) {
    size_t n = 0;
    while (strstr(server->asked, "\r\n\r\n") == NULL && n < sizeof(server->asked) - 1) {
      ssize_t got = recv(fd, server->asked + n, sizeof(server->asked) - 1 - n, 0);
      if (got <= 0) {
        break;
      }
      n += (size_t)got;
    }
  }
  for (size_t sent = 0; sent < server->n;) {
    ssize_t n = send(fd, server->says + sent, server->n - sent, MSG_NOSIGNAL);
    if (n <= 0) {
      break;
    }
    sent += (size_t)n;
  }
  char rest[64];
  while (server->lingers && recv(fd, rest, sizeof(rest), 0) > 0) {
  }
  (void)close(fd);
  return NULL;
}

static enum cv_err probe(struct server *server, unsigned limit_ms, struct cv_why *why) {
  server->listener = listen_there(4);
  assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
  enum cv_err err = cv_probe_health(path, limit_ms, why);
  assert_int_equal(pthread_join(server->thread, NULL), 0);
  (void)close(server->listener);
  return err;
}

static void expect(const char *says, enum cv_err err, const char *line) {
  struct server server = {.says = says, .n = strlen(says), .listens = true};
  struct cv_why why = {{0}};
  char whole[256];
  (void)snprintf(whole, sizeof(whole), "%s%s", err == CV_ERR_IO ? path : "", line);
  assert_int_equal(probe(&server, LONG_MS, &why), err);
  assert_string_equal(why.text, whole);
  assert_string_equal(server.asked,
                      "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

static void test_answers(void **state) {
  expect("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n", CV_OK, "");
  expect("HTTP/1.0 200 OK\r\n\r\n", CV_OK, "");
  expect("HTTP/1.1 503 Service Unavailable\r\n\r\nthe third-party is not connected\n", CV_ERR_STATE,
         "the third-party is not connected");
  expect("HTTP/1.1 503 Service Unavailable\r\n\r\n\033[2Jill\a\nand more\n", CV_ERR_STATE, "?[2Jill?");
  expect("HTTP/1.1 503 Service Unavailable\r\n\r\n", CV_ERR_IO, ": answers 503; expected 200, or 503 and a reason");
  expect("HTTP/1.1 503 Service Unavailable", CV_ERR_IO, ": answers 503; expected 200, or 503 and a reason");
  expect("HTTP/1.1 404 Not Found\r\n\r\nonly /health\n", CV_ERR_IO, ": answers 404; expected 200, or 503 and a reason");
}

static void test_junk(void **state) {
  expect("SSH-2.0-OpenSSH_9.2\r\nhello", CV_ERR_IO, ": answers \"SSH-2.0-OpenSSH_9.2\"; expected HTTP");
  expect("\001\377\n", CV_ERR_IO, ": answers \"??\"; expected HTTP");
  expect("HTTP/1.1 20", CV_ERR_IO, ": answers \"HTTP/1.1 20\"; expected HTTP");
  expect("HTTP/1.1 xyz\r\n\r\nok\n", CV_ERR_IO, ": answers 0; expected 200, or 503 and a reason");
  expect("HTTP/1.1 99999999999999999999\r\n\r\nok\n", CV_ERR_IO,
         ": answers 9223372036854775807; expected 200, or 503 and a reason");
}

static void test_one_that_does_not_stop(void **state) {
  enum { MUCH = 1 << 20 };
  char *much = malloc(MUCH);
  assert_non_null(much);
  memset(much, 'x', MUCH);
  struct server server = {.says = much, .n = MUCH, .listens = true};
  struct cv_why why;
  assert_int_equal(probe(&server, LONG_MS, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, ": answers \"xxxx"));
  assert_true(strlen(why.text) < strlen(path) + 100);
  free(much);
}

static void test_one_that_hangs_up(void **state) {
  struct server server = {.listens = false}, polite = {.listens = true};
  struct cv_why why;
  assert_int_equal(probe(&server, LONG_MS, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, ": closed without an answer"));
  assert_int_equal(probe(&polite, LONG_MS, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, ": closed without an answer"));
}

/* It accepts and sends nothing, or half an answer, and stays connected. */
static void test_one_that_is_deaf(void **state) {
  const char *const piece[] = {"", "HTTP/1.1 200"};
  for (size_t i = 0; i < CV_COUNT(piece); i++) {
    struct server server = {.says = piece[i], .n = strlen(piece[i]), .lingers = true};
    struct cv_why why;
    uint64_t start_ms = cv_clock_mono_ms();
    assert_int_equal(probe(&server, SOON_MS, &why), CV_ERR_IO);
    assert_true(cv_clock_mono_ms() - start_ms >= SOON_MS);
    assert_non_null(strstr(why.text, ": no answer within 200 ms"));
  }
}

/* No process accepts, until the queue is full and not even connecting succeeds. */
static void test_one_that_stands_still(void **state) {
  int listener = listen_there(1);
  for (int i = 0; i < 6; i++) {
    struct cv_why why;
    uint64_t start_ms = cv_clock_mono_ms();
    assert_int_equal(cv_probe_health(path, SOON_MS, &why), CV_ERR_IO);
    assert_true(cv_clock_mono_ms() - start_ms >= SOON_MS);
    assert_non_null(strstr(why.text, ": no answer within 200 ms"));
  }
  (void)close(listener);
}

static void test_no_daemon(void **state) {
  struct cv_why why;
  char name[200];
  assert_int_equal(cv_probe_health(path, LONG_MS, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, "/admin.sock: no daemon answers: No such file or directory"));
  (void)close(listen_there(1));
  assert_int_equal(cv_probe_health(path, LONG_MS, &why), CV_ERR_IO);
  assert_non_null(strstr(why.text, "/admin.sock: no daemon answers: Connection refused"));
  memset(name, 'x', sizeof(name));
  name[sizeof(name) - 1] = '\0';
  assert_int_equal(cv_probe_health(name, LONG_MS, &why), CV_ERR_LIMIT);
  assert_non_null(strstr(why.text, ": the path of a socket has 1 to 107 bytes"));
  assert_int_equal(cv_probe_health("", LONG_MS, &why), CV_ERR_LIMIT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_answers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_junk, setup, teardown),
      cmocka_unit_test_setup_teardown(test_one_that_does_not_stop, setup, teardown),
      cmocka_unit_test_setup_teardown(test_one_that_hangs_up, setup, teardown),
      cmocka_unit_test_setup_teardown(test_one_that_is_deaf, setup, teardown),
      cmocka_unit_test_setup_teardown(test_one_that_stands_still, setup, teardown),
      cmocka_unit_test_setup_teardown(test_no_daemon, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
