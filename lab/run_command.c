/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/config/value.h"
#include "lab/claim.h"
#include "lab/command.h"
#include "lab/distribution.h"
#include "lab/preset.h"
#include "lab/work.h"

enum { PATH_BYTES = 4096 };

#define AT(field) offsetof(struct settings, field)

struct settings {
  uint64_t replicates, seed, jobs;
  char *out, *data, *shard;
  bool json, token_level, resume, progress;
};

static const struct cv_config_rule rules[] = {
    {.key = "replicates",
     .type = CV_CONFIG_WHOLE,
     .offset = AT(replicates),
     .low = 0,
     .high = 1e9,
     .fallback = "0",
     .help = "independent runs of each setting; 0: the experiment's own number"},
    CV_LAB_CHANCE_RULES(AT(seed), AT(jobs)),
    {.key = "token_level",
     .type = CV_CONFIG_BOOL,
     .offset = AT(token_level),
     .fallback = "false",
     .help = "draw every token by itself, instead of a sum in one draw where that is the same in law"},
    {.key = "data", .type = CV_CONFIG_PATH, .offset = AT(data), .help = "the data file, instead of the one named"},
    {.key = "out",
     .type = CV_CONFIG_PATH,
     .offset = AT(out),
     .help = "folder for the results, the figure and its numbers"},
    {.key = "resume",
     .type = CV_CONFIG_BOOL,
     .offset = AT(resume),
     .fallback = "false",
     .help = "go on with the results in --out, if there are any"},
    {.key = "shard",
     .type = CV_CONFIG_TEXT,
     .offset = AT(shard),
     .help = "I/N: run the I-th of N parts only; `crowdveil-lab merge` joins their results"},
    {.key = "progress",
     .type = CV_CONFIG_BOOL,
     .offset = AT(progress),
     .fallback = "false",
     .help = "say how far it is also where standard error is no terminal: a line every ten seconds"},
    {.key = "json", .type = CV_CONFIG_BOOL, .offset = AT(json), .fallback = "false", .help = "one object a line"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab run",
    .arguments = "PRESET|FILE",
    .about = "Runs an experiment and prints what it found. `crowdveil-lab list` names them.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static void print_claims(const struct cv_lab_dataset *dataset) {
  for (size_t i = 0; i < cv_lab_claims(dataset->experiment); i++) {
    struct cv_lab_claim claim;
    cv_lab_claim_judge(dataset, i, &claim);
    (void)printf("%s%s: %s\n    %s\n", i == 0 ? "\n" : "", cv_lab_verdict_text(claim.verdict), claim.says,
                 claim.reason);
  }
}

static enum cv_err draw(const struct cv_lab_dataset *dataset, const struct cv_lab_result *result, const char *folder,
                        struct cv_why *why) {
  CV_TRY(cv_lab_figure_draw(&dataset->experiment->figure, result, folder, why));
  return cv_lab_distribution_draw(dataset, folder, why);
}

static int show(const struct cv_lab_dataset *dataset, const struct cv_lab_result *result,
                const struct settings *settings) {
  struct cv_why why = {0};
  enum cv_err err = settings->json ? cv_lab_print_json(result, stdout)
                                   : cv_lab_print_table(result, dataset->experiment->figure.x_label, stdout);
  if (!settings->json && settings->shard == NULL) {
    print_claims(dataset);
  }
  if (err == CV_OK && fflush(stdout) != 0) {
    err = CV_ERR_IO;
  }
  if (err != CV_OK) {
    return cv_command_fail(&table, 1, "standard output does not take the result");
  }
  if (result->rows == 0 && settings->shard == NULL) {
    return cv_command_fail(&table, 1, "no replicate came to a number of %s; expected longer runs",
                           cv_lab_metric_name(dataset->experiment, 0));
  }
  if (settings->out != NULL && settings->shard == NULL) {
    err = draw(dataset, result, settings->out, &why);
  }
  return err == CV_OK ? 0 : cv_lab_fail(&table, err, &why);
}

/* ---- the work ---- */

/* Where results are kept: OUT/NAME.db, of a shard OUT/NAME-I-of-N.db. The folder is made if it is not there. */
static enum cv_err name_file(const struct cv_lab_experiment *experiment, const struct settings *settings,
                             const struct cv_lab_shard *shard, char *to, size_t size, struct cv_why *why) {
  char part[48] = "";
  if (strchr(experiment->name, '/') != NULL || experiment->name[0] == '.') {
    return cv_fail(why, CV_ERR_INVALID, "%s: campaign %s cannot name a file in --out; expected a name without a slash",
                   experiment->path, cv_value_quote(experiment->name).text);
  }
  if (mkdir(settings->out, 0777) != 0 && errno != EEXIST) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", settings->out, strerror(errno));
  }
  if (shard->of > 1) {
    (void)snprintf(part, sizeof(part), "-%" PRIu64 "-of-%" PRIu64, shard->index, shard->of);
  }
  return snprintf(to, size, "%s/%s%s.db", settings->out, experiment->name, part) < (int)size
             ? CV_OK
             : cv_fail(why, CV_ERR_LIMIT, "%.200s...: too long a name", settings->out);
}

