/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/reasons.h"

#include <stdio.h>
#include <string.h>

bool cv_reasons_add(struct cv_reasons *reasons, const char *text) {
  for (uint32_t i = 0; i < reasons->count; i++) {
    if (strcmp(reasons->text[i], text) == 0) {
      return false;
    }
  }
  if (reasons->count == CV_REASONS_MAX) {
    return false;
  }
  (void)snprintf(reasons->text[reasons->count++], CV_WHY_BYTES, "%s", text);
  return true;
}
