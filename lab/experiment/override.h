/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a campaign's file after it was parsed: what a series or a point of an experiment sets. */
#ifndef CV_LAB_OVERRIDE_H
#define CV_LAB_OVERRIDE_H

#include "common/config/document.h"

/*
 * Makes the node with number `node` the value at `path`: keys and list places (from 1), joined by dots. Mappings on the
 * way are made where there are none; an algorithm that is written as a word becomes a mapping with that name, so that
 * it can be given parameters. A failure is one line at the node: a place that is not in the list, or a way that leads
 * through a value.
 */
CV_MUST_USE enum cv_err cv_lab_override(struct cv_yaml *yaml, const char *path, int node, struct cv_why *why);
/* The same for a text that is not in the file. */
CV_MUST_USE enum cv_err cv_lab_override_text(struct cv_yaml *yaml, const char *path, const char *text,
                                             struct cv_why *why);
/* Multiplies the number at `path` by that of node `node`. A failure is one line at the node: there is no number, or the
 * node is none. */
CV_MUST_USE enum cv_err cv_lab_override_scale(struct cv_yaml *yaml, const char *path, int node, struct cv_why *why);

/* The number of a node, which a second parse of the same text gives to the same node. */
int cv_lab_node_number(const struct cv_yaml *yaml, const yaml_node_t *node);
const yaml_node_t *cv_lab_node(struct cv_yaml *yaml, int number);

#endif
