/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data files of a fuzzed worker pool: two, each whole or in parts, with the record of their rows, and privatizers.
 * The record outlives the pool. A file denies a campaign when it has served enough; rows of a part are taken one after
 * another. Any violation ends the program.
 */
#ifndef CV_FUZZ_WORKER_ROWS_H
#define CV_FUZZ_WORKER_ROWS_H

#include "worker/core.h"

enum {
  ROW_ARMS = 3,
  ROW_CAMPAIGNS = 4,
  ROW_LAWS = 4, /* none, two of randomized response, one of noise */
  ROWS_EACH = 12,
  FILES = 2
};

/* What the record keeps of a file, and the tokens of its rows. */
struct file {
  struct files *files;
  bool served[ROW_CAMPAIGNS + 1][ROW_LAWS];
  uint64_t taken[ROW_CAMPAIGNS + 1][ROW_ARMS];
  uint32_t left[ROW_CAMPAIGNS + 1][ROW_ARMS][ROWS_EACH]; /* 1 + the ticket that the row has left with */
  bool is_out[ROW_LAWS][ROW_ARMS][ROWS_EACH];
  int64_t value[ROW_LAWS][ROW_ARMS][ROWS_EACH];
};

struct files {
  struct file file[FILES];
  struct cv_work work[FILES];
  struct cv_worker_record record;
  bool denied[ROW_CAMPAIGNS + 1]; /* the record denied the terms that were told last */
  uint64_t row, at;               /* asked for last, and its position in the order of the arm */
};

/* A score that a token discloses. */
struct disclosure {
  uint32_t file, law, arm;
  uint64_t row, at;
  int64_t value;
};

/* `parts`: a bit for each file that is a part. The works have the names "fuzz" and "other". */
void files_start(struct files *files, uint8_t parts);
uint32_t files_find(const struct cv_terms *terms);
/* The number of the law of these terms; sets their privatizer to that of a number. */
uint32_t files_law(const struct cv_terms *terms);
void files_set_law(struct cv_choice *privatizer, uint32_t law);
/* A token leaves with the ticket of this number. */
void files_hear(struct files *files, uint64_t campaign, uint32_t number, const struct disclosure *heard);

#endif
