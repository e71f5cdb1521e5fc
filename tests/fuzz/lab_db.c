/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of an experiment's results with changed cells (cells.h). Resuming, exporting and merging it give one line, or
 * numbers of that experiment; none uses more memory than a dataset may.
 */
#include "lab/experiment/read.h"
#include "lab/judge/summary.h"
#include "lab/result/csv.h"
#include "lab/result/merge.h"
#include "lab/result/results.h"
#include "lab/result/store.h"
#include "tests/fuzz/cells.h"

enum { REPLICATES = 2 };

static const char text[] =
    "campaign: fuzz\n"
    "items: {synthetic: {count: 2}}\n"
    "policy: {name: ppar, alpha: 0.1, tokens_per_round: 10}\n"
    "privacy: {mechanism: hybrid, epsilon: 1}\n"
    "limits: {tokens: 100}\n"
    "experiment:\n"
    "  replicates: 2\n"
    "  x: {vary: policy.alpha, values: [.1, .2]}\n"
    "  series: [{name: one}, {name: two, policy.radius: printed}]\n"
    "  metrics: [accuracy, pulls]\n";

static const char *path; /* NULL: no template yet */
static char merged[80];
static struct cv_lab_experiment experiment;
static FILE *nowhere;

static void drop_merged(void) {
  (void)unlink(merged);
}

static void make_template(void) {
  struct cv_lab_store *store;
  struct cv_why why = {.text = ""};
  const struct cv_lab_identity mine = {.experiment = &experiment, .seed = 1};
  path = cells_path();
  (void)snprintf(merged, sizeof(merged), "%s-merged", path);
  (void)atexit(drop_merged);
  nowhere = fopen("/dev/null", "we");
  CV_REQUIRE(nowhere != NULL);
  CV_REQUIRE(cv_lab_experiment_parse("fuzz.yaml", text, strlen(text), NULL, &experiment, &why) == CV_OK);
  CV_REQUIRE(cv_lab_store_open(path, &mine, false, &store, &why) == CV_OK);
  for (size_t i = 0; i < 2 * REPLICATES; i++) {
    const double numbers[] = {.5, (double)i, 1e300, -0.0};
    CV_REQUIRE(cv_lab_store_put(store, i / REPLICATES, i % REPLICATES, numbers, &why) == CV_OK);
  }
  CV_REQUIRE(cv_lab_store_close(store, &why) == CV_OK);
  cells_keep();
}

/* Every error must leave a message: it is all that reports it. */
static bool is_good(enum cv_err err, struct cv_why *why) {
  if (err != CV_OK) {
    fuzz_line(why->text);
    why->text[0] = '\0';
  }
  return err == CV_OK;
}

static void export(void) {
  struct cv_lab_results results;
  struct cv_lab_archive *archive;
  struct cv_why why = {.text = ""};
  if (is_good(cv_lab_results_read(path, &results, &why), &why)) {
    struct cv_lab_result rows = {.preset = results.experiment.name};
    CV_REQUIRE(results.dataset.replicates <= cv_lab_replicates_most(&results.experiment));
    CV_REQUIRE(results.dataset.replicates > 1000 || cv_lab_dataset_rows(&results.dataset, &rows) == CV_OK);
    CV_REQUIRE(cv_lab_csv_rows(&rows, nowhere) == CV_OK);
    cv_lab_result_fini(&rows);
    cv_lab_results_fini(&results);
  }
  if (is_good(cv_lab_archive_open_readonly(path, &archive, &why), &why)) {
    (void)is_good(cv_lab_csv_trials(archive, nowhere, &why), &why);
    cv_lab_archive_close(archive);
  }
}

static void merge(void) {
  const char *const files[] = {path, path};
  struct cv_lab_merged found;
  struct cv_why why = {.text = ""};
  drop_merged();
  if (is_good(cv_lab_merge(merged, files, 2, &found, &why), &why)) {
    CV_REQUIRE(found.trials <= found.settings * found.replicates);
  }
}

static void go_on(void) {
  const struct cv_lab_identity mine = {.experiment = &experiment, .seed = 1};
  struct cv_lab_dataset dataset;
  struct cv_lab_store *store;
  struct cv_why why = {.text = ""};
  if (is_good(cv_lab_store_open(path, &mine, true, &store, &why), &why)) {
    const double numbers[] = {1, 2, 3, 4};
    CV_REQUIRE(cv_lab_dataset_init(&experiment, REPLICATES, &dataset) == CV_OK);
    CV_REQUIRE(cv_lab_store_load(store, &dataset, &why) == CV_OK); /* everything was read */
    cv_lab_dataset_fini(&dataset);
    if (!cv_lab_store_has(store, 1, 5)) {
      (void)is_good(cv_lab_store_put(store, 1, 5, numbers, &why), &why);
    }
    (void)is_good(cv_lab_store_close(store, &why), &why);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_reader in = cv_reader_over(bytes, n);
  if (path == NULL) {
    make_template();
  }
  cells_write(&in);
  export();
  merge();
  go_on();
  return 0;
}
