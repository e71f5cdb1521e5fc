/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program that examines its own state says, one line a finding on standard output: "LEVEL\tWHAT\tADVICE", where
 * LEVEL is ok, note, warning or wrong; and facts for whoever asked, "fact\tKEY\tVALUE...". No part has a tab in it.
 */
#ifndef CV_BASE_FINDING_H
#define CV_BASE_FINDING_H

#include <stdbool.h>

#include "common/base/err.h"

enum cv_finding { CV_FINDING_OK, CV_FINDING_NOTE, CV_FINDING_WARNING, CV_FINDING_WRONG, CV_FINDING_COUNT };

/* "ok", "note", "warning", "wrong" */
const char *cv_finding_text(enum cv_finding level);
/* `advice` says what to do; "" if there is nothing. */
void cv_finding(enum cv_finding level, const char *advice, const char *fmt, ...) CV_PRINTF(3, 4);
/* `line` is a format with \t between key and values. */
void cv_fact(const char *line, ...) CV_PRINTF(1, 2);

/* A folder of state: it is there, nobody else may write into it, and there is room. True if it is there. */
bool cv_finding_folder(const char *path);

#endif
