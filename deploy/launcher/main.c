/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil: the commands of requesters and operators. `crowdveil COMMAND --help` describes each. */
#include "common/base/log.h"
#include "deploy/launcher/command.h"

static const struct cv_command commands[] = {
    {"up", cv_launcher_up, "run a campaign with all its parties on this machine"},
    {"check", cv_launcher_check, "check a campaign file, or list every key that it can have"},
    {"plan", cv_launcher_plan, "say what a campaign will take before it runs"},
    {"pki", cv_launcher_pki, "make a CA and issue certificates"},
    {"submit", cv_launcher_submit, "submit a campaign to a broker"},
    {"watch", cv_launcher_watch, "show a campaign's progress until it ends, then its result"},
    {"cancel", cv_launcher_cancel, "end a campaign early"},
    {"purge", cv_launcher_purge, "delete ended campaigns from a broker"},
    {"status", cv_launcher_status, "list your campaigns at a broker"},
    {"export", cv_launcher_export, "save a campaign's plans, releases and result"},
    {"ledger", cv_launcher_ledger, "show the privacy budget that a campaign has spent, or could spend"},
    {"profiles", cv_launcher_profiles, "list the brokers that --profile can name"},
    {"compare", cv_launcher_compare, "show two rankings of the same items side by side"},
    {"verify", cv_launcher_verify, "run the policy again on an export and compare the results"},
    {"replay", cv_launcher_replay, "run the policy again on a third-party's database and compare the results"},
    {"doctor", cv_launcher_doctor, "check the parties on this machine and say how to fix problems"},
    {"backup", cv_launcher_backup, "copy the database of a running party"},
    {"recover", cv_launcher_recover, "recover a broker whose database is outdated or lost"},
    {"audit", cv_launcher_audit, "check that no line of an audit log was changed or removed"},
    {"seal", cv_launcher_seal, "replace the key that protects a broker's stored keys, or say which it is"},
    {"store", cv_launcher_store, "make or change the tables of a broker's database on a server"},
    {"tether", cv_launcher_tether, NULL},
};

int main(int argc, char **argv) {
  cv_log_init("crowdveil", CV_LOG_WARN);
  return cv_command_main("crowdveil", "A private crowdsourcing platform.", commands, CV_COUNT(commands), argc, argv);
}
