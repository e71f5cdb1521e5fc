/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of the campaign are not read here: they are kept as numbers of nodes, and override.c puts them into a new
 * parse of the campaign for each series and setting. So the campaign's own reader checks them, with the right line and
 * column.
 */
#include "lab/experiment/read.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/config/rules.h"
#include "lab/experiment/override.h"
#include "lab/judge/terms.h"
#include "lab/run/formula.h"
#include "lab/run/measure_table.h"

/* ---- small readers ---- */

static enum cv_err take_text(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *section, const char *key,
                             const char *fallback, const char **ret, struct cv_why *why) {
  const yaml_node_t *node = cv_yaml_find(yaml, mapping, key).value;
  if (node == NULL) {
    *ret = fallback;
    return CV_OK;
  }
  if (node->type != YAML_SCALAR_NODE || cv_yaml_text(node)[0] == '\0') {
    char said[64];
    (void)snprintf(said, sizeof(said), "%s.%s", section, key);
    return cv_yaml_expected(yaml, node, said, "a text", why);
  }
  *ret = cv_yaml_text(node);
  return CV_OK;
}

/* Finds the value of `key`, which must have this type; NULL if the key is missing. */
static enum cv_err find(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *key, yaml_node_type_t type,
                        const char *expected, const yaml_node_t **ret, struct cv_why *why) {
  const yaml_node_t *node = cv_yaml_find(yaml, mapping, key).value;
  if (node != NULL && (node->type != type || (type == YAML_SEQUENCE_NODE && cv_yaml_items(node) == 0))) {
    char said[64];
    (void)snprintf(said, sizeof(said), "experiment.%s", key);
    return cv_yaml_expected(yaml, node, said, expected, why);
  }
  *ret = node;
  return CV_OK;
}

static enum cv_err take_real(struct cv_yaml *yaml, const yaml_node_t *node, const char *said, double *ret,
                             struct cv_why *why) {
  return node->type == YAML_SCALAR_NODE && cv_value_real(cv_yaml_text(node), ret)
             ? CV_OK
             : cv_yaml_expected(yaml, node, said, "a number", why);
}

static enum cv_err no_memory(const struct cv_lab_experiment *experiment, struct cv_why *why) {
  return cv_yaml_no_memory(experiment->path, why);
}

/* ---- the axis ---- */

static const char expected_values[] = "a list of at most 1024 values";

/* `vary: path` or `vary: [path, path]`, all with the same values. */
static enum cv_err take_varied(struct cv_lab_experiment *experiment, const yaml_node_t *vary, int values,
                               struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  size_t n = vary->type == YAML_SEQUENCE_NODE ? cv_yaml_items(vary) : 1;
  if (vary->type == YAML_MAPPING_NODE || n == 0 || n > CV_LAB_SETS_MAX) {
    return cv_yaml_expected(yaml, vary, "experiment.x.vary", "a key of the campaign, or a list of them", why);
  }
  for (size_t i = 0; i < n; i++) {
    const yaml_node_t *path = vary->type == YAML_SEQUENCE_NODE ? cv_yaml_item(yaml, vary, i) : vary;
    if (path->type != YAML_SCALAR_NODE) {
      return cv_yaml_expected(yaml, path, "experiment.x.vary", "a key of the campaign, like policy.alpha", why);
    }
    experiment->vary[experiment->varied++] = (struct cv_lab_set){.path = cv_yaml_text(path), .node = values};
  }
  return CV_OK;
}

static enum cv_err take_points(struct cv_lab_experiment *experiment, const yaml_node_t *values, const char *said,
                               struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  if (values->type != YAML_SEQUENCE_NODE || cv_yaml_items(values) == 0 || cv_yaml_items(values) > CV_LAB_POINTS_MAX) {
    return cv_yaml_expected(yaml, values, said, expected_values, why);
  }
  experiment->points = cv_yaml_items(values);
  experiment->x = calloc(experiment->points, sizeof(*experiment->x));
  if (experiment->x == NULL) {
    return no_memory(experiment, why);
  }
  for (size_t i = 0; i < experiment->points; i++) {
    CV_TRY(take_real(yaml, cv_yaml_item(yaml, values, i), said, &experiment->x[i], why));
  }
  return CV_OK;
}

