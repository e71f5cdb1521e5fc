/* SPDX-License-Identifier: Apache-2.0 */
/* The section `experiment` of a campaign file, and the campaigns that its series and points make of it. */
#include "lab/experiment/experiment.h"
#include "lab/experiment/campaigns.h"

#include "lab/experiment/read.h"
#include "lab/result/dataset.h"
#include "lab/run/measure.h"
#include "lab/run/measure_table.h"
#include "prepare/prepare.h"
#include "tests/fuzz/fuzz.h"

static size_t at_most_two(size_t n) {
  return n < 2 ? n : 2;
}

/* The path is that of a preset, so that no file named by the input is opened. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  struct cv_lab_experiment experiment;
  struct cv_why why = {.text = ""};
  if (cv_lab_experiment_parse("fuzz", (const char *)bytes, n, NULL, &experiment, &why) != CV_OK) {
    fuzz_line(why.text);
    return 0;
  }
  CV_REQUIRE(experiment.points >= 1 && experiment.series >= 1 && experiment.metrics >= 1);
  CV_REQUIRE(cv_lab_piece_values(&experiment) * cv_lab_settings_of(&experiment) ==
             experiment.points * experiment.series * experiment.metrics);
  for (size_t series = 0; series < at_most_two(experiment.series); series++) {
    for (size_t setting = 0; setting < at_most_two(cv_lab_settings_of(&experiment)); setting++) {
      struct cv_prepared prepared;
      why.text[0] = '\0';
      enum cv_err err = cv_lab_prepare(&experiment, series, setting, 1, &prepared, &why);
      if (err == CV_OK) {
        err = cv_lab_measure_check(&experiment, series, &prepared, &why);
        cv_prepared_fini(&prepared);
      }
      if (err != CV_OK) {
        fuzz_line(why.text);
      }
    }
  }
  cv_lab_experiment_fini(&experiment);
  return 0;
}
