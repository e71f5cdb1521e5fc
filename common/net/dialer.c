/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attempt resolves the name, then connects to its addresses in turn until a handshake succeeds. After a failed
 * attempt, or after the connection has ended, the timer starts the next attempt.
 */
#include "common/net/dialer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/net/address.h"
#include "common/net/peer_state.h"
#include "common/net/uverr.h"

enum { FIRST_DELAY_MS = 100, LAST_DELAY_MS = 5000, STEADY_MS = 250 };

/* Freed when the timer is closed, the resolver has answered and the peer is freed. */
struct cv_dialer {
  uv_timer_t timer;
  uv_getaddrinfo_t resolve;
  bool stopped, timer_closed, resolving;
  struct addrinfo *found; /* addresses of this attempt */
  struct addrinfo *at;    /* the address being tried */
  struct cv_peer *peer;   /* NULL between connections */
  unsigned delay_ms;      /* before the next attempt, without jitter */
  uint64_t jitter;
  struct cv_hub *hub;
  struct cv_tls *tls;
  SSL_SESSION *session; /* to resume */
  struct cv_peer_ops ops;
  void *data;
  void (*failed)(void *data, const struct cv_why *why);
  struct cv_net_limits limits;
  struct cv_address address;
  char text[CV_ADDRESS_BYTES];
};

static void connect_next(struct cv_dialer *dialer);

static void free_if_over(struct cv_dialer *dialer) {
  if (!dialer->timer_closed || dialer->resolving || dialer->peer != NULL) {
    return;
  }
  uv_freeaddrinfo(dialer->found);
  SSL_SESSION_free(dialer->session);
  cv_tls_unref(dialer->tls);
  cv_hub_unref(dialer->hub);
  free(dialer);
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found);

static void tell(struct cv_dialer *dialer, const struct cv_why *why) {
  if (!dialer->stopped && dialer->failed != NULL) {
    dialer->failed(dialer->data, why);
  }
}

static void on_timer(uv_timer_t *timer);

static void start_again_later(struct cv_dialer *dialer) {
  if (dialer->stopped) {
    return;
  }
  /* Wait between half of the delay and all of it. */
  dialer->jitter = cv_mix64(dialer->jitter + 1);
  uint64_t half = dialer->delay_ms / 2;
  uint64_t delay = half + dialer->jitter % (half + 1);
  /* Doubled, and drawn at random: thousands of workers must not return to a restarted broker at the same moment. */
  dialer->delay_ms = dialer->delay_ms * 2 < LAST_DELAY_MS ? dialer->delay_ms * 2 : LAST_DELAY_MS;
  (void)uv_timer_start(&dialer->timer, on_timer, delay, 0);
}

static void cannot_resolve(struct cv_dialer *dialer, int status) {
  struct cv_why why;
  (void)cv_uv_err(cv_uv_fail(&why, status, "%s: cannot resolve the name", dialer->text));
  tell(dialer, &why);
  start_again_later(dialer);
}

static void on_timer(uv_timer_t *timer) {
  struct cv_dialer *dialer = timer->data;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  int status = uv_getaddrinfo(dialer->hub->loop, &dialer->resolve, on_resolved, dialer->address.host,
                              dialer->address.port, &hints);
  if (status == 0) {
    dialer->resolving = true;
  } else {
    cannot_resolve(dialer, status);
  }
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found) {
  struct cv_dialer *dialer = req->data;
  dialer->resolving = false;
  uv_freeaddrinfo(dialer->found);
  dialer->found = dialer->at = status == 0 ? found : NULL;
  if (dialer->stopped) {
    free_if_over(dialer);
  } else if (status == 0) {
    connect_next(dialer);
  } else {
    cannot_resolve(dialer, status);
  }
}

