/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cycle takes the addresses in turn, from `at` on: it resolves the name, then connects to what it has found, until a
 * handshake succeeds. After a cycle that has failed, or after the connection has ended, the timer starts the next one.
 * A second timer watches for silence.
 */
#include "common/net/dialer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/address.h"
#include "common/base/rng.h"
#include "common/net/knock.h"
#include "common/net/peer_state.h"
#include "common/net/uverr.h"

enum { FIRST_DELAY_MS = 100, LAST_DELAY_MS = 5000, STEADY_MS = 250 };

/* Where the party may be. */
struct place {
  struct cv_dialer *dialer;
  struct cv_address address;
  char text[CV_ADDRESS_BYTES];
  SSL_SESSION *session;   /* to resume, of this address only: another process there has other tickets */
  struct cv_knock *knock; /* under way, or NULL */
};

/* Freed when the timers are closed, the resolver has answered and the peer is freed. */
struct cv_dialer {
  struct cv_timer timer, watch;
  uv_getaddrinfo_t resolve;
  bool stopped, resolving;
  unsigned timers; /* not closed yet */
  struct place place[CV_ADDRESSES_MAX];
  size_t places, at;      /* at: being tried, or connected to */
  size_t tried;           /* in this cycle, before `at` */
  size_t answering;       /* where a knock was answered: the next one to try; `places`: the one after `at` */
  uint64_t left_ms;       /* loop time at which a silent connection was last left; 0: never */
  struct addrinfo *found; /* what the name of `at` stands for */
  struct addrinfo *host;  /* the one being tried */
  struct cv_peer *peer;   /* NULL between connections */
  unsigned delay_ms;      /* before the next cycle, without jitter */
  unsigned attempt_ms;    /* in this cycle */
  uint64_t jitter;
  struct cv_why why; /* of this cycle: the failure at each address so far */
  struct cv_hub *hub;
  struct cv_tls *tls;
  struct cv_peer_ops ops;
  void *data;
  void (*failed)(void *data, const struct cv_why *why);
  struct cv_net_limits limits;
};

static void forget_sessions(struct cv_dialer *dialer) {
  for (size_t i = 0; i < dialer->places; i++) {
    SSL_SESSION_free(dialer->place[i].session);
    dialer->place[i].session = NULL;
  }
}

static void free_if_over(struct cv_dialer *dialer) {
  if (dialer->timers > 0 || dialer->resolving || dialer->peer != NULL) {
    return;
  }
  uv_freeaddrinfo(dialer->found);
  forget_sessions(dialer);
  cv_tls_unref(dialer->tls);
  cv_hub_unref(dialer->hub);
  free(dialer);
}

static void on_timer(struct cv_timer *timer);

static unsigned at_most(unsigned ms, unsigned most) {
  return ms < most ? ms : most;
}

/* The delay and the bound on an attempt of the first cycle; with one address the latter is the handshake's limit. */
static void begin_anew(struct cv_dialer *dialer) {
  unsigned most = dialer->limits.handshake_ms;
  dialer->delay_ms = FIRST_DELAY_MS;
  dialer->attempt_ms = dialer->places == 1 ? most : at_most(CV_DIAL_ATTEMPT_MS, most);
}

/* Between half of it and all of it. */
static uint64_t with_jitter(struct cv_dialer *dialer, unsigned ms) {
  dialer->jitter = cv_mix64(dialer->jitter + 1);
  uint64_t half = ms / 2;
  return half + dialer->jitter % (half + 1);
}

/* Starts a cycle, with the address that has answered, or else the one after this one. */
static void start_again_later(struct cv_dialer *dialer) {
  if (dialer->stopped) {
    return;
  }
  dialer->at = dialer->answering < dialer->places ? dialer->answering : (dialer->at + 1) % dialer->places;
  dialer->answering = dialer->places;
  dialer->tried = 0;
  uint64_t delay = with_jitter(dialer, dialer->delay_ms);
  /* Doubled, and drawn at random: thousands of workers must not return to a restarted broker at the same moment. */
  dialer->delay_ms = at_most(2 * dialer->delay_ms, dialer->places > 1 ? CV_DIAL_DELAY_MS : LAST_DELAY_MS);
  cv_timer_start(&dialer->timer, on_timer, delay);
}

static void resolve(struct cv_dialer *dialer);

