/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/gate.h"

#include <math.h>
#include <string.h>

#include "broker/both/ledger.h"
#include "common/base/grid.h"

enum noise { NOISE_NONE, NOISE_UNSOUND, NOISE_PRIVATE };

/* Every combination of a privatizer (with an epsilon of its own, or without) and a mechanism, and who may get releases.
 * */
static const struct row {
  bool local;
  enum noise noise;
  enum { TO_ANYBODY, TO_TRUSTED, TO_EXPERIMENTS } whom;
} table[] = {
    {false, NOISE_NONE, TO_TRUSTED}, {false, NOISE_UNSOUND, TO_EXPERIMENTS}, {false, NOISE_PRIVATE, TO_ANYBODY},
    {true, NOISE_NONE, TO_ANYBODY},  {true, NOISE_UNSOUND, TO_EXPERIMENTS},  {true, NOISE_PRIVATE, TO_ANYBODY},
};

static bool is_local(const struct cv_local *local) {
  return local->epsilon_micro != CV_EPSILON_NONE;
}

static const struct row *row_of(const struct cv_privacy *privacy) {
  const struct cv_mechanism_class *class = privacy->law.class;
  enum noise noise = !cv_mechanism_has_noise(class)   ? NOISE_NONE
                     : cv_mechanism_is_private(class) ? NOISE_PRIVATE
                                                      : NOISE_UNSOUND;
  const struct row *row = table;
  /* Ends, because the table has a row for every pair. */
  while (row->local != is_local(&privacy->local) || row->noise != noise) {
    row++;
  }
  return row;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Whether the privatizer alone satisfies the operator's limits, with probability 1. */
static bool protects_each_token(const struct cv_local *local, const struct cv_gate_limits *limits) {
  return local->epsilon_micro <= limits->epsilon_micro && local->delta_pico == 0;
}

static uint32_t least_tokens(const struct cv_local *local, const struct cv_gate_limits *limits) {
  bool any = limits->release_tokens == 0 || (is_local(local) && protects_each_token(local, limits));
  return any ? 1 : limits->release_tokens;
}

enum cv_err cv_gate_raise(struct cv_spec *spec, const struct cv_gate_limits *limits, struct cv_why *why) {
  struct cv_local local;
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &local, why));
  enum cv_err err = cv_spec_raise_release_tokens(spec, least_tokens(&local, limits));
  return err == CV_OK ? CV_OK
                      : cv_fail(why, CV_ERR_DENIED, "policy %s has %u parameters; expected fewer", spec->policy.name,
                                spec->policy.params.count);
}

void cv_gate_keep_least(const struct cv_spec *spec, const struct cv_gate_limits *limits, struct cv_privacy *privacy) {
  bool is_said = cv_params_find(&spec->policy.params, CV_RELEASE_TOKENS_KEY) != NULL;
  bool is_protected = is_local(&privacy->local) && privacy->local.delta_pico == 0;
  if (!is_said && !is_protected && limits->release_tokens > privacy->least_tokens) {
    privacy->least_tokens = limits->release_tokens;
  }
}

enum cv_err cv_privacy_init(struct cv_spec *spec, struct cv_privacy *ret, struct cv_why *why) {
  struct cv_privacy privacy = {0};
  CV_TRY(cv_local_init(&spec->privatizer, spec->arms, &privacy.local, why));
  bool local = is_local(&privacy.local);
  /* A comparison is one bit; without a privatizer that bit is the token. */
  privacy.local.bits = privacy.local.bits || (spec->pairs && !local);
  CV_TRY(cv_mechanism_law_init(&spec->mechanism, spec->epsilon_micro, cv_mechanism_releases(spec), &privacy.law, why));
  privacy.law.shares = spec->brokers == 2;
  privacy.least_tokens = cv_spec_release_tokens(spec);
  privacy.is_exact = !local && !cv_mechanism_has_noise(privacy.law.class);
  privacy.cost_micro = privacy.is_exact ? CV_UNPROTECTED_MICRO : cv_privacy_limit_micro(&privacy);
  *ret = privacy;
  return CV_OK;
}

void cv_privacy_add_cost(struct cv_privacy *privacy, uint64_t micro) {
  if (!privacy->is_exact) {
    privacy->cost_micro = cv_ledger_add(privacy->cost_micro, micro);
  }
}

