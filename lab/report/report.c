/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config/sink.h"
#include "lab/judge/terms.h"
#include "lab/report/gnuplot.h"
#include "lab/report/html.h"
#include "lab/report/parts.h"
#include "lab/report/tally.h"

static enum cv_err no_memory(struct cv_why *why) {
  return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
}

enum cv_err cv_lab_report_new(const struct cv_lab_report_about *about, struct cv_lab_report **ret, struct cv_why *why) {
  CV_TRY(cv_lab_folder_make(about->folder, why));
  struct cv_lab_report *report = calloc(1, sizeof(*report));
  if (report == NULL) {
    return no_memory(why);
  }
  report->folder = about->folder;
  report->command = about->command;
  report->seed = about->seed;
  report->sections = open_memstream(&report->body, &report->bytes);
  if (report->sections == NULL) {
    free(report);
    return no_memory(why);
  }
  *ret = report;
  return CV_OK;
}

static void fini_entry(struct cv_lab_entry *entry) {
  for (size_t i = 0; i < entry->claims; i++) {
    free(entry->claim[i].says);
    free(entry->claim[i].quote);
    free(entry->claim[i].where);
    free(entry->claim[i].answer);
    free(entry->claim[i].reason);
  }
  free(entry->claim);
  free(entry->name);
  free(entry->about);
  free(entry->paper);
  free(entry->source);
}

void cv_lab_report_free(struct cv_lab_report *report) {
  if (report == NULL) {
    return;
  }
  for (size_t i = 0; i < report->entries; i++) {
    fini_entry(&report->entry[i]);
  }
  free(report->entry);
  (void)fclose(report->sections);
  free(report->body);
  free(report);
}

/* ---- entries ---- */

static enum cv_err fill_entry(const struct cv_lab_report *report, const struct cv_lab_experiment *experiment,
                              struct cv_lab_entry *entry) {
  entry->name = strdup(experiment->name);
  entry->about = strdup(experiment->about);
  entry->paper = strdup(experiment->paper);
  entry->source = strdup(experiment->source);
  entry->claim = calloc(cv_lab_claims(experiment) + 1, sizeof(*entry->claim));
  (void)snprintf(entry->anchor, sizeof(entry->anchor), "e%zu-%s", report->entries + 1,
                 cv_lab_slug(experiment->name, "").text);
  bool is_full = entry->name != NULL && entry->about != NULL && entry->paper != NULL && entry->source != NULL &&
                 entry->claim != NULL;
  return is_full ? CV_OK : CV_ERR_NOMEM;
}

static enum cv_err add_claim(struct cv_lab_entry *entry, const struct cv_lab_claim *claim) {
  struct cv_lab_judged *judged = &entry->claim[entry->claims++];
  *judged = (struct cv_lab_judged){
      .says = strdup(claim->says),
      .quote = strdup(claim->quote == NULL ? "" : claim->quote),
      .where = strdup(claim->where == NULL ? "" : claim->where),
      .answer = strdup(claim->answer),
      .reason = strdup(claim->reason),
      .is_ours = claim->is_ours,
      .verdict = claim->verdict,
  };
  bool is_full = judged->says != NULL && judged->quote != NULL && judged->where != NULL && judged->answer != NULL &&
                 judged->reason != NULL;
  return is_full ? CV_OK : CV_ERR_NOMEM;
}

/* Adds an entry. Its claims are judged with a dataset, and undecided for the given reason without one. */
static enum cv_err make_entry(struct cv_lab_report *report, const struct cv_lab_experiment *experiment,
                              const struct cv_lab_dataset *dataset, const char *reason, struct cv_why *why) {
  struct cv_lab_entry entry = {0};
  enum cv_err err = fill_entry(report, experiment, &entry);
  for (size_t i = 0; err == CV_OK && i < cv_lab_claims(experiment); i++) {
    struct cv_lab_claim claim;
    if (dataset != NULL) {
      cv_lab_claim_judge(dataset, i, &claim);
    } else {
      cv_lab_claim_open(experiment, i, reason, &claim);
    }
    err = add_claim(&entry, &claim);
  }
  struct cv_lab_entry *grown =
      err == CV_OK ? realloc(report->entry, (report->entries + 1) * sizeof(*report->entry)) : NULL;
  if (grown == NULL) {
    fini_entry(&entry);
    return no_memory(why);
  }
  report->entry = grown;
  report->entry[report->entries++] = entry;
  return CV_OK;
}

enum cv_err cv_lab_report_add(struct cv_lab_report *report, const struct cv_lab_dataset *dataset, double seconds,
                              struct cv_why *why) {
  /* The section is written now: keeping the datasets of all experiments would need gigabytes. */
  CV_TRY(make_entry(report, dataset->experiment, dataset, NULL, why));
  cv_lab_report_section(report, &report->entry[report->entries - 1], dataset, seconds, report->sections);
  return fflush(report->sections) == 0 ? CV_OK : no_memory(why);
}

enum cv_err cv_lab_report_skip(struct cv_lab_report *report, const struct cv_lab_experiment *experiment,
                               const char *reason, struct cv_why *why) {
  CV_TRY(make_entry(report, experiment, NULL, reason, why));
  cv_lab_report_absence(&report->entry[report->entries - 1], experiment, reason, report->sections);
  return fflush(report->sections) == 0 ? CV_OK : no_memory(why);
}

bool cv_lab_entry_has(const struct cv_lab_entry *entry, bool is_ours) {
  for (size_t i = 0; i < entry->claims; i++) {
    if (entry->claim[i].is_ours == is_ours) {
      return true;
    }
  }
  return false;
}

