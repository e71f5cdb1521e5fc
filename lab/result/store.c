/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces are inserted as they complete, and a thread of the store commits them. A commit waits for the disk, so it
 * covers many pieces; but it does not wait for the next piece, which may be hours away.
 */
#include "lab/result/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/array.h"
#include "lab/experiment/campaigns.h"
#include "lab/result/results.h"

enum { GATHER_MS = 250 };

struct key {
  uint64_t setting, replicate;
};

struct cv_lab_store {
  struct cv_lab_archive *archive;
  struct cv_lab_origin origin;
  struct key *there; /* pieces that the file had when it was opened, ascending; not changed afterwards, so no lock */
  size_t count, cap;
  pthread_t committer;
  pthread_mutex_t lock; /* protects the members below, and the archive */
  pthread_cond_t changed;
  bool is_open, is_dirty; /* is_dirty: a transaction is open */
  enum cv_err err;        /* the first error, with its line */
  struct cv_why why;
};

/* ---- the origin ---- */

static bool has_file(const struct cv_lab_origin *origin, const char *path) {
  for (size_t i = 0; i < origin->files; i++) {
    if (strcmp(origin->file[i].path, path) == 0) {
      return true;
    }
  }
  return false;
}

static enum cv_err add_file(struct cv_lab_origin *origin, const char *path, struct cv_why *why) {
  if (has_file(origin, path)) {
    return CV_OK;
  }
  if (origin->files == CV_LAB_FILES_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %d data files", CV_LAB_FILES_MAX);
  }
  CV_TRY(cv_lab_data_file_read(path, &origin->file[origin->files], why));
  origin->files++;
  return CV_OK;
}

/* Reads size and checksum of the data files of all campaigns, each file once. */
static enum cv_err read_files(const struct cv_lab_experiment *experiment, struct cv_lab_origin *origin,
                              struct cv_why *why) {
  origin->files = 0;
  origin->file = calloc(CV_LAB_FILES_MAX, sizeof(*origin->file));
  if (origin->file == NULL) {
    return CV_ERR_NOMEM;
  }
  for (size_t i = 0; i < experiment->series * origin->settings; i++) {
    char *path = NULL;
    CV_TRY(cv_lab_data_path(experiment, i / origin->settings, i % origin->settings, &path, why));
    enum cv_err err = path == NULL ? CV_OK : add_file(origin, path, why);
    free(path);
    CV_TRY(err);
  }
  return CV_OK;
}

static enum cv_err copy_labels(const struct cv_lab_experiment *experiment, struct cv_lab_origin *origin) {
  origin->series_name = calloc(experiment->series, sizeof(*origin->series_name));
  origin->metric_name = calloc(experiment->metrics, sizeof(*origin->metric_name));
  origin->x = calloc(experiment->points, sizeof(*origin->x));
  if (origin->series_name == NULL || origin->metric_name == NULL || origin->x == NULL) {
    return CV_ERR_NOMEM;
  }
  for (size_t i = 0; i < experiment->series; i++) {
    (void)snprintf(origin->series_name[i].text, CV_LAB_NAME, "%s", experiment->one[i].name);
  }
  for (size_t i = 0; i < experiment->metrics; i++) {
    (void)snprintf(origin->metric_name[i].text, CV_LAB_NAME, "%s", experiment->metric[i].name);
  }
  memcpy(origin->x, experiment->x, experiment->points * sizeof(*origin->x));
  return CV_OK;
}