bool cv_privacy_is_unprotected(const struct cv_privacy *privacy) {
  return privacy->is_exact;
}

uint64_t cv_privacy_worker_micro(const struct cv_privacy *privacy, const struct cv_spec *spec) {
  return cv_privacy_is_unprotected(privacy) ? CV_UNPROTECTED_MICRO : cv_spec_worker_micro(spec, privacy->cost_micro);
}

uint64_t cv_privacy_spent_micro(const struct cv_privacy *privacy, uint64_t n) {
  if (n == 0) {
    return 0;
  }
  if (is_local(&privacy->local) && !cv_mechanism_has_noise(privacy->law.class)) {
    return privacy->local.epsilon_micro;
  }
  return smaller(cv_mechanism_spent_micro(&privacy->law, n), privacy->local.pure_micro);
}

uint64_t cv_privacy_limit_micro(const struct cv_privacy *privacy) {
  return cv_privacy_spent_micro(privacy, privacy->law.horizon);
}

uint64_t cv_privacy_delta_pico(const struct cv_privacy *privacy) {
  return cv_mechanism_has_noise(privacy->law.class) ? 0 : privacy->local.delta_pico;
}

const char *cv_privacy_guarantee(const struct cv_privacy *privacy) {
  if (cv_mechanism_has_noise(privacy->law.class) || !is_local(&privacy->local)) {
    return privacy->law.class->guarantee;
  }
  return privacy->local.delta_pico == 0
             ? "epsilon-local differential privacy of each score, before it leaves its worker"
             : "(epsilon, delta)-local differential privacy of each score, before it "
               "leaves its worker";
}

static enum cv_err check_trust(const struct cv_spec *spec, bool trusted, struct cv_why *why) {
  /* Both have to say so: the requester in the campaign, the operator in the configuration. */
  if (spec->thirdparty_trusted && trusted) {
    return CV_OK;
  }
  return cv_fail(
      why, CV_ERR_DENIED, "privatizer %s with mechanism %s sends exact sums to the third-party; expected %s",
      spec->privatizer.name, spec->mechanism.name,
      spec->thirdparty_trusted ? "another pair, or a broker with limits.trusted_thirdparty" : "third_party: trusted");
}

/* Whether the party may run the pair of privatizer and mechanism, by the table above. */
static enum cv_err check_pair(const struct cv_spec *spec, const struct cv_privacy *privacy,
                              const struct cv_gate_limits *limits, struct cv_why *why) {
  switch (row_of(privacy)->whom) {
    case TO_TRUSTED:
      return check_trust(spec, limits->trusted_thirdparty, why);
    case TO_EXPERIMENTS:
      return limits->unsafe_mechanisms
                 ? CV_OK
                 : cv_fail(why, CV_ERR_DENIED,
                           "mechanism %s discloses more than its epsilon; expected another mechanism, or a broker that "
                           "runs with --unsafe-mechanisms",
                           spec->mechanism.name);
    default:
      return CV_OK;
  }
}

/* No release is smaller than the operator's limit, none needs more tokens than the campaign has, and a worker can give
 * a token at all. */
static enum cv_err check_least(const struct cv_spec *spec, const struct cv_privacy *privacy,
                               const struct cv_gate_limits *limits, struct cv_why *why) {
  const char *whose = limits->is_cobroker ? "co-broker" : "broker";
  uint32_t least = least_tokens(&privacy->local, limits);
  if (limits->is_cobroker && privacy->least_tokens < least) {
    return cv_fail(why, CV_ERR_DENIED,
                   "releases of %u tokens are below the co-broker's smallest release of %u (limits.release_tokens), "
                   "which the broker did not know yet; submit the campaign again",
                   privacy->least_tokens, least);
  }
  if (least > 1 && spec->tokens < least) {
    return cv_fail(why, CV_ERR_DENIED,
                   "a limit of %llu tokens is below the %s's smallest release of %u tokens (limits.release_tokens)",
                   (unsigned long long)spec->tokens, whose, least);
  }
  /* Without a limit there is nothing to compare. */
  bool is_free = limits->worker_epsilon_micro == 0 || privacy->is_exact;
  return is_free || privacy->cost_micro <= limits->worker_epsilon_micro
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED,
                       "one token costs its worker epsilon %.6f, over the %s's limit of %.6f for all campaigns of a "
                       "worker (limits.worker_epsilon)",
                       (double)privacy->cost_micro / (double)CV_MICRO, whose,
                       (double)limits->worker_epsilon_micro / (double)CV_MICRO);
}

