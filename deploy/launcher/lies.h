/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lies a ranking bears: the numbers of false tokens below which its classes stand. The requester finds out by
 * itself, with the policy and the releases of an export; thirdparty/policy/ranking.h has the definition.
 */
#ifndef CV_LAUNCHER_LIES_H
#define CV_LAUNCHER_LIES_H

#include "deploy/launcher/export.h"
#include "thirdparty/policy/policy.h"

struct cv_lies {
  struct cv_policy_lies *of_arm; /* as cv_policy_lies(); owned; NULL: not known */
  uint32_t arms;
  double *need;                /* with of_arm: as cv_policy_need(), found by the same run; owned */
  struct cv_policy_lies least; /* over all arms with a class */
  /* In a campaign that counts neutral tokens (common/base/gold.h): of each arm the noisy number, how far it may be
   * off, and a bound of all of them; each holds but for a probability of .001. Neutral tokens are false ones, and the
   * numbers of others that the classes bear are less by so many: 0 where there may be too many already. */
  int64_t *neutral; /* by arm; owned; NULL: not counted */
  double neutral_radius;
  uint64_t neutral_most;
  uint32_t tokens_per_worker; /* the most tokens that a worker can give in the campaign */
  struct cv_why unknown;      /* why they are not known, one line; empty if they are, or if the export was not read */
};

/* `export` must be complete. CV_ERR_NOMEM; anything else that prevents an answer is said in `unknown`. */
CV_MUST_USE enum cv_err cv_lies_of(const struct cv_export *export, struct cv_lies *ret);
void cv_lies_fini(struct cv_lies *lies);

/* Whether it is a number: neither 0, not known, nor CV_LIES_NEVER. */
bool cv_lies_is_number(uint64_t lies);
/* The fewest workers that can give so many tokens; for a number. */
uint64_t cv_lies_workers(const struct cv_lies *lies, uint64_t tokens);

#endif
