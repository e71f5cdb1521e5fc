/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DPU-KL: recruitment by an index of each arm's mean. A plan is one segment of one arm, so an arm has few releases and
 * few noises: the first segment has ceil(6/epsilon) pulls (one if releases are exact), each further segment as many as
 * the arm has so far. The next segment is that of the arm with the highest index times n, the number of its pulls that
 * the rest of the campaign can have: what the arm alone would earn. Ties go to the first of by_cost.
 *
 * Parameter `index`, with r the noisy sum of z pulls of an arm, and d the divergence cv_kl_private() of Azize et al.
 * ("Optimal Regret of Bandits under Differential Privacy", 2025), plain KL for exact releases:
 *   quantile  of m, weighted by exp(-z d(r/z, m)) on 64 cells of [0, 1]: the level is 1 - min(1/2, 100/n), and n is the
 *             smaller of money left over cost and tokens left. The default
 *   kl        max{m : z d(r/z, m) <= ln t}, t the pulls of all arms; n is the money left over cost
 * An arm without pulls has the quantile of the uniform law, or index 1.
 *
 * Both indices are heuristics without a bound on regret: the weights stand for a likelihood, with one noise where there
 * are as many as segments. That noise has the variance of a release's noise over the arm's releases: d's epsilon is the
 * campaign's with one broker, and divided by sqrt 2 with two, which also the first segment expects. The constants 6 and
 * 100 were chosen by simulation. Privacy is the mechanism's alone.
 *
 * Behind a privatizer r/z is compared with its mean token at m. No index exceeds 1, so a step visits the arms by cost
 * only until n falls below the best value: O(N), and O(64) for each release.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/mechanisms.h"
#include "thirdparty/policy/classes.h"
#include "thirdparty/policy/kl.h"
#include "thirdparty/policy/recruits.h"

enum { CELLS = 64, HALVINGS = 40 };
static const double FIRST = 6;    /* pulls of a first segment times epsilon */
static const double UNSURE = 100; /* pulls left times the probability above the quantile */

static const char *const index_words[] = {"quantile", "kl", NULL};
static const struct cv_param_rule rules[] = {
    {.key = "index",
     .choices = index_words,
     .fallback_text = "quantile",
     .help = "quantile: by a quantile of each mean, weighted by its evidence; kl: by the KL upper bound at ln t"},
};

struct dpu_kl {
  struct cv_recruits recruits;
  double epsilon; /* of one noise with the variance of a first release's; infinite if releases are exact */
  uint64_t first; /* pulls of a first segment */
  bool by_quantile;
  double (*below)[CELLS]; /* of each arm with pulls: the share of the weights up to the end of each cell */
};

static struct dpu_kl *of(struct cv_policy *policy) {
  return (struct dpu_kl *)policy;
}

/* True for releases of all tokens so far with one noise a release, so that few releases have little noise. */
static bool is_segmented(const struct cv_traits *traits) {
  return traits->sums == CV_SUMS_ALL && traits->noise == CV_NOISE_LINEAR && traits->private == CV_PRIVATE_ALWAYS;
}

static bool suits(const struct cv_traits *traits) {
  return is_segmented(traits) || cv_traits_exact_sums(traits);
}

static enum cv_err fits(const struct cv_spec *spec, struct cv_why *why) {
  if (!suits(cv_traits_of(spec->mechanism.name))) {
    return cv_fail(why, CV_ERR_INVALID, "policy %s needs sums with one noise per release; expected %s, not %s",
                   spec->policy.name, cv_traits_list(suits).text, spec->mechanism.name);
  }
  return cv_recruits_fits_tokens(spec, why);
}

static void expect(struct cv_policy *policy, uint32_t brokers) {
  struct dpu_kl *self = of(policy);
  cv_recruits_expect(policy, brokers);
  double delta = cv_recruits_delta(&self->recruits, false) / sqrt(brokers);
  self->epsilon = delta == 0 ? (double)INFINITY : delta;
  self->first = (uint64_t)fmax(1, ceil(FIRST / self->epsilon));
}

static void destroy(struct cv_policy *policy) {
  free(of(policy)->below);
  cv_recruits_destroy(policy);
}

static enum cv_err create(const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret) {
  struct dpu_kl *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    return CV_ERR_NOMEM;
  }
  enum cv_err err = cv_recruits_init(&self->recruits, &cv_policy_dpu_kl, spec, seed);
  if (err != CV_OK) {
    free(self);
    return err;
  }
  self->below = calloc(spec->arms, sizeof(*self->below));
  if (self->below == NULL) {
    destroy(&self->recruits.policy);
    return CV_ERR_NOMEM;
  }
  expect(&self->recruits.policy, 1);
  self->by_quantile = strcmp(cv_params_text(&spec->policy.params, "index"), "quantile") == 0;
  *ret = &self->recruits.policy;
  return CV_OK;
}

