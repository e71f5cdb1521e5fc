/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/net/uverr.h"

/* Those of the loop (its signals, its epoll, its wake-up), and some for the first sockets and files. */
enum { DESCRIPTORS = 16 };
/* libuv's own number of threads, and its most; one more is tried, for whoever else starts one meanwhile. */
enum { THREADS = 4, THREADS_MAX = 1024, SPARE = 1 };

static enum cv_err try_descriptors(struct cv_why *why) {
  int fd[DESCRIPTORS], error = 0;
  size_t n = 0;
  while (n < DESCRIPTORS && error == 0) {
    fd[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    error = fd[n] < 0 ? errno : 0;
    n += error == 0;
  }
  for (size_t i = 0; i < n; i++) {
    (void)close(fd[i]);
  }
  return error == 0 ? CV_OK
                    : cv_fail(why, CV_ERR_LIMIT, "%zu descriptors are left: %s; expected %d or more (ulimit -n)", n,
                              strerror(error), DESCRIPTORS);
}

enum cv_err cv_loop_open(uv_loop_t *loop, struct cv_why *why) {
  CV_TRY(try_descriptors(why));
  int status = uv_loop_init(loop);
  return status == 0 ? CV_OK : cv_uv_fail(why, status, "the event loop cannot start");
}

/* ---- threads ---- */

/* As libuv reads it. */
static unsigned threads_wanted(void) {
  const char *text = getenv("UV_THREADPOOL_SIZE");
  unsigned long n = text == NULL ? THREADS : strtoul(text, NULL, 10);
  return n == 0 ? 1 : n > THREADS_MAX ? THREADS_MAX : (unsigned)n;
}

static void *wait_for(void *gate) {
  (void)pthread_mutex_lock(gate);
  (void)pthread_mutex_unlock(gate);
  return NULL;
}

/* As many at once as libuv will start, and gone again. */
static enum cv_err try_threads(struct cv_why *why) {
  static pthread_t thread[THREADS_MAX + SPARE];
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  unsigned wanted = threads_wanted() + SPARE, n = 0;
  int error = 0;
  (void)pthread_mutex_lock(&gate);
  while (n < wanted && error == 0) {
    error = pthread_create(&thread[n], NULL, wait_for, &gate);
    n += error == 0;
  }
  (void)pthread_mutex_unlock(&gate);
  for (unsigned i = 0; i < n; i++) {
    (void)pthread_join(thread[i], NULL);
  }
  return error == 0 ? CV_OK
                    : cv_fail(why, CV_ERR_LIMIT,
                              "thread %u of %u cannot be started: %s; expected room for them (ulimit -u, ulimit -v)",
                              n + 1, wanted, strerror(error));
}

static void do_nothing(uv_work_t *work) {
  (void)work;
}

/* Another process of the user took the room just now: libuv knows no other end. */
static void on_abort(int number) {
  static const char line[] = "crowdveil: threads cannot be started: the room for them was taken (ulimit -u)\n";
  (void)number;
  ssize_t written = write(STDERR_FILENO, line, sizeof(line) - 1);
  (void)written;
  _exit(1);
}

enum cv_err cv_loop_start_threads(uv_loop_t *loop, struct cv_why *why) {
  static uv_work_t work;
  static bool is_started;
  if (is_started) {
    return CV_OK;
  }
  CV_TRY(try_threads(why));
  void (*before)(int) = signal(SIGABRT, on_abort);
  int status = uv_queue_work(loop, &work, do_nothing, NULL);
  (void)signal(SIGABRT, before);
  is_started = status == 0;
  return is_started ? CV_OK : cv_uv_fail(why, status, "threads cannot be started");
}
