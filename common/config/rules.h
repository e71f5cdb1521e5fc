/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/config: a mapping against a table of rules. Values are gathered first and given out at the end. */
#ifndef CV_CONFIG_RULES_H
#define CV_CONFIG_RULES_H

#include "common/config/document.h"
#include "common/config/value.h"

/* What has been said for one rule so far. */
struct cv_setting {
  bool is_set;
  union cv_value value;
};

struct cv_settings {
  const struct cv_config_rule *rules;
  size_t count;
  struct cv_setting *setting; /* one a rule */
};

/* Nothing said yet. The rules are borrowed for as long. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_settings_init(struct cv_settings *settings, const struct cv_config_rule *rules,
                                         size_t count);
void cv_settings_fini(struct cv_settings *settings);

/* Takes over the value for rule `index`, replacing an earlier one. */
void cv_settings_put(struct cv_settings *settings, size_t index, union cv_value value);
/*
 * Takes what a mapping says. Its place among the rules' dotted keys is `prefix` ("tls." or ""); `name` is what messages
 * call it. `others` are `n` keys that are no concern of the rules.
 */
CV_MUST_USE enum cv_err cv_settings_map(struct cv_settings *settings, struct cv_yaml *yaml, const yaml_node_t *mapping,
                                        const char *name, const char *prefix, const char *const *others, size_t n,
                                        struct cv_why *why);
/* Fills in the defaults; paths among them against `folder` (may be NULL). *ret_missing is a required rule that has no
 * value, or NULL. */
CV_MUST_USE enum cv_err cv_settings_default(struct cv_settings *settings, const char *folder,
                                            const struct cv_config_rule **ret_missing);
/* Hands all values to the caller's struct. */
void cv_settings_give(struct cv_settings *settings, void *into);

/* All of it for one mapping that is in a section of its own: `name` is the section's, rules' keys are not dotted. */
CV_MUST_USE enum cv_err cv_section_load(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name,
                                        const struct cv_config_rule *rules, size_t count, const char *const *others,
                                        size_t n, void *into, struct cv_why *why);

#endif
