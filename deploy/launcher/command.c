/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "deploy/launcher/json.h"
#include "simulate/choose.h"

int cv_launcher_print_json(const struct cv_config_table *table, json_t *object, int status) {
  if (object == NULL) {
    return cv_command_fail(table, 1, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  cv_json_print(object, JSON_COMPACT);
  return status;
}

enum cv_err cv_launcher_number(const char *word, uint64_t *ret, struct cv_why *why) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(word, &end, 10);
  if (word[0] < '1' || word[0] > '9' || *end != '\0' || errno != 0) {
    return cv_fail(why, CV_ERR_INVALID, "\"%.40s\" is not a campaign number; expected a whole number from 1", word);
  }
  *ret = value;
  return CV_OK;
}

enum cv_err cv_launcher_prepare(const struct cv_config_table *table, const char *path, uint64_t seed,
                                struct cv_prepared *ret, struct cv_why *why) {
  return cv_launcher_prepare_for(table, path, seed, 0, ret, why);
}

enum cv_err cv_launcher_prepare_for(const struct cv_config_table *table, const char *path, uint64_t seed,
                                    uint32_t brokers, struct cv_prepared *ret, struct cv_why *why) {
  struct cv_chosen chosen;
  CV_TRY(cv_choose_prepare(path, seed, brokers, ret, &chosen, why));
  if (chosen.text[0] != '\0') {
    (void)fprintf(stderr, "%s: %s\n", table->program, chosen.text);
  }
  return CV_OK;
}

enum cv_err cv_launcher_check_file(const void *settings, const char *file, struct cv_why *why) {
  struct cv_prepared prepared;
  struct cv_chosen chosen;
  (void)settings;
  if (file == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_choose_prepare(file, CV_SEED_NONE, 0, &prepared, &chosen, why));
  cv_prepared_fini(&prepared);
  return CV_OK;
}
