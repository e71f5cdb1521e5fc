/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for the event that distinguishes two neighbours best. An event is a conjunction of conditions; a condition
 * compares a quantity with a threshold: at least, at most, exactly. Quantities are the numbers of a row, differences of
 * two of them, remainders of a number modulo 2, 3 and 5, and one weighted sum of the series: Fisher's linear
 * discriminant, whose weights separate the neighbours' means most, in standard deviations. If noise cancels out of some
 * sum of releases, however many they are, the discriminant is exactly that sum.
 *
 * Thresholds are quantiles of the samples, the middle between the neighbours' medians, and values that occur often. The
 * conjunction grows greedily on two thirds of the runs and is shortened on the others. Its epsilon must be tested on
 * new runs.
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
  bool likelier; /* the neighbour on which the event is likelier */
  uint32_t conditions, series;
  struct cv_audit_condition condition[CV_AUDIT_CONDITIONS_MAX];
  double weight[CV_AUDIT_WIDTH_MAX]; /* of the weighted sum; the largest is 1 or -1, or all are 0 */
};

/* Sets *ret to the best event found. rows[0] and rows[1]: `runs` rows of `width` numbers on each neighbour. `error`:
 * the error probability of the test that follows. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_audit_search(const struct cv_audit_subject *subject, const int64_t *const rows[2],
                                        uint64_t runs, double error, struct cv_audit_event *ret);

/* The number of rows in which the event happened. */
uint64_t cv_audit_count(const struct cv_audit_event *event, const int64_t *rows, uint32_t width, uint64_t runs);

/* Describes the event: "F(3) - F(2) >= 1048570 and ...", cut to `size`. */
void cv_audit_describe(const struct cv_audit_event *event, const struct cv_audit_subject *subject, char *text,
                       size_t size);

#endif
