/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/listener.h"

#include <stdlib.h>
#include <utlist.h>

#include "common/base/files.h"
#include "common/net/address.h"
#include "common/net/callers.h"
#include "common/net/peer_state.h"
#include "common/net/uverr.h"

enum {
  BACKLOG = 511,
  RESERVED = 8,     /* one in so many connections is reserved for other roles */
  ACCEPTS_TURN = 16 /* accepted per turn of the loop; others wait for the next one */
};

/* The stages of a peer, such as before and after a complete TLS hello; in each stage the oldest peer is first. */
enum { NOWHERE, CALLING, SHAKING, STAYING, LEAVING, GOING, STAGES };

struct stage {
  struct cv_peer *first;
  unsigned count;
};

/* Freed when its socket is closed and its last peer is freed. */
struct cv_listener {
  uv_tcp_t tcp;
  uv_prepare_t turn;
  unsigned handles;  /* not closed yet */
  unsigned accepted; /* accepted in this turn */
  bool waits;        /* libuv holds an accepted connection until the next turn */
  unsigned port;
  struct stage stage[STAGES];
  unsigned crowd; /* number of workers and gateways among the open peers */
  struct cv_callers *callers;
  struct cv_hub *hub;
  struct cv_tls *tls;
  struct cv_peer_ops ops;
  void *data;
  struct cv_net_limits limits;
  struct cv_files files;
};

static void free_if_over(struct cv_listener *listener) {
  unsigned count = 0;
  for (unsigned i = 0; i < STAGES; i++) {
    count += listener->stage[i].count;
  }
  /* Peers refer to the listener until they are gone, also after it has stopped. */
  if (listener->handles == 0 && count == 0) {
    cv_tls_unref(listener->tls);
    cv_hub_unref(listener->hub);
    cv_callers_free(listener->callers);
    cv_files_release(&listener->files);
    free(listener);
  }
}

static bool is_crowd(const struct cv_peer *peer) {
  return peer->identity.role == CV_ROLE_WORKER || peer->identity.role == CV_ROLE_GATEWAY;
}

static void enter(struct cv_listener *listener, struct cv_peer *peer, unsigned number) {
  struct stage *stage = &listener->stage[number];
  peer->stage = number;
  DL_APPEND2(stage->first, peer, owner_prev, owner_next);
  stage->count++;
  listener->crowd += number == STAYING && is_crowd(peer);
}

static void leave(struct cv_listener *listener, struct cv_peer *peer) {
  struct stage *stage = &listener->stage[peer->stage];
  if (peer->stage != NOWHERE) {
    DL_DELETE2(stage->first, peer, owner_prev, owner_next);
    stage->count--;
    listener->crowd -= peer->stage == STAYING && is_crowd(peer);
  }
}

static uint64_t now_ms(const struct cv_listener *listener) {
  return cv_timer_now_ms(listener->hub->loop);
}

static unsigned stage_of(const struct cv_peer *peer) {
  return peer->state < CV_PEER_OPEN      ? CALLING
         : peer->state == CV_PEER_OPEN   ? STAYING
         : peer->state == CV_PEER_CLOSED ? GOING
                                         : LEAVING;
}

/*
 * The stage has one handshake too many: closes the oldest one of the address that claims most. An honest peer sends its
 * hello at once and finishes soon after, so it is rarely the oldest.
 */
static void make_room(struct cv_listener *listener, const struct cv_peer *newcomer) {
  struct cv_peer *peer, *victim = NULL;
  unsigned most = 0;
  if (listener->stage[newcomer->stage].count <= listener->limits.handshakes) {
    return;
  }
  DL_FOREACH2(listener->stage[newcomer->stage].first, peer, owner_next) {
    /* An attacker's many handshakes make its address claim most: it closes its own before those of others. */
    unsigned claim = cv_caller_claim(peer->caller, now_ms(listener));
    if (peer != newcomer && (victim == NULL || claim > most)) {
      victim = peer;
      most = claim;
    }
  }
  cv_peer_evict(victim, CV_REFUSED_CROWDED, "its unfinished handshake was closed to make room");
}

/* The peer's TLS hello is complete. */
static bool answers(void *owner, struct cv_peer *peer) {
  struct cv_listener *listener = owner;
  if (peer->stage != CALLING || !cv_callers_answer(listener->callers, peer->caller, now_ms(listener))) {
    return false;
  }
  leave(listener, peer);
  enter(listener, peer, SHAKING);
  make_room(listener, peer);
  return true;
}

