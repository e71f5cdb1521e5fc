/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/base/clock.h"
#include "common/base/log_limit.h"

enum { HOLD_BYTES = 1 << 20 }; /* queued bytes from which a peer counts as a slow reader */

struct cv_lane {
  struct cv_lane *prev, *next;
  struct cv_lanes *lanes;
  struct cv_peer *peer;
  const struct cv_lane_kind *kind;
  void *conn; /* the core's handle; NULL if it has not accepted the peer */
  bool closing;
  bool spoken;             /* something has been sent to it: its first frame is the one with the Hello */
  bool paused;             /* until the next flush: its share of answers is used up */
  bool held;               /* the core throttles its frames */
  enum cv_refusal refused; /* why the lane is closing; CV_REFUSALS: for another reason */
};

enum cv_err cv_lanes_init(struct cv_lanes *lanes) {
  size_t frame_bytes = 0, arena_bytes = 0;
  for (size_t i = 0; i < lanes->ops->kinds; i++) {
    const struct cv_wire *wire = lanes->ops->kind[i].wire;
    /* One set of buffers for all lanes: frames are decoded, and encoded, one at a time. */
    frame_bytes = wire->frame_bytes > frame_bytes ? wire->frame_bytes : frame_bytes;
    arena_bytes = wire->arena_bytes > arena_bytes ? wire->arena_bytes : arena_bytes;
  }
  CV_REQUIRE(frame_bytes > 0);
  lanes->frame = malloc(frame_bytes);
  lanes->rest = malloc(frame_bytes);
  lanes->part = malloc(frame_bytes);
  lanes->newcomer = calloc(1, sizeof(*lanes->newcomer));
  if (lanes->frame == NULL || lanes->rest == NULL || lanes->part == NULL || lanes->newcomer == NULL) {
    return CV_ERR_NOMEM;
  }
  *lanes->newcomer = (struct cv_lane){.lanes = lanes, .refused = CV_REFUSALS};
  CV_TRY(cv_arena_init(&lanes->decoding, arena_bytes));
  return cv_arena_init(&lanes->encoding, arena_bytes);
}

void cv_lanes_fini(struct cv_lanes *lanes) {
  cv_arena_fini(&lanes->decoding);
  cv_arena_fini(&lanes->encoding);
  cv_buf_fini(&lanes->bytes);
  free(lanes->newcomer);
  free(lanes->frame);
  free(lanes->rest);
  free(lanes->part);
}

/* `refusal` is CV_REFUSALS for a line about no refusal. */
static void note(const struct cv_lane *lane, const struct cv_peer *peer, enum cv_log_level level,
                 enum cv_refusal refusal, const char *text) {
  char who[CV_LOG_LIMIT_PEER_BYTES];
  cv_peer_who(peer, who, sizeof(who));
  const struct cv_note note = {
      .level = level, .peer = who, .text = text, .reason = refusal < CV_REFUSALS ? cv_refusal_text(refusal) : NULL};
  lane->lanes->note(lane->lanes->data, &note);
}

/* ---- from the core to peers ---- */

static void close_lane(struct cv_lane *lane, enum cv_refusal refused, const char *why) {
  if (!lane->closing) {
    lane->closing = true;
    lane->refused = refused;
    cv_peer_close(lane->peer, why);
  }
}

static void send_one(struct cv_lane *lane, const void *frame) {
  struct cv_lanes *lanes = lane->lanes;
  enum cv_err err = lane->kind->wire->encode(frame, &lanes->encoding, &lanes->bytes);
  if (err == CV_OK) {
    err = cv_peer_send(lane->peer, lanes->bytes.data, lanes->bytes.len);
    lane->spoken = true;
  }
  /* Waiting for it would grow the queue of a peer that may never read again. */
  if (err == CV_ERR_LIMIT) {
    cv_refusals_add(&lanes->refusals, CV_REFUSED_DEAF);
    close_lane(lane, CV_REFUSED_DEAF, "the write queue is full: the peer does not read");
  } else if (err != CV_OK && err != CV_ERR_CLOSED) {
    close_lane(lane, CV_REFUSALS, cv_err_text(err));
  }
  cv_buf_clear(&lanes->bytes);
}

