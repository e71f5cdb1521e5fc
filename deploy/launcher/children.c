/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/children.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/config/standard.h"
#include "common/net/uverr.h"
#include "deploy/launcher/program.h"

enum { SLOW_MS = 5000, STOP_MS = 10000, TAIL_BYTES = 2048 };

/* ---- the output of a child ---- */

/* Copies the line of a log that says most about an end: the last error, else the last line; "" if there is none. */
static void telling_line(const char *path, char *to, size_t size) {
  char tail[TAIL_BYTES + 1];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
  ssize_t n = fd < 0 ? 0 : pread(fd, tail, TAIL_BYTES, end > TAIL_BYTES ? end - TAIL_BYTES : 0);
  if (fd >= 0) {
    (void)close(fd);
  }
  tail[n < 0 ? 0 : n] = '\0';
  const char *line = "", *error = NULL;
  char *rest = NULL;
  for (char *at = strtok_r(tail, "\n", &rest); at != NULL; at = strtok_r(NULL, "\n", &rest)) {
    line = at;
    error = strstr(at, " error: ") != NULL ? at : error;
  }
  (void)snprintf(to, size, "%s", error != NULL ? error : line);
  cv_text_clean(to, strlen(to));
}

static void describe(const struct cv_child *child, const char *what, struct cv_why *why) {
  char line[240];
  telling_line(child->log, line, sizeof(line));
  (void)cv_fail(why, CV_ERR_STATE, "%s %s; its log %s says: %s", child->name, what, child->log,
                line[0] == '\0' ? "(empty)" : line);
}

static void fail(struct cv_child *child, const char *what) {
  struct cv_children *children = child->children;
  struct cv_why why;
  describe(child, what, &why);
  if (!children->failed && !children->stopping) {
    children->failed = true;
    children->ops.failed(children->data, &why);
  }
}

/* Only the first ready line of a child counts, and none while stopping. */
static void take_line(struct cv_child *child) {
  static const char mark[] = " ready on ";
  child->line[child->line_n] = '\0';
  child->line_n = 0;
  if (child->is_private && !child->children->stopping) {
    child->children->ops.line(child->children->data, child->line);
  }
  const char *at = strstr(child->line, mark);
  if (child->waits && at != NULL && !child->children->stopping) {
    child->waits = false;
    child->is_ready = true;
    (void)uv_timer_stop(&child->children->timer);
    child->children->ops.ready(child->children->data, child->name, at + strlen(mark));
  }
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct cv_child *child = stream->data;
  if (n < 0) {
    (void)uv_read_stop(stream);
    return;
  }
  if (!child->is_private && write(child->log_fd, buf->base, (size_t)n) < 0) {
    return; /* the disk is full: the daemons notice that themselves and stop */
  }
  for (ssize_t i = 0; i < n; i++) {
    if (buf->base[i] == '\n') {
      take_line(child);
    } else if (child->line_n < CV_CHILD_LINE - 1) {
      child->line[child->line_n++] = buf->base[i];
    }
  }
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  static char room[4096];
  *buf = uv_buf_init(room, sizeof(room));
}

/* ---- the end of a child ---- */

static void stop_next(struct cv_children *children);

static void on_exit_of(uv_process_t *process, int64_t status, int signal_number) {
  struct cv_child *child = process->data;
  struct cv_children *children = child->children;
  child->is_running = false;
  uv_close((uv_handle_t *)&child->process, NULL);
  uv_close((uv_handle_t *)&child->out, NULL);
  (void)close(child->log_fd);
  if (children->stopping) {
    stop_next(children);
    return;
  }
  char what[80];
  if (signal_number != 0) {
    (void)snprintf(what, sizeof(what), "was killed by signal %d", signal_number);
  } else {
    (void)snprintf(what, sizeof(what), "ended with status %d", (int)status);
  }
  fail(child, what);
}

static void on_stop_late(uv_timer_t *timer) {
  cv_children_kill(timer->data);
}

/* Stops the youngest running child. on_exit_of() calls this again, so each program outlives those started after it. */
static void stop_next(struct cv_children *children) {
  for (size_t i = children->count; i-- > 0;) {
    if (children->child[i].is_running) {
      (void)uv_process_kill(&children->child[i].process, SIGTERM);
      (void)uv_timer_start(&children->timer, on_stop_late, STOP_MS, 0);
      return;
    }
  }
  uv_close((uv_handle_t *)&children->timer, NULL);
  children->ops.gone(children->data);
}