/* Sums must be exact in 64 bits, noise included. */
static enum cv_err check_sums(const struct cv_spec *spec, const struct cv_local *local, struct cv_why *why) {
  if ((__uint128_t)spec->tokens * (uint64_t)local->high < UINT64_C(1) << 62) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED,
                 "the sum of %llu tokens of up to %.4g each may overflow; expected at most %llu tokens",
                 (unsigned long long)spec->tokens, cv_grid_to(local->high),
                 (unsigned long long)(((UINT64_C(1) << 62) - 1) / (uint64_t)local->high));
}

/* Exact sums have no epsilon of their own: the campaign's figure is compared, and check_pair() has asked for trust. */
static enum cv_err check_epsilon(const struct cv_spec *spec, const struct cv_privacy *privacy, uint64_t beside_micro,
                                 const struct cv_gate_limits *limits, struct cv_why *why) {
  uint64_t releases = privacy->is_exact ? spec->epsilon_micro : privacy->cost_micro;
  uint64_t asked = privacy->is_exact ? releases : cv_ledger_add(releases, beside_micro);
  if (asked <= limits->epsilon_micro) {
    return CV_OK;
  }
  bool is_local = releases == privacy->local.pure_micro || releases == privacy->local.epsilon_micro;
  return cv_fail(why, CV_ERR_DENIED, "%sepsilon %.6f%s is over the %s's limit of %.6f (limits.epsilon)",
                 is_local ? "the privatizer's " : "", (double)asked / (double)CV_MICRO,
                 asked > releases ? " with gold.epsilon" : "", limits->is_cobroker ? "co-broker" : "broker",
                 (double)limits->epsilon_micro / (double)CV_MICRO);
}

/* The operator's limits on what else a campaign may ask for. */
static enum cv_err check_limits(const struct cv_spec *spec, const struct cv_privacy *privacy,
                                const struct cv_gate_limits *limits, struct cv_why *why) {
  const char *whose = limits->is_cobroker ? "co-broker" : "broker";
  if (privacy->local.delta_pico > limits->delta_pico) {
    return cv_fail(why, CV_ERR_DENIED, "the privatizer's delta %.12g is over the %s's limit of %.12g (limits.delta)",
                   (double)privacy->local.delta_pico / (double)CV_PICO, whose,
                   (double)limits->delta_pico / (double)CV_PICO);
  }
  if (spec->arms > limits->arms) {
    return cv_fail(why, CV_ERR_DENIED, "%u arms are over the %s's limit of %u (limits.arms)", spec->arms, whose,
                   limits->arms);
  }
  if (spec->tokens > limits->tokens) {
    return cv_fail(why, CV_ERR_DENIED, "a limit of %llu tokens is over the %s's limit of %llu (limits.tokens)",
                   (unsigned long long)spec->tokens, whose, (unsigned long long)limits->tokens);
  }
  uint64_t most = cv_spec_hires(spec);
  if (most > CV_TOKENS_PER_WORKER_MAX) {
    return cv_fail(why, CV_ERR_DENIED, "the budget buys %llu tokens of the cheapest worker; expected at most %d",
                   (unsigned long long)most, CV_TOKENS_PER_WORKER_MAX);
  }
  if (spec->tokens_per_worker < most) {
    return cv_fail(why, CV_ERR_DENIED,
                   "tokens_per_worker is %u; expected %llu, which the budget buys of the cheapest worker",
                   spec->tokens_per_worker, (unsigned long long)most);
  }
  if (spec->tokens_per_worker > CV_TOKENS_PER_WORKER_MAX) {
    return cv_fail(why, CV_ERR_DENIED, "tokens_per_worker is %u; expected at most %d", spec->tokens_per_worker,
                   CV_TOKENS_PER_WORKER_MAX);
  }
  return CV_OK;
}

