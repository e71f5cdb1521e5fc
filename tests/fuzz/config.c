/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's configuration file, with a rule of each type. */
#include "common/config/config.h"

#include "tests/fuzz/fuzz.h"

struct settings {
  char *listen, *state, *key;
  uint64_t arms, idle;
  double epsilon;
  bool flag;
  int level;
};

#define AT(field) offsetof(struct settings, field)

static const char *const levels[] = {"error", "info", "debug", NULL};
static const struct cv_config_rule rules[] = {
    {.key = "listen", .type = CV_CONFIG_TEXT, .offset = AT(listen), .fallback = "127.0.0.1:1", .help = "text"},
    {.key = "state", .type = CV_CONFIG_PATH, .offset = AT(state), .required = true, .help = "path"},
    {.key = "tls.key", .type = CV_CONFIG_PATH, .offset = AT(key), .help = "path"},
    {.key = "limits.arms", .type = CV_CONFIG_WHOLE, .offset = AT(arms), .low = 1, .high = 4096, .help = "whole"},
    {.key = "limits.epsilon", .type = CV_CONFIG_REAL, .offset = AT(epsilon), .low = 1e-6, .high = 10, .help = "real"},
    {.key = "limits.idle", .type = CV_CONFIG_TIME, .offset = AT(idle), .low = 0, .high = 1e9, .help = "time"},
    {.key = "unsafe", .type = CV_CONFIG_BOOL, .offset = AT(flag), .help = "flag"},
    {.key = "log", .type = CV_CONFIG_WORD, .offset = AT(level), .choices = levels, .fallback = "info", .help = "word"},
};
static const struct cv_config_table table = {
    .program = "fuzz", .about = "a daemon", .rules = rules, .count = CV_COUNT(rules)};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct fuzz_file file;
  struct settings settings = {0};
  struct cv_why why = {.text = ""};
  fuzz_file_make(&file, bytes, n);
  if (cv_config_load(&table, file.path, &settings, &why) == CV_OK) {
    CV_REQUIRE(settings.state != NULL && settings.listen != NULL && settings.level >= 0 && settings.level < 3);
    cv_config_fini(&table, &settings);
  } else {
    fuzz_line(why.text);
    CV_REQUIRE(settings.state == NULL && settings.listen == NULL);
  }
  fuzz_file_drop(&file);
  return 0;
}