static void on_slow(uv_timer_t *timer) {
  struct cv_children *children = timer->data;
  struct cv_why why;
  for (size_t i = 0; i < children->count; i++) {
    if (children->child[i].waits) {
      describe(&children->child[i], "is not ready after 5 s, still waiting", &why);
      children->ops.slow(children->data, &why);
    }
  }
}

/* ---- starting and stopping ---- */

void cv_children_init(struct cv_children *children, uv_loop_t *loop, const char *folder,
                      const struct cv_children_ops *ops, void *data) {
  memset(children, 0, sizeof(*children));
  children->loop = loop;
  children->ops = *ops;
  children->data = data;
  (void)snprintf(children->folder, sizeof(children->folder), "%s", folder);
  (void)uv_timer_init(loop, &children->timer);
  children->timer.data = children;
}

/* Starts `crowdveil tether PARENT PROGRAM --config FILE`, so that the child cannot outlive this process. */
static enum cv_err spawn(struct cv_child *child, char *self, char *path, char *config, struct cv_why *why) {
  char parent[24], tether[] = "tether", option[] = "--config";
  char *args[] = {self, tether, parent, path, option, config, NULL};
  int nothing = cv_standard_nothing(), lacking = nothing < 0 ? errno : 0;
  uv_stdio_container_t stdio[] = {
      {.flags = UV_INHERIT_FD, .data.fd = nothing},
      {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE), .data.stream = (uv_stream_t *)&child->out},
      {.flags = UV_INHERIT_FD, .data.fd = child->log_fd},
  };
  const uv_process_options_t options = {
      .file = self,
      .args = args,
      .stdio = stdio,
      .stdio_count = CV_COUNT(stdio),
      .exit_cb = on_exit_of,
      .flags = UV_PROCESS_DETACHED /* Ctrl-C must reach this process only, which stops the children in order */
  };
  (void)snprintf(parent, sizeof(parent), "%d", (int)getpid());
  int status =
      uv_spawn(child->children->loop, &child->process, &options); /* without an input it fails, with its handle made */
  status = lacking != 0 ? uv_translate_sys_error(lacking) : status;
  (void)close(nothing);
  if (status != 0) {
    uv_close((uv_handle_t *)&child->process, NULL);
    uv_close((uv_handle_t *)&child->out, NULL);
    (void)close(child->log_fd);
    return cv_uv_fail(why, status, "cannot start %s", path);
  }
  child->is_running = true;
  return uv_read_start((uv_stream_t *)&child->out, on_room, on_output) == 0 ? CV_OK : CV_ERR_IO;
}

enum cv_err cv_children_start(struct cv_children *children, const char *name, const char *program, const char *config,
                              bool waits, struct cv_why *why) {
  char self[PATH_MAX], path[PATH_MAX], file[PATH_MAX];
  CV_REQUIRE(children->count < CV_CHILDREN_MAX);
  struct cv_child *child = &children->child[children->count];
  if (!cv_program_find(program, self, path)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: not found next to this program or on the PATH", program);
  }
  child->children = children;
  child->waits = waits;
  (void)snprintf(file, sizeof(file), "%s", config);
  (void)snprintf(child->name, sizeof(child->name), "%s", name);
  (void)snprintf(child->log, sizeof(child->log), "%s/%s.log", children->folder, name);
  child->log_fd = open(child->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (child->log_fd < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", child->log, strerror(errno));
  }
  (void)uv_pipe_init(children->loop, &child->out, 0);
  child->process.data = child->out.data = child;
  CV_TRY(spawn(child, self, path, file, why));
  children->count++;
  /* One timer is enough: a child that must become ready is started only after the previous one is ready. */
  if (waits) {
    (void)uv_timer_start(&children->timer, on_slow, SLOW_MS, 0);
  }
  return CV_OK;
}

void cv_children_keep_private(struct cv_children *children) {
  /* Nothing of it is read before the loop goes on. */
  children->child[children->count - 1].is_private = true;
}

void cv_children_stop(struct cv_children *children) {
  if (!children->stopping) {
    children->stopping = true;
    stop_next(children);
  }
}

void cv_children_kill(struct cv_children *children) {
  for (size_t i = 0; i < children->count; i++) {
    if (children->child[i].is_running) {
      (void)uv_process_kill(&children->child[i].process, SIGKILL);
    }
  }
}
