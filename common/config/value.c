/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/address.h"
#include "common/base/nearest.h"
#include "common/base/party.h"
#include "common/base/text.h"

bool cv_value_whole(const char *text, uint64_t *ret) {
  uint64_t value = 0;
  if (text[0] == '\0') {
    return false;
  }
  for (const char *c = text; *c != '\0'; c++) {
    if (*c < '0' || *c > '9' || __builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value)) {
      return false;
    }
  }
  *ret = value;
  return true;
}

bool cv_value_real(const char *text, double *ret) {
  /* strtod() also accepts blanks, hexadecimal, "inf" and "nan". */
  if (text[0] == '\0' || text[strspn(text, "+-.0123456789eE")] != '\0') {
    return false;
  }
  /* strtod() uses the decimal point of the locale, which no program of ours sets. */
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || !isfinite(value)) {
    return false;
  }
  *ret = value;
  return true;
}

bool cv_value_micro(const char *text, uint64_t *ret) {
  /* Read as digits, not as a double: budgets and epsilons are exact to the last micro-unit. */
  size_t digits = strspn(text, "0123456789");
  const char *fraction = text[digits] == '.' ? text + digits + 1 : "";
  size_t decimals = strlen(fraction);
  if (digits == 0 || digits > 12 || decimals > 6 || strspn(fraction, "0123456789") != decimals ||
      (text[digits] != '\0' && (text[digits] != '.' || decimals == 0))) {
    return false;
  }
  uint64_t value = 0;
  /* At most 12 + 6 digits, which fit 64 bits. */
  for (size_t i = 0; i < digits; i++) {
    value = value * 10 + (uint64_t)(text[i] - '0');
  }
  for (size_t i = 0; i < 6; i++) {
    value = value * 10 + (i < decimals ? (uint64_t)(fraction[i] - '0') : 0);
  }
  *ret = value;
  return true;
}

char *cv_value_path(const char *text, const char *folder) {
  /* On the command line a path is relative to the current folder, as in every program. */
  if (folder == NULL || text[0] == '/') {
    return strdup(text);
  }
  char *path;
  return asprintf(&path, "%s/%s", folder, text) < 0 ? NULL : path;
}

static bool parse_time(const char *text, bool none_allowed, uint64_t *ret_ms) {
  static const struct {
    const char *unit;
    uint64_t ms;
  } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
  if (none_allowed && strcmp(text, "none") == 0) {
    *ret_ms = 0;
    return true;
  }
  char number[24];
  size_t digits = strspn(text, "0123456789");
  if (digits >= sizeof(number)) {
    return false;
  }
  memcpy(number, text, digits);
  number[digits] = '\0';
  uint64_t value;
  if (!cv_value_whole(number, &value)) {
    return false;
  }
  /* A unit is required: a bare number would be read as seconds by some and as milliseconds by others. */
  for (size_t i = 0; i < CV_COUNT(units); i++) {
    if (strcmp(text + digits, units[i].unit) == 0) {
      return !__builtin_mul_overflow(value, units[i].ms, ret_ms);
    }
  }
  return false;
}

static bool parse_word(const char *text, const char *const *choices, int *ret) {
  for (int i = 0; choices[i] != NULL; i++) {
    if (strcmp(text, choices[i]) == 0) {
      *ret = i;
      return true;
    }
  }
  return false;
}

static size_t choices_of(const struct cv_config_rule *rule) {
  size_t n = 0;
  while (rule->choices[n] != NULL) {
    n++;
  }
  return n;
}

static bool is_good(const struct cv_config_rule *rule, const char *word) {
  struct cv_address address;
  int which;
  return rule->type == CV_CONFIG_ADDRESSES ? cv_address_parse(word, &address, NULL) == CV_OK
                                           : parse_word(word, rule->choices, &which);
}

/* Finds the first word of the text that is no choice, or no address, and copies it to `to`; false if there is none. */
static bool find_stray(const struct cv_config_rule *rule, const char *text, char *to, size_t size, size_t *ret_at) {
  const char *at = text;
  size_t n;
  for (const char *word; (word = cv_text_word(&at, &n)) != NULL;) {
    (void)snprintf(to, size, "%.*s", (int)(n < size ? n : size - 1), word);
    if (n >= size || !is_good(rule, to)) {
      *ret_at = (size_t)(word - text);
      return true;
    }
  }
  return false;
}

