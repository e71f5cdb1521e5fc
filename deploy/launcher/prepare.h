/* SPDX-License-Identifier: Apache-2.0 */
/* A campaign file made ready to be handed in: checked as far as the requester can, arms counted, the truth at hand. */
#ifndef CV_LAUNCHER_PREPARE_H
#define CV_LAUNCHER_PREPARE_H

#include "common/config/campaign.h"
#include "thirdparty/policy/policy.h"
#include "worker/source.h"

struct cv_prepared {
  struct cv_campaign_file file; /* its spec is complete, the policy's defaults filled in */
  enum cv_policy_kind kind;
  struct cv_score_source source;
  uint64_t seed; /* of the instance and the scores */
  double *truth; /* the true mean of each arm */
};

/* A seed that was not given. */
#define CV_SEED_NONE UINT64_MAX

/*
 * Reads the file, and the data if it names some. The seed is the one given, else the file's, else drawn. Errors are one
 * line with file and line, and are the user's.
 */
CV_MUST_USE enum cv_err cv_prepare(const char *path, uint64_t seed, struct cv_prepared *ret, struct cv_why *why);
/* The same of a file that has been read, for a simulation in one process: its policy may be one that must be told the
 * truth. Takes the file, also on failure. Against an adversary the truth, which costs as much
 * as the game, is left out: NULL. */
CV_MUST_USE enum cv_err cv_prepare_campaign(struct cv_campaign_file *campaign, uint64_t seed, struct cv_prepared *ret,
                                            struct cv_why *why);
void cv_prepared_fini(struct cv_prepared *prepared);

#endif
