/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/repair.h"

#include <stdlib.h>

#include "cobroker/recover.h"
#include "cobroker/state.h"
#include "cobroker/store.h"

struct bench {
  struct cv_cobroker_store *store;
  struct cv_cobroker *core;
};

static void bench_free(void *data) {
  struct bench *bench = data;
  cv_cobroker_free(bench->core);
  cv_cobroker_store_close(bench->store);
  free(bench);
}

static enum cv_err load(const struct cv_repair *repair, void **ret, struct cv_why *why) {
  struct cv_store_files files = repair->files;
  struct bench *bench = calloc(1, sizeof(*bench));
  if (bench == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  files.repair = true;
  enum cv_err err = cv_cobroker_store_open(&files, repair->ring, &bench->store, why);
  if (err == CV_OK && cv_cobroker_new(repair->config, &bench->core) != CV_OK) {
    err = cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (err == CV_OK) {
    bench->core->examines = true; /* campaigns of other keys are not frozen, but recovered */
    err = cv_cobroker_store_load(bench->store, bench->core, 0, repair->wall_ms, why);
  }
  if (err != CV_OK) {
    bench_free(bench);
    return err;
  }
  *ret = bench;
  return CV_OK;
}

static void marks(const void *data, struct cv_store_marks *ret) {
  cv_cobroker_store_marks(((const struct bench *)data)->store, ret);
}

static const struct cv_recovery *recovered(const void *data) {
  return cv_cobroker_recovered(((const struct bench *)data)->core);
}

static enum cv_err recover(void *data, const struct cv_recover_facts *facts, struct cv_repaired *ret,
                           struct cv_why *why) {
  struct bench *bench = data;
  (void)why;
  ret->changed = cv_cobroker_recover(bench->core, facts, &ret->recovery);
  ret->floor_micro = cv_cobroker_floor_micro(bench->core);
  return CV_OK;
}

static enum cv_err commit(void *data, const struct cv_repair *repair, const struct cv_recovery *recovery,
                          struct cv_why *why) {
  struct bench *bench = data;
  struct cv_cobroker_batch batch = {0};
  bool has_batch;
  enum cv_err err = cv_cobroker_flush(bench->core, 0, repair->wall_ms, &batch, &has_batch);
  if (err != CV_OK) {
    (void)cv_fail(why, err, "%s", cv_err_text(err));
  } else if (repair->record != NULL) {
    err = repair->record(repair->record_data, recovery, why);
  }
  if (err == CV_OK) {
    CV_REQUIRE(has_batch);
    cv_cobroker_store_leap(bench->store, batch.commit); /* the recovery's number skips all lost commits */
    err = cv_cobroker_store_commit(bench->store, &batch, why);
    cv_cobroker_stored(bench->core);
  }
  cv_cobroker_batch_fini(&batch);
  return err;
}

static enum cv_err anchor(void *data, struct cv_why *why) {
  return cv_cobroker_store_anchor(((struct bench *)data)->store, why);
}

const struct cv_repair_party cv_cobroker_repair = {.records = "--recover-broker",
                                                   .load = load,
                                                   .free = bench_free,
                                                   .marks = marks,
                                                   .recovered = recovered,
                                                   .recover = recover,
                                                   .commit = commit,
                                                   .anchor = anchor};