/* ---- files ---- */

enum cv_err cv_lab_draft_open(const char *path, struct cv_lab_draft *ret, struct cv_why *why) {
  int n = snprintf(ret->path, sizeof(ret->path), "%s", path);
  if (n + 8 > (int)sizeof(ret->beside)) {
    return cv_fail(why, CV_ERR_LIMIT, "%.200s...: name too long", path);
  }
  (void)snprintf(ret->beside, sizeof(ret->beside), "%s.part", path);
  ret->file = cv_sink_open(ret->beside);
  return ret->file != NULL ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: %s", ret->beside, strerror(errno));
}

enum cv_err cv_lab_draft_close(struct cv_lab_draft *draft, struct cv_why *why) {
  bool failed = ferror(draft->file) != 0;
  failed = fclose(draft->file) != 0 || failed;
  /* The rename is the last step, so a full disk leaves the previous report in place. */
  if (failed || rename(draft->beside, draft->path) != 0) {
    int error = errno;
    (void)unlink(draft->beside);
    return cv_fail(why, CV_ERR_IO, "%s: %s", draft->path, strerror(error));
  }
  return CV_OK;
}

/* ---- the page ---- */

static const char style[] =
    ":root{--fg:#1b1b1b;--bg:#fff;--soft:#666;--line:#ddd;--card:#f6f6f6;--yes:#00643f;--no:#a33200;--none:#1f4e9e;--"
    "open:#555}\n"
    "@media(prefers-color-scheme:dark){:root{--fg:#e6e6e6;--bg:#161616;--soft:#a6a6a6;--line:#3a3a3a;--card:#222;"
    "--yes:#4fd1a0;--no:#ff9a66;--none:#8ab4f8;--open:#bbb}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:64rem;margin:0 auto;"
    "padding:1rem}\n"
    "h1{font-size:1.7rem}h2{font-size:1.3rem;margin-top:3rem;border-top:1px solid var(--line);padding-top:1.5rem}\n"
    "a{color:inherit}.soft,figcaption,.why{color:var(--soft)}.why{font-size:.9rem}\n"
    "table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;"
    "border-bottom:1px solid var(--line)}\n"
    ".wide{overflow-x:auto}.wide td,.wide th{white-space:nowrap;font-size:.85rem}\n"
    ".v{white-space:nowrap;font-weight:600}.v0{color:var(--yes)}.v1{color:var(--no)}.v2{color:var(--none)}.v3{color:"
    "var(--open)}\n"
    ".bar{display:block;width:12rem;height:.6rem;margin-top:.3rem}.f0{fill:var(--yes)}.f1{fill:var(--no)}"
    ".f2{fill:var(--none)}.f3{fill:var(--line)}q{font-style:italic}\n"
    "figure{margin:1rem 0;break-inside:avoid}figure img{width:100%;height:auto;background:#fff;border-radius:6px}\n"
    ".cards{list-style:none;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(18rem,1fr));gap:1."
    "2rem}"
    ".cards li{margin:0;font-size:.9rem}.cards img,.cards .none{display:block;width:100%;aspect-ratio:300/188;"
    "object-fit:contain;background:#fff;border:1px solid var(--line);border-radius:6px;box-sizing:border-box}"
    ".cards .none{background:var(--card);color:var(--soft);text-align:center;padding-top:4rem}\n"
    "pre{background:var(--card);padding:1rem;overflow-x:auto;font-size:.85rem}summary{cursor:pointer}\n"
    "li{margin:.5rem 0}\n"
    "@media(max-width:40rem){table{display:block;overflow-x:auto}}\n"
    "@media print{body{max-width:none;font-size:11pt}details:not([open]){display:none}h2{break-after:avoid}}\n";

static void write_head(const struct cv_lab_report *report, FILE *to) {
  char papers[CV_LAB_TALLY_TEXT], ours[CV_LAB_TALLY_TEXT];
  cv_lab_report_counts(report, papers, ours);
  (void)fprintf(
      to,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>Crowdveil: what the papers claim, and what holds</title>\n<style>\n%s</style>\n</head>\n<body>\n"
      "<h1>What the papers claim, and what holds</h1>\n",
      style);
  (void)fprintf(
      to,
      "<p>%zu experiments. Of the papers' claims %s. Of our own %s.</p>\n"
      "<p class=\"soft\">A claim holds, or does not hold, if the difference is larger than chance explains "
      "at that number of replicates; to hold, it must exceed the claim's smallest of interest, too. It has "
      "no effect if the difference is shown to be smaller than that. Otherwise it is open: it cannot be judged.</p>\n",
      report->entries, papers, ours);
  (void)fputs("<p class=\"soft\">Made by <code>", to);
  cv_lab_html_text(report->command, to);
  (void)fputs(
      "</code>, which gives the same numbers again, except for times. The large figures are the files NAME.svg "
      "beside this page: keep them in one folder.</p>\n",
      to);
}

enum cv_err cv_lab_report_page(const struct cv_lab_report *report, const char *path, struct cv_why *why) {
  struct cv_lab_draft draft;
  CV_TRY(cv_lab_draft_open(path, &draft, why));
  write_head(report, draft.file);
  cv_lab_report_overview(report, draft.file);
  (void)fwrite(report->body, 1, report->bytes, draft.file);
  (void)fputs("</body>\n</html>\n", draft.file);
  return cv_lab_draft_close(&draft, why);
}
