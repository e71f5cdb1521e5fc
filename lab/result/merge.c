/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

struct merge {
  struct cv_lab_archive *out;
  struct cv_lab_origin origin; /* the first file's */
  struct cv_lab_merged so_far;
  const char *file; /* the present file */
  double *before;   /* scratch: values of a trial that `out` already has */
};

static enum cv_err take_trial(void *data, uint64_t setting, uint64_t replicate, const double *numbers,
                              struct cv_why *why) {
  struct merge *merge = data;
  size_t n = cv_lab_origin_numbers(&merge->origin);
  bool found = false;
  CV_TRY(cv_lab_archive_get(merge->out, setting, replicate, merge->before, n, &found, why));
  if (!found) {
    merge->so_far.trials++;
    merge->so_far.replicates = replicate < merge->so_far.replicates ? merge->so_far.replicates : replicate + 1;
    return cv_lab_archive_put(merge->out, setting, replicate, numbers, n, why);
  }
  /* Compared as bytes, since NAN differs from itself; the reader gives every missing value the same NAN. */
  return memcmp(merge->before, numbers, n * sizeof(*numbers)) == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "%s: other numbers for setting %" PRIu64 ", replicate %" PRIu64
                       " than in an earlier file; expected the same numbers",
                       merge->file, setting + 1, replicate + 1);
}

static enum cv_err settle_origin(struct merge *merge, struct cv_lab_archive *file, struct cv_why *why) {
  /* The first file defines the origin that all others must match. */
  if (merge->origin.name != NULL) {
    struct cv_lab_origin origin;
    CV_TRY(cv_lab_archive_origin(file, &origin, why));
    enum cv_err err = cv_lab_origin_match(&origin, &merge->origin, merge->file, why);
    cv_lab_origin_fini(&origin);
    return err;
  }
  CV_TRY(cv_lab_archive_origin(file, &merge->origin, why));
  merge->so_far.settings = merge->origin.settings;
  merge->before = calloc(cv_lab_origin_numbers(&merge->origin), sizeof(*merge->before));
  return merge->before == NULL ? cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", merge->file)
                               : cv_lab_archive_put_origin(merge->out, &merge->origin, why);
}

static enum cv_err take_file(struct merge *merge, struct cv_why *why) {
  struct cv_lab_archive *file;
  CV_TRY(cv_lab_archive_open_readonly(merge->file, &file, why));
  enum cv_err err = settle_origin(merge, file, why);
  err = err == CV_OK ? cv_lab_archive_each(file, &merge->origin, take_trial, merge, why) : err;
  cv_lab_archive_close(file);
  return err;
}

static enum cv_err take_all(struct merge *merge, const char *const *files, size_t count, struct cv_why *why) {
  CV_TRY(cv_lab_archive_begin(merge->out, why)); /* a single commit: nothing uses the file before all is merged */
  for (size_t i = 0; i < count; i++) {
    merge->file = files[i];
    CV_TRY(take_file(merge, why));
  }
  return cv_lab_archive_commit(merge->out, why);
}

static enum cv_err merge_into(const char *partial, const char *const *files, size_t count, struct cv_lab_merged *ret,
                              struct cv_why *why) {
  struct merge merge = {0};
  CV_TRY(cv_lab_archive_open(partial, &merge.out, why));
  enum cv_err err = take_all(&merge, files, count, why);
  if (err != CV_OK) {
    cv_lab_archive_rollback(merge.out);
  }
  cv_lab_archive_close(merge.out);
  cv_lab_origin_fini(&merge.origin);
  free(merge.before);
  merge.so_far.missing = merge.so_far.settings * merge.so_far.replicates - merge.so_far.trials;
  if (err == CV_OK) {
    *ret = merge.so_far;
  }
  return err;
}

/* Removes a partial file and the files that SQLite may have left beside it. */
static void discard(const char *path) {
  static const char *const ends[] = {"-wal", "-journal", ""};
  char name[PATH_BYTES];
  for (size_t i = 0; i < CV_COUNT(ends); i++) {
    if (snprintf(name, sizeof(name), "%s%s", path, ends[i]) < PATH_BYTES) {
      (void)unlink(name);
    }
  }
}

enum cv_err cv_lab_merge(const char *out, const char *const *files, size_t count, struct cv_lab_merged *ret,
                         struct cv_why *why) {
  char partial[PATH_BYTES];
  struct cv_lab_merged merged;
  if (access(out, F_OK) == 0) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: already exists; expected the name of a new file, then the files to merge",
                   out);
  }
  if (snprintf(partial, sizeof(partial), "%s.partial", out) >= PATH_BYTES) {
    return cv_fail(why, CV_ERR_LIMIT, "%.200s...: name too long", out);
  }
  /* An interrupted merge leaves OUT.partial; renaming at the end makes OUT appear complete or not at all. */
  discard(partial);
  enum cv_err err = merge_into(partial, files, count, &merged, why);
  if (err == CV_OK && rename(partial, out) != 0) {
    err = cv_fail(why, CV_ERR_IO, "%s: %s", out, strerror(errno));
  }
  if (err != CV_OK) {
    discard(partial);
    return err;
  }
  *ret = merged;
  return CV_OK;
}
