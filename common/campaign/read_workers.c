/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section `workers`: workers with a given cost and quality (a list), workers drawn at random (`synthetic: {...}`),
 * or the drivers in a file of taxi trips (`source: taxi`), whose cost is proportional to the miles of their trips.
 */
#include "common/campaign/read_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/campaign/read_items.h"
#include "common/config/rules.h"

/* Below the ids that certificates allow (2^48), and exact as a double, in which rules keep their limits. */
#define ID_MAX (UINT64_C(1) << 47)

static const char *const source_words[] = {"taxi", NULL};

struct form {
  int source, rewards;
  double quality, spread, cost_low, cost_high, cost_per_mile;
  uint64_t id, count, seed, area, top, least_trips;
  char *path;
};

#define FIELD(name) offsetof(struct form, name)

#define COST_RULE(word, usual, says)                                                                            \
  {                                                                                                             \
    .key = #word, .type = CV_CONFIG_REAL, .offset = FIELD(word), .low = 1e-6, .high = 1e6, .fallback = (usual), \
    .help = (says)                                                                                              \
  }

static const struct cv_config_rule list_rules[] = {
    {.key = "list",
     .type = CV_CONFIG_OTHER,
     .noun = "a list of workers",
     .required = true,
     .example = "[{id: 1, cost: 2.5, quality: 0.7}]",
     .help = "the workers, each a mapping; the section may also be that list itself"},
    CV_REWARDS_RULE(FIELD(rewards), "bernoulli"),
    CV_SPREAD_RULE(FIELD(spread)),
    CV_SEED_RULE(FIELD(seed))};

static const struct cv_config_rule worker_rules[] = {
    {.key = "id",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(id),
     .low = 1,
     .high = (double)ID_MAX,
     .required = true,
     .example = "17",
     .help = "the worker's id, as in its certificate; distinct from the others'"},
    {.key = "cost",
     .type = CV_CONFIG_OTHER,
     .noun = "what a token of the worker costs",
     .required = true,
     .example = "2.5",
     .help = "what one token of the worker costs, in the unit of the budget; above 0, with at most six decimals"},
    {.key = "quality",
     .type = CV_CONFIG_REAL,
     .offset = FIELD(quality),
     .high = 1,
     .required = true,
     .example = "0.7",
     .help = "mean of the worker's simulated scores"},
    CV_SPREAD_RULE(FIELD(spread)),
};

static const struct cv_config_rule synthetic_form[] = {{.key = "synthetic",
                                                        .type = CV_CONFIG_OTHER,
                                                        .noun = "a mapping of keys and values",
                                                        .required = true,
                                                        .example = "{count: 50}",
                                                        .help = "workers with costs and qualities by chance"}};

static const struct cv_config_rule synthetic_rules[] = {
    {.key = "count",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(count),
     .low = 1,
     .high = CV_ARMS_MAX,
     .required = true,
     .example = "50",
     .help = "how many workers"},
    COST_RULE(cost_low, "1", "the lowest cost of a token; costs are drawn evenly between both"),
    COST_RULE(cost_high, "10", "the highest cost of a token"),
    CV_REWARDS_RULE(FIELD(rewards), "truncated-normal"),
    CV_SEED_RULE(FIELD(seed)),
};

static const struct cv_config_rule taxi_rules[] = {
    {.key = "source",
     .type = CV_CONFIG_WORD,
     .offset = FIELD(source),
     .choices = source_words,
     .required = true,
     .help = "the kind of file: taxi is a table of trips with columns taxi_id, trip_miles and pickup_community_area"},
    {.key = "path",
     .type = CV_CONFIG_PATH,
     .offset = FIELD(path),
     .required = true,
     .example = "trips.csv",
     .help = "the file"},
    {.key = "area",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(area),
     .low = 1,
     .high = 1e9,
     .example = "8",
     .help = "only trips that start in this community area; all unless said"},
    {.key = "top",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(top),
     .low = 1,
     .high = CV_ARMS_MAX,
     .example = "50",
     .help = "so many drivers, those with the most trips; all unless said"},
    {.key = "least_trips",
     .type = CV_CONFIG_WHOLE,
     .offset = FIELD(least_trips),
     .low = 1,
     .high = 1e9,
     .example = "10",
     .help = "only drivers with at least so many trips"},
    COST_RULE(cost_per_mile, "1", "a driver's token costs the mean miles of the driver's trips times this"),
    CV_REWARDS_RULE(FIELD(rewards), "truncated-normal"),
    CV_SEED_RULE(FIELD(seed)),
};

