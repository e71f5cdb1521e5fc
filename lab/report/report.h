/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report on experiments: what was claimed, what was found, figures, and which claims hold. One web page that needs
 * nothing else (no script, no network), and the verdicts as a text.
 */
#ifndef CV_LAB_REPORT_H
#define CV_LAB_REPORT_H

#include "lab/judge/claim.h"

struct cv_lab_report;

struct cv_lab_report_about {
  const char *folder;  /* where figures are drawn; made if it is not there */
  const char *command; /* as somebody would type it to get this report */
  uint64_t seed;
};

/* `about` is borrowed. */
CV_MUST_USE enum cv_err cv_lab_report_new(const struct cv_lab_report_about *about, struct cv_lab_report **ret,
                                          struct cv_why *why);
void cv_lab_report_free(struct cv_lab_report *report);

/* Draws, judges and describes an experiment that took so many seconds. Nothing of it is needed afterwards. */
CV_MUST_USE enum cv_err cv_lab_report_add(struct cv_lab_report *report, const struct cv_lab_dataset *dataset,
                                          double seconds, struct cv_why *why);
/* One that could not be run: its claims cannot be judged, for this reason. */
CV_MUST_USE enum cv_err cv_lab_report_skip(struct cv_lab_report *report, const struct cv_lab_experiment *experiment,
                                           const char *reason, struct cv_why *why);

/* How many claims have this verdict so far. */
size_t cv_lab_report_count(const struct cv_lab_report *report, enum cv_lab_verdict verdict);

/* The page; and the verdicts as Markdown. A file is there whole or as it was before. */
CV_MUST_USE enum cv_err cv_lab_report_page(const struct cv_lab_report *report, const char *path, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_report_text(const struct cv_lab_report *report, const char *path, struct cv_why *why);

#endif
