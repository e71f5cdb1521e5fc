/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/policy/elimination.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "thirdparty/policy/step.h"

enum { STATE_VERSION = 1 };
/* Limit of phases and plays in a stored state: far above any campaign's, and exact as a double. */
#define COUNT_END (UINT64_C(1) << 48)

static struct cv_elimination *of(struct cv_policy *policy) {
  return (struct cv_elimination *)policy;
}

static double slope_of(const struct cv_local *local, uint32_t arms) {
  double slope = 1;
  for (uint32_t i = 0; i < arms; i++) {
    slope = fmin(slope, fabs(cv_local_feedback(local, i).slope));
  }
  return slope;
}

enum cv_err cv_elimination_new(const struct cv_spec *spec, uint64_t seed, size_t size,
                               const struct cv_policy_class *class, const struct cv_elimination_rules *rules,
                               struct cv_elimination **ret) {
  struct cv_local local;
  if (cv_local_init(&spec->privatizer, spec->arms, &local, NULL) != CV_OK) {
    return CV_ERR_INVALID;
  }
  struct cv_elimination *self = calloc(1, size);
  struct cv_runner *arm = calloc(spec->arms, sizeof(*arm));
  if (self == NULL || arm == NULL || cv_neighbours_init(spec, &self->graph) != CV_OK) {
    free(self);
    free(arm);
    return CV_ERR_NOMEM;
  }
  double delta = cv_params_number(&spec->policy.params, "delta");
  self->policy.class = class;
  self->rules = rules;
  self->delta = delta > 0 ? fmax(delta, 1e-100) : 1 / fmax((double)spec->tokens, 2);
  self->epsilon = (double)spec->epsilon_micro / (double)CV_MICRO;
  self->slope = slope_of(&local, spec->arms);
  self->floor = cv_spec_release_tokens(spec);
  self->brokers = 1;
  self->local = local;
  self->seed = seed;
  self->arms = self->active = spec->arms;
  self->arm = arm;
  for (uint32_t i = 0; i < spec->arms; i++) {
    arm[i].active = true;
  }
  *ret = self;
  return CV_OK;
}

void cv_elimination_expect(struct cv_policy *policy, uint32_t brokers) {
  of(policy)->brokers = brokers;
}

void cv_elimination_destroy(struct cv_policy *policy) {
  struct cv_elimination *self = of(policy);
  cv_neighbours_fini(&self->graph);
  free(self->arm);
  free(self);
}

void cv_elimination_apply(struct cv_policy *policy, const struct cv_release *release) {
  struct cv_elimination *self = of(policy);
  CV_REQUIRE(release->arm < self->arms && release->tokens > 0);
  struct cv_runner *arm = &self->arm[release->arm];
  struct cv_feedback feedback = cv_local_feedback(&self->local, release->arm);
  double mean = (double)release->noisy_sum / (double)CV_GRID / (double)release->tokens;
  arm->tokens = release->tokens;
  arm->mean = cv_feedback_score(feedback, mean);
  if (self->rules->blur != NULL) {
    arm->mean += self->rules->blur(self, release) / feedback.slope;
  }
  arm->tail = cv_tail_of(&release->noise);
  arm->radius = self->rules->radius(self, arm);
  arm->fresh = arm->active;
  arm->plays += arm->asked;
  arm->asked = 0;
}

/* True if every active arm has a release of the last plan. */
static bool is_closed(const struct cv_elimination *self) {
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->arm[i].active && !self->arm[i].fresh) {
      return false;
    }
  }
  return self->phase > 0;
}

static void decide(struct cv_elimination *self, uint32_t i, enum cv_decision_kind kind, double reference,
                   struct cv_policy_step *step) {
  const struct cv_runner *arm = &self->arm[i];
  step->decision[step->decisions++] = (struct cv_decision){.kind = kind,
                                                           .arm = i,
                                                           .rank_class = 1,
                                                           .tokens = arm->tokens,
                                                           .mean = arm->mean,
                                                           .radius = arm->radius,
                                                           .reference = reference};
}

/* Drops every arm whose interval lies below the best lower bound; settles the last arm left. */
static void judge(struct cv_elimination *self, struct cv_policy_step *step) {
  double low = -(double)INFINITY;
  uint32_t left = 0, last = 0, before = self->active;
  for (uint32_t i = 0; i < self->arms; i++) {
    struct cv_runner *arm = &self->arm[i];
    if (arm->active) {
      /* As at the time of judgement: a radius may depend on phase and active arms. */
      arm->radius = self->rules->stays ? arm->radius : self->rules->radius(self, arm);
      low = fmax(low, arm->mean - arm->radius);
    }
  }
  for (uint32_t i = 0; i < self->arms; i++) {
    struct cv_runner *arm = &self->arm[i];
    if (arm->active && arm->mean + arm->radius < low) {
      decide(self, i, CV_DECISION_REMOVE, low, step);
      arm->active = arm->fresh = false;
    } else if (arm->active) {
      left++;
      last = i;
    }
  }
  self->active = left;
  if (left == 1 && before > 1) {
    decide(self, last, CV_DECISION_SETTLE, low, step);
  }
}

