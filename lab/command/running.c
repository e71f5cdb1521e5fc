/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/command/running.h"

#include <unistd.h>

#include "lab/experiment/check.h"
#include "lab/experiment/preset.h"
#include "lab/experiment/read.h"
#include "lab/report/gnuplot.h"
#include "lab/run/pool.h"

FILE *cv_lab_running_progress(const struct cv_lab_asked *asked) {
  return asked->progress || isatty(STDERR_FILENO) ? stderr : NULL;
}

static enum cv_err run_opened(struct cv_lab_experiment *experiment, const struct cv_lab_asked *asked,
                              const struct cv_lab_steps *steps, void *self, struct cv_why *why) {
  struct cv_lab_work work = {.experiment = experiment,
                             .replicates = asked->replicates,
                             .seed = asked->seed,
                             .jobs = (unsigned)asked->jobs,
                             .shard = {1, 1},
                             .progress = cv_lab_running_progress(asked)};
  struct cv_lab_dataset dataset;
  CV_TRY(steps->plan(self, experiment, &work, why));
  /* Checked before the folder is made: a faulty experiment leaves nothing behind. */
  CV_TRY(cv_lab_experiment_check(experiment, why));
  if (asked->out != NULL) {
    CV_TRY(cv_lab_folder_make(asked->out, why));
  }
  double started = cv_lab_seconds();
  CV_TRY(cv_lab_work_run(&work, &dataset, why));
  enum cv_err err = steps->take(self, &dataset, cv_lab_seconds() - started, why);
  cv_lab_dataset_fini(&dataset);
  return err;
}

enum cv_err cv_lab_running(const char *name, const char *data, const struct cv_lab_asked *asked,
                           const struct cv_lab_steps *steps, void *self, struct cv_why *why) {
  struct cv_lab_experiment experiment;
  CV_TRY(cv_lab_preset_open(name, data, &experiment, why));
  enum cv_err err = run_opened(&experiment, asked, steps, self, why);
  cv_lab_experiment_fini(&experiment);
  return err;
}
