/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: on_read -> pump (handshake, then decrypt) -> deliver (frames to the owner).
 * Sending: cv_peer_send queues plain text; once per turn flush encrypts it, and ship passes it to the kernel, the rest
 * to uv_write.
 * Closing: fail() and cv_peer_close() only change the state; the turn sends the end (finish), and abandon() closes the
 * handles. `closed` is called when both handles are closed: exactly once, never from inside a call.
 */
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/net/address.h"
#include "common/net/peer_state.h"
#include "common/net/sslerr.h"
#include "common/net/uverr.h"

enum {
  LINGER_MS = 1000, /* for the last bytes, and for the other side to close; restarted whenever bytes were sent */
  WAITING_MS =
      1000, /* a server without session tickets never confirms: after this time the client counts as accepted */
  PROBES = 3,
  ENCRYPT_BYTES = 16 * 16 * 1024, /* encrypted at once: whole records */
  KEEP_BYTES = 64 * 1024,         /* a larger buffer is freed when it is empty */
  WATCHES = 8,                    /* timer checks within frame_ms */
};

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);
static void start_reading(struct cv_peer *peer);
static void stop_reading(struct cv_peer *peer);

/* --- small things --- */

void *cv_peer_data(const struct cv_peer *peer) {
  return peer->data;
}

void cv_peer_set_data(struct cv_peer *peer, void *data) {
  peer->data = data;
}

const char *cv_peer_address(const struct cv_peer *peer) {
  return peer->address;
}

void cv_peer_who(const struct cv_peer *peer, char *ret, size_t size) {
  const char *colon = strrchr(peer->address, ':');
  if (peer->was_open) {
    (void)snprintf(ret, size, "%s/%s", cv_role_text(peer->identity.role), peer->identity.name);
  } else {
    (void)snprintf(ret, size, "%.*s", colon != NULL ? (int)(colon - peer->address) : CV_ADDRESS_BYTES, peer->address);
  }
}

enum cv_refusal cv_peer_refusal(const struct cv_peer *peer) {
  return peer->refusal;
}

static bool is_closing(const struct cv_peer *peer) {
  return peer->state >= CV_PEER_FLUSHING;
}

static size_t plain_left(const struct cv_peer *peer) {
  return peer->plain.len - peer->plain_at;
}

size_t cv_peer_queued(const struct cv_peer *peer) {
  size_t in_write = peer->writing ? uv_stream_get_write_queue_size((const uv_stream_t *)&peer->tcp) : 0;
  return plain_left(peer) + peer->next.len + in_write;
}

static void empty(struct cv_buf *buf) {
  if (buf->cap > KEEP_BYTES) {
    cv_buf_fini(buf);
  } else {
    cv_buf_clear(buf);
  }
}

static void make_due(struct cv_peer *peer) {
  if (peer->state != CV_PEER_CLOSED) {
    cv_hub_make_due(peer->hub, &peer->work);
  }
}

/* --- the end --- */

static void tell_moved(struct cv_peer *peer) {
  if (peer->moved != NULL) {
    peer->moved(peer->owner, peer);
  }
}

static void on_handle_closed(uv_handle_t *handle) {
  struct cv_peer *peer = handle->data;
  /* Freed in a callback of the loop, after both handles: no caller further up the stack still uses the peer. */
  if (--peer->handles > 0) {
    return;
  }
  cv_tls_conn_close(&peer->conn);
  peer->gone(peer->owner, peer);
  cv_splitter_fini(&peer->splitter);
  peer->hub->wide_bytes -= peer->wide_bytes;
  cv_buf_fini(&peer->plain);
  cv_buf_fini(&peer->unsent);
  cv_buf_fini(&peer->next);
  cv_tls_unref(peer->tls);
  cv_hub_unref(peer->hub);
  free(peer);
}

