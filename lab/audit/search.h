/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the event that tells two neighbours apart best. An event is a conjunction of conditions; a condition
 * compares a quantity with a threshold: at least, at most, exactly. Quantities are the numbers of a row, differences of
 * two, what is left of a number after division by 2, 3 and 5, and one weighted sum of the series: Fisher's linear
 * discriminant, of all weights those under which the neighbours' means lie farthest apart in standard deviations. Where
 * noise cancels out of some sum of releases, however many they are, the discriminant is that sum, and exact.
 *
 * Thresholds are quantiles of the samples, what lies half-way between the neighbours, and values that come again and
 * again. The conjunction grows greedily on two thirds of the runs and is cut back on the others. What it is worth must
 * be judged on new ones.
 */
#ifndef CV_LAB_AUDIT_SEARCH_H
#define CV_LAB_AUDIT_SEARCH_H

#include "lab/audit/subject.h"

enum { CV_AUDIT_CONDITIONS_MAX = 12, CV_AUDIT_SUM = UINT16_MAX };

enum cv_audit_relation { CV_AUDIT_AT_LEAST, CV_AUDIT_AT_MOST, CV_AUDIT_EQUAL };

struct cv_audit_condition {
  uint16_t plus;    /* CV_AUDIT_SUM: the weighted sum */
  uint16_t modulus; /* 0: none */
  int32_t minus;    /* -1: none */
  enum cv_audit_relation relation;
  int64_t threshold;
};

struct cv_audit_event {
  bool likelier; /* the neighbour under which it is the likelier one */
  uint32_t conditions, series;
  struct cv_audit_condition condition[CV_AUDIT_CONDITIONS_MAX];
  double weight[CV_AUDIT_WIDTH_MAX]; /* of the weighted sum; the largest is 1 or -1, or all are 0 */
};

/* rows[0] and rows[1]: `runs` runs of `width` numbers on each neighbour. `error` as the judge will use it. */
CV_MUST_USE enum cv_err cv_audit_search(const struct cv_audit_subject *subject, const int64_t *const rows[2],
                                        uint64_t runs, double error, struct cv_audit_event *ret);

/* How many of the rows it happened in. */
uint64_t cv_audit_count(const struct cv_audit_event *event, const int64_t *rows, uint32_t width, uint64_t runs);

/* "F(3) - F(2) >= 1048570 and ..."; cut to `size`. */
void cv_audit_describe(const struct cv_audit_event *event, const struct cv_audit_subject *subject, char *text,
                       size_t size);

#endif
