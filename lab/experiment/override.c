/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a node to a document may move all nodes, so this file refers to nodes by number. */
#include "lab/experiment/override.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/value.h"

int cv_lab_node_number(const struct cv_yaml *yaml, const yaml_node_t *node) {
  return (int)(node - yaml->document.nodes.start) + 1;
}

const yaml_node_t *cv_lab_node(struct cv_yaml *yaml, int number) {
  return yaml_document_get_node(&yaml->document, number);
}

static yaml_node_t *node_of(struct cv_yaml *yaml, int number) {
  return yaml_document_get_node(&yaml->document, number);
}

static int add_scalar(struct cv_yaml *yaml, const char *text) {
  return yaml_document_add_scalar(&yaml->document, NULL, (const yaml_char_t *)text, (int)strlen(text),
                                  YAML_PLAIN_SCALAR_STYLE);
}

/* Appends a key. It gets the position of node `node`, where the user wrote the new value, for messages. */
static bool add_pair(struct cv_yaml *yaml, int mapping, const char *key, int value, int node) {
  int added = add_scalar(yaml, key);
  if (added == 0 || yaml_document_append_mapping_pair(&yaml->document, mapping, added, value) == 0) {
    return false;
  }
  node_of(yaml, added)->start_mark = node_of(yaml, node)->start_mark;
  return true;
}

static int new_mapping(struct cv_yaml *yaml, int node) {
  int mapping = yaml_document_add_mapping(&yaml->document, NULL, YAML_ANY_MAPPING_STYLE);
  if (mapping != 0) {
    node_of(yaml, mapping)->start_mark = node_of(yaml, node)->start_mark;
  }
  return mapping;
}

/* Turns `privacy.mechanism: kary` into {name: kary}, so that a parameter can be added. 0 when out of memory. */
static int open_word(struct cv_yaml *yaml, int word, int node) {
  int mapping = new_mapping(yaml, node);
  return mapping != 0 && add_pair(yaml, mapping, "name", word, node) ? mapping : 0;
}

static bool is_algorithm(const char *path, size_t n) {
  static const char *const words[] = {"policy", "privacy.mechanism", "privacy.privatizer"};
  for (size_t i = 0; i < CV_COUNT(words); i++) {
    if (strlen(words[i]) == n && strncmp(words[i], path, n) == 0) {
      return true;
    }
  }
  return false;
}

/* A pointer to the number of the node under the key or list index `step` of node `at`; NULL if there is none. */
static int *find(struct cv_yaml *yaml, int at, const char *step) {
  yaml_node_t *node = node_of(yaml, at);
  if (node->type == YAML_SEQUENCE_NODE) {
    uint64_t place = 0;
    bool is_there = cv_value_whole(step, &place) && place >= 1 && place <= cv_yaml_items(node);
    return is_there ? &node->data.sequence.items.start[place - 1] : NULL;
  }
  for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
    const yaml_node_t *key = node_of(yaml, pair->key);
    if (key->type == YAML_SCALAR_NODE && strcmp(cv_yaml_text(key), step) == 0) {
      return &pair->value;
    }
  }
  return NULL;
}

static enum cv_err fail(struct cv_yaml *yaml, int node, const char *path, struct cv_why *why) {
  return cv_yaml_fail(yaml, node_of(yaml, node), why, "unknown path %s; expected a key of this campaign",
                      cv_text_quote(path).text);
}

