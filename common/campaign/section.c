/* SPDX-License-Identifier: Apache-2.0 */
#include "common/campaign/section.h"

#include <string.h>

static const struct cv_campaign_section *const readers[] = {cv_file_sections,    cv_items_sections, cv_workers_sections,
                                                            cv_privacy_sections, cv_graph_sections, cv_gold_sections};

const struct cv_campaign_section *cv_campaign_section_at(size_t index) {
  for (size_t i = 0; i < CV_COUNT(readers); i++) {
    for (const struct cv_campaign_section *at = readers[i]; at->name != NULL; at++) {
      if (index-- == 0) {
        return at;
      }
    }
  }
  return NULL;
}

enum cv_err cv_campaign_keys(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name,
                             const struct cv_campaign_section *sections, struct cv_why *why) {
  enum { KEYS_MAX = 64 };
  const char *known[KEYS_MAX];
  size_t n = 0;
  for (const struct cv_campaign_section *at = sections; at->name != NULL; at++) {
    for (size_t i = 0; strcmp(at->name, name) == 0 && i < at->count; i++) {
      CV_REQUIRE(n < KEYS_MAX);
      known[n++] = at->rules[i].key;
    }
  }
  return cv_yaml_keys(yaml, mapping, name, known, n, why);
}
