/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil replay: runs the policies again on a third-party's database and compares every decision. */
#include <inttypes.h>
#include <stdio.h>

#include "deploy/launcher/command.h"
#include "thirdparty/replay.h"

static const struct cv_config_table table = {
    .program = "crowdveil replay",
    .arguments = "THIRDPARTY.DB",
    .about = "runs the policy again on the releases in a third-party's database and compares every decision",
};

struct tally {
  unsigned campaigns, disagree;
};

static void each(void *data, const struct cv_stored_campaign *campaign, const struct cv_replay_verdict *verdict) {
  struct tally *tally = data;
  tally->campaigns++;
  (void)printf("campaign %" PRIu64 " of broker %s, \"%s\": %" PRIu64 " releases, %" PRIu64 " plans, %" PRIu64
               " decisions: %s\n",
               campaign->key.campaign, campaign->key.broker, campaign->spec.name, verdict->releases, verdict->plans,
               verdict->decisions, verdict->agrees ? "all agree" : verdict->first.text);
  tally->disagree += !verdict->agrees;
}

int cv_launcher_replay(int argc, char **argv) {
  const char *words[CV_WORDS_MAX] = {0};
  struct tally tally = {0};
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &tally);
  if (status >= 0) {
    return status;
  }
  enum cv_err err = cv_replay_database(words[0], each, &tally, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, err == CV_ERR_NOT_FOUND ? 2 : 1, "%s", why.text);
  }
  if (tally.disagree > 0) {
    return cv_command_fail(&table, 1, "%u of %u campaigns differ from what the policy decides", tally.disagree,
                           tally.campaigns);
  }
  (void)printf("%u %s: every decision agrees\n", tally.campaigns, tally.campaigns == 1 ? "campaign" : "campaigns");
  return 0;
}
