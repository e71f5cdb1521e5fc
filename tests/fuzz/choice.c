/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign's choices: a policy, a mechanism or a privatizer with its own or other parameters. A choice that passes
 * its check passes it again once completed, with the same result, and then works. First byte: which; then the
 * parameters: each a byte for its key, a byte for its type, and its value.
 */
#include <math.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "tests/fuzz/fuzz.h"
#include "thirdparty/policy/policy.h"
#include "worker/privatizer/privatizer.h"

enum { ARMS = 5, EPSILON_MICRO = 250000 };

static const char *key_of(const struct cv_param_rule *rules, size_t n, uint8_t which) {
  return which < n ? rules[which].key : which == 0xff ? "" : which == 0xfe ? CV_RELEASE_TOKENS_KEY : "no_such_key";
}

static void read_params(struct cv_reader *in, const struct cv_param_rule *rules, size_t n, struct cv_params *params) {
  static const double numbers[] = {0, 1, 0.1, -1, 4294967295.0, 1e300, 2, 0.5};
  while (in->at < in->end && params->count < CV_PARAMS_MAX) {
    uint8_t which = cv_read_u8(in), type = cv_read_u8(in), value = cv_read_u8(in);
    const char *key = key_of(rules, n, which);
    char text[CV_PARAM_TEXT] = {(char)value};
    const char *const *choices = which < n ? rules[which].choices : NULL;
    if (choices != NULL && choices[0] != NULL && type < 0xc0) {
      (void)snprintf(text, sizeof(text), "%s", choices[value % 2 == 0 || choices[1] == NULL ? 0 : 1]);
    }
    double number = type < 0x40 ? numbers[value % CV_COUNT(numbers)] : type < 0x60 ? value : cv_read_f64(in);
    struct cv_param *param = &params->item[params->count++]; /* so that a key may occur twice */
    *param = (struct cv_param){.is_text = type >= 0x80, .number = number};
    memcpy(param->text, text, sizeof(text));
    (void)snprintf(param->key, sizeof(param->key), "%s", key);
  }
}

