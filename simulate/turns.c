/* SPDX-License-Identifier: Apache-2.0 */
/* A plan has numbers of plays, not their order; this file fixes one order, so that runs can be compared by round. */
#include "simulate/turns.h"

void cv_turns_fill(const struct cv_policy_step *step, uint64_t rounds, uint32_t *ret_played) {
  uint64_t n = 0;
  bool goes_on = true;
  for (uint32_t turn = 0; goes_on && n < rounds; turn++) {
    goes_on = false;
    for (size_t i = 0; i < step->wants && n < rounds; i++) {
      if (step->want[i].tokens > turn) {
        ret_played[n++] = step->want[i].arm;
        goes_on = true;
      }
    }
  }
}

static bool names(const struct cv_policy_step *step, uint32_t arm) {
  bool does = false;
  for (size_t i = 0; i < step->wants; i++) {
    does = does || step->want[i].arm == arm;
  }
  return does;
}

static bool is_shown(const struct cv_neighbours *graph, uint32_t played, uint32_t arm) {
  bool is_it = played == arm;
  for (uint32_t i = 0; graph != NULL && !is_it && i < graph->first[played + 1] - graph->first[played]; i++) {
    is_it = graph->arm[graph->first[played] + i] == arm;
  }
  return is_it;
}

uint32_t cv_turns_place(const struct cv_policy_step *step, const struct cv_neighbours *graph, const uint32_t *played,
                        uint64_t round, uint32_t arm) {
  /* An arm that the plan does not name gets no release, even if its neighbours show it. */
  if (!names(step, arm) || !is_shown(graph, played[round], arm)) {
    return CV_TURNS_NO_ARM;
  }
  uint32_t place = 0;
  for (uint64_t i = 0; i < round; i++) {
    place += is_shown(graph, played[i], arm);
  }
  return place;
}
