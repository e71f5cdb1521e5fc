/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/payroll.h"

#include <stdlib.h>

static int by_worker(const void *a, const void *b) {
  uint64_t left = ((const struct cv_seat *)a)->worker, right = ((const struct cv_seat *)b)->worker;
  return left < right ? -1 : left > right;
}

enum cv_err cv_payroll_init(struct cv_payroll *payroll, const struct cv_spec *spec) {
  *payroll = (struct cv_payroll){.arms = spec->arms};
  if (spec->cost_micro == NULL) {
    return CV_OK;
  }
  payroll->seat = calloc(spec->arms, sizeof(*payroll->seat));
  payroll->tokens = calloc(spec->arms, sizeof(*payroll->tokens));
  if (payroll->seat == NULL || payroll->tokens == NULL) {
    cv_payroll_fini(payroll);
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    payroll->seat[i] = (struct cv_seat){.worker = spec->worker[i], .arm = i};
  }
  qsort(payroll->seat, spec->arms, sizeof(*payroll->seat), by_worker);
  return CV_OK;
}

void cv_payroll_fini(struct cv_payroll *payroll) {
  free(payroll->seat);
  free(payroll->tokens);
  *payroll = (struct cv_payroll){0};
}

struct cv_seat *cv_payroll_find(const struct cv_payroll *payroll, uint64_t worker) {
  const struct cv_seat key = {.worker = worker};
  return bsearch(&key, payroll->seat, payroll->arms, sizeof(key), by_worker);
}

void cv_payroll_pay(struct cv_payroll *payroll, const struct cv_spec *spec, uint32_t arm, uint64_t tokens) {
  payroll->tokens[arm] += tokens;
  payroll->paid_micro += tokens * spec->cost_micro[arm];
}

uint64_t cv_payroll_price(const struct cv_spec *spec, const struct cv_plan *plan) {
  uint64_t price = 0, part;
  for (uint32_t i = 0; i < plan->wants; i++) {
    /* Saturated instead of wrapped: a price that no budget covers must not look like a small one. */
    if (__builtin_mul_overflow(plan->want[i].tokens, spec->cost_micro[plan->want[i].arm], &part) ||
        __builtin_add_overflow(price, part, &price)) {
      return UINT64_MAX;
    }
  }
  return price;
}

void cv_payroll_put(const struct cv_payroll *payroll, struct cv_buf *out) {
  for (uint32_t i = 0; i < payroll->arms; i++) {
    cv_buf_put_u64(out, payroll->tokens[i]);
  }
}

enum cv_err cv_payroll_read(struct cv_payroll *payroll, const struct cv_spec *spec, struct cv_reader *in) {
  payroll->paid_micro = 0;
  for (uint32_t i = 0; i < payroll->arms; i++) {
    uint64_t tokens = cv_read_u64(in);
    payroll->tokens[i] = 0;
    /* Divided, because the product of a damaged number of tokens and a cost can wrap. */
    if (tokens > (spec->budget_micro - payroll->paid_micro) / spec->cost_micro[i]) {
      return CV_ERR_DAMAGED;
    }
    cv_payroll_pay(payroll, spec, i, tokens);
  }
  return in->failed ? CV_ERR_DAMAGED : CV_OK;
}
