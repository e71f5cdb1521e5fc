/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The classes of a ranking, common to the ranking policies (Chen, Yu, Li, Zou, Liang and Cheng, "PPAR: A
 * Privacy-Preserving Adaptive Ranking Algorithm for Multi-Armed-Bandit Crowdsourcing", 2022, Algorithm 1).
 *
 * State: active set S, class l, settled set C_l within S, removed arms C_{l+1}. An arm of S is settled in class l or
 * removed to class l+1. When all of S is settled, S becomes C_{l+1}. The ranking ends when S is empty. A settled arm
 * never moves again. Nothing is decided before every arm of S has a release. Two rules decide:
 *
 *   by interval  arm i, whose mean score lies in [low, high] = mean +- radius, is settled where
 *                low_i >= max over the others of S of high_j - alpha, and removed where high_i < max over S of
 *                low_j - alpha. If all intervals hold at all times, then so does every decision, however the intervals
 *                were made and whatever was pulled: the best arm b of S has mean_b >= low_j for all j, so an arm within
 *                alpha of it is never removed; an arm further below has low_i < mean_b - alpha <= high_b - alpha, so it
 *                is never settled; and b itself is never removed. Where intervals hold at all times with probability
 *                1 - delta, so does the whole ranking. A lone arm is settled at once. A new class is first tried with
 *                the present intervals; an arm that moves down several classes in one step is reported once, with the
 *                last comparison.
 *   by leader    with m the best mean of S: settled at mean >= m - alpha + radius, removed at mean < m - alpha - radius
 *                (lines 28 and 31). The leader is settled as soon as every other arm of S is settled or removed, and a
 *                new class starts with new releases (lines 8 to 20).
 *
 * A step costs O(K log K), however many classes it opens.
 *
 * Parking. An arm of S can also be parked (parking.h): it leaves S undecided, no plan asks for it again, and it does
 * not enter S of a later class. The classes that are then settled are those of what is left, and only guide the pulls.
 * What is told of an arm follows from the intervals of all arms (spans.h): its class where they allow one class, else
 * the first and the last one, and why. The same is told of every arm once the ranking is closed. While nothing is
 * parked the settled classes are those of all arms. By leader, intervals are mean +- radius/2, with which the rule
 * agrees for equal tokens, and nothing is told of undecided arms unless one is parked.
 *
 * Lies. A worker can send any token that its privatizer allows. Take the true sums: as they would be if every worker
 * had told the truth. A false token moves an end of an arm's interval by at most `give`, so an inequality between two
 * arms that holds by a margin also holds for the true sums unless margin/give tokens or more are false, with the larger
 * of the two gives, as all lies can go to one arm. An arm's class follows from the comparisons with all arms that its
 * class began with, and from all decisions of the classes above; what it bears is the least of their numbers:
 *
 *   safe  by the ends of intervals: with fewer false tokens in the whole campaign the class is right with the
 *         probability of a ranking without lies. (By leader: the rules decide the same on the true sums.) A policy
 *         decides as soon as it may, so this is small unless it is told to bear `lies`: then it is more than those.
 *   turn  by the noisy means alone: with fewer false tokens the true ones would have given the same class.
 *
 * Who lies, when, and with what knowledge of the campaign does not matter, nor that lies have a part in what is pulled
 * next: only the intervals of the true scores are assumed to hold. Not covered: whoever declines to answer because of
 * its score. Counting costs O(K) more for each settlement, and for each class that a step opens.
 */
#ifndef CV_THIRDPARTY_RANKING_H
#define CV_THIRDPARTY_RANKING_H

#include "thirdparty/policy/policy.h"
#include "thirdparty/policy/spans.h"

/* An arm. The policy sets `tokens`, `mean`, `radius`, `noisy_mean` and `next` at each release, and for the count of
 * lies also `give` and `share`. */
struct cv_ranked {
  uint64_t tokens; /* of the last release; 0: none yet */
  double mean, radius;
  double noise;        /* the part of the radius that noise makes; NAN: not known, as after `load` */
  uint32_t rank_class; /* settled there; 0 = undecided */
  bool below;          /* undecided and removed from the present class */
  bool is_exhausted;   /* there are no further tokens of it */
  bool is_hopeless;    /* scratch of a step: undecided, and the tokens that are left do not suffice for it */
  enum cv_held held;   /* parked: undecided, out of S, never asked for again */
  uint32_t held_class; /* parked in this class: in it or below */
  double held_need;    /* further tokens that would have decided it, about; not stored: NAN after `load` */
  uint32_t removal;    /* 1 + index of its removal among the decisions of the present step; 0 = none */
  double give;         /* how far one false token can move an end of the interval */
  double noisy_mean;   /* of the last release; `mean` is the middle of the interval. Also after `load` */
  double share;        /* how far one false token can move it */
  uint64_t next;       /* the fewest tokens of its next release */
  bool contradicts;    /* set by the policy: its limits of the mean contradict each other */
  struct cv_policy_lies lies;
};

/* What the intervals say of the classes among all arms. */
struct cv_ranking_known {
  struct cv_spans spans; /* of the intervals so far, within [0, 1] */
  bool *contradicts;     /* of each arm: an interval had nothing in common with those before */
  bool is_current, has_spans;
  uint32_t sure; /* up to this class nothing is parked that lies could move */
};

/* The parameter of every ranking policy: so many false tokens do not turn a class. The policy widens each interval by
 * as many times what one of them can do to it. */
#define CV_LIES_RULE \
  { .key = "lies", .low = 0, .high = 1e12, .whole = true, .fallback = 0, .help = "false tokens that turn no class" }

struct cv_ranking {
  double alpha;
  bool by_leader;
  uint32_t rank_class; /* l */
  uint32_t arms;       /* K */
  struct cv_ranked *arm;
  struct cv_ranking_known *known;
  bool is_closed; /* no release will come any more */
  uint64_t lies;  /* false tokens that the radii allow for, set by the policy */
  bool counts_lies;
  struct cv_policy_lies above, here; /* the least of the decisions of the classes above l, and so far of class l */
  /* What decides about parking (parking.h): whether arms on boundaries are parked, the token limit, the tokens of all
   * plans so far, and a standard deviation of an estimate in half widths. */
  bool parks;
  uint64_t limit, asked;
  double doubt;
  bool has_hope; /* scratch of a step: there are undecided arms that are not hopeless */
  double *need;  /* scratch: tokens that decide an arm */
  /* Scratch of a step: arms sorted by upper bound, and the highest lower bound from each index on. */
  uint32_t *order;
  double *low;
};

/* The parameter of both ranking policies: whether arms on a boundary are parked. */
extern const char *const cv_ranking_boundary_words[];
#define CV_BOUNDARY_RULE                                                                     \
  {                                                                                          \
    .key = "boundary", .choices = cv_ranking_boundary_words, .fallback_text = "park",        \
    .help = "an item that the token limit cannot decide: park ends its pulls, feed does not" \
  }
/* The parameter of both ranking policies: how the noise of a release enters an interval. */
extern const char *const cv_ranking_tails_words[];
#define CV_TAILS_RULE                                                                                        \
  {                                                                                                          \
    .key = "tails", .choices = cv_ranking_tails_words, .fallback_text = "exact",                             \
    .help = "the noise in an interval: exact, by its tail as far as that is known; chernoff, by its moments" \
  }
/* Whether intervals are by the exact tail: if the campaign wants it, and its mechanism states the noises themselves. */
bool cv_ranking_has_exact_tails(const struct cv_spec *spec);
/* Sets what decides about parking, from a campaign whose error probability is `delta`. */
void cv_ranking_park_within(struct cv_ranking *self, const struct cv_spec *spec, double delta);
/* The tokens that are left of the limit. */
uint64_t cv_ranking_left(const struct cv_ranking *self);

/* The bounds over S that arms are compared with. */
struct cv_ranking_bounds {
  uint32_t active, undecided;
  bool all_known;         /* every arm of S has a release */
  uint32_t leader;        /* best mean; UINT32_MAX if S is empty */
  uint32_t top;           /* highest upper bound; likewise */
  uint32_t sure;          /* highest lower bound; likewise */
  double high, next_high; /* the highest upper bound, and the highest of the others */
  double low;             /* the highest lower bound */
};

/* Starts with all arms undecided in class 1. CV_ERR_NOMEM, with nothing to free. */
CV_MUST_USE enum cv_err cv_ranking_init(double alpha, bool by_leader, uint32_t arms, struct cv_ranking *ret);
void cv_ranking_fini(struct cv_ranking *self);

/* Whether an arm is in S; whether it is in S and undecided. */
bool cv_ranking_is_active(const struct cv_ranking *self, uint32_t i);
bool cv_ranking_is_undecided(const struct cv_ranking *self, uint32_t i);
struct cv_ranking_bounds cv_ranking_bounds_of(const struct cv_ranking *self);

/* From now on there are no tokens of arm i. If it is undecided after the next decisions, it is parked. */
void cv_ranking_exhaust(struct cv_ranking *self, uint32_t i);

/* Decides all that the present means and radii decide, and opens classes. Adds at most two decisions an arm to the
 * step, which must have room. True if the ranking is finished. */
bool cv_ranking_decide(struct cv_ranking *self, struct cv_policy_step *step);
/* No release will come any more: undecided arms, too, are told the classes that they can be in. */
void cv_ranking_close(struct cv_ranking *self);
/* After a change of an arm's mean and radius. */
void cv_ranking_touch(struct cv_ranking *self);
/* What an arm's class bears; all 0 where that is not known, as with an arm that is parked or below a parked one. */
struct cv_policy_lies cv_ranking_lies(const struct cv_ranking *self, uint32_t i);
/* The standing of an arm. Without a release its interval is [0,1]. Without a class its mean is the best estimate, and
 * its radius reaches to the farther end of its interval. */
void cv_ranking_standing(const struct cv_ranking *self, uint32_t i, struct cv_standing *ret);
/* Counts lies from now on; before the first release. A stored state does not hold the counts. */
void cv_ranking_count_lies(struct cv_ranking *self);
/* For parking.c: arm i is parked because arm `better` is surely no worse, which lies can turn. */
void cv_ranking_count_parking(struct cv_ranking *self, uint32_t i, uint32_t better);
/* Saves what is known of the parking of an arm and of its intervals so far, and loads it as the third version of a
 * policy's state has it, or the second; a loaded arm must be checked by is_plausible(). */
enum { CV_RANKING_STATE_BEFORE = 2, CV_RANKING_STATE = 3 };
void cv_ranking_save_arm(const struct cv_ranking *self, uint32_t i, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_ranking_load_arm(struct cv_ranking *self, uint32_t i, unsigned version,
                                            struct cv_reader *in);
/* For `load`: whether the class of a stored arm can be. */
bool cv_ranking_is_plausible(const struct cv_ranking *self, const struct cv_ranked *arm);

#endif
