/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of connections: a CA and certificates in a fresh folder, one loop, and two sides that count. */
#ifndef CV_TESTS_NET_WORLD_H
#define CV_TESTS_NET_WORLD_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/buf.h"
#include "common/net/dialer.h"
#include "common/net/listener.h"

/* One end: everything that its owner is called with. */
struct side {
  unsigned opened, closed, failed;
  size_t frames, bytes;
  struct cv_peer *peer;        /* the one opened last, NULL once it is closed */
  struct cv_identity identity; /* of the other side */
  struct cv_why why;           /* last end or failure */
  enum cv_refusal refusal;     /* of the last end */
  struct cv_refusals refusals; /* of all */
  uint64_t sum;                /* over all bytes of all frames, in order */
  void (*on_open)(struct side *side);
  void (*on_frame)(struct side *side, const uint8_t *bytes, size_t n);
  bool in_call; /* set by a test around its own calls, during which no callback may run */
};

struct world {
  uv_loop_t loop;
  char folder[64]; /* has ca/ and other/, two CAs, and certificates issued by issue() */
  struct cv_net_limits limits;
  unsigned ticks; /* of 2 ms or more, while it was waited for something; limits take them for 10 ms */
  struct cv_listener *listener;
  struct cv_dialer *dialer;
  struct side server, client;
  char address[32]; /* the listener's */
};

extern const struct cv_peer_ops SIDE_OPS; /* data is a struct side */
void side_failed(void *data, const struct cv_why *why);

/* cmocka fixtures: *state is a struct world. Tearing down fails the test if a handle is left. */
int world_setup(void **state);
int world_teardown(void **state);

/* A certificate by the CA in folder `ca`, valid for so many seconds, and a context with it that trusts CA `trust`. */
struct cv_tls *make_tls(struct world *world, const char *ca, const char *trust, const char *identity, int64_t valid_s,
                        unsigned peers, bool server);
/* The same, with expected names of the other side. */
struct cv_tls *make_tls_for(struct world *world, const char *ca, const char *trust, const char *identity,
                            int64_t valid_s, struct cv_tls_peers peers, bool server);
/* A broker's context for workers, and worker 17's. */
struct cv_tls *broker_tls(struct world *world);
struct cv_tls *worker_tls(struct world *world);
/* The context without its checks of our own files: with a certificate that could not be loaded otherwise. */
void path_of(struct world *world, const char *name, char *ret, size_t size);

/* Starts the listener (on any free port) or the dialer; both take over the reference. */
void serve(struct world *world, struct cv_tls *tls);
void dial(struct world *world, struct cv_tls *tls);
/* Runs the loop until *counter >= value; fails the test after 20 seconds. */
void wait_for(struct world *world, const unsigned *counter, unsigned value);
void wait_bytes(struct world *world, const size_t *counter, size_t value);
/* Runs the loop until nothing is open. */
void run_out(struct world *world);
/* Both connected. */
void connect_both(struct world *world);

#endif
