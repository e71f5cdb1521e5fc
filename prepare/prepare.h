/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a campaign file for submission: checks it as far as a requester can, counts the arms, computes the true
 * means. */
#ifndef CV_PREPARE_H
#define CV_PREPARE_H

#include "common/campaign/campaign.h"
#include "thirdparty/policy/policy.h"
#include "worker/source.h"

struct cv_prepared {
  struct cv_campaign_file file; /* with a complete spec, the policy's defaults filled in */
  enum cv_policy_kind kind;
  struct cv_score_source source;
  uint64_t seed;     /* of the instance and the scores */
  const char **name; /* of each arm; an item that is gold is none; the texts are those of `source` */
  double *truth;     /* the true mean of each arm; NULL: nobody knows it */
};

/* Seed not set. */
#define CV_SEED_NONE UINT64_MAX

/*
 * Reads the file, and its data file if it names one. The seed is `seed`, else the file's, else a random one. The caller
 * frees *ret with cv_prepared_fini(). Errors are one line with file and line.
 */
CV_MUST_USE enum cv_err cv_prepare(const char *path, uint64_t seed, struct cv_prepared *ret, struct cv_why *why);
/* The same for a file that is loaded. Takes ownership of it, also on failure. */
CV_MUST_USE enum cv_err cv_prepare_file(struct cv_campaign_file *campaign, uint64_t seed, struct cv_prepared *ret,
                                        struct cv_why *why);
/* The same for a campaign file already in memory, for a simulation in one process: the policy may be one that needs the
 * true means. Takes ownership of the file, also on failure. For an adversary `truth` is NULL, since computing it costs
 * as much as the game. */
CV_MUST_USE enum cv_err cv_prepare_campaign(struct cv_campaign_file *campaign, uint64_t seed, struct cv_prepared *ret,
                                            struct cv_why *why);
/* The number of tokens that the first plan asks for; 0: it ends the campaign. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_prepare_first_tokens(const struct cv_prepared *prepared, uint64_t *ret, struct cv_why *why);
void cv_prepared_fini(struct cv_prepared *prepared);

#endif
