/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the report: what its page and its text are made of. */
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
  char anchor[120];           /* in the page */
  size_t claims;
  struct cv_lab_judged *claim; /* owned */
};

struct cv_lab_report {
  const char *folder, *command; /* borrowed; as of cv_lab_report_new() */
  uint64_t seed;
  size_t entries;
  struct cv_lab_entry *entry;
  FILE *sections; /* of the page, in memory: `body` of `bytes` once it is flushed */
  char *body;
  size_t bytes;
};

/* "holds" with a sign that is seen without colour, in HTML. */
void cv_lab_report_badge(enum cv_lab_verdict verdict, FILE *to);

/* Everything of one experiment, drawings included; what cannot be drawn is said in its place. */
void cv_lab_report_section(const struct cv_lab_report *report, const struct cv_lab_entry *entry,
                           const struct cv_lab_dataset *dataset, double seconds, FILE *to);
/* Of one that was not run. */
void cv_lab_report_absence(const struct cv_lab_entry *entry, const struct cv_lab_experiment *experiment,
                           const char *reason, FILE *to);

/* A file beside `path` that takes its place once it is complete. */
struct cv_lab_draft {
  char path[4096], beside[4096];
  FILE *file;
};
CV_MUST_USE enum cv_err cv_lab_draft_open(const char *path, struct cv_lab_draft *ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_lab_draft_close(struct cv_lab_draft *draft, struct cv_why *why);

#endif