static bool are_words(const struct cv_config_rule *rule, const char *text) {
  char stray[CV_ADDRESS_BYTES];
  const char *first = text;
  size_t n, at;
  return cv_text_word(&first, &n) != NULL && !find_stray(rule, text, stray, sizeof(stray), &at);
}

/* A word of a list of words, or of addresses. */
static void describe_stray(const struct cv_config_rule *rule, const char *name, const char *stray, struct cv_why *ret) {
  if (rule->type == CV_CONFIG_ADDRESSES) {
    cv_why_set(ret, "%s has %s; " CV_ADDRESS_EXPECTED, name, cv_text_quote(stray).text);
    return;
  }
  const char *nearest = cv_nearest(stray, rule->choices, choices_of(rule));
  if (nearest != NULL) {
    cv_why_set(ret, "%s names %s; did you mean \"%s\"?", name, cv_text_quote(stray).text, nearest);
    return;
  }
  char expected[240];
  cv_value_describe(rule, expected, sizeof(expected));
  cv_why_set(ret, "%s names %s; expected %s", name, cv_text_quote(stray).text, expected);
}

bool cv_value_stray(const struct cv_config_rule *rule, const char *name, const char *text, struct cv_why *ret,
                    size_t *ret_at) {
  char stray[CV_ADDRESS_BYTES];
  bool is_list = rule->type == CV_CONFIG_WORDS || rule->type == CV_CONFIG_ADDRESSES;
  if (is_list && find_stray(rule, text, stray, sizeof(stray), ret_at)) {
    describe_stray(rule, name, stray, ret);
    return true;
  }
  if (rule->type != CV_CONFIG_WORD || text[0] == '\0') {
    return false;
  }
  *ret_at = 0;
  if (rule->noun != NULL) {
    (void)cv_nearest_fail(ret, rule->noun, text, rule->choices, choices_of(rule));
    return true;
  }
  const char *nearest = cv_nearest(text, rule->choices, choices_of(rule));
  if (nearest != NULL) {
    cv_why_set(ret, "%s is %s; did you mean \"%s\"?", name, cv_text_quote(text).text, nearest);
  }
  return nearest != NULL;
}

static bool is_within(const struct cv_config_rule *rule, double value) {
  return value >= rule->low && value <= rule->high;
}

static enum cv_err parse_text(const struct cv_config_rule *rule, const char *text, const char *folder, char **ret) {
  bool is_path = rule->type == CV_CONFIG_PATH;
  if (!cv_text_is_clean(text, strlen(text)) || (is_path && text[0] == '\0')) {
    return CV_ERR_INVALID;
  }
  char *copy = cv_value_path(text, is_path ? folder : NULL);
  if (copy == NULL) {
    return CV_ERR_NOMEM;
  }
  *ret = copy;
  return CV_OK;
}

enum cv_err cv_value_parse(const struct cv_config_rule *rule, const char *text, const char *folder,
                           union cv_value *ret) {
  union cv_value value = {0};
  struct cv_addresses addresses;
  bool fits = false;
  switch (rule->type) {
    case CV_CONFIG_TEXT:
    case CV_CONFIG_PATH:
      CV_TRY(parse_text(rule, text, folder, &value.text));
      fits = true;
      break;
    case CV_CONFIG_WHOLE:
      fits = cv_value_whole(text, &value.whole) && is_within(rule, (double)value.whole);
      break;
    case CV_CONFIG_REAL:
      fits = cv_value_real(text, &value.real) && is_within(rule, value.real);
      break;
    case CV_CONFIG_BOOL:
      value.flag = strcmp(text, "true") == 0 || strcmp(text, "yes") == 0;
      fits = value.flag || strcmp(text, "false") == 0 || strcmp(text, "no") == 0;
      break;
    case CV_CONFIG_TIME:
      fits = parse_time(text, rule->low <= 0, &value.whole) && is_within(rule, (double)value.whole);
      break;
    case CV_CONFIG_WORD:
      fits = parse_word(text, rule->choices, &value.word);
      break;
    case CV_CONFIG_WORDS:
      fits = are_words(rule, text);
      if (fits) {
        CV_TRY(parse_text(rule, text, NULL, &value.text));
      }
      break;
    case CV_CONFIG_ADDRESSES:
      fits = cv_addresses_parse(text, &addresses, NULL) == CV_OK;
      if (fits) {
        CV_TRY(parse_text(rule, text, NULL, &value.text));
      }
      break;
    case CV_CONFIG_PARTY:
    case CV_CONFIG_PARTIES:
      fits = rule->type == CV_CONFIG_PARTY ? cv_party_is_valid(text) : cv_party_list_is_valid(text);
      if (fits) {
        CV_TRY(parse_text(rule, text, NULL, &value.text));
      }
      break;
    case CV_CONFIG_OTHER:
      break;
  }
  if (!fits) {
    return CV_ERR_INVALID;
  }
  *ret = value;
  return CV_OK;
}

