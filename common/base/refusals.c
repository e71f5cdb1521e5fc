/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/refusals.h"

const char *cv_refusal_text(enum cv_refusal refusal) {
  static const char *const texts[] = {
#define CV_REFUSAL_ENTRY(name, text) [name] = (text),
      CV_REFUSAL_TABLE(CV_REFUSAL_ENTRY)
#undef CV_REFUSAL_ENTRY
          [CV_REFUSALS] = "none",
  };
  return texts[refusal];
}

void cv_refusals_add(struct cv_refusals *refusals, enum cv_refusal refusal) {
  /* CV_REFUSALS itself means: not a refusal. */
  if (refusal < CV_REFUSALS) {
    refusals->count[refusal]++;
  }
}

enum cv_refusal cv_refusal_of(enum cv_err err) {
  switch (err) {
    case CV_OK:
      return CV_REFUSALS;
    case CV_ERR_VERSION:
      return CV_REFUSED_HELLO;
    case CV_ERR_DENIED:
      return CV_REFUSED_ROLE;
    case CV_ERR_LIMIT:
      return CV_REFUSED_LIMIT;
    case CV_ERR_EXISTS:
      return CV_REFUSED_OVERLAP;
    case CV_ERR_NOT_FOUND:
      return CV_REFUSED_CAMPAIGN;
    default:
      return CV_REFUSED_ORDER;
  }
}

void cv_refusals_sum(struct cv_refusals *refusals, const struct cv_refusals *others) {
  for (int i = 0; i < CV_REFUSALS; i++) {
    refusals->count[i] += others->count[i];
  }
}
