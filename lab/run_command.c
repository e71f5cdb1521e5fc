/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config/value.h"
#include "lab/command.h"
#include "lab/dataset.h"
#include "lab/measure.h"
#include "lab/pool.h"
#include "lab/preset.h"

#define AT(field) offsetof(struct settings, field)

struct settings {
  uint64_t replicates, seed, jobs;
  char *out;
  char *data;
  bool json, token_level;
};

static const struct cv_config_rule rules[] = {
    {.key = "replicates",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(replicates),
     .low = 0,
     .high = 1e9,
     .fallback = "0",
     .help = "independent runs of each setting; 0: the experiment's own number"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(seed),
     .low = 0,
     .high = 9e15,
     .fallback = "1",
     .help = "of all randomness; the result is the same for any --jobs"},
    {.key = "jobs",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(jobs),
     .low = 0,
     .high = 1024,
     .fallback = "0",
     .help = "threads; 0: one a processor"},
    {.key = "token_level",
     .type = CV_CONFIG_BOOL,
     .offset = AT(token_level),
     .fallback = "false",
     .help = "draw every token by itself, instead of a sum in one draw where that is the same in law"},
    {.key = "data", .type = CV_CONFIG_PATH, .offset = AT(data), .help = "the data file, instead of the one named"},
    {.key = "out", .type = CV_CONFIG_PATH, .offset = AT(out), .help = "folder for the figure and its numbers"},
    {.key = "json", .type = CV_CONFIG_BOOL, .offset = AT(json), .fallback = "false", .help = "one object a line"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab run",
    .arguments = "PRESET|FILE",
    .about = "Runs an experiment and prints what it found. `crowdveil-lab list` names them.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static int fail(enum cv_err err, const struct cv_why *why) {
  return cv_command_fail(&table, cv_config_exit_status(err), "%s", why->text[0] == '\0' ? cv_err_text(err) : why->text);
}

static int show(const struct cv_lab_experiment *experiment, const struct cv_lab_result *result,
                const struct settings *settings) {
  struct cv_why why = {0};
  enum cv_err err = settings->json ? cv_lab_print_json(result, stdout)
                                   : cv_lab_print_table(result, experiment->figure.x_label, stdout);
  if (err == CV_OK && fflush(stdout) != 0) {
    err = CV_ERR_IO;
  }
  if (err != CV_OK) {
    return cv_command_fail(&table, 1, "standard output does not take the result");
  }
  if (settings->out != NULL) {
    err = cv_lab_figure_draw(&experiment->figure, result, settings->out, &why);
  }
  return err == CV_OK ? 0 : fail(err, &why);
}

/* ---- the work ---- */

struct work {
  const struct cv_lab_experiment *experiment;
  const struct settings *settings;
  struct cv_lab_dataset dataset;
  pthread_mutex_t lock; /* of why */
  struct cv_why why;    /* of the first piece that failed */
};

static enum cv_err run_piece(void *data, size_t at) {
  struct work *work = data;
  struct cv_lab_piece piece = {.experiment = work->experiment,
                               .setting = at / work->dataset.replicates,
                               .replicate = at % work->dataset.replicates,
                               .token_level = work->settings->token_level};
  piece.seed = cv_lab_replicate_seed(work->settings->seed, piece.replicate);
  double *values = calloc(cv_lab_piece_values(work->experiment), sizeof(*values));
  struct cv_why why = {0};
  enum cv_err err = values == NULL ? CV_ERR_NOMEM : cv_lab_piece_run(&piece, values, &why);
  if (err == CV_OK) {
    cv_lab_dataset_put(&work->dataset, piece.setting, piece.replicate, values);
  } else {
    (void)pthread_mutex_lock(&work->lock);
    work->why = work->why.text[0] == '\0' ? why : work->why;
    (void)pthread_mutex_unlock(&work->lock);
  }
  free(values);
  return err;
}

static int run_experiment(const struct cv_lab_experiment *experiment, const struct settings *settings) {
  struct work work = {.experiment = experiment, .settings = settings, .lock = PTHREAD_MUTEX_INITIALIZER};
  uint64_t replicates = settings->replicates == 0 ? experiment->replicates : settings->replicates;
  unsigned jobs = settings->jobs == 0 ? cv_lab_processors() : (unsigned)settings->jobs;
  struct cv_lab_result result = {.preset = experiment->name};
  enum cv_err err = cv_lab_experiment_check(experiment, &work.why);
  if (err == CV_OK) {
    err = cv_lab_dataset_init(experiment, replicates, &work.dataset);
  }
  if (err == CV_OK) {
    err = cv_lab_pool(cv_lab_settings_of(experiment) * replicates, jobs, isatty(STDERR_FILENO) ? stderr : NULL,
                      run_piece, &work);
  }
  if (err == CV_OK) {
    err = cv_lab_dataset_rows(&work.dataset, &result);
  }
  int status = err == CV_OK ? show(experiment, &result, settings) : fail(err, &work.why);
  cv_lab_result_fini(&result);
  cv_lab_dataset_fini(&work.dataset);
  return status;
}

/* A preset by its name; what has a slash or a dot in it is a file. */
static int run(const char *name, const struct settings *settings) {
  const struct cv_lab_preset *preset = cv_lab_preset_find(name);
  struct cv_lab_experiment experiment;
  struct cv_why why = {0};
  enum cv_err err;
  if (preset != NULL) {
    err = cv_lab_experiment_parse(name, preset->text, strlen(preset->text), settings->data, &experiment, &why);
  } else if (strpbrk(name, "/.") != NULL) {
    err = cv_lab_experiment_load(name, settings->data, &experiment, &why);
  } else {
    const char *nearest = cv_lab_preset_nearest(name);
    return cv_command_fail(
        &table, 2, "%s is no experiment; %s%s%s", cv_value_quote(name).text,
        nearest == NULL ? "expected a file or a name that `crowdveil-lab list` knows" : "did you mean ",
        nearest == NULL ? "" : nearest, nearest == NULL ? "" : "?");
  }
  if (err != CV_OK) {
    return fail(err, &why);
  }
  int status = run_experiment(&experiment, settings);
  cv_lab_experiment_fini(&experiment);
  return status;
}

int cv_lab_run(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    status = run(words[0], &settings);
  }
  cv_config_fini(&table, &settings);
  return status;
}

static const struct cv_config_table list_table = {
    .program = "crowdveil-lab list",
    .about = "Names the experiments.",
};

int cv_lab_list(int argc, char **argv) {
  int status = cv_command_options(&list_table, argc, argv, 0, 0, NULL, NULL);
  if (status >= 0) {
    return status;
  }
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL; preset++) {
    struct cv_lab_experiment experiment;
    struct cv_why why = {0};
    if (cv_lab_experiment_parse(preset->name, preset->text, strlen(preset->text), NULL, &experiment, &why) != CV_OK) {
      return cv_command_fail(&list_table, 1, "%s", why.text);
    }
    (void)printf("%-24s %s\n", preset->name, experiment.about);
    cv_lab_experiment_fini(&experiment);
  }
  return 0;
}