static void send_all(struct cv_lane *lane, const void *frame) {
  const struct cv_wire *wire = lane->kind->wire;
  struct cv_lanes *lanes = lane->lanes;
  if (wire->cut == NULL) {
    send_one(lane, frame);
    return;
  }
  /* Shallow: cutting moves counts and pointers of the copy, and the core keeps the frame as it was. */
  memcpy(lanes->rest, frame, wire->frame_bytes);
  for (bool more = true; more && !lane->closing;) {
    more = wire->cut(lanes->rest, lanes->part);
    send_one(lane, lanes->part);
  }
}

/* Throttle slow readers before their queue fills and the connection is closed. */
static void hold(struct cv_lane *lane) {
  const struct cv_lanes *lanes = lane->lanes;
  if (lanes->ops->hold == NULL) {
    return;
  }
  size_t queued = cv_peer_queued(lane->peer);
  /* Two thresholds, so that a queue around one of them does not switch with every frame. */
  bool held = lane->held ? queued > HOLD_BYTES / 2 : queued > HOLD_BYTES;
  if (held != lane->held && lane->conn != NULL && !lane->closing) {
    lane->held = held;
    note(lane, lane->peer, CV_LOG_DEBUG, CV_REFUSALS, held ? "reads slowly: held back" : "reads again");
    lanes->ops->hold(lanes->party, lane->conn, held);
  }
}

void cv_lanes_hold(struct cv_lanes *lanes) {
  struct cv_lane *lane;
  DL_FOREACH(lanes->first, lane) {
    hold(lane);
  }
}

void cv_lanes_deliver(struct cv_lanes *lanes) {
  struct cv_lane_out out;
  while (lanes->ops->next_out(lanes->party, &out)) {
    /* The core has not heard of the end yet: on_closed() reports it, and not from inside a call of the core. */
    if (out.lane->closing) {
      continue;
    }
    send_all(out.lane, out.frame);
    hold(out.lane);
    if (out.close != NULL) {
      close_lane(out.lane, CV_REFUSALS, out.close);
    }
  }
}

void cv_lanes_resume(struct cv_lanes *lanes) {
  struct cv_lane *lane;
  DL_FOREACH(lanes->paused > 0 ? lanes->first : NULL, lane) {
    if (lane->paused) {
      lane->paused = false;
      cv_peer_resume(lane->peer);
    }
  }
  lanes->paused = 0;
}

void cv_lanes_close(struct cv_lanes *lanes, const char *why) {
  struct cv_lane *lane;
  lanes->closing = why;
  DL_FOREACH(lanes->first, lane) {
    close_lane(lane, CV_REFUSALS, why);
  }
}

/* ---- from peers to the core ---- */

/* Sends a goodbye with the reason, in the peer's schema, and closes the lane. */
static void reject(struct cv_lane *lane, enum cv_refusal kind, const struct cv_why *why) {
  struct cv_lanes *lanes = lane->lanes;
  cv_refusals_add(&lanes->refusals, kind);
  lane->kind->wire->goodbye(why->text, lane->spoken ? NULL : lanes->program, lanes->part);
  send_one(lane, lanes->part);
  close_lane(lane, kind, why->text);
}

static const struct cv_lane_kind *kind_of(const struct cv_lanes *lanes, enum cv_role role) {
  const struct cv_lane_kind *kind = lanes->ops->kind;
  while ((kind->roles & 1U << role) == 0) {
    kind++;
    CV_REQUIRE(kind < lanes->ops->kind + lanes->ops->kinds); /* TLS accepts no other role */
  }
  return kind;
}

static void on_opened(struct cv_peer *peer, const struct cv_identity *identity) {
  const struct cv_lane *newcomer = cv_peer_data(peer);
  struct cv_lanes *lanes = newcomer->lanes;
  struct cv_lane *lane = calloc(1, sizeof(*lane));
  if (lane == NULL) {
    cv_peer_close(peer, "out of memory");
    return;
  }
  *lane =
      (struct cv_lane){.lanes = lanes, .peer = peer, .kind = kind_of(lanes, identity->role), .refused = CV_REFUSALS};
  DL_PREPEND(lanes->first, lane);
  if (lane->kind->largest != NULL) {
    cv_peer_widen(peer, lane->kind->largest(lanes->party), lane->kind->largest_out);
  }
  cv_peer_set_data(peer, lane);
  /* A handshake that ended while the daemon stops. */
  if (lanes->closing != NULL) {
    close_lane(lane, CV_REFUSALS, lanes->closing);
    return;
  }
  struct cv_why why;
  enum cv_err err = lanes->ops->join(lanes->party, identity, lane, &lane->conn, &why);
  if (err == CV_ERR_NOMEM) {
    lanes->fail(lanes->data);
  } else if (err != CV_OK) {
    reject(lane, cv_refusal_of(err), &why);
  } else {
    const char *way = (lanes->dialled & 1U << identity->role) != 0 ? "to" : "from";
    (void)snprintf(why.text, sizeof(why.text), "connected %s %s", way, cv_peer_address(peer));
    note(lane, peer, CV_LOG_INFO, CV_REFUSALS, why.text);
  }
}

