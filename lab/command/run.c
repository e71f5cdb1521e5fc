/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/standard.h"
#include "lab/command/running.h"
#include "lab/experiment/preset.h"
#include "lab/experiment/read.h"
#include "lab/judge/claim.h"
#include "lab/judge/summary.h"
#include "lab/judge/terms.h"
#include "lab/report/distribution.h"
#include "lab/report/figure.h"

#define AT(field) offsetof(struct settings, field)

struct settings {
  struct cv_lab_asked asked;
  char *data, *shard;
  bool json, token_level, resume, all;
};

static const struct cv_config_rule rules[] = {
    CV_LAB_REPLICATES_RULE(AT(asked.replicates), "the experiment's"),
    CV_LAB_CHANCE_RULES(AT(asked.seed), AT(asked.jobs)),
    {.key = "token_level",
     .type = CV_CONFIG_BOOL,
     .offset = AT(token_level),
     .fallback = "false",
     .help = "draw every token separately, even where one draw of the sum has the same distribution"},
    {.key = "data",
     .type = CV_CONFIG_PATH,
     .offset = AT(data),
     .help = "data file to use instead of the one that the experiment names"},
    {.key = "out",
     .type = CV_CONFIG_PATH,
     .offset = AT(asked.out),
     .help = "folder for the results, the figure and its numbers"},
    {.key = "resume",
     .type = CV_CONFIG_BOOL,
     .offset = AT(resume),
     .fallback = "false",
     .help = "continue with existing results in --out"},
    {.key = "shard",
     .type = CV_CONFIG_TEXT,
     .offset = AT(shard),
     .help = "I/N: run only part I of N; crowdveil-lab merge joins the results of the parts"},
    CV_LAB_PROGRESS_RULE(AT(asked.progress), ": a line every ten seconds"),
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = AT(json),
     .fallback = "false",
     .help = "print one JSON object per line"},
    {.key = "all",
     .type = CV_CONFIG_BOOL,
     .offset = AT(all),
     .fallback = "false",
     .help = "print every row of a long table instead of every tenth"},
};

static const struct cv_config_table table = {
    .program = "crowdveil-lab run",
    .arguments = "PRESET|FILE",
    .about = "Runs an experiment and prints its results; crowdveil-lab list shows all presets.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

/* The state of one run: its settings, and the path of its file of results. */
struct running {
  const struct settings *settings;
  char file[CV_LAB_PATH_BYTES];
};

/* Sets the path of the results: OUT/NAME.db, or OUT/NAME-I-of-N.db for a shard. */
static enum cv_err name_file(struct running *running, const struct cv_lab_experiment *experiment,
                             const struct cv_lab_shard *shard, struct cv_why *why) {
  const char *out = running->settings->asked.out;
  char part[48] = "";
  if (strchr(experiment->name, '/') != NULL || experiment->name[0] == '.') {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: campaign %s cannot name a file in --out; expected a name without a slash or leading dot",
                   experiment->path, cv_text_quote(experiment->name).text);
  }
  if (shard->of > 1) {
    (void)snprintf(part, sizeof(part), "-%" PRIu64 "-of-%" PRIu64, shard->index, shard->of);
  }
  int n = snprintf(running->file, sizeof(running->file), "%s/%s%s.db", out, experiment->name, part);
  return n < (int)sizeof(running->file) ? CV_OK : cv_fail(why, CV_ERR_LIMIT, "%.200s...: name too long", out);
}

static enum cv_err plan(void *self, const struct cv_lab_experiment *experiment, struct cv_lab_work *work,
                        struct cv_why *why) {
  struct running *running = self;
  const struct settings *settings = running->settings;
  work->token_level = settings->token_level;
  work->resume = settings->resume;
  if (settings->shard != NULL) {
    CV_TRY(cv_lab_shard_parse(settings->shard, &work->shard, why));
  }
  if (settings->asked.out == NULL && (settings->shard != NULL || settings->resume)) {
    return cv_fail(why, CV_ERR_INVALID, "--%s needs --out; expected the folder of the results",
                   settings->resume ? "resume" : "shard");
  }
  if (settings->asked.out != NULL) {
    CV_TRY(name_file(running, experiment, &work->shard, why));
    work->file = running->file;
  }
  return CV_OK;
}