static void on_peer_gone(void *owner, struct cv_peer *peer) {
  struct cv_dialer *dialer = owner;
  dialer->peer = NULL;
  if (peer->was_open) {
    /* A connection that is closed at once, again and again, counts as a failed attempt: keep the back-off. */
    if (uv_now(dialer->hub->loop) - peer->opened_ms >= STEADY_MS) {
      dialer->delay_ms = FIRST_DELAY_MS;
    }
    peer->ops.closed(peer, &peer->why);
    start_again_later(dialer);
  } else if (!dialer->stopped && dialer->at != NULL && dialer->at->ai_next != NULL) {
    /* A name with several addresses: the next one is tried at once, without a pause. */
    dialer->at = dialer->at->ai_next;
    connect_next(dialer);
  } else {
    tell(dialer, &peer->why);
    start_again_later(dialer);
  }
  /* Stopped while the connection was closing: this was the last thing to wait for. */
  if (dialer->stopped) {
    free_if_over(dialer);
  }
}

static void connect_next(struct cv_dialer *dialer) {
  struct cv_peer_origin origin = {.ops = &dialer->ops,
                                  .data = dialer->data,
                                  .limits = &dialer->limits,
                                  .tls = dialer->tls,
                                  .hub = dialer->hub,
                                  .slot = &dialer->session,
                                  .owner = dialer,
                                  .gone = on_peer_gone};
  struct cv_why why;
  if (cv_peer_connect(dialer->at->ai_addr, dialer->text, &origin, &dialer->peer, &why) != CV_OK) {
    cv_why_prefix(&why, "%s", dialer->text);
    tell(dialer, &why);
    start_again_later(dialer);
  }
}

enum cv_err cv_dialer_start(uv_loop_t *loop, const char *address, struct cv_tls *tls, const struct cv_peer_ops *ops,
                            void *data, void (*failed)(void *data, const struct cv_why *why),
                            const struct cv_net_limits *limits, uint64_t jitter_seed, struct cv_dialer **ret,
                            struct cv_why *why) {
  struct cv_address parsed;
  CV_TRY(cv_address_parse(address, &parsed, why));
  struct cv_dialer *dialer = calloc(1, sizeof(*dialer));
  if (dialer == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: no memory for a dialer", address);
  }
  *dialer = (struct cv_dialer){.tls = tls,
                               .ops = *ops,
                               .data = data,
                               .failed = failed,
                               .limits = *limits,
                               .jitter = jitter_seed,
                               .delay_ms = FIRST_DELAY_MS,
                               .address = parsed};
  enum cv_err err = cv_hub_ref(loop, &dialer->hub, why);
  if (err != CV_OK) {
    free(dialer);
    return err;
  }
  cv_tls_ref(tls);
  (void)snprintf(dialer->text, sizeof(dialer->text), "%s", address);
  (void)uv_timer_init(loop, &dialer->timer);
  dialer->timer.data = dialer->resolve.data = dialer;
  (void)uv_timer_start(&dialer->timer, on_timer, 0, 0);
  *ret = dialer;
  return CV_OK;
}

void cv_dialer_set_tls(struct cv_dialer *dialer, struct cv_tls *tls) {
  cv_tls_ref(tls);
  cv_tls_unref(dialer->tls);
  dialer->tls = tls;
  /* Made under the old certificates, and so not resumed under the new ones. */
  SSL_SESSION_free(dialer->session);
  dialer->session = NULL;
  if (dialer->peer != NULL) {
    cv_peer_set_tls(dialer->peer, tls);
  }
}

static void on_timer_closed(uv_handle_t *handle) {
  struct cv_dialer *dialer = handle->data;
  dialer->timer_closed = true;
  free_if_over(dialer);
}

void cv_dialer_stop(struct cv_dialer *dialer) {
  if (dialer == NULL || dialer->stopped) {
    return;
  }
  dialer->stopped = true;
  if (dialer->resolving) {
    /* on_resolved() follows in either case, and frees the dialer. */
    (void)uv_cancel((uv_req_t *)&dialer->resolve);
  }
  if (dialer->peer != NULL) {
    cv_peer_close(dialer->peer, "stopped");
  }
  uv_close((uv_handle_t *)&dialer->timer, on_timer_closed);
}
