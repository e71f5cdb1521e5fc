/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/archive.h"

#include <stdlib.h>
#include <string.h>

#include "broker/both/ledger.h"

enum { MARK_PURGED = 1, MARK_CLEAN = 2 };

void cv_archive_init(struct cv_archive *archive) {
  *archive = (struct cv_archive){0};
  archive->leaving_end = &archive->leaving;
  archive->closing_end = &archive->closing;
}

static void free_ended(struct cv_ended *ended) {
  free(ended);
}

static void free_owner(struct cv_owner *owner) {
  free(owner);
}

void cv_archive_fini(struct cv_archive *archive) {
  CV_TABLE_DRAIN(archive->all, free_ended);
  CV_TABLE_DRAIN(archive->owners, free_owner);
  cv_archive_init(archive);
}

struct cv_ended *cv_archive_find(const struct cv_archive *archive, uint64_t id) {
  /* As for open campaigns: a 64-bit number of a peer must not be cut to that of another campaign. */
  struct cv_ended *ended = NULL;
  if (id <= UINT32_MAX) {
    uint32_t key = (uint32_t)id;
    HASH_FIND(hh, archive->all, &key, sizeof(key), ended);
  }
  return ended;
}

struct cv_owner *cv_archive_owner(const struct cv_archive *archive, const char *requester) {
  struct cv_owner *owner = NULL;
  HASH_FIND_STR(archive->owners, requester, owner);
  return owner;
}

static struct cv_owner *make_owner(struct cv_archive *archive, const char *requester) {
  struct cv_owner *owner = calloc(1, sizeof(*owner));
  if (owner == NULL) {
    return NULL;
  }
  memcpy(owner->name, requester, strnlen(requester, sizeof(owner->name) - 1));
  if (CV_TABLE_ADD_TEXT(archive->owners, name, owner) != CV_OK) {
    free(owner);
    return NULL;
  }
  return owner;
}

/* Names come from certificates: kept after their last record, they would grow the table without bound. */
static void drop_owner_if_empty(struct cv_archive *archive, struct cv_owner *owner) {
  if (owner->count == 0) {
    HASH_DEL(archive->owners, owner);
    free(owner);
  }
}

enum cv_err cv_archive_add(struct cv_archive *archive, struct cv_ended *ended, const char *requester) {
  struct cv_owner *owner = cv_archive_owner(archive, requester);
  owner = owner == NULL ? make_owner(archive, requester) : owner;
  if (owner == NULL) {
    return CV_ERR_NOMEM;
  }
  if (CV_TABLE_ADD(archive->all, id, ended) != CV_OK) {
    drop_owner_if_empty(archive, owner);
    return CV_ERR_NOMEM;
  }
  ended->owner = owner;
  ended->before = owner->last;
  ended->after = NULL;
  *(owner->last == NULL ? &owner->first : &owner->last->after) = ended;
  owner->last = ended;
  owner->count++;
  archive->count++;
  return CV_OK;
}

void cv_archive_mark(struct cv_archive *archive, struct cv_ended *ended) {
  /* At most one row per record and batch, however often it changes. */
  if (!ended->changed) {
    ended->changed = true;
    ended->next_changed = archive->changed;
    archive->changed = ended;
  }
}

struct cv_ended *cv_archive_take_changed(struct cv_archive *archive) {
  struct cv_ended *ended = archive->changed;
  if (ended != NULL) {
    archive->changed = ended->next_changed;
    ended->changed = false;
  }
  return ended;
}

void cv_archive_close(struct cv_archive *archive, struct cv_ended *ended) {
  if (!ended->close_due) {
    ended->close_due = true;
    ended->closing = NULL;
    *archive->closing_end = ended;
    archive->closing_end = &ended->closing;
  }
}

struct cv_ended *cv_archive_take_closing(struct cv_archive *archive) {
  struct cv_ended *ended = archive->closing;
  if (ended != NULL) {
    ended->close_due = false;
    archive->closing = ended->closing;
    archive->closing_end = archive->closing == NULL ? &archive->closing : archive->closing_end;
  }
  return ended;
}

void cv_archive_close_none(struct cv_archive *archive) {
  while (cv_archive_take_closing(archive) != NULL) {
  }
}

static void close_no_more(struct cv_archive *archive, struct cv_ended *ended) {
  /* The list is singly linked: unlinking the last record moves the end pointer. */
  struct cv_ended **at = &archive->closing;
  while (ended->close_due && *at != ended) {
    at = &(*at)->closing;
  }
  if (ended->close_due) {
    *at = ended->closing;
    archive->closing_end = *at == NULL ? at : archive->closing_end;
  }
}