static void abandon(struct cv_peer *peer) {
  if (peer->state == CV_PEER_CLOSED) {
    return;
  }
  peer->state = CV_PEER_CLOSED;
  cv_hub_not_due(peer->hub, &peer->work);
  uv_close((uv_handle_t *)&peer->tcp, on_handle_closed);
  cv_timer_close(&peer->timer, on_handle_closed);
  tell_moved(peer);
}

static void on_linger_timeout(struct cv_timer *timer) {
  abandon(timer->uv.data);
}

/* Allows LINGER_MS from now on. Updates the loop's clock, which stands still during a callback. */
static void linger(struct cv_peer *peer) {
  uv_update_time(peer->hub->loop);
  cv_timer_start(&peer->timer, on_linger_timeout, LINGER_MS);
}

/* The only transition to FLUSHING. peer->why must have the reason. */
static void begin_closing(struct cv_peer *peer) {
  peer->state = CV_PEER_FLUSHING;
  linger(peer);
  if (!peer->eof) {
    start_reading(peer);
  }
  make_due(peer);
  if (peer->state == CV_PEER_FLUSHING) {
    tell_moved(peer);
  }
}

/* An error of the connection or of the other side: queued data need not be sent any more. */
static void fail(struct cv_peer *peer, const char *reason) {
  if (is_closing(peer)) {
    return;
  }
  (void)cv_fail(&peer->why, CV_ERR_CLOSED, "%s: %s", peer->address, reason);
  /* No TLS yet: there is nothing to say goodbye with. */
  if (peer->state == CV_PEER_CONNECTING) {
    abandon(peer);
    return;
  }
  /* The other side is not expected to read it any more. */
  peer->plain_at = 0;
  empty(&peer->plain);
  begin_closing(peer);
}

/* Closes because the other side exceeded a limit; counts the refusal. */
static void refuse(struct cv_peer *peer, enum cv_refusal refusal, const char *reason) {
  if (!is_closing(peer)) {
    peer->refusal = refusal;
    fail(peer, reason);
  }
}

void cv_peer_evict(struct cv_peer *peer, enum cv_refusal refusal, const char *reason) {
  if (!is_closing(peer)) {
    peer->refusal = refusal;
    (void)cv_fail(&peer->why, CV_ERR_CLOSED, "%s: %s", peer->address, reason);
  }
  abandon(peer);
}

/* The kernel reports an error of the connection. */
static void fail_io(struct cv_peer *peer, int status) {
  if (!is_closing(peer)) {
    (void)cv_fail(&peer->why, CV_ERR_CLOSED, "%s: %s", peer->address, uv_strerror(status));
  }
  abandon(peer);
}

void cv_peer_close(struct cv_peer *peer, const char *why) {
  if (is_closing(peer)) {
    return;
  }
  (void)cv_fail(&peer->why, CV_ERR_CLOSED, "%s", why != NULL ? why : "closed");
  if (peer->state == CV_PEER_OPEN) {
    begin_closing(peer);
  } else {
    abandon(peer);
  }
}

/* --- the way out --- */

static void start_write(struct cv_peer *peer);

/* Some queued data was sent: restarts the linger timeout. The queue is bounded, so this ends. */
static void flushed_some(struct cv_peer *peer) {
  if (peer->state == CV_PEER_FLUSHING) {
    linger(peer);
  }
}

static void on_written(uv_write_t *req, int status) {
  struct cv_peer *peer = req->data;
  peer->writing = false;
  if (peer->state == CV_PEER_CLOSED) {
    return;
  }
  if (status < 0) {
    fail_io(peer, status);
    return;
  }
  empty(&peer->unsent);
  flushed_some(peer);
  /* Two buffers: uv_write() reads one of them while TLS records, which must keep their order, collect in the other. */
  if (peer->next.len > 0) {
    struct cv_buf swap = peer->unsent;
    peer->unsent = peer->next;
    peer->next = swap;
    start_write(peer);
  } else if (plain_left(peer) > 0 || peer->state == CV_PEER_FLUSHING) {
    make_due(peer);
  }
}

