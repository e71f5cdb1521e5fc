/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil: what the people around a campaign do with it. `crowdveil COMMAND --help` tells the rest. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/log.h"
#include "deploy/launcher/command.h"

static const struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *about; /* NULL: not shown */
} commands[] = {
    {"up", cv_command_up, "run a campaign file with all its parties on this machine"},
    {"pki", cv_command_pki, "make a CA, issue certificates"},
    {"submit", cv_command_submit, "hand a campaign to a broker"},
    {"watch", cv_command_watch, "follow a campaign to its end"},
    {"cancel", cv_command_cancel, "end a campaign"},
    {"status", cv_command_status, "list your campaigns at a broker"},
    {"export", cv_command_export, "save a campaign's result and all that led to it"},
    {"verify", cv_command_verify, "run the policy again on an export, and compare"},
    {"replay", cv_command_replay, "run the policy again on a third-party's database, and compare"},
    {"tether", cv_command_tether, NULL},
};

static void print_help(FILE *to) {
  (void)fprintf(to, "Usage: crowdveil COMMAND [OPTION]...\nA private crowdsourcing platform.\n\n");
  for (size_t i = 0; i < CV_COUNT(commands); i++) {
    if (commands[i].about != NULL) {
      (void)fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].about);
    }
  }
  (void)fprintf(to, "\ncrowdveil COMMAND --help tells more.\n");
}

int main(int argc, char **argv) {
  (void)signal(SIGPIPE, SIG_IGN);
  cv_log_init("crowdveil", CV_LOG_WARN);
  if (argc < 2) {
    print_help(stderr);
    return 2;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
    print_help(stdout);
    return 0;
  }
  for (size_t i = 0; i < CV_COUNT(commands); i++) {
    if (strcmp(argv[1], commands[i].name) == 0) {
      return commands[i].run(argc - 1, argv + 1);
    }
  }
  (void)fprintf(stderr, "crowdveil: \"%.40s\" is no command; crowdveil --help lists them\n", argv[1]);
  return 2;
}
