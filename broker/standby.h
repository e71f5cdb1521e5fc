/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker among several that share a database (store/remote.h): it stands by until it has the term, then it is active
 * until the term ends, and with it the process. The shell calls it on the loop; it does its work on the storage thread.
 * Pure, but for the remote's own functions: time is an argument.
 *
 *   open -> (tick) stand by ... -> load, on the storage thread -> active, on the loop -> (tick) beat ... -> leave
 *
 * Whoever looks on from outside sees each change in one order: the state first (status, metrics), then the line of the
 * log, then health. So a broker whose log has the line "active: term N" says role=active, and one whose health says so
 * has written the line and serves.
 */
#ifndef CV_BROKER_STANDBY_H
#define CV_BROKER_STANDBY_H

#include "broker/store/remote.h"
#include "common/base/buf.h"
#include "common/base/log_line.h"

struct cv_standby {
  /* set by the caller */
  const struct cv_remote_ops *ops; /* NULL: this broker shares no database, and nothing below is called */
  struct cv_remote_config config;  /* borrowed */
  /* On the loop: lets cv_standby_work() run on the storage thread, and then cv_standby_worked() on the loop. False, and
   * neither is called, if the storage is not free. */
  bool (*borrow)(void *party);
  /* On the storage thread, once the term is this broker's: loads all from the store, which it takes. */
  enum cv_err (*load)(void *party, struct cv_broker_store *store, struct cv_why *why);
  /* On the loop: frees what a failed `load`, or one whose term has ended before it could serve, has left. */
  void (*unload)(void *party);
  /* On the loop, after `load`: the broker serves from now on. */
  void (*active)(void *party);
  /* On the loop: writes a line of the log. */
  void (*note)(void *party, const struct cv_note *note);
  /* On the loop: the process must end. */
  void (*fail)(void *party, const char *what, const struct cv_why *why);
  void *party;
  /* private */
  struct cv_remote *remote;
  struct cv_remote_view view; /* as of the end of the last step */
  bool is_active, is_serving; /* it has the term; it has said so, and serves */
  bool is_working;
  bool has_loaded, has_failed; /* of the step that runs */
  unsigned rest_ms;
  uint64_t next_ms;      /* no step before */
  uint64_t stored_ms;    /* last commit or beat */
  char said[480];        /* the last failure, or active broker, that was logged */
  struct cv_why failure; /* of the last step; "": it has not failed */
};

CV_MUST_USE enum cv_err cv_standby_open(struct cv_standby *standby, struct cv_why *why);
/* Call often: begins the next step, or beat, if it is time. */
void cv_standby_tick(struct cv_standby *standby, uint64_t now_ms);
/* For `borrow`: the work, and what follows from its result. */
CV_MUST_USE enum cv_err cv_standby_work(struct cv_standby *standby, struct cv_why *why);
void cv_standby_worked(struct cv_standby *standby, enum cv_err err, const struct cv_why *why, uint64_t now_ms);
/* A commit has been made: not for a batch without rows, which proves nothing of the term. */
void cv_standby_stored(struct cv_standby *standby, uint64_t now_ms);
/* Gives the term back; not while the storage thread works. */
void cv_standby_leave(struct cv_standby *standby);
/* After the store is closed. */
void cv_standby_close(struct cv_standby *standby);

/* One line: role, term, since when, anchor, replica. */
void cv_standby_status(const struct cv_standby *standby, char *text, size_t size);
/* CV_OK, with the role in `why`, if the broker serves, or stands by and its last step, of which loading is a part, has
 * not failed. */
CV_MUST_USE enum cv_err cv_standby_health(const struct cv_standby *standby, struct cv_why *why);
void cv_standby_metrics(const struct cv_standby *standby, struct cv_buf *out);

#endif
