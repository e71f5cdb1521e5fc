/* SPDX-License-Identifier: Apache-2.0 */
/* Names of parties, as their certificates have them, and what a configuration says about them. */
#ifndef CV_BASE_PARTY_H
#define CV_BASE_PARTY_H

#include <stdbool.h>

/* In place of a list: every name there is. No party is called that. */
#define CV_PARTY_ANY "any"

/* Letters, digits, dot, hyphen and underscore, 1 .. CV_NAME_BYTES - 1 of them, and not CV_PARTY_ANY. */
bool cv_party_is_valid(const char *name);
/* CV_PARTY_ANY alone, or such names, at least one, separated by commas or blanks. */
bool cv_parties_are_valid(const char *names);
/* Whether such a text has the name: byte for byte. */
bool cv_parties_have(const char *names, const char *name);

#endif
