/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"

const struct cv_param *cv_params_find(const struct cv_params *params, const char *key) {
  for (uint32_t i = 0; i < params->count; i++) {
    if (strcmp(params->item[i].key, key) == 0) {
      return &params->item[i];
    }
  }
  return NULL;
}

double cv_params_number(const struct cv_params *params, const char *key) {
  /* cv_params_check() has filled in every parameter of the rules: a missing one is a bug of the caller. */
  const struct cv_param *param = cv_params_find(params, key);
  CV_REQUIRE(param != NULL && !param->is_text);
  return param->number;
}

const char *cv_params_text(const struct cv_params *params, const char *key) {
  const struct cv_param *param = cv_params_find(params, key);
  CV_REQUIRE(param != NULL && param->is_text);
  return param->text;
}

static enum cv_err set(struct cv_params *params, const struct cv_param *value) {
  const struct cv_param *found = cv_params_find(params, value->key);
  if (found == NULL && params->count == CV_PARAMS_MAX) {
    return CV_ERR_LIMIT;
  }
  size_t at = found == NULL ? params->count++ : (size_t)(found - params->item);
  params->item[at] = *value;
  return CV_OK;
}

enum cv_err cv_params_set_number(struct cv_params *params, const char *key, double number) {
  struct cv_param value = {.number = number};
  if (strlen(key) >= sizeof(value.key)) {
    return CV_ERR_LIMIT;
  }
  (void)snprintf(value.key, sizeof(value.key), "%s", key);
  return set(params, &value);
}

enum cv_err cv_params_set_text(struct cv_params *params, const char *key, const char *text) {
  struct cv_param value = {.is_text = true};
  if (strlen(key) >= sizeof(value.key) || strlen(text) >= sizeof(value.text)) {
    return CV_ERR_LIMIT;
  }
  (void)snprintf(value.key, sizeof(value.key), "%s", key);
  (void)snprintf(value.text, sizeof(value.text), "%s", text);
  return set(params, &value);
}

void cv_params_drop(struct cv_params *params, const char *key) {
  const struct cv_param *found = cv_params_find(params, key);
  if (found != NULL) {
    size_t at = (size_t)(found - params->item);
    params->count--;
    memmove(&params->item[at], &params->item[at + 1], (params->count - at) * sizeof(params->item[0]));
  }
}

static const struct cv_param_rule *rule_for(const struct cv_param_rule *rules, size_t n, const char *key) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(rules[i].key, key) == 0) {
      return &rules[i];
    }
  }
  return NULL;
}

static bool is_choice(const struct cv_param_rule *rule, const char *text) {
  for (const char *const *word = rule->choices; *word != NULL; word++) {
    if (strcmp(*word, text) == 0) {
      return true;
    }
  }
  return false;
}

static void add_word(char *text, size_t size, const char *word, bool is_first, bool is_last) {
  size_t used = strlen(text);
  (void)snprintf(text + used, size - used, "%s%s", is_first ? "" : is_last ? " or " : ", ", word);
}

static void list_choices(const struct cv_param_rule *rule, char *text, size_t size) {
  text[0] = '\0';
  for (const char *const *word = rule->choices; *word != NULL; word++) {
    add_word(text, size, *word, word == rule->choices, word[1] == NULL);
  }
}

static enum cv_err fail_unknown(const char *key, const struct cv_param_rule *rules, size_t n, struct cv_why *why) {
  const char *keys[CV_PARAMS_MAX] = {0};
  char known[200] = "none";
  CV_REQUIRE(n <= CV_COUNT(keys));
  for (size_t i = 0; i < n; i++) {
    keys[i] = rules[i].key;
  }
  const char *nearest = cv_nearest(key, keys, n);
  if (nearest != NULL) {
    return cv_fail(why, CV_ERR_INVALID, "unknown key \"%s\"; did you mean \"%s\"?", key, nearest);
  }
  if (n > 0) {
    cv_text_either(keys, n, known, sizeof(known));
  }
  return cv_fail(why, CV_ERR_INVALID, "unknown key \"%s\"; expected %s", key, known);
}

void cv_param_describe(const struct cv_param_rule *rule, char *text, size_t size) {
  if (rule->choices != NULL) {
    list_choices(rule, text, size);
    return;
  }
  const char *kind = rule->whole ? "a whole number" : "a number";
  if (isinf(rule->high)) {
    (void)snprintf(text, size, "%s %s %.10g", kind, rule->low_open ? "above" : "of at least", rule->low);
  } else {
    (void)snprintf(text, size, "%s %s %.10g and %s %.10g", kind, rule->low_open ? "above" : "of at least", rule->low,
                   rule->high_open ? "below" : "at most", rule->high);
  }
}

static enum cv_err check_one(const struct cv_param *param, const struct cv_param_rule *rule, struct cv_why *why) {
  char expected[160];
  if (rule->choices != NULL) {
    if (param->is_text && is_choice(rule, param->text)) {
      return CV_OK;
    }
  } else {
    double x = param->number;
    bool low_fits = rule->low_open ? x > rule->low : x >= rule->low;
    bool high_fits = rule->high_open ? x < rule->high : x <= rule->high;
    if (!param->is_text && low_fits && high_fits && (!rule->whole || x == floor(x))) {
      return CV_OK;
    }
  }
  cv_param_describe(rule, expected, sizeof(expected));
  if (param->is_text) {
    return cv_fail(why, CV_ERR_INVALID, "%s is \"%s\"; expected %s", param->key, param->text, expected);
  }
  return cv_fail(why, CV_ERR_INVALID, "%s is %.10g; expected %s", param->key, param->number, expected);
}

static enum cv_err fill_in(struct cv_params *params, const struct cv_param_rule *rule, struct cv_why *why) {
  if (rule->choices != NULL ? rule->fallback_text == NULL : isnan(rule->fallback)) {
    char expected[160];
    cv_param_describe(rule, expected, sizeof(expected));
    return cv_fail(why, CV_ERR_INVALID, "missing %s; expected %s", rule->key, expected);
  }
  return rule->choices != NULL ? cv_params_set_text(params, rule->key, rule->fallback_text)
                               : cv_params_set_number(params, rule->key, rule->fallback);
}

enum cv_err cv_params_check(struct cv_params *params, const struct cv_param_rule *rules, size_t n,
                            const struct cv_param **ret_bad, struct cv_why *why) {
  for (uint32_t i = 0; i < params->count; i++) {
    const struct cv_param *param = &params->item[i];
    const struct cv_param_rule *rule = rule_for(rules, n, param->key);
    enum cv_err err = rule == NULL ? fail_unknown(param->key, rules, n, why) : check_one(param, rule, why);
    /* The first of the same name is found: any later one is a repetition. */
    if (err == CV_OK && cv_params_find(params, param->key) != param) {
      err = cv_fail(why, CV_ERR_INVALID, "%s is given twice", param->key);
    }
    if (err != CV_OK) {
      *ret_bad = param;
      return err;
    }
  }
  /* Defaults are filled in, so that code that reads a parameter need not know them. */
  for (size_t i = 0; i < n; i++) {
    if (cv_params_find(params, rules[i].key) == NULL) {
      enum cv_err err = fill_in(params, &rules[i], why);
      if (err != CV_OK) {
        *ret_bad = NULL;
        return err;
      }
    }
  }
  return CV_OK;
}
