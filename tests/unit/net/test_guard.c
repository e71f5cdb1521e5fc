/* SPDX-License-Identifier: Apache-2.0 */
/* Which connections of a server leave: floods from one address and from thousands, and times. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "common/admin/forwarded.h"
#include "common/admin/guard.h"

enum { MOST = 8192, ATTACKER = 7, HONEST = 8, MANY = 5000 };

/* A connection as its server has it. */
struct held {
  struct cv_guest *guest;
  bool is_dropped;
};

struct world {
  struct cv_guard *guard;
  struct held held[MOST];
  size_t used;
  uint64_t now_ms;
};

static void drop(void *whose) {
  struct held *held = whose;
  assert_false(held->is_dropped);
  held->is_dropped = true;
}

static int setup(void **state) {
  static const struct cv_guard_limits limits = {
      .connections = 1024, .address = 256, .heads = 128, .most = MOST, .ms = {5000, 5000, 30000, 15000}};
  struct world *world = calloc(1, sizeof(*world));
  assert_non_null(world);
  world->now_ms = 1000;
  assert_int_equal(cv_guard_new(&limits, drop, &world->guard), CV_OK);
  *state = world;
  return 0;
}

static int teardown(void **state) {
  struct world *world = *state;
  for (size_t i = 0; i < world->used; i++) {
    cv_guard_leave(world->guard, world->held[i].guest);
  }
  cv_guard_free(world->guard);
  free(world);
  return 0;
}

static struct held *enter_as(struct world *world, uint64_t address, bool is_crowd) {
  struct held *held = &world->held[world->used++];
  assert_int_equal(cv_guard_enter(world->guard, address, is_crowd, held, world->now_ms, &held->guest), CV_OK);
  return held;
}

static struct held *enter(struct world *world, uint64_t address) {
  return enter_as(world, address, false);
}

static void move(struct world *world, struct held *held, enum cv_guest_state to) {
  cv_guard_move(world->guard, held->guest, to, world->now_ms);
}

static void expire(struct world *world, uint64_t now_ms) {
  world->now_ms = now_ms;
  cv_guard_expire(world->guard, now_ms);
}

static size_t dropped(const struct world *world) {
  size_t count = 0;
  for (size_t i = 0; i < world->used; i++) {
    count += world->held[i].is_dropped;
  }
  return count;
}

static void test_a_flood_pushes_out_itself(void **state) {
  struct world *world = *state;
  struct held *first = enter(world, ATTACKER), *honest = enter(world, HONEST);
  for (int i = 0; i < MANY; i++) {
    (void)enter(world, ATTACKER);
  }
  assert_true(first->is_dropped);
  assert_false(honest->is_dropped);
  assert_int_equal(world->used - dropped(world), 128);
  /* somebody at the attacker's own address, whose head arrives before 127 more heads */
  struct held *neighbour = enter(world, ATTACKER);
  for (int i = 0; i < 100; i++) {
    (void)enter(world, ATTACKER);
  }
  assert_false(neighbour->is_dropped);
}

static void test_a_flood_from_many_addresses_leaves_the_newest(void **state) {
  struct world *world = *state;
  for (uint64_t i = 0; i < MANY; i++) {
    (void)enter(world, 100 + i);
    struct held *honest = enter(world, HONEST);
    move(world, honest, CV_GUEST_ANSWER);
    move(world, honest, CV_GUEST_WAITS);
    assert_false(honest->is_dropped);
    cv_guard_leave(world->guard, honest->guest);
    world->used--;
  }
  assert_int_equal(world->used - dropped(world), 127); /* the 128th made way for the last honest one */
  for (size_t i = 0; i < world->used; i++) {
    assert_int_equal(world->held[i].is_dropped, i < world->used - 127);
  }
}

/* Whatever is owed counts: kept connections, bodies, answers. */
static void test_an_address_has_so_many(void **state) {
  static const enum cv_guest_state states[] = {CV_GUEST_KEPT, CV_GUEST_BODY, CV_GUEST_ANSWER};
  struct world *world = *state;
  for (size_t i = 0; i < 256 + 50; i++) {
    move(world, enter(world, ATTACKER), states[i % 3]);
  }
  assert_int_equal(dropped(world), 50);
  for (size_t i = 0; i < 50; i++) {
    assert_true(world->held[i].is_dropped);
  }
}

