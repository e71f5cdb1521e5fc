/* SPDX-License-Identifier: Apache-2.0 */
/* Calling addresses: how many hellos of each are answered, which connection is closed, and what is stored about
 * them. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <arpa/inet.h>
#include <netinet/in.h>

#include "common/net/callers.h"

enum { HELLOS = 10, MINUTE_MS = 60000 };

struct world {
  struct cv_callers *callers;
  uint64_t now_ms;
};

static void begin(struct world *world) {
  *world = (struct world){.now_ms = 5};
  assert_int_equal(cv_callers_new(HELLOS, &world->callers), CV_OK);
}

static struct cv_caller *enter4(struct world *world, uint32_t address) {
  const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};
  struct cv_caller *caller;
  assert_int_equal(cv_callers_enter(world->callers, (const struct sockaddr *)&from, world->now_ms, &caller), CV_OK);
  return caller;
}

static struct cv_caller *enter6(struct world *world, const char *address) {
  struct sockaddr_in6 from = {.sin6_family = AF_INET6};
  struct cv_caller *caller;
  assert_int_equal(inet_pton(AF_INET6, address, &from.sin6_addr), 1);
  assert_int_equal(cv_callers_enter(world->callers, (const struct sockaddr *)&from, world->now_ms, &caller), CV_OK);
  return caller;
}

static void leave(struct world *world, struct cv_caller *caller, bool let_in) {
  cv_callers_leave(world->callers, caller, let_in, world->now_ms);
}

/* The number of hellos answered, of this many that come at once. */
static unsigned answered(struct world *world, struct cv_caller *caller, unsigned n) {
  unsigned count = 0;
  for (unsigned i = 0; i < n; i++) {
    count += cv_callers_answer(world->callers, caller, world->now_ms);
  }
  return count;
}

static void test_so_many_a_second(void **state) {
  struct world world;
  begin(&world);
  struct cv_caller *caller = enter4(&world, 1), *other = enter4(&world, 2);
  assert_int_equal(answered(&world, caller, 1000), HELLOS);
  assert_int_equal(answered(&world, other, 1000), HELLOS);
  world.now_ms += 1000 / HELLOS - 1;
  assert_int_equal(answered(&world, caller, 1000), 0);
  world.now_ms++;
  assert_int_equal(answered(&world, caller, 1000), 1);
  world.now_ms += MINUTE_MS; /* no more is saved up than one second's share */
  assert_int_equal(answered(&world, caller, 1000), HELLOS);
  /* An address that comes again is recognised. */
  leave(&world, caller, false);
  assert_ptr_equal(enter4(&world, 1), caller);
  assert_int_equal(answered(&world, caller, 1000), 0);
  cv_callers_free(world.callers);
}

/* A thousand addresses get no more than four; those that have completed a handshake get theirs all the same. */
static void test_strangers_share(void **state) {
  struct world world;
  begin(&world);
  struct cv_caller *known = enter4(&world, 1);
  leave(&world, known, true);
  unsigned count = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    count += answered(&world, enter4(&world, 100 + i), HELLOS);
  }
  assert_int_equal(count, 4 * HELLOS);
  known = enter4(&world, 1);
  assert_int_equal(answered(&world, known, 1000), HELLOS);
  world.now_ms += 10 * MINUTE_MS; /* forgotten */
  struct cv_caller *stranger = enter4(&world, 2000);
  assert_int_equal(answered(&world, stranger, 1), 1);
  for (uint32_t i = 0; i < 1000; i++) {
    (void)answered(&world, enter4(&world, 5000 + i), HELLOS);
  }
  assert_int_equal(answered(&world, known, 1000), 0);
  cv_callers_free(world.callers);
}

static void test_what_an_address_is(void **state) {
  static const struct {
    const char *a, *b;
    bool same;
  } cases[] = {
      {"2001:db8:0:1::1", "2001:db8:0:1:ffff::9", true},
      {"2001:db8:0:1::1", "2001:db8:0:2::1", false},
      {"::ffff:10.0.0.1", "::ffff:10.0.0.1", true},
      {"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
      {"::1", "::2", true},
  };
  struct world world;
  for (size_t i = 0; i < CV_COUNT(cases); i++) {
    begin(&world);
    assert_int_equal(enter6(&world, cases[i].a) == enter6(&world, cases[i].b), cases[i].same);
    cv_callers_free(world.callers);
  }
  begin(&world);
  assert_ptr_equal(enter6(&world, "::ffff:10.0.0.1"), enter4(&world, 0x0a000001));
  struct cv_caller *nobody;
  assert_int_equal(cv_callers_enter(world.callers, NULL, world.now_ms, &nobody), CV_OK);
  assert_ptr_not_equal(nobody, enter4(&world, 0));
  cv_callers_free(world.callers);
}

/* A flood is closed in favour of all others, an unknown address in favour of a known one that has no more than four. */
static void test_which_connection_is_closed(void **state) {
  struct world world;
  begin(&world);
  struct cv_caller *flood = enter4(&world, 1), *stranger = enter4(&world, 2), *known = enter4(&world, 3);
  leave(&world, known, true);
  (void)enter4(&world, 1);
  assert_true(cv_caller_claim(flood, world.now_ms) > cv_caller_claim(stranger, world.now_ms));
  for (int i = 1; i <= 4; i++) {
    known = enter4(&world, 3);
    assert_int_equal(cv_caller_claim(known, world.now_ms), 0);
  }
  (void)enter4(&world, 3);
  assert_true(cv_caller_claim(known, world.now_ms) > cv_caller_claim(flood, world.now_ms));
  cv_callers_free(world.callers);
}

/* The table is bounded, and a flood of unknown addresses removes no known one. */
static void test_memory_is_bounded(void **state) {
  struct world world;
  begin(&world);
  leave(&world, enter4(&world, 1), true);
  struct cv_caller *stays = enter4(&world, 2);
  assert_int_equal(answered(&world, stays, HELLOS), HELLOS);
  for (uint32_t i = 0; i < 3 * CV_CALLERS_KEPT; i++) {
    leave(&world, enter4(&world, 1000 + i), false);
  }
  assert_int_equal(answered(&world, stays, HELLOS), 0);
  struct cv_caller *known = enter4(&world, 1);
  assert_int_equal(cv_caller_claim(known, world.now_ms), 0);
  assert_int_equal(cv_callers_count(world.callers), CV_CALLERS_KEPT + 2);
  cv_callers_free(world.callers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_so_many_a_second),   cmocka_unit_test(test_strangers_share),
      cmocka_unit_test(test_what_an_address_is), cmocka_unit_test(test_which_connection_is_closed),
      cmocka_unit_test(test_memory_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