/* Writes a time in the largest unit in which it is a whole number. */
static void describe_ms(double ms, char *to, size_t size) {
  static const struct {
    const char *unit;
    uint64_t ms;
  } units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
  uint64_t whole = (uint64_t)ms;
  size_t i = 0;
  while (whole % units[i].ms != 0) {
    i++;
  }
  (void)snprintf(to, size, "%llu%s", (unsigned long long)(whole / units[i].ms), units[i].unit);
}

static void describe_time(const struct cv_config_rule *rule, char *to, size_t size) {
  char low[32], high[32];
  describe_ms(rule->low, low, sizeof(low));
  describe_ms(rule->high, high, sizeof(high));
  if (rule->low <= 0) {
    (void)snprintf(to, size, "a time of at most %s (like 250ms, 30s, 5m, 1h or 2d) or none", high);
  } else {
    (void)snprintf(to, size, "a time from %s to %s (like 250ms, 30s, 5m, 1h or 2d)", low, high);
  }
}

static void describe_range(const struct cv_config_rule *rule, const char *kind, char *to, size_t size) {
  if (isinf(rule->low) && isinf(rule->high)) {
    (void)snprintf(to, size, "%s", kind);
    /* A limit of this size is that of the type: it would only confuse in a message. */
  } else if (isinf(rule->high) || rule->high >= 0x1p63) {
    (void)snprintf(to, size, "%s of at least %.15g", kind, rule->low);
  } else {
    (void)snprintf(to, size, "%s from %.15g to %.15g", kind, rule->low, rule->high);
  }
}

void cv_value_describe(const struct cv_config_rule *rule, char *to, size_t size) {
  int some = 0;
  switch (rule->type) {
    case CV_CONFIG_TEXT:
      (void)snprintf(to, size, "a text");
      break;
    case CV_CONFIG_PATH:
      (void)snprintf(to, size, "a path");
      break;
    case CV_CONFIG_WHOLE:
      describe_range(rule, "a whole number", to, size);
      break;
    case CV_CONFIG_REAL:
      describe_range(rule, "a number", to, size);
      break;
    case CV_CONFIG_BOOL:
      (void)snprintf(to, size, "true or false (yes or no)");
      break;
    case CV_CONFIG_TIME:
      describe_time(rule, to, size);
      break;
    case CV_CONFIG_WORD:
      cv_text_either(rule->choices, choices_of(rule), to, size);
      break;
    case CV_CONFIG_WORDS:
      some = snprintf(to, size, "some of ");
      cv_text_either(rule->choices, choices_of(rule), to + some, size - (size_t)some);
      break;
    case CV_CONFIG_PARTY:
      (void)snprintf(to, size, "the name in a certificate, without its role");
      break;
    case CV_CONFIG_PARTIES:
      (void)snprintf(to, size, "names in certificates, separated by commas or blanks, or " CV_PARTY_ANY);
      break;
    case CV_CONFIG_ADDRESSES:
      (void)snprintf(to, size, "HOST:PORT, or up to %d of them, separated by commas or blanks", CV_ADDRESSES_MAX);
      break;
    case CV_CONFIG_OTHER:
      (void)snprintf(to, size, "%s", rule->noun);
      break;
  }
}