const struct cv_campaign_section cv_workers_sections[] = {
    CV_CAMPAIGN_SECTION_OF("workers", "a list", "Workers who can be hired, with given costs and qualities.",
                           list_rules),
    CV_CAMPAIGN_SECTION_OF("workers.list", NULL, "A worker of the list.", worker_rules),
    CV_CAMPAIGN_SECTION_OF("workers", "synthetic", "Workers with costs and qualities by chance.", synthetic_form),
    CV_CAMPAIGN_SECTION_OF("workers.synthetic", NULL, "What the workers are drawn from; qualities are even in 0 to 1.",
                           synthetic_rules),
    CV_CAMPAIGN_SECTION_OF("workers", "taxi drivers", "The drivers in a file of taxi trips.", taxi_rules),
    {0},
};

enum cv_err cv_money_take(struct cv_yaml *yaml, const yaml_node_t *node, const char *name, uint64_t most,
                          uint64_t *ret_micro, struct cv_why *why) {
  uint64_t micro;
  /* 0 would buy tokens without end. */
  if (node->type != YAML_SCALAR_NODE || !cv_value_micro(cv_yaml_text(node), &micro) || micro == 0 || micro > most) {
    char expected[96];
    (void)snprintf(expected, sizeof(expected), "a number above 0 and at most %.0f, with at most 6 decimals",
                   (double)most / (double)CV_MICRO);
    return cv_yaml_expected(yaml, node, name, expected, why);
  }
  *ret_micro = micro;
  return CV_OK;
}

static int by_id(const void *a, const void *b, void *given) {
  const struct cv_item *item = ((const struct cv_items_given *)given)->item;
  uint64_t x = item[*(const uint32_t *)a].id, y = item[*(const uint32_t *)b].id;
  return (x > y) - (x < y);
}

static enum cv_err check_distinct(struct cv_yaml *yaml, const yaml_node_t *list, struct cv_items_given *given,
                                  struct cv_why *why) {
  uint32_t twice;
  if (cv_given_repeated(given, by_id, &twice) != CV_OK) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  return twice == given->count
             ? CV_OK
             : cv_yaml_fail(yaml, cv_yaml_item(yaml, list, twice), why,
                            "duplicate worker %" PRIu64 "; expected distinct ids", given->item[twice].id);
}

static enum cv_err load_worker(struct cv_yaml *yaml, const yaml_node_t *node, struct cv_items_given *given,
                               struct cv_why *why) {
  static const char section[] = "workers.list";
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, node, "a worker", "a mapping like {id: 1, cost: 2.5, quality: 0.7}", why);
  }
  struct form form = {0};
  struct cv_item *item = &given->item[given->count];
  CV_TRY(cv_section_load(yaml, node, section, worker_rules, CV_COUNT(worker_rules), &form, why));
  const yaml_node_t *cost = cv_yaml_find(yaml, node, "cost").value;
  CV_TRY(cv_money_take(yaml, cost, "workers.list.cost", CV_COST_MAX_MICRO, &item->cost_micro, why));
  bool has_spread = cv_yaml_find(yaml, node, "spread").key != NULL;
  CV_TRY(cv_spread_take(yaml, node, section, given->law.rewards, has_spread ? form.spread : given->law.spread,
                        &item->spread, why));
  item->id = form.id;
  item->mean = form.quality;
  given->count++;
  return CV_OK;
}

static enum cv_err load_list(struct cv_yaml *yaml, const yaml_node_t *list, struct cv_items_given *ret,
                             struct cv_why *why) {
  if (list->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(yaml, list, "workers.list", "a list of workers", why);
  }
  size_t n = cv_yaml_items(list);
  if (n < 1 || n > CV_ARMS_MAX) {
    return cv_yaml_fail(yaml, list, why, "%zu workers; expected 1 to %d", n, CV_ARMS_MAX);
  }
  ret->item = calloc(n, sizeof(*ret->item));
  if (ret->item == NULL) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  for (size_t i = 0; i < n; i++) {
    CV_TRY(load_worker(yaml, cv_yaml_item(yaml, list, i), ret, why));
  }
  return check_distinct(yaml, list, ret, why);
}

