/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "lab/command.h"
#include "lab/pool.h"
#include "lab/preset.h"

#define AT(field) offsetof(struct settings, field)

struct settings {
  uint64_t replicates, seed, jobs;
  char *out;
  bool json;
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
    {.key = "out", .type = CV_CONFIG_PATH, .offset = AT(out), .help = "folder for the figure and its numbers"},
    {.key = "json", .type = CV_CONFIG_BOOL, .offset = AT(json), .fallback = "false", .help = "one object a line"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab run",
    .arguments = "EXPERIMENT",
    .about = "Runs an experiment and prints what it found. `crowdveil-lab list` names them.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static int fail(enum cv_err err, const struct cv_why *why) {
  return cv_command_fail(&table, 1, "%s", why->text[0] == '\0' ? cv_err_text(err) : why->text);
}

static int show(const struct cv_lab_preset *preset, const struct cv_lab_result *result,
                const struct settings *settings) {
  struct cv_why why = {0};
  enum cv_err err =
      settings->json ? cv_lab_print_json(result, stdout) : cv_lab_print_table(result, preset->figure.x_label, stdout);
  if (err == CV_OK && fflush(stdout) != 0) {
    err = CV_ERR_IO;
  }
  if (err != CV_OK) {
    return cv_command_fail(&table, 1, "standard output does not take the result");
  }
  if (settings->out != NULL) {
    err = cv_lab_figure_draw(&preset->figure, result, settings->out, &why);
  }
  return err == CV_OK ? 0 : fail(err, &why);
}

static int run(const char *name, const struct settings *settings) {
  const struct cv_lab_preset *preset = cv_lab_preset_find(name);
  if (preset == NULL) {
    return cv_command_fail(&table, 2, "\"%.40s\" is no experiment; did you mean %s?", name,
                           cv_lab_preset_nearest(name));
  }
  const struct cv_lab_settings how = {
      .replicates = settings->replicates == 0 ? preset->replicates : settings->replicates,
      .seed = settings->seed,
      .jobs = settings->jobs == 0 ? cv_lab_processors() : (unsigned)settings->jobs,
      .progress = isatty(STDERR_FILENO) ? stderr : NULL,
  };
  struct cv_lab_result result = {.preset = preset->figure.name};
  struct cv_why why = {0};
  enum cv_err err = preset->run(&how, &result, &why);
  int status = err == CV_OK ? show(preset, &result, settings) : fail(err, &why);
  cv_lab_result_fini(&result);
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
  for (size_t i = 0; cv_lab_preset_at(i) != NULL; i++) {
    (void)printf("%-24s %s\n", cv_lab_preset_at(i)->figure.name, cv_lab_preset_at(i)->about);
  }
  return 0;
}
