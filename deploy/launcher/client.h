/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The requester's connection to the broker. The client has one request at a time and sends it again after every
 * reconnection. That is safe: every request is idempotent (a Submit through its client key). A broker that says that
 * another process takes over (CV_GOODBYE_MOVED) is a lost connection; another goodbye with a reason is a failure.
 */
#ifndef CV_LAUNCHER_CLIENT_H
#define CV_LAUNCHER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/config/channel.h"
#include "common/config/profile.h"
#include "common/net/dialer.h"
#include "proto/codec/order.h"

/* The broker's address, or several (base/address.h), and the requester's TLS files. */
struct cv_client_settings {
  char *profile; /* its values are in the other fields already */
  char *broker, *broker_name, *ca, *cert, *key, *crl;
  uint64_t wait_ms, patience_ms; /* for the TLS files, for the broker; only cv_client_run() reads them */
  uint64_t reconnect_ms;         /* for the broker after a lost connection; 0: patience_ms; likewise */
};

/* For a whole answer, from the request on, however many frames it has and however slowly they come; a longer patience
 * counts in its place. A command that follows a campaign waits so long for the first message of an answer. */
enum { CV_CLIENT_ANSWER_MS = 30000 };

/* The rule for `reconnect_ms`, for a command that follows a campaign. */
#define CV_CLIENT_RECONNECT_RULE(at)                                                                            \
  {                                                                                                             \
    .key = "reconnect", .type = CV_CONFIG_TIME, .offset = (at), .low = 100, .high = 86400000, .fallback = "1h", \
    .help = "how long to try to reach the broker again after a lost connection while the campaign runs"         \
  }

/* Where a broker is if nobody says otherwise. */
#define CV_CLIENT_BROKER "127.0.0.1:7401"

/* The rules for these settings, as the field `client` of a command's settings; `is_needed`: the command cannot do
 * without a broker. */
#define CV_CLIENT_RULES_AS(owner, field, is_needed)                                                        \
  {.key = CV_PROFILE_KEY,                                                                                  \
   .type = CV_CONFIG_TEXT,                                                                                 \
   .offset = offsetof(owner, field.profile),                                                               \
   .is_option = true,                                                                                      \
   .help = "a broker by its name in profiles.yaml (crowdveil profiles); or " CV_PROFILE_ENV},              \
      {.key = "broker",                                                                                    \
       .type = CV_CONFIG_ADDRESSES,                                                                        \
       .offset = offsetof(owner, field.broker),                                                            \
       .fallback = CV_CLIENT_BROKER,                                                                       \
       .help = "address of the broker, or those of its processes, of which one is active"},                \
      {.key = "broker_name",                                                                               \
       .type = CV_CONFIG_PARTY,                                                                            \
       .offset = offsetof(owner, field.broker_name),                                                       \
       .required = (is_needed),                                                                            \
       .help = "name that the broker's certificate must have"},                                            \
      {.key = "patience",                                                                                  \
       .type = CV_CONFIG_TIME,                                                                             \
       .offset = offsetof(owner, field.patience_ms),                                                       \
       .low = 100,                                                                                         \
       .high = 86400000,                                                                                   \
       .fallback = "3s",                                                                                   \
       .help = "how long to try to reach the broker"},                                                     \
      CV_CHANNEL_WAIT_RULE(offsetof(owner, field.wait_ms)),                                                \
      CV_CHANNEL_FILE("tls.ca", offsetof(owner, field.ca), is_needed, "certificate of the CA"),            \
      CV_CHANNEL_FILE("tls.cert", offsetof(owner, field.cert), is_needed, "certificate of the requester"), \
      CV_CHANNEL_FILE("tls.key", offsetof(owner, field.key), is_needed, "private key of the requester"),   \
      CV_CHANNEL_FILE("tls.crl", offsetof(owner, field.crl), false, CV_CHANNEL_CRL_HELP)
#define CV_CLIENT_RULES(owner, field) CV_CLIENT_RULES_AS(owner, field, true)

struct cv_client_ops {
  /* An answer or an error; `frame` is valid during the call. */
  void (*answer)(void *data, const struct cv_order_frame *frame);
  /* The client gave up: no connection for `patience_ms`, or the broker refused it. Called once; then stop it. */
  void (*failed)(void *data, const struct cv_why *why);
  /* The connection was lost, and is made again; the request is sent again then. NULL: nothing to do. */
  void (*lost)(void *data, const struct cv_why *why);
};

/* The caller owns the storage and keeps it until the loop has ended. */
struct cv_client {
  /* private */
  struct cv_client_ops ops;
  void *data;
  struct cv_tls *tls;
  struct cv_dialer *dialer;
  struct cv_peer *peer; /* while open */
  uv_timer_t patience, answer;
  uint64_t patience_ms, reconnect_ms;
  uint64_t answer_ms; /* 0: no limit */
  struct cv_buf request, bytes;
  struct cv_arena decoding, encoding;
  struct cv_why why; /* the last failure */
  bool started, failed, stopped, was_open;
  bool is_late; /* the patience is over, and the first attempt goes on */
  bool follows, was_answered;
};

/* Starts to connect. Errors are about the TLS files or the address, that is, the caller's configuration. */
CV_MUST_USE enum cv_err cv_client_start(struct cv_client *client, uv_loop_t *loop,
                                        const struct cv_client_settings *settings, uint64_t patience_ms,
                                        const struct cv_client_ops *ops, void *data, struct cv_why *why);
/* Sends this request now, or once connected. It replaces the previous request. */
void cv_client_ask(struct cv_client *client, const struct cv_order_frame *frame);
/* Closes connection and timer; the loop finishes that. May be called twice, or on a client that never started. */
void cv_client_stop(struct cv_client *client);
/* Frees memory; call after the loop has ended. */
void cv_client_fini(struct cv_client *client);

/*
 * For a command that makes requests and waits: waits for the TLS files, connects, sends `request` and calls `answer`
 * for each answer until it returns something other than CV_ANSWER_MORE. `answer` may call cv_client_ask() with the next
 * request. Prints one line on failure. Returns the exit status.
 */
enum cv_answer { CV_ANSWER_MORE, CV_ANSWER_DONE, CV_ANSWER_FAILED };
typedef enum cv_answer cv_answer_fn(void *data, struct cv_client *client, const struct cv_order_frame *frame);
/* Called before the line about a lost connection is printed. */
typedef void cv_lost_fn(void *data);

/* `request` must be valid during the call; `table` names the command in messages. */
CV_MUST_USE int cv_client_run(const struct cv_config_table *table, const struct cv_client_settings *settings,
                              const struct cv_order_frame *request, cv_answer_fn *answer, void *data);
/* The same for a command that follows a campaign: prints one line on standard error when the connection is lost and one
 * when it is there again. */
CV_MUST_USE int cv_client_follow(const struct cv_config_table *table, const struct cv_client_settings *settings,
                                 const struct cv_order_frame *request, cv_answer_fn *answer, cv_lost_fn *lost,
                                 void *data);

#endif
