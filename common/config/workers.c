/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who can be hired: workers with a cost and a quality each (a list), workers drawn at random (`synthetic: {...}`), or
 * the drivers of a file of taxi trips (`source: taxi`), whose cost goes with the miles of their trips.
 */
#include "common/config/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/config/items.h"
#include "common/config/rules.h"

#define ID_MAX (UINT64_C(1) << 47)

static const char *const source_words[] = {"taxi", NULL};

struct form {
  int source, rewards;
  double quality, spread, cost_low, cost_high, cost_per_mile;
  uint64_t id, count, seed, area, top, least_trips;
  char *path;
};

#define FIELD(name) offsetof(struct form, name)
#define REWARDS_RULE(usual)                                                                          \
  {                                                                                                  \
    .key = "rewards", .type = CV_CONFIG_WORD, .offset = FIELD(rewards), .choices = cv_rewards_words, \
    .fallback = (usual)                                                                              \
  }
#define SEED_RULE \
  { .key = "seed", .type = CV_CONFIG_WHOLE, .offset = FIELD(seed), .high = 0x1p64 }
#define SPREAD_RULE \
  { .key = "spread", .type = CV_CONFIG_REAL, .offset = FIELD(spread), .high = 1e6 }

static const struct cv_config_rule list_rules[] = {REWARDS_RULE("bernoulli"), SPREAD_RULE, SEED_RULE};
static const char *const list_others[] = {"list"};

static const struct cv_config_rule worker_rules[] = {
    {.key = "id", .type = CV_CONFIG_WHOLE, .offset = FIELD(id), .low = 1, .high = (double)ID_MAX, .required = true},
    {.key = "quality", .type = CV_CONFIG_REAL, .offset = FIELD(quality), .high = 1, .required = true},
    SPREAD_RULE,
};
static const char *const worker_others[] = {"cost"};

static const struct cv_config_rule synthetic_rules[] = {
    {.key = "count", .type = CV_CONFIG_WHOLE, .offset = FIELD(count), .low = 1, .high = CV_ARMS_MAX, .required = true},
    {.key = "cost_low", .type = CV_CONFIG_REAL, .offset = FIELD(cost_low), .low = 1e-6, .high = 1e6, .fallback = "1"},
    {.key = "cost_high",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(cost_high),
     .low = 1e-6,
     .high = 1e6,
     .fallback = "10"},
    REWARDS_RULE("truncated-normal"),
    SEED_RULE,
};

static const struct cv_config_rule taxi_rules[] = {
    {.key = "source", .type = CV_CONFIG_WORD, .offset = FIELD(source), .choices = source_words, .required = true},
    {.key = "path", .type = CV_CONFIG_PATH, .offset = FIELD(path), .required = true},
    {.key = "area", .type = CV_CONFIG_WHOLE, .offset = FIELD(area), .low = 1, .high = 1e9},
    {.key = "top", .type = CV_CONFIG_WHOLE, .offset = FIELD(top), .low = 1, .high = CV_ARMS_MAX},
    {.key = "least_trips", .type = CV_CONFIG_WHOLE, .offset = FIELD(least_trips), .low = 1, .high = 1e9},
    {.key = "cost_per_mile",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(cost_per_mile),
     .low = 1e-6,
     .high = 1e6,
     .fallback = "1"},
    REWARDS_RULE("truncated-normal"),
    SEED_RULE,
};

enum cv_err cv_money_take(struct cv_yaml *yaml, const yaml_node_t *node, const char *name, uint64_t most,
                          uint64_t *ret_micro, struct cv_why *why) {
  uint64_t micro;
  if (node->type != YAML_SCALAR_NODE || !cv_value_micro(cv_yaml_text(node), &micro) || micro == 0 || micro > most) {
    char expected[96];
    (void)snprintf(expected, sizeof(expected), "a number above 0 and at most %.0f, with at most 6 decimals",
                   (double)most / (double)CV_MICRO);
    return cv_yaml_expected(yaml, node, name, expected, why);
  }
  *ret_micro = micro;
  return CV_OK;
}

static enum cv_err check_new(struct cv_yaml *yaml, const yaml_node_t *node, const struct cv_items *items, uint64_t id,
                             struct cv_why *why) {
  for (uint32_t i = 0; i < items->items; i++) {
    if (items->item[i].id == id) {
      return cv_yaml_fail(yaml, node, why, "a second worker %" PRIu64 "; expected ids that differ", id);
    }
  }
  return CV_OK;
}

static enum cv_err load_worker(struct cv_yaml *yaml, const yaml_node_t *node, struct cv_items *items,
                               struct cv_why *why) {
  static const char section[] = "workers.list";
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, node, "a worker", "a mapping like {id: 1, cost: 2.5, quality: 0.7}", why);
  }
  struct form form = {0};
  struct cv_item *item = &items->item[items->items];
  CV_TRY(cv_section_load(yaml, node, section, worker_rules, CV_COUNT(worker_rules), worker_others,
                         CV_COUNT(worker_others), &form, why));
  const yaml_node_t *cost = cv_yaml_find(yaml, node, "cost").value;
  if (cost == NULL) {
    return cv_yaml_fail(yaml, node, why, "%s.cost is missing; expected what a token of the worker costs", section);
  }
  CV_TRY(cv_money_take(yaml, cost, "workers.list.cost", CV_COST_MAX_MICRO, &item->cost_micro, why));
  bool has_spread = cv_yaml_find(yaml, node, "spread").key != NULL;
  CV_TRY(cv_spread_take(yaml, node, section, items->rewards, has_spread ? form.spread : items->spread, &item->spread,
                        why));
  CV_TRY(check_new(yaml, node, items, form.id, why));
  item->id = form.id;
  item->mean = form.quality;
  (void)snprintf(item->name, sizeof(item->name), "worker %" PRIu64, form.id);
  items->items++;
  return CV_OK;
}

