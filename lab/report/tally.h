/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of verdicts. Claims of papers and our own are never counted together. */
#ifndef CV_LAB_TALLY_H
#define CV_LAB_TALLY_H

#include <stddef.h>

#include "lab/report/report.h"

/* FAILING_LISTED: a summary names so many of the claims that do not hold. */
enum { CV_LAB_TALLY_TEXT = 120, CV_LAB_FAILING_LISTED = 3 };

/* Numbers of claims by verdict. */
struct cv_lab_tally {
  size_t count[CV_LAB_VERDICTS], total;
};

/* Which claims to count: our own or papers', and of experiments with this source; NULL: of all. */
struct cv_lab_group {
  bool is_ours;
  const char *source;
};

/* The verdicts in the order of the tables' columns, which is that of enum cv_lab_verdict. */
extern const char *const cv_lab_tally_heads[CV_LAB_VERDICTS];

struct cv_lab_tally cv_lab_tally_of(const struct cv_lab_report *report, const struct cv_lab_group *group);
/* The same of one experiment. */
struct cv_lab_entry;
struct cv_lab_tally cv_lab_tally_of_entry(const struct cv_lab_entry *entry, bool is_ours);
/* "3 hold, 1 does not hold, 0 have no effect, 2 are open". */
void cv_lab_tally_text(const struct cv_lab_tally *tally, char to[CV_LAB_TALLY_TEXT]);

/* Both counts over all experiments: of the papers' claims, and of our own. */
void cv_lab_report_counts(const struct cv_lab_report *report, char papers[CV_LAB_TALLY_TEXT],
                          char ours[CV_LAB_TALLY_TEXT]);

/*
 * Steps through the groups of our own claims, or of the papers', by source in the order of the experiments, those
 * without a claim left out: *group starts with source NULL. False after the last.
 */
bool cv_lab_group_next(const struct cv_lab_report *report, struct cv_lab_group *group);
/* The source, or what stands for a missing one. */
const char *cv_lab_group_name(const struct cv_lab_group *group);

/* A place in the list of a group's claims that do not hold; starts as zero. */
struct cv_lab_failing {
  size_t entry, claim;
};
/* Finds the claim at *at or the next one after it that does not hold. False if there is none. */
bool cv_lab_failing_find(const struct cv_lab_report *report, const struct cv_lab_group *group,
                         struct cv_lab_failing *at);

#endif
