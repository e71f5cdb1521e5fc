/* SPDX-License-Identifier: Apache-2.0 */
/* Releases, plans and standings: the data that the third-party receives and publishes. */
#ifndef CV_BASE_RESULT_H
#define CV_BASE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_NOISE_GROUPS_MAX = 24 };
/* One line that says why a campaign ended, with its terminator. */
enum { CV_END_WHY_BYTES = 256 };
/* The most tokens of one arm that a broker accepts in a plan. */
enum { CV_PLAN_TOKENS_MAX = 1 << 24 };

/* `count` independent Laplace noises of scale `scale`, in units of D/epsilon with D = CV_GRID. */
struct cv_noise_group {
  double scale;
  uint32_t count;
};

struct cv_noise {
  uint32_t groups;
  struct cv_noise_group group[CV_NOISE_GROUPS_MAX];
};

/* Makes of the noise of one broker that of `brokers` brokers, each of which adds as much. */
void cv_noise_times(struct cv_noise *noise, uint32_t brokers);
/* Whether it can be: each group has as many noises of each broker. 0 counts as one broker. */
bool cv_noise_is_of(const struct cv_noise *noise, uint32_t brokers);

/* One noisy sum. `number` counts a campaign's releases from 1 without gaps. */
struct cv_release {
  uint64_t number;
  uint64_t plan;
  uint32_t arm;
  uint64_t tokens;   /* summed in noisy_sum; with a prefix mechanism all of the arm's tokens so far */
  int64_t noisy_sum; /* grid units */
  struct cv_noise noise;
  /* No further release of the arm will come: its data are used up. Its tokens may be fewer than planned; 0, with a sum
   * of 0 and no noise: too few for a release. */
  bool last;
};

/* False if it has no tokens and is not the empty last release of an arm. */
bool cv_release_is_whole(const struct cv_release *release);

/*
 * A request for `tokens` further assignments of one arm. In a campaign with a feedback graph an assignment shows the
 * arm and those of its neighbours that the plan names; an arm with 0 tokens is only shown by its neighbours'
 * assignments. Without a graph each assignment is one token, and 0 is invalid.
 *
 * In a campaign of pairs `opponent` is 1 + the arm that all these tokens are compared with, or 0: another arm, drawn
 * uniformly for each token. Else it is 0.
 */
struct cv_want {
  uint32_t arm;
  uint32_t tokens;
  uint32_t opponent;
};

/* Whether a want's opponent is one that a campaign with this many arms may have. */
bool cv_want_opponent_fits(const struct cv_want *want, bool pairs, uint32_t arms);

/* A plan is closed when every want has had its release. `number` counts from 1 without gaps. */
struct cv_plan {
  uint64_t number;
  uint32_t wants;
  struct cv_want *want; /* owned or borrowed; a valid plan names each arm at most once */
};

/* Copies a plan with its wants; the caller frees ret_to->want. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_plan_copy(const struct cv_plan *from, struct cv_plan *ret_to);
/* True if both plans have the same wants in the same order; their numbers may differ. */
bool cv_plan_asks_same(const struct cv_plan *a, const struct cv_plan *b);

/* Why an arm is left without a class of its own. */
enum cv_held {
  CV_HELD_NO,
  CV_HELD_BOUNDARY, /* alpha cannot separate it from its class within the token limit */
  CV_HELD_USED_UP,  /* no token of it is left */
  CV_HELD_OPEN,     /* the campaign has ended before, or its class depends on items that are held */
  CV_HELD_COUNT
};

/* "", "boundary", "used up", "undecided"; never NULL. */
const char *cv_held_text(enum cv_held held);

/* The ranking state of one arm. */
struct cv_standing {
  uint32_t arm;
  uint32_t rank_class; /* from 1 = best; 0 = undecided; of an arm that is held the first of those it may be in */
  uint32_t rank_last;  /* of an arm that is held the last of those; else 0 */
  enum cv_held held;
  uint64_t tokens;
  double mean, radius; /* noisy mean and half-width of its interval, in scores */
  bool contradicts;    /* the limits of its mean contradict each other: the policy's assumptions do not hold */
  /* The part of the radius that is there because of noise; NAN: not told. Neither stored nor sent. */
  double noise;
};

/* "3", "3 or 4", "3 to 6", or "-" for an undecided arm. */
struct cv_class_text {
  char text[32];
};
struct cv_class_text cv_class_text(const struct cv_standing *standing);
/* Whether the arm has its class among all arms: it is not undecided and not held. */
bool cv_standing_is_decided(const struct cv_standing *standing);
/* Whether no plan asks for the arm any more although it has no class. */
bool cv_standing_is_parked(const struct cv_standing *standing);
/* Whether both say the same, bit by bit, apart from `noise`. */
bool cv_standing_is_same(const struct cv_standing *a, const struct cv_standing *b);
/* Whether class, last class and reason fit together and lie within `arms` classes. */
bool cv_standing_is_plausible(const struct cv_standing *standing, uint32_t arms);

enum cv_end {
  CV_END_NONE,     /* still running */
  CV_END_COMPLETE, /* the policy has finished */
  CV_END_TOKENS,   /* the token limit is reached */
  CV_END_DEADLINE,
  CV_END_IDLE, /* no worker has answered for idle_ms */
  CV_END_CANCELLED,
  CV_END_LEDGER,    /* no privacy budget left */
  CV_END_FROZEN,    /* broker and third-party disagree about what was released */
  CV_END_REFUSED,   /* the third-party refused the campaign or misbehaved */
  CV_END_BUDGET,    /* the rest of the budget buys no token that the plan asks for */
  CV_END_RECOVERED, /* the broker's state was lost or rolled back, and was recovered */
  CV_END_USED_UP,   /* the data of an arm are used up, and the policy cannot go on without it */
  CV_END_COUNT
};

/* "running", "complete", "token limit", ...; never NULL. */
const char *cv_end_text(enum cv_end end);
/* Why a campaign has this end, where nothing more is to say; "" of a complete one. */
const char *cv_end_usual_why(enum cv_end end);

#endif
