/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece's values, processor times aside, depend on the experiment, the seed and the piece's number only. So pieces
 * may run in any order, in any thread, on any machine, and after an interruption, and the dataset is always the same.
 */
#include "lab/run/work.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "lab/result/store.h"
#include "lab/run/measure.h"
#include "lab/run/piece.h"
#include "lab/run/pool.h"

struct running {
  const struct cv_lab_work *work;
  struct cv_lab_store *store; /* NULL: none */
  struct cv_lab_dataset dataset;
  uint64_t *piece; /* numbers of the pieces to run; NULL: all of the shard's */
  uint64_t pieces;
  pthread_mutex_t lock; /* of why */
  struct cv_why why;    /* of the first piece that failed */
};

/* ---- one piece ---- */

static enum cv_err run_piece(const struct running *running, uint64_t number, double *values, struct cv_why *why) {
  const struct cv_lab_work *work = running->work;
  uint64_t replicates = running->dataset.replicates;
  const struct cv_lab_piece piece = {.experiment = work->experiment,
                                     .setting = number / replicates,
                                     .replicate = number % replicates,
                                     .seed = cv_lab_replicate_seed(work->seed, number % replicates),
                                     .token_level = work->token_level};
  CV_TRY(cv_lab_piece_run(&piece, values, why));
  /* A piece that cannot be stored ends the run: an interruption would lose results that are in memory only. */
  if (running->store != NULL) {
    CV_TRY(cv_lab_store_put(running->store, piece.setting, piece.replicate, values, why));
  }
  /* No lock: each piece has its own place in the shared array of values. */
  struct cv_lab_dataset dataset = running->dataset;
  cv_lab_dataset_put(&dataset, piece.setting, piece.replicate, values);
  return CV_OK;
}

static enum cv_err run_at(void *data, size_t at) {
  struct running *running = data;
  uint64_t number = running->piece != NULL ? running->piece[at] : cv_lab_shard_piece(&running->work->shard, at);
  double *values = calloc(cv_lab_piece_values(running->work->experiment), sizeof(*values));
  struct cv_why why = {0};
  enum cv_err err = values == NULL ? CV_ERR_NOMEM : run_piece(running, number, values, &why);
  free(values);
  if (err != CV_OK) {
    (void)pthread_mutex_lock(&running->lock);
    running->why = running->why.text[0] == '\0' ? why : running->why;
    (void)pthread_mutex_unlock(&running->lock);
  }
  return err;
}

/* ---- all pieces ---- */

static enum cv_err open_store(struct running *running, struct cv_why *why) {
  const struct cv_lab_work *work = running->work;
  const struct cv_lab_identity identity = {
      .experiment = work->experiment, .seed = work->seed, .token_level = work->token_level};
  if (work->file == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_lab_store_open(work->file, &identity, work->resume, &running->store, why));
  return cv_lab_store_load(running->store, &running->dataset, why);
}

/* Chooses the pieces to run: those of the shard that the file does not have. */
static enum cv_err choose(struct running *running) {
  const struct cv_lab_shard *shard = &running->work->shard;
  uint64_t replicates = running->dataset.replicates;
  uint64_t all = cv_lab_shard_count(shard, cv_lab_settings_of(running->work->experiment) * replicates);
  running->pieces = all;
  if (running->store == NULL) {
    return CV_OK;
  }
  running->piece = calloc(all + 1, sizeof(*running->piece));
  if (running->piece == NULL) {
    return CV_ERR_NOMEM;
  }
  running->pieces = 0;
  for (uint64_t i = 0; i < all; i++) {
    uint64_t number = cv_lab_shard_piece(shard, i);
    if (!cv_lab_store_has(running->store, number / replicates, number % replicates)) {
      running->piece[running->pieces++] = number;
    }
  }
  return CV_OK;
}

static enum cv_err make_dataset(const struct cv_lab_work *work, struct cv_lab_dataset *ret, struct cv_why *why) {
  uint64_t replicates = work->replicates == 0 ? work->experiment->replicates : work->replicates;
  if (replicates > cv_lab_replicates_most(work->experiment)) {
    return cv_fail(why, CV_ERR_INVALID, "%" PRIu64 " replicates do not fit into memory; expected at most %" PRIu64,
                   replicates, cv_lab_replicates_most(work->experiment));
  }
  return cv_lab_dataset_init(work->experiment, replicates, ret);
}

static enum cv_err run_all(struct running *running, struct cv_why *why) {
  const struct cv_lab_work *work = running->work;
  unsigned jobs = work->jobs == 0 ? cv_lab_processors() : work->jobs;
  CV_TRY(make_dataset(work, &running->dataset, why));
  CV_TRY(open_store(running, why));
  CV_TRY(choose(running));
  enum cv_err err = cv_lab_pool(running->pieces, jobs, work->progress, run_at, running);
  if (err != CV_OK && why != NULL) {
    *why = running->why;
  }
  return err;
}

enum cv_err cv_lab_work_run(const struct cv_lab_work *work, struct cv_lab_dataset *ret, struct cv_why *why) {
  struct running running = {.work = work, .lock = PTHREAD_MUTEX_INITIALIZER};
  struct cv_why unused;
  enum cv_err err = run_all(&running, why);
  /* Closing commits the last pieces, also after an error, whose message must not be overwritten. */
  enum cv_err closed = cv_lab_store_close(running.store, err == CV_OK ? why : &unused);
  err = err == CV_OK ? closed : err;
  free(running.piece);
  if (err != CV_OK) {
    cv_lab_dataset_fini(&running.dataset);
    return err == CV_ERR_NOMEM ? cv_fail(why, err, "%s", cv_err_text(err)) : err;
  }
  *ret = running.dataset;
  return CV_OK;
}