static enum cv_err make_origin(const struct cv_lab_identity *identity, struct cv_lab_origin *origin,
                               struct cv_why *why) {
  const struct cv_lab_experiment *experiment = identity->experiment;
  *origin = (struct cv_lab_origin){.name = strdup(experiment->name),
                                   .text = strndup(experiment->text, experiment->bytes),
                                   .seed = identity->seed,
                                   .token_level = identity->token_level,
                                   .program = CV_VERSION,
                                   .settings = cv_lab_settings_of(experiment),
                                   .series = experiment->series,
                                   .points = experiment->points,
                                   .metrics = experiment->metrics};
  CV_REQUIRE(cv_lab_origin_is_valid(origin) && cv_lab_results_fit(origin, experiment));
  enum cv_err err = origin->name == NULL || origin->text == NULL ? CV_ERR_NOMEM : copy_labels(experiment, origin);
  if (err == CV_OK) {
    cv_lab_sha256_hex(origin->text, strlen(origin->text), origin->text_sha256);
    err = read_files(experiment, origin, why);
  }
  return err == CV_ERR_NOMEM ? cv_fail(why, err, "out of memory") : err;
}

/* ---- opening ---- */

static enum cv_err write_origin(struct cv_lab_store *store, struct cv_why *why) {
  CV_TRY(cv_lab_archive_begin(store->archive, why));
  enum cv_err err = cv_lab_archive_put_origin(store->archive, &store->origin, why);
  err = err == CV_OK ? cv_lab_archive_commit(store->archive, why) : err;
  if (err != CV_OK) {
    cv_lab_archive_rollback(store->archive);
  }
  return err;
}

/* Writes or checks the origin. A file without an origin, as a full disk may leave it, counts as new. */
static enum cv_err settle_origin(struct cv_lab_store *store, const char *path, bool resume, struct cv_why *why) {
  struct cv_lab_origin found;
  enum cv_err err = cv_lab_archive_origin(store->archive, &found, why);
  if (err == CV_ERR_NOT_FOUND) {
    return write_origin(store, why);
  }
  if (err == CV_OK) {
    err = resume ? cv_lab_origin_match(&found, &store->origin, path, why)
                 : cv_fail(why, CV_ERR_EXISTS, "%s: already has results; --resume continues with them", path);
    cv_lab_origin_fini(&found);
  }
  return err;
}

