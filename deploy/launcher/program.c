/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/program.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "common/base/text.h"
#include "common/config/standard.h"
#include "common/net/loop.h"
#include "common/net/uverr.h"

static bool try_program(const char *folder, const char *below, const char *program, char to[PATH_MAX]) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof(path), "%s%s/%s", folder, below, program);
  return n > 0 && (size_t)n < sizeof(path) && access(path, X_OK) == 0 && realpath(path, to) != NULL;
}

static bool on_path(const char *program, char to[PATH_MAX]) {
  const char *path = getenv("PATH");
  char *copy = strdup(path == NULL ? "/usr/local/bin:/usr/bin:/bin" : path), *rest = NULL;
  bool found = false;
  for (char *at = copy == NULL ? NULL : strtok_r(copy, ":", &rest); at != NULL && !found;
       at = strtok_r(NULL, ":", &rest)) {
    found = at[0] == '/' && try_program(at, "", program, to);
  }
  free(copy);
  return found;
}

/* In a build folder the program of a part is ../../PART/crowdveil-PART or ../../PART/crowdveil-PART-KIND, relative to
 * the folder of this program. */
bool cv_program_find(const char *program, char self[PATH_MAX], char to[PATH_MAX]) {
  char below[64], folder[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
  if (n <= 0) {
    return false;
  }
  folder[n] = '\0';
  memcpy(self, folder, (size_t)n + 1);
  const char *own = dirname(folder), *part = strchr(program, '-');
  part = part == NULL ? program : part + 1;
  (void)snprintf(below, sizeof(below), "/../../%.*s", (int)strcspn(part, "-"), part);
  return try_program(own, "", program, to) || try_program(own, below, program, to) || on_path(program, to);
}

/* ---- running a program until it ends ---- */

struct run {
  uv_loop_t loop;
  uv_process_t process;
  uv_pipe_t out;
  char line[CV_PROGRAM_LINE];
  size_t n;
  cv_program_line_fn *each;
  void *data;
  int status;
};

static void on_exit_of(uv_process_t *process, int64_t status, int signal_number) {
  struct run *run = process->data;
  run->status = signal_number == 0 ? (int)status : 128 + signal_number;
  uv_close((uv_handle_t *)process, NULL);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  static char room[4096];
  (void)handle;
  (void)suggested;
  *buf = uv_buf_init(room, sizeof(room));
}

static void end_line(struct run *run) {
  run->line[run->n] = '\0';
  run->n = 0;
  run->each(run->data, run->line);
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct run *run = stream->data;
  for (ssize_t i = 0; i < n; i++) {
    if (buf->base[i] == '\n') {
      end_line(run);
    } else if (run->n < CV_PROGRAM_LINE - 1) { /* the rest of a longer line is dropped */
      run->line[run->n++] = buf->base[i];
    }
  }
  if (n < 0) {
    if (run->n > 0) {
      end_line(run);
    }
    uv_close((uv_handle_t *)stream, NULL);
  }
}

enum cv_err cv_program_run(const char *program, const char *const *args, cv_program_line_fn *each, void *data,
                           int *ret_status, struct cv_why *why) {
  char self[PATH_MAX], path[PATH_MAX];
  char *argv[CV_PROGRAM_ARGS + 2] = {path};
  struct run run = {.each = each, .data = data, .status = 1};
  if (!cv_program_find(program, self, path)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: not found next to this program or on the PATH", program);
  }
  for (size_t i = 0; args[i] != NULL; i++) {
    CV_REQUIRE(i < CV_PROGRAM_ARGS);
    argv[i + 1] = (char *)(uintptr_t)args[i];
  }
  CV_TRY(cv_loop_open(&run.loop, why));
  (void)uv_pipe_init(&run.loop, &run.out, 0); /* cannot fail: nothing is opened yet */
  run.process.data = run.out.data = &run;
  int nothing = cv_standard_nothing(), lacking = nothing < 0 ? errno : 0;
  uv_stdio_container_t stdio[] = {
      {.flags = UV_INHERIT_FD, .data.fd = nothing},
      {.flags = (uv_stdio_flags)(UV_CREATE_PIPE | UV_WRITABLE_PIPE), .data.stream = (uv_stream_t *)&run.out},
      {.flags = UV_INHERIT_FD, .data.fd = 2},
  };
  const uv_process_options_t options = {
      .file = path, .args = argv, .stdio = stdio, .stdio_count = CV_COUNT(stdio), .exit_cb = on_exit_of};
  int status = uv_spawn(&run.loop, &run.process, &options); /* without an input it fails, with its handle made */
  status = lacking != 0 ? uv_translate_sys_error(lacking) : status;
  (void)close(nothing);
  /* The loop runs in either case: only it can finish closing the handles. */
  if (status == 0) {
    status = uv_read_start((uv_stream_t *)&run.out, on_room, on_output);
  } else {
    uv_close((uv_handle_t *)&run.process, NULL);
    uv_close((uv_handle_t *)&run.out, NULL);
  }
  (void)uv_run(&run.loop, UV_RUN_DEFAULT);
  (void)uv_loop_close(&run.loop);
  if (status != 0) {
    return cv_uv_fail(why, status, "cannot start %s", path);
  }
  *ret_status = run.status;
  return CV_OK;
}
