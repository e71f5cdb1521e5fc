/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's configuration with a rule of each type. */
#ifndef CV_TESTS_SETTINGS_H
#define CV_TESTS_SETTINGS_H

#include "common/config/config.h"

struct settings {
  char *listen, *state, *key, *accept, *brokers;
  uint64_t arms, idle;
  double epsilon;
  bool flag;
  int level;
};

#define AT(field) offsetof(struct settings, field)

static const char *const settings_levels[] = {"error", "info", "debug", NULL};
static const struct cv_config_rule settings_rules[] = {
    {.key = "listen", .type = CV_CONFIG_TEXT, .offset = AT(listen), .fallback = "127.0.0.1:1", .help = "text"},
    {.key = "state", .type = CV_CONFIG_PATH, .offset = AT(state), .required = true, .help = "path"},
    {.key = "tls.key", .type = CV_CONFIG_PATH, .offset = AT(key), .help = "path"},
    {.key = "limits.arms", .type = CV_CONFIG_WHOLE, .offset = AT(arms), .low = 1, .high = 4096, .help = "whole"},
    {.key = "limits.epsilon", .type = CV_CONFIG_REAL, .offset = AT(epsilon), .low = 1e-6, .high = 10, .help = "real"},
    {.key = "limits.idle", .type = CV_CONFIG_TIME, .offset = AT(idle), .low = 0, .high = 1e9, .help = "time"},
    {.key = "unsafe", .type = CV_CONFIG_BOOL, .offset = AT(flag), .help = "flag"},
    {.key = "accept", .type = CV_CONFIG_WORDS, .offset = AT(accept), .choices = settings_levels, .help = "words"},
    {.key = "brokers", .type = CV_CONFIG_ADDRESSES, .offset = AT(brokers), .help = "addresses"},
    {.key = "log",
     .type = CV_CONFIG_WORD,
     .offset = AT(level),
     .choices = settings_levels,
     .fallback = "info",
     .help = "word"},
};
static const struct cv_config_table settings_table = {
    .program = "test", .about = "a daemon", .rules = settings_rules, .count = CV_COUNT(settings_rules)};

#undef AT

#endif
