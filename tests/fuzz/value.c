/* SPDX-License-Identifier: Apache-2.0 */
/* One value of a configuration: the first byte selects the rule. An accepted value lies in the rule's range. */
#include "common/config/value.h"
#include "common/base/address.h"
#include "common/base/nearest.h"
#include "common/base/party.h"
#include "common/base/spec.h"
#include "common/base/text.h"

#include <math.h>

#include "tests/fuzz/fuzz.h"

static const char *const words[] = {"error", "info", "debug", NULL};
static const struct cv_config_rule rules[] = {
    {.key = "text", .type = CV_CONFIG_TEXT},
    {.key = "path", .type = CV_CONFIG_PATH},
    {.key = "whole", .type = CV_CONFIG_WHOLE, .low = 1, .high = 65535},
    {.key = "wide", .type = CV_CONFIG_WHOLE, .low = 0, .high = 1e18},
    {.key = "real", .type = CV_CONFIG_REAL, .low = -1.5, .high = 1e300},
    {.key = "flag", .type = CV_CONFIG_BOOL},
    {.key = "time", .type = CV_CONFIG_TIME, .low = 0, .high = 1e9},
    {.key = "delay", .type = CV_CONFIG_TIME, .low = 100, .high = 1e9},
    {.key = "word", .type = CV_CONFIG_WORD, .choices = words},
    {.key = "words", .type = CV_CONFIG_WORDS, .choices = words},
    {.key = "party", .type = CV_CONFIG_PARTY},
    {.key = "parties", .type = CV_CONFIG_PARTIES},
    {.key = "addresses", .type = CV_CONFIG_ADDRESSES},
};

/* Each address is a part of the text, as it was written. */
static void check_addresses(const char *text, const char *value) {
  struct cv_addresses addresses;
  CV_REQUIRE(strcmp(value, text) == 0 && cv_addresses_parse(text, &addresses, NULL) == CV_OK);
  CV_REQUIRE(addresses.count >= 1 && addresses.count <= CV_ADDRESSES_MAX);
  for (size_t i = 0; i < addresses.count; i++) {
    CV_REQUIRE(cv_text_lists(text, addresses.text[i]) && strstr(text, addresses.address[i].host) != NULL);
  }
}

static void check_value(const struct cv_config_rule *rule, const char *text, const union cv_value *value) {
  switch (rule->type) {
    case CV_CONFIG_TEXT:
      CV_REQUIRE(strcmp(value->text, text) == 0);
      break;
    case CV_CONFIG_PATH:
      CV_REQUIRE(value->text[0] == '/' && strlen(value->text) >= strlen(text));
      break;
    case CV_CONFIG_WHOLE:
    case CV_CONFIG_TIME:
      CV_REQUIRE((double)value->whole >= rule->low && (double)value->whole <= rule->high);
      break;
    case CV_CONFIG_REAL:
      CV_REQUIRE(value->real >= rule->low && value->real <= rule->high);
      break;
    case CV_CONFIG_BOOL:
      CV_REQUIRE(value->flag == (text[0] == 't'));
      break;
    case CV_CONFIG_WORDS:
      CV_REQUIRE(strcmp(value->text, text) == 0 && strpbrk(text, "eid") != NULL);
      break;
    case CV_CONFIG_PARTY:
      CV_REQUIRE(strcmp(value->text, text) == 0 && strcmp(text, CV_PARTY_ANY) != 0 && strlen(text) < CV_NAME_BYTES);
      CV_REQUIRE(cv_party_list_is_valid(text) && cv_party_list_has(text, text));
      break;
    case CV_CONFIG_PARTIES:
      CV_REQUIRE(strcmp(value->text, text) == 0 && !cv_party_list_has(text, ""));
      break;
    case CV_CONFIG_ADDRESSES:
      check_addresses(text, value->text);
      break;
    default:
      CV_REQUIRE(strcmp(words[value->word], text) == 0);
  }
  if (rule->type != CV_CONFIG_WHOLE && rule->type != CV_CONFIG_TIME && rule->type != CV_CONFIG_REAL &&
      rule->type != CV_CONFIG_BOOL && rule->type != CV_CONFIG_WORD) {
    free(value->text);
  }
}

/* Millionths are exact: they agree with a double where a double is accurate enough. */
static void check_micro(const char *text) {
  uint64_t micro;
  double real;
  if (cv_value_micro(text, &micro)) {
    CV_REQUIRE(cv_value_real(text, &real) && fabs(real * 1e6 - (double)micro) <= 1e-9 * (double)micro + 1e-3);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n < 1) {
    return 0;
  }
  const struct cv_config_rule *rule = &rules[bytes[0] % CV_COUNT(rules)];
  char *text = fuzz_text(bytes + 1, n - 1);
  union cv_value value;
  if (cv_value_parse(rule, text, "/etc", &value) == CV_OK) {
    check_value(rule, text, &value);
  } else {
    char expected[200];
    struct cv_why stray;
    size_t at;
    cv_value_describe(rule, expected, sizeof(expected));
    fuzz_line(expected);
    if (cv_value_stray(rule, "--key", text, &stray, &at)) {
      fuzz_line(stray.text);
      CV_REQUIRE(at < strlen(text));
    }
  }
  check_micro(text);
  struct cv_text_piece quote = cv_text_quote(text);
  fuzz_line(quote.text);
  const char *nearest = cv_nearest(text, words, CV_COUNT(words) - 1);
  CV_REQUIRE(nearest == NULL || nearest == words[0] || nearest == words[1] || nearest == words[2]);
  free(text);
  return 0;
}
