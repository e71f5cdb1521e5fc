/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a program that checks its own state, on standard output: one line for each finding, "LEVEL\tWHAT\tADVICE"
 * with LEVEL ok, note, warning or wrong; and facts for the calling program, "fact\tKEY\tVALUE...". No part contains a
 * tab.
 */
#ifndef CV_BASE_FINDING_H
#define CV_BASE_FINDING_H

#include <stdbool.h>

#include "common/base/err.h"

/* In a worker's state folder, one line: why its own limits keep it from a campaign (worker/stalled.h). */
#define CV_STALLED_FILE "stalled.txt"

enum cv_finding { CV_FINDING_OK, CV_FINDING_NOTE, CV_FINDING_WARNING, CV_FINDING_WRONG, CV_FINDING_COUNT };

/* "ok", "note", "warning", "wrong" */
const char *cv_finding_text(enum cv_finding level);
/* Prints one finding. `advice` says what to do, or is "". */
void cv_finding(enum cv_finding level, const char *advice, const char *fmt, ...) CV_PRINTF(3, 4);
/* The advice about a file that could not be opened: none about one of another version, whose line says what to do. */
const char *cv_finding_advice(enum cv_err err, const char *advice);
/* A warning of something in a database, of which `name` points to the name, that no program of ours makes. */
void cv_finding_stranger(void *name, const char *what);
/* Prints one fact. `line` is a printf format with \t between key and values. */
void cv_fact(const char *line, ...) CV_PRINTF(1, 2);

/* Checks a state folder: it exists, only its owner may write to it, and enough disk space is free. Returns true if
 * the folder exists. */
bool cv_finding_folder(const char *path);

#endif