static void leave(struct cv_archive *archive, struct cv_ended *ended) {
  ended->leaving = NULL;
  *archive->leaving_end = ended;
  archive->leaving_end = &ended->leaving;
}

void cv_archive_purge(struct cv_archive *archive, struct cv_ended *ended, bool forget) {
  bool is_waiting = ended->purged && (!ended->is_clean || ended->forget);
  /* A record is on the list of rows to delete at most once; a clean one returns to it only to be forgotten. */
  if (forget && !ended->forget) {
    ended->forget = true;
    ended->owner->forgot++;
  }
  if (!is_waiting && (!ended->purged || forget)) {
    if (!ended->purged) {
      ended->purged = true;
      cv_archive_mark(archive, ended);
    }
    leave(archive, ended);
  }
}

void cv_archive_left(struct cv_archive *archive) {
  struct cv_ended *ended = archive->leaving;
  archive->leaving = ended->leaving;
  if (archive->leaving == NULL) {
    archive->leaving_end = &archive->leaving;
  }
  ended->leaving = NULL;
}

static void add_totals(struct cv_totals *to, uint64_t *cost_micro, const struct cv_ended *ended) {
  to->campaigns = ended->id > to->campaigns ? ended->id : to->campaigns;
  to->releases = cv_ledger_add(to->releases, ended->progress.releases);
  to->tokens = cv_ledger_add(to->tokens, ended->progress.tokens);
  to->promised_micro = cv_ledger_add(to->promised_micro, ended->worker_micro);
  *cost_micro = cv_ledger_add(*cost_micro, ended->cost_micro);
}

void cv_archive_forget(struct cv_archive *archive, struct cv_ended *ended) {
  struct cv_owner *owner = ended->owner;
  /* The sums take over the record's totals before it is freed, so that the broker's totals never shrink. */
  add_totals(&archive->past.totals, &archive->past.cost_micro, ended);
  archive->past.count++;
  close_no_more(archive, ended);
  HASH_DEL(archive->all, ended);
  *(ended->before == NULL ? &owner->first : &ended->before->after) = ended->after;
  *(ended->after == NULL ? &owner->last : &ended->after->before) = ended->before;
  owner->count--;
  owner->forgot -= ended->forget;
  archive->count--;
  free(ended);
  drop_owner_if_empty(archive, owner);
}

void cv_archive_totals(const struct cv_archive *archive, struct cv_totals *ret, uint64_t *ret_cost_micro) {
  struct cv_totals totals = archive->past.totals;
  uint64_t cost_micro = archive->past.cost_micro;
  for (const struct cv_ended *ended = archive->all; ended != NULL; ended = ended->hh.next) {
    add_totals(&totals, &cost_micro, ended);
  }
  *ret = totals;
  *ret_cost_micro = cost_micro;
}

/* ---- stored forms ---- */

/* The numbers of a record, in the order in which they are stored. */
#define FIELDS(ended)                                                                                         \
  {                                                                                                           \
    &(ended)->ended_wall_ms, &(ended)->cost_micro, &(ended)->worker_micro, &(ended)->progress.tokens,         \
        &(ended)->progress.tokens_limit, &(ended)->progress.releases, &(ended)->progress.plans,               \
        &(ended)->progress.elapsed_ms, &(ended)->progress.epsilon_spent_micro, &(ended)->progress.paid_micro, \
        &(ended)->progress.budget_micro                                                                       \
  }

void cv_ended_put(const struct cv_ended *ended, struct cv_buf *out) {
  const struct cv_progress *progress = &ended->progress;
  const uint64_t *const fields[] = FIELDS(ended);
  /* `forget` is not stored: after a restart a sweep, or the next submission, chooses again which record to forget. */
  cv_buf_put_u8(out, (uint8_t)((ended->purged ? MARK_PURGED : 0) | (ended->is_clean ? MARK_CLEAN : 0)));
  cv_buf_put_bytes(out, ended->owner->name, strlen(ended->owner->name));
  cv_buf_put_bytes(out, progress->name, strlen(progress->name));
  cv_buf_put(out, ended->client_key, sizeof(ended->client_key));
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    cv_buf_put_u64(out, *fields[i]);
  }
  cv_buf_put_u32(out, progress->arms);
  cv_buf_put_u32(out, progress->decided);
  cv_buf_put_u32(out, progress->classes);
  cv_buf_put_u32(out, (uint32_t)progress->end);
  cv_buf_put_bytes(out, ended->thirdparty, strlen(ended->thirdparty));
  cv_buf_put(out, ended->spec_digest.bytes, sizeof(ended->spec_digest.bytes));
  cv_buf_put_u32(out, progress->parked);
  cv_buf_put_u8(out, ended->over_due);
  cv_buf_put_bytes(out, progress->why, strlen(progress->why));
}

