/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/repair.h"
#include "common/net/tls.h"

struct cv_shared_name cv_shared_name(const struct cv_broker_settings *settings) {
  struct cv_shared_name name = {.text = "PostgreSQL"};
  struct cv_remote_needs needs;
  if (CV_BROKER_REMOTE->check(settings->store, &needs, NULL) == CV_OK && needs.dials > 0) {
    (void)snprintf(name.text, sizeof(name.text), "PostgreSQL at %s", needs.dial[0]);
  }
  return name;
}

/* Splits the list of anchors, which is changed, at its line ends. */
static size_t split(char *list, const char *to[CV_ANCHORS_MAX + 1]) {
  char *save = NULL;
  size_t n = 0;
  for (char *at = strtok_r(list, "\n", &save); at != NULL && n <= CV_ANCHORS_MAX; at = strtok_r(NULL, "\n", &save)) {
    to[n++] = at;
  }
  return n;
}

static enum cv_err own_name(const struct cv_broker_settings *settings, char *to, size_t size, struct cv_why *why) {
  const struct cv_tls_files files = CV_CHANNEL_FILES(&settings->daemon.channel);
  const struct cv_tls_peers nobody = {0};
  struct cv_tls *tls;
  CV_TRY(cv_tls_new(&files, CV_ROLE_BROKER, nobody, false, &tls, why));
  (void)snprintf(to, size, "%s", cv_tls_identity(tls)->name);
  cv_tls_unref(tls);
  return CV_OK;
}

static enum cv_err begin(struct cv_shared *shared, const struct cv_broker_settings *settings, enum cv_remote_task task,
                         struct cv_why *why) {
  const char *anchor[CV_ANCHORS_MAX + 1];
  char *list = settings->recover_anchor == NULL ? NULL : strdup(settings->recover_anchor);
  struct cv_remote_work work = {.task = task, .lost = settings->lost, .anchor = anchor};
  if (settings->recover_anchor != NULL && list == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  work.anchors = list == NULL ? 0 : split(list, anchor);
  enum cv_err err = CV_BROKER_REMOTE->work(shared->remote, &work, &shared->marks, why);
  CV_BROKER_REMOTE->view(shared->remote, &shared->view);
  free(list);
  return err == CV_OK ? CV_BROKER_REMOTE->store(shared->remote, &shared->store, why) : err;
}

enum cv_err cv_shared_open(const struct cv_broker_settings *settings, const struct cv_ring *ring,
                           enum cv_remote_task task, struct cv_shared *ret, struct cv_why *why) {
  char name[256];
  struct cv_shared shared = {.remote = NULL};
  CV_TRY(own_name(settings, name, sizeof(name), why));
  const struct cv_remote_config config = {.store = settings->store,
                                          .anchor = settings->anchor,
                                          .name = name,
                                          .address = "an operator",
                                          .ring = ring,
                                          .replicated = settings->store_durability == CV_BROKER_REPLICATED};
  CV_TRY(CV_BROKER_REMOTE->open(&config, &shared.remote, why));
  enum cv_err err = begin(&shared, settings, task, why);
  if (err != CV_OK) {
    cv_shared_close(&shared);
    return err;
  }
  *ret = shared;
  return CV_OK;
}

void cv_shared_close(struct cv_shared *shared) {
  cv_broker_store_close(shared->store);
  CV_BROKER_REMOTE->close(shared->remote);
}

/* ---- recovery ---- */

struct bench {
  struct cv_broker_bench base; /* its store is that of `shared` */
  struct cv_shared shared;
};

static void bench_free(void *data) {
  struct bench *bench = data;
  cv_broker_free(bench->base.core);
  cv_shared_close(&bench->shared);
  free(bench);
}

static enum cv_err load(const struct cv_repair *repair, void **ret, struct cv_why *why) {
  const struct cv_shared_recovery *own = repair->config;
  struct bench *bench = calloc(1, sizeof(*bench));
  if (bench == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_shared_open(own->settings, repair->ring, CV_REMOTE_RECOVER, &bench->shared, why);
  if (err != CV_OK) {
    free(bench);
    return err;
  }
  bench->base.store = bench->shared.store;
  err = cv_broker_new(&own->config, &bench->base.core);
  err = err == CV_OK ? cv_broker_store_load(bench->base.store, bench->base.core, 0, repair->wall_ms, why)
                     : cv_fail(why, err, "%s", cv_err_text(err));
  if (err != CV_OK) {
    bench_free(bench);
    return err;
  }
  *ret = bench;
  return CV_OK;
}

static void marks(const void *data, struct cv_store_marks *ret) {
  *ret = ((const struct bench *)data)->shared.marks;
}

const struct cv_repair_party cv_shared_repair = {.records = "--anchor or --recover-thirdparty",
                                                 .load = load,
                                                 .free = bench_free,
                                                 .marks = marks,
                                                 .recovered = cv_broker_bench_recovered,
                                                 .recover = cv_broker_bench_recover,
                                                 .commit = cv_broker_bench_commit,
                                                 .anchor = cv_broker_bench_anchor};