/* Workers and gateways cannot use up the connections that requesters need. */
static bool admits(void *owner, const struct cv_peer *peer) {
  const struct cv_listener *listener = owner;
  unsigned most = listener->limits.connections;
  return listener->stage[STAYING].count < most && (!is_crowd(peer) || listener->crowd < most - most / RESERVED);
}

static void forget_caller(struct cv_listener *listener, struct cv_peer *peer) {
  if (peer->caller != NULL) {
    cv_callers_leave(listener->callers, peer->caller, peer->was_open, now_ms(listener));
    peer->caller = NULL;
  }
}

static void on_peer_moved(void *owner, struct cv_peer *peer) {
  struct cv_listener *listener = owner;
  leave(listener, peer);
  enter(listener, peer, stage_of(peer));
  forget_caller(listener, peer);
  /* Peers that close slowly hold a descriptor each: the oldest is cut off. */
  if (listener->stage[LEAVING].count > listener->limits.handshakes) {
    cv_peer_evict(listener->stage[LEAVING].first, CV_REFUSALS, "closed");
  }
}

static void on_peer_gone(void *owner, struct cv_peer *peer) {
  struct cv_listener *listener = owner;
  leave(listener, peer);
  /* The owner hears of the end only here, when no callback of the peer can follow. */
  peer->ops.closed(peer, &peer->why);
  free_if_over(listener);
}

static void on_refused(uv_handle_t *handle) {
  free(handle);
}

/* Accepts a connection only to close it. */
static void refuse(struct cv_listener *listener) {
  uv_tcp_t *tcp = malloc(sizeof(*tcp));
  if (tcp != NULL) {
    (void)uv_tcp_init(listener->hub->loop, tcp);
    (void)uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)tcp);
    uv_close((uv_handle_t *)tcp, on_refused);
  }
}

static enum cv_err find_caller(struct cv_listener *listener, struct cv_peer *peer) {
  struct sockaddr_storage address;
  int n = sizeof(address);
  bool is_there = uv_tcp_getpeername(&peer->tcp, (struct sockaddr *)&address, &n) == 0;
  return cv_callers_enter(listener->callers, is_there ? (struct sockaddr *)&address : NULL, now_ms(listener),
                          &peer->caller);
}

static void let_call(struct cv_listener *listener) {
  uv_stream_t *stream = (uv_stream_t *)&listener->tcp;
  struct cv_peer *peer;
  struct cv_peer_origin origin = {.ops = &listener->ops,
                                  .data = listener->data,
                                  .limits = &listener->limits,
                                  .tls = listener->tls,
                                  .hub = listener->hub,
                                  .owner = listener,
                                  .answers = answers,
                                  .admits = admits,
                                  .moved = on_peer_moved,
                                  .gone = on_peer_gone};
  if (cv_peer_accept(stream, &origin, &peer, NULL) != CV_OK) {
    refuse(listener);
  } else if (peer->stage == NOWHERE && find_caller(listener, peer) != CV_OK) {
    cv_peer_close(peer, "out of memory");
  } else if (peer->stage == NOWHERE) {
    enter(listener, peer, CALLING);
    make_room(listener, peer);
  }
}

/* libuv accepts connections as long as there are any; leaving one unaccepted makes it stop until the next turn. */
static void on_connection(uv_stream_t *stream, int status) {
  struct cv_listener *listener = stream->data;
  if (status < 0 || uv_is_closing((uv_handle_t *)stream)) {
    return;
  }
  /* A flood of connections must not keep open peers from being read. */
  if (listener->accepted == ACCEPTS_TURN) {
    listener->waits = true;
    return;
  }
  listener->accepted++;
  let_call(listener);
}

static void on_turn(uv_prepare_t *handle) {
  struct cv_listener *listener = handle->data;
  listener->accepted = listener->waits;
  if (listener->waits) {
    listener->waits = false;
    let_call(listener);
  }
}

/* Each connection is an open file: said at the start, not when the database cannot open its log. */
static enum cv_err allow_files(const struct cv_net_limits *limits, struct cv_files *ret, struct cv_why *why) {
  unsigned n = limits->connections + 3 * limits->handshakes;
  *ret = cv_files_reserve(n);
  if (ret->granted < n) {
    cv_files_release(ret);
    return cv_fail(why, CV_ERR_LIMIT, "%u connections need %llu open files, but the system allows %llu (ulimit -n)",
                   limits->connections, (unsigned long long)ret->needed, (unsigned long long)ret->most);
  }
  return CV_OK;
}