static void test_who_waits_for_the_server_stays(void **state) {
  struct world *world = *state;
  for (size_t i = 0; i < 1024; i++) {
    move(world, enter(world, i % 2 == 0 ? ATTACKER : HONEST), CV_GUEST_WAITS);
  }
  assert_int_equal(dropped(world), 0);
  /* one too many: the newcomer owes, so it leaves */
  struct held *late = enter(world, 9);
  assert_true(late->is_dropped);
  assert_int_equal(dropped(world), 1);
  /* one that is answered owes the next request, and the next newcomer finds room */
  move(world, &world->held[0], CV_GUEST_KEPT);
  assert_false(world->held[0].is_dropped);
  struct held *next = enter(world, 9);
  assert_true(world->held[0].is_dropped);
  assert_false(next->is_dropped);
}

static void test_the_fullest_address_makes_way(void **state) {
  struct world *world = *state;
  for (uint64_t address = 1; address <= 4; address++) {
    for (int i = 0; i < 255; i++) {
      move(world, enter(world, address), CV_GUEST_KEPT);
    }
  }
  struct held *more = enter(world, 2);
  move(world, more, CV_GUEST_KEPT);
  assert_int_equal(dropped(world), 0);
  for (int i = 0; i < 10; i++) {
    move(world, enter(world, 10), CV_GUEST_KEPT);
  }
  assert_int_equal(dropped(world), 1021 + 10 - 1024);
  assert_true(world->held[255].is_dropped); /* the oldest of address 2 */
}

static void test_times_are_absolute(void **state) {
  struct world *world = *state;
  struct held *head = enter(world, 1), *body = enter(world, 2), *answer = enter(world, 3), *kept = enter(world, 4);
  struct held *waits = enter(world, 5);
  move(world, body, CV_GUEST_BODY);
  move(world, answer, CV_GUEST_ANSWER);
  move(world, kept, CV_GUEST_KEPT);
  move(world, waits, CV_GUEST_WAITS);
  assert_int_equal(cv_guard_due_ms(world->guard), 6000);
  expire(world, 5999);
  assert_int_equal(dropped(world), 0);
  expire(world, 6000);
  assert_true(head->is_dropped && body->is_dropped);
  assert_int_equal(cv_guard_due_ms(world->guard), 16000);
  expire(world, 15999);
  assert_false(kept->is_dropped);
  expire(world, 16000);
  assert_true(kept->is_dropped);
  move(world, answer, CV_GUEST_ANSWER); /* another piece */
  expire(world, 45999);
  assert_false(answer->is_dropped);
  expire(world, 46000);
  assert_true(answer->is_dropped);
  assert_int_equal(cv_guard_due_ms(world->guard), UINT64_MAX);
  expire(world, UINT64_MAX - 1);
  assert_false(waits->is_dropped);
}

static void test_a_crowd_has_no_limit_of_its_own(void **state) {
  struct world *world = *state;
  for (int i = 0; i < 1000; i++) {
    move(world, enter_as(world, ATTACKER, true), CV_GUEST_KEPT);
  }
  assert_int_equal(dropped(world), 0);
  /* but who is behind it has one */
  for (int i = 0; i < 300; i++) {
    cv_guard_rename(world->guard, world->held[i].guest, 77, false);
    move(world, &world->held[i], CV_GUEST_BODY);
  }
  assert_int_equal(dropped(world), 300 - 256);
  for (int i = 44; i < 300; i++) {
    cv_guard_rename(world->guard, world->held[i].guest, ATTACKER, true);
    move(world, &world->held[i], CV_GUEST_KEPT);
  }
  assert_int_equal(dropped(world), 300 - 256);
}

static bool forwarded(const char *xff, const char *standard, const char *expected) {
  struct cv_ip found, wanted;
  if (!cv_forwarded_read(xff, standard, &found)) {
    return expected == NULL;
  }
  return expected != NULL && cv_ip_read(expected, strlen(expected), &wanted) &&
         memcmp(&found, &wanted, sizeof(found)) == 0;
}

static void test_the_last_address_is_the_proxy_s(void **state) {
  assert_true(forwarded("192.0.2.1", NULL, "192.0.2.1"));
  assert_true(forwarded("198.51.100.1, 192.0.2.1", NULL, "192.0.2.1"));
  assert_true(forwarded("nonsense,,, \t192.0.2.1:4711 ", NULL, "192.0.2.1"));
  assert_true(forwarded("2001:db8::1", NULL, "2001:db8::1"));
  assert_true(forwarded("[2001:db8::1]", NULL, "2001:db8::1"));
  assert_true(forwarded("[2001:db8::1]:80", NULL, "2001:db8::1"));
  assert_true(
      forwarded(NULL, "for=198.51.100.1;by=203.0.113.9, By=203.0.113.9; For=192.0.2.1;proto=https", "192.0.2.1"));
  assert_true(forwarded(NULL, "for=\"[2001:db8::1]:4711\"", "2001:db8::1"));
  assert_true(forwarded("192.0.2.1", "for=192.0.2.1", "192.0.2.1"));
}

