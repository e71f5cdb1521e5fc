/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A campaign as the broker and the third-party may know it: arm numbers and public parameters. Where scores come from,
 * file paths and the truth stay with the requester and the workers.
 */
#ifndef CV_BASE_SPEC_H
#define CV_BASE_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/params.h"

enum { CV_NAME_BYTES = 64, CV_ARMS_MAX = 4096, CV_EDGES_MAX = 65536 };
/* Scores that one assignment may ask for: an arm and its neighbours. */
enum { CV_VALUES_MAX = 64 };

struct cv_label {
  char text[CV_NAME_BYTES];
};

/* An algorithm by name with its parameters. */
struct cv_choice {
  char name[CV_PARAM_TEXT];
  struct cv_params params;
};

/* Money is in millionths of the requester's unit, too. One token of any arm costs at most this, all of them at most a
 * million times as much: 2^24 tokens of an arm fit 64 bits. */
#define CV_COST_MAX_MICRO   UINT64_C(1000000000000)
#define CV_BUDGET_MAX_MICRO (CV_COST_MAX_MICRO * 1000000)

/* Two arms that show each other's scores. */
struct cv_edge {
  uint32_t a, b; /* a < b */
};

struct cv_spec {
  char name[CV_NAME_BYTES];
  uint32_t arms;          /* 1 .. CV_ARMS_MAX */
  struct cv_label *names; /* `arms` item names, owned; NULL unless the campaign says share_names */
  struct cv_choice policy;
  struct cv_choice mechanism;
  struct cv_choice privatizer;
  uint64_t epsilon_micro; /* what the mechanism may spend per arm's stream */
  uint32_t tokens_per_worker;
  bool thirdparty_trusted;
  uint64_t tokens;      /* limit of accepted tokens over all arms */
  uint64_t deadline_ms; /* after Submit; 0 = none */
  uint64_t idle_ms;     /* without an accepted token; 0 = none */
  /*
   * Recruitment: each arm is a worker that is paid for each of its tokens. Both have `arms` elements, owned, or are
   * NULL; the third-party is told costs only.
   */
  uint64_t *cost_micro;  /* of one token: 1 .. CV_COST_MAX_MICRO */
  uint64_t *worker;      /* ids, each once, from 1; with costs only */
  uint64_t budget_micro; /* of all payments: 1 .. CV_BUDGET_MAX_MICRO; 0 without costs */
  /* Feedback graph: who is asked for an arm is asked for its neighbours too, as far as a plan says. */
  uint32_t edges;
  struct cv_edge *edge; /* `edges` of them in ascending order, each once, owned; NULL if there are none */
};

void cv_spec_fini(struct cv_spec *spec);
/* A deep copy into storage that is not initialised. */
CV_MUST_USE enum cv_err cv_spec_copy(const struct cv_spec *from, struct cv_spec *ret_to);
/* Range checks that need no algorithm table: name, arms, epsilon, tokens. */
CV_MUST_USE enum cv_err cv_spec_check(const struct cv_spec *spec, struct cv_why *why);
/* How many tokens the budget buys of the cheapest worker; 0 where nobody is paid. */
uint64_t cv_spec_hires(const struct cv_spec *spec);
/* The most arms that one assignment can show: 1, or with a feedback graph one more than the largest degree. */
uint32_t cv_spec_shown_most(const struct cv_spec *spec);
/* The most that the campaign can cost one worker: what a score costs times what a token of it can show times its
 * tokens, of which a paid worker may give as many as the budget buys. Micro-epsilon; stops at the end of its range. */
uint64_t cv_spec_worker_micro(const struct cv_spec *spec, uint64_t token_micro);
/* What a campaign whose exact sums leave costs each worker that gives to it, however much it gives: more than the
 * largest limit that an operator can set. */
#define CV_UNPROTECTED_MICRO ((uint64_t)UINT32_MAX)
/* One line of a name: printable UTF-8 (text.h), 1 .. CV_NAME_BYTES - 1 bytes. */
bool cv_name_is_valid(const char *text);

/* The stored form, little-endian, with a version byte. Decoding takes only what encoding gave. */
void cv_spec_encode(const struct cv_spec *spec, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_spec_decode(struct cv_reader *in, struct cv_spec *ret_spec);

#endif
