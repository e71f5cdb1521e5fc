/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/reference.h"

#include <math.h>
#include <string.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/local.h"
#include "common/campaign/section.h"
#include "common/config/value.h"
#include "common/config/wrap.h"
#include "deploy/launcher/json.h"
#include "thirdparty/policy/policy.h"

enum { EXPECTED_BYTES = 320, LINE_BYTES = 400 };

static json_t *text_or_null(const char *text) {
  return text == NULL ? json_null() : json_string(text);
}

/* ---- the rows of the tables ---- */

static const char *type_of(const struct cv_config_rule *rule) {
  switch (rule->type) {
    case CV_CONFIG_WHOLE:
      return "whole number";
    case CV_CONFIG_REAL:
      return "number";
    case CV_CONFIG_BOOL:
      return "true or false";
    case CV_CONFIG_TIME:
      return "time";
    case CV_CONFIG_PATH:
      return "path";
    case CV_CONFIG_WORD:
    case CV_CONFIG_WORDS:
      return "word";
    case CV_CONFIG_OTHER:
      return "value";
    default:
      return "text";
  }
}

/* `example` is the value alone; the object has it behind its key. */
static json_t *key_json(const char *key, const char *type, const char *expected, bool required, const char *fallback,
                        const char *example, const char *help) {
  char line[LINE_BYTES];
  (void)snprintf(line, sizeof(line), "%s: %s", key, example == NULL ? "" : example);
  return json_pack("{s:s, s:s, s:s, s:b, s:o, s:o, s:s}", "key", key, "type", type, "expected", expected, "required",
                   required, "default", text_or_null(fallback), "example", text_or_null(example == NULL ? NULL : line),
                   "help", help == NULL ? "" : help);
}

static json_t *rule_json(const struct cv_config_rule *rule) {
  char expected[EXPECTED_BYTES];
  cv_value_describe(rule, expected, sizeof(expected));
  const char *example = rule->example != NULL    ? rule->example
                        : rule->fallback != NULL ? rule->fallback
                        : rule->choices != NULL  ? rule->choices[0]
                                                 : NULL;
  return key_json(rule->key, type_of(rule), expected, rule->required, rule->fallback, example, rule->help);
}

static json_t *param_json(const struct cv_param_rule *rule) {
  char expected[EXPECTED_BYTES], number[32];
  const char *fallback = rule->fallback_text;
  cv_param_describe(rule, expected, sizeof(expected));
  if (rule->choices == NULL && !isnan(rule->fallback)) {
    (void)snprintf(number, sizeof(number), "%.12g", rule->fallback);
    fallback = number;
  }
  const char *example = fallback != NULL ? fallback : rule->choices != NULL ? rule->choices[0] : "0.1";
  const char *type = rule->choices != NULL ? "word" : rule->whole ? "whole number" : "number";
  return key_json(rule->key, type, expected, fallback == NULL, fallback, example, rule->help);
}

static json_t *section_json(const struct cv_campaign_section *section) {
  json_t *keys = json_array();
  for (size_t i = 0; i < section->count; i++) {
    keys = cv_json_append(keys, rule_json(&section->rules[i]));
  }
  return json_pack("{s:s, s:o, s:s, s:o}", "name", section->name, "form", text_or_null(section->form), "about",
                   section->about, "keys", keys);
}

static json_t *algorithm_json(const char *name, const char *about, const struct cv_param_rule *rules, size_t count) {
  json_t *keys = json_array();
  for (size_t i = 0; i < count; i++) {
    keys = cv_json_append(keys, param_json(&rules[i]));
  }
  return json_pack("{s:s, s:s, s:o}", "name", name, "about", about == NULL ? "" : about, "keys", keys);
}

/* ---- all of them ---- */

static json_t *all_sections(void) {
  json_t *all = json_array();
  const struct cv_campaign_section *section;
  for (size_t i = 0; (section = cv_campaign_section_at(i)) != NULL; i++) {
    all = cv_json_append(all, section_json(section));
  }
  return all;
}

/* Without those that know the true means, which no third-party can run. */
static json_t *all_policies(void) {
  json_t *all = json_array();
  const struct cv_policy_class *class;
  for (size_t i = 0; (class = cv_policy_at(i)) != NULL; i++) {
    if (class->tell == NULL) {
      json_t *policy = algorithm_json(class->name, class->about, class->rules, class->rule_count);
      if (class->has_floor && policy != NULL) {
        (void)cv_json_append(json_object_get(policy, "keys"), param_json(&cv_policy_floor_rule));
      }
      all = cv_json_append(all, policy);
    }
  }
  return all;
}

static json_t *all_mechanisms(void) {
  json_t *all = json_array();
  const struct cv_mechanism_class *class;
  for (size_t i = 0; (class = cv_mechanism_at(i)) != NULL; i++) {
    all = cv_json_append(all, algorithm_json(class->traits->name, class->guarantee, class->rules, class->rule_count));
  }
  return all;
}

static json_t *all_privatizers(void) {
  json_t *all = json_array();
  for (enum cv_local_kind kind = 0; kind < CV_LOCAL_KINDS; kind++) {
    size_t count;
    const struct cv_param_rule *rules = cv_local_rules(kind, &count);
    all = cv_json_append(all, algorithm_json(cv_local_name(kind), cv_local_about(kind), rules, count));
  }
  return all;
}

json_t *cv_reference_json(void) {
  return json_pack("{s:o, s:o, s:o, s:o}", "sections", all_sections(), "policies", all_policies(), "mechanisms",
                   all_mechanisms(), "privatizers", all_privatizers());
}

/* ---- as text ---- */

static const char *get(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

enum { INDENT = 21 };

static void print_key(const json_t *key, FILE *to) {
  char values[EXPECTED_BYTES + 64];
  const char *fallback = get(key, "default"), *example = get(key, "example");
  (void)snprintf(values, sizeof(values), "%s%s%s%s", get(key, "expected"),
                 json_is_true(json_object_get(key, "required")) ? "; required" : "",
                 fallback == NULL ? "" : "; default ", fallback == NULL ? "" : fallback);
  int written = fprintf(to, "  %-18s ", get(key, "key"));
  cv_wrap_print(to, (size_t)written, INDENT, values);
  written = fprintf(to, "%*s", INDENT, "");
  cv_wrap_print(to, (size_t)written, INDENT, get(key, "help"));
  if (example != NULL) {
    (void)fprintf(to, "%*s%s\n", INDENT, "", example);
  }
}

static void print_keys(const json_t *section, FILE *to) {
  size_t i;
  const json_t *key;
  json_array_foreach(json_object_get(section, "keys"), i, key) {
    print_key(key, to);
  }
}

static void print_group(const json_t *group, const char *word, FILE *to) {
  size_t i;
  const json_t *section;
  json_array_foreach(group, i, section) {
    const char *form = get(section, "form"), *name = get(section, "name");
    (void)fprintf(to, "\n%s%s%s%s%s\n  %s\n", word, name[0] == '\0' ? "the file" : name, form == NULL ? "" : " (",
                  form == NULL ? "" : form, form == NULL ? "" : ")", get(section, "about"));
    print_keys(section, to);
  }
}

void cv_reference_print(const json_t *reference, FILE *to) {
  (void)fprintf(to, "Every key of a campaign file: what it accepts, what it is for, an example.\n");
  print_group(json_object_get(reference, "sections"), "", to);
  print_group(json_object_get(reference, "policies"), "policy ", to);
  print_group(json_object_get(reference, "mechanisms"), "privacy.mechanism ", to);
  print_group(json_object_get(reference, "privatizers"), "privacy.privatizer ", to);
}
