/* SPDX-License-Identifier: Apache-2.0 */
/* Changes a campaign's document after parsing: the values that a series or a point of an experiment sets. */
#ifndef CV_LAB_OVERRIDE_H
#define CV_LAB_OVERRIDE_H

#include "common/config/document.h"

/*
 * Makes the node with number `node` the value at `path`: keys and list indices (from 1), joined by dots. Missing
 * mappings on the path are added; an algorithm that is given as a word becomes a mapping with that name, so that it can
 * have parameters. Fails with one line at the node's position if an index is not in the list, or if the path continues
 * below a scalar.
 */
CV_MUST_USE enum cv_err cv_lab_override(struct cv_yaml *yaml, const char *path, int node, struct cv_why *why);
/* The same for a text that is not in the file. */
CV_MUST_USE enum cv_err cv_lab_override_text(struct cv_yaml *yaml, const char *path, const char *text,
                                             struct cv_why *why);
/* Multiplies the number at `path` by the number in node `node`. Fails with one line at the node's position if either is
 * not a number. */
CV_MUST_USE enum cv_err cv_lab_override_scale(struct cv_yaml *yaml, const char *path, int node, struct cv_why *why);

/* The number of a node; another parse of the same text gives the same node the same number. */
int cv_lab_node_number(const struct cv_yaml *yaml, const yaml_node_t *node);
const yaml_node_t *cv_lab_node(struct cv_yaml *yaml, int number);

#endif
