/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer that means harm can take up: places, time, memory, keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/link.h"
#include "world.h"

/* IMPATIENT_MS also has to be enough for a handshake and a frame on a machine that has much else to do. */
enum { SOON_MS = 200, IMPATIENT_MS = 600, FLOOD = 60 };

static int connect_raw(const struct world *world) {
  struct sockaddr_in to;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  const char *colon = strrchr(world->address, ':');
  assert_non_null(colon);
  assert_int_equal(uv_ip4_addr("127.0.0.1", (int)strtol(colon + 1, NULL, 10), &to), 0);
  (void)connect(fd, (const struct sockaddr *)&to, sizeof(to)); /* the kernel goes on with it */
  return fd;
}

static void turn_loop(struct world *world, unsigned turns) {
  for (unsigned i = 0; i < turns; i++) {
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  }
}

/* Connections that say nothing hold every place for a handshake; who is honest gets in all the same. */
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
                  FLOOD - 8 + 1); /* one more if all held on when the honest one came */
  assert_int_equal(world->server.refusals.count[CV_REFUSED_CROWDED], world->server.closed);
  for (unsigned i = 0; i < FLOOD; i++) {
    (void)close(fd[i]);
  }
  wait_for(world, &world->server.closed, FLOOD);
}

/* Those that say a little give their places, too, but after the silent ones. */
static void test_silent_ones_go_first(void **state) {
  struct world *world = *state;
  world->limits.handshakes = 2;
  serve(world, broker_tls(world));
  int talks = connect_raw(world), silent = connect_raw(world);
  turn_loop(world, 10);
  assert_int_equal(write(talks, "\x16\x03", 2), 2);
  turn_loop(world, 10);
  int third = connect_raw(world);
  wait_for(world, &world->server.closed, 1);
  char byte;
  assert_true(recv(silent, &byte, 1, 0) <= 0);
  assert_int_equal(write(talks, "\x01", 1), 1);
  turn_loop(world, 10);
  assert_int_equal(world->server.closed, 1);
  (void)close(talks);
  (void)close(silent);
  (void)close(third);
  wait_for(world, &world->server.closed, 3);
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

/* A server that is soon impatient with a client that is not. */
static void connect_impatient(struct world *world) {
  world->limits.frame_ms = IMPATIENT_MS;
  serve(world, broker_tls(world));
  world->limits.frame_ms = CV_NET_DEFAULTS.frame_ms;
  dial(world, worker_tls(world));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
}

static void on_time(uv_timer_t *timer) {
}

static void send_small(struct side *side) {
  assert_int_equal(cv_peer_send(side->peer, "x", 1), CV_OK);
}

/* Bytes that are no whole frame. */
static void send_part(struct side *side, const void *bytes, size_t n) {
  cv_buf_put(&side->peer->plain, bytes, n);
}

/* One more byte of the frame that has begun. */
static void send_byte(struct side *side) {
  if (side->peer != NULL) {
    send_part(side, "x", 1);
    side->peer->paused = true;
    cv_peer_resume(side->peer); /* so that it has a turn */
  }
}

static void wait_some(struct world *world, uint64_t ms) {
  uv_timer_t timer;
  assert_int_equal(uv_timer_init(&world->loop, &timer), 0);
  assert_int_equal(uv_timer_start(&timer, on_time, ms, 0), 0);
  uint64_t start = uv_now(&world->loop);
  while (uv_now(&world->loop) - start < ms) {
    (void)uv_run(&world->loop, UV_RUN_ONCE);
  }
  uv_close((uv_handle_t *)&timer, NULL);
  (void)uv_run(&world->loop, UV_RUN_NOWAIT);
}

static void test_first_frame_must_come(void **state) {
  struct world *world = *state;
  connect_impatient(world);
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.refusal, CV_REFUSED_SLOW);
  assert_non_null(strstr(world->server.why.text, "no whole frame within 600 ms"));
}

/* One byte now and then never makes a frame, however long it goes on. */
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

/* Who is idle between frames is welcome. */
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

/* While we do not read it cannot be the other side's fault that a frame does not come. */
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

/* Every update makes us derive keys and answer: a few are fine, a flood is not. */
static void test_key_updates(void **state) {
  struct world *world = *state;
  connect_both(world);
  for (unsigned i = 0; i < CV_REKEYS_MAX; i++) {
    assert_int_equal(SSL_key_update(world->client.peer->link.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    send_small(&world->client);
    wait_bytes(world, &world->server.frames, i + 1);
  }
  assert_int_equal(world->server.closed, 0);
  for (unsigned i = 0; i < 200 && world->client.peer != NULL; i++) {
    enum cv_err err = CV_OK;
    (void)SSL_key_update(world->client.peer->link.ssl, SSL_KEY_UPDATE_REQUESTED);
    err = cv_peer_send(world->client.peer, "x", 1);
    assert_true(err == CV_OK || err == CV_ERR_CLOSED);
    turn_loop(world, 3);
  }
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.refusal, CV_REFUSED_REKEY);
  assert_true(world->server.frames <= CV_REKEYS_MAX + 1);
}

/* Peers that are closed and stay to hear the end of it have no more places than handshakes. */
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
  assert_true(now.rlim_cur >= 500 + 2 * world->limits.handshakes);
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
      cmocka_unit_test_setup_teardown(test_silent_ones_go_first, world_setup, world_teardown),
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
