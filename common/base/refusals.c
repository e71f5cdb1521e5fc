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
  if (refusal < CV_REFUSALS) {
    refusals->count[refusal]++;
  }
}
