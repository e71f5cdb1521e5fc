/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over real TLS connections through loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/net/timer.h"
#include "tests/support/machine.h"
#include "world.h"

static void send_frame(struct side *side, size_t n, uint8_t fill) {
  uint8_t *bytes = malloc(n);
  assert_non_null(bytes);
  memset(bytes, fill, n);
  assert_int_equal(cv_peer_send(side->peer, bytes, n), CV_OK);
  free(bytes);
}

static void test_identities(void **state) {
  struct world *world = *state;
  connect_both(world);
  assert_int_equal(world->server.identity.role, CV_ROLE_WORKER);
  assert_true(world->server.identity.first == 17);
  assert_int_equal(world->client.identity.role, CV_ROLE_BROKER);
  assert_string_equal(world->client.identity.name, "main");
  assert_string_equal(cv_peer_address(world->client.peer), world->address);
  assert_int_equal(strncmp(cv_peer_address(world->server.peer), "127.0.0.1:", 10), 0);
}

/* Small and large frames mixed, in both directions at once: everything arrives, complete and in order. */
static void test_frames_both_ways(void **state) {
  struct world *world = *state;
  connect_both(world);
  struct side *sides[] = {&world->server, &world->client};
  size_t frames = 0;
  size_t bytes = 0;
  uint64_t sum = 0;
  for (unsigned i = 0; i < 3000; i++) {
    size_t n = i % 500 == 499 ? world->limits.frame_bytes : 1 + i * 7919 % 900;
    for (size_t s = 0; s < 2; s++) {
      send_frame(sides[s], n, (uint8_t)i);
    }
    frames++;
    bytes += n;
    for (size_t k = 0; k < n; k++) {
      sum = sum * 31 + (uint8_t)i;
    }
  }
  wait_bytes(world, &world->server.bytes, bytes);
  wait_bytes(world, &world->client.bytes, bytes);
  for (size_t s = 0; s < 2; s++) {
    assert_int_equal(sides[s]->frames, frames);
    assert_int_equal(sides[s]->bytes, bytes);
    assert_true(sides[s]->sum == sum);
    assert_int_equal(cv_peer_queued(sides[s]->peer), 0);
  }
}

/* What was queued before the end reaches the other side, even if it is more than the kernel takes at once. */
static void test_close_flushes(void **state) {
  struct world *world = *state;
  world->limits.queue_bytes = 8 * 1024 * 1024;
  connect_both(world);
  for (unsigned i = 0; i < 25; i++) {
    send_frame(&world->client, world->limits.frame_bytes, (uint8_t)i);
  }
  send_frame(&world->client, 7, 'g');
  world->client.in_call = true;
  cv_peer_close(world->client.peer, "we are done");
  cv_peer_close(world->client.peer, "again");
  assert_int_equal(cv_peer_send(world->client.peer, "x", 1), CV_ERR_CLOSED);
  world->client.in_call = false;
  assert_int_equal(world->client.closed, 0);
  wait_for(world, &world->server.closed, 1);
  wait_for(world, &world->client.closed, 1);
  assert_int_equal(world->server.frames, 26);
  assert_int_equal(world->server.bytes, 25 * world->limits.frame_bytes + 7);
  assert_string_equal(world->client.why.text, "we are done");
  assert_non_null(strstr(world->server.why.text, ": closed by the other side"));
}

static void take_long(struct side *side, const uint8_t *bytes, size_t n) {
  const struct timespec pause = {.tv_nsec = 25000000};
  (void)nanosleep(&pause, NULL);
}

/* A slow reader gets everything, although that takes longer than the time limit for an end without progress. */
static void test_close_flushes_to_a_slow_reader(void **state) {
  enum { FRAMES = 60 }; /* more than the kernel takes */
  struct world *world = *state;
  world->limits.queue_bytes = (FRAMES + 1) * world->limits.frame_bytes;
  connect_both(world);
  world->server.on_frame = take_long;
  for (unsigned i = 0; i < FRAMES; i++) {
    send_frame(&world->client, world->limits.frame_bytes, (uint8_t)i);
  }
  cv_peer_close(world->client.peer, "we are done");
  wait_for(world, &world->server.closed, 1);
  wait_for(world, &world->client.closed, 1);
  assert_int_equal(world->server.frames, FRAMES);
}

