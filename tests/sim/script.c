/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two policies of the simulator, beside those of the product: `script` plays on a feedback graph, `spender` hires.
 * Their plans are a function of seed and plan number, small, and of every shape that a plan may have, whatever the
 * mechanism: arms that are named and not played, arms that are left out, one arm, all arms. Some plans ask for more
 * tokens or money than are left, or for more than any plan may ask for.
 *
 * Parameters: plans, their number; most, the largest number of plays of an arm in one plan; greed, the percentage of
 * plans that ask for far too much.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/neighbours.h"
#include "common/base/rng.h"
#include "thirdparty/policy/step.h"

static const struct cv_param_rule rules[] = {
    {.key = "plans", .low = 1, .high = 1000, .whole = true, .fallback = 10},
    {.key = "most", .low = 1, .high = 1000, .whole = true, .fallback = 5},
    {.key = "greed", .low = 0, .high = 100, .whole = true, .fallback = 0},
};

struct actor {
  uint64_t plays, tokens;
  uint32_t asked;
  double mean;
};

struct script {
  struct cv_policy policy;
  struct cv_neighbours graph;
  bool hires;
  uint64_t seed, plans, most, greed;
  uint32_t arms;
  struct actor *arm;
};

static const struct cv_policy_class script, spender;

static void destroy(struct cv_policy *policy) {
  struct script *self = (struct script *)policy;
  cv_neighbours_fini(&self->graph);
  free(self->arm);
  free(self);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct script *self = calloc(1, sizeof(*self));
  if (self == NULL || cv_neighbours_init(spec, &self->graph) != CV_OK) {
    free(self);
    return CV_ERR_NOMEM;
  }
  self->hires = spec->cost_micro != NULL;
  self->policy.class = self->hires ? &spender : &script;
  self->seed = seed;
  self->plans = (uint64_t)cv_params_number(&spec->policy.params, "plans");
  self->most = (uint64_t)cv_params_number(&spec->policy.params, "most");
  self->greed = (uint64_t)cv_params_number(&spec->policy.params, "greed");
  self->arms = spec->arms;
  self->arm = calloc(spec->arms, sizeof(*self->arm));
  if (self->arm == NULL) {
    destroy(&self->policy);
    return CV_ERR_NOMEM;
  }
  *ret = &self->policy;
  return CV_OK;
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  struct actor *arm = &((struct script *)policy)->arm[release->arm];
  arm->plays += arm->asked;
  arm->asked = 0;
  arm->tokens = release->tokens;
  arm->mean = (double)release->noisy_sum / (double)CV_GRID / (double)release->tokens;
}

/* Some arms, at least one, in ascending order. */
static void name_arms(const struct script *self, struct cv_rng *rng, struct cv_policy_step *step) {
  uint32_t sure = (uint32_t)cv_rng_below(rng, self->arms);
  for (uint32_t i = 0; i < self->arms; i++) {
    if (cv_rng_below(rng, 3) > 0 || i == sure) {
      uint64_t plays = self->hires ? 1 + cv_rng_below(rng, self->most) : cv_rng_below(rng, self->most + 1);
      plays = !self->hires && cv_rng_below(rng, 3) == 0 ? 0 : plays;
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = (uint32_t)plays};
    }
  }
}

/* Every arm that the plan names is shown. */
static void show_all(const struct script *self, struct cv_policy_step *step) {
  for (size_t i = 0; i < step->wants; i++) {
    struct cv_want *want = &step->want[i];
    bool shown = want->tokens > 0;
    for (size_t j = 0; j < step->wants; j++) {
      uint32_t other = step->want[j].arm;
      for (uint32_t at = self->graph.first[other]; at < self->graph.first[other + 1]; at++) {
        shown = shown || (self->graph.arm[at] == want->arm && step->want[j].tokens > 0);
      }
    }
    want->tokens = shown ? want->tokens : 1;
  }
}

static enum cv_err next(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  static const uint32_t too_many[] = {200, 2000, 1 << 24, (1 << 24) + 1, UINT32_MAX};
  struct script *self = (struct script *)policy;
  struct cv_rng_seeded seeded;
  CV_TRY(cv_policy_step_reserve(step, 1, self->arms));
  const struct actor *judged = &self->arm[number % self->arms];
  if (judged->tokens > 0) {
    step->decision[step->decisions++] = (struct cv_decision){.kind = CV_DECISION_SETTLE,
                                                             .arm = (uint32_t)(number % self->arms),
                                                             .rank_class = 1,
                                                             .tokens = judged->tokens,
                                                             .mean = judged->mean};
  }
  step->done = number > self->plans;
  if (step->done) {
    return CV_OK;
  }
  cv_rng_seeded_init(&seeded, self->seed, CV_RNG_POLICY, number, 0);
  name_arms(self, &seeded.rng, step);
  show_all(self, step);
  if (cv_rng_below(&seeded.rng, 100) < self->greed) {
    step->want[cv_rng_below(&seeded.rng, step->wants)].tokens = too_many[cv_rng_below(&seeded.rng, CV_COUNT(too_many))];
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].asked = 0;
  }
  for (size_t i = 0; i < step->wants; i++) {
    self->arm[step->want[i].arm].asked = step->want[i].tokens;
  }
  return CV_OK;
}

static void standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret) {
  const struct actor *actor = &((const struct script *)policy)->arm[arm];
  bool known = actor->tokens > 0;
  *ret = (struct cv_standing){
      .arm = arm, .rank_class = known, .tokens = actor->plays, .mean = known ? actor->mean : 0.5, .radius = 0.5};
}

static void save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct script *self = (const struct script *)policy;
  for (uint32_t i = 0; i < self->arms; i++) {
    cv_buf_put_u64(out, self->arm[i].plays);
    cv_buf_put_u64(out, self->arm[i].tokens);
    cv_buf_put_u32(out, self->arm[i].asked);
    cv_buf_put_f64(out, self->arm[i].mean);
  }
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct script *self = (struct script *)policy;
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].plays = cv_read_u64(in);
    self->arm[i].tokens = cv_read_u64(in);
    self->arm[i].asked = cv_read_u32(in);
    self->arm[i].mean = cv_read_f64(in);
  }
  return cv_reader_done(in) ? CV_OK : CV_ERR_DAMAGED;
}

/* They heed no smallest release: the broker has to. */
#define CLASS(its_name, its_kind)                                                                      \
  {                                                                                                    \
    .name = (its_name), .kind = (its_kind), .reads_noise = true, .has_floor = true, .rules = rules,    \
    .rule_count = CV_COUNT(rules), .create = create, .destroy = destroy, .apply = apply, .step = next, \
    .standing = standing, .save = save, .load = load                                                   \
  }
static const struct cv_policy_class script = CLASS("script", CV_POLICY_GRAPH);
static const struct cv_policy_class spender = CLASS("spender", CV_POLICY_RECRUITMENT);

const struct cv_policy_class *__real_cv_policy_find(const char *name);
const struct cv_policy_class *__wrap_cv_policy_find(const char *name);

/* Replaces the lookup in the product's table (the linker's --wrap). */
const struct cv_policy_class *__wrap_cv_policy_find(const char *name) {
  return strcmp(name, script.name) == 0    ? &script
         : strcmp(name, spender.name) == 0 ? &spender
                                           : __real_cv_policy_find(name);
}
