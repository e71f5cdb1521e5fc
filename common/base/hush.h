/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log that peers cannot flood: the first time that something is said about a peer it is written, repetitions within a
 * minute are counted, and one line at the end of that minute says how many there were. Pure; time is an argument.
 *
 *   if (cv_hush_lets(hush, peer, text, now_ms)) { write the line }
 *   while (cv_hush_next(hush, now_ms, false, line, sizeof(line))) { write the line }     about once a second
 *
 * Lines that differ in digits only are the same (a peer cannot get a line a worker number). A peer gets at most
 * CV_HUSH_REASONS different lines a minute, all peers together CV_HUSH_ENTRIES; what is more is counted, too.
 */
#ifndef CV_BASE_HUSH_H
#define CV_BASE_HUSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  CV_HUSH_MS = 60000,
  CV_HUSH_ENTRIES = 256,
  CV_HUSH_REASONS = 8,
  CV_HUSH_PEER_BYTES = 72,
  CV_HUSH_TEXT_BYTES = 152,
};

/* A line that was written at `since_ms`, and its repetitions. */
struct cv_hush_entry {
  uint64_t peer, reason; /* hashes; reason 0: all that a peer does beyond its share */
  uint64_t since_ms;
  uint64_t more;
  bool used;
  char peer_text[CV_HUSH_PEER_BYTES], text[CV_HUSH_TEXT_BYTES]; /* cut if longer */
};

/* All zero at the start. */
struct cv_hush {
  struct cv_hush_entry entry[CV_HUSH_ENTRIES];
  struct cv_hush_entry rest; /* of peers for whom there is no entry */
};

/* True if the line is to be written now. */
bool cv_hush_lets(struct cv_hush *hush, const char *peer, const char *text, uint64_t now_ms);
/* The summary of a minute that is over, or with `early` of one that is not; false if there is none. */
bool cv_hush_next(struct cv_hush *hush, uint64_t now_ms, bool early, char *line, size_t size);

#endif
