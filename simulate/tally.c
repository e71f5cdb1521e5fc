/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/tally.h"

#include <stdlib.h>

struct counts {
  uint32_t values;
  uint32_t value[CV_TALLY_VALUES];
  uint64_t rows[CV_TALLY_VALUES];
};

/* Counts the values of the arm's rows; false if there are too many. */
static bool count(const struct cv_rows *rows, uint32_t arm, struct counts *counts) {
  counts->values = 0;
  for (uint64_t i = rows->start[arm]; i < rows->start[arm + 1]; i++) {
    uint32_t at = 0;
    while (at < counts->values && counts->value[at] != rows->value[i]) {
      at++;
    }
    if (at == CV_TALLY_VALUES) {
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

static enum cv_err add(struct cv_tally *tally, const struct counts *counts, uint32_t arm) {
  uint64_t first = tally->start[arm], left = 0;
  struct cv_tally_value *all = realloc(tally->value, (first + counts->values) * sizeof(*all));
  if (all == NULL && first + counts->values > 0) {
    return CV_ERR_NOMEM;
  }
  tally->value = all;
  for (uint32_t i = counts->values; i > 0; i--) {
    left += counts->rows[i - 1];
    all[first + i - 1] =
        (struct cv_tally_value){.value = counts->value[i - 1], .chance = (double)counts->rows[i - 1] / (double)left};
  }
  tally->start[arm + 1] = first + counts->values;
  return CV_OK;
}

enum cv_err cv_tally_init(const struct cv_quality *quality, struct cv_tally *ret, struct cv_why *why) {
  const struct cv_rows *rows = cv_quality_drawn_rows(quality);
  struct cv_tally tally = {0};
  struct counts counts;
  if (rows == NULL) {
    *ret = tally;
    return CV_OK;
  }
  tally.start = calloc((size_t)rows->arms + 1, sizeof(*tally.start));
  enum cv_err err = tally.start == NULL ? CV_ERR_NOMEM : CV_OK;
  for (uint32_t arm = 0; arm < rows->arms && err == CV_OK; arm++) {
    tally.start[arm + 1] = tally.start[arm];
    err = count(rows, arm, &counts) ? add(&tally, &counts, arm) : CV_OK;
  }
  if (err != CV_OK) {
    cv_tally_fini(&tally);
    return cv_fail(why, err, "%s", cv_err_text(err));
  }
  tally.arms = rows->arms;
  *ret = tally;
  return CV_OK;
}

void cv_tally_fini(struct cv_tally *tally) {
  free(tally->start);
  free(tally->value);
  *tally = (struct cv_tally){0};
}

int64_t cv_tally_sum(const struct cv_tally *tally, uint32_t arm, uint64_t count, struct cv_rng *rng) {
  int64_t sum = 0;
  for (uint64_t i = tally->start[arm]; i < tally->start[arm + 1] && count > 0; i++) {
    struct cv_binomial law;
    cv_binomial_init(&law, count, tally->value[i].chance);
    uint64_t drawn = cv_binomial_draw(&law, rng);
    sum += (int64_t)drawn * tally->value[i].value;
    count -= drawn;
  }
  return sum;
}
