/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons that were logged, so that each is logged once. They are a broker's text: their number is bounded. */
#ifndef CV_WORKER_REASONS_H
#define CV_WORKER_REASONS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/codec/frame.h"

enum { CV_REASONS_MAX = 16 };

/* All zero is empty. */
struct cv_reasons {
  char text[CV_REASONS_MAX][CV_WHY_BYTES];
  uint32_t count;
};

/* True if the reason is new and there is room for it. */
bool cv_reasons_add(struct cv_reasons *reasons, const char *text);

#endif
