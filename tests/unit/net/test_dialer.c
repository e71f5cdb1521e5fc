/* SPDX-License-Identifier: Apache-2.0 */
/* A dialer with several addresses: ports without a listener, silent ones, ones of another CA, and two brokers; and
 * knocks at such addresses. */
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/address.h"
#include "common/net/knock.h"
#include "common/net/peer_state.h"
#include "common/net/timer.h"
#include "world.h"

enum { REFUSED = CV_ADDRESSES_MAX - 1, CYCLES = 7 };

/* A place where a broker may be. */
struct spot {
  struct side side;
  struct cv_listener *listener; /* NULL: none */
  int fd;                       /* a socket that no broker has; -1: none */
  char address[32];
};

static struct spot spots[CV_ADDRESSES_MAX];

static int spots_setup(void **state) {
  for (size_t i = 0; i < CV_COUNT(spots); i++) {
    spots[i] = (struct spot){.fd = -1};
  }
  return world_setup(state);
}

static void stop_spot(struct world *world, struct spot *spot) {
  cv_listener_stop(spot->listener);
  spot->listener = NULL;
  if (spot->side.peer != NULL) {
    cv_peer_close(spot->side.peer, "going down");
    wait_for(world, &spot->side.closed, spot->side.opened);
  }
}

static int spots_teardown(void **state) {
  struct world *world = *state;
  cv_dialer_stop(world->dialer);
  world->dialer = NULL;
  for (size_t i = 0; i < CV_COUNT(spots); i++) {
    stop_spot(world, &spots[i]);
    if (spots[i].fd >= 0) {
      (void)close(spots[i].fd);
    }
  }
  return world_teardown(state);
}

/* Listens at the spot's address, or at any if it has none yet; does not take the reference over. */
static void listen_at(struct world *world, struct spot *spot, struct cv_tls *tls) {
  struct cv_why why;
  const char *at = spot->address[0] != '\0' ? spot->address : "127.0.0.1:0";
  if (cv_listener_start(&world->loop, at, tls, &SIDE_OPS, &spot->side, &world->limits, &spot->listener, &why) !=
      CV_OK) {
    fail_msg("%s", why.text);
  }
  (void)snprintf(spot->address, sizeof(spot->address), "127.0.0.1:%u", cv_listener_port(spot->listener));
}

/* A bound port without a broker. Not listening, it refuses connections, as a standby does; with a backlog of 0 that is
 * full, it answers nothing, as a host that is off; with room, it takes connections and says nothing. */
static void hold(struct spot *spot, bool listens, bool is_full) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof(at);
  spot->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(spot->fd, (const struct sockaddr *)&at, sizeof(at)), 0);
  assert_int_equal(getsockname(spot->fd, (struct sockaddr *)&at, &n), 0);
  assert_true(!listens || listen(spot->fd, is_full ? 0 : 16) == 0);
  /* The process keeps them until it ends; the kernel takes one more than the backlog. */
  for (unsigned i = 0; is_full && i < 2; i++) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)connect(fd, (const struct sockaddr *)&at, sizeof(at));
  }
  (void)snprintf(spot->address, sizeof(spot->address), "127.0.0.1:%u", ntohs(at.sin_port));
}