static int bind_to(struct cv_listener *listener, const struct cv_address *address) {
  uv_getaddrinfo_t req;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
  int status = uv_getaddrinfo(listener->hub->loop, &req, NULL, address->host, address->port, &hints);
  if (status < 0) {
    return status;
  }
  status = uv_tcp_bind(&listener->tcp, req.addrinfo->ai_addr, 0);
  uv_freeaddrinfo(req.addrinfo);
  struct sockaddr_storage bound;
  int n = sizeof(bound);
  if (status == 0) {
    status = uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&bound, &n);
  }
  if (status == 0) {
    listener->port = cv_sockaddr_port((struct sockaddr *)&bound);
  }
  return status;
}

static void on_closed(uv_handle_t *handle) {
  struct cv_listener *listener = handle->data;
  listener->handles--;
  free_if_over(listener);
}

static void close_handles(struct cv_listener *listener) {
  uv_close((uv_handle_t *)&listener->tcp, on_closed);
  uv_close((uv_handle_t *)&listener->turn, on_closed);
}

enum cv_err cv_listener_bind(uv_loop_t *loop, const char *address, struct cv_tls *tls, const struct cv_peer_ops *ops,
                             void *data, const struct cv_net_limits *limits, struct cv_listener **ret,
                             struct cv_why *why) {
  struct cv_address parsed;
  CV_TRY(cv_address_parse(address, &parsed, why));
  struct cv_files files;
  CV_TRY(allow_files(limits, &files, why));
  struct cv_listener *listener = calloc(1, sizeof(*listener));
  if (listener == NULL) {
    cv_files_release(&files);
    return cv_fail(why, CV_ERR_NOMEM, "%s: no memory for a listener", address);
  }
  *listener = (struct cv_listener){.tls = tls, .ops = *ops, .data = data, .limits = *limits, .files = files};
  enum cv_err err = cv_callers_new(limits->hellos, &listener->callers);
  if (err != CV_OK) {
    (void)cv_fail(why, err, "%s: no memory for a listener", address);
  } else {
    err = cv_hub_ref(loop, &listener->hub, why);
  }
  if (err != CV_OK) {
    cv_callers_free(listener->callers);
    cv_files_release(&files);
    free(listener);
    return err;
  }
  cv_tls_ref(tls);
  (void)uv_tcp_init(loop, &listener->tcp); /* creates no socket yet, so it cannot fail */
  (void)uv_prepare_init(loop, &listener->turn);
  listener->tcp.data = listener->turn.data = listener;
  listener->handles = 2;
  (void)uv_prepare_start(&listener->turn, on_turn); /* fails only without a callback */
  uv_unref((uv_handle_t *)&listener->turn);
  int status = bind_to(listener, &parsed);
  if (status < 0) {
    /* Freed when the loop has closed both handles. */
    close_handles(listener);
    return cv_uv_fail(why, status, "%s: cannot listen", address);
  }
  *ret = listener;
  return CV_OK;
}

enum cv_err cv_listener_listen(struct cv_listener *listener, struct cv_why *why) {
  int status = uv_listen((uv_stream_t *)&listener->tcp, BACKLOG, on_connection);
  return status == 0 ? CV_OK : cv_uv_fail(why, status, "port %u: cannot listen", listener->port);
}

enum cv_err cv_listener_start(uv_loop_t *loop, const char *address, struct cv_tls *tls, const struct cv_peer_ops *ops,
                              void *data, const struct cv_net_limits *limits, struct cv_listener **ret,
                              struct cv_why *why) {
  struct cv_listener *listener;
  CV_TRY(cv_listener_bind(loop, address, tls, ops, data, limits, &listener, why));
  enum cv_err err = cv_listener_listen(listener, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", address);
    cv_listener_stop(listener);
    return err;
  }
  *ret = listener;
  return CV_OK;
}

unsigned cv_listener_port(const struct cv_listener *listener) {
  return listener->port;
}

void cv_listener_set_tls(struct cv_listener *listener, struct cv_tls *tls) {
  cv_tls_ref(tls);
  cv_tls_unref(listener->tls);
  listener->tls = tls;
  for (unsigned i = CALLING; i <= STAYING; i++) {
    struct cv_peer *peer, *next;
    DL_FOREACH_SAFE2(listener->stage[i].first, peer, next, owner_next) {
      cv_peer_set_tls(peer, tls);
    }
  }
}

void cv_listener_stop(struct cv_listener *listener) {
  if (listener == NULL || uv_is_closing((uv_handle_t *)&listener->tcp)) {
    return;
  }
  close_handles(listener);
  struct cv_peer *peer, *next;
  for (unsigned i = CALLING; i <= SHAKING; i++) {
    DL_FOREACH_SAFE2(listener->stage[i].first, peer, next, owner_next) {
      cv_peer_close(peer, "stopped");
    }
  }
}
