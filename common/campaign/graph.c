/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/graph.h"

#include <stdlib.h>

#include "common/base/spec.h"
#include "common/campaign/section.h"
#include "common/config/rules.h"

static const char expected_edge[] = "a list of two items by their places from 1, like [1, 2]";

static const struct cv_config_rule rules[] = {
    {.key = "edges",
     .type = CV_CONFIG_OTHER,
     .noun = "a list of pairs of items, like [[1, 2], [2, 3]]",
     .example = "[[1, 2], [2, 3]]",
     .help = "pairs of items by their places from 1, in any order, each pair once"},
    {.key = "p",
     .type = CV_CONFIG_REAL,
     .offset = offsetof(struct cv_graph, p),
     .high = 1,
     .fallback = "0",
     .help = "instead of edges: the probability of each pair of items to be joined"},
    {.key = "seed",
     .type = CV_CONFIG_WHOLE,
     .offset = offsetof(struct cv_graph, seed),
     .high = 0x1p64,
     .example = "7",
     .help = "with p: makes the drawn graph repeatable"},
};

const struct cv_campaign_section cv_graph_sections[] = {
    CV_CAMPAIGN_SECTION_OF("graph", NULL, "Which items are answered about together (graph.md).", rules),
    {0},
};

static int compare(const void *a, const void *b) {
  const struct cv_edge *x = a, *y = b;
  return x->a != y->a ? (x->a > y->a) - (x->a < y->a) : (x->b > y->b) - (x->b < y->b);
}

static enum cv_err take_end(struct cv_yaml *yaml, const yaml_node_t *node, uint32_t *ret, struct cv_why *why) {
  uint64_t place = 0;
  if (node->type != YAML_SCALAR_NODE || !cv_value_whole(cv_yaml_text(node), &place) || place < 1 ||
      place > CV_ARMS_MAX) {
    return cv_yaml_expected(yaml, node, "an end of graph.edges", "the place of an item, from 1", why);
  }
  *ret = (uint32_t)place - 1;
  return CV_OK;
}

static enum cv_err take_edge(struct cv_yaml *yaml, const yaml_node_t *node, struct cv_edge *ret, struct cv_why *why) {
  uint32_t a = 0, b = 0;
  if (node->type != YAML_SEQUENCE_NODE || cv_yaml_items(node) != 2) {
    return cv_yaml_expected(yaml, node, "graph.edges", expected_edge, why);
  }
  CV_TRY(take_end(yaml, cv_yaml_item(yaml, node, 0), &a, why));
  CV_TRY(take_end(yaml, cv_yaml_item(yaml, node, 1), &b, why));
  if (a == b) {
    return cv_yaml_fail(yaml, node, why, "graph.edges joins item %u with itself; expected two items", a + 1);
  }
  /* An edge has no direction; the lower end comes first. */
  *ret = (struct cv_edge){.a = a < b ? a : b, .b = a < b ? b : a};
  return CV_OK;
}

static enum cv_err take_edges(struct cv_yaml *yaml, const yaml_node_t *list, struct cv_spec *spec, struct cv_why *why) {
  if (list->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(yaml, list, "graph.edges", "a list of pairs of items, like [[1, 2], [2, 3]]", why);
  }
  size_t n = cv_yaml_items(list);
  if (n > CV_EDGES_MAX) {
    return cv_yaml_fail(yaml, list, why, "graph.edges has %zu edges; expected at most %d", n, CV_EDGES_MAX);
  }
  struct cv_edge *edge = calloc(n + 1, sizeof(*edge));
  if (edge == NULL) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  enum cv_err err = CV_OK;
  for (size_t i = 0; i < n && err == CV_OK; i++) {
    err = take_edge(yaml, cv_yaml_item(yaml, list, i), &edge[i], why);
  }
  /* Sorted, as every spec has them: equal graphs then have equal digests, and duplicates are neighbours. */
  qsort(edge, n, sizeof(*edge), compare);
  for (size_t i = 1; i < n && err == CV_OK; i++) {
    if (compare(&edge[i - 1], &edge[i]) == 0) {
      err = cv_yaml_fail(yaml, list, why, "graph.edges joins items %u and %u twice; expected each pair once",
                         edge[i].a + 1, edge[i].b + 1);
    }
  }
  if (err != CV_OK || n == 0) {
    free(edge);
    return err;
  }
  spec->edge = edge;
  spec->edges = (uint32_t)n;
  return CV_OK;
}

enum cv_err cv_graph_load(struct cv_yaml *yaml, struct cv_graph *ret, struct cv_spec *spec, struct cv_why *why) {
  struct cv_yaml_pair section = cv_yaml_find(yaml, yaml->root, "graph");
  if (section.key == NULL) {
    return CV_OK;
  }
  if (section.value->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, section.value, "graph", "a mapping with edges, or with p and seed", why);
  }
  struct cv_graph graph = {.line = cv_yaml_line(section.key)};
  CV_TRY(cv_section_load(yaml, section.value, "graph", rules, CV_COUNT(rules), &graph, why));
  const yaml_node_t *edges = cv_yaml_find(yaml, section.value, "edges").value;
  graph.is_drawn = cv_yaml_find(yaml, section.value, "p").key != NULL;
  graph.has_seed = cv_yaml_find(yaml, section.value, "seed").key != NULL;
  if ((edges == NULL) != graph.is_drawn || (graph.has_seed && !graph.is_drawn)) {
    return cv_yaml_fail(yaml, section.value, why, "graph has %s; expected either edges, or p and seed",
                        edges == NULL ? "neither edges nor p" : "edges and p or seed");
  }
  *ret = graph;
  return edges == NULL ? CV_OK : take_edges(yaml, edges, spec, why);
}
