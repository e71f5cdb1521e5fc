/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/campaign: the `items` section of a campaign file. */
#ifndef CV_CAMPAIGN_READ_ITEMS_H
#define CV_CAMPAIGN_READ_ITEMS_H

#include "common/campaign/items.h"
#include "common/config/document.h"

/* `section` is the mapping under `items`. */
CV_MUST_USE enum cv_err cv_items_load(struct cv_yaml *yaml, struct cv_yaml_pair section, struct cv_items *ret,
                                      struct cv_why *why);

/* The words for enum cv_rewards. */
extern const char *const cv_rewards_words[];
/* Rules shared by items and workers; `at` is the offset of the value. */
#define CV_REWARDS_WORDS_RULE(at, words, usual)                                                           \
  {                                                                                                       \
    .key = "rewards", .type = CV_CONFIG_WORD, .offset = (at), .choices = (words), .noun = "reward model", \
    .fallback = (usual)                                                                                   \
  }
#define CV_REWARDS_RULE(at, usual) CV_REWARDS_WORDS_RULE(at, cv_rewards_words, usual)
#define CV_SPREAD_RULE(at) \
  { .key = "spread", .type = CV_CONFIG_REAL, .offset = (at), .high = 1e6 }
#define CV_SEED_RULE(at) \
  { .key = "seed", .type = CV_CONFIG_WHOLE, .offset = (at), .high = 0x1p64 }
/* The default spread of a law. */
double cv_spread_usual(enum cv_rewards rewards);
/* Checks a given spread: 0 is invalid for beta and truncated normal laws. */
CV_MUST_USE enum cv_err cv_spread_take(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section,
                                       enum cv_rewards rewards, double spread, double *ret, struct cv_why *why);

#endif
