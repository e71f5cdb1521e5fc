/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/audit.h"

#include <stdlib.h>

#include "common/base/rng.h"
#include "lab/audit/evidence.h"
#include "lab/run/pool.h"

struct audit {
  const struct cv_audit_subject *subject;
  size_t count;
  const struct cv_audit_settings *settings;
  struct cv_audit_verdict *verdict;
};

/* Independent streams for each subject, neighbour and half. */
static uint64_t stream_of(const struct audit *audit, size_t at, bool neighbour, bool judging) {
  return cv_mix64(cv_mix64(audit->settings->seed) + 4 * at + 2 * (uint64_t)judging + (uint64_t)neighbour);
}

/* Half of the subject's runs on each neighbour. */
static uint64_t half_of(const struct audit *audit, size_t at) {
  uint32_t share = audit->subject[at].share;
  uint64_t runs = audit->settings->runs / (share == 0 ? 1 : share);
  return (runs < CV_AUDIT_RUNS_MIN ? CV_AUDIT_RUNS_MIN : runs) / 2;
}

static enum cv_err judge(const struct audit *audit, size_t at, int64_t *const rows[2]) {
  const struct cv_audit_subject *subject = &audit->subject[at];
  struct cv_audit_verdict *verdict = &audit->verdict[at];
  /* The union bound: all subjects together raise a false alarm with probability at most settings.error. */
  double began = cv_lab_seconds(), error = audit->settings->error / (double)audit->count;
  uint64_t half = half_of(audit, at);
  const int64_t *const seen[2] = {rows[0], rows[1]};
  /* The event is tested on runs that the search has not seen: a search always finds an event that fits its own runs. */
  for (int judging = 0; judging < 2; judging++) {
    for (int neighbour = 0; neighbour < 2; neighbour++) {
      CV_TRY(subject->sample(subject, neighbour, stream_of(audit, at, neighbour, judging), half, rows[neighbour]));
    }
    if (!judging) {
      CV_TRY(cv_audit_search(subject, seen, half, error, &verdict->event));
    }
  }
  bool likelier = verdict->event.likelier;
  verdict->runs = half;
  verdict->hits[0] = cv_audit_count(&verdict->event, rows[likelier], subject->width, half);
  verdict->hits[1] = cv_audit_count(&verdict->event, rows[!likelier], subject->width, half);
  verdict->certified = cv_audit_certified(verdict->hits[0], verdict->hits[1], half, subject->delta, error);
  verdict->seconds = cv_lab_seconds() - began;
  return CV_OK;
}

static enum cv_err audit_one(void *data, size_t at) {
  const struct audit *audit = data;
  size_t numbers = half_of(audit, at) * audit->subject[at].width;
  int64_t *rows[2] = {malloc(numbers * sizeof(int64_t)), malloc(numbers * sizeof(int64_t))};
  enum cv_err err = rows[0] == NULL || rows[1] == NULL ? CV_ERR_NOMEM : judge(audit, at, rows);
  free(rows[0]);
  free(rows[1]);
  return err;
}

enum cv_err cv_audit_run(const struct cv_audit_subject *subjects, size_t count,
                         const struct cv_audit_settings *settings, struct cv_audit_verdict *ret) {
  struct audit audit = {.subject = subjects, .count = count, .settings = settings, .verdict = ret};
  return cv_lab_pool(count, settings->jobs, settings->progress, audit_one, &audit);
}
