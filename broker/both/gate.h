/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may leave the broker: rules over (privatizer, mechanism, epoch size), and the operator's limits. Every campaign
 * is checked here before it is accepted, and every plan before it is opened.
 */
#ifndef CV_BROKER_BOTH_GATE_H
#define CV_BROKER_BOTH_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/local.h"
#include "common/base/spec.h"

/* Limits that the operator configures. */
struct cv_gate_limits {
  uint64_t epsilon_micro;        /* largest epsilon of a campaign's output to the third-party */
  uint64_t delta_pico;           /* largest delta of its privatizer, in 10^-12 */
  uint64_t worker_epsilon_micro; /* lifetime epsilon of a worker over all campaigns, at most UINT32_MAX */
  uint32_t release_tokens;       /* smallest number of tokens in a release, unless a privatizer protects each token */
  uint32_t arms;
  uint32_t campaigns; /* open at once, per requester */
  uint32_t submits;   /* per minute and requester, at most `kept`; 0: unlimited */
  uint32_t kept;      /* open and ended, per requester; beyond it the one that ended first is forgotten; 0: unlimited */
  uint64_t tokens;    /* largest token limit of a campaign */
  uint32_t chunks;    /* 4 KiB chunks of the workers' tables, per campaign */
  uint32_t lease_ms;
  uint32_t queue;          /* workers waiting, per connection */
  uint64_t retention_ms;   /* an ended campaign is forgotten after this time; 0: never because of its age */
  bool trusted_thirdparty; /* accept campaigns that send exact sums to a third-party and protect no worker */
  bool unsafe_mechanisms;  /* accept mechanisms known to protect less than their epsilon, for experiments */
  bool alone;              /* there is no other broker: refuse campaigns with two */
  bool is_cobroker;        /* they are a co-broker's: whose limits a refusal names */
};

enum {
  CV_TOKENS_PER_WORKER_MAX = 65535,
};
/* Worker ids are below this value, so that id * tokens_per_worker fits 64 bits. */
#define CV_WORKER_ID_END (UINT64_C(1) << 48)

/* The consequences of a campaign's choice of privatizer and mechanism. */
struct cv_privacy {
  struct cv_local local;
  struct cv_mechanism_law law;
  /* Cost of one token to its worker: the smaller of the two guarantees, each of which covers everything that leaves.
   * Behind a mechanism, a privatizer counts only if its delta is 0: the mechanism's guarantee is unconditional, and the
   * charge must be, too. A campaign that counts neutral tokens (common/base/gold.h) adds the cost of that. */
  uint64_t cost_micro;   /* CV_UNPROTECTED_MICRO if there is neither privatizer nor mechanism */
  uint32_t least_tokens; /* smallest epoch that may be released */
  bool is_exact;         /* exact sums of the scores leave the broker */
};

/* Raises the campaign's smallest release to what these limits demand of it: nothing if a privatizer protects each
 * token. The errors of cv_local_init(), and CV_ERR_DENIED. */
CV_MUST_USE enum cv_err cv_gate_raise(struct cv_spec *spec, const struct cv_gate_limits *limits, struct cv_why *why);
/*
 * Completes `spec` with what the mechanism derives from it (cv_mechanism_law_init): the largest number of releases of
 * an arm follows from its token limit and from the policy's tokens_per_round or the smallest release. All of it follows
 * from the spec: an accepted campaign keeps the smallest release that it was raised to, whatever the operator's limits
 * are later. CV_ERR_DENIED, CV_ERR_INVALID or CV_ERR_NOT_FOUND with the reason.
 */
CV_MUST_USE enum cv_err cv_privacy_init(struct cv_spec *spec, struct cv_privacy *ret, struct cv_why *why);
/* Of a stored campaign whose spec does not say its smallest release, as before specs had it: that of these limits,
 * unless a privatizer protects each token. */
void cv_gate_keep_least(const struct cv_spec *spec, const struct cv_gate_limits *limits, struct cv_privacy *privacy);
/* Adds what each token costs its worker beside the releases. */
void cv_privacy_add_cost(struct cv_privacy *privacy, uint64_t micro);
/* Whether the campaign leaves its workers unprotected: their accounts are then charged as unlimited. */
bool cv_privacy_is_unprotected(const struct cv_privacy *privacy);
/* The most that the campaign can cost one worker, in micro-epsilon. */
uint64_t cv_privacy_worker_micro(const struct cv_privacy *privacy, const struct cv_spec *spec);
/* The cost of the third-party's view of one arm after n releases, in micro-epsilon. */
uint64_t cv_privacy_spent_micro(const struct cv_privacy *privacy, uint64_t n);

/* Upper bound of cv_privacy_spent_micro() for every n. */
uint64_t cv_privacy_limit_micro(const struct cv_privacy *privacy);
/* The probability that the third-party's view costs more than that bound, in 10^-12. */
uint64_t cv_privacy_delta_pico(const struct cv_privacy *privacy);
/* The guarantee, in one line. */
const char *cv_privacy_guarantee(const struct cv_privacy *privacy);

/* CV_ERR_DENIED, CV_ERR_INVALID or CV_ERR_NOT_FOUND with the reason if the party may not run the campaign. */
/* A co-broker's limits also apply to the smallest release, which the broker has raised for both. */
CV_MUST_USE enum cv_err cv_gate_spec(const struct cv_spec *spec, const struct cv_gate_limits *limits,
                                     struct cv_why *why);
/* The same for a campaign whose tokens cost their workers so much beside the releases. */
CV_MUST_USE enum cv_err cv_gate_beside(const struct cv_spec *spec, uint64_t beside_micro,
                                       const struct cv_gate_limits *limits, struct cv_why *why);

#endif