/* Dials the first n spots, in their order; returns the loop's time. */
static uint64_t dial_spots(struct world *world, size_t n) {
  char all[CV_ADDRESSES_MAX * 32] = "";
  struct cv_why why;
  for (size_t i = 0; i < n; i++) {
    size_t used = strlen(all);
    (void)snprintf(all + used, sizeof(all) - used, "%s%s", i == 0 ? "" : ",", spots[i].address);
  }
  struct cv_tls *tls = worker_tls(world);
  uv_update_time(&world->loop);
  uint64_t now_ms = cv_timer_now_ms(&world->loop);
  if (cv_dialer_start(&world->loop, all, tls, &SIDE_OPS, &world->client, side_failed, &world->limits, 1, &world->dialer,
                      &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  cv_tls_unref(tls);
  return now_ms;
}

static void expect_at(const struct world *world, const struct spot *spot) {
  assert_non_null(world->client.peer);
  assert_string_equal(cv_peer_address(world->client.peer), spot->address);
}

/* The connection at `from` ends, and the next one is at `to`. */
static void move(struct world *world, struct spot *from, struct spot *to) {
  unsigned opened = world->client.opened, served = to->side.opened;
  cv_peer_close(from->side.peer, "moved");
  wait_for(world, &world->client.opened, opened + 1);
  wait_for(world, &to->side.opened, served + 1);
  expect_at(world, to);
}

static struct spot *serve_at(struct world *world, size_t i) {
  struct cv_tls *tls = broker_tls(world);
  listen_at(world, &spots[i], tls);
  cv_tls_unref(tls);
  return &spots[i];
}

/* ---- the order of addresses, and the time they take ---- */

/* With a back-off before each, the last one would be reached after 1350 ms at the earliest. */
static void refused_addresses_cost_no_pause(void **state) {
  struct world *world = *state;
  for (size_t i = 0; i < REFUSED; i++) {
    hold(&spots[i], false, false);
  }
  struct spot *broker = serve_at(world, REFUSED);
  uint64_t begin_ms = dial_spots(world, CV_ADDRESSES_MAX);
  wait_for(world, &world->client.opened, 1);
  assert_in_range(cv_timer_now_ms(&world->loop) - begin_ms, 0, 900);
  expect_at(world, broker);
  assert_int_equal(world->client.failed, 0);
}

/* From half to all of 100, 200, 400, 500, 500 and 500 ms; with the limit of one address it would be at least 3150. */
static void whole_cycles_back_off_for_half_a_second_at_most(void **state) {
  struct world *world = *state;
  hold(&spots[0], false, false);
  hold(&spots[1], false, false);
  uint64_t begin_ms = dial_spots(world, 2);
  wait_for(world, &world->client.failed, CYCLES);
  assert_in_range(cv_timer_now_ms(&world->loop) - begin_ms, 1000, 3000);
  char expected[200];
  (void)snprintf(expected, sizeof(expected), "%s: connection refused; %s: connection refused", spots[0].address,
                 spots[1].address);
  assert_string_equal(world->client.why.text, expected);
}

static void with_one_address_the_back_off_grows_on(void **state) {
  struct world *world = *state;
  hold(&spots[0], false, false);
  uint64_t begin_ms = dial_spots(world, 1);
  wait_for(world, &world->client.failed, 6);
  assert_in_range(cv_timer_now_ms(&world->loop) - begin_ms, 1550, 20000);
}

static void a_host_that_is_off_costs_one_short_attempt(void **state) {
  struct world *world = *state;
  hold(&spots[0], true, true);
  struct spot *broker = serve_at(world, 1);
  uint64_t begin_ms = dial_spots(world, 2);
  wait_for(world, &world->client.opened, 1);
  assert_in_range(cv_timer_now_ms(&world->loop) - begin_ms, CV_DIAL_ATTEMPT_MS - 1, 3 * CV_DIAL_ATTEMPT_MS);
  expect_at(world, broker);
  assert_int_equal(world->client.failed, 0);
}

static void a_process_that_stands_still_costs_one_short_attempt(void **state) {
  struct world *world = *state;
  hold(&spots[0], true, false);
  struct spot *broker = serve_at(world, 1);
  uint64_t begin_ms = dial_spots(world, 2);
  wait_for(world, &world->client.opened, 1);
  assert_in_range(cv_timer_now_ms(&world->loop) - begin_ms, CV_DIAL_ATTEMPT_MS - 1, 3 * CV_DIAL_ATTEMPT_MS);
  expect_at(world, broker);
}

/* Else a host that needs longer would never be reached. */
static void an_attempt_gets_more_time_in_each_cycle(void **state) {
  struct world *world = *state;
  hold(&spots[0], true, false);
  hold(&spots[1], false, false);
  (void)dial_spots(world, 2);
  static const unsigned limit_ms[] = {CV_DIAL_ATTEMPT_MS, 2 * CV_DIAL_ATTEMPT_MS, CV_DIAL_ATTEMPT_MOST_MS};
  for (unsigned i = 0; i < CV_COUNT(limit_ms); i++) {
    char expected[64];
    wait_for(world, &world->client.failed, i + 1);
    (void)snprintf(expected, sizeof(expected), "no TLS handshake within %u ms", limit_ms[i]);
    assert_non_null(strstr(world->client.why.text, expected));
  }
}

static void another_party_at_an_address_is_passed_over(void **state) {
  struct world *world = *state;
  struct cv_tls *other = make_tls(world, "other", "other", "crowdveil:broker/main", 3600, 1u << CV_ROLE_WORKER, true);
  listen_at(world, &spots[0], other);
  cv_tls_unref(other);
  struct spot *broker = serve_at(world, 1);
  (void)dial_spots(world, 2);
  wait_for(world, &world->client.opened, 1);
  expect_at(world, broker);
  assert_int_equal(world->client.failed, 0);
  /* If there is no other one, its fault is told. */
  stop_spot(world, broker);
  wait_for(world, &world->client.failed, 1);
  assert_non_null(strstr(world->client.why.text, spots[0].address));
  assert_non_null(strstr(world->client.why.text, "certificate"));
  assert_non_null(strstr(world->client.why.text, "connection refused"));
}

static void after_a_loss_the_next_address_comes_first(void **state) {
  struct world *world = *state;
  struct spot *one = serve_at(world, 0), *two = serve_at(world, 1), *three = serve_at(world, 2);
  (void)dial_spots(world, 3);
  wait_for(world, &one->side.opened, 1);
  wait_for(world, &world->client.opened, 1);
  expect_at(world, one);
  move(world, one, two);
  move(world, two, three);
  move(world, three, one);
  assert_int_equal(world->client.failed, 0);
}

/* Both refuse for a while: nothing is active; then the second one is. */
static void a_client_comes_back_to_whichever_is_active(void **state) {
  struct world *world = *state;
  struct spot *one = serve_at(world, 0), *two = serve_at(world, 1);
  stop_spot(world, two);
  (void)dial_spots(world, 2);
  wait_for(world, &world->client.opened, 1);
  expect_at(world, one);
  stop_spot(world, one);
  unsigned failed = world->client.failed;
  wait_for(world, &world->client.failed, failed + 2);
  two = serve_at(world, 1);
  wait_for(world, &world->client.opened, 2);
  expect_at(world, two);
}

/* ---- sessions ---- */

static bool is_resumed(const struct spot *spot) {
  return SSL_session_reused(spot->side.peer->conn.ssl);
}

/* Both brokers could resume the tickets of each other here, so that a ticket at the wrong address is seen. */
static void each_address_has_its_own_session(void **state) {
  struct world *world = *state;
  struct cv_tls *tls = broker_tls(world);
  struct spot *one = &spots[0], *two = &spots[1];
  listen_at(world, one, tls);
  listen_at(world, two, tls);
  (void)dial_spots(world, 2);
  wait_for(world, &one->side.opened, 1);
  wait_for(world, &world->client.opened, 1);
  assert_false(is_resumed(one));
  move(world, one, two);
  assert_false(is_resumed(two));
  move(world, two, one);
  assert_true(is_resumed(one));
  move(world, one, two);
  assert_true(is_resumed(two));
  cv_tls_unref(tls);
}

static void a_session_is_kept_while_its_address_refuses(void **state) {
  struct world *world = *state;
  struct cv_tls *tls = broker_tls(world);
  struct spot *one = &spots[0];
  listen_at(world, one, tls);
  hold(&spots[1], false, false);
  (void)dial_spots(world, 2);
  wait_for(world, &one->side.opened, 1);
  wait_for(world, &world->client.opened, 1);
  stop_spot(world, one);
  unsigned failed = world->client.failed;
  wait_for(world, &world->client.failed, failed + 2);
  listen_at(world, one, tls);
  wait_for(world, &one->side.opened, 2);
  assert_true(is_resumed(one));
  cv_tls_unref(tls);
}

/* ---- knocks ---- */

struct heard {
  unsigned over;
  bool answered;
};

static void on_over(void *data, bool answered) {
  struct heard *heard = data;
  heard->over++;
  heard->answered = answered;
}

static struct cv_knock *knock_at(struct world *world, const char *text, struct heard *heard) {
  struct cv_address address;
  struct cv_why why;
  struct cv_knock *knock;
  assert_int_equal(cv_address_parse(text, &address, &why), CV_OK);
  uv_update_time(&world->loop);
  assert_int_equal(cv_knock_start(&world->loop, &address, CV_DIAL_ATTEMPT_MS, on_over, heard, &knock), CV_OK);
  return knock;
}

/* Returns how long it takes. */
static uint64_t expect_knock(struct world *world, const char *text, bool answered) {
  struct heard heard = {0};
  (void)knock_at(world, text, &heard);
  uint64_t begin_ms = cv_timer_now_ms(&world->loop);
  wait_for(world, &heard.over, 1);
  assert_int_equal(heard.answered, answered);
  uint64_t took_ms = cv_timer_now_ms(&world->loop) - begin_ms;
  (void)uv_run(&world->loop, UV_RUN_DEFAULT);
  assert_int_equal(heard.over, 1);
  return took_ms;
}

static void only_a_process_answers_a_knock(void **state) {
  struct world *world = *state;
  hold(&spots[0], false, false);
  hold(&spots[1], true, false);
  hold(&spots[2], true, true);
  assert_in_range(expect_knock(world, spots[0].address, false), 0, CV_DIAL_ATTEMPT_MS / 2);
  assert_in_range(expect_knock(world, spots[1].address, false), CV_DIAL_ATTEMPT_MS - 1, 3 * CV_DIAL_ATTEMPT_MS);
  assert_in_range(expect_knock(world, spots[2].address, false), CV_DIAL_ATTEMPT_MS - 1, 3 * CV_DIAL_ATTEMPT_MS);
  (void)expect_knock(world, "no.such.host.invalid:7401", false);
}

static void a_listener_answers_a_knock_and_tells_nobody(void **state) {
  struct world *world = *state;
  struct spot *broker = serve_at(world, 0);
  struct heard heard = {0};
  (void)knock_at(world, broker->address, &heard);
  wait_for(world, &heard.over, 1);
  assert_true(heard.answered);
  assert_int_equal(broker->side.opened, 0);
}

static void a_knock_stops_at_any_moment(void **state) {
  struct world *world = *state;
  hold(&spots[0], false, false);
  hold(&spots[1], true, false);
  struct heard heard = {0};
  for (unsigned turns = 0; turns < 20; turns++) {
    struct cv_knock *knock = knock_at(world, spots[1].address, &heard);
    for (unsigned i = 0; i < turns; i++) {
      (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    cv_knock_stop(knock);
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
  }
  assert_int_equal(heard.over, 0);
}

/* ---- silence ---- */

/* The broker says something in each turn, or nothing if NULL. */
static void run_for(struct world *world, uint64_t ms, const struct spot *speaks) {
  uint64_t begin_ms = cv_timer_now_ms(&world->loop);
  while (cv_timer_now_ms(&world->loop) - begin_ms < ms) {
    assert_true(speaks == NULL || cv_peer_send(speaks->side.peer, "x", 1) == CV_OK);
    wait_for(world, &world->ticks, world->ticks + 1);
  }
}

/* How many have knocked at a spot that takes connections and says nothing. */
static unsigned knocks_at(const struct spot *spot) {
  unsigned count = 0;
  for (int fd; (fd = accept4(spot->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0; count++) {
    (void)close(fd);
  }
  return count;
}

static struct spot *connect_to_first(struct world *world, size_t n) {
  struct spot *one = serve_at(world, 0);
  (void)dial_spots(world, n);
  wait_for(world, &one->side.opened, 1);
  wait_for(world, &world->client.opened, 1);
  expect_at(world, one);
  return one;
}

static void a_silent_broker_is_left_for_one_that_answers(void **state) {
  struct world *world = *state;
  hold(&spots[1], false, false);
  struct spot *three = serve_at(world, 2);
  struct spot *one = connect_to_first(world, 3);
  uint64_t begin_ms = cv_timer_now_ms(&world->loop);
  wait_for(world, &world->client.opened, 2);
  assert_in_range(cv_timer_now_ms(&world->loop) - begin_ms, CV_DIAL_SILENCE_MS - 50, 4 * CV_DIAL_SILENCE_MS);
  expect_at(world, three);
  char expected[128];
  (void)snprintf(expected, sizeof(expected), "%s: silent, while %s answers", one->address, three->address);
  assert_string_equal(world->client.why.text, expected);
  assert_int_equal(world->client.failed, 0);
  /* Both answer here, which is a mistake: there is no back and forth. */
  run_for(world, CV_DIAL_STAY_MS - 1000, NULL);
  expect_at(world, three);
  wait_for(world, &world->client.opened, 3);
  expect_at(world, one);
}

/* A standby, one that stands still, and a host that is off. */
static void a_silent_broker_is_kept_while_no_process_answers(void **state) {
  struct world *world = *state;
  hold(&spots[1], false, false);
  hold(&spots[2], true, false);
  hold(&spots[3], true, true);
  (void)fcntl(spots[2].fd, F_SETFL, O_NONBLOCK);
  struct spot *one = connect_to_first(world, 4);
  run_for(world, 4 * CV_DIAL_SILENCE_MS, NULL);
  expect_at(world, one);
  assert_int_equal(world->client.closed, 0);
  assert_in_range(knocks_at(&spots[2]), 1, 5);
}

static void nobody_knocks_while_the_broker_speaks(void **state) {
  struct world *world = *state;
  hold(&spots[1], true, false);
  (void)fcntl(spots[1].fd, F_SETFL, O_NONBLOCK);
  struct spot *two = serve_at(world, 2);
  struct spot *one = connect_to_first(world, 3);
  run_for(world, 3 * CV_DIAL_SILENCE_MS, one);
  assert_int_equal(knocks_at(&spots[1]), 0);
  assert_int_equal(world->client.closed, 0);
  wait_for(world, &two->side.opened, 1);
}

/* What it has to say waits for us. */
static void a_paused_broker_is_not_silent(void **state) {
  struct world *world = *state;
  (void)serve_at(world, 1);
  struct spot *one = connect_to_first(world, 2);
  cv_peer_pause(world->client.peer);
  run_for(world, 3 * CV_DIAL_SILENCE_MS, NULL);
  expect_at(world, one);
  assert_int_equal(world->client.closed, 0);
}

/* ---- the end ---- */

/* At any moment of a cycle, of which the second address is the silent one. */
static void a_dialer_stops_in_any_cycle(void **state) {
  struct world *world = *state;
  hold(&spots[0], false, false);
  hold(&spots[1], true, false);
  for (unsigned turns = 0; turns < 40; turns++) {
    (void)dial_spots(world, 2);
    for (unsigned i = 0; i < turns; i++) {
      (void)uv_run(&world->loop, UV_RUN_NOWAIT);
    }
    cv_dialer_stop(world->dialer);
    world->dialer = NULL;
    (void)uv_run(&world->loop, UV_RUN_DEFAULT);
  }
  assert_int_equal(world->client.opened, 0);
}

static void a_dialer_stops_while_it_knocks(void **state) {
  struct world *world = *state;
  hold(&spots[1], true, false);
  (void)connect_to_first(world, 2);
  run_for(world, 2 * CV_DIAL_SILENCE_MS, NULL);
  cv_dialer_stop(world->dialer);
  world->dialer = NULL;
  wait_for(world, &world->client.closed, 1);
}

int main(void) {
#define DIALED(test) cmocka_unit_test_setup_teardown(test, spots_setup, spots_teardown)
  const struct CMUnitTest tests[] = {
      DIALED(refused_addresses_cost_no_pause),
      DIALED(whole_cycles_back_off_for_half_a_second_at_most),
      DIALED(with_one_address_the_back_off_grows_on),
      DIALED(a_host_that_is_off_costs_one_short_attempt),
      DIALED(a_process_that_stands_still_costs_one_short_attempt),
      DIALED(an_attempt_gets_more_time_in_each_cycle),
      DIALED(another_party_at_an_address_is_passed_over),
      DIALED(after_a_loss_the_next_address_comes_first),
      DIALED(a_client_comes_back_to_whichever_is_active),
      DIALED(each_address_has_its_own_session),
      DIALED(a_session_is_kept_while_its_address_refuses),
      DIALED(only_a_process_answers_a_knock),
      DIALED(a_listener_answers_a_knock_and_tells_nobody),
      DIALED(a_knock_stops_at_any_moment),
      DIALED(a_silent_broker_is_left_for_one_that_answers),
      DIALED(a_silent_broker_is_kept_while_no_process_answers),
      DIALED(nobody_knocks_while_the_broker_speaks),
      DIALED(a_paused_broker_is_not_silent),
      DIALED(a_dialer_stops_in_any_cycle),
      DIALED(a_dialer_stops_while_it_knocks),
  };
  return cmocka_run_group_tests_name("dialer", tests, NULL, NULL);
}
