/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-lab export: prints a file of results as text for other programs. */
#include "common/config/standard.h"
#include "lab/command/command.h"
#include "lab/judge/summary.h"
#include "lab/result/csv.h"
#include "lab/result/results.h"

enum format { FORMAT_CSV, FORMAT_JSON };
static const char *const formats[] = {"csv", "json", NULL};

struct settings {
  int format;
  bool trials;
};

static const struct cv_config_rule rules[] = {
    {.key = "trials",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, trials),
     .fallback = "false",
     .help = "print every number of every replicate instead of a summary; csv only"},
    {.key = "format",
     .type = CV_CONFIG_WORD,
     .offset = offsetof(struct settings, format),
     .choices = formats,
     .fallback = "csv",
     .help = "format of the output; json: one object per line, as with run --json"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab export",
    .arguments = "FILE",
    .about = "Prints a file of results: one line for each series, point and metric.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static enum cv_err print_trials(const char *path, struct cv_why *why) {
  struct cv_lab_archive *archive;
  CV_TRY(cv_lab_archive_open_readonly(path, &archive, why));
  enum cv_err err = cv_lab_csv_trials(archive, stdout, why);
  cv_lab_archive_close(archive);
  return err;
}

static enum cv_err print_rows(const char *path, enum format format, struct cv_why *why) {
  struct cv_lab_results results;
  CV_TRY(cv_lab_results_read(path, &results, why));
  struct cv_lab_result rows = {.preset = results.experiment.name};
  enum cv_err err = cv_lab_dataset_rows(&results.dataset, &rows);
  if (err == CV_OK) {
    err = format == FORMAT_JSON ? cv_lab_print_json(&rows, stdout) : cv_lab_csv_rows(&rows, stdout);
  }
  cv_lab_result_fini(&rows);
  cv_lab_results_fini(&results);
  return err;
}

static int export(const char *path, const struct settings *settings) {
  struct cv_why why = {0};
  if (settings->trials && settings->format != FORMAT_CSV) {
    return cv_command_fail(&table, 2, "--trials cannot be combined with --format json; expected --format csv");
  }
  enum cv_err err = settings->trials ? print_trials(path, &why) : print_rows(path, (enum format)settings->format, &why);
  if (err != CV_OK && why.text[0] != '\0') {
    return cv_command_fail(&table, cv_lab_exit_status(err), "%s", why.text);
  }
  if (err != CV_OK || fflush(stdout) != 0) {
    /* Summaries and printing fail without a message. */
    return cv_command_fail(&table, 1, "%s", err == CV_ERR_NOMEM ? "out of memory" : cv_standard_reason());
  }
  return 0;
}

int cv_lab_export(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    status = export(words[0], &settings);
  }
  cv_config_fini(&table, &settings);
  return status;
}
