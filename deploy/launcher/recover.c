/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowdveil recover: makes a stopped broker or co-broker usable whose database is outdated (an older copy) or lost. Its
 * own program changes its state (--recover); the programs of other parties (--examine) say what it has forgotten.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config/sink.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/program.h"
#include "deploy/launcher/role.h"
#include "deploy/launcher/state.h"

/* The others that can know something; by role, and the options by which the recovering program takes their output. */
enum other { THIRDPARTY, COBROKER, BROKER, OTHERS };
static const struct {
  enum cv_role role;
  const char *option;
} others[OTHERS] = {
    [THIRDPARTY] = {CV_ROLE_THIRDPARTY, "--recover-thirdparty"},
    [COBROKER] = {CV_ROLE_COBROKER, "--recover-cobroker"},
    [BROKER] = {CV_ROLE_BROKER, "--recover-broker"},
};

enum { ANCHORS = 16 };

struct settings {
  char *other[OTHERS]; /* configuration files, or files with output */
  char *anchor;        /* paths, each in a line of its own */
  bool lost, json;
};

static const struct cv_config_rule rules[] = {
    {.key = "thirdparty",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, other[THIRDPARTY]),
     .help = "of a broker: configuration file of a stopped third-party here, or the output of its --examine"},
    {.key = "cobroker",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, other[COBROKER]),
     .help = "of a broker: configuration file of its stopped co-broker here, or the output of its --examine"},
    {.key = "broker",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, other[BROKER]),
     .help = "of a co-broker: configuration file of its stopped broker here, or the output of its --examine"},
    {.key = "anchor",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, anchor),
     .repeats = true,
     .help =
         "of a broker whose state is on a server (store): file with the anchor of another broker of that store; may "
         "be repeated"},
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
    .about =
        "recovers a stopped broker or co-broker: ends its open campaigns and charges for releases that its database "
        "lost",
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

/* Writes the party's --examine output to a temporary file, which the caller removes, and its path to `to`; "" if there
 * is no file. */
static enum cv_err ask(enum cv_role role, const char *config, char *to, size_t size, struct cv_why *why) {
  const char *const args[] = {"--config", config, "--examine", NULL};
  const char *folder = getenv("TMPDIR");
  (void)snprintf(to, size, "%s/crowdveil-recover-XXXXXX", folder == NULL ? "/tmp" : folder);
  int fd = mkstemp(to);
  FILE *file = cv_sink_of(fd);
  if (file == NULL) {
    to[0] = '\0';
    return cv_fail(why, CV_ERR_IO, "cannot make a temporary file: %s", strerror(errno));
  }
  int status = 1;
  enum cv_err err = cv_program_run(cv_launcher_program_of(role, config), args, keep_line, file, &status, why);
  if (fclose(file) != 0 && err == CV_OK) {
    err = cv_fail(why, CV_ERR_IO, "%s: %s", to, strerror(errno));
  }
  if (err == CV_OK && status != 0) {
    err = cv_fail(why, CV_ERR_STATE, "%s: the state of this %s has problems; crowdveil doctor %s lists them", config,
                  cv_role_text(role), config);
  }
  return err;
}

/* What the others say, as files, and the temporary ones among them. */
struct answers {
  const char *file[OTHERS];
  char own[OTHERS][4096];
};

static int run_program(const struct settings *settings, const char *word, const struct answers *answers) {
  const char *args[3 + 2 * OTHERS + 2 * ANCHORS] = {"--recover"};
  size_t n = 1;
  char *save = NULL;
  for (char *at = settings->anchor == NULL ? NULL : strtok_r(settings->anchor, "\n", &save);
       at != NULL && n < 1 + 2 * ANCHORS; at = strtok_r(NULL, "\n", &save)) {
    args[n++] = "--recover-anchor";
    args[n++] = at;
  }
  if (settings->lost) {
    args[n++] = "--lost";
  }
  for (size_t i = 0; i < OTHERS; i++) {
    if (answers->file[i] != NULL) {
      args[n++] = others[i].option;
      args[n++] = answers->file[i];
    }
  }
  return cv_state_command(&table, word, args, settings->json);
}

/* A party that cannot be examined stops the recovery: without its facts too little would be charged. */
static enum cv_err ask_others(const struct settings *settings, struct answers *ret, struct cv_why *why) {
  for (size_t i = 0; i < OTHERS; i++) {
    ret->file[i] = settings->other[i];
    if (settings->other[i] != NULL && !is_examined(settings->other[i])) {
      CV_TRY(ask(others[i].role, settings->other[i], ret->own[i], sizeof(ret->own[i]), why));
      ret->file[i] = ret->own[i];
    }
  }
  return CV_OK;
}

static int recover(const struct settings *settings, const char *word) {
  struct answers answers = {.file = {NULL}};
  struct cv_why why;
  int status = ask_others(settings, &answers, &why) == CV_OK ? run_program(settings, word, &answers)
                                                             : cv_command_fail(&table, 1, "%s", why.text);
  for (size_t i = 0; i < OTHERS; i++) {
    if (answers.own[i][0] != '\0') {
      (void)unlink(answers.own[i]);
    }
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