/* Decodes and feeds one frame. *ret_kind: the refusal to count for an error. */
static enum cv_err take(struct cv_lane *lane, const uint8_t *bytes, size_t n, enum cv_refusal *ret_kind,
                        struct cv_why *why) {
  struct cv_lanes *lanes = lane->lanes;
  enum cv_err err = lane->kind->wire->decode(bytes, n, &lanes->decoding, lanes->frame);
  if (err != CV_OK) {
    *ret_kind = CV_REFUSED_MESSAGE;
    return cv_fail(why, err, "frame of %zu bytes is %s", n,
                   err == CV_ERR_LIMIT ? "too large to decode" : "not a valid message for its role");
  }
  err = lane->kind->feed(lanes->party, lane->conn, lanes->frame, cv_clock_mono_ms(), cv_clock_wall_ms(), why);
  *ret_kind = cv_refusal_of(err);
  return err;
}

/* Answers to frames that arrive while a batch is being stored fill the core's memory, so each peer has a share. */
static void pause_if_over_share(struct cv_lane *lane) {
  struct cv_lanes *lanes = lane->lanes;
  if (lanes->ops->is_over_share != NULL && !lane->paused && !lane->closing &&
      lanes->ops->is_over_share(lanes->party, lane->conn)) {
    lane->paused = true;
    lanes->paused++;
    cv_peer_pause(lane->peer);
    note(lane, lane->peer, CV_LOG_DEBUG, CV_REFUSALS, "paused: its share of this turn's answers is used up");
  }
}

static void on_frame(struct cv_peer *peer, const uint8_t *bytes, size_t n) {
  struct cv_lane *lane = cv_peer_data(peer);
  struct cv_lanes *lanes = lane->lanes;
  /* Frames that were read together with the one that closed the lane, or after the core has failed, change nothing. */
  if (lane->conn == NULL || lane->closing || lanes->has_failed(lanes->data)) {
    return;
  }
  struct cv_why why;
  enum cv_refusal kind = CV_REFUSALS;
  enum cv_err err = take(lane, bytes, n, &kind, &why);
  if (err == CV_ERR_NOMEM) {
    lanes->fail(lanes->data);
  } else if (err != CV_OK) {
    reject(lane, kind, &why);
  }
  pause_if_over_share(lane);
}

static void on_closed(struct cv_peer *peer, const struct cv_why *why) {
  struct cv_lane *lane = cv_peer_data(peer);
  struct cv_lanes *lanes = lane->lanes;
  enum cv_refusal limit = cv_peer_refusal(peer);
  note(lane, peer, CV_LOG_INFO, limit < CV_REFUSALS ? limit : lane->refused, why->text);
  cv_refusals_add(&lanes->refusals, limit);
  /* The handshake failed: the core never had this peer. */
  if (lane == lanes->newcomer) {
    return;
  }
  if (lane->conn != NULL) {
    lanes->ops->leave(lanes->party, lane->conn);
  }
  lanes->paused -= lane->paused;
  DL_DELETE(lanes->first, lane);
  free(lane);
}

const struct cv_peer_ops CV_LANES_PEER_OPS = {.opened = on_opened, .frame = on_frame, .closed = on_closed};

enum cv_err cv_lane_export(const struct cv_lane *lane, const char *label, const void *context, size_t context_n,
                           uint8_t *ret, size_t n) {
  return cv_peer_export(lane->peer, label, context, context_n, ret, n);
}

void *cv_lane_data(const struct cv_lane *lane) {
  return lane->lanes->data;
}
