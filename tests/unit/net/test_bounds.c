/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile peer can use up: connections, time, memory, keys. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/peer_state.h"
#include "common/net/timer.h"
#include "world.h"

/* IMPATIENT_MS must also suffice for a handshake and a frame on a busy machine. */
enum { SOON_MS = 200, IMPATIENT_MS = 600, FLOOD = 60 };

/* From 127.0.0.`host`. */
static int connect_from(const struct world *world, int host) {
  struct sockaddr_in to, from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000U + (unsigned)host)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  const char *colon = strrchr(world->address, ':');
  assert_non_null(colon);
  assert_int_equal(uv_ip4_addr("127.0.0.1", (int)strtol(colon + 1, NULL, 10), &to), 0);
  assert_int_equal(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
  (void)connect(fd, (const struct sockaddr *)&to, sizeof(to)); /* in the kernel it continues */
  return fd;
}

static int connect_raw(const struct world *world) {
  return connect_from(world, 1);
}

static void turn_loop(struct world *world, unsigned turns) {
  for (unsigned i = 0; i < turns; i++) {
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  }
}

/* Silent connections hold every place for a handshake; an honest client is connected all the same. */
static void test_silent_flood(void **state) {
  struct world *world = *state;
  int fd[FLOOD];
  world->limits.handshakes = 8;
  serve(world, broker_tls(world));
  for (unsigned i = 0; i < FLOOD / 2; i++) {
    fd[i] = connect_raw(world);
    turn_loop(world, 2);
  }
  dial(world, worker_tls(world));
  for (unsigned i = FLOOD / 2; i < FLOOD; i++) {
    fd[i] = connect_raw(world);
    turn_loop(world, 1);
  }
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
  assert_int_equal(world->client.failed, 0);
  wait_for(world, &world->server.closed, FLOOD - 8);
  turn_loop(world, 20);
  assert_in_range(world->server.closed, FLOOD - 8,
                  FLOOD - 8 + 1); /* one more if all were still there when the honest one came */
  assert_int_equal(world->server.refusals.count[CV_REFUSED_CROWDED], world->server.closed);
  for (unsigned i = 0; i < FLOOD; i++) {
    (void)close(fd[i]);
  }
  wait_for(world, &world->server.closed, FLOOD);
}

/* The first flight of a client: the server answers it, and the client need not continue. */
static size_t hello_of(struct world *world, uint8_t *bytes, size_t size) {
  struct cv_tls *tls = worker_tls(world);
  struct cv_buf out = {0};
  struct cv_tls_conn conn = {.out = &out};
  assert_int_equal(cv_tls_conn_open(tls, &conn, NULL), CV_OK);
  assert_int_equal(SSL_do_handshake(conn.ssl), -1);
  size_t n = out.len;
  assert_true(n > 0 && n <= size);
  memcpy(bytes, out.data, n);
  cv_buf_fini(&out);
  cv_tls_conn_close(&conn);
  cv_tls_unref(tls);
  return n;
}

static int say_hello(struct world *world, int host, const uint8_t *hello, size_t n) {
  int fd = connect_from(world, host);
  turn_loop(world, 2);
  assert_int_equal(write(fd, hello, n), (ssize_t)n);
  turn_loop(world, 2);
  return fd;
}

/* It was answered, and its connection is still open. */
static bool is_answered(int fd) {
  char bytes[4096];
  ssize_t all = 0, n;
  while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0) {
    all += n;
  }
  return all > 0 && n < 0 && errno == EAGAIN;
}

static void close_all(const int *fd, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    (void)close(fd[i]);
  }
}

