/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "deploy/launcher/pki/pki.h"

enum { PATIENCE_MS = 20000, TICK_MS = 2, YEAR_S = 365 * 86400 };

/* Limits follow a clock of the tests, which goes on only while one of them waits, and five times as fast. */
enum { PASSES_MS = 5 * TICK_MS };
static struct cv_clock_file *clocks;

static void follow_clock(const struct world *world) {
  char path[128];
  struct cv_why why;
  (void)snprintf(path, sizeof(path), "%s/clock", world->folder);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  assert_true(fd >= 0 && ftruncate(fd, sizeof(*clocks)) == 0);
  clocks = mmap(NULL, sizeof(*clocks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  assert_ptr_not_equal(clocks, MAP_FAILED);
  (void)close(fd);
  clocks->mono_ms = cv_clock_mono_ms();
  clocks->wall_ms = cv_clock_wall_ms();
  if (cv_clock_follow(path, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

/* Ticks, so that the loop does not block if the condition holds already. */
static void on_tick(uv_timer_t *timer) {
  struct world *world = timer->data;
  world->ticks++;
  clocks->mono_ms += PASSES_MS;
  clocks->wall_ms += PASSES_MS;
}

static void start_ticks(struct world *world, uv_timer_t *timer) {
  assert_int_equal(uv_timer_init(&world->loop, timer), 0);
  timer->data = world;
  assert_int_equal(uv_timer_start(timer, on_tick, TICK_MS, TICK_MS), 0);
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  struct side *side = cv_peer_data(peer);
  assert_false(side->in_call);
  side->opened++;
  side->peer = peer;
  side->identity = *identity;
  if (side->on_open != NULL) {
    side->on_open(side);
  }
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct side *side = cv_peer_data(peer);
  assert_false(side->in_call);
  side->frames++;
  side->bytes += n;
  for (size_t i = 0; i < n; i++) {
    side->sum = side->sum * 31 + bytes[i];
  }
  if (side->on_frame != NULL) {
    side->on_frame(side, bytes, n);
  }
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  struct side *side = cv_peer_data(peer);
  assert_false(side->in_call);
  side->closed++;
  side->why = *why;
  side->refusal = cv_peer_refusal(peer);
  cv_refusals_add(&side->refusals, side->refusal);
  if (side->peer == peer) {
    side->peer = NULL;
  }
}

const struct cv_peer_ops SIDE_OPS = {on_opened, on_frame, on_closed};

void side_failed(void *data, const struct cv_why *why) {
  struct side *side = data;
  assert_false(side->in_call);
  side->failed++;
  side->why = *why;
}

void path_of(struct world *world, const char *name, char *ret, size_t size) {
  (void)snprintf(ret, size, "%s/%s", world->folder, name);
}

static void make_ca(struct world *world, const char *name) {
  char path[128];
  struct cv_why why;
  path_of(world, name, path, sizeof(path));
  if (cv_pki_make_ca(path, name, YEAR_S, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

int world_setup(void **state) {
  struct world *world = calloc(1, sizeof(*world));
  if (world == NULL || uv_loop_init(&world->loop) != 0) {
    return -1;
  }
  (void)snprintf(world->folder, sizeof(world->folder), "/tmp/crowdveil-net-XXXXXX");
  if (mkdtemp(world->folder) == NULL) {
    return -1;
  }
  world->limits = CV_NET_DEFAULTS;
  make_ca(world, "ca");
  make_ca(world, "other");
  if (clocks == NULL) {
    follow_clock(world);
  }
  *state = world;
  return 0;
}

void run_out(struct world *world) {
  uv_timer_t timer;
  start_ticks(world, &timer); /* a closing peer waits for the other side */
  uv_unref((uv_handle_t *)&timer);
  (void)uv_run(&world->loop, UV_RUN_DEFAULT);
  uv_close((uv_handle_t *)&timer, NULL);
  (void)uv_run(&world->loop, UV_RUN_DEFAULT);
}

int world_teardown(void **state) {
  struct world *world = *state;
  char command[128];
  cv_dialer_stop(world->dialer);
  cv_listener_stop(world->listener);
  if (world->server.peer != NULL) {
    cv_peer_close(world->server.peer, "end of test");
  }
  run_out(world);
  int status = uv_loop_close(&world->loop);
  assert_int_equal(world->server.opened > world->server.closed, 0);
  assert_int_equal(world->client.opened, world->client.closed);
  (void)snprintf(command, sizeof(command), "rm -rf %s", world->folder);
  status = system(command) != 0 || status != 0 ? -1 : 0;
  free(world);
  return status;
}

struct cv_tls *make_tls(struct world *world, const char *ca, const char *trust, const char *identity, int64_t valid_s,
                        unsigned peers, bool server) {
  return make_tls_for(world, ca, trust, identity, valid_s, (struct cv_tls_peers){.roles = peers}, server);
}

struct cv_tls *make_tls_for(struct world *world, const char *ca, const char *trust, const char *identity,
                            int64_t valid_s, struct cv_tls_peers peers, bool server) {
  static unsigned count;
  char ca_folder[128];
  char folder[128];
  char trusted[160];
  char name[32];
  struct cv_pki_files files;
  struct cv_why why;
  struct cv_identity own;
  (void)snprintf(name, sizeof(name), "party-%u", count++);
  path_of(world, ca, ca_folder, sizeof(ca_folder));
  path_of(world, name, folder, sizeof(folder));
  static const char *const local[] = {"localhost", "127.0.0.1"};
  struct cv_pki_request request = {
      .identity = identity, .hosts = local, .hosts_n = CV_COUNT(local), .valid_s = valid_s, .renew = true};
  if (cv_pki_issue(ca_folder, folder, &request, &files, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  (void)snprintf(trusted, sizeof(trusted), "%s/%s/ca.pem", world->folder, trust);
  assert_int_equal(cv_identity_parse(identity, &own, &why), CV_OK);
  struct cv_tls *tls = NULL;
  struct cv_tls_files with = {.ca = trusted, .cert = files.cert, .key = files.key};
  if (cv_tls_new(&with, own.role, peers, server, &tls, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  return tls;
}

struct cv_tls *broker_tls(struct world *world) {
  return make_tls(world, "ca", "ca", "crowdveil:broker/main", YEAR_S, 1u << CV_ROLE_WORKER | 1u << CV_ROLE_GATEWAY,
                  true);
}

struct cv_tls *worker_tls(struct world *world) {
  return make_tls(world, "ca", "ca", "crowdveil:worker/17", YEAR_S, 1u << CV_ROLE_BROKER, false);
}

void serve(struct world *world, struct cv_tls *tls) {
  struct cv_why why;
  const char *address = world->address[0] != '\0' ? world->address : "127.0.0.1:0";
  if (cv_listener_start(&world->loop, address, tls, &SIDE_OPS, &world->server, &world->limits, &world->listener,
                        &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  cv_tls_unref(tls);
  (void)snprintf(world->address, sizeof(world->address), "127.0.0.1:%u", cv_listener_port(world->listener));
}

void dial(struct world *world, struct cv_tls *tls) {
  struct cv_why why;
  if (cv_dialer_start(&world->loop, world->address, tls, &SIDE_OPS, &world->client, side_failed, &world->limits, 1,
                      &world->dialer, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  cv_tls_unref(tls);
}

static void turn_until(struct world *world, const unsigned *count, unsigned value, const size_t *bytes, size_t n) {
  uv_timer_t timer;
  bool late = false;
  start_ticks(world, &timer);
  uint64_t start = uv_now(&world->loop);
  while (!late && (count != NULL ? *count < value : *bytes < n)) {
    (void)uv_run(&world->loop, UV_RUN_ONCE);
    late = uv_now(&world->loop) - start > PATIENCE_MS;
  }
  uv_close((uv_handle_t *)&timer, NULL);
  (void)uv_run(&world->loop, UV_RUN_NOWAIT);
  if (late) {
    fail_msg("waited in vain; server: %s; client: %s", world->server.why.text, world->client.why.text);
  }
}

void wait_for(struct world *world, const unsigned *counter, unsigned value) {
  turn_until(world, counter, value, NULL, 0);
}

void wait_bytes(struct world *world, const size_t *counter, size_t value) {
  turn_until(world, NULL, 0, counter, value);
}

void connect_both(struct world *world) {
  serve(world, broker_tls(world));
  dial(world, worker_tls(world));
  wait_for(world, &world->server.opened, 1);
  wait_for(world, &world->client.opened, 1);
}
