/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-lab merge: joins the results of shards, or of several runs, into one file. */
#include <inttypes.h>
#include <stdlib.h>

#include "lab/command/command.h"
#include "lab/result/merge.h"

struct settings {
  bool json;
};

static const struct cv_config_rule rules[] = {CV_LAB_JSON_RULE(offsetof(struct settings, json))};

static const struct cv_config_table table = {
    .program = "crowdveil-lab merge",
    .arguments = "OUT FILE...",
    .about = "Joins files of results (of shards, or of further replicates) into the new file OUT.",
    .rules = rules,
    .count = CV_COUNT(rules),
};

static int merge(const struct settings *settings, const char *out, const char *const *files, size_t count) {
  struct cv_why why = {0};
  struct cv_lab_merged merged;
  enum cv_err err = cv_lab_merge(out, files, count, &merged, &why);
  if (err != CV_OK) {
    return cv_lab_fail(&table, err, &why);
  }
  if (settings->json) {
    cv_lab_print_object(json_pack("{s:s, s:I, s:I, s:I, s:I}", "file", out, "pieces", (json_int_t)merged.trials,
                                  "missing", (json_int_t)merged.missing, "settings", (json_int_t)merged.settings,
                                  "replicates", (json_int_t)merged.replicates));
    return 0;
  }
  (void)printf("%s: %" PRIu64 " of %" PRIu64 " pieces (%" PRIu64 " settings, %" PRIu64 " replicates)", out,
               merged.trials, merged.trials + merged.missing, merged.settings, merged.replicates);
  (void)printf(merged.missing == 0 ? ", complete\n" : ", %" PRIu64 " missing\n", merged.missing);
  return 0;
}

int cv_lab_join(int argc, char **argv) {
  const char **words = calloc((size_t)argc, sizeof(*words));
  CV_REQUIRE(words != NULL);
  struct settings settings = {0};
  size_t most = (size_t)argc;
  int status = cv_command_options(&table, argc, argv, 2, most, words, &settings);
  if (status < 0) {
    size_t count = 1; /* the parser has checked that there are OUT and one FILE at least */
    while (count + 1 < most && words[count + 1] != NULL) {
      count++;
    }
    status = merge(&settings, words[0], words + 1, count);
  }
  free(words);
  return status;
}
