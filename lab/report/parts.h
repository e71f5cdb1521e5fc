/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the report: the parts of its page and its text. */
#ifndef CV_LAB_REPORT_PARTS_H
#define CV_LAB_REPORT_PARTS_H

#include <stdio.h>

#include "lab/judge/claim.h"

struct cv_lab_judged {
  char *says, *reason; /* owned */
  enum cv_lab_verdict verdict;
};

struct cv_lab_entry {
  char *name, *about, *paper; /* owned */
  char anchor[120];           /* identifier in the page */
  size_t claims;
  struct cv_lab_judged *claim; /* owned */
};

struct cv_lab_report {
  const char *folder, *command; /* borrowed; as of cv_lab_report_new() */
  uint64_t seed;
  size_t entries;
  struct cv_lab_entry *entry;
  FILE *sections; /* the page's sections, in memory: `body`, `bytes` long after a flush */
  char *body;
  size_t bytes;
};

/* Writes a verdict in HTML, with a sign that does not depend on colour. */
void cv_lab_report_badge(enum cv_lab_verdict verdict, FILE *to);

/* Writes the section of an experiment, with drawings; a drawing that fails is replaced by its error message. */
void cv_lab_report_section(const struct cv_lab_report *report, const struct cv_lab_entry *entry,
                           const struct cv_lab_dataset *dataset, double seconds, FILE *to);
/* Writes the section of an experiment that was not run. */
void cv_lab_report_absence(const struct cv_lab_entry *entry, const struct cv_lab_experiment *experiment,
                           const char *reason, FILE *to);

/* A temporary file beside `path`, renamed to `path` when it is complete. */
struct cv_lab_draft {
  char path[4096], beside[4096];
  FILE *file;
};
CV_MUST_USE enum cv_err cv_lab_draft_open(const char *path, struct cv_lab_draft *ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_draft_close(struct cv_lab_draft *draft, struct cv_why *why);

#endif
