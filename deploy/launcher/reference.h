/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key that a campaign file can have, from the tables by which it is checked: sections, and the parameters of
 * policies, mechanisms and privatizers. No input or output but cv_reference_print().
 */
#ifndef CV_LAUNCHER_REFERENCE_H
#define CV_LAUNCHER_REFERENCE_H

#include <jansson.h>
#include <stdio.h>

/*
 * {sections: [{name, form, about, keys: [KEY]}], policies: [{name, about, keys: [KEY]}], mechanisms, privatizers} with
 * KEY = {key, type, expected, required, default, example, help}; form, default and example may be null; `example` is a
 * line of YAML. NULL when out of memory. The caller owns the object.
 */
json_t *cv_reference_json(void);
/* Prints such an object as text for a person. */
void cv_reference_print(const json_t *reference, FILE *to);

#endif
