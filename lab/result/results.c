/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/results.h"
#include "lab/experiment/read.h"

#include <inttypes.h>
#include <string.h>

static enum cv_err fill(void *data, uint64_t setting, uint64_t replicate, const double *numbers, struct cv_why *why) {
  struct cv_lab_dataset *dataset = data;
  if (replicate < dataset->replicates) {
    cv_lab_dataset_put(dataset, setting, replicate, numbers);
  }
  return CV_OK;
}

enum cv_err cv_lab_results_fill(struct cv_lab_archive *archive, const struct cv_lab_origin *origin,
                                struct cv_lab_dataset *dataset, struct cv_why *why) {
  return cv_lab_archive_each(archive, origin, fill, dataset, why);
}

bool cv_lab_results_fit(const struct cv_lab_origin *origin, const struct cv_lab_experiment *experiment) {
  return origin->settings == cv_lab_settings_of(experiment) && origin->series == experiment->series &&
         origin->points == experiment->points && origin->metrics == experiment->metrics;
}

static enum cv_err make_dataset(struct cv_lab_archive *archive, const char *path, struct cv_lab_results *results,
                                struct cv_why *why) {
  uint64_t replicates = 0, most = cv_lab_replicates_most(&results->experiment);
  CV_TRY(cv_lab_archive_replicates(archive, &replicates, why));
  if (replicates > most) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: %" PRIu64 " replicates do not fit into memory; expected at most %" PRIu64,
                   path, replicates, most);
  }
  return cv_lab_dataset_init(&results->experiment, replicates, &results->dataset) == CV_OK
             ? cv_lab_results_fill(archive, &results->origin, &results->dataset, why)
             : cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
}

static enum cv_err read_all(struct cv_lab_archive *archive, const char *path, struct cv_lab_results *results,
                            struct cv_why *why) {
  CV_TRY(cv_lab_archive_origin(archive, &results->origin, why));
  const struct cv_lab_origin *origin = &results->origin;
  /* The stored text is parsed again; with another version of this program it may have other series or points. */
  enum cv_err err = cv_lab_experiment_parse(path, origin->text, strlen(origin->text), NULL, &results->experiment, why);
  if (err != CV_OK || !cv_lab_results_fit(origin, &results->experiment)) {
    return cv_fail(why, CV_ERR_VERSION,
                   "%s: this version reads its experiment differently; expected version %s of crowdveil-lab", path,
                   origin->program);
  }
  return make_dataset(archive, path, results, why);
}

enum cv_err cv_lab_results_read(const char *path, struct cv_lab_results *ret, struct cv_why *why) {
  struct cv_lab_archive *archive;
  CV_TRY(cv_lab_archive_open_readonly(path, &archive, why));
  *ret = (struct cv_lab_results){0};
  enum cv_err err = read_all(archive, path, ret, why);
  cv_lab_archive_close(archive);
  if (err != CV_OK) {
    cv_lab_results_fini(ret);
  }
  return err;
}

void cv_lab_results_fini(struct cv_lab_results *results) {
  cv_lab_dataset_fini(&results->dataset);
  cv_lab_experiment_fini(&results->experiment);
  cv_lab_origin_fini(&results->origin);
}
