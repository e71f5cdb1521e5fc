/* SPDX-License-Identifier: Apache-2.0 */
/* A YAML file as a tree with positions. Only plain values are allowed: no anchor, alias or tag. */
#ifndef CV_CONFIG_DOCUMENT_H
#define CV_CONFIG_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <yaml.h>

#include "common/base/buf.h"

enum { CV_YAML_BYTES = 1024 * 1024, CV_YAML_DEPTH = 16 };

struct cv_yaml {
  const char *path; /* as given, borrowed */
  char *folder;     /* of the file */
  yaml_document_t document;
  yaml_node_t *root; /* a mapping */
};

/* Opens a file. Errors: cannot be read, too large, not YAML, empty, not a mapping; CV_ERR_IO, CV_ERR_LIMIT or
 * CV_ERR_FORMAT. */
CV_MUST_USE enum cv_err cv_yaml_open(const char *path, struct cv_yaml *ret, struct cv_why *why);
/* The same in two steps. A caller that keeps the text can parse it again; the nodes then have the same numbers. */
CV_MUST_USE enum cv_err cv_yaml_read(const char *path, struct cv_buf *ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_yaml_parse(const char *path, const struct cv_buf *text, struct cv_yaml *ret,
                                      struct cv_why *why);
void cv_yaml_close(struct cv_yaml *yaml);

/* A key with its value. */
struct cv_yaml_pair {
  const yaml_node_t *key, *value; /* both NULL if not found */
};

static inline const char *cv_yaml_text(const yaml_node_t *scalar) {
  return (const char *)scalar->data.scalar.value;
}
static inline size_t cv_yaml_pairs(const yaml_node_t *mapping) {
  return (size_t)(mapping->data.mapping.pairs.top - mapping->data.mapping.pairs.start);
}
static inline size_t cv_yaml_items(const yaml_node_t *list) {
  return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}
/* index < cv_yaml_pairs() or cv_yaml_items(); nodes live as long as the document. */
struct cv_yaml_pair cv_yaml_pair(struct cv_yaml *yaml, const yaml_node_t *mapping, size_t index);
const yaml_node_t *cv_yaml_item(struct cv_yaml *yaml, const yaml_node_t *list, size_t index);
/* Finds the first pair with this key; both NULL if there is none. */
struct cv_yaml_pair cv_yaml_find(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *key);
static inline uint32_t cv_yaml_line(const yaml_node_t *node) {
  return (uint32_t)node->start_mark.line + 1;
}
static inline uint32_t cv_yaml_column(const yaml_node_t *node) {
  return (uint32_t)node->start_mark.column + 1;
}

/* Writes `FILE:LINE:COLUMN: ...` with the node's position; returns CV_ERR_INVALID. */
#define cv_yaml_fail(yaml, at, why, ...) (cv_yaml_why_set((yaml), (at), (why), __VA_ARGS__), CV_ERR_INVALID)
void cv_yaml_why_set(const struct cv_yaml *yaml, const yaml_node_t *at, struct cv_why *why, const char *fmt, ...)
    CV_PRINTF(4, 5);
/* Returns CV_ERR_NOMEM and writes its message. */
enum cv_err cv_yaml_no_memory(const char *path, struct cv_why *why);
/* Writes "<name> is <the value found>; expected <expected>" and returns CV_ERR_INVALID. */
enum cv_err cv_yaml_expected(const struct cv_yaml *yaml, const yaml_node_t *at, const char *name, const char *expected,
                             struct cv_why *why);

/* Writes the normal form of a scalar that is a name (normal.h), of 1 to size - 1 bytes. `name` and `expected` are those
 * of cv_yaml_expected(), for what is no text or not of this length. */
CV_MUST_USE enum cv_err cv_yaml_name(const struct cv_yaml *yaml, const yaml_node_t *at, const char *name,
                                     const char *expected, char *to, size_t size, struct cv_why *why);

/* Checks that every key of a mapping is a scalar, occurs once, and is one of the `n` words in `known` (unless NULL).
 * `name` is the mapping's own name in messages, "" for the whole file. */
CV_MUST_USE enum cv_err cv_yaml_keys(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name,
                                     const char *const *known, size_t n, struct cv_why *why);

#endif
