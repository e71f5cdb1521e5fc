/* SPDX-License-Identifier: Apache-2.0 */
/* What a person's browser sends back with the form. Pure. */
#ifndef CV_WORKER_FORM_POST_H
#define CV_WORKER_FORM_POST_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_FORM_POST_BYTES = 512, CV_FORM_SECRET_BYTES = 33 };

enum cv_form_answer { CV_FORM_SCORE, CV_FORM_TOKEN, CV_FORM_SKIP };

struct cv_form_post {
  enum cv_form_answer kind;
  int64_t value; /* score or token, in grid units */
  uint64_t question;
  char secret[CV_FORM_SECRET_BYTES]; /* ties the form to the person it was made for */
};

/* The score of step `chosen` of `steps`: the nearest grid point of chosen/steps. form/privatizer.js does the same. */
int64_t cv_form_score(uint64_t chosen, uint64_t steps);
/*
 * Reads the body of a post (application/x-www-form-urlencoded): secret, question, and one of score (a whole number from
 * 0 to `steps`), token (grid units) and skip. CV_ERR_FORMAT with what was expected.
 */
CV_MUST_USE enum cv_err cv_form_read(const char *body, size_t n, uint64_t steps, struct cv_form_post *ret,
                                     struct cv_why *why);

#endif
