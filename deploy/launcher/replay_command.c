/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil replay: runs the policies again on a third-party's database and compares every decision. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/text.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/json.h"
#include "thirdparty/replay.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {CV_JSON_RULE(offsetof(struct settings, json))};

static const struct cv_config_table table = {
    .program = "crowdveil replay",
    .arguments = "THIRDPARTY.DB",
    .about = "runs the policy again on the releases in a third-party's database and compares every decision",
    .rules = rules,
    .count = CV_COUNT(rules),
};

struct tally {
  unsigned campaigns, disagree;
  json_t *all; /* an object a campaign; NULL: text is printed */
};

static json_t *campaign_json(const struct cv_stored_campaign *campaign, const struct cv_replay_verdict *verdict) {
  return json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:b, s:s?}", "campaign", (json_int_t)campaign->key.campaign,
                   "broker", campaign->key.broker, "name", campaign->spec.name, "releases",
                   (json_int_t)verdict->releases, "plans", (json_int_t)verdict->plans, "decisions",
                   (json_int_t)verdict->decisions, "agrees", (int)verdict->agrees, "difference",
                   verdict->agrees ? NULL : verdict->first.text);
}

static void each(void *data, const struct cv_stored_campaign *campaign, const struct cv_replay_verdict *verdict) {
  struct tally *tally = data;
  tally->campaigns++;
  tally->disagree += !verdict->agrees;
  if (tally->all != NULL) {
    tally->all = cv_json_append(tally->all, campaign_json(campaign, verdict));
    return;
  }
  (void)printf("campaign %" PRIu64 " of broker %s, \"%s\": %" PRIu64 " releases, %" PRIu64 " plans, %" PRIu64
               " decisions: %s\n",
               campaign->key.campaign, campaign->key.broker, cv_text_shown(campaign->spec.name).text, verdict->releases,
               verdict->plans, verdict->decisions, verdict->agrees ? "all agree" : verdict->first.text);
}

static int replay(const struct settings *settings, const char *path) {
  struct tally tally = {.all = settings->json ? json_array() : NULL};
  struct cv_why why;
  enum cv_err err = cv_replay_database(path, each, NULL, &tally, &why);
  if (err != CV_OK) {
    json_decref(tally.all);
    return cv_command_fail(&table, err == CV_ERR_NOT_FOUND ? 2 : 1, "%s", why.text);
  }
  if (settings->json) {
    return cv_launcher_print_json(&table, json_pack("{s:o}", "campaigns", tally.all), tally.disagree > 0 ? 1 : 0);
  }
  if (tally.disagree > 0) {
    return cv_command_fail(&table, 1, "%u of %u campaigns differ from what the policy decides", tally.disagree,
                           tally.campaigns);
  }
  (void)printf("%u %s: every decision agrees\n", tally.campaigns, tally.campaigns == 1 ? "campaign" : "campaigns");
  return 0;
}

int cv_launcher_replay(int argc, char **argv) {
  const char *words[CV_WORDS_MAX] = {0};
  struct settings settings = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  return status >= 0 ? status : replay(&settings, words[0]);
}
