/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign's spec, as the broker and the third-party may know it: arm numbers and public parameters. The source of
 * scores, file paths and true means stay with the requester and the workers.
 */
#ifndef CV_BASE_SPEC_H
#define CV_BASE_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/names.h"
#include "common/base/params.h"

/* CV_NAME_BYTES: of a campaign, a party or a column, with its terminator; those of items are longer (names.h). */
enum { CV_NAME_BYTES = 64, CV_ARMS_MAX = 131072, CV_EDGES_MAX = 65536 };
/* Scores that one assignment may ask for: an arm and its neighbours. */
enum { CV_VALUES_MAX = 64 };
/* The most rounds that an assignment looks back, for simulated adversaries with a memory. */
enum { CV_MEMORY_MAX = 1000 };

/* An algorithm by name with its parameters. */
struct cv_choice {
  char name[CV_PARAM_TEXT];
  struct cv_params params;
};

/* Amounts of money are in millionths of the requester's unit. One token of any arm costs at most CV_COST_MAX_MICRO,
 * a campaign at most a million times as much; so the cost of 2^24 tokens of an arm fits 64 bits. */
#define CV_COST_MAX_MICRO   UINT64_C(1000000000000)
#define CV_BUDGET_MAX_MICRO (CV_COST_MAX_MICRO * 1000000)

/* The answers that the grid's 0 and 1 stand for, as the requester declares them. Both 0: not declared. */
struct cv_scale {
  double low, high;
};

/* Two neighbouring arms of the feedback graph. */
struct cv_edge {
  uint32_t a, b; /* a < b */
};

struct cv_spec {
  char name[CV_NAME_BYTES];
  uint32_t arms;      /* 1 .. CV_ARMS_MAX */
  const char **names; /* `arms` item names (names.h), owned; NULL unless the campaign says share_names */
  struct cv_choice policy;
  struct cv_choice mechanism;
  struct cv_choice privatizer;
  uint64_t epsilon_micro; /* limit of the mechanism for the stream of each arm */
  uint32_t tokens_per_worker;
  /* A worker may be asked the same question again, as its scores are drawn afresh each time. Else each item, or
   * unordered pair of items, is asked of a worker once; in a recruitment the arm is the worker. */
  bool repeat;
  bool thirdparty_trusted;
  uint64_t tokens;      /* limit of accepted tokens over all arms */
  uint64_t deadline_ms; /* after Submit; 0 = none */
  uint64_t idle_ms;     /* without an accepted token; 0 = none */
  /*
   * Recruitment: each arm is a worker that is paid for each of its tokens. Both arrays have `arms` elements, owned, or
   * are NULL. The third-party gets the costs, never the worker ids.
   */
  uint64_t *cost_micro;  /* of one token: 1 .. CV_COST_MAX_MICRO */
  uint64_t *worker;      /* ids, distinct, from 1; only if there are costs */
  uint64_t budget_micro; /* of all payments: 1 .. CV_BUDGET_MAX_MICRO; 0 without costs */
  /* Feedback graph: an assignment of an arm also asks for those of its neighbours that the plan names. */
  uint32_t edges;
  struct cv_edge *edge; /* `edges` of them in ascending order, each once, owned; NULL if there are none */
  /* A token compares its arm with an opponent: one bit, whether the arm wins. The opponent is another arm, drawn
   * uniformly by the broker or named by the plan. */
  bool pairs;
  /* Two brokers: tokens travel as two shares of so many bits (split.h). Both 0: one broker. */
  uint32_t brokers;    /* 0 or 2 */
  uint32_t score_bits; /* CV_SPLIT_BIT or CV_SPLIT_SCORE */
  /* Of scores in data files: every gateway uses this one. It is part of the question, never taken from answers. */
  struct cv_scale scale;
};

bool cv_scale_is_declared(const struct cv_scale *scale);
/* Whether both have the same ends, or both have none. */
bool cv_scale_is_same(const struct cv_scale *a, const struct cv_scale *b);

void cv_spec_fini(struct cv_spec *spec);
/* Makes a deep copy in uninitialised storage. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_spec_copy(const struct cv_spec *from, struct cv_spec *ret_to);
/* Range checks that need no algorithm table: name, arms, epsilon, tokens. */
CV_MUST_USE enum cv_err cv_spec_check(const struct cv_spec *spec, struct cv_why *why);
/* The number of different questions about so many items, or about the pairs of them. */
uint64_t cv_spec_all_questions(uint64_t items, bool pairs);
/* The number of different questions of which each is asked of a worker once, with `golds` gold items besides the arms;
 * 0: a worker may be asked one again, or gives one answer in all. */
uint64_t cv_spec_questions(const struct cv_spec *spec, uint32_t golds);
/* Whether tokens_per_worker is at most that number. CV_ERR_INVALID with the reason. */
CV_MUST_USE enum cv_err cv_spec_check_questions(const struct cv_spec *spec, uint32_t golds, struct cv_why *why);
/* Whether the mechanism adds noise; and whether the broker releases exact sums of unprivatized scores, having
 * neither mechanism noise nor a privatizer. */
bool cv_spec_has_noise(const struct cv_spec *spec);
bool cv_spec_is_exact(const struct cv_spec *spec);
/* Whether a privatizer randomizes each score. */
bool cv_spec_is_local(const struct cv_spec *spec);
/* The same of a campaign's mechanism and privatizer. */
bool cv_choices_are_exact(const struct cv_choice *mechanism, const struct cv_choice *privatizer);
/*
 * The smallest release: no plan asks for fewer tokens of an arm that it asks for. It is a parameter of every policy,
 * which the broker raises to its own (and its co-broker's) before the campaign begins; so it is stored, told and
 * replayed with the campaign. 1 if the policy has no such parameter, at most CV_PLAN_TOKENS_MAX.
 */
#define CV_RELEASE_TOKENS_KEY "release_tokens"
uint32_t cv_spec_release_tokens(const struct cv_spec *spec);
/* Raises it to `least`, if it is less. CV_ERR_LIMIT if the policy has no room for another parameter. */
CV_MUST_USE enum cv_err cv_spec_raise_release_tokens(struct cv_spec *spec, uint32_t least);
/* The number of tokens that the budget buys from the cheapest worker; 0 without recruitment. */
uint64_t cv_spec_hires(const struct cv_spec *spec);
/* The most arms that one assignment can show: 1, or with a feedback graph one more than the largest degree. Counts to
 * 65536. */
uint32_t cv_spec_shown_most(const struct cv_spec *spec);
/*
 * The largest epsilon that the campaign can cost one worker, in micro-epsilon: the cost of a score times the arms
 * that a token can show times the worker's tokens (for a paid worker, as many as the budget buys). Saturates at
 * UINT64_MAX.
 */
uint64_t cv_spec_worker_micro(const struct cv_spec *spec, uint64_t token_micro);
/* The cost to each contributing worker, in micro-epsilon, of a campaign that releases exact sums: above the largest
 * limit that an operator can set. */
#define CV_UNPROTECTED_MICRO ((uint64_t)UINT32_MAX)
/* One line of a name of a campaign or a column: printable UTF-8 (text.h), 1 .. CV_NAME_BYTES - 1 bytes. */
bool cv_name_is_valid(const char *text);

/* The stored form, little-endian, with a version byte. Decoding accepts only what encoding produces. */
void cv_spec_encode(const struct cv_spec *spec, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_spec_decode(struct cv_reader *in, struct cv_spec *ret_spec);

#endif