static void plan(struct cv_elimination *self, uint64_t number, struct cv_policy_step *step) {
  for (uint32_t i = 0; i < self->arms; i++) {
    self->arm[i].asked = 0;
    self->arm[i].fresh = false;
  }
  self->rules->ask(self, number);
  for (uint32_t i = 0; i < self->arms; i++) {
    if (self->arm[i].asked > 0 && self->arm[i].asked < self->floor) {
      self->arm[i].asked = self->floor;
    }
    if (self->arm[i].active) {
      step->want[step->wants++] = (struct cv_want){.arm = i, .tokens = self->arm[i].asked};
    }
  }
}

enum cv_err cv_elimination_step(struct cv_policy *policy, uint64_t number, struct cv_policy_step *step) {
  struct cv_elimination *self = of(policy);
  CV_TRY(cv_policy_step_reserve(step, (size_t)self->arms + 1, self->arms));
  /* A phase may take several plans; judge only after its last one. */
  if (is_closed(self) && self->left == 0) {
    judge(self, step);
    if (self->active == 1) {
      step->done = true;
      return CV_OK;
    }
    self->phase++;
  } else if (self->phase == 0) {
    self->phase = 1;
  }
  plan(self, number, step);
  return CV_OK;
}

void cv_elimination_standing(const struct cv_policy *policy, uint32_t i, struct cv_standing *ret) {
  const struct cv_elimination *self = (const struct cv_elimination *)policy;
  CV_REQUIRE(i < self->arms);
  const struct cv_runner *arm = &self->arm[i];
  *ret = (struct cv_standing){.arm = i, .rank_class = arm->active ? 1 : 2, .tokens = arm->plays};
  /* Without a release: the interval [0,1]. */
  ret->mean = arm->tokens > 0 ? arm->mean : 0.5;
  ret->radius = arm->tokens > 0 ? arm->radius : 0.5;
}

void cv_elimination_save(const struct cv_policy *policy, struct cv_buf *out) {
  const struct cv_elimination *self = (const struct cv_elimination *)policy;
  cv_buf_put_u8(out, STATE_VERSION);
  cv_buf_put_u64(out, self->phase);
  cv_buf_put_u64(out, self->left);
  cv_buf_put_u32(out, self->arms);
  for (uint32_t i = 0; i < self->arms; i++) {
    const struct cv_runner *arm = &self->arm[i];
    cv_buf_put_u8(out, (uint8_t)(arm->active | arm->fresh << 1));
    cv_buf_put_u32(out, arm->asked);
    cv_buf_put_u64(out, arm->plays);
    cv_buf_put_u64(out, arm->tokens);
    cv_buf_put_f64(out, arm->mean);
    cv_buf_put_f64(out, arm->radius);
  }
}

static bool is_plausible(const struct cv_elimination *self, const struct cv_runner *arm) {
  return isfinite(arm->mean) && isfinite(arm->radius) && arm->radius >= 0 && arm->plays < COUNT_END &&
         arm->tokens < COUNT_END && (arm->tokens > 0 || !arm->fresh) && (self->phase > 0 || arm->tokens == 0);
}

enum cv_err cv_elimination_load(struct cv_policy *policy, struct cv_reader *in) {
  struct cv_elimination *self = of(policy);
  if (cv_read_u8(in) != STATE_VERSION) {
    return CV_ERR_VERSION;
  }
  self->phase = cv_read_u64(in);
  self->left = cv_read_u64(in);
  if (cv_read_u32(in) != self->arms || self->phase >= COUNT_END || self->left >= COUNT_END) {
    return CV_ERR_DAMAGED;
  }
  self->active = 0;
  for (uint32_t i = 0; i < self->arms; i++) {
    struct cv_runner *arm = &self->arm[i];
    uint8_t flags = cv_read_u8(in);
    arm->active = (flags & 1) != 0;
    arm->fresh = (flags & 2) != 0;
    arm->asked = cv_read_u32(in);
    arm->plays = cv_read_u64(in);
    arm->tokens = cv_read_u64(in);
    arm->mean = cv_read_f64(in);
    arm->radius = cv_read_f64(in);
    if (flags > 3 || flags == 2 || !is_plausible(self, arm)) {
      return CV_ERR_DAMAGED;
    }
    self->active += arm->active;
  }
  return cv_reader_done(in) && self->active > 0 ? CV_OK : CV_ERR_DAMAGED;
}

enum cv_err cv_elimination_needs(const struct cv_spec *spec, cv_traits_fn *has, const char *because,
                                 struct cv_why *why) {
  if (!has(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s %s; expected mechanism %s, not %s", spec->policy.name, because,
                   cv_traits_list(has).text, spec->mechanism.name);
  }
  if (!cv_local_is_bounded(cv_local_find(spec->privatizer.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs tokens between 0 and 1; expected another privatizer than %s",
                   spec->policy.name, spec->privatizer.name);
  }
  return CV_OK;
}

enum cv_err cv_elimination_needs_no_graph(const struct cv_spec *spec, struct cv_why *why) {
  return spec->edges == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "policy %s uses no feedback graph; expected no edges", spec->policy.name);
}