/* `pulls: 100` or `pulls: [1000, 2000]`. */
static enum cv_err take_pulls(struct cv_lab_experiment *experiment, const yaml_node_t *pulls, uint64_t tokens,
                              struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  uint64_t count = 0;
  experiment->axis = CV_LAB_AXIS_PULLS;
  if (pulls->type == YAML_SCALAR_NODE && cv_value_whole(cv_yaml_text(pulls), &count) && count >= 1 &&
      count <= CV_LAB_POINTS_MAX && count <= tokens) {
    experiment->points = count;
    experiment->x = calloc(count, sizeof(*experiment->x));
    for (size_t i = 0; i < count && experiment->x != NULL; i++) {
      experiment->x[i] = floor((double)tokens * (double)(i + 1) / (double)count);
    }
    return experiment->x == NULL ? no_memory(experiment, why) : CV_OK;
  }
  if (pulls->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(yaml, pulls, "experiment.x.pulls",
                            "the number of moments, at most 1024, or a list of numbers of pulls", why);
  }
  CV_TRY(take_points(experiment, pulls, "experiment.x.pulls", why));
  for (size_t i = 0; i < experiment->points; i++) {
    double x = experiment->x[i];
    /* Ascending: a run passes its moments once, in order. */
    if (!(x >= 1 && x <= (double)tokens) || floor(x) < x || (i > 0 && x <= experiment->x[i - 1])) {
      return cv_yaml_expected(yaml, cv_yaml_item(yaml, pulls, i), "an entry of experiment.x.pulls",
                              "whole numbers in ascending order, up to limits.tokens", why);
    }
  }
  return CV_OK;
}

static enum cv_err take_axis(struct cv_lab_experiment *experiment, const yaml_node_t *section, uint64_t tokens,
                             struct cv_why *why) {
  static const char *const known[] = {"vary", "values", "pulls", "label"};
  struct cv_yaml *yaml = &experiment->yaml;
  const yaml_node_t *x = NULL;
  CV_TRY(find(yaml, section, "x", YAML_MAPPING_NODE, "a mapping with vary and values, or with pulls", &x, why));
  experiment->figure.x_label = "";
  if (x == NULL) {
    experiment->points = 1;
    experiment->x = calloc(1, sizeof(*experiment->x));
    if (experiment->x == NULL) {
      return no_memory(experiment, why);
    }
    experiment->x[0] = (double)NAN;
    return CV_OK;
  }
  CV_TRY(cv_yaml_keys(yaml, x, "experiment.x", known, CV_COUNT(known), why));
  const yaml_node_t *vary = cv_yaml_find(yaml, x, "vary").value, *values = cv_yaml_find(yaml, x, "values").value;
  const yaml_node_t *pulls = cv_yaml_find(yaml, x, "pulls").value;
  if ((vary == NULL) != (values == NULL) || (vary == NULL) == (pulls == NULL)) {
    return cv_yaml_fail(yaml, x, why, "experiment.x; expected either vary and values, or pulls");
  }
  if (pulls != NULL) {
    CV_TRY(take_text(yaml, x, "experiment.x", "label", "pulls", &experiment->figure.x_label, why));
    return take_pulls(experiment, pulls, tokens, why);
  }
  experiment->axis = CV_LAB_AXIS_PARAMETER;
  CV_TRY(take_points(experiment, values, "experiment.x.values", why));
  CV_TRY(take_varied(experiment, vary, cv_lab_node_number(yaml, values), why));
  return take_text(yaml, x, "experiment.x", "label", experiment->vary[0].path, &experiment->figure.x_label, why);
}

/* ---- the series ---- */

static enum cv_err add_set(struct cv_lab_experiment *experiment, struct cv_lab_series *series, struct cv_yaml_pair pair,
                           struct cv_why *why) {
  if (series->sets == CV_LAB_SETS_MAX) {
    return cv_yaml_fail(&experiment->yaml, pair.key, why, "a series sets too many keys; expected at most %d",
                        CV_LAB_SETS_MAX);
  }
  series->set[series->sets++] =
      (struct cv_lab_set){.path = cv_yaml_text(pair.key), .node = cv_lab_node_number(&experiment->yaml, pair.value)};
  return CV_OK;
}

static enum cv_err take_scales(struct cv_lab_experiment *experiment, const yaml_node_t *node,
                               struct cv_lab_series *series, struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  if (node == NULL) {
    return CV_OK;
  }
  if (node->type != YAML_MAPPING_NODE || cv_yaml_pairs(node) > CV_LAB_SCALES_MAX) {
    return cv_yaml_expected(yaml, node, "scale", "at most 4 keys of the campaign with factors", why);
  }
  for (size_t i = 0; i < cv_yaml_pairs(node); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(yaml, node, i);
    series->scale[series->scales++] =
        (struct cv_lab_set){.path = cv_yaml_text(pair.key), .node = cv_lab_node_number(yaml, pair.value)};
  }
  return CV_OK;
}

