/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named parameters of a policy, a mechanism or a privatizer, as in the campaign file and on the wire. Each algorithm
 * checks them against its own table of rules, so a new algorithm needs no new message.
 */
#ifndef CV_BASE_PARAMS_H
#define CV_BASE_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

enum { CV_PARAMS_MAX = 32, CV_PARAM_TEXT = 32 };

struct cv_param {
  char key[CV_PARAM_TEXT];
  bool is_text;
  double number;            /* when not text */
  char text[CV_PARAM_TEXT]; /* when text */
  uint32_t line, column;    /* position in a file, from 1; 0 if the parameter is not from a file */
};

struct cv_params {
  uint32_t count;
  struct cv_param item[CV_PARAMS_MAX];
};

/* One row of an algorithm's own table. A NULL `choices` means a number. */
struct cv_param_rule {
  const char *key;
  const char *const *choices;      /* NULL-terminated words, or NULL for a number */
  double low, high;                /* allowed range, both ends allowed unless open */
  bool low_open, high_open, whole; /* strict ends; only whole numbers */
  const char *fallback_text;       /* default word; NULL with choices: required */
  double fallback;                 /* default number; NAN: required */
  const char *help;                /* one line for the reference of campaign files */
};

/*
 * Checks `params` against `rules` (unknown key, duplicate key, wrong type, out of range, missing) and fills in the
 * defaults. On failure `why` has the message without its place, and *ret_bad points to the offending parameter (NULL if
 * one is missing), so that the caller can prepend file and line.
 */
CV_MUST_USE enum cv_err cv_params_check(struct cv_params *params, const struct cv_param_rule *rules, size_t n,
                                        const struct cv_param **ret_bad, struct cv_why *why);

/* Describes the values that the rule accepts: "a number of at least 0 and below 1". */
void cv_param_describe(const struct cv_param_rule *rule, char *to, size_t size);

/* Appends or replaces; CV_ERR_LIMIT when full or the key or text is too long. */
CV_MUST_USE enum cv_err cv_params_set_number(struct cv_params *params, const char *key, double number);
CV_MUST_USE enum cv_err cv_params_set_text(struct cv_params *params, const char *key, const char *text);

/* Removes a parameter, if there is one of this key. */
void cv_params_drop(struct cv_params *params, const char *key);
/* Finds a parameter by key; NULL if there is none. */
const struct cv_param *cv_params_find(const struct cv_params *params, const char *key);
/* The value of a key. Call only after cv_params_check() has succeeded: the key must exist. */
double cv_params_number(const struct cv_params *params, const char *key);
const char *cv_params_text(const struct cv_params *params, const char *key);

#endif
