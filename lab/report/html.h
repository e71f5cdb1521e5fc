/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a web page: escaped text, and drawings that are embedded in the page. */
#ifndef CV_LAB_HTML_H
#define CV_LAB_HTML_H

#include <stdio.h>

#include "common/base/err.h"

/* Writes escaped text, for an element or a quoted attribute; any bytes are allowed. */
void cv_lab_html_text(const char *text, FILE *to);
/*
 * Writes the drawing FOLDER/NAME.svg as an element of the page. Its identifiers get the prefix `prefix`, so that they
 * are unique in a page with several drawings; `label` describes the drawing to screen readers. CV_ERR_IO, CV_ERR_FORMAT
 * or CV_ERR_NOMEM with one line.
 */
CV_MUST_USE enum cv_err cv_lab_html_svg(const char *folder, const char *name, const char *prefix, const char *label,
                                        FILE *to, struct cv_why *why);

#endif
