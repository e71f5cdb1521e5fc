/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the page: what a reader takes in within a minute. */
#include "lab/report/gnuplot.h"
#include "lab/report/html.h"
#include "lab/report/parts.h"
#include "lab/report/tally.h"

/* A bar of stacked counts; all bars have the same scale, `most` claims wide. */
static void write_bar(const struct cv_lab_tally *tally, size_t most, FILE *to) {
  char text[CV_LAB_TALLY_TEXT];
  size_t x = 0;
  cv_lab_tally_text(tally, text);
  (void)fprintf(to,
                "<svg class=\"bar\" viewBox=\"0 0 %zu 1\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">",
                most, text);
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    if (tally->count[i] > 0) {
      (void)fprintf(to, "<rect class=\"f%zu\" x=\"%zu\" y=\"0\" width=\"%zu\" height=\"1\"/>", i, x, tally->count[i]);
    }
    x += tally->count[i];
  }
  (void)fputs("</svg>", to);
}

/* Lists the first claims that do not hold, with links to their experiments. */
static void write_failing(const struct cv_lab_report *report, const struct cv_lab_group *group, size_t count,
                          FILE *to) {
  struct cv_lab_failing at = {0};
  size_t listed = 0;
  for (; listed < CV_LAB_FAILING_LISTED && cv_lab_failing_find(report, group, &at); listed++, at.claim++) {
    const struct cv_lab_entry *entry = &report->entry[at.entry];
    (void)fputs("<div>", to);
    cv_lab_html_text(entry->claim[at.claim].says, to);
    (void)fprintf(to, " (<a href=\"#%s\">", entry->anchor);
    cv_lab_html_text(entry->name, to);
    (void)fputs("</a>)</div>", to);
  }
  if (count > listed) {
    (void)fprintf(to, "<div class=\"soft\">and %zu more</div>", count - listed);
  }
}

static void write_group(const struct cv_lab_report *report, const struct cv_lab_group *group, size_t most, FILE *to) {
  struct cv_lab_tally tally = cv_lab_tally_of(report, group);
  (void)fputs("<tr><th scope=\"row\">", to);
  cv_lab_html_text(cv_lab_group_name(group), to);
  write_bar(&tally, most, to);
  (void)fputs("</th>", to);
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    (void)fprintf(to, "<td class=\"v v%zu\">%zu</td>", i, tally.count[i]);
  }
  (void)fputs("<td>", to);
  write_failing(report, group, tally.count[CV_LAB_FAILS], to);
  (void)fputs("</td></tr>\n", to);
}

static void write_kind(const struct cv_lab_report *report, bool is_ours, FILE *to) {
  struct cv_lab_group group = {.is_ours = is_ours};
  size_t most = 0;
  while (cv_lab_group_next(report, &group)) {
    struct cv_lab_tally tally = cv_lab_tally_of(report, &group);
    most = tally.total > most ? tally.total : most;
  }
  if (most == 0) {
    return;
  }
  (void)fprintf(to, "<table class=\"%s\">\n<thead><tr><th>%s</th>", is_ours ? "ours" : "papers",
                is_ours ? "Our own claims" : "The papers' claims");
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    (void)fprintf(to, "<th>%s</th>", cv_lab_tally_heads[i]);
  }
  (void)fputs("<th>What does not hold</th></tr></thead>\n<tbody>\n", to);
  for (group.source = NULL; cv_lab_group_next(report, &group);) {
    write_group(report, &group, most, to);
  }
  (void)fputs("</tbody></table>\n", to);
}

/* ---- the figures ---- */

static void write_counts(const struct cv_lab_entry *entry, bool is_ours, FILE *to) {
  struct cv_lab_tally tally = cv_lab_tally_of_entry(entry, is_ours);
  (void)fputs(is_ours ? "our own claims:" : "the papers' claims:", to);
  for (size_t i = 0; i < CV_LAB_VERDICTS; i++) {
    if (tally.count[i] > 0) {
      (void)fprintf(to, " <span class=\"v v%zu\" title=\"%s\">%s %zu</span>", i, cv_lab_tally_heads[i],
                    cv_lab_verdict_signs[i], tally.count[i]);
    }
  }
}

void cv_lab_entry_counts(const struct cv_lab_entry *entry, FILE *to) {
  bool has_papers = cv_lab_entry_has(entry, false), has_ours = cv_lab_entry_has(entry, true);
  if (has_papers) {
    write_counts(entry, false, to);
  }
  (void)fputs(has_papers && has_ours ? "; " : "", to);
  if (has_ours) {
    write_counts(entry, true, to);
  }
  (void)fputs(has_papers || has_ours ? "" : "no claims", to);
}

/* Writes an experiment's line with its thumbnail, both as a link to its section. */
static void write_card(const struct cv_lab_report *report, const struct cv_lab_entry *entry, FILE *to) {
  struct cv_lab_slug name = cv_lab_slug(entry->name, "-small");
  (void)fprintf(to, "<li><a href=\"#%s\">", entry->anchor);
  enum cv_err err =
      entry->has_figure ? cv_lab_html_thumbnail(report->folder, name.text, "", to, NULL) : CV_ERR_NOT_FOUND;
  (void)fputs(err == CV_OK ? "<b>" : "<span class=\"none\">no figure</span><b>", to);
  cv_lab_html_text(entry->name, to);
  (void)fputs("</b></a><div>", to);
  cv_lab_html_text(entry->about, to);
  (void)fputs("</div><div class=\"soft\">", to);
  cv_lab_entry_counts(entry, to);
  (void)fputs("</div></li>\n", to);
}

/* Writes the experiments that have claims of papers, or those that have none. */
static void write_cards(const struct cv_lab_report *report, bool has_papers, FILE *to) {
  size_t n = 0;
  for (size_t i = 0; i < report->entries; i++) {
    if (cv_lab_entry_has(&report->entry[i], false) == has_papers) {
      (void)fprintf(to, "%s",
                    n++ > 0      ? ""
                    : has_papers ? "<h2>What the papers claim, by experiment</h2>\n<ul class=\"cards\">\n"
                                 : "<h2>Experiments of our own</h2>\n<ul class=\"cards\">\n");
      write_card(report, &report->entry[i], to);
    }
  }
  (void)fputs(n > 0 ? "</ul>\n" : "", to);
}

void cv_lab_report_overview(const struct cv_lab_report *report, FILE *to) {
  write_kind(report, false, to);
  write_kind(report, true, to);
  write_cards(report, true, to);
  write_cards(report, false, to);
}