/* A client that has sent a hello has a place that silent clients cannot take; of such clients the oldest is closed. */
static void test_hellos_have_places_of_their_own(void **state) {
  struct world *world = *state;
  uint8_t hello[2048];
  int fd[FLOOD];
  size_t n = hello_of(world, hello, sizeof(hello));
  world->limits.handshakes = 2;
  serve(world, broker_tls(world));
  int first = say_hello(world, 1, hello, n), second = say_hello(world, 1, hello, n);
  for (unsigned i = 0; i < FLOOD; i++) {
    fd[i] = connect_raw(world);
    turn_loop(world, 2);
    assert_int_equal(write(fd[i], "\x16\x03\x01\x02\x00\x01", 6), 6); /* a part of a hello does not count */
  }
  wait_for(world, &world->server.closed, FLOOD - 2);
  assert_true(is_answered(first) && is_answered(second));
  int third = say_hello(world, 1, hello, n); /* takes the place of a silent one, then that of the first */
  wait_for(world, &world->server.closed, FLOOD);
  char byte;
  assert_true(is_answered(third));
  assert_true(recv(first, &byte, 1, 0) == 0 || errno == ECONNRESET);
  assert_int_equal(world->server.refusals.count[CV_REFUSED_CROWDED], FLOOD);
  close_all(fd, FLOOD);
  close_all((int[]){first, second, third}, 3);
  wait_for(world, &world->server.closed, FLOOD + 3);
}

/* A flood of hellos from one address: a limited number a second is answered, and they replace each other, no others. */
static void test_a_flood_harms_its_own_address(void **state) {
  struct world *world = *state;
  uint8_t hello[2048];
  int fd[FLOOD];
  unsigned answered = 0;
  size_t n = hello_of(world, hello, sizeof(hello));
  world->limits.handshakes = 4;
  world->limits.hellos = 20;
  serve(world, broker_tls(world));
  int other = say_hello(world, 2, hello, n);
  uint64_t start = uv_hrtime();
  for (unsigned i = 0; i < FLOOD; i++) {
    fd[i] = say_hello(world, 1, hello, n);
    answered += is_answered(fd[i]);
  }
  double seconds = (double)(uv_hrtime() - start) * 1e-9;
  assert_true(answered >= 20 && answered <= 21 + 20 * seconds);
  wait_for(world, &world->server.closed, FLOOD - 3);
  assert_true(is_answered(other));
  assert_int_equal(world->server.refusals.count[CV_REFUSED_CROWDED], FLOOD - 3);
  close_all(fd, FLOOD);
  (void)close(other);
  wait_for(world, &world->server.closed, FLOOD + 1);
}

static void send_small(struct side *side) {
  assert_int_equal(cv_peer_send(side->peer, "x", 1), CV_OK);
}

/* The bytes read in a turn are bounded, however many peers send. */
static void test_many_share_a_turn(void **state) {
  static struct cv_hub hub;
  const struct {
    unsigned busy;
    size_t share;
  } cases[] = {{0, 131072}, {1, 131072}, {8, 131072}, {9, 116508}, {64, 16384}, {128, 8192}, {5000, 8192}};
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    hub.were_busy = cases[i].busy;
    assert_int_equal(cv_hub_share(&hub), cases[i].share);
  }
  /* The count is of the peers that sent in the turn before. */
  struct world *world = *state;
  connect_both(world);
  const struct cv_hub *real = world->server.peer->hub;
  turn_loop(world, 3);
  assert_int_equal(real->were_busy, 0);
  unsigned most = 0;
  send_small(&world->client);
  for (unsigned i = 0; i < 20; i++) {
    turn_loop(world, 1);
    most = real->were_busy > most ? real->were_busy : most;
  }
  assert_int_equal(most, 1);
  assert_int_equal(real->were_busy, 0);
}

/* However many connect at once, a turn of the loop accepts some and then handles everything else. */
static void test_a_turn_takes_some(void **state) {
  enum { OF_A_TURN = 16 };
  struct world *world = *state;
  int fd[FLOOD];
  world->limits.handshakes = 1;
  serve(world, broker_tls(world));
  for (unsigned i = 0; i < FLOOD; i++) {
    fd[i] = connect_raw(world);
  }
  for (unsigned turns = 0; world->server.closed < FLOOD - 1; turns++) {
    unsigned before = world->server.closed;
    turn_loop(world, 1);
    assert_true(world->server.closed - before <= OF_A_TURN);
    assert_true(turns < 1000);
  }
  close_all(fd, FLOOD);
  wait_for(world, &world->server.closed, FLOOD);
}

