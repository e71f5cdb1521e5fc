/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker accepts: its own list, which no broker can change. A curious broker that asks for less privacy than
 * this gets no token.
 */
#ifndef CV_WORKER_ACCEPT_H
#define CV_WORKER_ACCEPT_H

#include "proto/codec/crowd.h"
#include "worker/privatizer/privatizer.h"

struct cv_accept {
  const char *requesters;  /* whose campaigns are served (party.h) */
  const char *privatizers; /* names, separated by commas or blanks */
  const char *mechanisms;  /* likewise */
  uint64_t epsilon_micro;  /* largest epsilon of a campaign: of its mechanism, and of its privatizer if that is local */
  uint64_t delta_pico;     /* largest delta of its privatizer, in 10^-12 */
  uint64_t tokens;         /* each worker gives over all campaigns, one that shows several scores counting as so
                              many; 0 = no limit of its own */
};

/* The mechanisms that a broker may have, by name, NULL at the end. */
extern const char *const cv_accept_mechanisms[];

/* Whether the list has a privatizer that protects a score by an epsilon. */
bool cv_accept_is_local(const char *privatizers);
/* Whether it is served; otherwise CV_ERR_DENIED and the reason. */
CV_MUST_USE enum cv_err cv_accept_requester(const struct cv_accept *accept, const char *requester, struct cv_why *why);
/* CV_OK and the privatizer to apply, which the caller frees; otherwise the reason, e.g. CV_ERR_DENIED. */
CV_MUST_USE enum cv_err cv_accept_terms(const struct cv_accept *accept, const struct cv_terms *terms,
                                        struct cv_privatizer **ret, struct cv_why *why);

#endif
