/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/text.h"
#include "lab/report/parts.h"
#include "lab/report/report.h"
#include "lab/report/tally.h"

/* Writes escaped Markdown text, also for a cell of a table. */
static void plain(const char *text, FILE *to) {
  for (const char *c = text; *c != '\0'; c++) {
    if (strchr("\\`*_|<>[]#&~", *c) != NULL) {
      (void)fputc('\\', to);
    }
    (void)fputc((unsigned char)*c < ' ' ? ' ' : *c, to);
  }
}

static void write_claim(const struct cv_lab_judged *claim, FILE *to) {
  (void)fputs("| ", to);
  plain(claim->says, to);
  (void)fputs(" | ", to);
  if (!claim->is_ours) {
    (void)fputs(claim->quote[0] == '\0' ? "" : "\"", to);
    plain(claim->quote, to);
    (void)fputs(claim->quote[0] == '\0' ? "" : "\" ", to);
    plain(claim->where, to);
    (void)fputs(" | ", to);
  }
  (void)fputs("**", to);
  plain(claim->answer, to);
  (void)fputs("** | ", to);
  plain(claim->reason, to);
  (void)fputs(" |\n", to);
}

static void write_claims(const struct cv_lab_entry *entry, bool is_ours, FILE *to) {
  if (!cv_lab_entry_has(entry, is_ours)) {
    return;
  }
  (void)fputs(is_ours ? "\n| our own claim | verdict | why |\n| --- | --- | --- |\n"
                      : "\n| claim | the paper says | verdict | why |\n| --- | --- | --- | --- |\n",
              to);
  for (size_t i = 0; i < entry->claims; i++) {
    if (entry->claim[i].is_ours == is_ours) {
      write_claim(&entry->claim[i], to);
    }
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
  write_claims(entry, false, to);
  write_claims(entry, true, to);
}

/* One character for each claim, so that the lengths of two bars compare. */
static void write_bar(const struct cv_lab_tally *tally, FILE *to) {
  static const char signs[CV_LAB_VERDICTS] = {'+', '-', '=', '?'};
  (void)fputc('`', to);
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    for (size_t j = 0; j < tally->count[i]; j++) {
      (void)fputc(signs[i], to);
    }
  }
  (void)fputc('`', to);
}

static void write_failing(const struct cv_lab_report *report, const struct cv_lab_group *group, size_t count,
                          FILE *to) {
  struct cv_lab_failing at = {0};
  size_t listed = 0;
  for (; listed < CV_LAB_FAILING_LISTED && cv_lab_failing_find(report, group, &at); listed++, at.claim++) {
    (void)fputs(listed == 0 ? "" : "; ", to);
    plain(report->entry[at.entry].claim[at.claim].says, to);
    (void)fputs(" (", to);
    plain(report->entry[at.entry].name, to);
    (void)fputs(")", to);
  }
  if (count > listed) {
    (void)fprintf(to, "; and %zu more", count - listed);
  }
}

static void write_group(const struct cv_lab_report *report, const struct cv_lab_group *group, FILE *to) {
  struct cv_lab_tally tally = cv_lab_tally_of(report, group);
  (void)fputs("| ", to);
  plain(cv_lab_group_name(group), to);
  (void)fputs(" | ", to);
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    (void)fprintf(to, "%zu | ", tally.count[i]);
  }
  write_bar(&tally, to);
  (void)fputs(" | ", to);
  write_failing(report, group, tally.count[CV_LAB_FAILS], to);
  (void)fputs(" |\n", to);
}

/* Writes the summary of the papers' claims, or of our own: a line for each paper. */
static void write_kind(const struct cv_lab_report *report, bool is_ours, FILE *to) {
  struct cv_lab_group group = {.is_ours = is_ours};
  bool is_first = true;
  for (; cv_lab_group_next(report, &group); is_first = false) {
    if (is_first) {
      (void)fprintf(to, "\n| %s | ", is_ours ? "our own claims" : "the papers' claims");
      for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
        (void)fprintf(to, "%s | ", cv_lab_tally_heads[i]);
      }
      (void)fputs("| what does not hold |\n| --- | --- | --- | --- | --- | --- | --- |\n", to);
    }
    write_group(report, &group, to);
  }
}

enum cv_err cv_lab_report_text(const struct cv_lab_report *report, const char *path, struct cv_why *why) {
  struct cv_lab_draft draft;
  char papers[CV_LAB_TALLY_TEXT], ours[CV_LAB_TALLY_TEXT];
  cv_lab_report_counts(report, papers, ours);
  CV_TRY(cv_lab_draft_open(path, &draft, why));
  FILE *to = draft.file;
  /* REUSE-IgnoreStart */
  (void)fputs("<!-- SPDX-License-Identifier: Apache-2.0 -->\n# What the papers claim, and what holds\n\n", to);
  /* REUSE-IgnoreEnd */
  (void)fprintf(to, "Written by\n\n    %s\n\n", report->command);
  (void)fprintf(
      to,
      "which gives the same numbers again, except for times, and a page with the figures.\n\n"
      "Of the papers' claims %s.\nOf our own %s.\n\n"
      "A claim has no effect (`=`) if the difference is shown to be smaller than its smallest of interest. It "
      "is open (`?`)\nif it cannot be judged: chance alone may explain the difference at that number of replicates, or "
      "no number can decide.\n[The laboratory](lab.md) says how a claim is judged.\n",
      papers, ours);
  write_kind(report, false, to);
  write_kind(report, true, to);
  for (size_t i = 0; i < report->entries; i++) {
    write_entry(&report->entry[i], to);
  }
  return cv_lab_draft_close(&draft, why);
}
