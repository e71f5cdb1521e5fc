/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log_limit.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/rng.h"

/* Hashes a text; never 0. With `digits` false, any run of digits counts as one '0'. */
static uint64_t hash_text(const char *text, bool digits) {
  uint64_t hash = 1;
  bool in_digits = false;
  for (; *text != '\0'; text++) {
    bool is_digit = *text >= '0' && *text <= '9';
    /* Numbers are the part of a message that a peer can vary for ever. */
    if (digits || !is_digit || !in_digits) {
      hash = cv_mix64(hash ^ (is_digit && !digits ? '0' : (unsigned char)*text));
    }
    in_digits = is_digit;
  }
  return hash != 0 ? hash : 1;
}

static bool is_over(const struct cv_log_limit_entry *entry, uint64_t now_ms) {
  return entry->used && now_ms - entry->since_ms >= CV_LOG_LIMIT_MS;
}

static bool begin(struct cv_log_limit_entry *entry, uint64_t now_ms, uint64_t peer, uint64_t reason,
                  const char *peer_text, const char *text) {
  *entry = (struct cv_log_limit_entry){.used = true, .peer = peer, .reason = reason, .since_ms = now_ms};
  (void)snprintf(entry->peer_text, sizeof(entry->peer_text), "%s", peer_text);
  (void)snprintf(entry->text, sizeof(entry->text), "%s", text);
  return true;
}

/* Counts a repetition; returns false. After its minute an entry keeps counting until its summary has been taken. */
static bool count(struct cv_log_limit_entry *entry) {
  entry->more++;
  return false;
}

bool cv_log_limit_allows(struct cv_log_limit *limit, const char *peer, const char *text, uint64_t now_ms) {
  uint64_t peer_hash = hash_text(peer, true), reason = hash_text(text, false);
  /* One pass: free expired entries, find the entry of this line, and count the peer's other lines. */
  struct cv_log_limit_entry *empty = NULL, *beyond = NULL;
  unsigned reasons = 0;
  for (size_t i = 0; i < CV_LOG_LIMIT_ENTRIES; i++) {
    struct cv_log_limit_entry *entry = &limit->entry[i];
    if (!entry->used || (is_over(entry, now_ms) && entry->more == 0)) {
      entry->used = false;
      empty = empty != NULL ? empty : entry;
    } else if (entry->peer == peer_hash) {
      if (entry->reason == reason) {
        return count(entry);
      }
      beyond = entry->reason == 0 ? entry : beyond;
      reasons += entry->reason != 0;
    }
  }
  /* One peer with many kinds of lines must not take the entries of the others. */
  if (reasons >= CV_LOG_LIMIT_REASONS && beyond != NULL) {
    return count(beyond);
  }
  /* The table is full: count all further peers together. */
  if (empty == NULL) {
    return limit->rest.used ? count(&limit->rest) : begin(&limit->rest, now_ms, 0, 0, "", "others: lines of all kinds");
  }
  if (reasons >= CV_LOG_LIMIT_REASONS) {
    (void)begin(empty, now_ms, peer_hash, 0, peer, "lines of other kinds");
    return count(empty);
  }
  return begin(empty, now_ms, peer_hash, reason, peer, text);
}

static bool sum_up(struct cv_log_limit_entry *entry, uint64_t now_ms, bool early, struct cv_log_limit_sum *ret) {
  if (!entry->used || !(early || is_over(entry, now_ms))) {
    return false;
  }
  entry->used = false;
  if (entry->more == 0) {
    return false;
  }
  (void)snprintf(ret->peer, sizeof(ret->peer), "%s", entry->peer_text);
  (void)snprintf(ret->text, sizeof(ret->text), "%s (%" PRIu64 " more in %" PRIu64 " s)", entry->text, entry->more,
                 (now_ms - entry->since_ms) / 1000);
  entry->more = 0;
  return true;
}

bool cv_log_limit_next(struct cv_log_limit *limit, uint64_t now_ms, bool early, struct cv_log_limit_sum *ret) {
  for (size_t i = 0; i < CV_LOG_LIMIT_ENTRIES; i++) {
    if (sum_up(&limit->entry[i], now_ms, early, ret)) {
      return true;
    }
  }
  return sum_up(&limit->rest, now_ms, early, ret);
}
