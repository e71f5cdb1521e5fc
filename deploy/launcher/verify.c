/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil verify: checks with a broker's export that the third-party followed its policy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "deploy/launcher/command.h"
#include "deploy/launcher/export.h"
#include "thirdparty/replay.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {CV_JSON_RULE(offsetof(struct settings, json))};

enum { PARTIAL = 3 }; /* exit status: what is there fits, but it is not all that was said */

static const struct cv_config_table table = {
    .program = "crowdveil verify",
    .arguments = "EXPORT.JSON",
    .about =
        "runs the policy again on the releases of an export and compares every plan and the result.\n"
        "Exit status 1: they differ; 3: of a campaign that ended without a common result, not all can be compared",
    .rules = rules,
    .count = CV_COUNT(rules),
};

struct left_out {
  char text[CV_END_WHY_BYTES + 160]; /* "": nothing */
};

/* Whether the two parties have come to an end together. */
static bool has_common_end(enum cv_end end) {
  return end != CV_END_FROZEN && end != CV_END_REFUSED && end != CV_END_RECOVERED;
}

/* How many standings are of a result: before the first one, all are zeros; and those of a campaign without a common
 * end are of no moment that is known. */
static size_t result_of(const struct cv_export *export) {
  bool is_any = false;
  for (size_t i = 0; i < export->standings; i++) {
    const struct cv_standing *standing = &export->standing[i];
    is_any = is_any || standing->rank_class != 0 || standing->tokens != 0 || standing->radius != 0;
  }
  return is_any && has_common_end(export->progress.end) ? export->standings : 0;
}

/* What is not among the records of an export, so that nobody can say whether the third-party followed its policy. */
static struct left_out left_out(const struct cv_export *export) {
  const enum cv_end end = export->progress.end;
  struct left_out out = {.text = ""};
  if (!has_common_end(end)) {
    (void)snprintf(out.text, sizeof(out.text),
                   "the campaign is %s (%s), so the broker's records do not have all that was said", cv_end_text(end),
                   export->progress.why);
  } else if (export->plans == 0) {
    (void)snprintf(out.text, sizeof(out.text), "there is no plan");
  } else if (result_of(export) == 0 && end != CV_END_NONE) {
    (void)snprintf(out.text, sizeof(out.text), "the campaign ended (%s) without a result", cv_end_text(end));
  }
  return out;
}

static int status_of(const struct cv_replay_verdict *verdict, const struct left_out *out) {
  return !verdict->agrees ? 1 : out->text[0] != '\0' ? PARTIAL : 0;
}

static int tell_json(const struct cv_export *export, const struct cv_replay_verdict *verdict,
                     const struct left_out *out) {
  int status = status_of(verdict, out);
  return cv_launcher_print_json(
      &table,
      json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:b, s:s?, s:s?}", "campaign", (json_int_t) export->campaign, "name",
                export->spec.name, "policy", export->spec.policy.name, "releases", (json_int_t)verdict->releases,
                "plans", (json_int_t)verdict->plans, "standings", (json_int_t)verdict->standings, "agrees", status == 0,
                "difference", verdict->agrees ? NULL : verdict->first.text, "left_out",
                out->text[0] == '\0' ? NULL : out->text),
      status);
}

static int tell(const struct cv_export *export, const struct cv_replay_verdict *verdict, const struct left_out *out) {
  (void)printf("campaign %" PRIu64 ", \"%s\", policy %s: %" PRIu64 " releases, %" PRIu64 " plans, %" PRIu64
               " standings\n",
               export->campaign, cv_text_shown(export->spec.name).text, export->spec.policy.name, verdict->releases,
               verdict->plans, verdict->standings);
  if (!verdict->agrees) {
    (void)fflush(stdout);
    return cv_command_fail(&table, 1, "the third-party did not follow its policy: %s", verdict->first.text);
  }
  if (out->text[0] != '\0') {
    (void)fflush(stdout);
    return cv_command_fail(&table, PARTIAL, "only what is there could be compared, and fits: %s", out->text);
  }
  (void)printf(verdict->standings > 0 ? "every plan and the result agree\n" : "every plan agrees; no result yet\n");
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
                                            .standings = result_of(&export)};
  const struct left_out out = left_out(&export);
  err = cv_replay_records(&records, &verdict, &why);
  int status = err != CV_OK     ? cv_command_fail(&table, 1, "%s: %s", path, why.text)
               : settings->json ? tell_json(&export, &verdict, &out)
                                : tell(&export, &verdict, &out);
  cv_export_fini(&export);
  return status;
}

int cv_launcher_verify(int argc, char **argv) {
  const char *words[CV_WORDS_MAX] = {0};
  struct settings settings = {0};
  int status = cv_command_options(&table, argc, argv, 1, 1, words, &settings);
  return status >= 0 ? status : verify(&settings, words[0]);
}
