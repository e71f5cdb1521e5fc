/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds on regret, compared with numbers by hand. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>

#include "lab/experiment/read.h"
#include "lab/run/formula.h"
#include "tests/support/near.h"

#define GAME(adversary, policy)                                                                  \
  "campaign: made\nitems: {adversary: {name: switching, " adversary "}}\npolicy: {name: " policy \
  "}\n"                                                                                          \
  "privacy: {mechanism: none, third_party: trusted}\nlimits: {tokens: 262144}\n"                 \
  "experiment:\n  series: [{name: bound, formula: exp3-tau-bound}]\n  metrics: [regret]\n"
#define GRAPH(count, graph, parameters)                                                          \
  "campaign: made\nitems: {ladder: {count: " count ", mean: 0.9, distance: 0.1}}\ngraph: " graph \
  "\npolicy: {name: gap" parameters                                                              \
  "}\nprivacy: {mechanism: batch, epsilon: 0.5}\n"                                               \
  "limits: {tokens: 100000}\nexperiment:\n  series: [{name: bound, formula: gap-bound}]\n  metrics: [regret]\n"

/* The same with the bound of one run. */
#define RUN_GRAPH(count, graph, parameters)                                                      \
  "campaign: made\nitems: {ladder: {count: " count ", mean: 0.9, distance: 0.1}}\ngraph: " graph \
  "\npolicy: {name: gap" parameters                                                              \
  "}\nprivacy: {mechanism: batch, epsilon: 0.5}\nlimits: {tokens: 100000}\n"                     \
  "experiment:\n  series: [{name: bound, formula: gap-bound-of-run}]\n  metrics: [regret]\n"

#define TREE "{edges: [[1, 2], [1, 3], [1, 4], [4, 5], [5, 6], [6, 7]]}"

static void open_experiment(const char *text, struct cv_lab_experiment *ret) {
  struct cv_why why;
  if (cv_lab_experiment_parse("made.yaml", text, strlen(text), NULL, ret, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
}

static void bound(const char *text, double expected) {
  struct cv_lab_experiment experiment;
  struct cv_why why;
  double found;
  open_experiment(text, &experiment);
  if (cv_lab_formulas_check(&experiment, &why) != CV_OK) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(cv_lab_formula_value(&experiment, 0, 0, 0, &found), CV_OK);
  assert_near(found, expected, 0.01);
  cv_lab_experiment_fini(&experiment);
}

static void refused(const char *text, const char *expected) {
  struct cv_lab_experiment experiment;
  struct cv_why why;
  open_experiment(text, &experiment);
  assert_int_equal(cv_lab_formulas_check(&experiment, &why), CV_ERR_INVALID);
  if (strstr(why.text, expected) == NULL) {
    fail_msg("\"%s\" does not say \"%s\"", why.text, expected);
  }
  cv_lab_experiment_fini(&experiment);
}

static void exp3_tau_pays_for_what_the_adversary_remembers(void **state) {
  bound(GAME("memory: 0", "exp3-tau"), 13904.4401 + 19);
  bound(GAME("count: 4", "exp3-tau"), 13904.4401 + 13797.05263 + 19);
  bound(GAME("memory: 4", "exp3-tau"), 13904.4401 + 4 * 13797.05263 + 19);
  bound(GAME("memory: 4", "exp3-tau, tau: 76"), 2 * 13904.4401 + 13797.05263 + 76);
  refused(GAME("memory: 19", "exp3-tau"), "a memory of 19 rounds; expected less than tau, 19");
  refused(GAME("memory: 0", "exp3"), "expected both");
}

/* D = .1: ceil(log2 10) = 4; (17600 + 640) a ln(8 K 16/delta) + T delta. */
static void gap_pays_for_the_independent_sets(void **state) {
  static const char ring[] = GRAPH("5", "{edges: [[1, 2], [2, 3], [3, 4], [4, 5], [1, 5]]}", "");
  bound(ring, 18240 * 2 * 17.9743936 + 1);
  bound(GRAPH("5", "{p: 0}", ""), 18240 * 5 * 17.9743936 + 1);
  bound(GRAPH("5", "{p: 1}", ""), 18240 * 17.9743936 + 1);
  bound(GRAPH("5", "{p: 1}", ", delta: 0.1"), 18240 * 8.7640533 + 10000);
  bound(RUN_GRAPH("5", "{p: 1}", ", delta: 0.1"), 18240 * 8.7640533);
  bound(RUN_GRAPH("5", "{p: 1}", ""), 18240 * 17.9743936);

  bound(GRAPH("7", TREE, ", delta: 0.1"), 18240 * 4 * 9.1005255 + 10000); /* 2, 3, 5, 7 */
  refused(GRAPH("5", "{p: 0.5}", ""), "a graph.seed");
  refused(GRAPH("41", "{p: 0}", ""), "40 items at most");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(exp3_tau_pays_for_what_the_adversary_remembers),
      cmocka_unit_test(gap_pays_for_the_independent_sets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