static enum cv_err take_rounds(const struct cv_yaml *yaml, const yaml_node_t *node, struct cv_lab_series *series,
                               struct cv_why *why) {
  bool is_good = node == NULL || (node->type == YAML_SCALAR_NODE && series->formula == NULL &&
                                  cv_value_whole(cv_yaml_text(node), &series->rounds) && series->rounds > 0);
  return is_good ? CV_OK
                 : cv_yaml_expected(yaml, node, "rounds", "a whole number above 0, in a series that is run", why);
}

static bool is_of_series(const char *key) {
  static const char *const words[] = {"name", "formula", "scale", "rounds"};
  for (size_t i = 0; i < CV_COUNT(words); i++) {
    if (strcmp(words[i], key) == 0) {
      return true;
    }
  }
  return false;
}

static enum cv_err take_series(struct cv_lab_experiment *experiment, const yaml_node_t *node, struct cv_lab_series *ret,
                               struct cv_why *why) {
  static const char expected[] =
      "a mapping with name and what the series sets, like {name: sound, policy.radius: sound}";
  struct cv_yaml *yaml = &experiment->yaml;
  const char *name = NULL;
  struct cv_lab_series series = {0};
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, node, "an entry of experiment.series", expected, why);
  }
  CV_TRY(cv_yaml_keys(yaml, node, "experiment.series", NULL, 0, why));
  CV_TRY(take_text(yaml, node, "experiment.series", "name", NULL, &name, why));
  const yaml_node_t *formula = cv_yaml_find(yaml, node, "formula").value;
  if (formula != NULL) {
    CV_TRY(cv_lab_formula_read(yaml, formula, &series.formula, why));
  }
  if (name == NULL || strlen(name) >= sizeof(series.name)) {
    return cv_yaml_fail(yaml, node, why, "a series needs a name of at most %zu bytes; expected %s",
                        sizeof(series.name) - 1, expected);
  }
  (void)snprintf(series.name, sizeof(series.name), "%s", name);
  CV_TRY(take_scales(experiment, cv_yaml_find(yaml, node, "scale").value, &series, why));
  CV_TRY(take_rounds(yaml, cv_yaml_find(yaml, node, "rounds").value, &series, why));
  for (size_t i = 0; i < cv_yaml_pairs(node); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(yaml, node, i);
    if (!is_of_series(cv_yaml_text(pair.key))) {
      CV_TRY(add_set(experiment, &series, pair, why));
    }
  }
  *ret = series;
  return CV_OK;
}

/* A series that sets a key of the grid itself, as a baseline without epsilon, must not be repeated for each value. */
static bool sets_itself(const struct cv_lab_series *series, const char *path) {
  for (size_t i = 0; i < series->sets; i++) {
    if (strcmp(series->set[i].path, path) == 0) {
      return true;
    }
  }
  return false;
}

/* Sets the key in one series of the grid, and appends the cell to its name: ", epsilon 0.1". */
static enum cv_err enter_cell(struct cv_lab_experiment *experiment, struct cv_lab_series *series,
                              struct cv_yaml_pair pair, size_t place, struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  const yaml_node_t *value = cv_yaml_item(yaml, pair.value, place);
  const char *path = cv_yaml_text(pair.key), *dot = strrchr(path, '.');
  size_t used = strlen(series->name), room = sizeof(series->name) - used;
  int more = value->type != YAML_SCALAR_NODE
                 ? snprintf(series->name + used, room, ", %zu", place + 1)
                 : snprintf(series->name + used, room, ", %s %s", dot == NULL ? path : dot + 1, cv_yaml_text(value));
  if ((size_t)more >= room) {
    return cv_yaml_fail(yaml, pair.key, why, "the name of series \"%s\" is too long; expected at most %zu bytes",
                        series->name, sizeof(series->name) - 1);
  }
  return add_set(experiment, series, (struct cv_yaml_pair){.key = pair.key, .value = value}, why);
}

