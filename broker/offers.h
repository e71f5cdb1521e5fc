/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of workers that are assigned and not yet answered: a sparse set of bits, numbered like the payers' bits. It
 * stores words of 64 bits and drops those that are zero, so its size follows the number of open assignments.
 */
#ifndef CV_BROKER_OFFERS_H
#define CV_BROKER_OFFERS_H

#include "common/base/chunks.h"

struct cv_offer; /* one word */

/* All zero: the empty set. */
struct cv_offers {
  struct cv_offer *all; /* by number */
};

void cv_offers_fini(struct cv_offers *offers);
/* CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_offers_set(struct cv_offers *offers, uint64_t index);
void cv_offers_clear(struct cv_offers *offers, uint64_t index);
bool cv_offers_has(const struct cv_offers *offers, uint64_t index);
/* The number of bits set. */
uint64_t cv_offers_count(const struct cv_offers *offers);

/*
 * The offset from `from` of the first of the `n` bits from there on that is neither used nor open; n if there is none.
 * *ret_used_up: all `n` are used. Tests words, not single bits.
 */
uint64_t cv_offers_find(const struct cv_offers *offers, struct cv_chunks *used, uint64_t from, uint64_t n,
                        bool *ret_used_up);

#endif
