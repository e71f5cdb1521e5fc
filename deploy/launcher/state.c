/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/state.h"

#include <stdio.h>
#include <sys/stat.h>

#include "common/config/command.h"
#include "deploy/launcher/findings.h"
#include "deploy/launcher/program.h"
#include "deploy/launcher/role.h"

/* Returns the broker's configuration file: `word` itself, or broker.yaml in the folder `word`. */
static const char *config_of(const char *word, char *to, size_t size) {
  struct stat info;
  if (stat(word, &info) != 0 || !S_ISDIR(info.st_mode)) {
    return word;
  }
  (void)snprintf(to, size, "%s/broker.yaml", word);
  return to;
}

/* Of a file that cannot be read the broker's program says what is wrong with it. */
static enum cv_role role_of(const char *config) {
  struct cv_yaml yaml;
  enum cv_role role = CV_ROLE_NONE;
  if (cv_yaml_open(config, &yaml, NULL) == CV_OK) {
    (void)!cv_launcher_role(&yaml, config, &role, NULL);
    cv_yaml_close(&yaml);
  }
  return role == CV_ROLE_COBROKER ? role : CV_ROLE_BROKER;
}

int cv_state_command(const struct cv_config_table *table, const char *word, const char *const *options, bool json) {
  char config[4096];
  const char *args[CV_PROGRAM_ARGS + 1] = {"--config", config_of(word, config, sizeof(config))};
  const enum cv_role role = role_of(args[1]);
  struct cv_findings findings = {.count = 0};
  struct cv_why why;
  int status = 1;
  for (size_t i = 0; options[i] != NULL; i++) {
    CV_REQUIRE(i + 2 < CV_PROGRAM_ARGS);
    args[i + 2] = options[i];
  }
  (void)snprintf(findings.party, sizeof(findings.party), "%s", cv_role_text(role));
  if (cv_program_run(cv_launcher_program_of(role, args[1]), args, cv_findings_line, &findings, &status, &why) !=
      CV_OK) {
    return cv_command_fail(table, 1, "%s", why.text);
  }
  if (status == 0) {
    cv_findings_print(&findings, json);
  } else if (findings.count > 0) {
    (void)cv_command_fail(table, 1, "%s", findings.found[findings.count - 1].what);
  }
  cv_findings_fini(&findings);
  return status;
}
