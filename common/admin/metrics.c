/* SPDX-License-Identifier: Apache-2.0 */
#include "common/admin/metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct cv_buf *out, const char *text) {
  cv_buf_put(out, text, strlen(text));
}

/* The shortest text that reads back as the same number: 0.005, not 0.0050000000000000001. */
static void put_number(struct cv_buf *out, double value) {
  char text[32];
  if (!isfinite(value)) {
    put(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    return;
  }
  for (int digits = 15; digits <= 17; digits++) {
    (void)snprintf(text, sizeof(text), "%.*g", digits, value);
    if (strtod(text, NULL) == value) {
      break;
    }
  }
  put(out, text);
}

static void put_escaped(struct cv_buf *out, const char *text) {
  for (; *text != '\0'; text++) {
    const char *escaped = *text == '\\' ? "\\\\" : *text == '"' ? "\\\"" : *text == '\n' ? "\\n" : NULL;
    if (escaped != NULL) {
      put(out, escaped);
    } else {
      cv_buf_put(out, text, 1);
    }
  }
}

void cv_metric_family(struct cv_buf *out, const char *name, const char *help, const char *type) {
  const char *const parts[] = {"# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n"};
  for (size_t i = 0; i < CV_COUNT(parts); i++) {
    put(out, parts[i]);
  }
}

static void put_label(struct cv_buf *out, const char *before, const char *label, const char *value) {
  put(out, before);
  put(out, label);
  put(out, "=\"");
  put_escaped(out, value);
  put(out, "\"");
}

static void put_value(struct cv_buf *out, double value) {
  put(out, " ");
  put_number(out, value);
  put(out, "\n");
}

void cv_metric_sample(struct cv_buf *out, const char *name, const char *label, const char *label_value, double value) {
  put(out, name);
  if (label != NULL) {
    put_label(out, "{", label, label_value);
    put(out, "}");
  }
  put_value(out, value);
}

void cv_metric_info(struct cv_buf *out, const char *name, const char *help, const struct cv_metric_label *label,
                    size_t n) {
  cv_metric_family(out, name, help, "gauge");
  put(out, name);
  for (size_t i = 0; i < n; i++) {
    put_label(out, i == 0 ? "{" : ",", label[i].name, label[i].value);
  }
  put(out, "}");
  put_value(out, 1);
}

void cv_metric_counter(struct cv_buf *out, const char *name, const char *help, uint64_t value) {
  cv_metric_family(out, name, help, "counter");
  cv_metric_sample(out, name, NULL, NULL, (double)value);
}

void cv_metric_gauge(struct cv_buf *out, const char *name, const char *help, double value) {
  cv_metric_family(out, name, help, "gauge");
  cv_metric_sample(out, name, NULL, NULL, value);
}

void cv_metric_histogram(struct cv_buf *out, const char *name, const char *help, const struct cv_histogram *histogram) {
  char part[96], bound[32];
  cv_metric_family(out, name, help, "histogram");
  (void)snprintf(part, sizeof(part), "%s_bucket", name);
  for (size_t i = 0; i < histogram->bounds; i++) {
    (void)snprintf(bound, sizeof(bound), "%g", histogram->bound[i]);
    cv_metric_sample(out, part, "le", bound, (double)cv_histogram_upto(histogram, i));
  }
  double count = (double)cv_histogram_upto(histogram, histogram->bounds);
  cv_metric_sample(out, part, "le", "+Inf", count);
  (void)snprintf(part, sizeof(part), "%s_sum", name);
  cv_metric_sample(out, part, NULL, NULL, histogram->sum);
  (void)snprintf(part, sizeof(part), "%s_count", name);
  cv_metric_sample(out, part, NULL, NULL, count);
}

void cv_metric_refusals(struct cv_buf *out, const struct cv_refusals *refusals) {
  cv_metric_family(out, "crowdveil_refused_total", "Refused actions of peers, by reason.", "counter");
  for (int i = 0; i < CV_REFUSALS; i++) {
    cv_metric_sample(out, "crowdveil_refused_total", "reason", cv_refusal_text((enum cv_refusal)i),
                     (double)refusals->count[i]);
  }
}