static void test_what_is_no_address_is_none(void **state) {
  static const char *const wrong[] = {"",
                                      " ",
                                      ",",
                                      "192.0.2.1,",
                                      "192.0.2.1, ",
                                      "unknown",
                                      "192.0.2.1 198.51.100.1",
                                      "192.0.2",
                                      "192.0.2.256",
                                      "192.0.2.1:",
                                      "192.0.2.1:x",
                                      "192.0.2.1:123456",
                                      "[2001:db8::1",
                                      "2001:db8::1]",
                                      "[192.0.2.1]",
                                      "::ffff:192.0.2.1x",
                                      "[]",
                                      "_hidden"};
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    assert_true(forwarded(wrong[i], NULL, NULL));
  }
  assert_true(forwarded(NULL, NULL, NULL));
  assert_true(forwarded(NULL, "by=192.0.2.1", NULL));
  assert_true(forwarded(NULL, "for=unknown", NULL));
  assert_true(forwarded(NULL, "for=\"192.0.2.1", NULL));
  assert_true(forwarded(NULL, "for=", NULL));
  /* who asks may have written the one that its proxy does not */
  assert_true(forwarded("192.0.2.1", "for=198.51.100.1", NULL));
}

static void test_proxies_are_named(void **state) {
  struct cv_proxies proxies;
  struct cv_why why;
  struct cv_ip ip;
  assert_int_equal(cv_proxies_read("192.0.2.1, 2001:db8::1", &proxies, &why), CV_OK);
  assert_true(cv_ip_read("192.0.2.1", 9, &ip) && cv_proxies_have(&proxies, &ip));
  assert_true(cv_ip_read("2001:db8::1", 11, &ip) && cv_proxies_have(&proxies, &ip));
  assert_true(cv_ip_read("2001:db8::2", 11, &ip) && !cv_proxies_have(&proxies, &ip));
  assert_true(cv_ip_read("127.0.0.1", 9, &ip) && !cv_proxies_have(&proxies, &ip));
  static const char *const wrong[] = {"",
                                      " , ",
                                      "proxy.example",
                                      "192.0.2.0/24",
                                      "192.0.2.1, x",
                                      "1.1.1.1 1.1.1.2 1.1.1.3 1.1.1.4 1.1.1.5 1.1.1.6 1.1.1.7 1.1.1.8 1.1.1.9"};
  for (size_t i = 0; i < CV_COUNT(wrong); i++) {
    assert_int_equal(cv_proxies_read(wrong[i], &proxies, &why), CV_ERR_FORMAT);
  }
}

static void test_a_network_counts_as_one(void **state) {
  static const char *const same[] = {"2001:db8:0:1::1", "2001:db8:0:1:ffff::9", "2001:db8:0:2::1"};
  uint64_t number[3];
  struct cv_ip ip;
  for (size_t i = 0; i < 3; i++) {
    assert_true(cv_ip_read(same[i], strlen(same[i]), &ip));
    number[i] = cv_ip_network(&ip);
  }
  assert_true(number[0] == number[1] && number[0] != number[2]);
  assert_true(cv_ip_read("::ffff:127.9.9.9", 16, &ip) && cv_ip_is_loopback(&ip));
  assert_true(cv_ip_read("::1", 3, &ip) && cv_ip_is_loopback(&ip));
  assert_true(cv_ip_read("128.0.0.1", 9, &ip) && !cv_ip_is_loopback(&ip));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_a_flood_pushes_out_itself, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_flood_from_many_addresses_leaves_the_newest, setup, teardown),
      cmocka_unit_test_setup_teardown(test_an_address_has_so_many, setup, teardown),
      cmocka_unit_test_setup_teardown(test_who_waits_for_the_server_stays, setup, teardown),
      cmocka_unit_test_setup_teardown(test_the_fullest_address_makes_way, setup, teardown),
      cmocka_unit_test_setup_teardown(test_times_are_absolute, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_crowd_has_no_limit_of_its_own, setup, teardown),
      cmocka_unit_test(test_the_last_address_is_the_proxy_s),
      cmocka_unit_test(test_what_is_no_address_is_none),
      cmocka_unit_test(test_proxies_are_named),
      cmocka_unit_test(test_a_network_counts_as_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