/* Replaces every series so far by one per value of the key; a series that sets the key itself stays single. */
static enum cv_err multiply(struct cv_lab_experiment *experiment, struct cv_yaml_pair pair, struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  if (pair.value->type != YAML_SEQUENCE_NODE || cv_yaml_items(pair.value) == 0) {
    return cv_yaml_expected(yaml, pair.value, "a key of experiment.grid", "a list of values", why);
  }
  struct cv_lab_series before[CV_LAB_SERIES_MAX];
  size_t n = experiment->series;
  memcpy(before, experiment->one, n * sizeof(*before)); /* the new series overwrite the old ones */
  experiment->series = 0;
  for (size_t i = 0; i < cv_yaml_items(pair.value); i++) {
    for (size_t at = 0; at < n; at++) {
      bool is_own = sets_itself(&before[at], cv_yaml_text(pair.key));
      if (is_own && i > 0) {
        continue;
      }
      if (experiment->series == CV_LAB_SERIES_MAX) {
        return cv_yaml_fail(yaml, pair.key, why, "experiment.grid makes too many series; expected at most %d",
                            CV_LAB_SERIES_MAX);
      }
      struct cv_lab_series *series = &experiment->one[experiment->series++];
      *series = before[at];
      if (!is_own) {
        CV_TRY(enter_cell(experiment, series, pair, i, why));
      }
    }
  }
  return CV_OK;
}

/* Results, claims and figures identify series by name. */
static enum cv_err check_names(struct cv_lab_experiment *experiment, const yaml_node_t *section, struct cv_why *why) {
  for (size_t i = 0; i < experiment->series; i++) {
    for (size_t j = 0; j < i; j++) {
      if (strcmp(experiment->one[i].name, experiment->one[j].name) == 0) {
        return cv_yaml_fail(&experiment->yaml, section, why,
                            "two series have the name \"%s\"; expected different names", experiment->one[i].name);
      }
    }
  }
  return CV_OK;
}

static enum cv_err take_all_series(struct cv_lab_experiment *experiment, const yaml_node_t *section, const char *policy,
                                   struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  const yaml_node_t *list = NULL, *grid = NULL;
  CV_TRY(find(yaml, section, "series", YAML_SEQUENCE_NODE, "a list of series", &list, why));
  CV_TRY(find(yaml, section, "grid", YAML_MAPPING_NODE, "keys of the campaign with lists of values", &grid, why));
  experiment->one = calloc(CV_LAB_SERIES_MAX, sizeof(*experiment->one));
  if (experiment->one == NULL) {
    return no_memory(experiment, why);
  }
  experiment->series = list == NULL ? 1 : cv_yaml_items(list);
  if (experiment->series > CV_LAB_SERIES_MAX) {
    return cv_yaml_fail(yaml, list, why, "experiment.series has %zu entries; expected at most %d", experiment->series,
                        CV_LAB_SERIES_MAX);
  }
  (void)snprintf(experiment->one[0].name, sizeof(experiment->one[0].name), "%s", policy);
  for (size_t i = 0; list != NULL && i < experiment->series; i++) {
    CV_TRY(take_series(experiment, cv_yaml_item(yaml, list, i), &experiment->one[i], why));
  }
  for (size_t i = 0; grid != NULL && i < cv_yaml_pairs(grid); i++) {
    CV_TRY(multiply(experiment, cv_yaml_pair(yaml, grid, i), why));
  }
  return check_names(experiment, section, why);
}

/* ---- measure and metrics ---- */

static size_t count_words(const char *const *words) {
  size_t n = 0;
  while (words[n] != NULL) {
    n++;
  }
  return n;
}

static enum cv_err take_metric(struct cv_lab_experiment *experiment, const yaml_node_t *node, struct cv_why *why) {
  const char *const *known = experiment->measure->metrics;
  size_t n = count_words(known);
  const char *text = node->type == YAML_SCALAR_NODE ? cv_yaml_text(node) : "";
  for (size_t i = 0; i < n; i++) {
    if (strcmp(known[i], text) == 0) {
      const double *ranges = experiment->measure->ranges;
      experiment->metric[experiment->metrics++] =
          (struct cv_lab_metric){.name = known[i], .index = i, .range = ranges == NULL ? 0 : ranges[i]};
      return CV_OK;
    }
  }
  char expected[300];
  cv_text_either(known, n, expected, sizeof(expected));
  return cv_yaml_expected(&experiment->yaml, node, "a metric", expected, why);
}

static enum cv_err unknown_measure(const struct cv_yaml *yaml, const yaml_node_t *node, const char *name,
                                   struct cv_why *why) {
  enum { MOST = 16 };
  const char *known[MOST];
  struct cv_why about;
  size_t n = 0;
  for (; n < MOST && cv_lab_measure_at(n) != NULL; n++) {
    known[n] = cv_lab_measure_at(n)->name;
  }
  (void)cv_nearest_fail(&about, "measure", name, known, n);
  return cv_yaml_fail(yaml, node, why, "%s", about.text);
}

