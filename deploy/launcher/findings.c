/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/findings.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/base/text.h"
#include "deploy/launcher/json.h"

enum { FIELDS_MAX = 12 };

void cv_findings_fini(struct cv_findings *findings) {
  for (size_t i = 0; i < findings->count; i++) {
    free(findings->found[i].what);
    free(findings->found[i].advice);
  }
  free(findings->found);
  free(findings->campaign);
  *findings = (struct cv_findings){0};
}

/* Texts may come from another program, so control characters are replaced. */
static void add(struct cv_findings *findings, enum cv_finding level, const char *what, const char *advice) {
  struct cv_found *found = CV_ARRAY_PUSH(findings->found, findings->count, findings->cap);
  CV_REQUIRE(found != NULL);
  *found = (struct cv_found){.level = level, .what = strdup(what), .advice = strdup(advice)};
  CV_REQUIRE(found->what != NULL && found->advice != NULL);
  memcpy(found->party, findings->party, sizeof(found->party));
  cv_text_clean(found->what, strlen(found->what));
  cv_text_clean(found->advice, strlen(found->advice));
}

void cv_findings_add(struct cv_findings *findings, enum cv_finding level, const char *advice, const char *fmt, ...) {
  char what[2048];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(what, sizeof(what), fmt, args);
  va_end(args);
  add(findings, level, what, advice);
}

/* fact, campaign, broker, number, state, releases, their hash, plans, their hash. */
static void take_campaign(struct cv_findings *findings, char *const *field) {
  struct cv_found_campaign *campaign = CV_ARRAY_PUSH(findings->campaign, findings->campaigns, findings->campaigns_cap);
  CV_REQUIRE(campaign != NULL);
  *campaign = (struct cv_found_campaign){.number = strtoull(field[3], NULL, 10),
                                         .releases = strtoull(field[5], NULL, 10),
                                         .plans = strtoull(field[7], NULL, 10)};
  (void)snprintf(campaign->broker, sizeof(campaign->broker), "%s", field[2]);
  (void)snprintf(campaign->state, sizeof(campaign->state), "%s", field[4]);
  (void)snprintf(campaign->releases_hash, sizeof(campaign->releases_hash), "%s", field[6]);
  (void)snprintf(campaign->plans_hash, sizeof(campaign->plans_hash), "%s", field[8]);
}

void cv_findings_line(void *data, char *line) {
  struct cv_findings *findings = data;
  char *field[FIELDS_MAX];
  size_t n = 0;
  for (char *at = line; n < FIELDS_MAX && at != NULL; n++) {
    field[n] = at;
    at = strchr(at, '\t');
    if (at != NULL) {
      *at++ = '\0';
    }
  }
  /* A fact feeds the comparison of parties and is not shown; any other line with a known level is a finding. */
  if (n >= 9 && strcmp(field[0], "fact") == 0 && strcmp(field[1], "campaign") == 0) {
    take_campaign(findings, field);
  } else if (n >= 3 && strcmp(field[0], "fact") == 0 && strcmp(field[1], "live") == 0) {
    findings->is_live = true;
    (void)snprintf(findings->live, sizeof(findings->live), "%s", field[2]);
  } else if (n == 3 && strcmp(field[0], "fact") == 0 && strcmp(field[1], "gone") == 0) {
    findings->gone = strtoull(field[2], NULL, 10);
  } else if (n == 2 && strcmp(field[0], "fact") == 0 && strcmp(field[1], "read") == 0) {
    findings->is_read = true;
  }
  for (int level = 0; n == 3 && level < CV_FINDING_COUNT; level++) {
    if (strcmp(field[0], cv_finding_text((enum cv_finding)level)) == 0) {
      add(findings, (enum cv_finding)level, field[1], field[2]);
    }
  }
}

size_t cv_findings_bad(const struct cv_findings *findings) {
  size_t bad = 0;
  for (size_t i = 0; i < findings->count; i++) {
    bad += findings->found[i].level >= CV_FINDING_WARNING;
  }
  return bad;
}

static void print_json(const struct cv_findings *findings) {
  for (size_t i = 0; i < findings->count; i++) {
    const struct cv_found *found = &findings->found[i];
    json_t *line = json_pack("{s:s, s:s, s:s, s:s}", "party", found->party, "level", cv_finding_text(found->level),
                             "what", found->what, "advice", found->advice);
    cv_json_print(line, JSON_COMPACT);
  }
}

void cv_findings_print(const struct cv_findings *findings, bool json) {
  if (json) {
    print_json(findings);
    return;
  }
  const char *party = "";
  for (size_t i = 0; i < findings->count; i++) {
    const struct cv_found *found = &findings->found[i];
    if (strcmp(found->party, party) != 0) {
      party = found->party;
      (void)printf("%s\n", party);
    }
    (void)printf("  %-7s  %s\n", cv_finding_text(found->level), found->what);
    if (found->advice[0] != '\0') {
      (void)printf("           -> %s\n", found->advice);
    }
  }
}
