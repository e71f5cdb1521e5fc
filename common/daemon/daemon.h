/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life cycle of a daemon, the same for every party: loop, connections, the turn that orders commit and send,
 * storage thread, signals, admin endpoint, sandbox. A party supplies a configuration and one table of functions over
 * its core and store.
 *
 *   prepare -> TLS, listener, dialers -> change user -> open (store, core) -> admin endpoint -> sandbox
 *     -> "PROGRAM ready on HOST:PORT" -> loop -> close
 *
 * A party that stands by has its port and its admin endpoint from the start, and says "standing by on HOST:PORT"; it
 * has no peers before cv_daemon_serve().
 *
 * The service manager (notify.h) is told when the start, a reload and the end begin and are complete, and within each
 * interval of its watchdog that loop and storage both go on (watchdog.h).
 *
 * The network is opened before the store, so that a port in use or a bad certificate leaves no new database behind.
 * SIGHUP reads the TLS files again; if they are invalid, the daemon keeps the old ones. It also opens the audit log
 * again (trail.h), whose lines are written before the commit of what they tell. SIGTERM and SIGINT start a
 * drain: the core starts nothing new, and the daemon stops when open work is done and stored. A second signal stops it
 * at once. SIGUSR1 changes the level of the log to debug and back. A failed commit or running out of memory stops the
 * daemon with one log line; a restart continues from the last commit.
 */
#ifndef CV_DAEMON_DAEMON_H
#define CV_DAEMON_DAEMON_H

#include "common/admin/admin.h"
#include "common/base/event.h"
#include "common/base/rng.h"
#include "common/daemon/lane.h"
#include "common/daemon/program.h"
#include "common/db/db.h"
#include "common/net/peer_limits.h"
#include "common/net/tls.h"
#include "common/page/page.h"
#include "common/page/settings.h"

struct cv_daemon;

/* The party's functions; `party` is that of the configuration. A function may be NULL only if its comment says so. */
struct cv_daemon_ops {
  /* Reads what must be read before anything is opened, as the user that started the daemon. NULL: nothing to read. */
  enum cv_err (*prepare)(void *party, struct cv_daemon *daemon, struct cv_why *why);
  /* Opens the store and creates the core from it. */
  enum cv_err (*open)(void *party, struct cv_daemon *daemon, struct cv_why *why);
  /* Closes what the party has on the loop; the loop then frees it. Called once, also if the start failed. NULL: it has
   * nothing there. */
  void (*stop)(void *party);
  /* Called after the loop has ended and all connections are closed; not called if the start failed. May be NULL. */
  void (*ended)(void *party);
  /* Frees what `prepare` and `open` have allocated, also if one of them failed or was not called. */
  void (*close)(void *party);

  struct cv_lane_ops lane;

  /* The turn (turn.h). `between`, `gathered` and `has_rest` may be NULL. */
  void (*between)(void *party);
  bool (*is_pending)(void *party);
  size_t (*gathered)(void *party);
  bool (*has_rest)(void *party);
  enum cv_err (*flush)(void *party, uint64_t now_ms, uint64_t wall_ms, bool *ret_store);
  /* Runs on the storage thread or on the loop; may use only data that the other functions do not change meanwhile. */
  enum cv_err (*commit)(void *party, struct cv_why *why);
  /* The batch is stored, or was empty: the core may send what depends on it. */
  void (*stored)(void *party);

  /* Called every `tick_ms`. NULL: the party needs no timer. */
  void (*tick)(void *party, uint64_t now_ms, uint64_t wall_ms);
  /* Starts a drain; returns whether all open work is done. Both NULL: a drain is complete at once. */
  void (*drain)(void *party);
  bool (*is_drained)(const void *party);
  /* Returns true if the daemon has finished its work and has to stop. NULL: it never stops by itself. */
  bool (*is_done)(const void *party);

  /* The open database, for a copy of it; `why` says why there is none. */
  enum cv_err (*database)(void *party, struct cv_db **ret, struct cv_why *why);

  /* The certificate files were read again, and `own` is in use: its identity may have another key, and it may refuse
   * certificates that were accepted before. NULL: the party remembers neither. */
  void (*renewed)(void *party, const struct cv_tls *own);

  /* Writes one line for the operator: how much the party has to do now. */
  void (*status)(void *party, char *text, size_t size);
  /* The admin endpoint: CV_OK, or the reason why the party cannot work now; and the party's own metrics, with
   * the network's refusals to be added to the core's; the metrics that every daemon has are there already. */
  enum cv_err (*health)(void *party, struct cv_why *why);
  /* CV_OK if the party serves peers, else the reason; NULL: it always does. */
  enum cv_err (*active)(void *party, struct cv_why *why);
  void (*metrics)(void *party, const struct cv_refusals *network, struct cv_buf *out);
  /* struct cv_admin_ops; both NULL if the party has no wrapped keys. */
  void (*seal)(void *party, struct cv_admin_line *ret);
  enum cv_err (*rewrap)(void *party, struct cv_admin_line *ret, struct cv_why *why);

