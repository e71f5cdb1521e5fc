/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the programs of a deployment as child processes of one loop. The output of a child goes to FOLDER/NAME.log; a
 * line with "ready on HOST:PORT" calls `ready`. The first child that ends unexpectedly calls `failed`, once; the caller
 * then stops the others. A start may take any time, since a machine may be busy: after 5 s `slow` says what is waited
 * for. All children get SIGTERM when this process ends, even if it is killed.
 */
#ifndef CV_LAUNCHER_CHILDREN_H
#define CV_LAUNCHER_CHILDREN_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"

enum { CV_CHILDREN_MAX = 67, CV_CHILD_LINE = 512 };

struct cv_children;

struct cv_child {
  struct cv_children *children;
  char name[64]; /* "broker"; also the name of its log */
  char log[1200];
  int log_fd;
  uv_process_t process;
  uv_pipe_t out;
  char line[CV_CHILD_LINE]; /* the current line of its output */
  size_t line_n;
  bool is_running, is_ready, waits; /* waits: its ready line has not come yet */
  bool is_private;                  /* its output is not logged */
};

struct cv_children_ops {
  /* A line of a private child, whose output goes nowhere else. NULL: there is none. */
  void (*line)(void *data, const char *line);
  /* `address` is HOST:PORT, valid during the call. */
  void (*ready)(void *data, const char *name, const char *address);
  /* Of each child that is not ready 5 s after the last start. `why`, valid during the call, has its last line. */
  void (*slow)(void *data, const struct cv_why *why);
  void (*failed)(void *data, const struct cv_why *why);
  /* After cv_children_stop(): all children have ended and all handles are closing. */
  void (*gone)(void *data);
};

/* The caller owns the storage and keeps it until `gone`. */
struct cv_children {
  uv_loop_t *loop;
  struct cv_children_ops ops;
  void *data;
  char folder[1024];
  uv_timer_t timer; /* of the start of a child, then of its stop */
  struct cv_child child[CV_CHILDREN_MAX];
  size_t count;
  bool failed, stopping;
};

/* `folder` receives the logs. */
void cv_children_init(struct cv_children *children, uv_loop_t *loop, const char *folder,
                      const struct cv_children_ops *ops, void *data);
/*
 * Starts `program` (see cv_program_find()) as `name` with --config `config`. `waits`: it will say that it is ready.
 * CV_ERR_NOT_FOUND if there is no such program, CV_ERR_IO if it cannot be started.
 */
CV_MUST_USE enum cv_err cv_children_start(struct cv_children *children, const char *name, const char *program,
                                          const char *config, bool waits, struct cv_why *why);
/* Makes the child that was started last private. */
void cv_children_keep_private(struct cv_children *children);
/* Stops the children one at a time, the last started first: SIGTERM; SIGKILL to all if one takes more than 10 s. */
void cv_children_stop(struct cv_children *children);
/* Sends SIGKILL to all running children. */
void cv_children_kill(struct cv_children *children);

#endif
