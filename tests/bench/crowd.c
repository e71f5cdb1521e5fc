/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crowd in one process: a gateway for each certificate, which says its hello, stays connected, and comes back when
 * the connection is lost, as a worker's program does. It gives no tokens.
 *
 *   bench-crowd ADDRESSES BROKER-NAME CA
 *
 * Each line of standard input is a certificate's path, a space, and its key's. Runs until it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/hello.h"
#include "common/net/dialer.h"
#include "proto/codec/crowd.h"

static struct cv_buf hello;

static void die(const char *what) {
  (void)fprintf(stderr, "bench-crowd: %s\n", what);
  exit(1);
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  if (cv_peer_send(peer, hello.data, hello.len) != CV_OK) {
    cv_peer_close(peer, "cannot send the hello");
  }
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
}

static const struct cv_peer_ops OPS = {on_opened, on_frame, on_closed};

static void make_hello(void) {
  const struct cv_crowd_frame frame = {
      .hello = {.present = true, .version = CV_WIRE_VERSION, .program = "crowdveil-worker"}};
  struct cv_arena scratch;
  if (cv_arena_init(&scratch, CV_ARENA_BYTES) != CV_OK || cv_crowd_encode(&frame, &scratch, &hello) != CV_OK) {
    die("no memory");
  }
  cv_arena_fini(&scratch);
}

static void join(uv_loop_t *loop, const char *addresses, struct cv_tls_peers broker, const struct cv_tls_files *files,
                 uint64_t seed) {
  struct cv_tls *tls;
  struct cv_dialer *dialer;
  struct cv_why why;
  if (cv_tls_new(files, CV_ROLE_GATEWAY, broker, false, &tls, &why) != CV_OK ||
      cv_dialer_start(loop, addresses, tls, &OPS, NULL, NULL, &CV_NET_DEFAULTS, seed, &dialer, &why) != CV_OK) {
    die(why.text);
  }
}

int main(int argc, char **argv) {
  char line[2048];
  uv_loop_t loop;
  if (argc != 4) {
    die("usage: bench-crowd ADDRESSES BROKER-NAME CA");
  }
  if (uv_loop_init(&loop) != 0) {
    die("no event loop");
  }
  make_hello();
  const struct cv_tls_peers broker = {.roles = 1u << CV_ROLE_BROKER, .names = argv[2]};
  for (uint64_t seed = 1; fgets(line, sizeof(line), stdin) != NULL; seed++) {
    char *key = strchr(line, ' ');
    if (key == NULL) {
      die("expected a certificate's path, a space, and its key's");
    }
    *key++ = '\0';
    key[strcspn(key, "\n")] = '\0';
    join(&loop, argv[1], broker, &(struct cv_tls_files){.ca = argv[3], .cert = line, .key = key}, seed);
  }
  return uv_run(&loop, UV_RUN_DEFAULT);
}
