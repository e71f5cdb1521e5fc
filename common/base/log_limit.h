/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log rate limiting, so that peers cannot flood the log. The first line about a peer is written; repetitions within one
 * minute are counted, and one summary line at the end of that minute gives their number. Pure; time is an argument.
 *
 *   if (cv_log_limit_allows(limit, peer, text, now_ms)) { write the line }
 *   while (cv_log_limit_next(limit, now_ms, false, &sum)) { write the sum }                    about once a second
 *
 * Lines that differ only in digits count as equal, so that a peer cannot cause one line for each worker number. A peer
 * can cause at most CV_LOG_LIMIT_REASONS different lines per minute, all peers together CV_LOG_LIMIT_ENTRIES; further
 * lines are only counted.
 */
#ifndef CV_BASE_LOG_LIMIT_H
#define CV_BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CV_LOG_LIMIT_MS = 60000,
  CV_LOG_LIMIT_ENTRIES = 256,
  CV_LOG_LIMIT_REASONS = 8,
  CV_LOG_LIMIT_PEER_BYTES = 72,
  CV_LOG_LIMIT_TEXT_BYTES = 152,
};

/* One line, written at `since_ms`, and the number of its repetitions. */
struct cv_log_limit_entry {
  uint64_t peer, reason; /* hashes; reason 0: all lines of a peer beyond CV_LOG_LIMIT_REASONS */
  uint64_t since_ms;
  uint64_t more;
  bool used;
  char peer_text[CV_LOG_LIMIT_PEER_BYTES], text[CV_LOG_LIMIT_TEXT_BYTES]; /* cut if longer */
};

/* All zero at the start. */
struct cv_log_limit {
  struct cv_log_limit_entry entry[CV_LOG_LIMIT_ENTRIES];
  struct cv_log_limit_entry rest; /* lines of peers that have no entry */
};

/* The number of a line's repetitions, as a further line. */
struct cv_log_limit_sum {
  char peer[CV_LOG_LIMIT_PEER_BYTES]; /* "": lines of several peers */
  char text[CV_LOG_LIMIT_TEXT_BYTES + 64];
};

/* Returns true if the caller has to write the line now. */
bool cv_log_limit_allows(struct cv_log_limit *limit, const char *peer, const char *text, uint64_t now_ms);
/* The summary of a minute that has ended, or with `early` also of one that has not. Returns false if there is none. */
bool cv_log_limit_next(struct cv_log_limit *limit, uint64_t now_ms, bool early, struct cv_log_limit_sum *ret);

#endif
