/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/experiment/check.h"

#include "lab/experiment/campaigns.h"
#include "lab/run/formula.h"
#include "lab/run/measure_table.h"
#include "prepare/prepare.h"

enum cv_err cv_lab_experiment_check(struct cv_lab_experiment *experiment, struct cv_why *why) {
  CV_TRY(cv_lab_taxis_read(experiment, why));
  /* The last of a hundred settings may be the faulty one, which would otherwise fail hours later. */
  for (size_t series = 0; series < experiment->series; series++) {
    for (size_t setting = 0; setting < cv_lab_settings_of(experiment); setting++) {
      struct cv_prepared prepared;
      CV_TRY(cv_lab_prepare(experiment, series, setting, 1, &prepared, why));
      enum cv_err err = cv_lab_measure_check(experiment, series, &prepared, why);
      cv_prepared_fini(&prepared);
      CV_TRY(err);
    }
  }
  return cv_lab_formulas_check(experiment, why);
}
