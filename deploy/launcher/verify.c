/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil verify: checks with a broker's export that the third-party followed its policy. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/text.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/export.h"
#include "thirdparty/replay.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {CV_JSON_RULE(offsetof(struct settings, json))};

static const struct cv_config_table table = {
    .program = "crowdveil verify",
    .arguments = "EXPORT.JSON",
    .about = "runs the policy again on the releases of an export and compares every plan and the result",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static int tell_json(const struct cv_export *export, const struct cv_replay_verdict *verdict) {
  return cv_launcher_print_json(
      &table,
      json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:b, s:s?}", "campaign", (json_int_t) export->campaign, "name",
                export->spec.name, "policy", export->spec.policy.name, "releases", (json_int_t)verdict->releases,
                "plans", (json_int_t)verdict->plans, "standings", (json_int_t)verdict->standings, "agrees",
                (int)verdict->agrees, "difference", verdict->agrees ? NULL : verdict->first.text),
      verdict->agrees ? 0 : 1);
}

static int tell(const struct cv_export *export, const struct cv_replay_verdict *verdict) {
  (void)printf("campaign %" PRIu64 ", \"%s\", policy %s: %" PRIu64 " releases, %" PRIu64 " plans, %" PRIu64
               " standings\n",
               export->campaign, cv_text_shown(export->spec.name).text, export->spec.policy.name, verdict->releases,
               verdict->plans, verdict->standings);
  if (!verdict->agrees) {
    (void)fflush(stdout);
    return cv_command_fail(&table, 1, "the third-party did not follow its policy: %s", verdict->first.text);
  }
  (void)printf("every plan and the result agree\n");
  return 0;
}

static int verify(const struct settings *settings, const char *path) {
  struct cv_export export = {0};
  struct cv_replay_verdict verdict;
  struct cv_why why;
  enum cv_err err = cv_export_read_json(path, &export, &why);
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
        path);
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
  int status = err != CV_OK     ? cv_command_fail(&table, 1, "%s: %s", path, why.text)
               : settings->json ? tell_json(&export, &verdict)
                                : tell(&export, &verdict);
  cv_export_fini(&export);
  return status;
}

int cv_launcher_verify(int argc, char **argv) {
  const char *words[CV_WORDS_MAX] = {0};
  struct settings settings = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  return status >= 0 ? status : verify(&settings, words[0]);
}
