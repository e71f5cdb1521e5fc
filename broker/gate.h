/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may leave the broker: one table over (privatizer, mechanism, epoch size), and the operator's limits. Every
 * campaign passes here before it is accepted and every plan before it is opened.
 */
#ifndef CV_BROKER_GATE_H
#define CV_BROKER_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/local.h"
#include "common/base/spec.h"

/* The operator's limits. */
struct cv_broker_limits {
  uint64_t epsilon_micro;        /* largest epsilon of what a campaign lets the third-party see */
  uint64_t delta_pico;           /* largest delta of its privatizer, in 10^-12 */
  uint64_t worker_epsilon_micro; /* lifetime epsilon of a worker over all campaigns, at most UINT32_MAX */
  uint32_t release_tokens;       /* smallest number of tokens in a release, unless each token is protected by itself */
  uint32_t arms;
  uint32_t campaigns; /* open at once, per requester */
  uint32_t submits;   /* in a minute, per requester, and no more than are kept; 0: any number */
  uint32_t kept; /* open and ended, per requester; one more, and the one that ended first is forgotten; 0: any number */
  uint64_t tokens; /* largest token limit of a campaign */
  uint32_t chunks; /* 4 KiB chunks of the workers' tables, per campaign */
  uint32_t lease_ms;
  uint32_t queue;          /* workers waiting, per connection */
  uint64_t retention_ms;   /* after its end a campaign is forgotten; 0: not for its age */
  bool trusted_thirdparty; /* accept campaigns that give their third-party exact sums, which protect no worker */
  bool unsafe_mechanisms;  /* accept what is known to protect less than it says, for experiments */
};

enum {
  CV_TOKENS_PER_WORKER_MAX = 65535,
  CV_PLAN_TOKENS_MAX = 1 << 24, /* of one arm in one plan */
};
/* Worker ids are below this, so that id x tokens_per_worker fits 64 bits. */
#define CV_WORKER_ID_END (UINT64_C(1) << 48)

/* What follows from a campaign's choice of privatizer and mechanism. */
struct cv_privacy {
  struct cv_local local;
  struct cv_mechanism_law law;
  /* Of one token to its worker: of the two guarantees the smaller, each covers all that leaves. Behind a mechanism the
   * privatizer's is the one without delta: the mechanism's holds for certain, and what is charged does. */
  uint64_t cost_micro;   /* CV_UNPROTECTED_MICRO where neither is there */
  uint32_t least_tokens; /* smallest epoch that may be released */
  bool is_exact;         /* sums of the scores themselves leave */
};

/*
 * `spec` is completed with what the mechanism derives from it (cv_mechanism_law_init): the most releases of an arm come
 * from its token limit, and the policy's tokens_per_round or the smallest epoch. The operator's limits on what a
 * campaign may ask are not looked at. CV_ERR_DENIED, CV_ERR_INVALID or CV_ERR_NOT_FOUND with the reason.
 */
CV_MUST_USE enum cv_err cv_privacy_init(struct cv_spec *spec, const struct cv_broker_limits *limits,
                                        struct cv_privacy *ret, struct cv_why *why);
/* Charges as version 0.1.0 did, for a campaign that it accepted: a privatizer's epsilon although it has a delta, and
 * the campaign's although its exact sums leave. True if that is less than is charged today. */
bool cv_privacy_as_before(struct cv_privacy *privacy, const struct cv_spec *spec);
/* Whoever gives to the campaign is unprotected: its account is charged as unlimited. */
bool cv_privacy_is_unprotected(const struct cv_privacy *privacy);
/* The most that the campaign can cost one worker, micro-epsilon. */
uint64_t cv_privacy_worker_micro(const struct cv_privacy *privacy, const struct cv_spec *spec);
/* What the third-party's view of one arm has cost after n releases, micro-epsilon. */
uint64_t cv_privacy_spent_micro(const struct cv_privacy *privacy, uint64_t n);

/* The most that it can come to. */
uint64_t cv_privacy_limit_micro(const struct cv_privacy *privacy);
/* The chance with which what the third-party sees may cost more than that, in 10^-12. */
uint64_t cv_privacy_delta_pico(const struct cv_privacy *privacy);
/* What is promised, in one line. */
const char *cv_privacy_guarantee(const struct cv_privacy *privacy);

/* CV_ERR_DENIED, CV_ERR_INVALID or CV_ERR_NOT_FOUND with the reason if the campaign may not run here. */
CV_MUST_USE enum cv_err cv_gate_spec(const struct cv_spec *spec, const struct cv_broker_limits *limits,
                                     struct cv_why *why);

#endif
