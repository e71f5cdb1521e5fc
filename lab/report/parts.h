/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the report: the parts of its page and its text. */
#ifndef CV_LAB_REPORT_PARTS_H
#define CV_LAB_REPORT_PARTS_H

#include <stdio.h>

#include "lab/judge/claim.h"

struct cv_lab_judged {
  char *says, *quote, *where, *answer, *reason; /* owned; quote and where may be "" */
  bool is_ours;                                 /* not the paper's */
  enum cv_lab_verdict verdict;
};

struct cv_lab_entry {
  char *name, *about, *paper, *source; /* owned */
  char anchor[120];                    /* identifier in the page */
  bool has_figure;                     /* FOLDER/NAME-small.png is its thumbnail */
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

/* Writes the top of the page: per paper the counts of verdicts and what does not hold; the same of our own claims. */
void cv_lab_report_overview(const struct cv_lab_report *report, FILE *to);
/* The two kinds of claims of an experiment, each with its own table: false for the paper's, true for our own. */
bool cv_lab_entry_has(const struct cv_lab_entry *entry, bool is_ours);

/* Writes how many claims of an experiment have each verdict: "papers' claims ✓ 3 ✗ 1; our own ✓ 2". */
void cv_lab_entry_counts(const struct cv_lab_entry *entry, FILE *to);
/* A sign for a verdict that does not depend on colour, as HTML. */
extern const char *const cv_lab_verdict_signs[CV_LAB_VERDICTS];

/* Writes the section of an experiment and draws its figures, which the section links; one that fails is replaced by its
 * error message. Sets entry->has_figure. */
void cv_lab_report_section(const struct cv_lab_report *report, struct cv_lab_entry *entry,
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
