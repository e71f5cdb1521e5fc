/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Throughput of one TLS connection over loopback: a sender and a receiver, a thread and a loop each.
 *
 *   bench-net [SECONDS]
 *
 * Prints, for each frame size, frames and bytes a second and the CPU time of each thread as a share of the wall time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/net/dialer.h"
#include "common/net/listener.h"
#include "deploy/launcher/pki/pki.h"

enum { YEAR_S = 365 * 86400, QUEUE_LOW = 1024 * 1024, QUEUE_HIGH = 2 * 1024 * 1024 };

struct end {
  uv_loop_t loop;
  uv_check_t check;
  uv_idle_t idle;
  struct cv_listener *listener;
  struct cv_dialer *dialer;
  struct cv_peer *peer;
  size_t frame_n;
  uint64_t frames, bytes;
  double cpu_s;
};

static atomic_bool stop;
static uint8_t payload[256 * 1024];

static double seconds_of(clockid_t id) {
  struct timespec now;
  (void)clock_gettime(id, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void die(const struct cv_why *why) {
  (void)fprintf(stderr, "bench-net: %s\n", why->text);
  exit(1);
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  ((struct end *)cv_peer_data(peer))->peer = peer;
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct end *end = cv_peer_data(peer);
  end->frames++;
  end->bytes += n;
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  ((struct end *)cv_peer_data(peer))->peer = NULL;
}

static void on_failed(void *data, const struct cv_why *why) {
  die(why);
}

static const struct cv_peer_ops OPS = {on_opened, on_frame, on_closed};

/* Keeps the queue between two marks, as a producer with back-pressure does. */
static void produce(uv_check_t *check) {
  struct end *end = check->data;
  if (atomic_load(&stop)) {
    cv_dialer_stop(end->dialer);
    end->dialer = NULL;
    uv_close((uv_handle_t *)&end->check, NULL);
    uv_close((uv_handle_t *)&end->idle, NULL);
    return;
  }
  if (end->peer == NULL || cv_peer_queued(end->peer) > QUEUE_LOW) {
    return;
  }
  while (cv_peer_queued(end->peer) < QUEUE_HIGH && cv_peer_send(end->peer, payload, end->frame_n) == CV_OK) {
  }
}

static void on_idle(uv_idle_t *idle) {
}

static void *run(void *data) {
  struct end *end = data;
  (void)uv_run(&end->loop, UV_RUN_DEFAULT);
  end->cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  return NULL;
}

static struct cv_tls *make_tls(const char *folder, const char *identity, enum cv_role own, enum cv_role peer,
                               bool server) {
  static const char *const local[] = {"localhost", "127.0.0.1"};
  struct cv_pki_request request = {.identity = identity, .hosts = local, .hosts_n = CV_COUNT(local), .valid_s = YEAR_S};
  struct cv_pki_files files;
  struct cv_why why;
  struct cv_tls *tls;
  char ca[128];
  if (cv_pki_issue(folder, folder, &request, &files, &why) != CV_OK) {
    die(&why);
  }
  (void)snprintf(ca, sizeof(ca), "%s/ca.pem", folder);
  struct cv_tls_files with = {.ca = ca, .cert = files.cert, .key = files.key};
  if (cv_tls_new(&with, own, (struct cv_tls_peers){.roles = 1u << peer}, server, &tls, &why) != CV_OK) {
    die(&why);
  }
  return tls;
}

static void measure(struct cv_tls *server, struct cv_tls *client, size_t frame_n, double seconds) {
  struct end receiver = {0};
  struct end sender = {.frame_n = frame_n};
  struct cv_why why;
  char address[32];
  (void)uv_loop_init(&receiver.loop);
  (void)uv_loop_init(&sender.loop);
  if (cv_listener_start(&receiver.loop, "127.0.0.1:0", server, &OPS, &receiver, &CV_NET_DEFAULTS, &receiver.listener,
                        &why) != CV_OK) {
    die(&why);
  }
  (void)snprintf(address, sizeof(address), "127.0.0.1:%u", cv_listener_port(receiver.listener));
  if (cv_dialer_start(&sender.loop, address, client, &OPS, &sender, on_failed, &CV_NET_DEFAULTS, 1, &sender.dialer,
                      &why) != CV_OK) {
    die(&why);
  }
  (void)uv_check_init(&sender.loop, &sender.check);
  (void)uv_idle_init(&sender.loop, &sender.idle); /* so that the loop looks at the queue without being asked */
  sender.check.data = &sender;
  (void)uv_check_start(&sender.check, produce);
  (void)uv_idle_start(&sender.idle, on_idle);
  atomic_store(&stop, false);
  pthread_t threads[2];
  double start = seconds_of(CLOCK_MONOTONIC);
  (void)pthread_create(&threads[0], NULL, run, &sender);
  while (seconds_of(CLOCK_MONOTONIC) - start < seconds) {
    (void)uv_run(&receiver.loop, UV_RUN_ONCE);
  }
  atomic_store(&stop, true);
  double cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  double wall = seconds_of(CLOCK_MONOTONIC) - start;
  uint64_t frames = receiver.frames;
  uint64_t bytes = receiver.bytes;
  cv_listener_stop(receiver.listener);
  (void)uv_run(&receiver.loop, UV_RUN_DEFAULT);
  (void)pthread_join(threads[0], NULL);
  static double cpu_before;
  (void)printf("%7zu bytes: %10.0f frames/s %8.1f MB/s  processor: sender %.0f %% receiver %.0f %%\n", frame_n,
               (double)frames / wall, (double)bytes / wall / 1e6, 100 * sender.cpu_s / wall,
               100 * (cpu - cpu_before) / wall);
  cpu_before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  (void)uv_loop_close(&receiver.loop);
  (void)uv_loop_close(&sender.loop);
}

int main(int argc, char **argv) {
  static const size_t sizes[] = {16, 64, 256, 1024, 16 * 1024, 256 * 1024};
  double seconds = argc > 1 ? strtod(argv[1], NULL) : 1;
  if (!(seconds > 0) || argc > 2) {
    (void)fprintf(stderr, "usage: bench-net [SECONDS]\n");
    return 2;
  }
  char folder[] = "/tmp/crowdveil-bench-XXXXXX";
  char command[64];
  struct cv_why why;
  if (mkdtemp(folder) == NULL || cv_pki_make_ca(folder, "bench", YEAR_S, &why) != CV_OK) {
    (void)fprintf(stderr, "bench-net: cannot make certificates in %s\n", folder);
    return 1;
  }
  struct cv_tls *server = make_tls(folder, "broker/b", CV_ROLE_BROKER, CV_ROLE_WORKER, true);
  struct cv_tls *client = make_tls(folder, "worker/1", CV_ROLE_WORKER, CV_ROLE_BROKER, false);
  for (size_t i = 0; i < CV_COUNT(sizes); i++) {
    measure(server, client, sizes[i], seconds);
  }
  cv_tls_unref(server);
  cv_tls_unref(client);
  (void)snprintf(command, sizeof(command), "rm -r %s", folder);
  return system(command) == 0 ? 0 : 1;
}
