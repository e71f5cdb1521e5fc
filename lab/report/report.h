/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report on experiments: a summary with one line for each paper and a line with a thumbnail for each experiment, then
 * the experiments with claims, results, figures, and which claims hold, all folded. It is a web page without scripts or
 * network, which shows the large figures from files beside it, and the verdicts as a text.
 */
#ifndef CV_LAB_REPORT_H
#define CV_LAB_REPORT_H

#include "lab/judge/claim.h"

struct cv_lab_report;

struct cv_lab_report_about {
  const char *folder;  /* for figures; made if it is missing */
  const char *command; /* the command that makes this report */
  uint64_t seed;
};

/* Starts an empty report; the texts of `about` must outlive it. */
CV_MUST_USE enum cv_err cv_lab_report_new(const struct cv_lab_report_about *about, struct cv_lab_report **ret,
                                          struct cv_why *why);
void cv_lab_report_free(struct cv_lab_report *report);

/* Adds an experiment that ran for `seconds`: draws, judges and describes it. The dataset is borrowed for the call. */
CV_MUST_USE enum cv_err cv_lab_report_add(struct cv_lab_report *report, const struct cv_lab_dataset *dataset,
                                          double seconds, struct cv_why *why);
/* Adds an experiment that could not run: its claims cannot be judged, for this reason. */
CV_MUST_USE enum cv_err cv_lab_report_skip(struct cv_lab_report *report, const struct cv_lab_experiment *experiment,
                                           const char *reason, struct cv_why *why);

/* Writes the page; and the verdicts as Markdown. On an error an existing file stays as it was. */
CV_MUST_USE enum cv_err cv_lab_report_page(const struct cv_lab_report *report, const char *path, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_report_text(const struct cv_lab_report *report, const char *path, struct cv_why *why);

#endif
