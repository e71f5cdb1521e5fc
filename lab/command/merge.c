/* SPDX-License-Identifier: Apache-2.0 */
/* crowdveil-lab merge: joins the results of shards, or of several runs, into one file. */
#include <inttypes.h>
#include <stdlib.h>

#include "lab/command/command.h"
#include "lab/result/merge.h"

static const struct cv_config_table table = {
    .program = "crowdveil-lab merge",
    .arguments = "OUT FILE...",
    .about = "Joins files of results (of shards, or of further replicates) into the new file OUT.",
};

static int merge(const char *out, const char *const *files, size_t count) {
  struct cv_why why = {0};
  struct cv_lab_merged merged;
  enum cv_err err = cv_lab_merge(out, files, count, &merged, &why);
  if (err != CV_OK) {
    return cv_lab_fail(&table, err, &why);
  }
  (void)printf("%s: %" PRIu64 " of %" PRIu64 " pieces (%" PRIu64 " settings, %" PRIu64 " replicates)", out,
               merged.trials, merged.trials + merged.missing, merged.settings, merged.replicates);
  (void)printf(merged.missing == 0 ? ", complete\n" : ", %" PRIu64 " missing\n", merged.missing);
  return 0;
}

int cv_lab_join(int argc, char **argv) {
  const char **words = calloc((size_t)argc, sizeof(*words));
  CV_REQUIRE(words != NULL);
  size_t most = (size_t)argc;
  int status = cv_command_options(&table, argc, argv, 2, most, words, NULL);
  if (status < 0) {
    size_t count = 1; /* the parser has checked that there are OUT and one FILE at least */
    while (count + 1 < most && words[count + 1] != NULL) {
      count++;
    }
    status = merge(words[0], words + 1, count);
  }
  free(words);
  return status;
}