static enum cv_err run_work(struct cv_lab_experiment *experiment, const struct settings *settings,
                            struct cv_lab_dataset *ret, struct cv_why *why) {
  char file[PATH_BYTES];
  struct cv_lab_work work = {.experiment = experiment,
                             .replicates = settings->replicates,
                             .seed = settings->seed,
                             .jobs = (unsigned)settings->jobs,
                             .token_level = settings->token_level,
                             .shard = {1, 1},
                             .resume = settings->resume,
                             .progress = settings->progress || isatty(STDERR_FILENO) ? stderr : NULL};
  if (settings->shard != NULL) {
    CV_TRY(cv_lab_shard_parse(settings->shard, &work.shard, why));
  }
  if (settings->out == NULL && (settings->shard != NULL || settings->resume)) {
    return cv_fail(why, CV_ERR_INVALID, "--%s without --out; expected the folder in which results are kept",
                   settings->resume ? "resume" : "shard");
  }
  CV_TRY(cv_lab_experiment_check(experiment, why));
  if (settings->out != NULL) {
    CV_TRY(name_file(experiment, settings, &work.shard, file, sizeof(file), why));
    work.file = file;
  }
  return cv_lab_work_run(&work, ret, why);
}

static int run_experiment(struct cv_lab_experiment *experiment, const struct settings *settings) {
  struct cv_lab_dataset dataset = {0};
  struct cv_lab_result result = {.preset = experiment->name};
  struct cv_why why = {0};
  enum cv_err err = run_work(experiment, settings, &dataset, &why);
  if (err == CV_OK) {
    err = cv_lab_dataset_rows(&dataset, &result);
  }
  int status = err == CV_OK ? show(&dataset, &result, settings) : cv_lab_fail(&table, err, &why);
  cv_lab_result_fini(&result);
  cv_lab_dataset_fini(&dataset);
  return status;
}

/* From the working folder: inside an experiment's file a path counts from that file's. */
static enum cv_err find_data(struct settings *settings, struct cv_why *why) {
  if (settings->data != NULL) {
    char *found = realpath(settings->data, NULL);
    if (found == NULL) {
      return cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: %s", settings->data, strerror(errno));
    }
    free(settings->data);
    settings->data = found;
  }
  return CV_OK;
}

static int run(const char *name, struct settings *settings) {
  struct cv_lab_experiment experiment;
  struct cv_why why = {0};
  enum cv_err err = find_data(settings, &why);
  if (err == CV_OK) {
    err = cv_lab_preset_open(name, settings->data, &experiment, &why);
  }
  if (err != CV_OK) {
    return cv_lab_fail(&table, err, &why);
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
    (void)printf("%-28s %s\n", preset->name, experiment.about);
    cv_lab_experiment_fini(&experiment);
  }
  return 0;
}
