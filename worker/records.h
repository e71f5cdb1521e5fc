/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a comma or tab separated file, one at a time, in bounded memory. The form is csv.h's. */
#ifndef CV_WORKER_RECORDS_H
#define CV_WORKER_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

struct cv_records {
  const char *path; /* for messages */
  FILE *file;
  char delimiter;
  uint64_t line;  /* where the reader is, from 1 */
  uint64_t start; /* where the current record begins */
  /* The current record: field i is text + at[i], terminated. */
  uint32_t fields;
  uint32_t *at;
  char *text;
  size_t used, cap;
};

/* Opens a regular file. `path` is kept, not copied. */
CV_MUST_USE enum cv_err cv_records_open(const char *path, char delimiter, struct cv_records *ret, struct cv_why *why);
void cv_records_close(struct cv_records *records);
/* To the start of the file again. */
CV_MUST_USE enum cv_err cv_records_rewind(struct cv_records *records, struct cv_why *why);
/* The next record that is not an empty line; *ret_end is true, and there is none, at the end of the file. */
CV_MUST_USE enum cv_err cv_records_next(struct cv_records *records, bool *ret_end, struct cv_why *why);
/* Likewise, but a record without exactly so many fields is CV_ERR_INVALID. */
CV_MUST_USE enum cv_err cv_records_row(struct cv_records *records, uint32_t fields, bool *ret_end, struct cv_why *why);
/* Field i of the current record. */
const char *cv_records_field(const struct cv_records *records, uint32_t i);
/* Which field of the current record, a header, has this name: one must, and only one. CV_ERR_INVALID. */
CV_MUST_USE enum cv_err cv_records_column(const struct cv_records *records, const char *name, uint32_t *ret,
                                          struct cv_why *why);

/* A finite decimal number, maybe with blanks around it, and nothing else; false if it is none. */
CV_MUST_USE bool cv_records_number(const char *text, double *ret);

/* A piece of a file for a message: short and without control characters. */
struct cv_quote {
  char text[64];
};
const char *cv_quote(struct cv_quote *quote, const char *text);

#endif