static enum cv_err load_list(struct cv_yaml *yaml, const yaml_node_t *list, struct cv_items *ret, struct cv_why *why) {
  if (list->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(yaml, list, "workers.list", "a list of workers", why);
  }
  size_t n = cv_yaml_items(list);
  if (n < 1 || n > CV_ARMS_MAX) {
    return cv_yaml_fail(yaml, list, why, "%zu workers; expected 1 to %d", n, CV_ARMS_MAX);
  }
  ret->source = CV_SOURCE_GIVEN;
  ret->item = calloc(n, sizeof(*ret->item));
  if (ret->item == NULL) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  for (size_t i = 0; i < n; i++) {
    CV_TRY(load_worker(yaml, cv_yaml_item(yaml, list, i), ret, why));
  }
  return CV_OK;
}

/* What the forms share; the spread of a law that the file does not spread itself. */
static void take_common(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct form *form,
                        struct cv_items *ret) {
  ret->rewards = (enum cv_rewards)form->rewards;
  ret->spread = cv_spread_usual(ret->rewards);
  ret->has_seed = cv_yaml_find(yaml, mapping, "seed").key != NULL;
  ret->seed = form->seed;
}

static enum cv_err load_mapped_list(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form,
                                    struct cv_items *ret, struct cv_why *why) {
  CV_TRY(cv_section_load(yaml, mapping, "workers", list_rules, CV_COUNT(list_rules), list_others, CV_COUNT(list_others),
                         form, why));
  take_common(yaml, mapping, form, ret);
  if (cv_yaml_find(yaml, mapping, "spread").key != NULL) {
    CV_TRY(cv_spread_take(yaml, mapping, "workers", ret->rewards, form->spread, &ret->spread, why));
  }
  return load_list(yaml, cv_yaml_find(yaml, mapping, "list").value, ret, why);
}

static enum cv_err load_synthetic(struct cv_yaml *yaml, const yaml_node_t *section, struct form *form,
                                  struct cv_items *ret, struct cv_why *why) {
  static const char *const only[] = {"synthetic"};
  CV_TRY(cv_yaml_keys(yaml, section, "workers", only, CV_COUNT(only), why));
  const yaml_node_t *mapping = cv_yaml_find(yaml, section, "synthetic").value;
  if (mapping->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, mapping, "workers.synthetic", "a mapping of keys and values", why);
  }
  CV_TRY(cv_section_load(yaml, mapping, "workers.synthetic", synthetic_rules, CV_COUNT(synthetic_rules), NULL, 0, form,
                         why));
  if (form->cost_high < form->cost_low) {
    return cv_yaml_fail(yaml, mapping, why, "workers.synthetic.cost_high is %g; expected at least cost_low, %g",
                        form->cost_high, form->cost_low);
  }
  take_common(yaml, mapping, form, ret);
  ret->source = CV_SOURCE_SYNTHETIC;
  ret->count = (uint32_t)form->count;
  ret->cost_low = form->cost_low;
  ret->cost_high = form->cost_high;
  return CV_OK;
}

static enum cv_err load_taxi(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form, struct cv_items *ret,
                             struct cv_why *why) {
  CV_TRY(cv_section_load(yaml, mapping, "workers", taxi_rules, CV_COUNT(taxi_rules), NULL, 0, form, why));
  take_common(yaml, mapping, form, ret);
  ret->source = CV_SOURCE_TAXI;
  ret->file = form->path;
  form->path = NULL;
  ret->area = form->area;
  ret->top = (uint32_t)form->top;
  ret->least_trips = form->least_trips;
  ret->cost_per_mile = form->cost_per_mile;
  return CV_OK;
}

static enum cv_err load_form(struct cv_yaml *yaml, const yaml_node_t *node, struct form *form, struct cv_items *ret,
                             struct cv_why *why) {
  static const char *const all[] = {"list", "synthetic", "source", "rewards",     "spread",       "seed",
                                    "path", "area",      "top",    "least_trips", "cost_per_mile"};
  if (node->type == YAML_SEQUENCE_NODE) {
    return load_list(yaml, node, ret, why);
  }
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, node, "workers", "a list of workers, or list, synthetic or source", why);
  }
  CV_TRY(cv_yaml_keys(yaml, node, "workers", all, CV_COUNT(all), why));
  if (cv_yaml_find(yaml, node, "synthetic").key != NULL) {
    return load_synthetic(yaml, node, form, ret, why);
  }
  if (cv_yaml_find(yaml, node, "list").key != NULL) {
    return load_mapped_list(yaml, node, form, ret, why);
  }
  if (cv_yaml_find(yaml, node, "source").key != NULL) {
    return load_taxi(yaml, node, form, ret, why);
  }
  return cv_yaml_fail(yaml, node, why, "workers does not say who can be hired; expected a list, synthetic or source");
}

enum cv_err cv_workers_load(struct cv_yaml *yaml, struct cv_yaml_pair section, struct cv_items *ret,
                            struct cv_why *why) {
  struct form form = {0};
  struct cv_items items = {.line = cv_yaml_line(section.key), .are_paid = true};
  enum cv_err err = load_form(yaml, section.value, &form, &items, why);
  free(form.path);
  if (err != CV_OK) {
    cv_items_fini(&items);
    return err;
  }
  *ret = items;
  return CV_OK;
}