/* This address has failed, and `why` begins with it: tries the next one at once, or ends the cycle. */
static void try_next(struct cv_dialer *dialer, const struct cv_why *why) {
  if (dialer->stopped) {
    return;
  }
  if (dialer->tried == 0) {
    dialer->why = *why;
  } else {
    size_t n = strlen(dialer->why.text);
    (void)snprintf(dialer->why.text + n, sizeof(dialer->why.text) - n, "; %s", why->text);
  }
  if (++dialer->tried < dialer->places) {
    dialer->at = (dialer->at + 1) % dialer->places;
    resolve(dialer);
    return;
  }
  /* A host that is only slow must be reached in the end. */
  if (dialer->places > 1) {
    dialer->attempt_ms = at_most(2 * dialer->attempt_ms, at_most(CV_DIAL_ATTEMPT_MOST_MS, dialer->limits.handshake_ms));
  }
  if (dialer->failed != NULL) {
    dialer->failed(dialer->data, &dialer->why);
  }
  start_again_later(dialer);
}

static void cannot_resolve(struct cv_dialer *dialer, int status) {
  struct cv_why why;
  (void)cv_uv_err(cv_uv_fail(&why, status, "%s: cannot resolve the name", dialer->place[dialer->at].text));
  try_next(dialer, &why);
}

static void on_peer_gone(void *owner, struct cv_peer *peer);

static void connect_host(struct cv_dialer *dialer) {
  struct place *place = &dialer->place[dialer->at];
  struct cv_net_limits limits = dialer->limits;
  limits.handshake_ms = dialer->attempt_ms;
  struct cv_peer_origin origin = {.ops = &dialer->ops,
                                  .data = dialer->data,
                                  .limits = &limits,
                                  .tls = dialer->tls,
                                  .hub = dialer->hub,
                                  .slot = &place->session,
                                  .owner = dialer,
                                  .gone = on_peer_gone};
  struct cv_why why;
  if (cv_peer_connect(dialer->host->ai_addr, place->text, &origin, &dialer->peer, &why) != CV_OK) {
    cv_why_prefix(&why, "%s", place->text);
    try_next(dialer, &why);
  }
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *found) {
  struct cv_dialer *dialer = req->data;
  dialer->resolving = false;
  uv_freeaddrinfo(dialer->found);
  dialer->found = dialer->host = status == 0 ? found : NULL;
  if (dialer->stopped) {
    free_if_over(dialer);
  } else if (status == 0) {
    connect_host(dialer);
  } else {
    cannot_resolve(dialer, status);
  }
}

static void resolve(struct cv_dialer *dialer) {
  const struct cv_address *address = &dialer->place[dialer->at].address;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
  int status = uv_getaddrinfo(dialer->hub->loop, &dialer->resolve, on_resolved, address->host, address->port, &hints);
  if (status == 0) {
    dialer->resolving = true;
  } else {
    cannot_resolve(dialer, status);
  }
}

static void on_timer(struct cv_timer *timer) {
  resolve(timer->uv.data);
}

static void on_peer_gone(void *owner, struct cv_peer *peer) {
  struct cv_dialer *dialer = owner;
  dialer->peer = NULL;
  if (peer->was_open) {
    /* A connection that is closed at once, again and again, counts as a failed attempt: keep the back-off. */
    if (cv_timer_now_ms(dialer->hub->loop) - peer->opened_ms >= STEADY_MS) {
      begin_anew(dialer);
    }
    peer->ops.closed(peer, &peer->why);
    start_again_later(dialer);
  } else if (!dialer->stopped && dialer->host != NULL && dialer->host->ai_next != NULL) {
    /* A name that stands for several hosts: the next one is tried at once, too. */
    dialer->host = dialer->host->ai_next;
    connect_host(dialer);
  } else {
    try_next(dialer, &peer->why);
  }
  /* Stopped while the connection was closing: this was the last thing to wait for. */
  if (dialer->stopped) {
    free_if_over(dialer);
  }
}

/* ---- silence ---- */

static bool is_silent(const struct cv_dialer *dialer) {
  const struct cv_peer *peer = dialer->peer;
  return peer != NULL && peer->state == CV_PEER_OPEN && !peer->paused &&
         cv_timer_now_ms(dialer->hub->loop) - peer->heard_ms >= CV_DIAL_SILENCE_MS;
}

