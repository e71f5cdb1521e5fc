/* SPDX-License-Identifier: Apache-2.0 */
/* What `run` and `report` share: options, and the way of an experiment from its name to its numbers. */
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

/* Their rows: `whose` number it is if nobody says one, and `more` about the lines of progress. */
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

/* Where progress is told; NULL: nowhere. */
FILE *cv_lab_running_progress(const struct cv_lab_asked *asked);

/* What a command does of its own. The first error ends it, in one line. */
struct cv_lab_steps {
  /* Says what of the experiment is run, and the file of its results in the folder. Texts are the command's. */
  enum cv_err (*plan)(void *self, const struct cv_lab_experiment *experiment, struct cv_lab_work *work,
                      struct cv_why *why);
  /* Takes the numbers, which took so many seconds. */
  enum cv_err (*take)(void *self, const struct cv_lab_dataset *dataset, double seconds, struct cv_why *why);
};

/* Opens the experiment (cv_lab_preset_open), plans and checks it, makes the folder, runs it, hands on what it found. */
CV_MUST_USE enum cv_err cv_lab_running(const char *name, const char *data, const struct cv_lab_asked *asked,
                                       const struct cv_lab_steps *steps, void *self, struct cv_why *why);

#endif