/* Workers leave one place in eight for requesters. */
static void test_crowd_leaves_places(void **state) {
  enum { WORKERS = 8 };
  struct world *world = *state;
  struct side side[WORKERS + 1] = {0};
  struct cv_dialer *dialer[WORKERS + 1];
  world->limits.connections = WORKERS;
  serve(world, make_tls(world, "ca", "ca", "crowdveil:broker/main", 1000,
                        1U << CV_ROLE_WORKER | 1U << CV_ROLE_REQUESTER, true));
  for (unsigned i = 0; i <= WORKERS; i++) {
    struct cv_tls *tls =
        i < WORKERS ? worker_tls(world)
                    : make_tls(world, "ca", "ca", "crowdveil:requester/alice", 1000, 1U << CV_ROLE_BROKER, false);
    assert_int_equal(cv_dialer_start(&world->loop, world->address, tls, &SIDE_OPS, &side[i], side_failed,
                                     &world->limits, i, &dialer[i], NULL),
                     CV_OK);
    cv_tls_unref(tls);
    wait_for(world, i == WORKERS - 1 ? &world->server.closed : &side[i].opened, 1);
  }
  assert_true(world->server.refusals.count[CV_REFUSED_CONNECTION] >= 1);
  assert_int_equal(world->server.opened, WORKERS);
  for (unsigned i = 0; i <= WORKERS; i++) {
    cv_dialer_stop(dialer[i]);
  }
  wait_for(world, &side[WORKERS].closed, 1);
}

static void test_handshake_takes_too_long(void **state) {
  struct world *world = *state;
  world->limits.handshake_ms = SOON_MS;
  serve(world, broker_tls(world));
  int fd = connect_raw(world);
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.refusal, CV_REFUSED_HANDSHAKE);
  assert_non_null(strstr(world->server.why.text, "no TLS handshake within 200 ms"));
  (void)close(fd);
}

/* A server with a short time limit and a client with a long one. */
static void connect_impatient(struct world *world) {
  world->limits.frame_ms = IMPATIENT_MS;
  serve(world, broker_tls(world));
  world->limits.frame_ms = CV_NET_DEFAULTS.frame_ms;
  dial(world, worker_tls(world));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
}

/* Bytes that are not a whole frame. */
static void send_part(struct side *side, const void *bytes, size_t n) {
  cv_buf_put(&side->peer->plain, bytes, n);
}

/* One more byte of an incomplete frame. */
static void send_byte(struct side *side) {
  if (side->peer != NULL) {
    send_part(side, "x", 1);
    side->peer->paused = true;
    cv_peer_resume(side->peer); /* so that it has a turn */
  }
}

static void wait_some(struct world *world, uint64_t ms) {
  uint64_t end_ms = cv_timer_now_ms(&world->loop) + ms;
  while (cv_timer_now_ms(&world->loop) < end_ms) {
    wait_for(world, &world->ticks, world->ticks + 1);
  }
}

static void test_first_frame_must_come(void **state) {
  struct world *world = *state;
  connect_impatient(world);
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.refusal, CV_REFUSED_SLOW);
  assert_non_null(strstr(world->server.why.text, "no whole frame within 600 ms"));
}

/* One byte now and then never completes a frame, however long it goes on. */
static void test_frame_must_come_whole(void **state) {
  struct world *world = *state;
  connect_impatient(world);
  send_small(&world->client);
  wait_bytes(world, &world->server.frames, 1);
  send_small(&world->client);
  send_part(&world->client, "\0\0\x40\0", 4);
  for (unsigned i = 0; i < 100 && world->server.closed == 0; i++) {
    send_byte(&world->client);
    wait_some(world, IMPATIENT_MS / 20);
  }
  assert_int_equal(world->server.refusal, CV_REFUSED_SLOW);
  assert_int_equal(world->server.frames, 2);
}

/* A connection may be idle between frames. */
static void test_idle_is_allowed(void **state) {
  struct world *world = *state;
  connect_impatient(world);
  send_small(&world->client);
  wait_bytes(world, &world->server.frames, 1);
  wait_some(world, 3 * IMPATIENT_MS / 2);
  send_small(&world->client);
  wait_bytes(world, &world->server.frames, 2);
  assert_int_equal(world->server.closed, 0);
}

