/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The money of a recruitment campaign: which worker is which arm, and what has been paid. A worker is paid its arm's
 * cost once per accepted token, whatever happens to the epoch. Plans are accepted only within the budget
 * (cv_payroll_price()), so payments never exceed it.
 *
 * While a campaign runs, payments follow from the stored images of its arms; when it stops, they are stored themselves.
 */
#ifndef CV_BROKER_PAYROLL_H
#define CV_BROKER_PAYROLL_H

#include "common/base/buf.h"
#include "common/base/result.h"
#include "common/base/spec.h"

/* One worker. */
struct cv_seat {
  uint64_t worker;
  uint32_t arm;
};

/* All zero: no payments. */
struct cv_payroll {
  uint32_t arms;
  struct cv_seat *seat; /* by worker, ascending */
  uint64_t *tokens;     /* paid for, by arm */
  uint64_t paid_micro;  /* in all */
};

/* Nothing paid yet; allocates only if arms have costs. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_payroll_init(struct cv_payroll *payroll, const struct cv_spec *spec);
void cv_payroll_fini(struct cv_payroll *payroll);

static inline bool cv_payroll_is_kept(const struct cv_payroll *payroll) {
  return payroll->seat != NULL;
}

/* NULL if the campaign does not name the worker. */
struct cv_seat *cv_payroll_find(const struct cv_payroll *payroll, uint64_t worker);
/* Pays for `tokens` more tokens of an arm. */
void cv_payroll_pay(struct cv_payroll *payroll, const struct cv_spec *spec, uint32_t arm, uint64_t tokens);
/* The price of a plan; saturates. */
uint64_t cv_payroll_price(const struct cv_spec *spec, const struct cv_plan *plan);

/* The number of paid tokens of each arm. Reading pays for them; CV_ERR_DAMAGED if they exceed the budget. */
void cv_payroll_put(const struct cv_payroll *payroll, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_payroll_read(struct cv_payroll *payroll, const struct cv_spec *spec, struct cv_reader *in);

#endif
