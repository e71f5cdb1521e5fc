/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil submit: submits a campaign file to a broker. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crypto/crypto.h"
#include "deploy/launcher/admit.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/follow.h"
#include "deploy/launcher/hindrance.h"

struct settings {
  struct cv_client_settings client;
  char *client_key;
  uint64_t seed;
  bool watch, json;
};

static const struct cv_config_rule rules[] = {
    CV_CLIENT_RULES(struct settings, client),
    CV_CLIENT_RECONNECT_RULE(offsetof(struct settings, client.reconnect_ms)),
    {.key = "client_key",
     .type = CV_CONFIG_TEXT,
     .offset = offsetof(struct settings, client_key),
     .help = "32 hexadecimal digits; submitting again with the same key returns the same campaign (default: random)"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, seed),
     .high = 9e15,
     .help = "the seed of the workers, to know the truth of drawn items"},
    {.key = "watch",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, watch),
     .fallback = "false",
     .help = "follow the campaign to its end and print the result"},
    CV_JSON_RULE(offsetof(struct settings, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil submit",
    .arguments = "FILE",
    .about = "submits a campaign file to a broker and prints the campaign's number",
    .rules = rules,
    .count = CV_COUNT(rules),
    .check = cv_launcher_check_file,
};

struct submission {
  bool watch, json;
  bool has_two; /* brokers */
  struct cv_prepared *prepared;
  struct cv_order_frame request; /* the Submit, once the broker has told its limits */
  struct cv_exposure exposure;
  struct cv_follow follow;
};

static void say_accepted(struct submission *submission, const struct cv_order_frame *frame) {
  if (submission->json) {
    submission->follow.status =
        cv_launcher_print_json(&table,
                               json_pack("{s:I, s:b}", "campaign", (json_int_t)frame->as.accepted.campaign, "existed",
                                         (int)frame->as.accepted.existed),
                               0);
    return;
  }
  (void)printf("campaign %" PRIu64 "%s\n", frame->as.accepted.campaign,
               frame->as.accepted.existed ? " (submitted before)" : "");
}

/* Only the broker has accepted the campaign so far: the co-broker opens it, refuses it, or is away. */
static enum cv_answer on_cobroker(struct submission *submission, const struct cv_progress *progress) {
  const char *wait = cv_hindrance_wait(progress);
  if (progress->end == CV_END_REFUSED) {
    (void)cv_command_fail(&table, 1, "campaign %" PRIu64 " was refused; %s", progress->campaign, progress->why);
    return CV_ANSWER_FAILED;
  }
  if (wait != NULL) {
    (void)cv_command_fail(&table, 0, "campaign %" PRIu64 " %s", progress->campaign, wait);
  } else if (progress->waits_for_cobroker) {
    return CV_ANSWER_MORE;
  }
  submission->follow.status = 0;
  return CV_ANSWER_DONE;
}

static enum cv_answer on_progress(struct submission *submission, struct cv_client *client,
                                  const struct cv_order_frame *frame) {
  if (submission->watch) {
    return cv_follow_answer(&submission->follow, client, frame);
  }
  switch (frame->kind) {
    case CV_ORDER_PROGRESS:
      return on_cobroker(submission, &frame->as.progress);
    case CV_ORDER_FINISHED:
      return on_cobroker(submission, &frame->as.finished.progress);
    default:
      return CV_ANSWER_MORE;
  }
}

/* Whether the campaign can have the broker's smallest release: only the requester knows its policy's needs. */
static enum cv_answer on_limits(struct submission *submission, struct cv_client *client,
                                const struct cv_statement *statement) {
  struct cv_why why;
  if (cv_admit_take(statement, submission->prepared, &why) != CV_OK) {
    (void)cv_command_fail(&table, 1, "%s", why.text);
    return CV_ANSWER_FAILED;
  }
  cv_client_ask(client, &submission->request);
  return CV_ANSWER_MORE;
}

static enum cv_answer on_answer(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  struct submission *submission = data;
  if (frame->kind == CV_ORDER_STATEMENT) {
    return on_limits(submission, client, &frame->as.statement);
  }
  if (frame->kind != CV_ORDER_ACCEPTED) {
    return on_progress(submission, client, frame);
  }
  say_accepted(submission, frame);
  if (submission->watch) {
    cv_exposure_print(&submission->exposure, "", stdout);
  }
  (void)fflush(stdout);
  if (!submission->watch && !submission->has_two) {
    submission->follow.status = 0;
    return CV_ANSWER_DONE;
  }
  const struct cv_order_frame watch = {
      .kind = CV_ORDER_WATCH,
      .as.watch = {.campaign = frame->as.accepted.campaign,
                   .standings = submission->watch && submission->follow.view.is_terminal}};
  cv_client_ask(client, &watch);
  return CV_ANSWER_MORE;
}

static void on_lost(void *data) {
  struct submission *submission = data;
  cv_follow_lost(&submission->follow);
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* Parses the client key; draws a random one if `text` is NULL. */
static enum cv_err take_key(const char *text, uint8_t key[CV_CLIENT_KEY_BYTES], struct cv_why *why) {
  size_t n = text == NULL ? 0 : strlen(text);
  struct cv_drbg drbg;
  cv_drbg_init(&drbg);
  for (size_t i = 0; i < CV_CLIENT_KEY_BYTES; i++) {
    key[i] = (uint8_t)cv_rng_u64(&drbg.rng);
  }
  cv_drbg_fini(&drbg);
  if (text == NULL) {
    return CV_OK;
  }
  for (size_t i = 0; i < 2 * (size_t)CV_CLIENT_KEY_BYTES; i++) {
    int digit = n == 2 * (size_t)CV_CLIENT_KEY_BYTES ? hex_digit(text[i]) : -1;
    if (digit < 0) {
      return cv_fail(why, CV_ERR_INVALID, "--client-key is \"%.40s\"; expected %d hexadecimal digits", text,
                     2 * CV_CLIENT_KEY_BYTES);
    }
    key[i / 2] = (uint8_t)(i % 2 == 0 ? digit << 4 : key[i / 2] | digit);
  }
  return CV_OK;
}

static int submit(const struct settings *settings, const char *file) {
  struct cv_order_frame request = {.kind = CV_ORDER_SUBMIT};
  struct cv_prepared prepared;
  struct submission submission = {.watch = settings->watch, .json = settings->json};
  struct cv_why why;
  if (settings->watch && settings->json) {
    return cv_command_fail(&table, 2, "--json cannot be used with --watch; expected crowdveil watch --json afterwards");
  }
  if (take_key(settings->client_key, request.as.submit.client_key, &why) != CV_OK ||
      cv_launcher_prepare(&table, file, settings->seed, &prepared, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  /* Only the requester has the data file, so this is not in the broker's answers. */
  if (cv_exposure_plan(&prepared, cv_exposure_token_micro(&prepared.file), &submission.exposure) != CV_OK) {
    cv_prepared_fini(&prepared);
    return cv_command_fail(&table, 1, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  /* On the other stream: scripts read the campaign's number from standard output. */
  cv_unit_print_notes(&prepared, stderr);
  /* The file certainly is the campaign's, so the Watch later needs no description. */
  cv_follow_init(&submission.follow, &table, &prepared, settings->seed != CV_SEED_NONE);
  submission.has_two = prepared.file.spec.brokers == 2;
  request.as.submit.spec = prepared.file.spec;
  request.as.submit.gold = prepared.file.gold.gold;
  submission.prepared = &prepared;
  submission.request = request;
  /* A campaign that was submitted before may be beyond present limits: with its key it is only found again. */
  const struct cv_order_frame first = settings->client_key == NULL ? cv_admit_request(&prepared) : request;
  int status =
      cv_client_follow(&table, &settings->client, &first, on_answer, settings->watch ? on_lost : NULL, &submission);
  cv_follow_fini(&submission.follow);
  cv_prepared_fini(&prepared);
  return status != 0 ? status : submission.follow.status;
}

int cv_launcher_submit(int argc, char **argv) {
  struct settings settings = {.seed = CV_SEED_NONE};
  const char *words[CV_WORDS_MAX] = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  if (status < 0) {
    /* Without --watch nothing takes long enough to wait for a broker's return. */
    settings.client.reconnect_ms = settings.watch ? settings.client.reconnect_ms : 0;
    status = submit(&settings, words[0]);
  }
  cv_config_fini(&table, &settings);
  return status;
}
