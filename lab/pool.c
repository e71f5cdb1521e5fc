/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct pool {
  size_t pieces, next, done;
  cv_lab_piece_fn *piece;
  void *data;
  FILE *progress;
  double started;
  enum cv_err err;
  pthread_mutex_t lock;
};

double cv_lab_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

unsigned cv_lab_processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : (unsigned)count;
}

static void show(const struct pool *pool) {
  if (pool->progress != NULL) {
    double seconds = cv_lab_seconds() - pool->started;
    (void)fprintf(pool->progress, "\r%zu of %zu, %.0f s, about %.0f s left %s", pool->done, pool->pieces, seconds,
                  seconds * (double)(pool->pieces - pool->done) / (double)pool->done,
                  pool->done == pool->pieces ? "\n" : "");
    (void)fflush(pool->progress);
  }
}

static void *work(void *data) {
  struct pool *pool = data;
  (void)pthread_mutex_lock(&pool->lock);
  while (pool->next < pool->pieces && pool->err == CV_OK) {
    size_t at = pool->next++;
    (void)pthread_mutex_unlock(&pool->lock);
    enum cv_err err = pool->piece(pool->data, at);
    (void)pthread_mutex_lock(&pool->lock);
    pool->err = pool->err == CV_OK ? err : pool->err;
    pool->done++;
    show(pool);
  }
  (void)pthread_mutex_unlock(&pool->lock);
  return NULL;
}

enum cv_err cv_lab_pool(size_t pieces, unsigned jobs, FILE *progress, cv_lab_piece_fn *piece, void *data) {
  struct pool pool = {.pieces = pieces,
                      .piece = piece,
                      .data = data,
                      .progress = progress,
                      .started = cv_lab_seconds(),
                      .lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t *helper = calloc(jobs, sizeof(*helper));
  unsigned started = 0;
  if (helper == NULL) {
    return CV_ERR_NOMEM;
  }
  while (started + 1 < jobs && pthread_create(&helper[started], NULL, work, &pool) == 0) {
    started++;
  }
  (void)work(&pool);
  while (started > 0) {
    (void)pthread_join(helper[--started], NULL);
  }
  free(helper);
  return pool.err;
}
