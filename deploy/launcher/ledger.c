/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil ledger: what a campaign has cost, or would cost at most. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "deploy/launcher/client.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/prepare.h"
#include "deploy/launcher/statement.h"

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };
static const char *const formats[] = {"table", "json", "csv", NULL};

struct settings {
  struct cv_client_settings link;
  char *plan;
  int format;
  bool json;
};

static const struct cv_config_rule rules[] = {
    CV_CLIENT_RULES(struct settings, link),
    {.key = "plan",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, plan),
     .help = "a campaign file: what it could cost at most at this broker, which is asked and stores nothing"},
    {.key = "format",
     .type = CV_CONFIG_WORD,
     .offset = offsetof(struct settings, format),
     .choices = formats,
     .fallback = "table",
     .help = "how to print it"},
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "the same as --format json"},
};

static const struct cv_config_table table = {
    .program = "crowdveil ledger",
    .arguments = "[CAMPAIGN]",
    .about = "shows what a campaign has spent and what that guarantees; your newest one if no number is given",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static enum cv_answer on_answer(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  const struct settings *settings = data;
  const struct cv_statement *statement = &frame->as.statement;
  enum cv_err err = CV_OK;
  (void)client;
  if (frame->kind != CV_ORDER_STATEMENT) {
    return CV_ANSWER_MORE;
  }
  if (settings->json || settings->format == FORMAT_JSON) {
    err = cv_statement_write_json(statement, stdout);
  } else if (settings->format == FORMAT_CSV) {
    cv_statement_write_csv(statement, stdout);
  } else {
    cv_statement_print(statement, stdout);
  }
  if (err != CV_OK || fflush(stdout) != 0 || ferror(stdout) != 0) {
    (void)cv_command_fail(&table, 1, "standard output: %s", strerror(errno));
    return CV_ANSWER_FAILED;
  }
  return CV_ANSWER_DONE;
}

static int ask(struct settings *settings, const char *word) {
  struct cv_order_frame request = {.kind = CV_ORDER_LEDGER};
  struct cv_prepared prepared;
  struct cv_why why;
  if (settings->plan != NULL && word != NULL) {
    return cv_command_fail(&table, 2, "a campaign's number does not go with --plan; expected one of them");
  }
  if (word != NULL && cv_command_number(word, &request.as.ledger.campaign, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  if (settings->plan == NULL) {
    return cv_client_run(&table, &settings->link, &request, on_answer, settings);
  }
  if (cv_prepare(settings->plan, CV_SEED_NONE, &prepared, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  request.as.ledger.has_plan = true;
  request.as.ledger.plan = prepared.file.spec;
  int status = cv_client_run(&table, &settings->link, &request, on_answer, settings);
  cv_prepared_fini(&prepared);
  return status;
}

int cv_command_ledger(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 0, 1, words, &settings);
  if (status < 0) {
    status = ask(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
