/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the records of a comma or tab separated file one at a time, in bounded memory. A file whose name ends in .gz or
 * .zst is unpacked (bytes.h).
 *
 * The format is strict RFC 4180: fields may be in double quotes (a doubled quote stands for one quote; line breaks may
 * be inside), lines end with LF or CR LF, every row has as many fields as the header. The reader skips a UTF-8 byte
 * order mark and empty lines. Errors are one line `FILE:LINE: what; expected ...`, where LINE is the first line of the
 * record.
 */
#ifndef CV_WORKER_RECORDS_H
#define CV_WORKER_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "worker/bytes.h"

enum { CV_RECORDS_FIELD_BYTES = 4096, CV_RECORDS_COLUMNS_MAX = 1024 };

struct cv_records {
  const char *path; /* for messages */
  struct cv_bytes bytes;
  char delimiter;
  uint64_t line;  /* current line, from 1 */
  uint64_t start; /* first line of the current record */
  /* The current record: field i is text + at[i], terminated. */
  uint32_t fields;
  uint32_t *at;
  char *text;
  size_t used, cap;
};

/* Opens a regular file. Borrows `path` until cv_records_close(). */
CV_MUST_USE enum cv_err cv_records_open(const char *path, char delimiter, struct cv_records *ret, struct cv_why *why);
/* Safe on a zeroed struct. */
void cv_records_close(struct cv_records *records);
/* Reads the next record and skips empty lines; *ret_end is true if there is no further record. */
CV_MUST_USE enum cv_err cv_records_next(struct cv_records *records, bool *ret_end, struct cv_why *why);
/* The same, but CV_ERR_INVALID if the record does not have exactly `fields` fields. */
CV_MUST_USE enum cv_err cv_records_row(struct cv_records *records, uint32_t fields, bool *ret_end, struct cv_why *why);
/* Field i of the current record. */
const char *cv_records_field(const struct cv_records *records, uint32_t i);
/* Sets *ret to the index of the field with this name in the current record, a header. CV_ERR_INVALID if no field or
 * several fields have it. */
CV_MUST_USE enum cv_err cv_records_column(const struct cv_records *records, const char *name, uint32_t *ret,
                                          struct cv_why *why);

/* Parses a finite decimal number, optionally with blanks around it; false if the text is anything else. */
CV_MUST_USE bool cv_records_number(const char *text, double *ret);

#endif
