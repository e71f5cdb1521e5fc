/* SPDX-License-Identifier: Apache-2.0 */
#include "cobroker/ended.h"

#include <stdlib.h>
#include <string.h>

#include "broker/both/ledger.h"
#include "common/base/array.h"

static void ended_free(struct cv_cobroker_ended *ended) {
  free(ended);
}

void cv_cobroker_archive_fini(struct cv_cobroker_archive *archive) {
  CV_TABLE_DRAIN(archive->all, ended_free);
  free(archive->gone);
  *archive = (struct cv_cobroker_archive){0};
}

struct cv_cobroker_ended *cv_cobroker_archive_find(struct cv_cobroker_archive *archive, uint64_t id) {
  struct cv_cobroker_ended *ended = NULL;
  if (id <= UINT32_MAX) {
    uint32_t key = (uint32_t)id;
    HASH_FIND(hh, archive->all, &key, sizeof(key), ended);
  }
  return ended;
}

enum cv_err cv_cobroker_archive_add(struct cv_cobroker_archive *archive, struct cv_cobroker_ended *ended) {
  if (CV_TABLE_ADD(archive->all, id, ended) != CV_OK) {
    ended_free(ended);
    return CV_ERR_NOMEM;
  }
  archive->count++;
  archive->changed += ended->changed;
  return CV_OK;
}

static void add(struct cv_totals *to, const struct cv_totals *more) {
  to->campaigns = more->campaigns > to->campaigns ? more->campaigns : to->campaigns;
  to->releases = cv_ledger_add(to->releases, more->releases);
  to->tokens = cv_ledger_add(to->tokens, more->tokens);
  to->promised_micro = cv_ledger_add(to->promised_micro, more->promised_micro);
}

enum cv_err cv_cobroker_archive_trim(struct cv_cobroker_archive *archive, uint32_t most) {
  while (archive->count > most) {
    struct cv_cobroker_ended *first = archive->all;
    for (struct cv_cobroker_ended *each = first; each != NULL; each = each->hh.next) {
      first = each->id < first->id ? each : first;
    }
    uint32_t *gone = CV_ARRAY_PUSH(archive->gone, archive->gone_count, archive->gone_cap);
    if (gone == NULL) {
      return CV_ERR_NOMEM;
    }
    *gone = first->id;
    add(&archive->past, &first->totals);
    archive->past_cost_micro = cv_ledger_add(archive->past_cost_micro, first->cost_micro);
    archive->past_changed = true;
    HASH_DEL(archive->all, first);
    archive->count--;
    archive->changed -= first->changed;
    ended_free(first);
  }
  return CV_OK;
}

void cv_cobroker_archive_totals(const struct cv_cobroker_archive *archive, struct cv_totals *ret,
                                uint64_t *ret_cost_micro) {
  *ret = archive->past;
  *ret_cost_micro = archive->past_cost_micro;
  for (const struct cv_cobroker_ended *each = archive->all; each != NULL; each = each->hh.next) {
    add(ret, &each->totals);
    *ret_cost_micro = cv_ledger_add(*ret_cost_micro, each->cost_micro);
  }
}

/* ---- stored forms ---- */

static void put_sums(const struct cv_totals *totals, uint64_t cost_micro, struct cv_buf *out) {
  cv_buf_put_u64(out, totals->releases);
  cv_buf_put_u64(out, totals->tokens);
  cv_buf_put_u64(out, totals->promised_micro);
  cv_buf_put_u64(out, cost_micro);
}

static void read_sums(struct cv_reader *row, struct cv_totals *ret, uint64_t *ret_cost_micro) {
  ret->releases = cv_read_u64(row);
  ret->tokens = cv_read_u64(row);
  ret->promised_micro = cv_read_u64(row);
  *ret_cost_micro = cv_read_u64(row);
}

void cv_cobroker_ended_put(const struct cv_cobroker_ended *ended, struct cv_buf *out) {
  cv_buf_put_u32(out, ended->end);
  cv_buf_put_bytes(out, ended->why, strlen(ended->why));
  cv_buf_put_u32(out, ended->split.score_bits);
  cv_buf_put(out, ended->split.database, sizeof(ended->split.database));
  cv_buf_put(out, ended->split.spec.bytes, CV_DIGEST_BYTES);
  cv_buf_put(out, ended->split.key.bytes, CV_DIGEST_BYTES);
  cv_buf_put(out, ended->context.bytes, CV_DIGEST_BYTES);
  put_sums(&ended->totals, ended->cost_micro, out);
}

static void take(struct cv_reader *row, void *to, size_t n) {
  const uint8_t *from = cv_read(row, n);
  if (from != NULL) {
    memcpy(to, from, n);
  }
}

enum cv_err cv_cobroker_ended_read(struct cv_cobroker_archive *archive, uint32_t id, struct cv_reader *row) {
  struct cv_cobroker_ended own = {.id = id};
  uint32_t end = cv_read_u32(row);
  cv_read_text(row, own.why, sizeof(own.why));
  if (row->failed || end == CV_END_NONE || end >= CV_END_COUNT || id == 0 ||
      cv_cobroker_archive_find(archive, id) != NULL) {
    return CV_ERR_DAMAGED;
  }
  own.end = (enum cv_end)end;
  own.split.score_bits = cv_read_u32(row);
  take(row, own.split.database, sizeof(own.split.database));
  take(row, own.split.spec.bytes, CV_DIGEST_BYTES);
  take(row, own.split.key.bytes, CV_DIGEST_BYTES);
  take(row, own.context.bytes, CV_DIGEST_BYTES);
  own.totals.campaigns = id;
  read_sums(row, &own.totals, &own.cost_micro);
  if (!cv_reader_done(row)) {
    return CV_ERR_DAMAGED;
  }
  struct cv_cobroker_ended *ended = malloc(sizeof(*ended));
  if (ended == NULL) {
    return CV_ERR_NOMEM;
  }
  *ended = own;
  return cv_cobroker_archive_add(archive, ended);
}

void cv_cobroker_past_put(const struct cv_cobroker_archive *archive, struct cv_buf *out) {
  cv_buf_put_u64(out, archive->past.campaigns);
  put_sums(&archive->past, archive->past_cost_micro, out);
}

enum cv_err cv_cobroker_past_read(struct cv_cobroker_archive *archive, struct cv_reader *row) {
  archive->past.campaigns = cv_read_u64(row);
  read_sums(row, &archive->past, &archive->past_cost_micro);
  return cv_reader_done(row) ? CV_OK : CV_ERR_DAMAGED;
}
