/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/sim/scenario.h"

void scenario_tell(const struct scenario *s, char *to, size_t n) {
  static const char *const fault[FAULT_COUNT] = {
      [FAULT_CUT] = "cuts",
      [FAULT_CRASH_BROKER] = "broker crashes",
      [FAULT_CRASH_THIRDPARTY] = "third-party crashes",
      [FAULT_CRASH_POOL] = "gateway crashes",
      [FAULT_CRASH_REQUESTER] = "requester crashes",
      [FAULT_DISK_BROKER] = "broker's disk",
      [FAULT_DISK_THIRDPARTY] = "third-party's disk",
      [FAULT_JUMP] = "clock",
      [FAULT_STALL] = "stalls",
      [FAULT_MEMORY] = "memory",
      [FAULT_LOSE_THIRDPARTY] = "third-party lost",
      [FAULT_OLDER_THIRDPARTY] = "third-party rolled back",
      [FAULT_ROLLBACK] = "broker rolled back",
      [FAULT_DAMAGE] = "broker's disk damaged",
      [FAULT_DRAIN] = "broker asked to stop",
      [FAULT_ROTATE] = "seal key replaced",
      [FAULT_FULL_POOL] = "gateway's disk",
      [FAULT_CRASH_COBROKER] = "co-broker crashes",
      [FAULT_DISK_COBROKER] = "co-broker's disk",
      [FAULT_CUT_COBROKER] = "cuts of the co-broker",
      [FAULT_REVOKE] = "certificates revoked",
      [FAULT_ROLLBACK_COBROKER] = "co-broker rolled back",
      [FAULT_COMMIT] = "commits in doubt",
      [FAULT_CUT_SERVER] = "cuts of the server",
      [FAULT_PROMOTE] = "replica promoted",
      [FAULT_RESTORE] = "server restored",
      [FAULT_LOAD] = "loads of a standby",
      [FAULT_FREEZE] = "frozen brokers",
  };
  static const char *const lie[] = {LIES(LIE_WORDS)};
  static const char *const ending[] = {"none", "cancel", "deadline", "idle"};
  int at = snprintf(
      to, n,
      "%u requesters x %u campaigns, policy %s%s, %u arms, %u tokens a round of %llu, mechanism %s for %u, privatizer "
      "%s, radius %s, "
      "settled %s, %u lies, %u gold items, budget %.6f, %u edges, %u%% greed; %u gateways%s and %u liars of %u "
      "workers%s who give %u, "
      "%u "
      "pests%s, %u rivals; releases of %u; "
      "ended by %s at "
      "%llu ms; %s brokers%s%s; %u "
      "faults of:",
      s->requesters, s->campaigns, s->policy, s->pairs ? " of pairs" : "", s->arms, s->tokens_per_round,
      (unsigned long long)s->tokens, s->mechanism, s->horizon, s->privatizer.name, s->radius, s->settled, s->lies,
      s->golds, (double)s->budget_micro / 1e6, s->edges, s->greed, s->pools, s->picky ? " (one of them picky)" : "",
      s->liars, s->pool_workers,
      s->persons ? " with rows"
      : s->parts ? " with parts"
                 : "",
      s->own_tokens, s->pests, s->impostor ? ", an impostor" : "", s->rivals, s->release_tokens, ending[s->ending],
      (unsigned long long)s->ending_ms,
      s->two      ? "two"
      : s->shared ? "two that share a database, no two"
                  : "no two",
      s->lie == LIE_NONE ? "" : ", a lie: ", s->lie == LIE_NONE ? "" : lie[s->lie], s->faults);
  for (int i = 0; i < FAULT_COUNT && at > 0 && (size_t)at < n; i++) {
    if (s->weight[i] > 0) {
      at += snprintf(to + at, n - (size_t)at, " %s,", fault[i]);
    }
  }
}

void scenario_accepted(const struct scenario *s, struct cv_spec *ret) {
  scenario_spec(s, ret);
  CV_REQUIRE(cv_spec_raise_release_tokens(ret, scenario_least(s)) == CV_OK);
}
