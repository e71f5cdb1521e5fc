/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil: what the people around a campaign do with it. `crowdveil COMMAND --help` tells the rest. */
#include "common/base/log.h"
#include "deploy/launcher/command.h"

static const struct cv_command commands[] = {
    {"up", cv_command_up, "run a campaign file with all its parties on this machine"},
    {"pki", cv_command_pki, "make a CA, issue certificates, one or all of a deployment"},
    {"submit", cv_command_submit, "hand a campaign to a broker"},
    {"watch", cv_command_watch, "follow a campaign to its end"},
    {"cancel", cv_command_cancel, "end a campaign"},
    {"purge", cv_command_purge, "delete campaigns that have ended"},
    {"status", cv_command_status, "list your campaigns at a broker"},
    {"export", cv_command_export, "save a campaign's result and all that led to it"},
    {"ledger", cv_command_ledger, "show what a campaign has spent, or would spend at most"},
    {"verify", cv_command_verify, "run the policy again on an export, and compare"},
    {"replay", cv_command_replay, "run the policy again on a third-party's database, and compare"},
    {"doctor", cv_command_doctor, "examine the parties on this machine: what is wrong, and what to do"},
    {"recover", cv_command_recover, "let a broker run again whose database went back or is lost"},
    {"tether", cv_command_tether, NULL},
};

int main(int argc, char **argv) {
  cv_log_init("crowdveil", CV_LOG_WARN);
  return cv_command_main("crowdveil", "A private crowdsourcing platform.", commands, CV_COUNT(commands), argc, argv);
}
