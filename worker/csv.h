/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader for a data file of scores: comma or tab separated, a header line, one row per score.
 *
 * The format is strict RFC 4180: fields may be in double quotes (a doubled quote stands for one quote; line breaks may
 * be inside), lines end with LF or CR LF, every row has as many fields as the header. The reader skips a UTF-8 byte
 * order mark and empty lines. Errors are one line `FILE:LINE: what; expected ...`, where LINE is the first line of the
 * row.
 */
#ifndef CV_WORKER_CSV_H
#define CV_WORKER_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"
#include "worker/quality/persons.h"
#include "worker/quality/rows.h"

struct cv_csv_ask {
  const char *path; /* a regular file; the reader reads it twice */
  const char *item_column, *score_column;
  const char *worker_column; /* names the person of each row; NULL: none */
  char delimiter;
  bool has_scale;   /* false: the smallest and largest score of the file map to 0 and 1 */
  double low, high; /* the scale: scores `low` and `high` map to 0 and 1; low < high */
};

struct cv_csv_data {
  uint32_t items;
  /* Item i is arm i. Sorted by number if every name is a number, else by bytes, so that every reader numbers the arms
   * alike, in whatever order the rows come. */
  const char **name;         /* names.h; owned */
  struct cv_rows rows;       /* an arm's rows in the file's order; 4 bytes a row */
  struct cv_persons persons; /* with a worker column: another 8 bytes a row */
  double low, high;          /* the applied scale */
};

/*
 * Reads the file; the caller frees *ret with cv_csv_fini(). Rows with the same worker name, byte by byte, belong to one
 * person; a name is 1 to 255 bytes of printable UTF-8 without a blank at either end. CV_ERR_IO, CV_ERR_INVALID,
 * CV_ERR_LIMIT (more than CV_ARMS_MAX items or CV_PERSONS_MAX persons, a field too long) or CV_ERR_NOMEM.
 */
CV_MUST_USE enum cv_err cv_csv_read(const struct cv_csv_ask *ask, struct cv_csv_data *ret, struct cv_why *why);
void cv_csv_fini(struct cv_csv_data *data);

#endif
