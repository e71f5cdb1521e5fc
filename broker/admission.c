/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/admission.h"

#include "broker/conn.h"
#include "broker/state.h"
#include "broker/talk.h"
#include "common/base/grid.h"

void cv_admission_learn(struct cv_broker *broker, const struct cv_hello *hello) {
  if (!hello->has_limits) {
    return;
  }
  broker->knows_cobroker = true;
  broker->cobroker_limits = (struct cv_gate_limits){.epsilon_micro = hello->limits.epsilon_micro,
                                                    .delta_pico = hello->limits.delta_pico,
                                                    .worker_epsilon_micro = hello->limits.worker_epsilon_micro,
                                                    .release_tokens = hello->limits.release_tokens,
                                                    .arms = hello->limits.arms,
                                                    .tokens = hello->limits.tokens,
                                                    .is_cobroker = true};
  cv_broker_note(broker, broker->cobroker->who, NULL,
                 "limits of the co-broker: epsilon %g, %g for a worker; releases of %u tokens at least",
                 (double)hello->limits.epsilon_micro / (double)CV_MICRO,
                 (double)hello->limits.worker_epsilon_micro / (double)CV_MICRO, hello->limits.release_tokens);
}

static bool has_both(const struct cv_broker *broker, const struct cv_spec *spec) {
  return spec->brokers == 2 && broker->knows_cobroker;
}

enum cv_err cv_admission_complete(const struct cv_broker *broker, struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(cv_gate_raise(spec, &broker->config.limits, why));
  return has_both(broker, spec) ? cv_gate_raise(spec, &broker->cobroker_limits, why) : CV_OK;
}

enum cv_err cv_admission_check(const struct cv_broker *broker, struct cv_spec *spec, const struct cv_gold *gold,
                               struct cv_why *why) {
  CV_TRY(cv_spec_check(spec, why));
  CV_TRY(cv_admission_complete(broker, spec, why));
  CV_TRY(cv_gate_beside(spec, gold->epsilon_micro, &broker->config.limits, why));
  return has_both(broker, spec) ? cv_gate_spec(spec, &broker->cobroker_limits, why) : CV_OK;
}
