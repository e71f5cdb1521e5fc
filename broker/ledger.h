/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account book of epsilon, in integer micro-epsilon. It is charged in the transaction that stores a release, before
 * the release leaves; what it says was spent is never less than what was released.
 *
 * Arms: each arm of a campaign has an account whose limit is what all its releases may cost (gate.h), the campaign's
 * epsilon or less. A release costs what its mechanism says that it adds; one that does not fit is never drawn. Arms
 * are scored by different tokens, so their accounts stand side by side and do not add up.
 *
 * Workers: each has one account over all campaigns. A token costs what the gate says, so a worker that gives all
 * its m tokens pays m epsilon (group privacy). A cell at its end is an unlimited account: of a worker that has given to
 * a campaign whose exact sums leave, and takes no other. `floor_micro` is charged to everybody, known or not: what a
 * recovery could not put down to anybody in particular.
 */
#ifndef CV_BROKER_LEDGER_H
#define CV_BROKER_LEDGER_H

#include "broker/chunks.h"
#include "common/base/buf.h"
#include "common/base/spec.h"

struct cv_ledger_arm {
  uint64_t spent_micro; /* all of it */
  uint64_t lost_micro;  /* of that: charged by a recovery for releases that this database has forgotten */
  bool changed;         /* since it was stored */
};

struct cv_ledger {
  uint64_t limit_micro; /* of each arm */
  uint32_t arms, changed;
  struct cv_ledger_arm *arm; /* owned */
};

/* Nothing spent yet. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ledger_init(struct cv_ledger *ledger, uint32_t arms, uint64_t limit_micro);
void cv_ledger_fini(struct cv_ledger *ledger);

/* Of the arm's limit, micro-epsilon; arm < arms. */
uint64_t cv_ledger_left(const struct cv_ledger *ledger, uint32_t arm);
/* CV_ERR_DENIED with what was spent, asked and is left, and nothing charged, if it does not fit. `why` may be NULL. */
CV_MUST_USE enum cv_err cv_ledger_charge(struct cv_ledger *ledger, uint32_t arm, uint64_t asked_micro,
                                         struct cv_why *why);
/* The same without charging. */
CV_MUST_USE enum cv_err cv_ledger_ask(const struct cv_ledger *ledger, uint32_t arm, uint64_t asked_micro,
                                      struct cv_why *why);
/* Charges every arm all that it has left: its releases cannot be known any more. */
void cv_ledger_write_off(struct cv_ledger *ledger);
/* The largest account of an arm. */
uint64_t cv_ledger_most(const struct cv_ledger *ledger);

/* The stored form of one arm: number, spent, lost. Reading takes the number's place in the table. CV_ERR_DAMAGED. */
void cv_ledger_put(const struct cv_ledger *ledger, uint32_t arm, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_ledger_read(struct cv_ledger *ledger, struct cv_reader *row);

struct cv_accounts {
  struct cv_chunks cells; /* 32-bit counters by worker id, which stop at their end */
  uint64_t floor_micro;
  uint64_t spared_micro; /* that recoveries have taken off cells, for a floor that is too much for them; all together */
};

/* What the worker has spent, the floor included; UINT64_MAX, which is more than every limit, if that is unlimited. */
uint64_t cv_accounts_spent(struct cv_accounts *accounts, uint64_t worker);
/* Charges one, in the chunk of its cell. */
void cv_accounts_charge(struct cv_chunk *chunk, uint64_t worker, uint64_t asked_micro);
/* Charges everybody. */
void cv_accounts_raise(struct cv_accounts *accounts, uint64_t asked_micro);

/* Sums that stop at the end of their range. */
uint64_t cv_ledger_add(uint64_t a, uint64_t b);

#endif
