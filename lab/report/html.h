/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a web page: text that is nothing but text, and drawings that lie in the page itself. */
#ifndef CV_LAB_HTML_H
#define CV_LAB_HTML_H

#include <stdio.h>

#include "common/base/err.h"

/* Text as it is, in an element or in a quoted attribute, whatever characters are in it. */
void cv_lab_html_text(const char *text, FILE *to);
/*
 * The drawing FOLDER/NAME.svg as an element of the page. Its names get `prefix` in front, so that several drawings do
 * not meet; `label` is what a reader who does not see it is told.
 */
CV_MUST_USE enum cv_err cv_lab_html_svg(const char *folder, const char *name, const char *prefix, const char *label,
                                        FILE *to, struct cv_why *why);

#endif
