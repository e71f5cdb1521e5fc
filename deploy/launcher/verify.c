/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil verify: checks with a broker's export that the third-party followed its policy. */
#include <inttypes.h>
#include <stdio.h>

#include "deploy/launcher/command.h"
#include "deploy/launcher/export.h"
#include "thirdparty/replay.h"

static const struct cv_config_table table = {
    .program = "crowdveil verify",
    .arguments = "EXPORT.JSON",
    .about = "runs the policy again on the releases of an export and compares every plan and the result",
};

static int tell(const struct cv_export *export, const struct cv_replay_verdict *verdict) {
  (void)printf("campaign %" PRIu64 ", \"%s\", policy %s: %" PRIu64 " releases, %" PRIu64 " plans, %" PRIu64
               " standings\n",
               export->campaign, export->spec.name, export->spec.policy.name, verdict->releases, verdict->plans,
               verdict->standings);
  if (!verdict->agrees) {
    (void)fflush(stdout);
    return cv_command_fail(&table, 1, "the third-party did not follow its policy: %s", verdict->first.text);
  }
  (void)printf("every plan and the result agree\n");
  return 0;
}

int cv_launcher_verify(int argc, char **argv) {
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_export export = {0};
  struct cv_replay_verdict verdict;
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &export);
  if (status >= 0) {
    return status;
  }
  enum cv_err err = cv_export_read_json(words[0], &export, &why);
  if (err != CV_OK) {
    return cv_command_fail(&table, 2, "%s", why.text);
  }
  /* Without releases a comparison would succeed without checking anything. */
  if (export.releases == 0 && cv_spec_is_exact(&export.spec)) {
    cv_export_fini(&export);
    return cv_command_fail(
        &table, 1,
        "%s: no releases: the third-party of this campaign is trusted with exact sums, which a broker "
        "does not export; expected another campaign's export, or crowdveil replay on the "
        "third-party's database",
        words[0]);
  }
  const struct cv_replay_records records = {.spec = &export.spec,
                                            .seed = export.seed,
                                            .plan = export.plan,
                                            .plans = export.plans,
                                            .release = export.release,
                                            .releases = export.releases,
                                            .end = export.progress.end,
                                            .standing = export.standing,
                                            .standings = export.standings};
  err = cv_replay_records(&records, &verdict, &why);
  status = err == CV_OK ? tell(&export, &verdict) : cv_command_fail(&table, 1, "%s: %s", words[0], why.text);
  cv_export_fini(&export);
  return status;
}