static void start_write(struct cv_peer *peer) {
  uv_buf_t buf = {.base = (char *)peer->unsent.data, .len = peer->unsent.len};
  int status = uv_write(&peer->write, (uv_stream_t *)&peer->tcp, &buf, 1, on_written);
  if (status < 0) {
    fail_io(peer, status);
  } else {
    peer->writing = true;
  }
}

/* Sends the ciphertext in the hub's buffer, or appends it to ciphertext that is already waiting. */
static void ship(struct cv_peer *peer) {
  struct cv_buf *out = &peer->hub->out;
  size_t sent = 0;
  bool ok = cv_buf_ok(out);
  if (ok && !peer->writing && out->len > 0 && peer->state != CV_PEER_CLOSED) {
    uv_buf_t buf = {.base = (char *)out->data, .len = out->len};
    int status = uv_try_write((uv_stream_t *)&peer->tcp, &buf, 1);
    if (status < 0 && status != UV_EAGAIN) {
      fail_io(peer, status);
    } else {
      sent = status > 0 ? (size_t)status : 0;
      flushed_some(peer);
    }
  }
  if (ok && sent < out->len && peer->state != CV_PEER_CLOSED) {
    struct cv_buf *to = peer->writing ? &peer->next : &peer->unsent;
    cv_buf_put(to, out->data + sent, out->len - sent);
    /* TLS itself sends, too: answers to key updates count against the same limit as frames. */
    ok = cv_buf_ok(to) && peer->next.len <= peer->limits.queue_bytes + ENCRYPT_BYTES;
    if (ok && !peer->writing) {
      start_write(peer);
    }
  }
  cv_buf_clear(out);
  if (!ok) {
    fail_io(peer, UV_ENOMEM);
  }
}

enum cv_err cv_peer_send(struct cv_peer *peer, const void *bytes, size_t n) {
  if (peer->state != CV_PEER_OPEN) {
    return CV_ERR_CLOSED;
  }
  if (n == 0) {
    return CV_ERR_INVALID;
  }
  /* The owner decides what a full queue means; here nothing is dropped or split. */
  if (n > peer->out_bytes || cv_peer_queued(peer) + CV_FRAME_HEADER + n > peer->limits.queue_bytes) {
    return CV_ERR_LIMIT;
  }
  CV_TRY(cv_buf_reserve(&peer->plain, CV_FRAME_HEADER + n));
  uint8_t *to = peer->plain.data + peer->plain.len;
  cv_frame_header(to, n);
  memcpy(to + CV_FRAME_HEADER, bytes, n);
  peer->plain.len += CV_FRAME_HEADER + n;
  if (!peer->writing) {
    make_due(peer);
  }
  return CV_OK;
}

void cv_peer_widen(struct cv_peer *peer, size_t in, size_t out) {
  peer->splitter.limit = in;
  peer->limits.queue_bytes += 2 * (out - peer->out_bytes);
  peer->out_bytes = out;
}

/* Removes n bytes from the front of the queue; moves the rest down when that is cheap. */
static void take_plain(struct cv_peer *peer, size_t n) {
  peer->plain_at += n;
  size_t left = plain_left(peer);
  if (left == 0) {
    peer->plain_at = 0;
    empty(&peer->plain);
  } else if (peer->plain_at >= left) {
    memmove(peer->plain.data, peer->plain.data + peer->plain_at, left);
    peer->plain.len = left;
    peer->plain_at = 0;
  }
}

