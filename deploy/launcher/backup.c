/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil backup: a copy of a running party's database. The party's own program asks for it and checks it. */
#include <stdio.h>

#include "common/base/text.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/program.h"
#include "deploy/launcher/role.h"

struct settings {
  char *to;
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "to",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, to),
     .required = true,
     .help = "the copy: a new file, which appears when it is complete and checked"},
    CV_JSON_RULE(offsetof(struct settings, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil backup",
    .arguments = "CONFIG.YAML",
    .about =
        "copies the database of a running party while it goes on.\n"
        "CONFIG.YAML is the configuration file of a broker, co-broker, third-party, worker or gateway, with `admin`. "
        "The copy has neither the seal key nor the anchor: keep these elsewhere.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static enum cv_err find_program(const char *config, const char **ret, struct cv_why *why) {
  struct cv_yaml yaml;
  enum cv_role role = CV_ROLE_NONE;
  CV_TRY(cv_yaml_open(config, &yaml, why));
  enum cv_err err = cv_launcher_role(&yaml, config, &role, why);
  cv_yaml_close(&yaml);
  *ret = cv_launcher_program_of(role, config);
  return err;
}

static void print_line(void *data, char *line) {
  const struct settings *settings = data;
  if (settings->json) {
    (void)cv_launcher_print_json(&table, json_pack("{s:s, s:s}", "copy", settings->to, "message", line), 0);
  } else {
    (void)printf("%s\n", cv_text_line(line).text);
  }
}

static int back_up(struct settings *settings, const char *config) {
  const char *const args[] = {"--config", config, "--backup", settings->to, NULL};
  const char *program = NULL;
  struct cv_why why;
  int status = 1;
  if (find_program(config, &program, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  if (cv_program_run(program, args, print_line, settings, &status, &why) != CV_OK) {
    return cv_command_fail(&table, 1, "%s", why.text);
  }
  return status;
}

int cv_launcher_backup(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    status = back_up(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
