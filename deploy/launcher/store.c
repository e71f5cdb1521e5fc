/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil store: makes or changes the tables of a broker's database on a server. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/program.h"
#include "deploy/launcher/role.h"

struct settings {
  char *owner;
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "owner",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, owner),
     .required = true,
     .help = "URI of the database's owner, postgresql://OWNER@HOST:PORT/DATABASE?sslrootcert=FILE"},
    CV_JSON_RULE(offsetof(struct settings, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil store",
    .arguments = "migrate BROKER.YAML",
    .about =
        "makes the tables of a broker's database on a server (store), or changes older ones.\n"
        "No broker of the store may be active. For a new store it makes the file seal_key, too, which every broker "
        "needs.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static void print_line(void *data, char *line) {
  const struct settings *settings = data;
  if (settings->json) {
    (void)cv_launcher_print_json(&table, json_pack("{s:s}", "message", line), 0);
  } else {
    (void)printf("%s\n", cv_text_line(line).text);
  }
}

int cv_launcher_store(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[2] = {0};
  int status = cv_command_options(&table, argc, argv, 2, 2, words, &settings);
  if (status < 0 && strcmp(words[0], "migrate") != 0) {
    status = cv_command_fail(&table, 2, "unknown action \"%s\"; expected migrate", words[0]);
  }
  if (status < 0) {
    const char *const args[] = {"--config", words[1], "--migrate", settings.owner, NULL};
    struct cv_why why;
    if (cv_program_run(cv_launcher_program_of(CV_ROLE_BROKER, words[1]), args, print_line, &settings, &status, &why) !=
        CV_OK) {
      status = cv_command_fail(&table, 1, "%s", why.text);
    }
  }
  cv_config_fini(&table, &settings);
  return status;
}