/* ---- results ---- */

static void print_claims(const struct cv_lab_dataset *dataset) {
  for (size_t i = 0; i < cv_lab_claims(dataset->experiment); i++) {
    struct cv_lab_claim claim;
    cv_lab_claim_judge(dataset, i, &claim);
    (void)printf("%s%s: %s\n    %s\n", i == 0 ? "\n" : "", claim.answer, claim.says, claim.reason);
  }
}

static enum cv_err show(const struct cv_lab_dataset *dataset, const struct cv_lab_result *result,
                        const struct settings *settings, struct cv_why *why) {
  const struct cv_lab_figure *figure = &dataset->experiment->figure;
  const char *out = settings->asked.out;
  enum cv_err err = settings->json ? cv_lab_print_json(result, stdout)
                                   : cv_lab_print_table(result, figure->x_label, settings->all, stdout);
  if (!settings->json && settings->shard == NULL) {
    print_claims(dataset);
  }
  if (err != CV_OK || fflush(stdout) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s", cv_standard_reason());
  }
  /* A shard has a part of the replicates: figures and claims wait for the merged file. */
  if (settings->shard != NULL) {
    return CV_OK;
  }
  /* After the table, which is printed even if it is empty: without a value there is nothing to draw. */
  if (result->rows == 0) {
    return cv_fail(why, CV_ERR_STATE, "no replicate gave a value of %s; expected longer runs",
                   dataset->experiment->metric[0].name);
  }
  if (out == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_lab_figure_draw(figure, result, out, why));
  return cv_lab_distribution_draw(dataset, out, why);
}

static enum cv_err take(void *self, const struct cv_lab_dataset *dataset, double seconds, struct cv_why *why) {
  const struct running *running = self;
  struct cv_lab_result result = {.preset = dataset->experiment->name};
  (void)seconds;
  enum cv_err err = cv_lab_dataset_rows(dataset, &result);
  if (err == CV_OK) {
    err = show(dataset, &result, running->settings, why);
  }
  cv_lab_result_fini(&result);
  return err;
}

/* ---- the command ---- */

/* Makes --data absolute: it is relative to the working folder, but a path in an experiment to the experiment's. */
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
  static const struct cv_lab_steps steps = {.plan = plan, .take = take};
  struct running running = {.settings = settings};
  struct cv_why why = {0};
  enum cv_err err = find_data(settings, &why);
  if (err == CV_OK) {
    err = cv_lab_running(name, settings->data, &settings->asked, &steps, &running, &why);
  }
  return err == CV_OK ? 0 : cv_lab_fail(&table, err, &why);
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

struct listing {
  bool json;
};

static const struct cv_config_rule list_rules[] = {CV_LAB_JSON_RULE(offsetof(struct listing, json))};

static const struct cv_config_table list_table = {
    .program = "crowdveil-lab list",
    .about = "Lists the preset experiments.",
    .rules = list_rules,
    .count = CV_COUNT(list_rules),
};

int cv_lab_list(int argc, char **argv) {
  struct listing listing = {0};
  int status = cv_command_options(&list_table, argc, argv, 0, 0, NULL, &listing);
  if (status >= 0) {
    return status;
  }
  for (const struct cv_lab_preset *preset = cv_lab_presets; preset->name != NULL; preset++) {
    struct cv_lab_experiment experiment;
    struct cv_why why = {0};
    if (cv_lab_experiment_parse(preset->name, preset->text, strlen(preset->text), NULL, &experiment, &why) != CV_OK) {
      return cv_command_fail(&list_table, 1, "%s", why.text);
    }
    if (listing.json) {
      cv_lab_print_object(
          json_pack("{s:s, s:s, s:s}", "name", preset->name, "about", experiment.about, "paper", experiment.paper));
    } else {
      (void)printf("%-28s %s\n", preset->name, experiment.about);
    }
    cv_lab_experiment_fini(&experiment);
  }
  return 0;
}
