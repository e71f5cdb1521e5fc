/* SPDX-License-Identifier: Apache-2.0 */
/* Common parts of `run` and `report`: their options, and running an experiment given by name. */
#ifndef CV_LAB_RUNNING_H
#define CV_LAB_RUNNING_H

#include "lab/command/command.h"
#include "lab/run/work.h"

enum { CV_LAB_PATH_BYTES = 4096 };

struct cv_lab_asked {
  uint64_t replicates, seed, jobs;
  bool progress;
  char *out; /* folder of results; NULL: none */
};

/* Rows of the options' table. `whose` number of replicates is the default; `more` is appended to the help text. */
#define CV_LAB_REPLICATES_RULE(at, whose)                                                                 \
  {                                                                                                       \
    .key = "replicates", .type = CV_CONFIG_WHOLE, .offset = (at), .low = 0, .high = 1e9, .fallback = "0", \
    .help = "independent runs of each setting; 0: " whose " own number",                                  \
  }
#define CV_LAB_PROGRESS_RULE(at, more)                                              \
  {                                                                                 \
    .key = "progress", .type = CV_CONFIG_BOOL, .offset = (at), .fallback = "false", \
    .help = "print progress even if standard error is not a terminal" more,         \
  }

/* The stream to print progress to; NULL: none. */
FILE *cv_lab_running_progress(const struct cv_lab_asked *asked);

/* The steps in which the two commands differ. The first error ends the run, with one line. */
struct cv_lab_steps {
  /* Sets which part of the experiment is run, and the file for its results. Texts stay owned by the command. */
  enum cv_err (*plan)(void *self, const struct cv_lab_experiment *experiment, struct cv_lab_work *work,
                      struct cv_why *why);
  /* Receives the results and the running time. */
  enum cv_err (*take)(void *self, const struct cv_lab_dataset *dataset, double seconds, struct cv_why *why);
};

/* Opens the experiment (cv_lab_preset_open), plans and checks it, makes the folder, runs it, and calls `take`. */
CV_MUST_USE enum cv_err cv_lab_running(const char *name, const char *data, const struct cv_lab_asked *asked,
                                       const struct cv_lab_steps *steps, void *self, struct cv_why *why);

#endif
