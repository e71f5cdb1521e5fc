/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An experiment: a campaign file with one more section that says what is varied, compared and measured.
 *
 *     experiment:
 *       about: one line
 *       paper: authors, title, figure; what it claims there       # for the report
 *       replicates: 150            # independent runs of each setting
 *       short: 10                  # replicates of the short report; default: replicates
 *       x: {vary: policy.alpha, values: [.1, .2, .3, .4], label: rank span}
 *                                  # or {pulls: 100}: that many evenly spaced moments of each run; or left out
 *       series:                    # each sets what it differs in; left out: one series, the campaign as it stands
 *         - {name: sound}
 *         - {name: as printed, policy.radius: printed, privacy.mechanism: hybrid-printed}
 *         - {name: shared by 20, scale: {privacy.epsilon: .05}}    # times what x, grid or the campaign say
 *       grid: {privacy.epsilon: [.05, .1]}        # every series at every combination; once what sets the key itself
 *       measure: campaign          # what is run; see lab/run/measures.h
 *       metrics: [accuracy, tokens]
 *       statistic: mean            # or median-of-means, or root-mean-square
 *       figure: {title: ..., y: ..., log_x: false, log_y: false}
 *       claims: [...]              # see lab/judge/terms.h
 *
 * A path is a key in the campaign's file, sections and list places (from 1) joined by dots: `items.list.2.mean`. `vary`
 * takes one path or a list of paths that all get the value. A path that the campaign does not know, or a value that it
 * refuses, is an error with line and column, found when the experiment is read and not hours later.
 *
 * Here it is data that every part may know; read.h reads it, campaigns.h makes its campaigns, check.h tries them all.
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
  CV_LAB_AXIS_PARAMETER, /* each point is a setting of its own */
  CV_LAB_AXIS_PULLS,     /* each point is a moment of every run */
};

/* One key of the campaign and the node of the file that is its value. */
struct cv_lab_set {
  const char *path;
  int node;
};

struct cv_lab_series {
  char name[CV_LAB_NAME];
  const char *formula; /* a line that is calculated and not run: a name of lab/run/formula.h; NULL: it is run */
  size_t sets;
  struct cv_lab_set set[CV_LAB_SETS_MAX];
  size_t scales;
  struct cv_lab_set scale[CV_LAB_SCALES_MAX]; /* their node is a factor */
};

/* A number of the measure that the experiment asks for. */
struct cv_lab_metric {
  const char *name; /* the measure's */
  size_t index;     /* among the measure's */
};

struct cv_lab_figure {
  const char *name, *title;
  const char *x_label, *y_label;
  bool log_x, log_y;
  /* Whose rows are drawn: with error bars from low to high (in a band if there are many points), or as a line where
   * there is no error. A series "X, theory" has the look of series X. */
  const char *metric;
};

/* Immutable once read, so that threads may share it; a piece of work reads the campaign from the text anew. */
struct cv_lab_experiment {
  char name[CV_NAME_BYTES]; /* the campaign's */
  struct cv_yaml yaml;      /* owns the texts below */
  char *path, *text;
  size_t bytes;
  const char *data;                   /* instead of the data file that the campaign names; NULL: none */
  struct cv_campaign_file with_taxis; /* the first campaign, if its workers are those of a file of trips; else zero */
  struct cv_taxis taxis;              /* its, read once by cv_lab_taxis_read(): there are many campaigns */
  const char *about, *paper;
  uint64_t replicates, few;
  enum cv_lab_axis axis;
  size_t points;
  double *x; /* `points` of them; one, NAN, without an axis */
  size_t varied;
  struct cv_lab_set vary[CV_LAB_SETS_MAX]; /* their node is the list of values */
  size_t series;
  struct cv_lab_series *one;
  const struct cv_lab_measure *measure;
  size_t metrics;
  struct cv_lab_metric metric[CV_LAB_METRICS_MAX];
  enum cv_lab_statistic statistic;
  struct cv_lab_figure figure;
  const yaml_node_t *claims; /* a list, or NULL */
};

/* Settings that are runs of their own: the points, or one. */
static inline size_t cv_lab_settings_of(const struct cv_lab_experiment *experiment) {
  return experiment->axis == CV_LAB_AXIS_PARAMETER ? experiment->points : 1;
}
/* Numbers of all settings in a replicate; and of one, a piece of work: [series][point of the setting][metric]. */
static inline size_t cv_lab_replicate_values(const struct cv_lab_experiment *experiment) {
  return experiment->series * experiment->points * experiment->metrics;
}
static inline size_t cv_lab_piece_values(const struct cv_lab_experiment *experiment) {
  return cv_lab_replicate_values(experiment) / cv_lab_settings_of(experiment);
}

#endif
