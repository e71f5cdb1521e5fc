/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lab/run/pace.h"

/* Seconds between two lines of progress. */
#define TERMINAL_SECONDS .1
#define FILE_SECONDS     10.0

struct pool {
  size_t pieces, next;
  cv_lab_piece_fn *piece;
  void *data;
  FILE *progress; /* NULL: none */
  bool is_terminal;
  struct cv_lab_pace pace;
  double shown; /* time of the last line */
  enum cv_err err;
  pthread_mutex_t lock;
};

static double read_clock(clockid_t clock) {
  struct timespec now;
  (void)clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double cv_lab_seconds(void) {
  return read_clock(CLOCK_MONOTONIC);
}

double cv_lab_processor_seconds(void) {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

unsigned cv_lab_processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : (unsigned)count;
}

static void print(struct pool *pool, double now) {
  char line[120];
  cv_lab_pace_print(&pool->pace, now, line, sizeof(line));
  (void)fprintf(pool->progress, pool->is_terminal ? "\r%s\033[K" : "%s\n", line);
  (void)fflush(pool->progress);
  pool->shown = now;
}

static void show_start(struct pool *pool) {
  pool->is_terminal = isatty(fileno(pool->progress)) == 1;
  pool->shown = pool->pace.began;
  if (pool->is_terminal) {
    print(pool, pool->pace.began);
  }
}

static void show_step(struct pool *pool) {
  if (pool->progress != NULL) {
    double now = cv_lab_seconds(), every = pool->is_terminal ? TERMINAL_SECONDS : FILE_SECONDS;
    cv_lab_pace_step(&pool->pace, now);
    if (now - pool->shown >= every || pool->pace.done == pool->pieces) {
      print(pool, now);
    }
  }
}

/* Ends the overwritten line, so that the next output, such as an error, starts on a new line. */
static void show_end(const struct pool *pool) {
  if (pool->is_terminal) {
    (void)fputc('\n', pool->progress);
    (void)fflush(pool->progress);
  }
}

static void *work(void *data) {
  struct pool *pool = data;
  (void)pthread_mutex_lock(&pool->lock);
  /* One piece at a time: pieces differ in cost, so fixed shares would leave threads idle at the end. */
  while (pool->next < pool->pieces && pool->err == CV_OK) {
    size_t at = pool->next++;
    (void)pthread_mutex_unlock(&pool->lock);
    enum cv_err err = pool->piece(pool->data, at);
    (void)pthread_mutex_lock(&pool->lock);
    pool->err = pool->err == CV_OK ? err : pool->err; /* the first error: later ones are often its consequences */
    show_step(pool);
  }
  (void)pthread_mutex_unlock(&pool->lock);
  return NULL;
}

enum cv_err cv_lab_pool(size_t pieces, unsigned jobs, FILE *progress, cv_lab_piece_fn *piece, void *data) {
  struct pool pool = {
      .pieces = pieces, .piece = piece, .data = data, .progress = progress, .lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t *helper = calloc(jobs, sizeof(*helper));
  unsigned started = 0;
  if (helper == NULL) {
    return CV_ERR_NOMEM;
  }
  cv_lab_pace_init(&pool.pace, pieces, cv_lab_seconds());
  if (progress != NULL && pieces > 0) {
    show_start(&pool);
  }
  /* This thread works too. If the system refuses a thread, those that exist do the work. */
  while (started + 1 < jobs && pthread_create(&helper[started], NULL, work, &pool) == 0) {
    started++;
  }
  (void)work(&pool);
  while (started > 0) {
    (void)pthread_join(helper[--started], NULL);
  }
  show_end(&pool);
  free(helper);
  return pool.err;
}
