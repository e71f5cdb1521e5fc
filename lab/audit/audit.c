/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/audit.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/rng.h"
#include "lab/audit/evidence.h"

struct audit {
  const struct cv_audit_subject *subject;
  size_t count, next, done;
  const struct cv_audit_settings *settings;
  struct cv_audit_verdict *verdict;
  enum cv_err err;
  struct timespec started;
  pthread_mutex_t lock;
};

static double seconds_since(const struct timespec *then) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

/* Independent streams for each subject, neighbour and half. */
static uint64_t stream_of(const struct audit *audit, size_t at, bool neighbour, bool judging) {
  return cv_mix64(cv_mix64(audit->settings->seed) + 4 * at + 2 * (uint64_t)judging + (uint64_t)neighbour);
}

static enum cv_err judge(const struct audit *audit, size_t at, int64_t *const rows[2]) {
  const struct cv_audit_subject *subject = &audit->subject[at];
  struct cv_audit_verdict *verdict = &audit->verdict[at];
  const struct timespec *epoch = &(struct timespec){0};
  double began = seconds_since(epoch), error = audit->settings->error / (double)audit->count;
  uint64_t half = audit->settings->runs / 2;
  const int64_t *const seen[2] = {rows[0], rows[1]};
  for (int judging = 0; judging < 2; judging++) {
    for (int neighbour = 0; neighbour < 2; neighbour++) {
      CV_TRY(subject->sample(subject, neighbour, stream_of(audit, at, neighbour, judging), half, rows[neighbour]));
    }
    if (!judging) {
      CV_TRY(cv_audit_search(subject, seen, half, error, &verdict->event));
    }
  }
  bool likelier = verdict->event.likelier;
  verdict->hits[0] = cv_audit_count(&verdict->event, rows[likelier], subject->width, half);
  verdict->hits[1] = cv_audit_count(&verdict->event, rows[!likelier], subject->width, half);
  verdict->certified = cv_audit_certified(verdict->hits[0], verdict->hits[1], half, subject->delta, error);
  verdict->seconds = seconds_since(epoch) - began;
  return CV_OK;
}

static enum cv_err audit_one(const struct audit *audit, size_t at) {
  size_t numbers = audit->settings->runs / 2 * audit->subject[at].width;
  int64_t *rows[2] = {malloc(numbers * sizeof(int64_t)), malloc(numbers * sizeof(int64_t))};
  enum cv_err err = rows[0] == NULL || rows[1] == NULL ? CV_ERR_NOMEM : judge(audit, at, rows);
  free(rows[0]);
  free(rows[1]);
  return err;
}

static void show_progress(const struct audit *audit) {
  FILE *to = audit->settings->progress;
  if (to != NULL) {
    double seconds = seconds_since(&audit->started);
    (void)fprintf(to, "\r%zu of %zu, %.0f s, about %.0f s left ", audit->done, audit->count, seconds,
                  seconds * (double)(audit->count - audit->done) / (double)audit->done);
    (void)fprintf(to, audit->done == audit->count ? "\n" : "");
    (void)fflush(to);
  }
}

static void *work(void *data) {
  struct audit *audit = data;
  (void)pthread_mutex_lock(&audit->lock);
  while (audit->next < audit->count && audit->err == CV_OK) {
    size_t at = audit->next++;
    (void)pthread_mutex_unlock(&audit->lock);
    enum cv_err err = audit_one(audit, at);
    (void)pthread_mutex_lock(&audit->lock);
    audit->err = audit->err == CV_OK ? err : audit->err;
    audit->done++;
    show_progress(audit);
  }
  (void)pthread_mutex_unlock(&audit->lock);
  return NULL;
}

enum cv_err cv_audit_run(const struct cv_audit_subject *subjects, size_t count,
                         const struct cv_audit_settings *settings, struct cv_audit_verdict *ret) {
  struct audit audit = {
      .subject = subjects, .count = count, .settings = settings, .verdict = ret, .lock = PTHREAD_MUTEX_INITIALIZER};
  pthread_t *helper = calloc(settings->jobs, sizeof(*helper));
  unsigned started = 0;
  if (helper == NULL) {
    return CV_ERR_NOMEM;
  }
  (void)clock_gettime(CLOCK_MONOTONIC, &audit.started);
  while (started + 1 < settings->jobs && pthread_create(&helper[started], NULL, work, &audit) == 0) {
    started++;
  }
  (void)work(&audit);
  while (started > 0) {
    (void)pthread_join(helper[--started], NULL);
  }
  free(helper);
  return audit.err;
}
