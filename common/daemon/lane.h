/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's lane: one open connection between a peer and the party's core. A table gives the schema of each peer role
 * and the core's function that takes its frames.
 *
 *   bytes -> decode -> core's feed()       core's next_out() -> cut -> encode -> bytes
 *
 * If a frame cannot be decoded, or the core refuses it, the lane sends a goodbye with the reason and closes. A lane
 * stops reading from a peer that has used up its share of answers until the next flush. If a peer reads slowly, the
 * lane asks the core to throttle; common/net closes a peer that does not read at all.
 */
#ifndef CV_DAEMON_LANE_H
#define CV_DAEMON_LANE_H

#include "common/base/log_line.h"
#include "common/base/refusals.h"
#include "common/base/wire.h"
#include "common/net/identity.h"
#include "common/net/peer.h"

struct cv_lane;

/* The schema of peers with these roles, and the core's function for their frames. */
struct cv_lane_kind {
  unsigned roles; /* set of 1u << enum cv_role */
  const struct cv_wire *wire;
  /* The largest frame to take, and the largest to send. NULL: the usual limit of a connection. */
  size_t (*largest)(const void *party);
  size_t largest_out;
  /* On an error, the lane is closed with the reason in `why`; CV_ERR_NOMEM stops the daemon. */
  enum cv_err (*feed)(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                      struct cv_why *why);
};

/* One frame to send. */
struct cv_lane_out {
  struct cv_lane *lane;
  const void *frame; /* in the lane's schema, of any size; borrowed until the next call of the core */
  const char *close; /* the reason to close the lane after this frame; NULL: keep the lane open */
};

/* The core's side of lanes; `party` is what the daemon was given. */
struct cv_lane_ops {
  const struct cv_lane_kind *kind; /* one for every role that the daemon's TLS contexts accept */
  size_t kinds;
  /* A peer has connected; *ret_conn is the core's handle for it. On an error the lane sends the reason and closes;
   * CV_ERR_NOMEM stops the daemon. */
  enum cv_err (*join)(void *party, const struct cv_identity *identity, struct cv_lane *lane, void **ret_conn,
                      struct cv_why *why);
  /* The peer has disconnected. The core must not use its lane any more. */
  void (*leave)(void *party, void *conn);
  /* Returns true with one frame to send, false if there is none. */
  bool (*next_out)(void *party, struct cv_lane_out *ret);
  /* Whether the peer has used up its share of answers since the last flush. NULL: no limit. */
  bool (*is_over_share)(const void *party, const void *conn);
  /* Throttle (or stop throttling) frames for a slow reader, before its write queue fills. NULL: the core sends too
   * little to need it. */
  void (*hold)(void *party, void *conn, bool hold);
};

/* The lanes of a daemon. */
struct cv_lanes {
  const struct cv_lane_ops *ops;
  void *party;
  const char *program;
  unsigned dialled; /* roles of the peers that this daemon dials: set of 1u << enum cv_role */
  /* Reports that the core is out of memory; returns whether the daemon has failed for any reason, after which no
   * frame is fed. */
  void (*fail)(void *data);
  bool (*has_failed)(const void *data);
  /* One line about a peer, for the log. */
  void (*note)(void *data, const struct cv_note *note);
  void *data;
  /* private */
  struct cv_refusals refusals; /* by the network and by decoding; the core counts its own */
  struct cv_lane *newcomer;    /* shared by all peers whose handshake is not complete */
  struct cv_lane *first;
  struct cv_arena decoding, encoding;
  struct cv_buf bytes;
  void *frame, *rest, *part; /* buffers, each large enough for a frame of any schema */
  unsigned paused;           /* number of paused lanes */
  const char *closing;       /* reason for closing all lanes; NULL: not closing */
};

/* The caller has set `ops` to `data`; the other fields are zero. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_lanes_init(struct cv_lanes *lanes);
/* All lanes must be closed. */
void cv_lanes_fini(struct cv_lanes *lanes);
/* The callbacks for a listener or a dialer, whose data must be `newcomer`. */
extern const struct cv_peer_ops CV_LANES_PEER_OPS;

/* Sends all frames that the core has ready. */
void cv_lanes_deliver(struct cv_lanes *lanes);
/* Call after a flush, which starts a new share of answers for every peer: resumes reading from paused peers. */
void cv_lanes_resume(struct cv_lanes *lanes);
/* Updates the core's throttling of slow readers; called several times a second. */
void cv_lanes_hold(struct cv_lanes *lanes);
/* Closes all lanes, and those opened later, with this reason, which is borrowed. */
void cv_lanes_close(struct cv_lanes *lanes, const char *why);
/* As cv_peer_export(), of the lane's connection: for a core, through a function pointer. */
CV_MUST_USE enum cv_err cv_lane_export(const struct cv_lane *lane, const char *label, const void *context,
                                       size_t context_n, uint8_t *ret, size_t n);
/* The `data` of the lane's struct cv_lanes. */
void *cv_lane_data(const struct cv_lane *lane);

#endif
