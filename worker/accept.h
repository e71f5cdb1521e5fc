/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker's own acceptance rules, which no broker can change. A worker sends no token for a campaign that asks for
 * less privacy than these rules.
 */
#ifndef CV_WORKER_ACCEPT_H
#define CV_WORKER_ACCEPT_H

#include "proto/codec/crowd.h"
#include "worker/privatizer/privatizer.h"

struct cv_accept {
  const char *requesters;  /* requesters whose campaigns the worker serves (party.h) */
  const char *privatizers; /* names, separated by commas or blanks */
  const char *mechanisms;  /* likewise */
  uint64_t epsilon_micro;  /* largest epsilon of a campaign: of its mechanism, and of its privatizer if that is local */
  uint64_t delta_pico;     /* largest delta of its privatizer, in 10^-12 */
  const struct cv_duo *pair; /* not empty: only campaigns with two brokers, of one of these pairs; else only with one */
  size_t pairs;
  /* Limit per worker over all campaigns, counted in scores: a token with several scores counts several times, a slot of
   * a campaign with two brokers once where its tokens that are not counted tell nothing; 0 = no limit. */
  uint64_t tokens;
};

/*
 * Reads the setting accept.pairs: BROKER+COBROKER, both the fingerprint of a key, separated by commas or blanks; NULL
 * or "" has none. The caller frees *ret, which is NULL without pairs. CV_ERR_INVALID with the reason, or CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_accept_read_pairs(const char *text, struct cv_duo **ret, size_t *ret_pairs,
                                             struct cv_why *why);
/* True if the list contains a privatizer with an epsilon. */
bool cv_accept_is_local(const char *privatizers);
/* Returns CV_OK if the worker serves this requester, else CV_ERR_DENIED with the reason. */
CV_MUST_USE enum cv_err cv_accept_requester(const struct cv_accept *accept, const char *requester, struct cv_why *why);
/* Checks the brokers of a campaign. `broker`: its key; `cobroker`: NULL if it is not connected, and then only known not
 * to be refused yet. CV_ERR_DENIED with the reason. */
CV_MUST_USE enum cv_err cv_accept_brokers(const struct cv_accept *accept, const struct cv_terms *terms,
                                          const struct cv_digest *broker, const struct cv_digest *cobroker,
                                          struct cv_why *why);
/* Checks the terms. CV_OK: *ret is the privatizer to apply, and the caller frees it. Else an error with the reason:
 * CV_ERR_DENIED, or that of cv_privatizer_new(). */
CV_MUST_USE enum cv_err cv_accept_terms(const struct cv_accept *accept, const struct cv_terms *terms,
                                        struct cv_privatizer **ret, struct cv_why *why);

#endif
