/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a campaign costs a row of its data file: a token's epsilon is what the broker knows of, but a row may be behind
 * many tokens. Only who has the file can say how many. Pure.
 */
#ifndef CV_LAUNCHER_EXPOSURE_H
#define CV_LAUNCHER_EXPOSURE_H

#include <jansson.h>
#include <stdio.h>

#include "deploy/launcher/prepare.h"

/* Room for any line about it. */
enum { CV_EXPOSURE_BYTES = 800 };

struct cv_exposure_ask {
  const struct cv_items *items;
  const struct cv_score_source *source; /* of these items */
  const struct cv_spec *spec;
  const uint64_t *tokens; /* of each arm, those that were released; NULL: before the campaign */
  uint64_t token_micro;   /* what one token is charged, or was */
  bool is_exact;          /* the third-party gets exact sums: no epsilon holds */
  bool is_seed_known;     /* the source has the seed of the workers' scores, so that their rows are known */
};

struct cv_exposure {
  bool is_data; /* scores are rows of a file; else nothing below */
  bool is_past, is_exact, replacement;
  const char *file; /* its name without the folder; borrowed from the items */
  uint64_t rows;
  uint64_t token_micro;
  double mean;   /* uses of a row, of the item of which it is the most; before the campaign, of all items alike */
  uint64_t most; /* uses of one row, at most */
  /* Where the file tells persons apart, each of whom is one worker. */
  uint32_t persons;
  uint64_t person_most; /* rows that one person gives, at most */
  uint64_t beyond;      /* rows that nobody gives, since tokens_per_worker is reached */
  bool is_counted;      /* `most` is what the row that was used most was used, not a bound */
};

/* CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_exposure_find(const struct cv_exposure_ask *ask, struct cv_exposure *ret);
/* Of a campaign that has not begun, whose tokens are charged so much each. */
CV_MUST_USE enum cv_err cv_exposure_plan(const struct cv_prepared *prepared, uint64_t token_micro,
                                         struct cv_exposure *ret);
/* One line without its end, "" if scores are no data. */
void cv_exposure_text(const struct cv_exposure *exposure, char *to, size_t size);
/* The same behind `head`, with its end; nothing if scores are no data. */
void cv_exposure_print(const struct cv_exposure *exposure, const char *head, FILE *to);
/* {rows, replacement, uses_mean, uses_most, uses_counted, row_most_micro (null: no epsilon holds)}, and of persons
 * {persons, person_rows_most, person_most_micro, rows_beyond}; null if scores are no data. NULL when out of memory. */
json_t *cv_exposure_json(const struct cv_exposure *exposure);
/* Charge of a row used so often, micro-epsilon; stops at the end of its range. */
uint64_t cv_exposure_micro(const struct cv_exposure *exposure, uint64_t uses);
/* Exact sums of the scores themselves leave the broker. */
bool cv_spec_is_exact(const struct cv_spec *spec);
/* What a token of this campaign is charged at most, as far as its own file says. */
uint64_t cv_exposure_token_micro(const struct cv_spec *spec);

#endif