  /* What the page shows, with `party` as data; also on the admin socket. NULL: the party has no page. */
  const struct cv_page_ops *page;
  /* Goes on with work that no event causes, for a few milliseconds while no batch is stored, as long as it returns
   * true; cv_daemon_work() begins. NULL: there is none. */
  bool (*work)(void *party);
};

enum { CV_DAEMON_DIALS = 2, CV_DAEMON_SERVERS = 4 };

/* A peer that the daemon dials. */
struct cv_daemon_dial {
  const char *address;    /* HOST:PORT; NULL: none */
  bool may_be_several;    /* `address` may be a list (base/address.h) of processes, of which one is active */
  struct cv_tls_peers to; /* peers accepted there; each address has roles of its own */
  const char *called;     /* name of that peer in the log: "third-party" */
};

struct cv_daemon_config {
  const char *program; /* "crowdveil-broker" */
  const struct cv_daemon_ops *ops;
  void *party;
  const struct cv_daemon_settings *settings;
  const char *state;        /* folder; NULL: not configured */
  const char *database;     /* the database's file in it */
  const char *reread;       /* a file of the party's own that it reads again after the start; NULL: none */
  unsigned roles;           /* roles allowed for the daemon's own certificate: set of 1u << enum cv_role */
  const char *listen;       /* HOST:PORT; NULL: the daemon does not listen */
  struct cv_tls_peers from; /* peers allowed to connect */
  struct cv_daemon_dial dial[CV_DAEMON_DIALS];
  struct cv_net_limits limits;
  const struct cv_page_settings *page; /* NULL: the party has no page */
  unsigned tick_ms;
  unsigned pace_ms;   /* pause after a large batch; 0: none */
  size_t crowd, full; /* struct cv_turn */
  bool has_thread;    /* commits may run on a storage thread */
  bool only_thread;   /* and run nowhere else: they may wait for a server */
  bool stands_by;     /* the party serves nobody before cv_daemon_serve() */
  bool moves;         /* another process serves its peers after it: the end is a move, and no drain precedes it */
  const char *dials[CV_DAEMON_SERVERS]; /* HOST:PORT, or a socket's path, that the party itself dials */
  const char *reads[CV_DAEMON_SERVERS]; /* files that it reads for that after the start */
  uint64_t drain_ms;                    /* timeout of a drain */
  const char *not_lost;                 /* ends the log line of a failure: what is not lost */
};

/* Runs the daemon and returns its exit status: 0, 1 after a failure, 2 for a wrong configuration. */
CV_MUST_USE int cv_daemon_run(const struct cv_daemon_config *config);

/* ---- for the party ---- */

/* Secure randomness. */
struct cv_rng *cv_daemon_rng(struct cv_daemon *daemon);
/* For what the party itself waits for; it closes that in `stop`. */
uv_loop_t *cv_daemon_loop(struct cv_daemon *daemon);
/* The identity in this daemon's certificate. */
const struct cv_identity *cv_daemon_identity(const struct cv_daemon *daemon);
/* Logs one line; rate limited by its peer, if it has one. `data` is the daemon. */
void cv_daemon_note(void *data, const struct cv_note *note);
/* Adds a line to the audit log, if there is one. It is on disk before the batch of this turn is committed, so before
 * whatever the event causes. `data` is the daemon. */
void cv_daemon_audit(void *data, const struct cv_event *event);
/* True while a batch is stored on the storage thread: the store must not be used. */
bool cv_daemon_is_storing(const struct cv_daemon *daemon);
/* Something has changed that the page shows, or the store is free again. */
void cv_daemon_show(struct cv_daemon *daemon);
/* Begins to call `work`. */
void cv_daemon_work(struct cv_daemon *daemon);
/*
 * Runs `work` on the storage thread while no batch is stored, then `done` on the loop. False, and neither is called, if
 * the storage is not free: ask again later.
 */
bool cv_daemon_borrow(struct cv_daemon *daemon, enum cv_err (*work)(void *data, struct cv_why *why),
                      void (*done)(void *data, enum cv_err err, const struct cv_why *why), void *data);
/* The party does not stand by any more: listens and dials, with randomness that nothing before has used. After a
 * failure the daemon stops. */
void cv_daemon_serve(struct cv_daemon *daemon);
/* Reports a failure outside the turn; the daemon stops. */
void cv_daemon_fail(struct cv_daemon *daemon, const char *what, const struct cv_why *why);

#endif