static enum cv_err take_measure(struct cv_lab_experiment *experiment, const yaml_node_t *section, struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  const char *name = NULL;
  const yaml_node_t *metrics = NULL;
  CV_TRY(take_text(yaml, section, "experiment", "measure", "campaign", &name, why));
  experiment->measure = cv_lab_measure_find(name);
  if (experiment->measure == NULL) {
    return unknown_measure(yaml, cv_yaml_find(yaml, section, "measure").value, name, why);
  }
  CV_TRY(find(yaml, section, "metrics", YAML_SEQUENCE_NODE, "a list of metrics", &metrics, why));
  if (metrics == NULL || cv_yaml_items(metrics) > CV_LAB_METRICS_MAX) {
    char expected[300];
    cv_text_either(experiment->measure->metrics, count_words(experiment->measure->metrics), expected, sizeof(expected));
    return cv_yaml_fail(yaml, metrics == NULL ? section : metrics, why,
                        "experiment.metrics; expected a list of 1 to %d of these: %s", CV_LAB_METRICS_MAX, expected);
  }
  for (size_t i = 0; i < cv_yaml_items(metrics); i++) {
    CV_TRY(take_metric(experiment, cv_yaml_item(yaml, metrics, i), why));
  }
  return CV_OK;
}

/* Other measures do not run a campaign to its end. */
static enum cv_err check_rounds(const struct cv_lab_experiment *experiment, const yaml_node_t *section,
                                struct cv_why *why) {
  for (size_t i = 0; i < experiment->series; i++) {
    if (experiment->one[i].rounds > 0 && strcmp(experiment->measure->name, "campaign") != 0) {
      return cv_yaml_fail(&experiment->yaml, section, why, "series \"%s\" has rounds; expected measure campaign",
                          experiment->one[i].name);
    }
  }
  return CV_OK;
}

/* A key that is read by hand. */
#define OTHER(word) \
  { .key = (word), .type = CV_CONFIG_OTHER }

static enum cv_err take_figure(struct cv_lab_experiment *experiment, const yaml_node_t *section, struct cv_why *why) {
  static const struct cv_config_rule rules[] = {
      {.key = "log_x", .type = CV_CONFIG_BOOL, .offset = offsetof(struct cv_lab_figure, log_x), .fallback = "false"},
      {.key = "log_y", .type = CV_CONFIG_BOOL, .offset = offsetof(struct cv_lab_figure, log_y), .fallback = "false"},
      OTHER("title"),
      OTHER("y"),
  };
  struct cv_yaml *yaml = &experiment->yaml;
  struct cv_lab_figure *figure = &experiment->figure;
  const yaml_node_t *node = NULL;
  CV_TRY(find(yaml, section, "figure", YAML_MAPPING_NODE, "a mapping", &node, why));
  figure->name = experiment->name;
  figure->title = experiment->about;
  figure->metric = figure->y_label = experiment->metric[0].name;
  if (node == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_section_load(yaml, node, "experiment.figure", rules, CV_COUNT(rules), figure, why));
  CV_TRY(take_text(yaml, node, "experiment.figure", "title", figure->title, &figure->title, why));
  return take_text(yaml, node, "experiment.figure", "y", figure->y_label, &figure->y_label, why);
}

/* ---- the section ---- */

struct numbers {
  uint64_t replicates, few;
  int statistic;
};

static enum cv_err take_numbers(struct cv_lab_experiment *experiment, const yaml_node_t *section, struct cv_why *why) {
  static const struct cv_config_rule rules[] = {
      {.key = "replicates",
       .type = CV_CONFIG_WHOLE,
       .offset = offsetof(struct numbers, replicates),
       .low = 1,
       .high = 1e6,
       .fallback = "100"},
      {.key = "short", .type = CV_CONFIG_WHOLE, .offset = offsetof(struct numbers, few), .low = 1, .high = 1e6},
      {.key = "statistic",
       .type = CV_CONFIG_WORD,
       .offset = offsetof(struct numbers, statistic),
       .choices = cv_lab_statistics,
       .fallback = "mean"},
      OTHER("about"),
      OTHER("paper"),
      OTHER("source"),
      OTHER("x"),
      OTHER("series"),
      OTHER("grid"),
      OTHER("measure"),
      OTHER("metrics"),
      OTHER("figure"),
      OTHER("claims"),
  };
  struct numbers numbers = {0};
  CV_TRY(cv_section_load(&experiment->yaml, section, "experiment", rules, CV_COUNT(rules), &numbers, why));
  experiment->replicates = numbers.replicates;
  experiment->few = numbers.few == 0 ? numbers.replicates : numbers.few;
  experiment->statistic = experiment->figure.statistic = (enum cv_lab_statistic)numbers.statistic;
  return CV_OK;
}