/* We close while the other side sends at full speed: its data are dropped, but none of ours are lost to a reset. */
static void test_close_against_a_stream(void **state) {
  struct world *world = *state;
  world->limits.queue_bytes = 8 * 1024 * 1024;
  connect_both(world);
  cv_peer_pause(world->server.peer);
  for (unsigned i = 0; i < 30; i++) {
    send_frame(&world->client, world->limits.frame_bytes, (uint8_t)i);
  }
  for (unsigned i = 0; i < 50; i++) {
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  }
  assert_true(cv_peer_queued(world->client.peer) > 0);
  for (unsigned i = 0; i < 25; i++) {
    send_frame(&world->server, world->limits.frame_bytes, (uint8_t)i);
  }
  send_frame(&world->server, 7, 'g');
  cv_peer_close(world->server.peer, "enough");
  wait_for(world, &world->client.closed, 1);
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->client.frames, 26);
  assert_non_null(strstr(world->client.why.text, ": closed by the other side"));
  assert_int_equal(world->server.frames, 0);
  assert_string_equal(world->server.why.text, "enough");
}

/* Both sides close at the same time: no reset, both ends close with their own reason, once, well within the second. */
static void test_both_close_at_once(void **state) {
  struct world *world = *state;
  connect_both(world);
  send_frame(&world->client, 7, 'c');
  send_frame(&world->server, 7, 's');
  unsigned start = world->ticks;
  cv_peer_close(world->client.peer, "client stops");
  cv_peer_close(world->server.peer, "server stops");
  cv_dialer_stop(world->dialer);
  world->dialer = NULL;
  wait_for(world, &world->server.closed, 1);
  wait_for(world, &world->client.closed, 1);
  assert_string_equal(world->client.why.text, "client stops");
  assert_string_equal(world->server.why.text, "server stops");
  assert_in_range(world->ticks - start, 0, 200);
}

static void close_it(struct side *side, const uint8_t *bytes, size_t n) {
  cv_peer_close(side->peer, "enough");
}

/* After cv_peer_close() only the end is reported, although more frames have arrived in the same read. */
static void test_close_inside_a_frame(void **state) {
  struct world *world = *state;
  connect_both(world);
  world->server.on_frame = close_it;
  for (unsigned i = 0; i < 100; i++) {
    send_frame(&world->client, 10, 'x');
  }
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.frames, 1);
  assert_string_equal(world->server.why.text, "enough");
}

static void pause_every_third(struct side *side, const uint8_t *bytes, size_t n) {
  if (side->frames % 3 == 0) {
    cv_peer_pause(side->peer);
  }
}