/* The most noise that both brokers put into a release together, in units of the sum, except with probability 2^-64:
 * each of their k noises of scale b is at most b ln(2^64 2 k), except with probability 2^-64/k. No release has more
 * noises than an object holds, and every scale is that of one of these releases, whose numbers are all ones. */
static double most_noise(const struct cv_mechanism_law *law) {
  struct cv_noise noise;
  double k = 2.0 * (law->nodes > 0 ? law->nodes : 1), scale = 0;
  for (uint64_t n = 1; n <= law->horizon; n = 2 * n + 1) {
    cv_mechanism_noise(law, law->horizon - n < n ? law->horizon : n, &noise);
    for (uint32_t i = 0; i < noise.groups; i++) {
      scale = fmax(scale, noise.group[i].scale);
    }
  }
  double unit = (double)CV_GRID * (double)CV_MICRO / (double)law->epsilon_micro;
  return k * (scale * unit * (65 * M_LN2 + log(k)) + 1);
}

/* What two brokers need: shares of bounded scores, noise that each of them draws, and sums that can be put together. */
static enum cv_err check_brokers(const struct cv_spec *spec, const struct cv_privacy *privacy,
                                 const struct cv_gate_limits *limits, struct cv_why *why) {
  if (spec->brokers != 2) {
    return CV_OK;
  }
  if (limits->alone) {
    return cv_fail(why, CV_ERR_DENIED,
                   "the campaign has two brokers, and this one has no co-broker; expected one broker, or a broker with "
                   "the setting cobroker");
  }
  if (!cv_local_is_bounded(privacy->local.kind)) {
    return cv_fail(why, CV_ERR_DENIED,
                   "privatizer %s with two brokers; expected none or randomized-response: a share is proved to be of a "
                   "score from 0 to 1",
                   spec->privatizer.name);
  }
  if (!cv_mechanism_has_noise(privacy->law.class) || !cv_mechanism_is_private(privacy->law.class)) {
    return cv_fail(
        why, CV_ERR_DENIED,
        "mechanism %s with two brokers; expected one with noise that keeps its epsilon: each broker protects "
        "the tokens by its own noise",
        spec->mechanism.name);
  }
  double noise = most_noise(&privacy->law), sum = (double)spec->tokens * (double)CV_GRID;
  return noise + sum < (double)(UINT64_C(1) << 62)
             ? CV_OK
             : cv_fail(why, CV_ERR_DENIED,
                       "with two brokers a release of up to %.4g tokens and noise of up to %.4g may overflow; expected "
                       "less than 2^42 of both together: fewer tokens or a larger epsilon",
                       (double)spec->tokens, noise / (double)CV_GRID);
}

static enum cv_err check_degrees(const struct cv_spec *spec, struct cv_why *why) {
  uint32_t most = cv_spec_shown_most(spec);
  return most <= CV_VALUES_MAX ? CV_OK
                               : cv_fail(why, CV_ERR_DENIED, "an arm has %u neighbours; expected at most %d", most - 1,
                                         CV_VALUES_MAX - 1);
}

enum cv_err cv_gate_spec(const struct cv_spec *spec, const struct cv_gate_limits *limits, struct cv_why *why) {
  return cv_gate_beside(spec, 0, limits, why);
}

enum cv_err cv_gate_beside(const struct cv_spec *spec, uint64_t beside_micro, const struct cv_gate_limits *limits,
                           struct cv_why *why) {
  struct cv_spec completed = *spec;
  struct cv_privacy privacy;
  /* A copy is completed: the check must not change the spec that the campaign is accepted with. */
  CV_TRY(cv_spec_check(spec, why));
  CV_TRY(cv_privacy_init(&completed, &privacy, why));
  CV_TRY(check_brokers(spec, &privacy, limits, why));
  CV_TRY(check_pair(spec, &privacy, limits, why));
  CV_TRY(check_sums(spec, &privacy.local, why));
  CV_TRY(check_degrees(spec, why));
  CV_TRY(check_epsilon(spec, &privacy, beside_micro, limits, why));
  CV_TRY(check_limits(spec, &privacy, limits, why));
  cv_privacy_add_cost(&privacy, beside_micro);
  return check_least(spec, &privacy, limits, why);
}
