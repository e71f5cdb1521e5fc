/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil-lab report: runs experiments one after the other, each with its own file of results in --out, so that an
 * interrupted report continues where it stopped. An experiment whose data files are missing is listed as not run.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "lab/command/running.h"
#include "lab/experiment/data_folder.h"
#include "lab/experiment/preset.h"
#include "lab/experiment/read.h"
#include "lab/report/gnuplot.h"
#include "lab/report/report.h"
#include "lab/report/tally.h"

enum { COMMAND_BYTES = 1024 };

#define AT(field) offsetof(struct settings, field)

struct settings {
  struct cv_lab_asked asked;
  char *text, *data_folder;
  bool is_short, json;
};

static const struct cv_config_rule rules[] = {
    {.key = "short",
     .type = CV_CONFIG_BOOL,
     .offset = AT(is_short),
     .fallback = "false",
     .help = "fewer replicates: takes minutes instead of hours, but leaves more claims undecided"},
    {.key = "out",
     .type = CV_CONFIG_PATH,
     .offset = AT(asked.out),
     .fallback = "crowdveil-report",
     .help = "folder for report.html, figures and results; existing results are reused"},
    {.key = "text", .type = CV_CONFIG_PATH, .offset = AT(text), .help = "file to write the verdicts to, as Markdown"},
    {.key = "data_folder",
     .type = CV_CONFIG_PATH,
     .offset = AT(data_folder),
     .help = "folder with data, found by their columns: item_id and propensity_score (Open Bandit Dataset); taxi_id, "
             "trip_miles and pickup_community_area (Chicago taxi trips); presets without data are not run"},
    CV_LAB_REPLICATES_RULE(AT(asked.replicates), "each experiment's"),
    CV_LAB_CHANCE_RULES(AT(asked.seed), AT(asked.jobs)),
    CV_LAB_PROGRESS_RULE(AT(asked.progress), ""),
    CV_LAB_JSON_RULE(AT(json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab report",
    .arguments = "[PRESET|FILE...]",
    .about = "Runs experiments (default: all presets) and compares the results with the papers' claims.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

struct reporting {
  const struct settings *settings;
  struct cv_lab_report *report;
  char file[CV_LAB_PATH_BYTES]; /* results of the present experiment */
};

/* Sets `path` to the experiment's data file; "" keeps the path that the experiment names, or none. CV_ERR_NOT_FOUND,
 * with the reason, if there is no such file. */
static enum cv_err find_data(const struct settings *settings, const char *name,
                             const struct cv_lab_experiment *experiment, char path[CV_LAB_PATH_BYTES],
                             struct cv_why *why) {
  struct cv_lab_data_need need;
  char columns[CV_LAB_DATA_TEXT];
  path[0] = '\0';
  CV_TRY(cv_lab_data_need(experiment, &need, why));
  if (need.columns == 0 || (settings->data_folder == NULL && cv_lab_preset_find(name) == NULL)) {
    return CV_OK;
  }
  if (settings->data_folder != NULL) {
    return cv_lab_data_find(settings->data_folder, &need, path, why);
  }
  cv_lab_data_columns(&need, columns);
  return cv_fail(why, CV_ERR_NOT_FOUND, "expected --data-folder with a file that has the columns %s", columns);
}

static enum cv_err plan(void *self, const struct cv_lab_experiment *experiment, struct cv_lab_work *work,
                        struct cv_why *why) {
  struct reporting *reporting = self;
  const struct settings *settings = reporting->settings;
  (void)why;
  (void)snprintf(reporting->file, sizeof(reporting->file), "%.3900s/%s.db", settings->asked.out,
                 cv_lab_slug(experiment->name, "").text);
  work->file = reporting->file;
  work->resume = true; /* a report may take hours: pieces that are on disk are never run again */
  if (work->replicates == 0 && settings->is_short) {
    work->replicates = experiment->few;
  }
  return CV_OK;
}

static enum cv_err take(void *self, const struct cv_lab_dataset *dataset, double seconds, struct cv_why *why) {
  const struct reporting *reporting = self;
  return cv_lab_report_add(reporting->report, dataset, seconds, why);
}

static enum cv_err skip(struct reporting *reporting, const struct cv_lab_experiment *experiment, const char *reason,
                        struct cv_why *why) {
  (void)fprintf(stderr, "%s: not run: %s\n", experiment->name, reason);
  return cv_lab_report_skip(reporting->report, experiment, reason, why);
}

static enum cv_err add(struct reporting *reporting, const char *name, struct cv_why *why) {
  static const struct cv_lab_steps steps = {.plan = plan, .take = take};
  struct cv_lab_experiment experiment;
  CV_TRY(cv_lab_preset_open(name, NULL, &experiment, why));
  struct cv_why reason = {0};
  char data[CV_LAB_PATH_BYTES], text[CV_LAB_PATH_BYTES];
  enum cv_err err = find_data(reporting->settings, name, &experiment, data, &reason);
  bool is_missing = err == CV_ERR_NOT_FOUND;
  if (is_missing) {
    (void)snprintf(text, sizeof(text), "missing data; %s", reason.text);
    err = skip(reporting, &experiment, text, why);
  } else if (err != CV_OK) {
    *why = reason;
  }
  cv_lab_experiment_fini(&experiment);
  if (err != CV_OK || is_missing) {
    return err;
  }
  return cv_lab_running(name, data[0] == '\0' ? NULL : data, &reporting->settings->asked, &steps, reporting, why);
}

/* Looks for the data of all experiments before any is run: two files that fit are an error, which must not wait for
 * hours. */
static enum cv_err find_all(const struct settings *settings, const char *const *names, size_t count,
                            struct cv_why *why) {
  for (size_t i = 0; i < count && settings->data_folder != NULL; i++) {
    struct cv_lab_experiment experiment;
    char path[CV_LAB_PATH_BYTES];
    CV_TRY(cv_lab_preset_open(names[i], NULL, &experiment, why));
    enum cv_err err = find_data(settings, names[i], &experiment, path, why);
    cv_lab_experiment_fini(&experiment);
    if (err != CV_OK && err != CV_ERR_NOT_FOUND) {
      return err;
    }
  }
  return CV_OK;
}

static enum cv_err add_all(struct reporting *reporting, const char *const *names, size_t count, struct cv_why *why) {
  FILE *progress = cv_lab_running_progress(&reporting->settings->asked);
  for (size_t i = 0; i < count; i++) {
    if (progress != NULL) {
      (void)fprintf(progress, "%zu of %zu: %s\n", i + 1, count, names[i]);
    }
    CV_TRY(add(reporting, names[i], why));
  }
  return CV_OK;
}

static enum cv_err write_all(struct reporting *reporting, struct cv_why *why) {
  char path[CV_LAB_PATH_BYTES];
  (void)snprintf(path, sizeof(path), "%.3900s/report.html", reporting->settings->asked.out);
  CV_TRY(cv_lab_report_page(reporting->report, path, why));
  if (reporting->settings->text != NULL) {
    CV_TRY(cv_lab_report_text(reporting->report, reporting->settings->text, why));
  }
  char papers[CV_LAB_TALLY_TEXT], ours[CV_LAB_TALLY_TEXT];
  cv_lab_report_counts(reporting->report, papers, ours);
  if (reporting->settings->json) {
    cv_lab_print_object(json_pack("{s:s, s:s, s:s}", "file", path, "papers", papers, "ours", ours));
  } else {
    (void)printf("%s: of the papers' claims %s; of our own %s\n", path, papers, ours);
  }
  return CV_OK;
}

/* The command that gives the same numbers: options that affect numbers, without paths of this machine. */
static void tell_command(const struct settings *settings, const char *const *words, char *to, size_t size) {
  size_t used = (size_t)snprintf(to, size, "crowdveil-lab report%s --seed %llu", settings->is_short ? " --short" : "",
                                 (unsigned long long)settings->asked.seed);
  if (settings->asked.replicates > 0) {
    used +=
        (size_t)snprintf(to + used, size - used, " --replicates %llu", (unsigned long long)settings->asked.replicates);
  }
  if (settings->data_folder != NULL) {
    used += (size_t)snprintf(to + used, size - used, " --data-folder DIR");
  }
  for (size_t i = 0; words[i] != NULL && used < size; i++) {
    used += (size_t)snprintf(to + used, size - used, " %s", words[i]);
  }
  cv_text_clean(to, strlen(to));
}

static int report_on(const char *const *words, const char *const *names, size_t count,
                     const struct settings *settings) {
  char command[COMMAND_BYTES];
  struct cv_why why = {0};
  struct reporting reporting = {.settings = settings};
  tell_command(settings, words, command, sizeof(command));
  const struct cv_lab_report_about about = {
      .folder = settings->asked.out, .command = command, .seed = settings->asked.seed};
  enum cv_err err = find_all(settings, names, count, &why);
  if (err == CV_OK) {
    err = cv_lab_report_new(&about, &reporting.report, &why);
  }
  if (err == CV_OK) {
    err = add_all(&reporting, names, count, &why);
  }
  if (err == CV_OK) {
    err = write_all(&reporting, &why);
  }
  cv_lab_report_free(reporting.report);
  return err == CV_OK ? 0 : cv_lab_fail(&table, err, &why);
}

static size_t count_presets(void) {
  size_t n = 0;
  while (cv_lab_presets[n].name != NULL) {
    n++;
  }
  return n;
}

int cv_lab_report(int argc, char **argv) {
  struct settings settings = {0};
  size_t presets = count_presets(), words = 0;
  const char **word = calloc((size_t)argc + 1, sizeof(*word)), **preset = calloc(presets + 1, sizeof(*preset));
  CV_REQUIRE(word != NULL && preset != NULL);
  int status = cv_command_options(&table, argc, argv, 0, (size_t)argc, word, &settings);
  while (status < 0 && word[words] != NULL) {
    words++;
  }
  for (size_t i = 0; i < presets; i++) {
    preset[i] = cv_lab_presets[i].name;
  }
  if (status < 0) {
    status = report_on(word, words > 0 ? word : preset, words > 0 ? words : presets, &settings);
  }
  free(word);
  free(preset);
  cv_config_fini(&table, &settings);
  return status;
}