/* While we do not read, a missing frame is not the other side's fault. */
static void test_pause_stops_the_clock(void **state) {
  struct world *world = *state;
  connect_impatient(world);
  send_small(&world->client);
  wait_bytes(world, &world->server.frames, 1);
  send_small(&world->client);
  send_part(&world->client, "\0\0\0\x02y", 5);
  wait_bytes(world, &world->server.frames, 2);
  cv_peer_pause(world->server.peer);
  wait_some(world, 3 * IMPATIENT_MS / 2);
  assert_int_equal(world->server.closed, 0);
  cv_peer_resume(world->server.peer);
  send_byte(&world->client);
  wait_bytes(world, &world->server.frames, 3);
  assert_int_equal(world->server.closed, 0);
}

/* Every key update makes us derive keys and answer: a few are accepted, a flood is not. */
static void test_key_updates(void **state) {
  struct world *world = *state;
  connect_both(world);
  for (unsigned i = 0; i < CV_REKEYS_MAX; i++) {
    assert_int_equal(SSL_key_update(world->client.peer->conn.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    send_small(&world->client);
    wait_bytes(world, &world->server.frames, i + 1);
  }
  assert_int_equal(world->server.closed, 0);
  for (unsigned i = 0; i < 200 && world->client.peer != NULL; i++) {
    enum cv_err err = CV_OK;
    (void)SSL_key_update(world->client.peer->conn.ssl, SSL_KEY_UPDATE_REQUESTED);
    err = cv_peer_send(world->client.peer, "x", 1);
    assert_true(err == CV_OK || err == CV_ERR_CLOSED);
    turn_loop(world, 3);
  }
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.refusal, CV_REFUSED_REKEY);
  assert_true(world->server.frames <= CV_REKEYS_MAX + 1);
}

/* Closed peers that linger until the end is delivered have no more places than handshakes. */
static void test_leaving_is_bounded(void **state) {
  struct world *world = *state;
  int fd[FLOOD];
  world->limits.handshakes = 4;
  serve(world, broker_tls(world));
  for (unsigned i = 0; i < FLOOD; i++) {
    fd[i] = connect_raw(world);
    turn_loop(world, 2);
    assert_int_equal(write(fd[i], "GET / HTTP/1.1\r\n\r\n", 18), 18);
    turn_loop(world, 2);
  }
  turn_loop(world, 5);
  assert_true(world->server.closed >= FLOOD - 2 * 4);
  assert_int_equal(world->server.refusals.count[CV_REFUSED_HANDSHAKE], world->server.closed);
  for (unsigned i = 0; i < FLOOD; i++) {
    (void)close(fd[i]);
  }
  wait_for(world, &world->server.closed, FLOOD);
}

static void test_open_files(void **state) {
  struct world *world = *state;
  struct rlimit before, now;
  struct cv_why why;
  struct cv_tls *tls = broker_tls(world);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  now = before;
  now.rlim_cur = 200;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
  world->limits.connections = 500;
  serve(world, tls);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
  assert_true(now.rlim_cur >= 500 + 3 * world->limits.handshakes);
  world->limits.connections = 2000000000;
  struct cv_listener *listener;
  struct cv_tls *again = broker_tls(world);
  assert_int_equal(
      cv_listener_start(&world->loop, "127.0.0.1:0", again, &SIDE_OPS, &world->server, &world->limits, &listener, &why),
      CV_ERR_LIMIT);
  assert_non_null(strstr(why.text, "2000000000 connections need "));
  cv_tls_unref(again);
  (void)setrlimit(RLIMIT_NOFILE, &before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_silent_flood, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_hellos_have_places_of_their_own, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_flood_harms_its_own_address, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_many_share_a_turn, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_a_turn_takes_some, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_crowd_leaves_places, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_handshake_takes_too_long, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_first_frame_must_come, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_frame_must_come_whole, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_idle_is_allowed, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_pause_stops_the_clock, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_key_updates, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_leaving_is_bounded, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_open_files, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
