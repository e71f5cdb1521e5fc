/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/gold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "common/campaign/section.h"
#include "common/config/rules.h"

struct form {
  double tolerance, error, level, share, epsilon;
};

#define PROBABILITY(name, most, usual, says)                                                                        \
  {                                                                                                                 \
    .key = #name, .type = CV_CONFIG_REAL, .offset = offsetof(struct form, name), .low = 1e-6, .high = (most) / 1e6, \
    .fallback = (usual), .help = (says)                                                                             \
  }

static const struct cv_config_rule rules[] = {
    {.key = "items",
     .type = CV_CONFIG_OTHER,
     .noun = "items with their known scores, like {Aurora: 0.9}",
     .required = true,
     .example = "{Aurora: 0.9, Basement: 0.1}",
     .help = "names of items with their known scores, 0 to 1; at most 256"},
    {.key = "tolerance",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct form, tolerance),
     .high = 0.999999,
     .required = true,
     .example = "0.25",
     .help = "an answer farther from the known score is wrong, in scores"},
    PROBABILITY(error, CV_GOLD_ERROR_MAX, "0.1", "how often an honest worker's answer is wrong at most"),
    PROBABILITY(level, CV_GOLD_LEVEL_MAX, "0.001", "the probability that an honest worker is found, at most"),
    PROBABILITY(share, CV_GOLD_SHARE_MAX, "0.1", "of a worker's assignments that ask a gold item"),
    PROBABILITY(epsilon, CV_GOLD_EPSILON_MAX, "0.1",
                "of the noisy numbers of tokens that found workers gave: charged for each token beside the campaign's"),
};

const struct cv_campaign_section cv_gold_sections[] = {
    CV_CAMPAIGN_SECTION_OF("gold", NULL, "Items whose scores the requester knows, which find workers who lie.", rules),
    {0},
};

static enum cv_err take_item(struct cv_yaml *yaml, struct cv_yaml_pair pair, struct cv_names *names,
                             struct cv_gold_item *ret, struct cv_why *why) {
  double score;
  char name[CV_ITEM_BYTES];
  CV_TRY(cv_yaml_name(yaml, pair.key, "a key of gold.items", "the name of an item", name, sizeof(name), why));
  if (pair.value->type != YAML_SCALAR_NODE || !cv_value_real(cv_yaml_text(pair.value), &score) || score < 0 ||
      score > 1) {
    return cv_yaml_expected(yaml, pair.value, "a known score in gold.items", "a number from 0 to 1", why);
  }
  cv_names_add(names, name);
  *ret = (struct cv_gold_item){.answer = cv_grid_from(score)};
  return CV_OK;
}

static enum cv_err take_items(struct cv_yaml *yaml, struct cv_yaml_pair items, struct cv_golds *section,
                              struct cv_why *why) {
  static const char expected[] = "items with their known scores, like {Aurora: 0.9}";
  const yaml_node_t *mapping = items.value;
  if (mapping->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, mapping, "gold.items", expected, why);
  }
  size_t n = cv_yaml_pairs(mapping);
  if (n == 0 || n > CV_GOLD_MAX) {
    return cv_yaml_fail(yaml, mapping, why, "gold.items has %zu items; expected 1 to %d", n, CV_GOLD_MAX);
  }
  CV_TRY(cv_yaml_keys(yaml, mapping, "gold.items", NULL, 0, why));
  section->gold.item = calloc(n, sizeof(*section->gold.item));
  if (section->gold.item == NULL) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  section->gold.items = (uint32_t)n;
  struct cv_names names = {0};
  enum cv_err err = CV_OK;
  for (size_t i = 0; i < n && err == CV_OK; i++) {
    err = take_item(yaml, cv_yaml_pair(yaml, mapping, i), &names, &section->gold.item[i], why);
  }
  if (err == CV_OK && cv_names_take(&names, &section->name) != CV_OK) {
    err = cv_yaml_no_memory(yaml->path, why);
  }
  cv_names_fini(&names);
  return err;
}

static uint32_t micro(double probability) {
  return (uint32_t)lround(probability * 1e6);
}

enum cv_err cv_golds_load(struct cv_yaml *yaml, struct cv_golds *ret, struct cv_why *why) {
  struct cv_yaml_pair pair = cv_yaml_find(yaml, yaml->root, "gold");
  struct form form = {0};
  if (pair.key == NULL) {
    return CV_OK;
  }
  if (pair.value->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, pair.value, "gold", "a mapping of keys and values", why);
  }
  CV_TRY(cv_section_load(yaml, pair.value, "gold", rules, CV_COUNT(rules), &form, why));
  struct cv_yaml_pair items = cv_yaml_find(yaml, pair.value, "items");
  ret->line = cv_yaml_line(pair.key);
  CV_TRY(take_items(yaml, items, ret, why));
  ret->gold.tolerance = cv_grid_from(form.tolerance);
  ret->gold.error_micro = micro(form.error);
  ret->gold.level_micro = micro(form.level);
  ret->gold.share_micro = micro(form.share);
  ret->gold.epsilon_micro = micro(form.epsilon);
  return CV_OK;
}

static int by_number(const void *a, const void *b) {
  uint32_t x = ((const struct cv_gold_item *)a)->item, y = ((const struct cv_gold_item *)b)->item;
  return (x > y) - (x < y);
}

enum cv_err cv_golds_number(struct cv_golds *section, const char *const *name, uint32_t items, struct cv_why *why) {
  for (uint32_t i = 0; i < section->gold.items; i++) {
    uint32_t found = 0;
    for (uint32_t j = 0; j < items; j++) {
      if (strcmp(name[j], section->name[i]) == 0) {
        section->gold.item[i].item = j;
        found++;
      }
    }
    if (found != 1) {
      return cv_fail(why, CV_ERR_INVALID, "gold.items names \"%s\", which %s; expected the name of one item",
                     section->name[i], found == 0 ? "is no item" : "several items have");
    }
  }
  qsort(section->gold.item, section->gold.items, sizeof(*section->gold.item), by_number);
  for (uint32_t i = 1; i < section->gold.items; i++) {
    if (section->gold.item[i].item == section->gold.item[i - 1].item) { /* typed in two ways */
      return cv_fail(why, CV_ERR_INVALID, "gold.items names \"%s\" twice; expected each item once",
                     cv_text_piece(name[section->gold.item[i].item]).text);
    }
  }
  return CV_OK;
}

void cv_golds_fini(struct cv_golds *section) {
  free(section->name);
  cv_gold_fini(&section->gold);
  *section = (struct cv_golds){0};
}

bool cv_golds_has(const struct cv_golds *section, uint32_t item) {
  for (uint32_t i = 0; i < section->gold.items; i++) {
    if (section->gold.item[i].item == item) {
      return true;
    }
  }
  return false;
}
