/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester's end of the order link. There is one request at a time; it is sent again whenever the connection had
 * to be made again, which every request permits (a Submit carries its client key).
 */
#ifndef CV_LAUNCHER_CLIENT_H
#define CV_LAUNCHER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/config/link.h"
#include "common/net/peer.h"
#include "proto/codec/order.h"

/* Where the broker is and who we are. */
struct cv_client_settings {
  char *broker, *broker_name, *ca, *cert, *key;
  uint64_t wait_ms, patience_ms; /* for the files, for the broker; for cv_client_run() alone */
};

/* The rules for these settings, as the field `link` of a command's settings. */
#define CV_CLIENT_RULES(owner, field)                                                             \
  {.key = "broker",                                                                               \
   .type = CV_CONFIG_TEXT,                                                                        \
   .offset = offsetof(owner, field.broker),                                                       \
   .fallback = "127.0.0.1:7401",                                                                  \
   .help = "HOST:PORT of the broker"},                                                            \
      {.key = "broker_name",                                                                      \
       .type = CV_CONFIG_PARTY,                                                                   \
       .offset = offsetof(owner, field.broker_name),                                              \
       .required = true,                                                                          \
       .help = "name in the broker's certificate; another one there is refused"},                 \
      {.key = "patience",                                                                         \
       .type = CV_CONFIG_TIME,                                                                    \
       .offset = offsetof(owner, field.patience_ms),                                              \
       .low = 100,                                                                                \
       .high = 86400000,                                                                          \
       .fallback = "3s",                                                                          \
       .help = "time to wait for a broker that cannot be reached, at first and after a break"},   \
      CV_LINK_WAIT_RULE(offsetof(owner, field.wait_ms)),                                          \
      CV_CLIENT_FILE("tls.ca", offsetof(owner, field.ca), "certificate of the CA"),               \
      CV_CLIENT_FILE("tls.cert", offsetof(owner, field.cert), "own certificate, of a requester"), \
      CV_CLIENT_FILE("tls.key", offsetof(owner, field.key), "its private key")
#define CV_CLIENT_FILE(name, at, about) \
  { .key = (name), .type = CV_CONFIG_PATH, .offset = (at), .required = true, .help = (about) }

struct cv_client_ops {
  /* An answer, an error among them, borrowed for the call. */
  void (*answer)(void *data, const struct cv_order_frame *frame);
  /* It gave up: no connection for `patience_ms`, or the broker will have none of us. Told once; then stop it. */
  void (*failed)(void *data, const struct cv_why *why);
};

/* In the caller's storage, which stays until the loop has run out. */
struct cv_client {
  /* private */
  struct cv_client_ops ops;
  void *data;
  struct cv_tls *tls;
  struct cv_dialer *dialer;
  struct cv_peer *peer; /* while open */
  uv_timer_t patience;
  uint64_t patience_ms;
  struct cv_buf request, bytes;
  struct cv_arena decoding, encoding;
  struct cv_why why; /* the last failure */
  bool started, failed, stopped;
};

/* CV_ERR_INVALID and the like are about the files or the address: the caller's configuration. */
CV_MUST_USE enum cv_err cv_client_start(struct cv_client *client, uv_loop_t *loop,
                                        const struct cv_client_settings *settings, uint64_t patience_ms,
                                        const struct cv_client_ops *ops, void *data, struct cv_why *why);
/* Sends this request now or once connected. It takes the place of the one before. */
void cv_client_ask(struct cv_client *client, const struct cv_order_frame *frame);
/* Closes what is open; the loop does the rest. Harmless a second time, or on a client that never started. */
void cv_client_stop(struct cv_client *client);
/* Frees memory, after the loop has run out. */
void cv_client_fini(struct cv_client *client);

/*
 * All of it for a command that waits: for its files, then for answers to the request, which it hands out until `answer`
 * says that it is enough. Returns the exit status. `answer` may call cv_client_ask() with the next request.
 */
enum cv_answer { CV_ANSWER_MORE, CV_ANSWER_DONE, CV_ANSWER_FAILED };
typedef enum cv_answer cv_answer_fn(void *data, struct cv_client *client, const struct cv_order_frame *frame);

/* `request` is borrowed for the call; the table is for messages. */
CV_MUST_USE int cv_client_run(const struct cv_config_table *table, const struct cv_client_settings *settings,
                              const struct cv_order_frame *request, cv_answer_fn *answer, void *data);

#endif
