/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over real TLS connections through loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

/* Small and large ones mixed, both ways at once: everything arrives, whole and in order. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_identities, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_frames_both_ways, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
