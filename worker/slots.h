/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots that the workers of a pool have used in one campaign with two brokers. A slot is the number of a token
 * among its worker's, chosen by the broker; two brokers count at most one token of a slot, and a slot that was used may
 * be used again until its token is settled.
 *
 * Whether that counts against accept.tokens, the pool decides: behind a privatizer what somebody answers always does.
 *
 * In memory only: after a restart of the process a used slot looks free, and counts against accept.tokens once more.
 */
#ifndef CV_WORKER_SLOTS_H
#define CV_WORKER_SLOTS_H

#include <stdint.h>

#include "common/base/err.h"

struct cv_slots_block;

/* All zero is empty; memory is taken as slots are used, for 512 of them at a time. */
struct cv_slots {
  uint32_t each;  /* slots of a worker */
  uint32_t *open; /* per worker: slots that are used and not settled */
  struct cv_slots_block *blocks;
};

enum cv_slot { CV_SLOT_FREE, CV_SLOT_USED, CV_SLOT_SETTLED };

/* `workers` workers with `each` slots, both at least 1 and less than 2^32. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_slots_init(struct cv_slots *slots, uint64_t workers, uint32_t each);
void cv_slots_fini(struct cv_slots *slots);
/* `worker` counts from 0, here and below; slot < each. */
enum cv_slot cv_slots_at(const struct cv_slots *slots, uint64_t worker, uint32_t slot);
/* Marks the slot as used; nothing if it is. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_slots_use(struct cv_slots *slots, uint64_t worker, uint32_t slot);
/* No token of this used slot will be counted any more. */
void cv_slots_settle(struct cv_slots *slots, uint64_t worker, uint32_t slot);

#endif
