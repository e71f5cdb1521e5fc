/* SPDX-License-Identifier: Apache-2.0 */
/* Names of parties, as written in certificates, and lists of such names in configuration files. */
#ifndef CV_BASE_PARTY_H
#define CV_BASE_PARTY_H

#include <stdbool.h>

/* Stands for every name, in place of a list. No party may have this name. */
#define CV_PARTY_ANY "any"

/* Letters, digits, dot, hyphen and underscore, 1 .. CV_NAME_BYTES - 1 of them, and not CV_PARTY_ANY. */
bool cv_party_is_valid(const char *name);
/* True for CV_PARTY_ANY alone, or for a list of at least one valid name, separated by commas or blanks. */
bool cv_party_list_is_valid(const char *names);
/* Whether a valid list contains the name, compared byte for byte, or is CV_PARTY_ANY. */
bool cv_party_list_has(const char *names, const char *name);

#endif