static void check_mechanism(struct cv_choice *choice) {
  struct cv_mechanism_law law, again;
  struct cv_mechanism *mechanism;
  struct cv_rng_seeded seeded;
  struct cv_why why = {.text = ""};
  if (cv_mechanism_law_init(choice, EPSILON_MICRO, 50, &law, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  struct cv_choice completed = *choice;
  CV_REQUIRE(cv_mechanism_law_init(choice, EPSILON_MICRO, 9, &again, &why) == CV_OK);
  CV_REQUIRE(memcmp(&completed, choice, sizeof(completed)) == 0);
  CV_REQUIRE(law.horizon == again.horizon && law.arity == again.arity && law.levels == again.levels &&
             law.nodes == again.nodes && law.horizon < CV_RELEASES_END);
  if (law.nodes > 100000) {
    return;
  }
  cv_rng_seeded_init(&seeded, 1, CV_RNG_NOISE, 0, 0);
  CV_REQUIRE(cv_mechanism_new(&law, &mechanism) == CV_OK);
  for (int i = 0; i < 9 && !cv_mechanism_is_spent(mechanism); i++) {
    struct cv_noise noise;
    cv_mechanism_draw(mechanism, &seeded.rng);
    (void)cv_mechanism_release(mechanism, INT64_C(1) << 40);
    cv_mechanism_noise(&law, mechanism->releases, &noise);
    CV_REQUIRE(noise.groups <= CV_NOISE_GROUPS_MAX && (noise.groups == 0) == !cv_mechanism_has_noise(law.class));
    CV_REQUIRE(!cv_mechanism_is_private(law.class) ||
               cv_mechanism_spent_micro(&law, mechanism->releases) <= EPSILON_MICRO);
  }
  cv_mechanism_free(mechanism);
}

static const char *const rule_words[] = {"optimal", "printed", NULL};
static const struct cv_param_rule privatizer_rules[] = {
    {.key = "epsilon"}, {.key = "delta"}, {.key = "rule", .choices = rule_words},
    {.key = "p00"},     {.key = "p11"},   {.key = "p00.1"},
    {.key = "p11.1"},   {.key = "p00.5"},
};

static void check_privatizer(const struct cv_choice *choice) {
  struct cv_privatizer *privatizer;
  struct cv_rng_seeded seeded;
  struct cv_why why = {.text = ""};
  if (cv_privatizer_new(choice, ARMS, &privatizer, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  cv_rng_seeded_init(&seeded, 1, CV_RNG_PRIVATIZER, 0, 0);
  for (int i = 0; i < 64; i++) {
    int64_t value = cv_privatizer_apply(privatizer, (uint32_t)i % ARMS, CV_GRID * (i % 5) / 4, &seeded.rng);
    CV_REQUIRE(cv_local_sends(&privatizer->law, value));
  }
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    struct cv_feedback feedback = cv_local_feedback(&privatizer->law, arm);
    CV_REQUIRE(isfinite(feedback.offset) && isfinite(feedback.slope) && feedback.slope != 0);
    CV_REQUIRE(isfinite(feedback.scale) && feedback.scale >= 0);
  }
  cv_privatizer_free(privatizer);
}

static void check_policy(struct cv_choice *choice) {
  struct cv_spec spec = {.name = "fuzz",
                         .arms = ARMS,
                         .epsilon_micro = EPSILON_MICRO,
                         .tokens_per_worker = 1,
                         .tokens = 1000000,
                         .mechanism = {.name = "hybrid"},
                         .privatizer = {.name = "none"}};
  const struct cv_param *bad;
  struct cv_policy *policy;
  struct cv_policy_step step = {0};
  struct cv_why why = {.text = ""};
  if (cv_policy_check(choice, &bad, &why) != CV_OK) {
    fuzz_line(why.text);
    return;
  }
  spec.policy = *choice;
  CV_REQUIRE(cv_policy_check(choice, &bad, &why) == CV_OK && memcmp(choice, &spec.policy, sizeof(*choice)) == 0);
  if (cv_policy_new(&spec, 1, &policy) == CV_OK) { /* it may not suit this campaign */
    CV_REQUIRE(cv_policy_step(policy, 1, &step) == CV_OK && (step.done || step.wants > 0));
    for (size_t i = 0; i < step.wants; i++) {
      CV_REQUIRE(step.want[i].arm < ARMS && step.want[i].tokens > 0);
    }
    cv_policy_step_fini(&step);
    cv_policy_free(policy);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_reader in = cv_reader_over(bytes, n);
  struct cv_choice choice = {.name = ""};
  size_t which = cv_read_u8(&in);
  const struct cv_mechanism_class *mechanism = cv_mechanism_at(which / 3);
  const struct cv_privatizer_class *privatizer = cv_privatizer_at(which / 3);
  const struct cv_policy_class *policy = cv_policy_at(which / 3);
  if (which % 3 == 0 && mechanism != NULL) {
    (void)snprintf(choice.name, sizeof(choice.name), "%s", mechanism->traits->name);
    read_params(&in, mechanism->rules, mechanism->rule_count, &choice.params);
    check_mechanism(&choice);
  } else if (which % 3 == 1 && privatizer != NULL) {
    (void)snprintf(choice.name, sizeof(choice.name), "%s", cv_local_name(privatizer->kind));
    read_params(&in, privatizer_rules, CV_COUNT(privatizer_rules), &choice.params);
    check_privatizer(&choice);
  } else if (which % 3 == 2 && policy != NULL) {
    (void)snprintf(choice.name, sizeof(choice.name), "%s", policy->name);
    read_params(&in, policy->rules, policy->rule_count, &choice.params);
    check_policy(&choice);
  }
  return 0;
}
