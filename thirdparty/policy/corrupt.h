/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandits with corrupted feedback (Gajane, Urvoy and Kaufmann, "Corrupt Bandits", 2016): an arm of mean score mu_a
 * shows tokens of mean lambda_a = g_a(mu_a) = offset + slope mu_a, g_a known from the campaign's privatizer
 * (common/base/local.h). Each policy pulls each arm once, then always the arm with the highest index; ties are random,
 * from the policy's stream. The policies differ in the index:
 *
 *   klucb-cf  g_a^-1(q), q the furthest with N_a d(mean token, q) <= f(t) = ln t + 3 ln ln t, upwards if g_a increases,
 *             else downwards (box "KLUCB-CF"); f >= 0, f(1) = 0. The index may exceed 1: the paper does not clip it.
 *   ucb-cf    g_a^-1(mean token +- sqrt(ln t/(2 N_a))) (box "UCB-CF")
 *   ts-cf     g_a^-1(theta), theta ~ Beta(1 + ones, 1 + zeros) of the tokens (box "Thompson Sampling-CF")
 *   kl-local  as klucb-cf with f = max(0, ln(T/(K sqrt N_a))), which uses the horizon, and the index at most 1; after
 *             Menard and Garivier, "A minimax and asymptotically optimal algorithm for stochastic bandits" (2017)
 *   posterior-quantile
 *             the quantile of the posterior of mu_a that K N_a^.6/T of its mass, at most half of it, lies above
 *             (posterior.h); docs/beyond.md bounds its regret
 *
 * t is the number of pulls so far, N_a those of arm a. Parameters of all five:
 *   tokens_per_round  pulls of the chosen arm before the next choice, 1 in the paper; more save round trips
 *   horizon           pulls after which the campaign is complete; 0 (the default): the campaign's limit of tokens
 *
 * They need mechanism none and privatizer randomized-response, or privatizer none with a trusted third-party. In the
 * latter case they are KL-UCB, UCB1 and Thompson sampling; a score between 0 and 1 then counts as a fraction of a one.
 *
 * A step of ucb-cf and ts-cf costs K indices. A step of klucb-cf costs K comparisons and usually one or two indices
 * (kl_index.h), K indices if arms tie. The other two compute one index a release, and a step costs K comparisons. It
 * allocates nothing once the step has room.
 */
#ifndef CV_THIRDPARTY_CORRUPT_H
#define CV_THIRDPARTY_CORRUPT_H

#include "thirdparty/policy/arms.h"
#include "thirdparty/policy/kl_index.h"

/* The index of a pulled arm, in mean tokens; `rng` is the plan's stream. */
typedef double cv_corrupt_draw_fn(const struct cv_arms *arms, uint32_t arm, struct cv_rng *rng);
/* The index of a pulled arm, in scores. It depends on the arm's sums alone. */
typedef double cv_corrupt_index_fn(const struct cv_arms *arms, uint32_t arm);

/* The index of a policy: exactly one of these. */
struct cv_corrupt_law {
  cv_corrupt_draw_fn *draw;
  cv_corrupt_index_fn *index;
  cv_kl_bonus_fn *bonus; /* f of the KL index */
};

struct cv_corrupt {
  struct cv_policy policy;
  struct cv_arms arms;
  uint32_t tokens_per_round;
  struct cv_corrupt_law law;
  struct cv_kl_index kl; /* with law.bonus */
  double *index;         /* with law.index: of each arm that was pulled */
};

/* Members of the policies' classes. */
extern const struct cv_param_rule cv_corrupt_rules[];
enum { CV_CORRUPT_RULES = 2 };
CV_MUST_USE enum cv_err cv_corrupt_fits(const struct cv_spec *spec, struct cv_why *why);
CV_MUST_USE enum cv_err cv_corrupt_create(const struct cv_policy_class *class, const struct cv_corrupt_law *law,
                                          const struct cv_spec *spec, uint64_t seed, struct cv_policy **ret);
void cv_corrupt_destroy(struct cv_policy *policy);
void cv_corrupt_apply(struct cv_policy *policy, const struct cv_release *release);
CV_MUST_USE enum cv_err cv_corrupt_step(struct cv_policy *policy, uint64_t plan, struct cv_policy_step *step);
void cv_corrupt_standing(const struct cv_policy *policy, uint32_t arm, struct cv_standing *ret);
void cv_corrupt_save(const struct cv_policy *policy, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_corrupt_load(struct cv_policy *policy, struct cv_reader *in);

#define CV_CORRUPT_CLASS                                                                                              \
  .kind = CV_POLICY_BANDIT, .rules = cv_corrupt_rules, .rule_count = CV_CORRUPT_RULES, .fits = cv_corrupt_fits,       \
  .destroy = cv_corrupt_destroy, .apply = cv_corrupt_apply, .step = cv_corrupt_step, .standing = cv_corrupt_standing, \
  .tells_noise = true, .has_floor = true, .save = cv_corrupt_save, .load = cv_corrupt_load

#endif
