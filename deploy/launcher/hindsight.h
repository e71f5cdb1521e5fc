/* SPDX-License-Identifier: Apache-2.0 */
/* The gain of a campaign against an adversary, and the gain of the best single arm over the same rounds. */
#ifndef CV_LAUNCHER_HINDSIGHT_H
#define CV_LAUNCHER_HINDSIGHT_H

#include "deploy/launcher/export.h"
#include "worker/quality/adversary.h"

struct cv_hindsight {
  bool is_known;
  uint64_t rounds; /* pulls that were released to the policy */
  double gained;   /* true gains of the pulled arms in the order of the plans, before any privatizer */
  double best;     /* true gains of the best single arm over the same rounds */
  uint32_t arm;    /* the best single arm */
};

/* `export` must be complete; it may lack the releases, since exact ones are not exported. Only plans that were released
 * as a whole count. */
struct cv_hindsight cv_hindsight_of(const struct cv_adversary *adversary, const struct cv_export *export);

#endif
