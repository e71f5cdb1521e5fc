/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/result.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

const char *cv_end_text(enum cv_end end) {
  static const char *const text[CV_END_COUNT] = {
      [CV_END_NONE] = "running",          [CV_END_COMPLETE] = "complete",   [CV_END_TOKENS] = "token limit",
      [CV_END_DEADLINE] = "deadline",     [CV_END_IDLE] = "no workers",     [CV_END_CANCELLED] = "cancelled",
      [CV_END_LEDGER] = "privacy budget", [CV_END_FROZEN] = "frozen",       [CV_END_REFUSED] = "refused",
      [CV_END_BUDGET] = "budget",         [CV_END_RECOVERED] = "recovered", [CV_END_USED_UP] = "scores used up",
  };
  return (unsigned)end < CV_END_COUNT ? text[end] : "unknown";
}

const char *cv_end_usual_why(enum cv_end end) {
  static const char *const why[CV_END_COUNT] = {
      [CV_END_NONE] = "",
      [CV_END_COMPLETE] = "",
      [CV_END_TOKENS] = "the next plan asks for more tokens than are left",
      [CV_END_DEADLINE] = "the deadline (limits.deadline) has passed",
      [CV_END_IDLE] = "no token was accepted within limits.idle",
      [CV_END_CANCELLED] = "the requester cancelled it",
      [CV_END_LEDGER] = "the next plan costs more epsilon than is left",
      [CV_END_FROZEN] = "the histories of two parties contradict each other",
      [CV_END_REFUSED] = "a party refused it",
      [CV_END_BUDGET] = "the next plan costs more than is left of the budget",
      [CV_END_RECOVERED] = "the broker went on from an older copy of its state",
      [CV_END_USED_UP] = "items whose scores are used up have no class, or the policy cannot go on without them",
  };
  return (unsigned)end < CV_END_COUNT ? why[end] : "";
}

const char *cv_held_text(enum cv_held held) {
  static const char *const text[CV_HELD_COUNT] = {
      [CV_HELD_NO] = "", [CV_HELD_BOUNDARY] = "boundary", [CV_HELD_USED_UP] = "used up", [CV_HELD_OPEN] = "undecided"};
  return (unsigned)held < CV_HELD_COUNT ? text[held] : "unknown";
}

struct cv_class_text cv_class_text(const struct cv_standing *standing) {
  struct cv_class_text class = {"-"};
  if (standing->held != CV_HELD_NO && standing->rank_last > standing->rank_class) {
    const char *word = standing->rank_last == standing->rank_class + 1 ? "or" : "to";
    cv_text_print(class.text, sizeof(class.text), "%u %s %u", standing->rank_class, word, standing->rank_last);
  } else if (standing->rank_class > 0) {
    cv_text_print(class.text, sizeof(class.text), "%u", standing->rank_class);
  }
  return class;
}

bool cv_standing_is_decided(const struct cv_standing *standing) {
  return standing->rank_class > 0 && standing->held == CV_HELD_NO;
}

bool cv_standing_is_parked(const struct cv_standing *standing) {
  return standing->held == CV_HELD_BOUNDARY || standing->held == CV_HELD_USED_UP;
}

bool cv_standing_is_same(const struct cv_standing *a, const struct cv_standing *b) {
  return a->rank_class == b->rank_class && a->rank_last == b->rank_last && a->held == b->held &&
         a->tokens == b->tokens && a->mean == b->mean && a->radius == b->radius && a->contradicts == b->contradicts;
}

bool cv_standing_is_plausible(const struct cv_standing *standing, uint32_t arms) {
  bool is_parked = (unsigned)standing->held < CV_HELD_COUNT && standing->held != CV_HELD_NO;
  bool fits = is_parked ? standing->rank_class >= 1 && standing->rank_last >= standing->rank_class
                        : standing->held == CV_HELD_NO && standing->rank_last == 0;
  return fits && standing->rank_class <= arms && standing->rank_last <= arms;
}

void cv_noise_times(struct cv_noise *noise, uint32_t brokers) {
  for (uint32_t i = 0; i < noise->groups; i++) {
    uint32_t *count = &noise->group[i].count;
    CV_REQUIRE(*count <= UINT32_MAX / brokers);
    *count *= brokers;
  }
}

bool cv_noise_is_of(const struct cv_noise *noise, uint32_t brokers) {
  for (uint32_t i = 0; i < noise->groups; i++) {
    if (brokers > 1 && noise->group[i].count % brokers != 0) {
      return false;
    }
  }
  return true;
}

bool cv_release_is_whole(const struct cv_release *release) {
  return release->tokens > 0 || (release->last && release->noisy_sum == 0 && release->noise.groups == 0);
}

enum cv_err cv_plan_copy(const struct cv_plan *from, struct cv_plan *ret_to) {
  /* At least one, because NULL means that memory ran out. */
  struct cv_want *want = calloc(from->wants > 0 ? from->wants : 1, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_NOMEM;
  }
  if (from->wants > 0) {
    memcpy(want, from->want, from->wants * sizeof(*want));
  }
  *ret_to = (struct cv_plan){.number = from->number, .wants = from->wants, .want = want};
  return CV_OK;
}

bool cv_want_opponent_fits(const struct cv_want *want, bool pairs, uint32_t arms) {
  return want->opponent == 0 || (pairs && want->opponent <= arms && want->opponent != want->arm + 1);
}

bool cv_plan_asks_same(const struct cv_plan *a, const struct cv_plan *b) {
  return a->wants == b->wants && (a->wants == 0 || memcmp(a->want, b->want, a->wants * sizeof(*a->want)) == 0);
}
