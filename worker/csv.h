/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data file of scores: comma or tab separated, a header line, one row a score.
 *
 * The form is RFC 4180 and strict: fields may be in double quotes (a doubled quote stands for one; line breaks may be
 * inside), lines end with LF or CR LF, a UTF-8 byte order mark is skipped, lines without anything are skipped, every
 * row has as many fields as the header. Errors are one line `FILE:LINE: what; expected ...`, LINE being where the row
 * starts.
 */
#ifndef CV_WORKER_CSV_H
#define CV_WORKER_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"
#include "worker/quality/persons.h"
#include "worker/quality/rows.h"

enum { CV_CSV_FIELD_BYTES = 4096, CV_CSV_COLUMNS_MAX = 1024 };

struct cv_csv_ask {
  const char *path; /* a regular file: it is read twice */
  const char *item_column, *score_column;
  const char *worker_column; /* of persons; NULL: none */
  char delimiter;
  bool has_scale;   /* false: the smallest and largest score of the file are 0 and 1 */
  double low, high; /* the scale: these scores are 0 and 1; low < high */
};

struct cv_csv_data {
  uint32_t items;
  /* Item i is arm i. In order of number if every name is a number, else in order of bytes, so that everyone who reads
   * the file numbers the arms alike whatever the order of its rows. */
  struct cv_label *name;
  struct cv_rows rows;       /* an arm's rows in the file's order; 4 bytes a row */
  struct cv_persons persons; /* with a column of them: another 8 bytes a row */
  double low, high;          /* the scale that was used */
};

/*
 * A person is whoever has the same name byte by byte: 1 to 63 bytes of printable UTF-8 without a blank at either end.
 * CV_ERR_IO, CV_ERR_INVALID, CV_ERR_LIMIT (more than CV_ARMS_MAX items, too long a field) or CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_csv_read(const struct cv_csv_ask *ask, struct cv_csv_data *ret, struct cv_why *why);
void cv_csv_fini(struct cv_csv_data *data);

#endif
