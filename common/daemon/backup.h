/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's copy of its own database while it goes on. The copy is made on the storage thread in short steps between
 * commits, and takes at most a tenth of that thread's time, so that a batch waits for one step at most.
 */
#ifndef CV_DAEMON_BACKUP_H
#define CV_DAEMON_BACKUP_H

#include <uv.h>

#include "common/daemon/turn.h"
#include "common/db/copy.h"

/* The file's name in the state folder, while it has one. */
#define CV_BACKUP_FILE "backup.tmp"

struct cv_backup {
  uv_loop_t *loop;
  struct cv_turn *turn;
  /* Called on the loop once for each begun copy: a file without a name, which the callee takes, or the error in `why`
   * and `fd` -1. Not called after cv_backup_stop(). */
  void (*made)(void *data, int fd, uint64_t bytes, const struct cv_why *why);
  void *data;
  /* private */
  struct cv_db *db;
  char path[4096];
  struct cv_db_copy *copy;
  uv_work_t work;
  uv_timer_t rest;
  uint64_t step_ns; /* how long the last step took */
  bool has_timer, active, resting, working, done, stopped;
  enum cv_err err;
  struct cv_why why;
};

/* The caller has set loop, turn, made and data. */
void cv_backup_start(struct cv_backup *backup);
/* Begins a copy of `db`; its file is in `folder` for a moment. CV_ERR_EXISTS while another copy is being made. */
CV_MUST_USE enum cv_err cv_backup_begin(struct cv_backup *backup, struct cv_db *db, const char *folder,
                                        struct cv_why *why);
/* Call once in each turn of the loop, after the turn: makes the next step if the storage is free. */
void cv_backup_turn(struct cv_backup *backup);
/* Gives up a copy that is being made, and closes the timer. The loop ends when a running step has returned. */
void cv_backup_stop(struct cv_backup *backup);

#endif
