/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Prometheus text format, version 0.0.4. A family is its help and type once, then its samples, one after the other:
 *
 *   cv_metric_family(out, "crowdveil_connections", "Open connections, by role.", "gauge");
 *   cv_metric_sample(out, "crowdveil_connections", "role", "worker", 3);
 *   cv_metric_sample(out, "crowdveil_connections", "role", "gateway", 1);
 *
 * Names end in their unit (_seconds, _bytes), counters in _total. A label's values are few and known, or bounded by the
 * caller: a monitoring system keeps a series for each value that it has ever seen.
 */
#ifndef CV_ADMIN_METRICS_H
#define CV_ADMIN_METRICS_H

#include "common/base/buf.h"
#include "common/base/histogram.h"
#include "common/base/refusals.h"

/* Help and type; `type` is "counter", "gauge" or "histogram". `help` is one line without a backslash. */
void cv_metric_family(struct cv_buf *out, const char *name, const char *help, const char *type);
/* One sample of the family; `label` NULL: none. The label's value is escaped and may be any text. */
void cv_metric_sample(struct cv_buf *out, const char *name, const char *label, const char *label_value, double value);

/* A family of one sample with the value 1, whose labels say something of the program. */
struct cv_metric_label {
  const char *name, *value;
};
void cv_metric_info(struct cv_buf *out, const char *name, const char *help, const struct cv_metric_label *label,
                    size_t n);

/* A family of one sample without labels. */
void cv_metric_counter(struct cv_buf *out, const char *name, const char *help, uint64_t value);
void cv_metric_gauge(struct cv_buf *out, const char *name, const char *help, double value);
/* A family of one histogram: its buckets, sum and count. */
void cv_metric_histogram(struct cv_buf *out, const char *name, const char *help, const struct cv_histogram *histogram);
/* crowdveil_refused_total, one sample a reason. */
void cv_metric_refusals(struct cv_buf *out, const struct cv_refusals *refusals);

#endif
