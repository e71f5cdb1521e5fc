/* SPDX-License-Identifier: Apache-2.0 */
/* The section `gold` of a campaign file: items whose answer the requester knows (common/base/gold.h). */
#ifndef CV_CAMPAIGN_GOLD_H
#define CV_CAMPAIGN_GOLD_H

#include "common/base/gold.h"

struct cv_yaml;

/* The section as it stands in the file, and what it says of the campaign's items once they are known. */
struct cv_golds {
  uint32_t line;       /* of the section; 0: there is none */
  const char **name;   /* of each gold item, in the order of `gold.item` until that is numbered; owned */
  struct cv_gold gold; /* the items' numbers are set by cv_golds_number() */
};

/*
 * Reads `items`, a mapping of names to known scores, `tolerance`, and the probabilities `error`, `level` and `share`.
 * Internal to common/campaign.
 */
CV_MUST_USE enum cv_err cv_golds_load(struct cv_yaml *yaml, struct cv_golds *ret, struct cv_why *why);
/* Finds the gold items among all items by their names. CV_ERR_INVALID with a line if a name is not there, or twice.
 * Internal to common/campaign. */
CV_MUST_USE enum cv_err cv_golds_number(struct cv_golds *section, const char *const *name, uint32_t items,
                                        struct cv_why *why);
void cv_golds_fini(struct cv_golds *section);

/* Whether the item is gold; the numbers must be set. */
bool cv_golds_has(const struct cv_golds *section, uint32_t item);

#endif