/* Encrypts and sends until the queue is empty or the kernel accepts no more. */
static void flush(struct cv_peer *peer) {
  while ((peer->state == CV_PEER_OPEN || peer->state == CV_PEER_FLUSHING) && !peer->writing && plain_left(peer) > 0) {
    size_t n = plain_left(peer) < ENCRYPT_BYTES ? plain_left(peer) : ENCRYPT_BYTES;
    size_t done = 0;
    ERR_clear_error();
    /* Encrypted as late as possible: what a closing peer does not get costs no encryption. */
    if (!SSL_write_ex(peer->conn.ssl, peer->plain.data + peer->plain_at, n, &done)) {
      cv_buf_clear(&peer->hub->out);
      (void)cv_fail(&peer->why, CV_ERR_CRYPTO, "%s: %s", peer->address, cv_ssl_reason());
      abandon(peer);
      return;
    }
    take_plain(peer, done);
    ship(peer);
  }
}

static void end_if_over(struct cv_peer *peer) {
  if (peer->state == CV_PEER_LINGERING && peer->shut && peer->eof) {
    abandon(peer);
  }
}

static void on_shutdown(uv_shutdown_t *req, int status) {
  struct cv_peer *peer = req->data;
  if (peer->state == CV_PEER_CLOSED) {
    return;
  }
  peer->shut = true;
  if (status < 0) {
    abandon(peer);
  }
  end_if_over(peer);
}

/* All data is sent: sends close_notify, shuts down our side, then waits for the other side to close. */
static void finish(struct cv_peer *peer) {
  if (!peer->tls_broken && SSL_is_init_finished(peer->conn.ssl)) {
    (void)SSL_shutdown(peer->conn.ssl);
    ERR_clear_error();
    ship(peer);
  }
  if (peer->state == CV_PEER_CLOSED) {
    return;
  }
  peer->state = CV_PEER_LINGERING;
  linger(peer);
  if (uv_shutdown(&peer->shutdown, (uv_stream_t *)&peer->tcp, on_shutdown) < 0) {
    abandon(peer);
  }
}

/* --- the way in --- */

/* Counts the bytes of an unfinished frame over the usual limit; false if all peers together have too many. */
static bool count_wide(struct cv_peer *peer) {
  size_t kept = cv_splitter_kept(&peer->splitter), wide = kept > peer->limits.frame_bytes + CV_FRAME_HEADER ? kept : 0;
  peer->hub->wide_bytes += wide - peer->wide_bytes;
  peer->wide_bytes = wide;
  return wide == 0 || peer->hub->wide_bytes <= peer->limits.wide_bytes;
}

/* Whether another MiB of the unfinished frame has come. */
static bool has_gone_on(struct cv_peer *peer) {
  size_t steps = peer->wide_bytes >> 20;
  bool more = steps > peer->steps;
  peer->steps = steps;
  return more;
}

/* Starts the timeout of a frame that has begun, or of the first one; not while reading is paused. */
static void await_frame(struct cv_peer *peer, bool got_one) {
  peer->had_frame = peer->had_frame || got_one;
  /* A peer that has sent whole frames may be silent for as long as it likes; keepalive watches the connection. */
  if (peer->paused || (peer->had_frame && !cv_splitter_holds(&peer->splitter))) {
    peer->awaited_ms = 0;
  } else if (got_one || peer->awaited_ms == 0) {
    peer->awaited_ms = cv_timer_now_ms(peer->hub->loop);
  }
}

/* Passes complete frames to the owner while it reads, and keeps the rest. */
static void deliver(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct cv_why why;
  enum cv_err err = CV_OK;
  bool got_one = false;
  /* The owner may pause or close the peer in any of these calls, so the state is tested before each frame. */
  cv_splitter_give(&peer->splitter, bytes, n);
  while (peer->state == CV_PEER_OPEN && !peer->paused) {
    const uint8_t *frame;
    size_t frame_n;
    err = cv_splitter_next(&peer->splitter, &frame, &frame_n, &why);
    if (err != CV_OK) {
      break;
    }
    got_one = true;
    peer->ops.frame(peer, frame, frame_n);
  }
  if (err == CV_ERR_NOMEM) {
    fail(peer, why.text);
  } else if (err != CV_OK && err != CV_ERR_NOT_FOUND) {
    refuse(peer, CV_REFUSED_FRAME, why.text);
  }
  if (cv_splitter_keep(&peer->splitter) != CV_OK) {
    fail(peer, "no memory for a frame");
  }
  if (!count_wide(peer)) {
    refuse(peer, CV_REFUSED_FRAME, "too many large messages are being received; try again later");
  }
  await_frame(peer, has_gone_on(peer) || got_one);
}

