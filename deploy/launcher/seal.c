/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil seal: replaces the master key of a broker or co-broker, running or stopped, or says which it is. */
#include <string.h>

#include "deploy/launcher/command.h"
#include "deploy/launcher/state.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "print one JSON object per line"},
};

static const struct cv_config_table table = {
    .program = "crowdveil seal",
    .arguments = "rotate | status BROKER.YAML",
    .about =
        "looks after the key in seal_key, by which the keys in a broker's database are wrapped. rotate makes a new "
        "one,\n"
        "wraps all stored keys by it, and removes the old one from the file; the broker may be running. Repeat it if "
        "it\n"
        "was interrupted. status says which key the file has, how old it is, and what it wraps.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

int cv_launcher_seal(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[2] = {0};
  int status = cv_command_options(&table, argc, argv, 2, 2, words, &settings);
  if (status < 0 && strcmp(words[0], "rotate") != 0 && strcmp(words[0], "status") != 0) {
    status = cv_command_fail(&table, 2, "unknown action \"%s\"; expected rotate or status", words[0]);
  }
  if (status < 0) {
    const char *const options[] = {"--seal", words[0], NULL};
    status = cv_state_command(&table, words[1], options, settings.json);
  }
  cv_config_fini(&table, &settings);
  return status;
}