static enum cv_err take_section(struct cv_lab_experiment *experiment, const yaml_node_t *section,
                                const struct cv_spec *spec, struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  CV_TRY(take_numbers(experiment, section, why));
  CV_TRY(take_text(yaml, section, "experiment", "about", experiment->name, &experiment->about, why));
  CV_TRY(take_text(yaml, section, "experiment", "paper", "", &experiment->paper, why));
  CV_TRY(take_text(yaml, section, "experiment", "source", "", &experiment->source, why));
  CV_TRY(take_axis(experiment, section, spec->tokens, why));
  CV_TRY(take_all_series(experiment, section, spec->policy.name, why));
  CV_TRY(take_measure(experiment, section, why));
  CV_TRY(check_rounds(experiment, section, why));
  /* After the measure: a figure draws its first metric by default, and claims refer to series, points and metrics. */
  CV_TRY(take_figure(experiment, section, why));
  CV_TRY(find(yaml, section, "claims", YAML_SEQUENCE_NODE, "a list of claims", &experiment->claims, why));
  return cv_lab_claims_check(experiment, why);
}

static enum cv_err fill(struct cv_lab_experiment *experiment, struct cv_why *why) {
  struct cv_yaml *yaml = &experiment->yaml;
  struct cv_campaign_file campaign;
  CV_TRY(cv_campaign_read(yaml, &campaign, why));
  (void)snprintf(experiment->name, sizeof(experiment->name), "%s", campaign.spec.name);
  struct cv_yaml_pair section = cv_yaml_find(yaml, yaml->root, "experiment");
  enum cv_err err;
  if (section.key == NULL) {
    err = cv_yaml_fail(yaml, yaml->root, why, "missing experiment; expected a section that says what to measure");
  } else if (section.value->type != YAML_MAPPING_NODE) {
    err = cv_yaml_expected(yaml, section.value, "experiment", "a mapping of keys and values", why);
  } else {
    err = take_section(experiment, section.value, &campaign.spec, why);
  }
  cv_campaign_fini(&campaign);
  return err;
}

enum cv_err cv_lab_experiment_parse(const char *path, const char *text, size_t bytes, const char *data,
                                    struct cv_lab_experiment *ret, struct cv_why *why) {
  struct cv_lab_experiment made = {.path = strdup(path), .text = malloc(bytes + 1), .bytes = bytes, .data = data};
  if (made.path == NULL || made.text == NULL) {
    free(made.path);
    free(made.text);
    return cv_yaml_no_memory(path, why);
  }
  memcpy(made.text, text, bytes);
  made.text[bytes] = '\0';
  const struct cv_buf buf = {.data = (uint8_t *)made.text, .len = bytes};
  struct cv_yaml yaml;
  enum cv_err err = cv_yaml_parse(made.path, &buf, &yaml, why);
  if (err != CV_OK) {
    free(made.path);
    free(made.text);
    return err;
  }
  made.yaml = yaml;
  *ret = made;
  err = fill(ret, why); /* in its final place: other members point to texts inside *ret */
  if (err != CV_OK) {
    cv_lab_experiment_fini(ret);
  }
  return err;
}

enum cv_err cv_lab_experiment_load(const char *path, const char *data, struct cv_lab_experiment *ret,
                                   struct cv_why *why) {
  struct cv_buf text = {0};
  enum cv_err err = cv_yaml_read(path, &text, why);
  if (err == CV_OK) {
    err = cv_lab_experiment_parse(path, (const char *)text.data, text.len, data, ret, why);
  }
  cv_buf_fini(&text);
  return err;
}

void cv_lab_experiment_fini(struct cv_lab_experiment *experiment) {
  if (experiment->path == NULL) {
    return;
  }
  cv_yaml_close(&experiment->yaml);
  free(experiment->path);
  free(experiment->text);
  free(experiment->x);
  free(experiment->one);
  cv_taxis_fini(&experiment->taxis);
  cv_campaign_fini(&experiment->with_taxis);
  *experiment = (struct cv_lab_experiment){0};
}
