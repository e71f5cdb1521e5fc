/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "lab/judge/summary.h"
#include "lab/report/distribution.h"
#include "lab/report/figure.h"
#include "lab/report/gnuplot.h"
#include "lab/report/html.h"
#include "lab/report/parts.h"
#include "lab/run/formula.h"

/* The largest number of lines of a table; of more points it shows every n-th. */
enum { LINES_MOST = 24 };

static void element(const char *tag, const char *text, FILE *to) {
  (void)fprintf(to, "<%s>", tag);
  cv_lab_html_text(text, to);
  (void)fprintf(to, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

const char *const cv_lab_verdict_signs[CV_LAB_VERDICTS] = {"&#10003;", "&#10007;", "=", "?"};

static void write_badge(const struct cv_lab_judged *claim, FILE *to) {
  (void)fprintf(to, "<span class=\"v v%d\">%s ", (int)claim->verdict, cv_lab_verdict_signs[claim->verdict]);
  cv_lab_html_text(claim->answer, to);
  (void)fputs("</span>", to);
}

/* Writes what the paper says, and where. */
static void write_quote(const struct cv_lab_judged *claim, FILE *to) {
  (void)fputs("<td>", to);
  if (claim->quote[0] != '\0') {
    (void)fputs("<q>", to);
    cv_lab_html_text(claim->quote, to);
    (void)fputs("</q> ", to);
  }
  cv_lab_html_text(claim->where, to);
  (void)fputs("</td>", to);
}

static void write_claim(const struct cv_lab_judged *claim, FILE *to) {
  (void)fputs("<tr><td>", to);
  cv_lab_html_text(claim->says, to);
  (void)fputs("<div class=\"why\">", to);
  cv_lab_html_text(claim->reason, to);
  (void)fputs("</div></td>", to);
  if (!claim->is_ours) {
    write_quote(claim, to);
  }
  (void)fputs("<td>", to);
  write_badge(claim, to);
  (void)fputs("</td></tr>\n", to);
}

static void write_claims(const struct cv_lab_entry *entry, bool is_ours, FILE *to) {
  if (!cv_lab_entry_has(entry, is_ours)) {
    return;
  }
  (void)fprintf(
      to, "<table>\n<thead><tr><th>%s, and the numbers that decide</th>%s<th>Verdict</th></tr></thead>\n<tbody>\n",
      is_ours ? "Our own claim" : "Claim", is_ours ? "" : "<th>The paper says</th>");
  for (size_t i = 0; i < entry->claims; i++) {
    if (entry->claim[i].is_ours == is_ours) {
      write_claim(&entry->claim[i], to);
    }
  }
  (void)fputs("</tbody></table>\n", to);
}

/* Opens the section; what follows the experiment's line is folded. */
static void write_begin(const struct cv_lab_entry *entry, const char *reason, FILE *to) {
  (void)fprintf(to, "<section id=\"%s\">\n<h2>", entry->anchor);
  cv_lab_html_text(entry->name, to);
  (void)fputs("</h2>\n", to);
  element("p", entry->about, to);
  if (reason != NULL) {
    (void)fputs("<p><strong>Not run:</strong> ", to);
    cv_lab_html_text(reason, to);
    (void)fputs("</p>\n", to);
  } else {
    (void)fputs("<p>", to);
    cv_lab_entry_counts(entry, to);
    (void)fputs("</p>\n", to);
  }
  (void)fprintf(to, "<details><summary>%s</summary>\n",
                reason != NULL ? "Claims and settings" : "Claims, figures, numbers and settings");
  if (entry->paper[0] != '\0') {
    element("p class=\"soft\"", entry->paper, to);
  }
  write_claims(entry, false, to);
  write_claims(entry, true, to);
}

static void write_end(FILE *to) {
  (void)fputs("</details>\n</section>\n", to);
}

static void write_settings(const struct cv_lab_experiment *experiment, FILE *to) {
  (void)fputs("<details><summary>The campaign and the experiment as a file</summary>\n<pre>", to);
  cv_lab_html_text(experiment->text, to);
  (void)fputs("</pre></details>\n", to);
}

/* ---- figures ---- */

/* Writes a figure; `err` is the result of drawing it. */
static void write_figure(const struct cv_lab_entry *entry, enum cv_err err, const struct cv_why *why,
                         const char *ending, const char *caption, FILE *to) {
  char label[900];
  (void)snprintf(label, sizeof(label), "%s: %s", entry->about, caption);
  (void)fputs("<figure>\n", to);
  /* A report without gnuplot still has its numbers and verdicts. */
  if (err == CV_OK) {
    cv_lab_html_drawing(cv_lab_slug(entry->name, ending).text, label, to);
  } else {
    element("p", why->text[0] == '\0' ? cv_err_text(err) : why->text, to);
  }
  element("figcaption", caption, to);
  (void)fputs("</figure>\n", to);
}

static void write_figures(const struct cv_lab_report *report, struct cv_lab_entry *entry,
                          const struct cv_lab_dataset *dataset, const struct cv_lab_result *result, FILE *to) {
  const struct cv_lab_experiment *experiment = dataset->experiment;
  struct cv_why why = {0};
  char caption[600];
  enum cv_err err = cv_lab_figure_draw(&experiment->figure, result, report->folder, &why);
  entry->has_figure = err == CV_OK;
  (void)snprintf(caption, sizeof(caption), "%s. %s.", experiment->figure.y_label,
                 cv_lab_figure_bars(&experiment->figure, result).text);
  write_figure(entry, err, &why, "", caption, to);
  why.text[0] = '\0';
  err = cv_lab_distribution_draw(dataset, report->folder, &why);
  (void)snprintf(caption, sizeof(caption),
                 "%s of single replicates: quartiles with the median and a mark for the value of the figure above; "
                 "whiskers from 5 to 95 %%.",
                 experiment->figure.y_label);
  write_figure(entry, err, &why, "-distribution", caption, to);
}

/* ---- numbers ---- */

static void write_number(const struct cv_lab_dataset *dataset, size_t series, size_t point, size_t metric, FILE *to) {
  struct cv_lab_summary found;
  if (cv_lab_found(dataset, series, point, metric, &found) != CV_OK || !isfinite(found.mean)) {
    (void)fputs("<td></td>", to);
  } else if (found.se > 0) {
    (void)fprintf(to, "<td>%.4g &plusmn; %.2g</td>", found.mean, found.se);
  } else {
    (void)fprintf(to, "<td>%.4g</td>", found.mean);
  }
}

static void write_metric(const struct cv_lab_dataset *dataset, size_t metric, FILE *to) {
  const struct cv_lab_experiment *experiment = dataset->experiment;
  size_t step = 1 + (experiment->points - 1) / LINES_MOST;
  element("h3", experiment->metric[metric].name, to);
  (void)fputs("<div class=\"wide\"><table>\n<thead><tr><th>", to);
  cv_lab_html_text(experiment->figure.x_label, to);
  (void)fputs("</th>", to);
  for (size_t i = 0; i < experiment->series; i++) {
    (void)fputs("<th>", to);
    const struct cv_lab_series *one = &experiment->one[i];
    cv_lab_html_text(cv_lab_caption_of(one->name, cv_lab_formula_is_asymptotic(one->formula)).text, to);
    (void)fputs("</th>", to);
  }
  (void)fputs("</tr></thead>\n<tbody>\n", to);
  /* Starts such that the last point, the end of a run, is always among those shown. */
  for (size_t point = (experiment->points - 1) % step; point < experiment->points; point += step) {
    (void)fputs("<tr><td>", to);
    if (isfinite(experiment->x[point])) {
      (void)fprintf(to, "%.6g", experiment->x[point]);
    }
    (void)fputs("</td>", to);
    for (size_t series = 0; series < experiment->series; series++) {
      write_number(dataset, series, point, metric, to);
    }
    (void)fputs("</tr>\n", to);
  }
  (void)fputs("</tbody></table></div>\n", to);
}

static void write_numbers(const struct cv_lab_dataset *dataset, FILE *to) {
  (void)fputs("<details><summary>The numbers, with their standard errors</summary>\n", to);
  for (size_t metric = 0; metric < dataset->experiment->metrics; metric++) {
    write_metric(dataset, metric, to);
  }
  (void)fputs("</details>\n", to);
}

void cv_lab_report_section(const struct cv_lab_report *report, struct cv_lab_entry *entry,
                           const struct cv_lab_dataset *dataset, double seconds, FILE *to) {
  struct cv_lab_result result = {.preset = entry->name};
  write_begin(entry, NULL, to);
  if (cv_lab_dataset_rows(dataset, &result) == CV_OK) {
    write_figures(report, entry, dataset, &result, to);
  }
  (void)fprintf(to, "<p class=\"soft\">%llu replicates of each setting, seed %llu. It took %.1f s this time.</p>\n",
                (unsigned long long)dataset->replicates, (unsigned long long)report->seed, seconds);
  write_numbers(dataset, to);
  write_settings(dataset->experiment, to);
  write_end(to);
  cv_lab_result_fini(&result);
}

void cv_lab_report_absence(const struct cv_lab_entry *entry, const struct cv_lab_experiment *experiment,
                           const char *reason, FILE *to) {
  write_begin(entry, reason, to);
  write_settings(experiment, to);
  write_end(to);
}