static void test_pause_and_resume(void **state) {
  struct world *world = *state;
  connect_both(world);
  world->server.on_frame = pause_every_third;
  for (unsigned i = 0; i < 12; i++) {
    send_frame(&world->client, i == 5 ? world->limits.frame_bytes : 10, (uint8_t)i);
  }
  for (size_t frames = 3; frames <= 12; frames += 3) {
    size_t *seen = &world->server.frames;
    wait_bytes(world, seen, frames);
    for (unsigned i = 0; i < 20; i++) {
      (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(*seen, frames);
    world->server.in_call = true;
    cv_peer_resume(world->server.peer);
    world->server.in_call = false;
  }
  send_frame(&world->client, 10, 'l');
  wait_bytes(world, &world->server.frames, 13);
}

/* A peer that does not read fills our queue to its limit and not a byte further; then the others are served. */
static void test_write_limit(void **state) {
  struct world *world = *state;
  world->limits.queue_bytes = 1024 * 1024;
  connect_both(world);
  cv_peer_pause(world->server.peer);
  uint8_t bytes[1000] = {0};
  enum cv_err err = CV_OK;
  size_t sent = 0;
  for (unsigned turn = 0; turn < 1000 && err == CV_OK; turn++) {
    for (unsigned i = 0; i < 100 && err == CV_OK; i++) {
      err = cv_peer_send(world->client.peer, bytes, sizeof(bytes));
      sent += err == CV_OK;
      assert_true(cv_peer_queued(world->client.peer) <= world->limits.queue_bytes + 64 * 1024);
    }
    (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  }
  assert_int_equal(err, CV_ERR_LIMIT);
  cv_peer_resume(world->server.peer);
  wait_bytes(world, &world->server.frames, sent);
  assert_int_equal(world->server.frames, sent);
  assert_int_equal(cv_peer_send(world->client.peer, bytes, sizeof(bytes)), CV_OK);
}

static void test_frame_limits(void **state) {
  struct world *world = *state;
  connect_both(world);
  static uint8_t bytes[256 * 1024 + 1];
  assert_int_equal(cv_peer_send(world->client.peer, bytes, sizeof(bytes)), CV_ERR_LIMIT);
  assert_int_equal(cv_peer_send(world->client.peer, bytes, 0), CV_ERR_INVALID);
  assert_int_equal(cv_peer_queued(world->client.peer), 0);
}

/* The other side has a higher limit than ours. */
static void test_oversized_frame_is_named(void **state) {
  struct world *world = *state;
  world->limits.frame_bytes = 1000;
  serve(world, broker_tls(world));
  world->limits.frame_bytes = 100000;
  dial(world, worker_tls(world));
  wait_for(world, &world->client.opened, 1);
  send_frame(&world->client, 1000, 'a');
  send_frame(&world->client, 1001, 'b');
  send_frame(&world->client, 1, 'c');
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.frames, 1);
  assert_non_null(strstr(world->server.why.text, ": frame of 1001 bytes is over the limit of 1000"));
  wait_for(world, &world->client.closed, 1);
  assert_non_null(strstr(world->client.why.text, ": closed by the other side"));
}

static void test_connection_limit(void **state) {
  struct world *world = *state;
  world->limits.connections = 1;
  connect_both(world);
  struct side second = {0};
  struct cv_dialer *dialer;
  struct cv_tls *tls = worker_tls(world);
  assert_int_equal(cv_dialer_start(&world->loop, world->address, tls, &SIDE_OPS, &second, side_failed, &world->limits,
                                   2, &dialer, NULL),
                   CV_OK);
  cv_tls_unref(tls);
  wait_for(world, &second.closed, 1);
  wait_for(world, &world->server.closed, 1);
  assert_int_equal(world->server.opened, 1);
  assert_int_equal(world->server.refusal, CV_REFUSED_CONNECTION);
  assert_non_null(strstr(world->server.why.text, "all 1 places for connections are taken"));
  /* The place is free again once the first peer is gone. */
  cv_dialer_stop(world->dialer);
  world->dialer = NULL;
  wait_for(world, &world->server.opened, 2);
  unsigned closed = second.closed;
  cv_dialer_stop(dialer);
  wait_for(world, &second.closed, closed + 1);
}

static void test_dialer_comes_back(void **state) {
  struct world *world = *state;
  connect_both(world);
  for (unsigned round = 1; round <= 2; round++) {
    cv_listener_stop(world->listener);
    cv_peer_close(world->server.peer, "going down");
    wait_for(world, &world->client.closed, round);
    unsigned failed = world->client.failed;
    wait_for(world, &world->client.failed, failed + 1);
    assert_non_null(strstr(world->client.why.text, world->address));
    assert_non_null(strstr(world->client.why.text, "connection refused"));
    serve(world, broker_tls(world));
    wait_for(world, &world->client.opened, round + 1);
    wait_for(world, &world->server.opened, round + 1);
    send_frame(&world->client, 5, 'x');
    wait_bytes(world, &world->server.frames, round);
  }
}

/* The client starts first. */
static void test_any_start_order(void **state) {
  struct world *world = *state;
  serve(world, broker_tls(world));
  cv_listener_stop(world->listener);
  (void)uv_run(&world->loop, UV_RUN_DEFAULT);
  dial(world, worker_tls(world));
  wait_for(world, &world->client.failed, 2);
  serve(world, broker_tls(world));
  wait_for(world, &world->client.opened, 1);
}

static void test_bad_addresses(void **state) {
  struct world *world = *state;
  static const char *const bad[] = {"",         "localhost", "localhost:",   ":1",   "127.0.0.1:65536", "127.0.0.1:x",
                                    "::1:4711", "[::1]",     "127.0.0.1:-1", "a:1:2"};
  struct cv_tls *tls = broker_tls(world);
  for (size_t i = 0; i < CV_COUNT(bad); i++) {
    struct cv_listener *listener;
    struct cv_dialer *dialer;
    struct cv_why why = {{0}};
    assert_int_equal(
        cv_listener_start(&world->loop, bad[i], tls, &SIDE_OPS, &world->server, &world->limits, &listener, &why),
        CV_ERR_FORMAT);
    assert_non_null(strstr(why.text, "expected HOST:PORT or [IPV6]:PORT"));
    assert_int_equal(cv_dialer_start(&world->loop, bad[i], tls, &SIDE_OPS, &world->client, side_failed, &world->limits,
                                     1, &dialer, &why),
                     CV_ERR_FORMAT);
  }
  serve(world, tls);
  struct cv_listener *second;
  struct cv_why why;
  struct cv_tls *again = broker_tls(world);
  assert_int_equal(
      cv_listener_start(&world->loop, world->address, again, &SIDE_OPS, &world->server, &world->limits, &second, &why),
      CV_ERR_EXISTS);
  cv_tls_unref(again);
  assert_non_null(strstr(why.text, ": cannot listen: address already in use"));
}

/* A name with several addresses: those without a listener are skipped. */
static void test_host_name(void **state) {
  if (lacks_localhost()) {
    return;
  }
  struct world *world = *state;
  serve(world, broker_tls(world));
  (void)snprintf(world->address, sizeof(world->address), "localhost:%u", cv_listener_port(world->listener));
  dial(world, worker_tls(world));
  wait_for(world, &world->client.opened, 1);
  assert_int_equal(world->client.failed, 0);
  assert_string_equal(cv_peer_address(world->client.peer), world->address);
  cv_dialer_stop(world->dialer);
  wait_for(world, &world->client.closed, 1); /* its reason would take the place of the next one */
  (void)snprintf(world->address, sizeof(world->address), "no-such-host.invalid:1");
  dial(world, worker_tls(world));
  wait_for(world, &world->client.failed, 1);
  assert_non_null(strstr(world->client.why.text, "no-such-host.invalid:1: cannot resolve the name: "));
}

/* A dialer can be stopped at any moment, also while it resolves or connects. */
static void test_stop_at_any_turn(void **state) {
  struct world *world = *state;
  serve(world, broker_tls(world));
  for (unsigned turns = 0; turns < 40; turns++) {
    dial(world, worker_tls(world));
    for (unsigned i = 0; i < turns; i++) {
      (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    unsigned failed = world->client.failed;
    cv_dialer_stop(world->dialer);
    world->dialer = NULL;
    for (unsigned i = 0; i < 20; i++) {
      (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(world->client.failed, failed);
  }
  wait_for(world, &world->client.closed, world->client.opened);
  wait_for(world, &world->server.closed, world->server.opened);
}

/* A listener that stops waits for no handshake: a silent client delays no one. */
static void test_stop_during_a_handshake(void **state) {
  struct world *world = *state;
  struct sockaddr_in address;
  serve(world, broker_tls(world));
  assert_int_equal(uv_ip4_addr("127.0.0.1", (int)cv_listener_port(world->listener), &address), 0);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
  (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  assert_int_equal(world->server.closed, 0);
  uint64_t before_ms = cv_timer_now_ms(&world->loop);
  cv_listener_stop(world->listener);
  world->listener = NULL;
  run_out(world);
  assert_int_equal(world->server.closed, 1);
  assert_in_range(cv_timer_now_ms(&world->loop) - before_ms, 0, CV_NET_DEFAULTS.handshake_ms - 1);
  assert_int_equal(close(fd), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_identities, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_frames_both_ways, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_close_flushes, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_close_flushes_to_a_slow_reader, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_close_against_a_stream, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_both_close_at_once, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_close_inside_a_frame, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_pause_and_resume, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_write_limit, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_frame_limits, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_oversized_frame_is_named, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_connection_limit, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_dialer_comes_back, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_any_start_order, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_bad_addresses, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_host_name, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_stop_at_any_turn, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_stop_during_a_handshake, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
