/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy's stored state: a state that loads is saved to as many bytes, and makes a step whose plan names known
 * arms, none of them without further tokens. */
#include "thirdparty/policy/policy.h"

#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { ARMS = 4 };

/* On a graph an arm may only be shown by others; at least one arm is played. */
static void check_wants(const struct cv_policy *policy, const struct cv_policy_step *step, uint32_t exhausted) {
  uint64_t tokens = 0;
  for (size_t i = 0; i < step->wants; i++) {
    CV_REQUIRE(step->want[i].arm < ARMS && !(exhausted >> step->want[i].arm & 1));
    CV_REQUIRE(cv_want_opponent_fits(&step->want[i], true, ARMS));
    CV_REQUIRE(step->want[i].tokens > 0 || policy->class->kind == CV_POLICY_GRAPH);
    tokens += step->want[i].tokens;
  }
  CV_REQUIRE(step->done || tokens > 0);
}

static void use(struct cv_policy *policy) {
  struct cv_policy_step step = {0};
  struct cv_standing standing;
  uint32_t exhausted = 0;
  struct cv_release release = {
      .number = 1, .plan = 1, .tokens = 1000, .noisy_sum = 700 << 20, .noise = {.groups = 1, .group = {{2, 1}}}};
  for (uint64_t plan = 2; plan < 5 && !step.done; plan++) {
    cv_policy_apply(policy, &release);
    CV_REQUIRE(cv_policy_step(policy, plan, &step) == CV_OK);
    check_wants(policy, &step, exhausted);
    release.tokens += 1000;
    exhausted |= cv_policy_exhaust(policy, (uint32_t)plan % ARMS) ? 1U << plan % ARMS : 0;
  }
  for (uint32_t i = 0; i < ARMS; i++) {
    cv_policy_standing(policy, i, &standing);
    CV_REQUIRE(standing.arm == i && cv_standing_is_plausible(&standing, ARMS));
  }
  cv_policy_step_fini(&step);
}

static bool fits(struct cv_spec *spec) {
  static const char *const mechanisms[] = {"none", "hybrid", "batch"}, *const privatizers[] = {"none", "laplace"};
  for (size_t i = 0; i < CV_COUNT(mechanisms) * CV_COUNT(privatizers); i++) {
    const char *privatizer = privatizers[i % CV_COUNT(privatizers)];
    (void)snprintf(spec->mechanism.name, CV_PARAM_TEXT, "%s", mechanisms[i / CV_COUNT(privatizers)]);
    (void)snprintf(spec->privatizer.name, CV_PARAM_TEXT, "%s", privatizer);
    spec->privatizer.params.count = 0;
    CV_REQUIRE(strcmp(privatizer, "none") == 0 ||
               cv_params_set_number(&spec->privatizer.params, "epsilon", 1) == CV_OK);
    if (cv_policy_fits(spec, NULL) == CV_OK) {
      return true;
    }
  }
  return false;
}

/* What is saved loads, and is saved again alike. */
static void try_again(const struct cv_spec *spec, const struct cv_buf *saved) {
  struct cv_policy *policy;
  CV_REQUIRE(cv_policy_new(spec, 1, &policy) == CV_OK);
  struct cv_reader in = cv_reader_over(saved->data, saved->len);
  CV_REQUIRE(cv_policy_load(policy, &in) == CV_OK);
  struct cv_buf again = {0};
  cv_policy_save(policy, &again);
  CV_REQUIRE(again.len == saved->len && memcmp(again.data, saved->data, saved->len) == 0);
  cv_buf_fini(&again);
  cv_policy_free(policy);
}

static void try_on(const struct cv_policy_class *class, const uint8_t *bytes, size_t n) {
  static uint64_t costs[ARMS] = {1000000, 2000000, 500000, 1000000}, workers[ARMS] = {1, 2, 3, 4};
  static struct cv_edge edges[] = {{0, 1}, {1, 2}};
  struct cv_spec spec = {.name = "fuzz",
                         .arms = ARMS,
                         .epsilon_micro = 250000,
                         .tokens_per_worker = 1,
                         .tokens = 1 << 14, /* few: arms are parked */
                         .thirdparty_trusted = true};
  if (class->kind == CV_POLICY_RECRUITMENT) {
    spec.cost_micro = costs;
    spec.worker = workers;
    spec.budget_micro = UINT64_C(1) << 40;
  } else if (class->kind == CV_POLICY_GRAPH) {
    spec.edges = CV_COUNT(edges);
    spec.edge = edges;
  }
  const struct cv_param *bad;
  struct cv_policy *policy;
  (void)snprintf(spec.policy.name, CV_PARAM_TEXT, "%s", class->name);
  for (size_t i = 0; i < class->rule_count; i++) {
    const struct cv_param_rule *rule = &class->rules[i];
    if (rule->choices == NULL && isnan(rule->fallback)) { /* a required parameter */
      CV_REQUIRE(cv_params_set_number(&spec.policy.params, rule->key, rule->whole ? 1000 : 0.1) == CV_OK);
    }
  }
  CV_REQUIRE(cv_policy_check(&spec.policy, &bad, NULL) == CV_OK);
  if (!fits(&spec)) {
    spec.edges = 0; /* policies that use no graph */
    spec.edge = NULL;
  }
  if (!fits(&spec)) {
    spec.pairs = true; /* policies that compare */
  }
  if (!fits(&spec)) {
    return; /* a policy that needs the true means */
  }
  CV_REQUIRE(cv_policy_new(&spec, 1, &policy) == CV_OK);
  struct cv_reader in = cv_reader_over(bytes, n);
  if (cv_policy_load(policy, &in) == CV_OK) {
    struct cv_buf out = {0};
    cv_policy_save(policy, &out);
    try_again(&spec, &out);
    cv_buf_fini(&out);
    use(policy);
  }
  cv_policy_free(policy);
}

/* The bytes may come from any source. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  for (size_t i = 0; cv_policy_at(i) != NULL; i++) {
    try_on(cv_policy_at(i), bytes, n);
  }
  return 0;
}
