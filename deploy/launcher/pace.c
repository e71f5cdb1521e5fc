/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pace.h"

#include <inttypes.h>
#include <stdio.h>

struct cv_count_text cv_count_text(uint64_t count) {
  char digits[24];
  struct cv_count_text out;
  size_t n = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;
  for (size_t i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) {
      out.text[at++] = ',';
    }
    out.text[at++] = digits[i];
  }
  out.text[at] = '\0';
  return out;
}

double cv_view_rate(const struct cv_progress *progress) {
  return progress->elapsed_ms == 0 ? 0 : (double)progress->tokens * 1000 / (double)progress->elapsed_ms;
}

struct cv_view_pace cv_view_pace(const struct cv_progress *progress) {
  struct cv_view_pace pace;
  /* Why there is no progress matters more than the rate. */
  if (!progress->thirdparty_connected) {
    (void)snprintf(pace.text, sizeof(pace.text), "no third-party yet");
  } else if (progress->waits_for[0] != '\0') {
    (void)snprintf(pace.text, sizeof(pace.text), "waits for thirdparty/%s", progress->waits_for);
  } else if (progress->waits_for_cobroker) {
    (void)snprintf(pace.text, sizeof(pace.text), "waits for co-broker");
  } else if (progress->workers == 0) {
    (void)snprintf(pace.text, sizeof(pace.text), "no workers yet");
  } else {
    (void)snprintf(pace.text, sizeof(pace.text), "%s/s", cv_count_text((uint64_t)(cv_view_rate(progress) + 0.5)).text);
  }
  return pace;
}