/* Goes one step down the path and updates *at; the last step sets the new value. Missing mappings are made. */
static enum cv_err descend(struct cv_yaml *yaml, const char *path, size_t end, const char *step, bool last, int node,
                           int *at, struct cv_why *why) {
  if (node_of(yaml, *at)->type == YAML_SCALAR_NODE) {
    return fail(yaml, node, path, why);
  }
  int *value = find(yaml, *at, step);
  /* A missing key is added; a list index that does not exist is a mistake. */
  if (value == NULL && node_of(yaml, *at)->type == YAML_SEQUENCE_NODE) {
    return fail(yaml, node, path, why);
  }
  if (value == NULL) {
    int made = last ? node : new_mapping(yaml, node);
    bool ok = made != 0 && add_pair(yaml, *at, step, made, node);
    *at = made;
    return ok ? CV_OK : cv_yaml_no_memory(yaml->path, why);
  }
  if (last) {
    *value = node;
    return CV_OK;
  }
  if (node_of(yaml, *value)->type == YAML_SCALAR_NODE && is_algorithm(path, end)) {
    int opened = open_word(yaml, *value, node);
    if (opened == 0) {
      return cv_yaml_no_memory(yaml->path, why);
    }
    *find(yaml, *at, step) = opened; /* open_word() may have moved what `value` points to */
    *at = opened;
    return CV_OK;
  }
  *at = *value;
  return CV_OK;
}

enum cv_err cv_lab_override(struct cv_yaml *yaml, const char *path, int node, struct cv_why *why) {
  int at = 1; /* the root */
  for (size_t from = 0;;) {
    char step[64];
    size_t n = strcspn(path + from, ".");
    bool last = path[from + n] == '\0';
    if (n == 0 || n >= sizeof(step)) { /* an empty step ("a..b"), or one longer than any key */
      return fail(yaml, node, path, why);
    }
    memcpy(step, path + from, n);
    step[n] = '\0';
    CV_TRY(descend(yaml, path, from + n, step, last, node, &at, why));
    if (last) {
      yaml->root = node_of(yaml, 1); /* the nodes may have moved */
      return CV_OK;
    }
    from += n + 1;
  }
}

/* The node at `path`; NULL if there is none. */
static const yaml_node_t *look_up(struct cv_yaml *yaml, const char *path) {
  int at = 1; /* the root */
  for (;;) {
    char step[64];
    size_t n = strcspn(path, ".");
    if (n >= sizeof(step) || node_of(yaml, at)->type == YAML_SCALAR_NODE) {
      return NULL;
    }
    (void)snprintf(step, sizeof(step), "%.*s", (int)n, path);
    const int *value = find(yaml, at, step);
    if (value == NULL || path[n] == '\0') {
      return value == NULL ? NULL : node_of(yaml, *value);
    }
    at = *value;
    path += n + 1;
  }
}

static bool take_real(const yaml_node_t *node, double *ret) {
  return node != NULL && node->type == YAML_SCALAR_NODE && cv_value_real(cv_yaml_text(node), ret);
}

enum cv_err cv_lab_override_scale(struct cv_yaml *yaml, const char *path, int node, struct cv_why *why) {
  double factor = 0, number = 0;
  char text[40];
  if (!take_real(node_of(yaml, node), &factor)) {
    return cv_yaml_expected(yaml, node_of(yaml, node), "a key of scale", "the number to multiply by", why);
  }
  if (!take_real(look_up(yaml, path), &number)) {
    return cv_yaml_fail(yaml, node_of(yaml, node), why,
                        "%s is not a number in this campaign; expected a key with a number", cv_text_quote(path).text);
  }
  /* 15 digits: 0.1 times 3 becomes 0.3, as a user would write it, and not 0.30000000000000004. */
  (void)snprintf(text, sizeof(text), "%.15g", number * factor);
  int made = add_scalar(yaml, text);
  if (made == 0) {
    return cv_yaml_no_memory(yaml->path, why);
  }
  node_of(yaml, made)->start_mark = node_of(yaml, node)->start_mark;
  return cv_lab_override(yaml, path, made, why);
}

enum cv_err cv_lab_override_text(struct cv_yaml *yaml, const char *path, const char *text, struct cv_why *why) {
  int node = add_scalar(yaml, text);
  return node == 0 ? cv_yaml_no_memory(yaml->path, why) : cv_lab_override(yaml, path, node, why);
}