static enum cv_err note_key(void *data, uint64_t setting, uint64_t replicate, const double *numbers,
                            struct cv_why *why) {
  struct cv_lab_store *store = data;
  if (CV_ARRAY_ROOM(store->there, store->count + 1, store->cap) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  store->there[store->count++] = (struct key){setting, replicate};
  return CV_OK;
}

/* Waits for further pieces until a deadline, so that a steady stream of pieces does not delay the commit. */
static void gather(struct cv_lab_store *store) {
  struct timespec until;
  (void)clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += GATHER_MS * 1000000L;
  until.tv_sec += until.tv_nsec / 1000000000L;
  until.tv_nsec %= 1000000000L;
  while (store->is_open && pthread_cond_timedwait(&store->changed, &store->lock, &until) == 0) {
  }
}

static void commit(struct cv_lab_store *store) {
  if (store->is_dirty && store->err == CV_OK) {
    store->err = cv_lab_archive_commit(store->archive, &store->why);
  }
  /* Also after a failed insert: pieces of an unfinished transaction run again after --resume. */
  if (store->err != CV_OK) {
    cv_lab_archive_rollback(store->archive);
  }
  store->is_dirty = false;
}

static void *commit_now_and_then(void *data) {
  struct cv_lab_store *store = data;
  (void)pthread_mutex_lock(&store->lock);
  while (store->is_open) {
    if (store->is_dirty) {
      gather(store);
      commit(store);
    } else {
      (void)pthread_cond_wait(&store->changed, &store->lock);
    }
  }
  (void)pthread_mutex_unlock(&store->lock);
  return NULL;
}

static enum cv_err start(struct cv_lab_store *store, struct cv_why *why) {
  pthread_condattr_t monotonic;
  (void)pthread_mutex_init(&store->lock, NULL);
  (void)pthread_condattr_init(&monotonic);
  /* Monotonic: a clock that is set back must not delay a commit. */
  (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  (void)pthread_cond_init(&store->changed, &monotonic);
  (void)pthread_condattr_destroy(&monotonic);
  store->is_open = true;
  if (pthread_create(&store->committer, NULL, commit_now_and_then, store) != 0) {
    return cv_fail(why, CV_ERR_LIMIT, "cannot start a thread");
  }
  return CV_OK;
}

static void drop(struct cv_lab_store *store) {
  cv_lab_archive_close(store->archive);
  cv_lab_origin_fini(&store->origin);
  free(store->there);
  free(store);
}

static enum cv_err open_archive(struct cv_lab_store *store, const char *path, bool resume, struct cv_why *why) {
  CV_TRY(cv_lab_archive_open(path, &store->archive, why));
  CV_TRY(settle_origin(store, path, resume, why));
  CV_TRY(cv_lab_archive_each(store->archive, &store->origin, note_key, store, why));
  return start(store, why);
}

enum cv_err cv_lab_store_open(const char *path, const struct cv_lab_identity *identity, bool resume,
                              struct cv_lab_store **ret, struct cv_why *why) {
  struct cv_lab_store *store = calloc(1, sizeof(*store));
  if (store == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  enum cv_err err = make_origin(identity, &store->origin, why);
  err = err == CV_OK ? open_archive(store, path, resume, why) : err;
  if (err != CV_OK) {
    drop(store);
    return err;
  }
  *ret = store;
  return CV_OK;
}

enum cv_err cv_lab_store_close(struct cv_lab_store *store, struct cv_why *why) {
  if (store == NULL) {
    return CV_OK;
  }
  (void)pthread_mutex_lock(&store->lock);
  store->is_open = false;
  (void)pthread_cond_signal(&store->changed);
  (void)pthread_mutex_unlock(&store->lock);
  (void)pthread_join(store->committer, NULL);
  commit(store); /* the thread may have ended between an insert and its commit */
  enum cv_err err = store->err;
  if (err != CV_OK && why != NULL) {
    *why = store->why;
  }
  (void)pthread_cond_destroy(&store->changed);
  (void)pthread_mutex_destroy(&store->lock);
  drop(store);
  return err;
}

/* ---- pieces ---- */

static int compare_keys(const void *a, const void *b) {
  const struct key *x = a, *y = b;
  return x->setting != y->setting ? (x->setting < y->setting ? -1 : 1)
                                  : (x->replicate > y->replicate) - (x->replicate < y->replicate);
}

bool cv_lab_store_has(const struct cv_lab_store *store, size_t setting, uint64_t replicate) {
  const struct key key = {setting, replicate};
  return store->count > 0 && bsearch(&key, store->there, store->count, sizeof(key), compare_keys) != NULL;
}

static enum cv_err put(struct cv_lab_store *store, size_t setting, uint64_t replicate, const double *values) {
  if (!store->is_dirty) {
    CV_TRY(cv_lab_archive_begin(store->archive, &store->why));
    store->is_dirty = true;
    (void)pthread_cond_signal(&store->changed);
  }
  return cv_lab_archive_put(store->archive, setting, replicate, values, cv_lab_origin_numbers(&store->origin),
                            &store->why);
}

enum cv_err cv_lab_store_put(struct cv_lab_store *store, size_t setting, uint64_t replicate, const double *values,
                             struct cv_why *why) {
  (void)pthread_mutex_lock(&store->lock);
  if (store->err == CV_OK) {
    store->err = put(store, setting, replicate, values);
  }
  enum cv_err err = store->err;
  if (err != CV_OK && why != NULL) {
    *why = store->why;
  }
  (void)pthread_mutex_unlock(&store->lock);
  return err;
}

enum cv_err cv_lab_store_load(struct cv_lab_store *store, struct cv_lab_dataset *dataset, struct cv_why *why) {
  (void)pthread_mutex_lock(&store->lock);
  enum cv_err err = cv_lab_results_fill(store->archive, &store->origin, dataset, why);
  (void)pthread_mutex_unlock(&store->lock);
  return err;
}
