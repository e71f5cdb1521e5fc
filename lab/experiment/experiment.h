/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An experiment: a campaign file with one more section that states what is varied, compared and measured.
 *
 *     experiment:
 *       about: one line
 *       paper: authors, title, figure; what it claims there       # for the report
 *       source: PPAR (Chen et al. 2022)    # short name of the paper, which sums up its experiments
 *       replicates: 150            # independent runs of each setting
 *       short: 10                  # replicates of the short report; default: replicates
 *       x: {vary: policy.alpha, values: [.1, .2, .3, .4], label: rank span}
 *                                  # or {pulls: 100}: that many evenly spaced moments of each run; or left out
 *       series:                    # each sets what it differs in; left out: one series, the campaign unchanged
 *         - {name: sound}
 *         - {name: as printed, policy.radius: printed, privacy.mechanism: hybrid-printed}
 *         - {name: cut off, rounds: 4000}         # ends each run after so many released plans; measure campaign only
 *         - {name: shared by 20, scale: {privacy.epsilon: .05}}    # factor for the value of x, grid or campaign
 *       grid: {privacy.epsilon: [.05, .1]}        # every series at every combination; a series that sets the key: once
 *       measure: campaign          # what is run; see lab/run/measures.h
 *       metrics: [accuracy, tokens]
 *       statistic: mean            # or median, median-of-means, root-mean-square
 *       figure: {title: ..., y: ..., log_x: false, log_y: false}
 *       claims: [...]              # see lab/judge/terms.h
 *
 * A path is a key in the campaign's file, sections and list indices (from 1) joined by dots: `items.list.2.mean`.
 * `vary` takes one path, or a list of paths that all get the value. An unknown path or an invalid value is an error
 * with line and column, reported before anything runs.
 *
 * This header has the data only; read.h reads it, campaigns.h makes its campaigns, check.h checks them all.
 */
#ifndef CV_LAB_EXPERIMENT_H
#define CV_LAB_EXPERIMENT_H

#include "common/base/spec.h"
#include "common/campaign/campaign.h"
#include "common/config/document.h"
#include "lab/judge/statistic.h"
#include "lab/result/result.h"
#include "worker/taxi.h"

enum {
  CV_LAB_SETS_MAX = 24,
  CV_LAB_SCALES_MAX = 4,
  CV_LAB_SERIES_MAX = 64,
  CV_LAB_POINTS_MAX = 1024,
  CV_LAB_METRICS_MAX = 8
};

struct cv_lab_measure;

enum cv_lab_axis {
  CV_LAB_AXIS_NONE,
  CV_LAB_AXIS_PARAMETER, /* each point is a separate setting */
  CV_LAB_AXIS_PULLS,     /* each point is a moment of every run */
};

/* A key of the campaign, and the number of the document's node that is its value. */
struct cv_lab_set {
  const char *path;
  int node;
};

struct cv_lab_series {
  char name[CV_LAB_NAME];
  const char *formula; /* name of a formula (lab/run/formula.h) that is computed instead of a run; NULL: run */
  size_t sets;
  struct cv_lab_set set[CV_LAB_SETS_MAX];
  uint64_t rounds; /* released plans after which a run ends; 0: no limit */
  size_t scales;
  struct cv_lab_set scale[CV_LAB_SCALES_MAX]; /* the nodes are factors */
};

/* A metric of the measure that the experiment selects. */
struct cv_lab_metric {
  const char *name; /* the measure's */
  size_t index;     /* in the measure's list */
  double range;     /* no difference of two values exceeds it; 0: unbounded */
};

struct cv_lab_figure {
  const char *name, *title;
  const char *x_label, *y_label;
  bool log_x, log_y;
  /* The metric to draw: with error bars from low to high (a band if there are many points), or as a line without
   * errors. A series "X, theory" is drawn in the style of series X. */
  const char *metric;
  enum cv_lab_statistic statistic; /* says what the error bars are */
};

/* Immutable once read, so that threads may share it; each piece of work parses the campaign from the text again. */
struct cv_lab_experiment {
  char name[CV_NAME_BYTES]; /* the campaign's */
  struct cv_yaml yaml;      /* owns the texts below */
  char *path, *text;
  size_t bytes;
  const char *data;                   /* replaces the campaign's data file; NULL: no replacement */
  struct cv_campaign_file with_taxis; /* the first campaign, if it reads a file of trips; else zero */
  struct cv_taxis taxis;              /* the trips of with_taxis, read once by cv_lab_taxis_read() */
  const char *about, *paper, *source; /* "" for a missing paper or source */
  uint64_t replicates, few;
  enum cv_lab_axis axis;
  size_t points;
  double *x; /* `points` values; a single NAN without an axis */
  size_t varied;
  struct cv_lab_set vary[CV_LAB_SETS_MAX]; /* the nodes are the list of values */
  size_t series;
  struct cv_lab_series *one;
  const struct cv_lab_measure *measure;
  size_t metrics;
  struct cv_lab_metric metric[CV_LAB_METRICS_MAX];
  enum cv_lab_statistic statistic;
  struct cv_lab_figure figure;
  const yaml_node_t *claims; /* a list, or NULL */
};

/* The number of settings, each of which needs its own runs: the points of a parameter axis, else 1. */
static inline size_t cv_lab_settings_of(const struct cv_lab_experiment *experiment) {
  return experiment->axis == CV_LAB_AXIS_PARAMETER ? experiment->points : 1;
}
/* The number of values of a replicate over all settings; and of a piece, one replicate of one setting:
 * [series][point of the setting][metric]. */
static inline size_t cv_lab_replicate_values(const struct cv_lab_experiment *experiment) {
  return experiment->series * experiment->points * experiment->metrics;
}
static inline size_t cv_lab_piece_values(const struct cv_lab_experiment *experiment) {
  return cv_lab_replicate_values(experiment) / cv_lab_settings_of(experiment);
}

#endif
