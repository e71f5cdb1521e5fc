/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil compare: shows two rankings of the same items side by side. */
#include <stdio.h>

#include "deploy/launcher/command.h"
#include "deploy/launcher/compare.h"
#include "deploy/launcher/json.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {
    {.key = "json",
     .type = CV_CONFIG_BOOL,
     .offset = offsetof(struct settings, json),
     .fallback = "false",
     .help = "print the comparison as one JSON object"},
};

static const struct cv_config_table table = {
    .program = "crowdveil compare",
    .arguments = "RESULT.JSON RESULT.JSON",
    .about = "shows two rankings of the same items side by side; each file has what `crowdveil up --json` printed",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static enum cv_err read_both(const char *const path[2], struct cv_compared of[2], struct cv_why *why) {
  CV_TRY(cv_compared_read(path[0], &of[0], why));
  CV_TRY(cv_compared_read(path[1], &of[1], why));
  return cv_compare_check(of, path, why);
}

static void show(const struct cv_compared of[2], bool as_json) {
  if (as_json) {
    cv_json_print(cv_compare_json(of), JSON_REAL_PRECISION(10));
  } else if (cv_compare_print(of, stdout) != CV_OK) {
    cv_standard_lose();
  }
}

int cv_launcher_compare(int argc, char **argv) {
  struct settings settings = {0};
  const char *words[CV_WORDS_MAX] = {0};
  struct cv_compared of[2] = {0};
  struct cv_why why;
  int status = cv_command_options(&table, argc, argv, 2, 2, words, &settings);
  if (status < 0) {
    enum cv_err err = read_both(words, of, &why);
    status = err == CV_OK ? 0 : cv_command_fail(&table, err == CV_ERR_NOMEM ? 1 : 2, "%s", why.text);
    if (err == CV_OK) {
      show(of, settings.json);
    }
  }
  cv_compared_fini(&of[0]);
  cv_compared_fini(&of[1]);
  cv_config_fini(&table, &settings);
  return status;
}
