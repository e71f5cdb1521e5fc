/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/ledger.h"

#include <stdlib.h>

/* Saturates: an upper bound that wrapped would look like a small one. */
uint64_t cv_ledger_add(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* ---- arms ---- */

enum cv_err cv_ledger_init(struct cv_ledger *ledger, uint32_t arms, uint64_t limit_micro) {
  struct cv_ledger_arm *arm = calloc(arms, sizeof(*arm));
  if (arm == NULL) {
    return CV_ERR_NOMEM;
  }
  *ledger = (struct cv_ledger){.limit_micro = limit_micro, .arms = arms, .arm = arm};
  return CV_OK;
}

void cv_ledger_fini(struct cv_ledger *ledger) {
  free(ledger->arm);
  *ledger = (struct cv_ledger){0};
}

uint64_t cv_ledger_left(const struct cv_ledger *ledger, uint32_t arm) {
  /* Never negative: charging and reading both keep what is spent within the limit. */
  return ledger->limit_micro - ledger->arm[arm].spent_micro;
}

enum cv_err cv_ledger_ask(const struct cv_ledger *ledger, uint32_t arm, uint64_t asked_micro, struct cv_why *why) {
  /* Compared with what is left, because spent plus asked can wrap. */
  uint64_t left = cv_ledger_left(ledger, arm);
  if (asked_micro <= left) {
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_DENIED,
                 "arm %u has spent %llu micro-epsilon of %llu; its next release asks for %llu, %llu are left", arm + 1,
                 (unsigned long long)ledger->arm[arm].spent_micro, (unsigned long long)ledger->limit_micro,
                 (unsigned long long)asked_micro, (unsigned long long)left);
}

static void spend(struct cv_ledger *ledger, uint32_t index, uint64_t micro) {
  struct cv_ledger_arm *arm = &ledger->arm[index];
  if (micro > 0) {
    arm->spent_micro += micro;
    ledger->changed += !arm->changed;
    arm->changed = true;
  }
}

enum cv_err cv_ledger_charge(struct cv_ledger *ledger, uint32_t arm, uint64_t asked_micro, struct cv_why *why) {
  CV_TRY(cv_ledger_ask(ledger, arm, asked_micro, why));
  spend(ledger, arm, asked_micro);
  return CV_OK;
}

void cv_ledger_write_off(struct cv_ledger *ledger) {
  for (uint32_t i = 0; i < ledger->arms; i++) {
    uint64_t left = cv_ledger_left(ledger, i);
    /* Kept apart from charges for known releases, which a start compares with the releases that it reads. */
    ledger->arm[i].lost_micro += left;
    spend(ledger, i, left);
  }
}

uint64_t cv_ledger_most(const struct cv_ledger *ledger) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < ledger->arms; i++) {
    most = ledger->arm[i].spent_micro > most ? ledger->arm[i].spent_micro : most;
  }
  return most;
}

void cv_ledger_put(const struct cv_ledger *ledger, uint32_t arm, struct cv_buf *out) {
  cv_buf_put_u32(out, arm);
  cv_buf_put_u64(out, ledger->arm[arm].spent_micro);
  cv_buf_put_u64(out, ledger->arm[arm].lost_micro);
}

enum cv_err cv_ledger_read(struct cv_ledger *ledger, struct cv_reader *row) {
  uint32_t arm = cv_read_u32(row);
  uint64_t spent = cv_read_u64(row);
  uint64_t lost = cv_read_u64(row);
  if (!cv_reader_done(row) || arm >= ledger->arms || spent > ledger->limit_micro || lost > spent) {
    return CV_ERR_DAMAGED;
  }
  ledger->arm[arm] = (struct cv_ledger_arm){.spent_micro = spent, .lost_micro = lost};
  return CV_OK;
}

/* ---- workers ---- */

static uint64_t spent_by(const struct cv_accounts *accounts, uint32_t cell) {
  return cell == UINT32_MAX ? UINT64_MAX : cv_ledger_add(accounts->floor_micro, cell);
}

uint64_t cv_accounts_spent(struct cv_accounts *accounts, uint64_t worker) {
  const struct cv_chunk *chunk = cv_chunks_find(&accounts->cells, worker / CV_CHUNK_CELLS);
  return spent_by(accounts, chunk == NULL ? 0 : chunk->as.cell[worker % CV_CHUNK_CELLS]);
}

/* A cell of 0 belongs to no worker that is known, whatever the floor is. */
static bool is_exhausted(const struct cv_accounts *accounts, uint32_t cell) {
  return cell > 0 && spent_by(accounts, cell) >= accounts->limit_micro;
}

void cv_accounts_charge(struct cv_chunk *chunk, uint64_t worker, uint64_t asked_micro) {
  /* Saturates: a counter that wrapped would give the worker its epsilon back. */
  uint32_t *cell = &chunk->as.cell[worker % CV_CHUNK_CELLS];
  uint64_t spent = cv_ledger_add(*cell, asked_micro);
  *cell = spent < UINT32_MAX ? (uint32_t)spent : UINT32_MAX;
}

void cv_accounts_pay(struct cv_accounts *accounts, struct cv_chunk *chunk, uint64_t worker, uint64_t asked_micro) {
  const uint32_t *cell = &chunk->as.cell[worker % CV_CHUNK_CELLS];
  bool was_exhausted = is_exhausted(accounts, *cell);
  cv_accounts_charge(chunk, worker, asked_micro);
  accounts->exhausted += !was_exhausted && is_exhausted(accounts, *cell);
}

void cv_accounts_count(struct cv_accounts *accounts, uint64_t limit_micro) {
  accounts->limit_micro = limit_micro;
  accounts->exhausted = 0;
  for (const struct cv_chunk *chunk = accounts->cells.all; chunk != NULL; chunk = chunk->hh.next) {
    for (size_t i = 0; i < CV_CHUNK_CELLS; i++) {
      accounts->exhausted += is_exhausted(accounts, chunk->as.cell[i]);
    }
  }
}

void cv_accounts_raise(struct cv_accounts *accounts, uint64_t asked_micro) {
  accounts->floor_micro = cv_ledger_add(accounts->floor_micro, asked_micro);
}
