/* SPDX-License-Identifier: Apache-2.0 */
/* Inside common/net: a connection as the listener and the dialer that made it see it. */
#ifndef CV_NET_LINK_H
#define CV_NET_LINK_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/buf.h"
#include "common/net/frame.h"
#include "common/net/hub.h"
#include "common/net/peer.h"
#include "common/net/tls_link.h"

enum { CV_ADDRESS_BYTES = 280 };

/*
 *   CONNECTING -> HANDSHAKE -> WAITING -> OPEN -> FLUSHING -> LINGERING -> CLOSED
 *
 * A server's peer skips CONNECTING and WAITING. A failure after CONNECTING goes to FLUSHING, with nothing to flush but
 * an alert; an I/O error goes to CLOSED from anywhere.
 */
enum cv_peer_state {
  CV_PEER_CONNECTING, /* no TCP connection yet */
  CV_PEER_HANDSHAKE,
  CV_PEER_WAITING, /* a client is through, but the server has not said yet whether it takes our certificate */
  CV_PEER_OPEN,
  CV_PEER_FLUSHING,  /* closing: what is queued still leaves, what arrives is dropped */
  CV_PEER_LINGERING, /* our side is shut; reads to the end: closing over unread bytes would reset the connection */
  CV_PEER_CLOSED,    /* the handles are closing */
};

/* What a listener or a dialer gives its peers. */
struct cv_peer_origin {
  const struct cv_peer_ops *ops;
  void *data;
  const struct cv_net_limits *limits;
  struct cv_tls *tls;
  struct cv_hub *hub;
  SSL_SESSION **slot; /* a client's, to resume; or NULL */
  void *owner;
  bool (*answers)(void *owner, struct cv_peer *peer);      /* is its hello answered? NULL: yes */
  bool (*admits)(void *owner, const struct cv_peer *peer); /* may it be open, too? NULL: yes */
  void (*moved)(void *owner, struct cv_peer *peer);        /* it is open, or closing, or closed; NULL */
  void (*gone)(void *owner, struct cv_peer *peer);         /* tells whoever is to know; the peer is freed afterwards */
};

struct cv_peer {
  /* 32 pointers of handles first, then what every frame touches. */
  uv_tcp_t tcp;
  uv_timer_t timer;
  uv_connect_t connect;
  uv_write_t write;
  uv_shutdown_t shutdown;

  enum cv_peer_state state;
  bool is_due, paused, reading, writing, eof, shut;
  bool was_open, tls_broken;
  bool had_frame;
  size_t turn_bytes;   /* read since reading was started last, or since the turn began */
  uint64_t turn;       /* the hub's, in which something came last */
  uint64_t awaited_ms; /* loop time since which a frame is awaited; 0: none is */
  enum cv_refusal refusal;
  unsigned handles; /* not closed yet */
  struct cv_hub *hub;
  struct cv_peer *due_prev, *due_next;     /* in the hub */
  struct cv_peer *owner_prev, *owner_next; /* in the listener */
  unsigned stage;                          /* the listener's, and its address while it is in the first one */
  struct cv_caller *caller;

  struct cv_buf plain; /* frames to encrypt, from plain_at on */
  size_t plain_at;
  struct cv_buf unsent; /* ciphertext in uv_write */
  struct cv_buf next;   /* ciphertext behind it */
  struct cv_splitter splitter;

  struct cv_peer_ops ops;
  void *data;
  struct cv_net_limits limits;
  void *owner;
  bool (*answers)(void *owner, struct cv_peer *peer);
  bool (*admits)(void *owner, const struct cv_peer *peer);
  void (*moved)(void *owner, struct cv_peer *peer);
  void (*gone)(void *owner, struct cv_peer *peer);
  struct cv_tls *tls;
  struct cv_tls_link link;
  struct cv_identity identity;
  int64_t until_s;    /* wall clock: when a certificate of the other side's chain expires */
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
/* From now on the peer answers to this context; closes it if it is open and does not pass. */
void cv_peer_set_tls(struct cv_peer *peer, struct cv_tls *tls);

/* Ends it at once, without a word: its place is needed. */
void cv_peer_evict(struct cv_peer *peer, enum cv_refusal refusal, const char *reason);

/* For the hub: the work of a turn, and leaving its list. */
void cv_peer_turn(struct cv_peer *peer);
void cv_peer_not_due(struct cv_peer *peer);

#endif
