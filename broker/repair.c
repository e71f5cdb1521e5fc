/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/repair.h"

#include <stdlib.h>

#include "broker/recover.h"
#include "broker/store.h"

static void bench_free(void *data) {
  struct cv_broker_bench *bench = data;
  cv_broker_free(bench->core);
  cv_broker_store_close(bench->store);
  free(bench);
}

static enum cv_err load(const struct cv_repair *repair, void **ret, struct cv_why *why) {
  struct cv_store_files files = repair->files;
  struct cv_broker_bench *bench = calloc(1, sizeof(*bench));
  if (bench == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  files.repair = true;
  enum cv_err err = cv_broker_store_open(&files, repair->ring, &bench->store, why);
  if (err == CV_OK && cv_broker_new(repair->config, &bench->core) != CV_OK) {
    err = cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  if (err == CV_OK) {
    err = cv_broker_store_load(bench->store, bench->core, 0, repair->wall_ms, why);
  }
  if (err != CV_OK) {
    bench_free(bench);
    return err;
  }
  *ret = bench;
  return CV_OK;
}

static void marks(const void *data, struct cv_store_marks *ret) {
  cv_broker_store_marks(((const struct cv_broker_bench *)data)->store, ret);
}

const struct cv_recovery *cv_broker_bench_recovered(const void *data) {
  return cv_broker_recovered(((const struct cv_broker_bench *)data)->core);
}

enum cv_err cv_broker_bench_recover(void *data, const struct cv_recover_facts *facts, struct cv_repaired *ret,
                                    struct cv_why *why) {
  struct cv_broker_bench *bench = data;
  /* Claims about ended campaigns need their rows, which a start does not read. */
  for (size_t i = 0; i < facts->claims; i++) {
    if (cv_broker_recover_needs(bench->core, facts, &facts->claim[i])) {
      CV_TRY(cv_broker_store_fetch(bench->store, bench->core, (uint32_t)facts->claim[i].campaign, why));
    }
  }
  ret->changed = cv_broker_recover(bench->core, facts, &ret->recovery);
  ret->floor_micro = cv_broker_floor_micro(bench->core);
  return CV_OK;
}

enum cv_err cv_broker_bench_commit(void *data, const struct cv_repair *repair, const struct cv_recovery *recovery,
                                   struct cv_why *why) {
  struct cv_broker_bench *bench = data;
  struct cv_broker_batch batch = {0};
  bool has_batch;
  enum cv_err err = cv_broker_flush(bench->core, 0, repair->wall_ms, &batch, &has_batch);
  if (err != CV_OK) {
    (void)cv_fail(why, err, "%s", cv_err_text(err));
  } else if (repair->record != NULL) {
    err = repair->record(repair->record_data, recovery, why);
  }
  if (err == CV_OK) {
    CV_REQUIRE(has_batch);
    cv_broker_store_leap(bench->store, batch.commit); /* the recovery's number skips all lost commits */
    err = cv_broker_store_commit(bench->store, &batch, why);
    cv_broker_stored(bench->core);
  }
  cv_broker_batch_fini(&batch);
  return err;
}

enum cv_err cv_broker_bench_anchor(void *data, struct cv_why *why) {
  return cv_broker_store_anchor(((struct cv_broker_bench *)data)->store, why);
}

const struct cv_repair_party cv_broker_repair = {.records = "--recover-thirdparty or --recover-cobroker",
                                                 .load = load,
                                                 .free = bench_free,
                                                 .marks = marks,
                                                 .recovered = cv_broker_bench_recovered,
                                                 .recover = cv_broker_bench_recover,
                                                 .commit = cv_broker_bench_commit,
                                                 .anchor = cv_broker_bench_anchor};
