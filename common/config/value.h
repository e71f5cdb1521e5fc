/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to common/config: parses one value, and describes values in messages. */
#ifndef CV_CONFIG_VALUE_H
#define CV_CONFIG_VALUE_H

#include "common/config/config.h"

union cv_value {
  char *text; /* heap, for rules that own a text */
  uint64_t whole;
  double real;
  bool flag;
  int word;
};

/* Parses a value; resolves a path against `folder`, unless NULL. CV_ERR_INVALID if the text does not match the rule. */
CV_MUST_USE enum cv_err cv_value_parse(const struct cv_config_rule *rule, const char *text, const char *folder,
                                       union cv_value *ret);
/* Describes the values that the rule accepts: "a whole number from 0 to 65535". */
void cv_value_describe(const struct cv_config_rule *rule, char *to, size_t size);

/* Parse the whole text as decimal digits, or as a finite decimal number; false if it is anything else. */
CV_MUST_USE bool cv_value_whole(const char *text, uint64_t *ret);
CV_MUST_USE bool cv_value_real(const char *text, double *ret);
/* Parses a decimal number into millionths, exactly; false if it has more than 6 decimals or another form. */
CV_MUST_USE bool cv_value_micro(const char *text, uint64_t *ret);
/* Resolves a path against `folder` (may be NULL). The caller frees the result; NULL if out of memory. */
char *cv_value_path(const char *text, const char *folder);

/*
 * For a rule of type WORD, WORDS or ADDRESSES: writes the whole message about a text that is not a choice, or about the
 * first word of a list that is not, or is no address, and sets *ret_at to the offset of that word. `name` is its name
 * in the message. Returns false if there is nothing to say beyond cv_value_describe(): the rule has another type,
 * or the text has no such word.
 */
bool cv_value_stray(const struct cv_config_rule *rule, const char *name, const char *text, struct cv_why *ret,
                    size_t *ret_at);

#endif