/* Checks the peer's certificate against the current context. Returns false if the peer is closing now. */
static bool check_peer(struct cv_peer *peer) {
  struct cv_tls_passed passed;
  struct cv_why why;
  if (cv_tls_conn_check(peer->tls, &peer->conn, &passed, &why) != CV_OK) {
    refuse(peer, CV_REFUSED_HANDSHAKE, why.text);
    return false;
  }
  peer->identity = passed.identity;
  peer->until_s = passed.until_s;
  return true;
}

static void on_watch(struct cv_timer *timer);

/* Sets the timer for the next check: after a fraction of frame_ms, or when the peer's certificate expires. The wall
 * clock may be changed meanwhile. */
static void watch(struct cv_peer *peer) {
  int64_t watch_ms = peer->limits.frame_ms / WATCHES + 1;
  int64_t left_ms = peer->until_s * 1000 - (int64_t)cv_clock_wall_ms();
  left_ms = left_ms < 1 ? 1 : left_ms < watch_ms ? left_ms : watch_ms;
  cv_timer_start(&peer->timer, on_watch, (uint64_t)left_ms);
}

static void on_watch(struct cv_timer *timer) {
  struct cv_peer *peer = timer->uv.data;
  uint64_t now_ms = cv_timer_now_ms(peer->hub->loop);
  char reason[80];
  /* Halved with each check: a rate of key updates is limited, not their number over a long connection. */
  peer->conn.rekeys /= 2;
  if (peer->awaited_ms != 0 && now_ms - peer->awaited_ms >= peer->limits.frame_ms) {
    (void)snprintf(reason, sizeof(reason), "no whole frame within %u ms", peer->limits.frame_ms);
    refuse(peer, CV_REFUSED_SLOW, reason);
    return;
  }
  if (peer->until_s * 1000 > (int64_t)cv_clock_wall_ms() || check_peer(peer)) {
    watch(peer);
  }
}

static void open_now(struct cv_peer *peer) {
  struct cv_why why;
  /* Again after the handshake: a resumed session has skipped the check inside it. */
  if (!check_peer(peer)) {
    return;
  }
  if (peer->admits != NULL && !peer->admits(peer->owner, peer)) {
    (void)snprintf(why.text, sizeof(why.text), "all %u places for connections are taken", peer->limits.connections);
    refuse(peer, CV_REFUSED_CONNECTION, why.text);
    return;
  }
  watch(peer);
  peer->state = CV_PEER_OPEN;
  peer->was_open = true;
  peer->opened_ms = peer->awaited_ms = cv_timer_now_ms(peer->hub->loop);
  tell_moved(peer);
  peer->ops.opened(peer, &peer->identity);
}

static void on_waited(struct cv_timer *timer) {
  open_now(timer->uv.data);
}

static void on_handshake_timeout(struct cv_timer *timer) {
  struct cv_peer *peer = timer->uv.data;
  char reason[64];
  bool connecting = peer->state == CV_PEER_CONNECTING;
  (void)snprintf(reason, sizeof(reason), "no %s within %u ms", connecting ? "connection" : "TLS handshake",
                 peer->limits.handshake_ms);
  refuse(peer, connecting ? CV_REFUSALS : CV_REFUSED_HANDSHAKE, reason);
}

