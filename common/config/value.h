/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/config: one value as it is written, and how a message speaks of it. */
#ifndef CV_CONFIG_VALUE_H
#define CV_CONFIG_VALUE_H

#include "common/config/config.h"

union cv_value {
  char *text; /* of a rule that owns a text, on the heap */
  uint64_t whole;
  double real;
  bool flag;
  int word;
};

/* A path is resolved against `folder`, unless that is NULL. CV_ERR_INVALID if the text is not what the rule expects. */
CV_MUST_USE enum cv_err cv_value_parse(const struct cv_config_rule *rule, const char *text, const char *folder,
                                       union cv_value *ret);
/* What the rule expects: "a whole number from 0 to 65535". */
void cv_value_describe(const struct cv_config_rule *rule, char *to, size_t size);

/* All of the text as decimal digits, or as a finite decimal number; false if it is anything else. */
CV_MUST_USE bool cv_value_whole(const char *text, uint64_t *ret);
CV_MUST_USE bool cv_value_real(const char *text, double *ret);
/* A decimal number in millionths, exactly; false if it has more than 6 decimals or another form. */
CV_MUST_USE bool cv_value_micro(const char *text, uint64_t *ret);
/* Heap; NULL when out of memory. `folder` may be NULL. */
char *cv_value_path(const char *text, const char *folder);

/* Of a rule of WORDS: what is wrong with the text's first word that is none of the choices, as `names "x" (did you mean
 * y?)`, and where it begins. False if there is none, or the rule is another. */
bool cv_value_stray(const struct cv_config_rule *rule, const char *text, char *to, size_t size, size_t *ret_at);
/* The word most like `text`, or NULL if none is like it. */
const char *cv_value_nearest(const char *text, const char *const *words, size_t n);
/* `text` in quotes, short and clean, for a message. */
struct cv_quote {
  char text[64];
};
struct cv_quote cv_value_quote(const char *text);
/* "a, b or c" */
void cv_value_list(const char *const *words, size_t n, char *to, size_t size);

#endif
