/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil recover: makes a stopped broker usable whose database is outdated (an older copy) or lost. The broker's own
 * program changes its state (--recover); the third-party's program (--examine) says what the broker has forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deploy/launcher/command.h"
#include "deploy/launcher/program.h"
#include "deploy/launcher/state.h"

struct settings {
  char *thirdparty;
  bool lost, json;
};

static const struct cv_config_rule rules[] = {
    {.key = "thirdparty",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, thirdparty),
     .help = "configuration file of a stopped third-party here, or a file with the output of its --examine"},
    {.key = "lost",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, lost),
     .fallback = "false",
     .help = "recover although database, anchor or key are lost: charge every worker for what is unknown"},
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "print one JSON object per line"},
};

static const struct cv_config_table table = {
    .program = "crowdveil recover",
    .arguments = "BROKER.YAML",
    .about = "recovers a stopped broker: ends its open campaigns and charges for releases that its database lost",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static void keep_line(void *data, char *line) {
  (void)fprintf(data, "%s\n", line);
}

/* Returns true for the output of --examine, which begins with one of these words; a configuration does not. */
static bool is_examined(const char *path) {
  char head[8] = "";
  FILE *file = fopen(path, "re");
  if (file != NULL) {
    (void)!fread(head, 1, sizeof(head) - 1, file);
    (void)fclose(file);
  }
  return strncmp(head, "fact\t", 5) == 0 || strncmp(head, "ok\t", 3) == 0 || strncmp(head, "note\t", 5) == 0 ||
         strncmp(head, "warning", 7) == 0 || strncmp(head, "wrong\t", 6) == 0;
}

/* Writes the third-party's --examine output to a temporary file, which the caller removes, and its path to `to`; "" if
 * there is no file. */
static enum cv_err ask_thirdparty(const char *config, char *to, size_t size, struct cv_why *why) {
  const char *const args[] = {"--config", config, "--examine", NULL};
  const char *folder = getenv("TMPDIR");
  (void)snprintf(to, size, "%s/crowdveil-recover-XXXXXX", folder == NULL ? "/tmp" : folder);
  int fd = mkstemp(to);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (file == NULL) {
    to[0] = '\0';
    return cv_fail(why, CV_ERR_IO, "cannot make a temporary file: %s", strerror(errno));
  }
  int status = 1;
  enum cv_err err = cv_program_run("crowdveil-thirdparty", args, keep_line, file, &status, why);
  if (fclose(file) != 0 && err == CV_OK) {
    err = cv_fail(why, CV_ERR_IO, "%s: %s", to, strerror(errno));
  }
  if (err == CV_OK && status != 0) {
    err = cv_fail(why, CV_ERR_STATE, "%s: the third-party's state has problems; crowdveil doctor %s lists them", config,
                  config);
  }
  return err;
}

static int run_broker(const struct settings *settings, const char *word, const char *claims) {
  const char *args[5] = {"--recover"};
  size_t n = 1;
  if (settings->lost) {
    args[n++] = "--lost";
  }
  if (claims != NULL) {
    args[n++] = "--recover-thirdparty";
    args[n++] = claims;
  }
  return cv_state_command(&table, word, args, settings->json);
}

static int recover(const struct settings *settings, const char *word) {
  char answer[4096] = "";
  struct cv_why why;
  const char *claims = settings->thirdparty;
  int status = 1;
  /* A third-party that cannot be examined stops the recovery: without its facts too little would be charged. */
  if (claims != NULL && !is_examined(claims)) {
    if (ask_thirdparty(claims, answer, sizeof(answer), &why) != CV_OK) {
      status = cv_command_fail(&table, 1, "%s", why.text);
      claims = NULL;
    } else {
      claims = answer;
    }
  }
  if (settings->thirdparty == NULL || claims != NULL) {
    status = run_broker(settings, word, claims);
  }
  if (answer[0] != '\0') {
    (void)unlink(answer);
  }
  return status;
}

int cv_launcher_recover(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    status = recover(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