static void tls_failed(struct cv_peer *peer) {
  const char *reason = cv_ssl_reason();
  char named[192];
  if (reason == cv_ssl_other_name) {
    const struct cv_identity *own = cv_tls_identity(peer->tls);
    (void)snprintf(named, sizeof(named), "%s, %s/%s", reason, cv_role_text(own->role), own->name);
    reason = named;
  }
  peer->tls_broken = true;
  refuse(peer, CV_REFUSED_HANDSHAKE, peer->conn.refusal.text[0] != '\0' ? peer->conn.refusal.text : reason);
}

/* Continues the handshake; returns false until it is complete. */
static bool shake_hands(struct cv_peer *peer) {
  int result = SSL_do_handshake(peer->conn.ssl);
  if (result == 1) {
    peer->state = CV_PEER_WAITING;
    /* In TLS 1.3 a client finishes before the server has judged its certificate: it waits for the first sign of
     * consent. */
    if (!SSL_is_server(peer->conn.ssl)) {
      cv_timer_start(&peer->timer, on_waited, WAITING_MS);
    }
    return true;
  }
  if (peer->conn.turned_away) { /* send nothing: an alert would cost more than the hello did */
    cv_buf_clear(&peer->hub->out);
    cv_peer_evict(peer, CV_REFUSED_CROWDED, "its address sends TLS hellos over the rate limit");
    return false;
  }
  bool needs_more = SSL_get_error(peer->conn.ssl, result) == SSL_ERROR_WANT_READ;
  ship(peer); /* handshake messages, or an alert */
  if (!needs_more) {
    tls_failed(peer);
  }
  return false;
}

/* Decrypts the received data into the hub's buffer; returns true if there may be more. *ret_end: SSL_ERROR_... that
 * stopped it. */
static bool decrypt(struct cv_peer *peer, size_t *ret_n, int *ret_end) {
  uint8_t *plain = peer->hub->plain;
  size_t n = 0;
  while (n < CV_HUB_PLAIN_BYTES) {
    size_t got = 0;
    if (!SSL_read_ex(peer->conn.ssl, plain + n, CV_HUB_PLAIN_BYTES - n, &got)) {
      *ret_end = SSL_get_error(peer->conn.ssl, 0);
      break;
    }
    n += got;
  }
  *ret_n = n;
  return n == CV_HUB_PLAIN_BYTES;
}

/* Processes all received ciphertext, unless the peer is closing. */
static void pump(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  peer->conn.in = bytes;
  peer->conn.in_left = n;
  ERR_clear_error();
  bool more = peer->state != CV_PEER_HANDSHAKE || shake_hands(peer);
  while (more && !is_closing(peer)) {
    size_t plain_n = 0;
    int end = SSL_ERROR_NONE;
    more = decrypt(peer, &plain_n, &end);
    ship(peer); /* tickets, key updates, alerts */
    if (peer->state == CV_PEER_WAITING && (plain_n > 0 || peer->conn.ticket_seen || SSL_is_server(peer->conn.ssl))) {
      open_now(peer);
    }
    deliver(peer, peer->hub->plain, plain_n);
    if (peer->conn.rekeys > CV_REKEYS_MAX) {
      refuse(peer, CV_REFUSED_REKEY, "too many key updates");
    } else if (end == SSL_ERROR_ZERO_RETURN) {
      fail(peer, "closed by the other side");
    } else if (end != SSL_ERROR_NONE && end != SSL_ERROR_WANT_READ) {
      tls_failed(peer);
    }
  }
  ERR_clear_error();
  peer->conn.in_left = 0;
}

static void on_eof(struct cv_peer *peer) {
  peer->eof = true;
  stop_reading(peer);
  bool before = peer->state < CV_PEER_OPEN;
  fail(peer,
       before ? "closed by the other side during the handshake" : "connection lost (closed without close_notify)");
  end_if_over(peer);
}

