/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil watch: shows a campaign's progress, then its result. */
#include "deploy/launcher/command.h"
#include "deploy/launcher/follow.h"

struct settings {
  struct cv_client_settings client;
  char *file;
  uint64_t seed;
  bool json;
};

static const struct cv_config_rule rules[] = {
    CV_CLIENT_RULES(struct settings, client),
    CV_CLIENT_RECONNECT_RULE(offsetof(struct settings, client.reconnect_ms)),
    {.key = "file",
     .type = CV_CONFIG_PATH,
     .offset = offsetof(struct settings, file),
     .help = "the campaign's file, to show the items' names, the truth and the regret"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct settings, seed),
     .high = 9e15,
     .help = "the seed of the workers, to know the truth of drawn items"},
    CV_JSON_RULE(offsetof(struct settings, json)),
};

static const struct cv_config_table table = {
    .program = "crowdveil watch",
    .arguments = "[CAMPAIGN]",
    .about =
        "shows a campaign's progress until it ends, then its result; without CAMPAIGN that of your newest campaign",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static enum cv_answer on_answer(void *data, struct cv_client *client, const struct cv_order_frame *frame) {
  return cv_follow_answer(data, client, frame);
}

static int watch(const struct settings *settings, uint64_t campaign) {
  struct cv_order_frame request = {.kind = CV_ORDER_WATCH, .as.watch = {.campaign = campaign, .describe = true}};
  struct cv_prepared prepared = {0};
  struct cv_follow follow;
  struct cv_why why;
  if (settings->file != NULL && cv_launcher_prepare(&table, settings->file, settings->seed, &prepared, &why) != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  cv_follow_init(&follow, &table, settings->file == NULL ? NULL : &prepared, settings->seed != CV_SEED_NONE);
  if (settings->json) {
    cv_follow_json(&follow);
  }
  request.as.watch.standings = follow.view.is_terminal;
  int status = cv_client_follow(&table, &settings->client, &request, on_answer, cv_follow_lost, &follow);
  cv_follow_fini(&follow);
  if (settings->file != NULL) {
    cv_prepared_fini(&prepared);
  }
  return status != 0 ? status : follow.status;
}

int cv_launcher_watch(int argc, char **argv) {
  struct settings settings = {.seed = CV_SEED_NONE};
  const char *words[CV_WORDS_MAX] = {0};
  uint64_t campaign = 0;
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 0, 1, words, &settings);
  if (status < 0) {
    if (words[0] != NULL && cv_launcher_number(words[0], &campaign, &why) != CV_OK) {
      status = cv_command_fail(&table, 2, "%s", why.text);
    } else {
      status = watch(&settings, campaign);
    }
  }
  cv_config_fini(&table, &settings);
  return status;
}
