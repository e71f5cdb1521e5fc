/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-made datasets, and claims about them. Include after cmocka.h. */
#ifndef CV_TESTS_LAB_MADE_H
#define CV_TESTS_LAB_MADE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/experiment/read.h"
#include "lab/judge/claim.h"
#include "lab/judge/terms.h"

enum { SERIES = 4, POINTS = 3, METRICS = 2, REPLICATES = 16 };

/* Messages have line numbers: the claims begin on line 13. */
#define HEAD(x)                                                                                                   \
  "campaign: made\n"                                                                                              \
  "items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.6}]}\n"                                                 \
  "policy: {name: klucb-cf}\n"                                                                                    \
  "privacy: {mechanism: none, privatizer: {name: randomized-response, p00: [0.6, 0.9], p11: [0.6, 0.9]}}\n"       \
  "limits: {tokens: 400}\n"                                                                                       \
  "experiment:\n"                                                                                                 \
  "  x: " x                                                                                                       \
  "\n"                                                                                                            \
  "  series:\n"                                                                                                   \
  "    - {name: one}\n    - {name: two}\n    - {name: bound, formula: corrupt-lower-bound}\n    - {name: \"two, " \
  "b\"}\n"
#define BY_PARAMETER "{vary: limits.tokens, values: [100, 200, 400], label: T}"
#define BY_PULLS     "{pulls: [100, 200, 400]}"

struct made {
  struct cv_lab_experiment experiment;
  struct cv_lab_dataset dataset;
};

static enum cv_err parse(const char *head, const char *tail, const char *claims, struct cv_lab_experiment *ret,
                         struct cv_why *why) {
  char text[8000];
  const char *metrics = strstr(tail, "metrics:") == NULL ? "  metrics: [regret, pulls]\n" : "";
  (void)snprintf(text, sizeof(text), "%s%s%s%s%s", head, metrics, tail, claims[0] == '\0' ? "" : "  claims:\n", claims);
  return cv_lab_experiment_parse("made.yaml", text, strlen(text), NULL, ret, why);
}

/* `value` gives the number of a series, point and replicate, the same for both metrics. */
static void make(struct made *made, const char *head, const char *tail, const char *claims,
                 double (*value)(size_t series, size_t point, uint64_t replicate)) {
  struct cv_why why = {0};
  if (parse(head, tail, claims, &made->experiment, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(cv_lab_dataset_init(&made->experiment, REPLICATES, &made->dataset), CV_OK);
  size_t settings = cv_lab_settings_of(&made->experiment), points = POINTS / settings;
  for (uint64_t replicate = 0; replicate < REPLICATES; replicate++) {
    for (size_t setting = 0; setting < settings; setting++) {
      double piece[SERIES * POINTS * METRICS], *at = piece;
      for (size_t series = 0; series < SERIES; series++) {
        for (size_t point = 0; point < points; point++) {
          for (size_t metric = 0; metric < METRICS; metric++) {
            *at++ = series == 2 ? (double)NAN : value(series, setting + point, replicate);
          }
        }
      }
      cv_lab_dataset_put(&made->dataset, setting, replicate, piece);
    }
  }
}

static void drop(struct made *made) {
  cv_lab_dataset_fini(&made->dataset);
  cv_lab_experiment_fini(&made->experiment);
}

/* 100, 110, 120 of one, 2 less of two, each with a chance of its own of 8 more or less. */
static double unpaired(size_t series, size_t point, uint64_t replicate) {
  double chance = (replicate >> series) % 2 == 0 ? 8 : -8;
  return 100 + 10 * (double)point - (series == 0 ? 0 : 2) + chance;
}
static double alike(size_t series, size_t point, uint64_t replicate) {
  return 100 + 10 * (double)point;
}

struct judged {
  const char *claim;
  enum cv_lab_verdict verdict;
  const char *reason; /* a part of it */
};

static void judge_all(const char *head, const char *tail, double (*value)(size_t, size_t, uint64_t),
                      const struct judged *judged, size_t n) {
  for (size_t i = 0; i < n; i++) {
    struct made made;
    struct cv_lab_claim claim;
    char text[400];
    (void)snprintf(text, sizeof(text), "    - {says: so it is, metric: %s, %s}\n",
                   strstr(tail, "accuracy") == NULL ? "regret" : "accuracy", judged[i].claim);
    make(&made, head, tail, text, value);
    assert_int_equal(cv_lab_claims(&made.experiment), 1);
    cv_lab_claim_judge(&made.dataset, 0, &claim);
    assert_string_equal(claim.says, "so it is");
    if (claim.verdict != judged[i].verdict || strstr(claim.reason, judged[i].reason) == NULL) {
      fail_msg("%s: %s: %s", judged[i].claim, cv_lab_verdict_text(claim.verdict), claim.reason);
    }
    drop(&made);
  }
}

#endif
