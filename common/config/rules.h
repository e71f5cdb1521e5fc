/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/config: reads a mapping by a table of rules. Values are gathered first and copied to the
 * caller's struct at the end. */
#ifndef CV_CONFIG_RULES_H
#define CV_CONFIG_RULES_H

#include "common/config/document.h"
#include "common/config/value.h"

/* The value of one rule so far. */
struct cv_setting {
  bool is_set;
  union cv_value value;
};

struct cv_settings {
  const struct cv_config_rule *rules;
  size_t count;
  struct cv_setting *setting; /* one per rule */
};

/* Starts with no values. The rules are borrowed until cv_settings_fini(). CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_settings_init(struct cv_settings *settings, const struct cv_config_rule *rules,
                                         size_t count);
void cv_settings_fini(struct cv_settings *settings);

/* Takes ownership of the value for rule `index` and replaces an earlier one. */
void cv_settings_put(struct cv_settings *settings, size_t index, union cv_value value);
/*
 * Takes the values of a mapping. `prefix` ("tls." or "") is the mapping's place among the rules' dotted keys; `name` is
 * its name in messages. Keys of type CV_CONFIG_OTHER are allowed and not read.
 */
CV_MUST_USE enum cv_err cv_settings_map(struct cv_settings *settings, struct cv_yaml *yaml, const yaml_node_t *mapping,
                                        const char *name, const char *prefix, struct cv_why *why);
/* Fills in the defaults; resolves default paths against `folder` (may be NULL). If a required rule has no value,
 * returns CV_ERR_NOT_FOUND with *ret_missing set to that rule; otherwise *ret_missing is NULL. */
CV_MUST_USE enum cv_err cv_settings_default(struct cv_settings *settings, const char *folder,
                                            const struct cv_config_rule **ret_missing);
/* Copies all values to the caller's struct, which then owns the texts. */
void cv_settings_give(struct cv_settings *settings, void *into);

/* Reads one section of a file with all of the above: `name` is the section's name; the rules' keys are not dotted. */
CV_MUST_USE enum cv_err cv_section_load(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name,
                                        const struct cv_config_rule *rules, size_t count, void *into,
                                        struct cv_why *why);
/* Returns the mapping under `key`, which must be the section's only key; `expected` describes it in messages. */
CV_MUST_USE enum cv_err cv_section_only(struct cv_yaml *yaml, const yaml_node_t *section, const char *name,
                                        const char *key, const char *expected, const yaml_node_t **ret,
                                        struct cv_why *why);

#endif
