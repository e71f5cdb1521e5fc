/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of epsilon, in integer micro-epsilon. An account is charged in the transaction that stores a release,
 * before the release is sent; the recorded spending is never less than the actual spending.
 *
 * Arms: each arm of a campaign has an account whose limit is the cost of all its possible releases (gate.h), at most
 * the campaign's epsilon. A release costs what its mechanism adds; a release that does not fit is never drawn.
 * Different tokens score different arms, so the accounts of arms are parallel and do not add up.
 *
 * Workers: each has one account over all campaigns. A token costs what the gate says, so a worker that gives all its m
 * tokens pays m epsilon (group privacy). A cell at its maximum is an unlimited account: the worker has given to a
 * campaign that sends exact sums, and gives to no other one. `floor_micro` is charged to every worker, known or
 * unknown: what a recovery could not charge to particular workers.
 */
#ifndef CV_BROKER_BOTH_LEDGER_H
#define CV_BROKER_BOTH_LEDGER_H

#include "common/base/buf.h"
#include "common/base/chunks.h"
#include "common/base/spec.h"

struct cv_ledger_arm {
  uint64_t spent_micro; /* in total */
  uint64_t lost_micro;  /* of that: charged by a recovery for releases that this database has lost */
  bool changed;         /* since it was stored */
};

struct cv_ledger {
  uint64_t limit_micro; /* of each arm */
  uint32_t arms, changed;
  struct cv_ledger_arm *arm; /* owned */
};

/* Initializes accounts with nothing spent. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ledger_init(struct cv_ledger *ledger, uint32_t arms, uint64_t limit_micro);
void cv_ledger_fini(struct cv_ledger *ledger);

/* What is left of the arm's limit, in micro-epsilon; arm < arms. */
uint64_t cv_ledger_left(const struct cv_ledger *ledger, uint32_t arm);
/* CV_ERR_DENIED, without a charge, if the amount exceeds what is left; `why` has the amounts and may be NULL. */
CV_MUST_USE enum cv_err cv_ledger_charge(struct cv_ledger *ledger, uint32_t arm, uint64_t asked_micro,
                                         struct cv_why *why);
/* The same check without the charge. */
CV_MUST_USE enum cv_err cv_ledger_ask(const struct cv_ledger *ledger, uint32_t arm, uint64_t asked_micro,
                                      struct cv_why *why);
/* Charges every arm all that it has left, because its releases are unknown. */
void cv_ledger_write_off(struct cv_ledger *ledger);
/* The largest account of an arm. */
uint64_t cv_ledger_most(const struct cv_ledger *ledger);

/* The stored form of one arm: number, spent, lost. Reading sets the account with that number. CV_ERR_DAMAGED. */
void cv_ledger_put(const struct cv_ledger *ledger, uint32_t arm, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_ledger_read(struct cv_ledger *ledger, struct cv_reader *row);

struct cv_accounts {
  struct cv_chunks cells; /* 32-bit counters by worker id, which saturate */
  uint64_t floor_micro;
  uint64_t spared_micro; /* taken off single cells by all recoveries, where the floor charged too much */
  uint64_t limit_micro;  /* of each account; only for the next field */
  uint64_t exhausted;    /* workers that have a cell and nothing left; kept by cv_accounts_pay() */
};

/* What the worker has spent, the floor included; UINT64_MAX, above every limit, if the account is unlimited. */
uint64_t cv_accounts_spent(struct cv_accounts *accounts, uint64_t worker);
/* Charges one worker; `chunk` has its cell. */
void cv_accounts_charge(struct cv_chunk *chunk, uint64_t worker, uint64_t asked_micro);
/* The same for a chunk of the accounts; counts the account if this exhausts it. */
void cv_accounts_pay(struct cv_accounts *accounts, struct cv_chunk *chunk, uint64_t worker, uint64_t asked_micro);
/* Counts the exhausted accounts, once all are read. */
void cv_accounts_count(struct cv_accounts *accounts, uint64_t limit_micro);
/* Charges every worker. */
void cv_accounts_raise(struct cv_accounts *accounts, uint64_t asked_micro);

/* Saturating sum. */
uint64_t cv_ledger_add(uint64_t a, uint64_t b);

#endif
