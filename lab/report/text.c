/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/text.h"
#include "lab/report/parts.h"
#include "lab/report/report.h"

/* Writes escaped Markdown text, also for a cell of a table. */
static void plain(const char *text, FILE *to) {
  for (const char *c = text; *c != '\0'; c++) {
    if (strchr("\\`*_|<>[]#&~", *c) != NULL) {
      (void)fputc('\\', to);
    }
    (void)fputc((unsigned char)*c < ' ' ? ' ' : *c, to);
  }
}

static void write_entry(const struct cv_lab_entry *entry, FILE *to) {
  (void)fputs("\n## ", to);
  plain(entry->name, to);
  (void)fputs("\n\n", to);
  plain(entry->about, to);
  (void)fputs(".\n", to);
  if (entry->paper[0] != '\0') {
    (void)fputs("\n", to);
    plain(entry->paper, to);
    (void)fputs("\n", to);
  }
  if (entry->claims == 0) {
    return;
  }
  (void)fputs("\n| claim | verdict | why |\n| --- | --- | --- |\n", to);
  for (size_t i = 0; i < entry->claims; i++) {
    (void)fputs("| ", to);
    plain(entry->claim[i].says, to);
    (void)fprintf(to, " | **%s** | ", cv_lab_verdict_text(entry->claim[i].verdict));
    plain(entry->claim[i].reason, to);
    (void)fputs(" |\n", to);
  }
}

enum cv_err cv_lab_report_text(const struct cv_lab_report *report, const char *path, struct cv_why *why) {
  struct cv_lab_draft draft;
  size_t holds = cv_lab_report_count(report, CV_LAB_HOLDS), fails = cv_lab_report_count(report, CV_LAB_FAILS);
  size_t open = cv_lab_report_count(report, CV_LAB_UNDECIDED);
  CV_TRY(cv_lab_draft_open(path, &draft, why));
  FILE *to = draft.file;
  /* REUSE-IgnoreStart */
  (void)fputs("<!-- SPDX-License-Identifier: Apache-2.0 -->\n# What the papers claim, and what holds\n\n", to);
  /* REUSE-IgnoreEnd */
  (void)fprintf(to, "Written by\n\n    %s\n\n", report->command);
  (void)fprintf(
      to,
      "which gives the same numbers again, except for times, and a page with the figures. %zu claims hold, %zu do "
      "not, %zu cannot\nbe judged: chance alone may explain the difference at that number of replicates, or no "
      "number can decide. [The\nlaboratory](lab.md) says how a claim is judged.\n",
      holds, fails, open);
  for (size_t i = 0; i < report->entries; i++) {
    write_entry(&report->entry[i], to);
  }
  return cv_lab_draft_close(&draft, why);
}
