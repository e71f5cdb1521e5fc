/* SPDX-License-Identifier: Apache-2.0 */
/* One line an event on standard error: time, level, program, text. For shells; pure code does not log. */
#ifndef CV_BASE_LOG_H
#define CV_BASE_LOG_H

#include "common/base/err.h"
#include "common/base/log_limit.h"

enum cv_log_level { CV_LOG_ERROR, CV_LOG_WARN, CV_LOG_INFO, CV_LOG_DEBUG };

/* `program` is kept, not copied. */
void cv_log_init(const char *program, enum cv_log_level level);
/* Control characters in the text are replaced, so that a peer cannot forge lines. */
void cv_log(enum cv_log_level level, const char *fmt, ...) CV_PRINTF(2, 3);

/* Logs "<peer>: <text>" at most once per minute; repetitions are counted (log rate limiting, log_limit.h). */
void cv_log_peer(struct cv_log_limit *limit, const char *peer, const char *text, uint64_t now_ms);
/* Logs the counts of suppressed lines. Called about once a second; `early` at the end of the program. */
void cv_log_suppressed(struct cv_log_limit *limit, uint64_t now_ms, bool early);

#endif
