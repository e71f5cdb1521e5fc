/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a process: one line an event (log_line.h). For shells; pure code does not log. */
#ifndef CV_BASE_LOG_H
#define CV_BASE_LOG_H

#include "common/base/err.h"
#include "common/base/log_limit.h"
#include "common/base/log_line.h"

/* Lines of text on standard error, up to `level`. `program` is kept, not copied. */
void cv_log_init(const char *program, enum cv_log_level level);
/* From now on the lines are JSON, on standard error. */
void cv_log_json(void);
/* From now on each line is given to `send` in the journal's format; lines that it does not take (false) go to standard
 * error as text. */
void cv_log_journal(bool (*send)(const char *bytes, size_t n));

/* Lines that standard error has not taken: it is closed, its disk is full or its reader has gone. */
uint64_t cv_log_unwritten(void);

enum cv_log_level cv_log_level(void);
/* Changes the level, and says so at the new level; `by` says who did it: "SIGUSR1". */
void cv_log_set_level(enum cv_log_level level, const char *by);

void cv_log(enum cv_log_level level, const char *fmt, ...) CV_PRINTF(2, 3);
void cv_log_note(const struct cv_note *note);
/* Writes a note about a peer at most once per minute; repetitions are counted (log rate limiting, log_limit.h). */
void cv_log_peer(struct cv_log_limit *limit, const struct cv_note *note, uint64_t now_ms);
/* Logs the counts of suppressed lines. Called about once a second; `early` at the end of the program. */
void cv_log_suppressed(struct cv_log_limit *limit, uint64_t now_ms, bool early);

/* A line of a program that has not started yet, or cannot: "PROGRAM: <text>", as for every wrong option, unless the log
 * has another format than text. */
void cv_log_early(const char *program, enum cv_log_level level, const char *fmt, ...) CV_PRINTF(3, 4);

#endif