static void count_turn(struct cv_peer *peer) {
  if (peer->turn != peer->hub->turns) {
    peer->hub->busy++;
    peer->turn = peer->hub->turns;
    peer->heard_ms = cv_timer_now_ms(peer->hub->loop);
    peer->turn_bytes = 0;
  }
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct cv_peer *peer = stream->data;
  if (peer->state == CV_PEER_CLOSED || n == 0) {
    return;
  }
  if (n == UV_EOF) {
    on_eof(peer);
  } else if (n < 0) {
    fail_io(peer, (int)n);
  } else if (!is_closing(peer)) {
    count_turn(peer);
    peer->turn_bytes += (size_t)n;
    pump(peer, (const uint8_t *)buf->base, (size_t)n);
    /* Each busy peer has a share of the bytes of a turn, so that one that sends without end delays the others
     * little. */
    if (peer->state == CV_PEER_OPEN && peer->turn_bytes >= cv_hub_share(peer->hub)) {
      stop_reading(peer);
      make_due(peer);
    }
  }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  struct cv_peer *peer = handle->data;
  *buf = uv_buf_init((char *)peer->hub->read, (unsigned)cv_hub_share(peer->hub));
}

static void stop_reading(struct cv_peer *peer) {
  peer->reading = false;
  (void)uv_read_stop((uv_stream_t *)&peer->tcp);
}

static void start_reading(struct cv_peer *peer) {
  peer->turn_bytes = 0;
  if (!peer->reading) {
    int status = uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
    if (status < 0) {
      fail_io(peer, status);
      return;
    }
    peer->reading = true;
  }
}

void cv_peer_pause(struct cv_peer *peer) {
  if (peer->state == CV_PEER_OPEN && !peer->paused) {
    peer->paused = true;
    /* Whatever is not read now is late because of us, not of the peer. */
    peer->awaited_ms = 0;
    stop_reading(peer);
  }
}

void cv_peer_resume(struct cv_peer *peer) {
  if (peer->paused) {
    peer->paused = false;
    make_due(peer); /* deliver frames read before the pause first, but not from inside this call */
  }
}

/* The work of a turn. */
static void on_turn(void *data) {
  struct cv_peer *peer = data;
  if (peer->state == CV_PEER_OPEN && !peer->paused && !peer->reading) {
    deliver(peer, NULL, 0);
    if (peer->state == CV_PEER_OPEN && !peer->paused) {
      start_reading(peer);
    }
  }
  flush(peer);
  /* Everything, the goodbye included, is with the kernel. */
  if (peer->state == CV_PEER_FLUSHING && !peer->writing && plain_left(peer) == 0) {
    finish(peer);
  }
}

void cv_peer_set_tls(struct cv_peer *peer, struct cv_tls *tls) {
  cv_tls_ref(tls);
  cv_tls_unref(peer->tls);
  peer->tls = tls;
  if (peer->state == CV_PEER_OPEN && check_peer(peer)) {
    watch(peer);
  }
}

/* --- the beginning --- */

static bool answers(struct cv_tls_conn *conn) {
  struct cv_peer *peer = (void *)((char *)conn - offsetof(struct cv_peer, conn));
  return peer->answers == NULL || peer->answers(peer->owner, peer);
}

