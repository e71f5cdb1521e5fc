/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables by which a campaign file is checked, for a reference that lists every key: the same rows that refuse a
 * wrong file. The parameters of policies, mechanisms and privatizers are in their own tables (common/base/params.h).
 */
#ifndef CV_CAMPAIGN_SECTION_H
#define CV_CAMPAIGN_SECTION_H

#include "common/config/config.h"
#include "common/config/document.h"

/* A mapping of a campaign file, or one form of it. */
struct cv_campaign_section {
  const char *name;  /* its place in the file: "items", "items.ladder"; "" for the file itself */
  const char *form;  /* which of several forms, a few words; NULL: it has one form */
  const char *about; /* one or two sentences */
  const struct cv_config_rule *rules;
  size_t count;
};

#define CV_CAMPAIGN_SECTION_OF(where, which, what, table) \
  { .name = (where), .form = (which), .about = (what), .rules = (table), .count = CV_COUNT(table) }

/* The sections in the order of a file; NULL past the end. */
const struct cv_campaign_section *cv_campaign_section_at(size_t index);

/* Internal to common/campaign: those of each reader; `name` is NULL behind the last. */
extern const struct cv_campaign_section cv_file_sections[], cv_items_sections[], cv_workers_sections[],
    cv_privacy_sections[], cv_graph_sections[], cv_gold_sections[];
/*
 * Internal to common/campaign: checks that each key of a mapping is one of any form in `sections` with this name, so
 * that an unknown key gets the nearest of them all.
 */
CV_MUST_USE enum cv_err cv_campaign_keys(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name,
                                         const struct cv_campaign_section *sections, struct cv_why *why);

#endif
