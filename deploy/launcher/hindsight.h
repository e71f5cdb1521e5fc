/* SPDX-License-Identifier: Apache-2.0 */
/* What a campaign against an adversary has gained, and what its best arm would have, on the very gains that were
 * there. */
#ifndef CV_LAUNCHER_HINDSIGHT_H
#define CV_LAUNCHER_HINDSIGHT_H

#include "deploy/launcher/export.h"
#include "worker/quality/adversary.h"

struct cv_hindsight {
  bool is_known;
  uint64_t rounds; /* pulls of which the policy was told */
  double gained;   /* true gains of the arms that were pulled, as rounds were planned; before any privatizer */
  double best;     /* of the best single arm over the same rounds */
  uint32_t arm;    /* which that is */
};

/* `export` is complete; it need not have the releases, which are not told where they are exact. Plans count that were
 * released as a whole. */
struct cv_hindsight cv_hindsight_of(const struct cv_adversary *adversary, const struct cv_export *export);

/* Takes a part of the campaign's export in; with the last one *ret becomes known. CV_ERR_FORMAT, _LIMIT or _NOMEM, with
 * a line. */
CV_MUST_USE enum cv_err cv_hindsight_take(const struct cv_adversary *adversary, struct cv_export *export,
                                          const struct cv_part *part, struct cv_hindsight *ret, struct cv_why *why);

#endif