/* Allocates a peer. It frees the peer itself if a step fails before its handles are started. */
static enum cv_err new_peer(const struct cv_peer_origin *origin, struct cv_peer **ret, struct cv_why *why) {
  struct cv_peer *peer = calloc(1, sizeof(*peer));
  if (peer == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "no memory for a connection");
  }
  *peer = (struct cv_peer){.ops = *origin->ops,
                           .data = origin->data,
                           .limits = *origin->limits,
                           .owner = origin->owner,
                           .answers = origin->answers,
                           .admits = origin->admits,
                           .moved = origin->moved,
                           .gone = origin->gone,
                           .refusal = CV_REFUSALS,
                           .tls = origin->tls,
                           .conn = {.out = &origin->hub->out, .slot = origin->slot, .answers = answers}};
  enum cv_err err = cv_tls_conn_open(origin->tls, &peer->conn, why);
  if (err == CV_OK) {
    err = cv_hub_ref(origin->hub->loop, &peer->hub, why);
  }
  if (err != CV_OK) {
    cv_tls_conn_close(&peer->conn);
    free(peer);
    return err;
  }
  cv_tls_ref(peer->tls);
  cv_splitter_init(&peer->splitter, peer->limits.frame_bytes);
  peer->out_bytes = peer->limits.frame_bytes;
  /* Neither call can fail without flags. From here on the loop frees the peer. */
  (void)uv_tcp_init(peer->hub->loop, &peer->tcp);
  cv_timer_init(peer->hub->loop, &peer->timer, peer);
  peer->work = (struct cv_hub_work){.run = on_turn, .data = peer};
  peer->handles = 2;
  peer->tcp.data = peer;
  peer->connect.data = peer->write.data = peer->shutdown.data = peer;
  cv_timer_start(&peer->timer, on_handshake_timeout, peer->limits.handshake_ms);
  *ret = peer;
  return CV_OK;
}

/* Keepalive probes detect an idle dead connection; the user timeout limits how long sent data may stay unacknowledged,
 * which probes do not detect. */
static void watch_silence(struct cv_peer *peer) {
  int socket;
  unsigned seconds = peer->limits.silence_ms / 1000;
  int between = seconds >= 2 * (PROBES + 1) ? (int)seconds / (2 * (PROBES + 1)) : 1;
  const struct {
    int name, value;
  } options[] = {{TCP_KEEPINTVL, between}, {TCP_KEEPCNT, PROBES}, {TCP_USER_TIMEOUT, (int)peer->limits.silence_ms}};
  (void)uv_tcp_keepalive(&peer->tcp, 1, seconds > 1 ? seconds / 2 : 1);
  if (uv_fileno((const uv_handle_t *)&peer->tcp, &socket) != 0) {
    return;
  }
  for (size_t i = 0; i < CV_COUNT(options); i++) {
    (void)setsockopt(socket, IPPROTO_TCP, options[i].name, &options[i].value, sizeof(options[i].value));
  }
}

/* `status` is the result of connecting. */
static void start_handshake(struct cv_peer *peer, int status) {
  if (status < 0) {
    fail_io(peer, status);
    return;
  }
  (void)uv_tcp_nodelay(&peer->tcp, 1);
  watch_silence(peer);
  peer->state = CV_PEER_HANDSHAKE;
  cv_tls_conn_offer(&peer->conn);
  start_reading(peer);
  if (peer->state == CV_PEER_HANDSHAKE) {
    pump(peer, NULL, 0);
  }
}

enum cv_err cv_peer_accept(uv_stream_t *server, const struct cv_peer_origin *origin, struct cv_peer **ret,
                           struct cv_why *why) {
  struct cv_peer *peer;
  CV_TRY(new_peer(origin, &peer, why));
  int status = uv_accept(server, (uv_stream_t *)&peer->tcp);
  cv_sockaddr_text(&peer->tcp, peer->address, sizeof(peer->address));
  *ret = peer;
  start_handshake(peer, status);
  return CV_OK;
}

static void on_connected(uv_connect_t *req, int status) {
  struct cv_peer *peer = req->data;
  if (peer->state == CV_PEER_CLOSED) {
    return;
  }
  start_handshake(peer, status);
}

enum cv_err cv_peer_connect(const struct sockaddr *to, const char *name, const struct cv_peer_origin *origin,
                            struct cv_peer **ret, struct cv_why *why) {
  struct cv_peer *peer;
  CV_TRY(new_peer(origin, &peer, why));
  (void)snprintf(peer->address, sizeof(peer->address), "%s", name);
  *ret = peer;
  int status = uv_tcp_connect(&peer->connect, &peer->tcp, to, on_connected);
  if (status < 0) {
    fail_io(peer, status);
  }
  return CV_OK;
}
