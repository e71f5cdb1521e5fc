/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of a deployment as children of one loop. What a child prints goes to FOLDER/NAME.log; a line that says
 * "ready on HOST:PORT" is told. A child that ends unasked, or is not ready in time, is told once, and then the caller
 * stops the rest. Children end with this process, however it ends.
 */
#ifndef CV_LAUNCHER_CHILDREN_H
#define CV_LAUNCHER_CHILDREN_H

#include <stdbool.h>
#include <uv.h>

#include "common/base/err.h"

enum { CV_CHILDREN_MAX = 66, CV_CHILD_LINE = 512 };

struct cv_children;

struct cv_child {
  struct cv_children *children;
  char name[64]; /* "broker"; of its log, too */
  char log[1200];
  int log_fd;
  uv_process_t process;
  uv_pipe_t out;
  char line[CV_CHILD_LINE]; /* of its output, so far */
  size_t line_n;
  bool is_running, is_ready, waits; /* waits: its ready line is awaited */
};

struct cv_children_ops {
  /* `address` is HOST:PORT, borrowed. */
  void (*ready)(void *data, const char *name, const char *address);
  void (*failed)(void *data, const struct cv_why *why);
  /* After cv_children_stop(): all have ended, and the loop may run out. */
  void (*gone)(void *data);
};

/* In the caller's storage, which stays until `gone`. */
struct cv_children {
  uv_loop_t *loop;
  struct cv_children_ops ops;
  void *data;
  char folder[1024];
  uv_timer_t timer; /* readiness, then stopping */
  struct cv_child child[CV_CHILDREN_MAX];
  size_t count;
  bool failed, stopping;
};

/* `folder` is where the logs go. */
void cv_children_init(struct cv_children *children, uv_loop_t *loop, const char *folder,
                      const struct cv_children_ops *ops, void *data);
/* Starts `program` (found next to this one, in its build folder, or on the PATH) with --config FILE. */
CV_MUST_USE enum cv_err cv_children_start(struct cv_children *children, const char *name, const char *program,
                                          const char *config, bool waits, struct cv_why *why);
/* SIGTERM to one after the other, the last started first; SIGKILL to one that takes longer than 10 s. */
void cv_children_stop(struct cv_children *children);
/* SIGKILL to all that run. */
void cv_children_kill(struct cv_children *children);

#endif
