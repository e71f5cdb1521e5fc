/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The privacy loss of a row of a data file. The broker charges epsilon per token, but one row may be the source of many
 * tokens; only the party with the file can compute how many. No input or output but cv_exposure_print().
 */
#ifndef CV_LAUNCHER_EXPOSURE_H
#define CV_LAUNCHER_EXPOSURE_H

#include <jansson.h>
#include <stdio.h>

#include "prepare/prepare.h"

/* Room for the longest line of cv_exposure_text(). */
enum { CV_EXPOSURE_BYTES = 800 };

struct cv_exposure_ask {
  const struct cv_items *items;
  const struct cv_score_source *source; /* of these items */
  const struct cv_spec *spec;
  const uint64_t *tokens; /* released tokens of each arm; NULL: the campaign has not begun */
  uint64_t token_micro;   /* charge of one token, micro-epsilon */
  bool is_exact;          /* the third-party gets exact sums: no epsilon bounds the loss */
  bool is_expected;       /* `tokens` is what a campaign that has not begun is expected to take */
  bool is_seed_known;     /* the source has the workers' seed, so the rows that were drawn can be computed */
};

struct cv_exposure {
  bool is_data; /* scores are rows of a file; if false, the other fields are not set */
  bool is_past, is_expected, is_exact, replacement;
  const char *file; /* its name without the folder; borrowed from the items */
  uint64_t rows;
  uint64_t token_micro;
  bool is_known; /* false: only the gateways know how often a row was used; then `most` is of no use */
  double mean;   /* average uses of a row, of the item with the highest average; before the campaign, over all items */
  uint64_t most; /* largest number of uses of one row */
  /* If the file names persons, each of whom is one worker: */
  uint32_t persons;
  uint64_t person_most; /* largest number of rows that one person gives */
  bool is_once;         /* some person has several rows of an item, and gives one of them */
  uint64_t beyond;      /* rows that stay unused because of that, and of tokens_per_worker */
  bool is_counted;      /* `most` was counted; otherwise it is an upper bound */
};

/* Computes the exposure. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_exposure_find(const struct cv_exposure_ask *ask, struct cv_exposure *ret);
/* The same for a campaign that has not begun; `token_micro` is the charge of one token, micro-epsilon. */
CV_MUST_USE enum cv_err cv_exposure_plan(const struct cv_prepared *prepared, uint64_t token_micro,
                                         struct cv_exposure *ret);
/* One line without a newline; "" if scores do not come from a file. */
void cv_exposure_text(const struct cv_exposure *exposure, char *to, size_t size);
/* Prints the same with the prefix `head` and a newline; nothing if scores do not come from a file. */
void cv_exposure_print(const struct cv_exposure *exposure, const char *head, FILE *to);
/* {rows, replacement, uses_mean, uses_most, uses_counted, row_most_micro (null: exact sums)}, and with persons
 * {persons, person_rows_most, person_most_micro, rows_beyond}; uses_most and row_most_micro are null where they are not
 * known. JSON null if scores do not come from a file. NULL when out of memory. The caller owns the object. */
json_t *cv_exposure_json(const struct cv_exposure *exposure);
/* Returns the charge of a row that is used `uses` times, micro-epsilon; saturates. */
uint64_t cv_exposure_micro(const struct cv_exposure *exposure, uint64_t uses);
/* Returns the largest charge of a token by the campaign's own spec and gold items, micro-epsilon. */
uint64_t cv_exposure_token_micro(const struct cv_campaign_file *file);

#endif
