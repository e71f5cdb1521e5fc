/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/campaign: the `items` section of a campaign file. */
#ifndef CV_CAMPAIGN_READ_ITEMS_H
#define CV_CAMPAIGN_READ_ITEMS_H

#include "common/campaign/items.h"
#include "common/campaign/section.h"
#include "common/config/document.h"

/* `section` is the mapping under `items`. */
CV_MUST_USE enum cv_err cv_items_load(struct cv_yaml *yaml, struct cv_yaml_pair section, struct cv_items *ret,
                                      struct cv_why *why);

/* The words for enum cv_rewards. */
extern const char *const cv_rewards_words[];
/* Rules shared by items and workers; `at` is the offset of the value. */
#define CV_REWARDS_WORDS_RULE(at, words, usual, says)                                                     \
  {                                                                                                       \
    .key = "rewards", .type = CV_CONFIG_WORD, .offset = (at), .choices = (words), .noun = "reward model", \
    .fallback = (usual), .help = (says)                                                                   \
  }
#define CV_REWARDS_RULE(at, usual) \
  CV_REWARDS_WORDS_RULE(at, cv_rewards_words, usual, "the law of simulated scores around an item's mean")
#define CV_SPREAD_RULE(at)                                                                             \
  {                                                                                                    \
    .key = "spread", .type = CV_CONFIG_REAL, .offset = (at), .high = 1e6, .example = "0.2",            \
    .help =                                                                                            \
        "standard deviation of normal scores (0.1 unless said), or concentration a + b of beta scores" \
        " (10 unless said); bernoulli scores have none"                                                \
  }
#define CV_SEED_RULE(at)                                                                                 \
  {                                                                                                      \
    .key = "seed", .type = CV_CONFIG_WHOLE, .offset = (at), .high = 0x1p64, .example = "7",              \
    .help = "makes what is drawn repeatable; a command's --seed overrides it; without both it is random" \
  }
/* The default spread of a law. */
double cv_spread_usual(enum cv_rewards rewards);
/* Checks a given spread: 0 is invalid for beta and truncated normal laws. */
CV_MUST_USE enum cv_err cv_spread_take(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section,
                                       enum cv_rewards rewards, double spread, double *ret, struct cv_why *why);
/* Compares two items by their index, as qsort_r() does; `given` is the section. */
typedef int cv_given_compare(const void *a, const void *b, void *given);
/* Finds the first item that repeats an earlier one; given->count if there is none. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_given_repeated(struct cv_items_given *given, cv_given_compare *compare, uint32_t *ret);

#endif