static bool read_ended(struct cv_reader *row, struct cv_ended *ended, char requester[CV_NAME_BYTES]) {
  struct cv_progress *progress = &ended->progress;
  uint64_t *const fields[] = FIELDS(ended);
  uint8_t marks = cv_read_u8(row);
  cv_read_text(row, requester, CV_NAME_BYTES);
  cv_read_text(row, progress->name, CV_NAME_BYTES);
  const uint8_t *key = cv_read(row, CV_CLIENT_KEY_BYTES);
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    *fields[i] = cv_read_u64(row);
  }
  progress->arms = cv_read_u32(row);
  progress->decided = cv_read_u32(row);
  progress->classes = cv_read_u32(row);
  uint32_t end = cv_read_u32(row);
  cv_read_text(row, ended->thirdparty, CV_NAME_BYTES);
  const uint8_t *digest = cv_read(row, sizeof(ended->spec_digest.bytes));
  progress->parked = cv_read_u32(row);
  uint8_t over_due = cv_read_u8(row);
  cv_read_text(row, progress->why, sizeof(progress->why));
  if (!cv_reader_done(row) || requester[0] == '\0' || end == CV_END_NONE || end >= CV_END_COUNT ||
      progress->arms == 0 || progress->arms > CV_ARMS_MAX || !cv_progress_counts_fit(progress) ||
      progress->classes > progress->arms || progress->tokens > progress->tokens_limit ||
      marks > (MARK_PURGED | MARK_CLEAN) || marks == MARK_CLEAN || over_due > 1) {
    return false;
  }
  memcpy(ended->client_key, key, CV_CLIENT_KEY_BYTES);
  memcpy(ended->spec_digest.bytes, digest, sizeof(ended->spec_digest.bytes));
  progress->end = (enum cv_end)end;
  ended->purged = (marks & MARK_PURGED) != 0;
  ended->is_clean = (marks & MARK_CLEAN) != 0;
  ended->over_due = over_due == 1;
  return true;
}

enum cv_err cv_archive_read(struct cv_archive *archive, uint32_t id, struct cv_reader *row) {
  char requester[CV_NAME_BYTES];
  if (id == 0) {
    return cv_past_read(row, &archive->past);
  }
  struct cv_ended *ended = calloc(1, sizeof(*ended));
  if (ended == NULL) {
    return CV_ERR_NOMEM;
  }
  ended->id = id;
  ended->progress.campaign = id;
  enum cv_err err = read_ended(row, ended, requester) && cv_archive_find(archive, id) == NULL ? CV_OK : CV_ERR_DAMAGED;
  err = err == CV_OK ? cv_archive_add(archive, ended, requester) : err;
  if (err != CV_OK) {
    free(ended);
    return err;
  }
  if (ended->purged && !ended->is_clean) { /* a shutdown interrupted the deletion of its rows */
    leave(archive, ended);
  }
  return CV_OK;
}

void cv_past_put(const struct cv_past *past, struct cv_buf *out) {
  const uint64_t fields[] = {past->count,           past->cost_micro,    past->totals.campaigns,
                             past->totals.releases, past->totals.tokens, past->totals.promised_micro};
  for (size_t i = 0; i < CV_COUNT(fields); i++) {
    cv_buf_put_u64(out, fields[i]);
  }
}

enum cv_err cv_past_read(struct cv_reader *row, struct cv_past *ret) {
  struct cv_past past = {.count = cv_read_u64(row), .cost_micro = cv_read_u64(row)};
  past.totals = (struct cv_totals){.campaigns = cv_read_u64(row)};
  past.totals.releases = cv_read_u64(row);
  past.totals.tokens = cv_read_u64(row);
  past.totals.promised_micro = cv_read_u64(row);
  if (!cv_reader_done(row) || past.totals.campaigns > UINT32_MAX) {
    return CV_ERR_DAMAGED;
  }
  *ret = past;
  return CV_OK;
}
