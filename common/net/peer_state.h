/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/net: the state of a connection, for the listener and the dialer. */
#ifndef CV_NET_PEER_STATE_H
#define CV_NET_PEER_STATE_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/address.h"
#include "common/base/buf.h"
#include "common/net/frame.h"
#include "common/net/hub.h"
#include "common/net/peer.h"
#include "common/net/peer_limits.h"
#include "common/net/timer.h"
#include "common/net/tls_conn.h"

/*
 *   CONNECTING -> HANDSHAKE -> WAITING -> OPEN -> FLUSHING -> LINGERING -> CLOSED
 *
 * A server's peer skips CONNECTING and WAITING. A failure after CONNECTING goes to FLUSHING, with nothing to flush but
 * an alert; an I/O error goes to CLOSED from anywhere.
 */
enum cv_peer_state {
  CV_PEER_CONNECTING, /* no TCP connection yet */
  CV_PEER_HANDSHAKE,
  CV_PEER_WAITING, /* client: waits until the server has accepted our certificate */
  CV_PEER_OPEN,
  CV_PEER_FLUSHING,  /* closing: sends queued data, drops received data */
  CV_PEER_LINGERING, /* our side is shut down; read to the end, or closing would reset the connection */
  CV_PEER_CLOSED,    /* the handles are closing */
};

/* The parameters that a listener or a dialer passes to its peers. */
struct cv_peer_origin {
  const struct cv_peer_ops *ops;
  void *data;
  const struct cv_net_limits *limits;
  struct cv_tls *tls;
  struct cv_hub *hub;
  SSL_SESSION **slot; /* a client's, to resume; or NULL */
  void *owner;
  bool (*answers)(void *owner, struct cv_peer *peer);      /* may its hello be answered? NULL: yes */
  bool (*admits)(void *owner, const struct cv_peer *peer); /* is there room for an open peer? NULL: yes */
  void (*moved)(void *owner,
                struct cv_peer *peer); /* called when the peer opens, starts closing or is closed; may be NULL */
  void (*gone)(void *owner, struct cv_peer *peer); /* called last; the peer is freed afterwards */
};

struct cv_peer {
  /* 32 pointers of handles first, then what every frame touches. */
  uv_tcp_t tcp;
  struct cv_timer timer;
  uv_connect_t connect;
  uv_write_t write;
  uv_shutdown_t shutdown;

  enum cv_peer_state state;
  bool paused, reading, writing, eof, shut;
  bool was_open, tls_broken;
  bool had_frame;
  size_t turn_bytes;   /* bytes read since reading was last started, or in this turn */
  uint64_t turn;       /* the hub's number of the last turn with data */
  uint64_t heard_ms;   /* loop time of that turn */
  uint64_t awaited_ms; /* loop time since which a frame is awaited; 0: none is */
  enum cv_refusal refusal;
  unsigned handles; /* not closed yet */
  struct cv_hub *hub;
  struct cv_hub_work work;                 /* of a turn */
  struct cv_peer *owner_prev, *owner_next; /* in the listener */
  unsigned stage; /* the listener's stage, and the address (`caller`) while in the first stage */
  struct cv_caller *caller;

  struct cv_buf plain; /* frames to encrypt, from plain_at on */
  size_t plain_at;
  struct cv_buf unsent; /* ciphertext in uv_write */
  struct cv_buf next;   /* ciphertext behind it */
  struct cv_splitter splitter;
  size_t out_bytes;  /* largest frame to send */
  size_t wide_bytes; /* its share of the hub's */
  size_t steps;      /* MiB of an unfinished frame that are received */

  struct cv_peer_ops ops;
  void *data;
  struct cv_net_limits limits;
  void *owner;
  bool (*answers)(void *owner, struct cv_peer *peer);
  bool (*admits)(void *owner, const struct cv_peer *peer);
  void (*moved)(void *owner, struct cv_peer *peer);
  void (*gone)(void *owner, struct cv_peer *peer);
  struct cv_tls *tls;
  struct cv_tls_conn conn;
  struct cv_identity identity;
  int64_t until_s;    /* wall clock: when the first certificate of the peer's chain expires */
  uint64_t opened_ms; /* loop time */
  struct cv_why why;
  char address[CV_ADDRESS_BYTES];
};

/* A server's peer for the connection that waits on `server`, in HANDSHAKE. */
CV_MUST_USE enum cv_err cv_peer_accept(uv_stream_t *server, const struct cv_peer_origin *origin, struct cv_peer **ret,
                                       struct cv_why *why);
/* A client's peer, in CONNECTING. `name` is the address in messages. */
CV_MUST_USE enum cv_err cv_peer_connect(const struct sockaddr *to, const char *name,
                                        const struct cv_peer_origin *origin, struct cv_peer **ret, struct cv_why *why);
/* Uses this context from now on; closes an open peer that fails its checks. */
void cv_peer_set_tls(struct cv_peer *peer, struct cv_tls *tls);

/* Closes the peer at once and sends nothing: another connection needs its place. */
void cv_peer_evict(struct cv_peer *peer, enum cv_refusal refusal, const char *reason);

#endif
