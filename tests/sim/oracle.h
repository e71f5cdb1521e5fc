/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign without network, disks or crowd: only the policy, the mechanisms and the scores, one after another. If the
 * noise is a function of seed, arm and release, it gives the end that every run of the seed must have.
 */
#ifndef CV_SIM_ORACLE_H
#define CV_SIM_ORACLE_H

#include "common/base/result.h"
#include "tests/sim/scenario.h"

struct oracle {
  struct cv_plan *plan;
  size_t plans, plans_cap;
  struct cv_release *release;
  size_t releases, releases_cap;
  uint32_t arms;
  struct cv_standing standing[SCENARIO_ARMS];
  enum cv_end end;
  uint64_t spent_micro; /* the most that an arm's stream has cost */
};

void oracle_ask(const struct scenario *scenario, uint64_t seed, struct oracle *ret);
void oracle_fini(struct oracle *oracle);

#endif