/* Of one noise with the variance of the noise that a segment of the arm has had, on average. */
static double epsilon_of(const struct dpu_kl *self, const struct cv_recruit *arm) {
  if (isinf(self->epsilon) || arm->tail.count == 0) {
    return self->epsilon;
  }
  return cv_recruits_delta(&self->recruits, false) / sqrt(arm->tail.squares / (double)arm->releases);
}

/* z d(r/z, mean token at `mean`), of an arm with pulls. */
static double divergence(const struct dpu_kl *self, uint32_t i, double mean) {
  const struct cv_recruit *arm = &self->recruits.arm[i];
  struct cv_feedback feedback = cv_local_feedback(&self->recruits.local, i);
  double z = (double)arm->pulls, found = (double)arm->sum / (double)CV_GRID / z;
  if (isinf(self->epsilon)) {
    found = fmin(1, fmax(0, found)); /* only a broker that lies reports exact sums outside */
  }
  return z * cv_kl_private(found, fmin(1, fmax(0, feedback.offset + feedback.slope * mean)), epsilon_of(self, arm));
}

static void weigh(struct dpu_kl *self, uint32_t i) {
  double *below = self->below[i], least = (double)INFINITY, sum = 0;
  for (int j = 0; j < CELLS; j++) {
    below[j] = divergence(self, i, (j + 0.5) / CELLS);
    least = fmin(least, below[j]);
  }
  for (int j = 0; j < CELLS; j++) {
    sum += exp(least - below[j]);
    below[j] = sum;
  }
  for (int j = 0; j < CELLS; j++) {
    below[j] /= sum;
  }
}

/* The quantile, linear within a cell; `level` in (0, 1]. */
static double quantile(const struct dpu_kl *self, uint32_t i, double level) {
  const double *below = self->below[i];
  if (self->recruits.arm[i].pulls == 0) {
    return level;
  }
  int j = 0;
  while (below[j] < level) {
    j++;
  }
  double before = j == 0 ? 0 : below[j - 1];
  return (j + (level - before) / (below[j] - before)) / CELLS;
}

/* The bound by ln t, by bisection: the divergence is convex in the mean, and least at the estimate. */
static double bound(const struct dpu_kl *self, uint32_t i) {
  const struct cv_recruit *arm = &self->recruits.arm[i];
  double most = log((double)self->recruits.pulls), low = fmin(1, fmax(0, arm->mean)), high = 1;
  if (arm->pulls == 0 || divergence(self, i, 1) <= most) {
    return 1;
  }
  for (int j = 0; j < HALVINGS; j++) {
    double middle = (low + high) / 2;
    if (divergence(self, i, middle) <= most) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/* The arm that alone would earn the most, if the index were its mean. There must be an affordable one. */
static uint32_t best(const struct dpu_kl *self) {
  const struct cv_recruits *recruits = &self->recruits;
  uint32_t found = recruits->by_cost[0];
  double most = -1;
  for (uint32_t j = 0; j < recruits->arms; j++) {
    uint32_t i = recruits->by_cost[j];
    const struct cv_recruit *arm = &recruits->arm[i];
    double n = (double)recruits->left_micro / (double)arm->cost_micro;
    if (n < 1 || n <= most) {
      break;
    }
    n = self->by_quantile ? fmin(n, (double)recruits->room) : n;
    double value = n * (self->by_quantile ? quantile(self, i, 1 - fmin(0.5, UNSURE / n)) : bound(self, i));
    if (value > most) {
      most = value;
      found = i;
    }
  }
  return found;
}

static enum cv_err make_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step) {
  struct dpu_kl *self = of(policy);
  struct cv_recruits *recruits = &self->recruits;
  (void)plan;
  CV_TRY(cv_recruits_step(recruits, step));
  if (!step->done) {
    uint32_t i = best(self);
    const struct cv_recruit *arm = &recruits->arm[i];
    uint64_t times = arm->pulls == 0 ? self->first : arm->pulls, most = recruits->left_micro / arm->cost_micro;
    cv_recruits_want(recruits, step, i, times < most ? times : most);
  }
  return CV_OK;
}

static void apply(struct cv_policy *policy, const struct cv_release *release) {
  cv_recruits_apply(policy, release);
  weigh(of(policy), release->arm);
}

static enum cv_err load(struct cv_policy *policy, struct cv_reader *in) {
  struct dpu_kl *self = of(policy);
  CV_TRY(cv_recruits_load_all(policy, in));
  for (uint32_t i = 0; i < self->recruits.arms; i++) {
    if (self->recruits.arm[i].pulls > 0) {
      weigh(self, i);
    }
  }
  return CV_OK;
}

const struct cv_policy_class cv_policy_dpu_kl = {
    .name = "dpu-kl",
    .about = "hires by bounds that fit the tokens and the noise",
    .kind = CV_POLICY_RECRUITMENT,
    .rules = rules,
    .rule_count = CV_COUNT(rules),
    .fits = fits,
    .create = create,
    .reads_noise = true,
    .expect = expect,
    .destroy = destroy,
    .apply = apply,
    .step = make_step,
    .standing = cv_recruits_standing,
    .tells_noise = true,
    .save = cv_recruits_save,
    .load = load,
};
