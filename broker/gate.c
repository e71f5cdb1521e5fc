/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/gate.h"

#include <string.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"

/* A pair that is not here never leaves. */
static const struct row {
  const char *privatizer, *mechanism;
  bool trusted_only; /* exact sums: towards a third-party that the requester trusts */
} table[] = {
    {"none", "hybrid", false}, {"none", "binary", false},   {"none", "binary-honaker", false},
    {"none", "kary", false},   {"none", "segments", false}, {"none", "doubling", false},
    {"none", "batch", false},  {"none", "per-item", false}, {"none", "none", true},
};

static enum cv_err check_pair(const struct cv_spec *spec, struct cv_why *why) {
  for (size_t i = 0; i < CV_COUNT(table); i++) {
    const struct row *row = &table[i];
    if (strcmp(row->privatizer, spec->privatizer.name) != 0 || strcmp(row->mechanism, spec->mechanism.name) != 0) {
      continue;
    }
    if (row->trusted_only && !spec->thirdparty_trusted) {
      return cv_fail(why, CV_ERR_DENIED,
                     "privatizer %s with mechanism %s gives the third-party exact sums; expected third_party: trusted",
                     row->privatizer, row->mechanism);
    }
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED, "privatizer \"%s\" with mechanism \"%s\" is not offered here",
                 spec->privatizer.name, spec->mechanism.name);
}

uint64_t cv_gate_releases(const struct cv_spec *spec, const struct cv_broker_limits *limits) {
  const struct cv_param *round = cv_params_find(&spec->policy.params, "tokens_per_round");
  uint64_t each = limits->release_tokens > 0 ? limits->release_tokens : 1;
  if (round != NULL && !round->is_text && round->number > (double)each && round->number <= UINT32_MAX) {
    each = (uint64_t)round->number;
  }
  return spec->tokens > each ? spec->tokens / each : 1;
}

enum cv_err cv_gate_spec(const struct cv_spec *spec, const struct cv_broker_limits *limits, struct cv_why *why) {
  CV_TRY(cv_spec_check(spec, why));
  CV_TRY(check_pair(spec, why));
  struct cv_choice mechanism = spec->mechanism;
  struct cv_mechanism_law law;
  CV_TRY(cv_mechanism_law_init(&mechanism, spec->epsilon_micro, cv_gate_releases(spec, limits), &law, why));
  if (spec->epsilon_micro > limits->epsilon_micro) {
    return cv_fail(why, CV_ERR_DENIED, "epsilon %.6f is over this broker's limit of %.6f",
                   (double)spec->epsilon_micro / (double)CV_MICRO, (double)limits->epsilon_micro / (double)CV_MICRO);
  }
  if (spec->arms > limits->arms) {
    return cv_fail(why, CV_ERR_DENIED, "%u arms are over this broker's limit of %u", spec->arms, limits->arms);
  }
  if (spec->tokens > limits->tokens) {
    return cv_fail(why, CV_ERR_DENIED, "a limit of %llu tokens is over this broker's limit of %llu",
                   (unsigned long long)spec->tokens, (unsigned long long)limits->tokens);
  }
  if (spec->tokens_per_worker > CV_TOKENS_PER_WORKER_MAX) {
    return cv_fail(why, CV_ERR_DENIED, "tokens_per_worker is %u; expected at most %d", spec->tokens_per_worker,
                   CV_TOKENS_PER_WORKER_MAX);
  }
  return CV_OK;
}

void cv_gate_values(const struct cv_spec *spec, int64_t *ret_low, int64_t *ret_high) {
  CV_REQUIRE(strcmp(spec->privatizer.name, "none") == 0);
  *ret_low = 0;
  *ret_high = CV_GRID;
}