/* Reads what the forms share; a spread that the file does not give is the default of the law. */
static struct cv_items_law take_common(struct cv_yaml *yaml, const yaml_node_t *mapping, const struct form *form,
                                       struct cv_items *items) {
  enum cv_rewards rewards = (enum cv_rewards)form->rewards;
  items->has_seed = cv_yaml_find(yaml, mapping, "seed").key != NULL;
  items->seed = form->seed;
  return (struct cv_items_law){.rewards = rewards, .spread = cv_spread_usual(rewards)};
}

static enum cv_err load_mapped_list(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form,
                                    struct cv_items *ret, struct cv_why *why) {
  CV_TRY(cv_section_load(yaml, mapping, "workers", list_rules, CV_COUNT(list_rules), form, why));
  ret->source = CV_SOURCE_GIVEN;
  ret->given = (struct cv_items_given){.law = take_common(yaml, mapping, form, ret)};
  struct cv_items_law *law = &ret->given.law;
  if (cv_yaml_find(yaml, mapping, "spread").key != NULL) {
    CV_TRY(cv_spread_take(yaml, mapping, "workers", law->rewards, form->spread, &law->spread, why));
  }
  return load_list(yaml, cv_yaml_find(yaml, mapping, "list").value, &ret->given, why);
}

static enum cv_err load_synthetic(struct cv_yaml *yaml, const yaml_node_t *section, struct form *form,
                                  struct cv_items *ret, struct cv_why *why) {
  const yaml_node_t *mapping;
  CV_TRY(cv_section_only(yaml, section, "workers", "synthetic", "a mapping of keys and values", &mapping, why));
  CV_TRY(cv_section_load(yaml, mapping, "workers.synthetic", synthetic_rules, CV_COUNT(synthetic_rules), form, why));
  if (form->cost_high < form->cost_low) {
    return cv_yaml_fail(yaml, mapping, why, "workers.synthetic.cost_high is %g; expected at least cost_low, %g",
                        form->cost_high, form->cost_low);
  }
  ret->source = CV_SOURCE_SYNTHETIC;
  ret->synthetic = (struct cv_items_synthetic){.law = take_common(yaml, mapping, form, ret),
                                               .count = (uint32_t)form->count,
                                               .cost_low = form->cost_low,
                                               .cost_high = form->cost_high};
  return CV_OK;
}

static enum cv_err load_taxi(struct cv_yaml *yaml, const yaml_node_t *mapping, struct form *form, struct cv_items *ret,
                             struct cv_why *why) {
  CV_TRY(cv_section_load(yaml, mapping, "workers", taxi_rules, CV_COUNT(taxi_rules), form, why));
  ret->source = CV_SOURCE_TAXI;
  ret->taxi = (struct cv_items_taxi){.law = take_common(yaml, mapping, form, ret),
                                     .file = form->path,
                                     .area = form->area,
                                     .top = (uint32_t)form->top,
                                     .least_trips = form->least_trips,
                                     .cost_per_mile = form->cost_per_mile};
  form->path = NULL;
  return CV_OK;
}

static enum cv_err load_form(struct cv_yaml *yaml, const yaml_node_t *node, struct form *form, struct cv_items *ret,
                             struct cv_why *why) {
  if (node->type == YAML_SEQUENCE_NODE) {
    ret->source = CV_SOURCE_GIVEN;
    ret->given = (struct cv_items_given){0};
    return load_list(yaml, node, &ret->given, why);
  }
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, node, "workers", "a list of workers, or list, synthetic or source", why);
  }
  CV_TRY(cv_campaign_keys(yaml, node, "workers", cv_workers_sections, why));
  if (cv_yaml_find(yaml, node, "synthetic").key != NULL) {
    return load_synthetic(yaml, node, form, ret, why);
  }
  if (cv_yaml_find(yaml, node, "list").key != NULL) {
    return load_mapped_list(yaml, node, form, ret, why);
  }
  if (cv_yaml_find(yaml, node, "source").key != NULL) {
    return load_taxi(yaml, node, form, ret, why);
  }
  return cv_yaml_fail(yaml, node, why, "workers has no source of workers; expected a list, synthetic or source");
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
