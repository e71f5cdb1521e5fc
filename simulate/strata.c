/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/strata.h"

#include <stdlib.h>

struct counts {
  uint32_t values;
  uint32_t value[CV_STRATA_MAX];
  uint64_t rows[CV_STRATA_MAX];
};

/* Counts the values of the arm's rows; false if there are too many. */
static bool count(const struct cv_rows *rows, uint32_t arm, struct counts *counts) {
  counts->values = 0;
  for (uint64_t i = rows->start[arm]; i < rows->start[arm + 1]; i++) {
    uint32_t at = 0;
    while (at < counts->values && counts->value[at] != rows->value[i]) {
      at++;
    }
    if (at == CV_STRATA_MAX) {
      return false;
    }
    if (at == counts->values) {
      counts->value[at] = rows->value[i];
      counts->rows[at] = 0;
      counts->values++;
    }
    counts->rows[at]++;
  }
  return true;
}

static enum cv_err add(struct cv_strata *strata, const struct counts *counts, uint32_t arm) {
  uint64_t first = strata->start[arm], left = 0;
  struct cv_stratum *all = realloc(strata->value, (first + counts->values) * sizeof(*all));
  if (all == NULL && first + counts->values > 0) {
    return CV_ERR_NOMEM;
  }
  strata->value = all;
  for (uint32_t i = counts->values; i > 0; i--) {
    left += counts->rows[i - 1];
    all[first + i - 1] =
        (struct cv_stratum){.value = counts->value[i - 1], .chance = (double)counts->rows[i - 1] / (double)left};
  }
  strata->start[arm + 1] = first + counts->values;
  return CV_OK;
}

enum cv_err cv_strata_init(const struct cv_quality *quality, struct cv_strata *ret, struct cv_why *why) {
  const struct cv_rows *rows = cv_quality_drawn_rows(quality);
  struct cv_strata strata = {0};
  struct counts counts;
  if (rows == NULL) {
    *ret = strata;
    return CV_OK;
  }
  strata.start = calloc((size_t)rows->arms + 1, sizeof(*strata.start));
  enum cv_err err = strata.start == NULL ? CV_ERR_NOMEM : CV_OK;
  for (uint32_t arm = 0; arm < rows->arms && err == CV_OK; arm++) {
    strata.start[arm + 1] = strata.start[arm];
    err = count(rows, arm, &counts) ? add(&strata, &counts, arm) : CV_OK;
  }
  if (err != CV_OK) {
    cv_strata_fini(&strata);
    return cv_fail(why, err, "%s", cv_err_text(err));
  }
  strata.arms = rows->arms;
  *ret = strata;
  return CV_OK;
}

void cv_strata_fini(struct cv_strata *strata) {
  free(strata->start);
  free(strata->value);
  *strata = (struct cv_strata){0};
}

int64_t cv_strata_sum(const struct cv_strata *strata, uint32_t arm, uint64_t count, struct cv_rng *rng) {
  int64_t sum = 0;
  for (uint64_t i = strata->start[arm]; i < strata->start[arm + 1] && count > 0; i++) {
    struct cv_binomial law;
    cv_binomial_init(&law, count, strata->value[i].chance);
    uint64_t drawn = cv_binomial_draw(&law, rng);
    sum += (int64_t)drawn * strata->value[i].value;
    count -= drawn;
  }
  return sum;
}