static void stop_knocks(struct cv_dialer *dialer) {
  for (size_t i = 0; i < dialer->places; i++) {
    cv_knock_stop(dialer->place[i].knock);
    dialer->place[i].knock = NULL;
  }
}

static void on_knocked(void *data, bool answered) {
  struct place *place = data;
  struct cv_dialer *dialer = place->dialer;
  place->knock = NULL;
  /* What it has said meanwhile counts for more. */
  if (!answered || !is_silent(dialer)) {
    return;
  }
  stop_knocks(dialer);
  dialer->answering = (size_t)(place - dialer->place);
  dialer->left_ms = cv_timer_now_ms(dialer->hub->loop);
  char reason[CV_ADDRESS_BYTES + 32];
  (void)snprintf(reason, sizeof(reason), "silent, while %s answers", place->text);
  /* Whoever stands still takes no goodbye. */
  cv_peer_evict(dialer->peer, CV_REFUSALS, reason);
}

static void on_watch(struct cv_timer *timer) {
  struct cv_dialer *dialer = timer->uv.data;
  cv_timer_start(timer, on_watch, with_jitter(dialer, CV_DIAL_SILENCE_MS));
  bool has_just_left = dialer->left_ms != 0 && cv_timer_now_ms(timer->uv.loop) - dialer->left_ms < CV_DIAL_STAY_MS;
  if (has_just_left || !is_silent(dialer)) {
    return;
  }
  for (size_t i = 0; i < dialer->places; i++) {
    struct place *place = &dialer->place[i];
    if (i != dialer->at && place->knock == NULL &&
        cv_knock_start(timer->uv.loop, &place->address, CV_DIAL_ATTEMPT_MS, on_knocked, place, &place->knock) !=
            CV_OK) {
      return; /* without memory; it is tried again in a second */
    }
  }
}

enum cv_err cv_dialer_start(uv_loop_t *loop, const char *addresses, struct cv_tls *tls, const struct cv_peer_ops *ops,
                            void *data, void (*failed)(void *data, const struct cv_why *why),
                            const struct cv_net_limits *limits, uint64_t jitter_seed, struct cv_dialer **ret,
                            struct cv_why *why) {
  struct cv_addresses parsed;
  CV_TRY(cv_addresses_parse(addresses, &parsed, why));
  struct cv_dialer *dialer = calloc(1, sizeof(*dialer));
  if (dialer == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: no memory for a dialer", addresses);
  }
  *dialer = (struct cv_dialer){.tls = tls,
                               .ops = *ops,
                               .data = data,
                               .failed = failed,
                               .limits = *limits,
                               .jitter = jitter_seed,
                               .places = parsed.count,
                               .answering = parsed.count};
  for (size_t i = 0; i < parsed.count; i++) {
    dialer->place[i].dialer = dialer;
    dialer->place[i].address = parsed.address[i];
    memcpy(dialer->place[i].text, parsed.text[i], sizeof(parsed.text[i]));
  }
  begin_anew(dialer);
  enum cv_err err = cv_hub_ref(loop, &dialer->hub, why);
  if (err != CV_OK) {
    free(dialer);
    return err;
  }
  cv_tls_ref(tls);
  cv_timer_init(loop, &dialer->timer, dialer);
  cv_timer_init(loop, &dialer->watch, dialer);
  dialer->timers = 2;
  dialer->resolve.data = dialer;
  cv_timer_start(&dialer->timer, on_timer, 0);
  if (dialer->places > 1) {
    cv_timer_start(&dialer->watch, on_watch, CV_DIAL_SILENCE_MS);
  }
  *ret = dialer;
  return CV_OK;
}

void cv_dialer_set_tls(struct cv_dialer *dialer, struct cv_tls *tls) {
  cv_tls_ref(tls);
  cv_tls_unref(dialer->tls);
  dialer->tls = tls;
  /* Made under the old certificates, and so not resumed under the new ones. */
  forget_sessions(dialer);
  if (dialer->peer != NULL) {
    cv_peer_set_tls(dialer->peer, tls);
  }
}

static void on_timer_closed(uv_handle_t *handle) {
  struct cv_dialer *dialer = handle->data;
  dialer->timers--;
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
  stop_knocks(dialer);
  cv_timer_close(&dialer->timer, on_timer_closed);
  cv_timer_close(&dialer->watch, on_timer_closed);
}
