/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil ledger: the privacy budget that a campaign has spent, or could spend at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/standard.h"
#include "deploy/launcher/admit.h"
#include "deploy/launcher/client.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/statement.h"
#include "prepare/prepare.h"

enum format { FORMAT_TABLE, FORMAT_JSON, FORMAT_CSV };
static const char *const formats[] = {"table", "json", "csv", NULL};

struct settings {
  struct cv_client_settings client;
  char *plan, *file;
  uint64_t seed;
  int format;
  bool json;
};

static const struct cv_config_rule rules[] = {
    CV_CLIENT_RULES(struct settings, client),
    {.key = "plan",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, plan),
     .help = "campaign file: what it could spend at most at this broker; crowdveil plan says what it will take"},
    {.key = "file",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, file),
     .help = "the campaign's file, to show the charge of a row and a person of its data"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, seed),
     .high = 9e15,
     .help = "with --file: the seed of the workers, to count how often each row was used"},
    {.key = "format",
     .type = CV_CONFIG_WORD,
     .offset = offsetof(struct settings, format),
     .choices = formats,
     .fallback = "table",
     .help = "format of the output"},
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "the same as --format json"},
};

static const struct cv_config_table table = {
    .program = "crowdveil ledger",
    .arguments = "[CAMPAIGN]",
    .about =
        "shows the privacy budget that a campaign has spent and what it guarantees; without CAMPAIGN your newest one",
    .rules = rules,
    .count = CV_COUNT(rules),
};

struct asking {
  const struct settings *settings;
  struct cv_prepared *prepared; /* the file of --plan or --file, or NULL */
};

/* The exposure of a campaign that has begun. What is spent on an arm is the charge of each of its tokens. */
static enum cv_err find_past(const struct asking *asking, const struct cv_statement *statement,
                             struct cv_exposure *ret) {
  const struct cv_spec *spec = &asking->prepared->file.spec;
  uint64_t *tokens = calloc(statement->arms, sizeof(*tokens));
  struct cv_exposure_ask ask = {.items = &asking->prepared->file.items,
                                .source = &asking->prepared->source,
                                .spec = spec,
                                .tokens = tokens,
                                .is_exact = statement->is_exact,
                                .is_seed_known = asking->settings->seed != CV_SEED_NONE};
  if (tokens == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < statement->arms; i++) {
    const struct cv_account *account = &statement->account[i];
    tokens[i] = account->tokens;
    ask.token_micro = account->spent_micro > ask.token_micro ? account->spent_micro : ask.token_micro;
  }
  enum cv_err err = cv_exposure_find(&ask, ret);
  free(tokens);
  return err;
}

/* *ret_known is false without a file, or with one of another campaign, which is reported and ignored. */
static enum cv_err find_exposure(const struct asking *asking, const struct cv_statement *statement, bool *ret_known,
                                 struct cv_exposure *ret) {
  const struct cv_spec *spec = asking->prepared == NULL ? NULL : &asking->prepared->file.spec;
  *ret_known = spec != NULL;
  if (spec == NULL) {
    return CV_OK;
  }
  if (statement->campaign == 0) {
    return cv_exposure_plan(asking->prepared, statement->epsilon_micro, ret);
  }
  if (spec->arms != statement->arms || strcmp(spec->name, statement->name) != 0) {
    *ret_known = false;
    (void)cv_command_fail(&table, 0, "ignoring the file of campaign \"%s\", %u arms; expected that of \"%s\", %u arms",
                          cv_text_shown(spec->name).text, spec->arms, cv_text_shown(statement->name).text,
                          statement->arms);
    return CV_OK;
  }
  return find_past(asking, statement, ret);
}

/* --json and --format json are the same. */
static enum cv_err print(const struct asking *asking, const struct cv_statement *statement) {
  const struct settings *settings = asking->settings;
  struct cv_exposure exposure;
  bool is_known;
  CV_TRY(find_exposure(asking, statement, &is_known, &exposure));
  const struct cv_exposure *known = is_known ? &exposure : NULL;
  if (settings->json || settings->format == FORMAT_JSON) {
    return cv_launcher_statement_write_json(statement, known, stdout);
  }
  if (settings->format == FORMAT_CSV) {
    cv_launcher_statement_write_csv(statement, stdout);
  } else {
    cv_launcher_statement_print(statement, known, stdout);
  }
  return CV_OK;
}

static enum cv_answer on_answer(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  const struct asking *asking = data;
  (void)client;
  if (frame->kind != CV_ORDER_STATEMENT) {
    return CV_ANSWER_MORE;
  }
  struct cv_why why;
  if (asking->settings->plan != NULL && cv_admit_take(&frame->as.statement, asking->prepared, &why) != CV_OK) {
    (void)cv_command_fail(&table, 1, "%s", why.text);
    return CV_ANSWER_FAILED;
  }
  enum cv_err err = print(asking, &frame->as.statement);
  if (err != CV_OK) {
    (void)cv_command_fail(&table, 1, "%s", err == CV_ERR_IO ? cv_standard_reason() : cv_err_text(err));
    return CV_ANSWER_FAILED;
  }
  return CV_ANSWER_DONE;
}

static int ask(struct settings *settings, const char *word) {
  const char *file = settings->plan != NULL ? settings->plan : settings->file;
  struct cv_order_frame request = {.kind = CV_ORDER_LEDGER};
  struct cv_prepared prepared;
  struct asking asking = {.settings = settings};
  struct cv_why why;
  if (settings->plan != NULL && word != NULL) {
    return cv_command_fail(&table, 2, "CAMPAIGN cannot be used with --plan; expected one of them");
  }
  /* Without a number the request is for campaign 0, which is the newest one. */
  if (word != NULL && cv_launcher_number(word, &request.as.ledger.campaign, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  if (settings->plan != NULL && settings->file != NULL) {
    return cv_command_fail(&table, 2, "--file cannot be used with --plan; expected one of them");
  }
  if (file == NULL) {
    return cv_client_run(&table, &settings->client, &request, on_answer, &asking);
  }
  if (cv_launcher_prepare(&table, file, settings->seed, &prepared, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  asking.prepared = &prepared;
  if (settings->plan != NULL) {
    request = cv_admit_request(&prepared);
  }
  int status = cv_client_run(&table, &settings->client, &request, on_answer, &asking);
  cv_prepared_fini(&prepared);
  return status;
}

int cv_launcher_ledger(int argc, char **argv) {
  struct settings settings = {.seed = CV_SEED_NONE};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 0, 1, words, &settings);
  if (status < 0) {
    status = ask(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
