/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a web page: escaped text, drawings beside the page, and small pictures within it. */
#ifndef CV_LAB_HTML_H
#define CV_LAB_HTML_H

#include <stdio.h>

#include "common/base/err.h"

/* Writes escaped text, for an element or a quoted attribute; any bytes are allowed. */
void cv_lab_html_text(const char *text, FILE *to);
/* Writes the drawing NAME.svg beside the page as an element that links to it, so that the page stays small; the browser
 * reads it when it is shown. `label` describes it to screen readers. */
void cv_lab_html_drawing(const char *name, const char *label, FILE *to);
/* Writes the picture FOLDER/NAME.png itself into the page. CV_ERR_IO, CV_ERR_FORMAT or CV_ERR_NOMEM with one line; then
 * nothing is written. */
CV_MUST_USE enum cv_err cv_lab_html_thumbnail(const char *folder, const char *name, const char *label, FILE *to,
                                              struct cv_why *why);

#endif
