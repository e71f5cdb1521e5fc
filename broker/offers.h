/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which slots of which workers are assigned and not yet answered, as bits with the numbers that they have among the
 * payers. It costs what is open, wherever that lies: words of 64 bits, those that are zero forgotten.
 */
#ifndef CV_BROKER_OFFERS_H
#define CV_BROKER_OFFERS_H

#include "broker/chunks.h"

struct cv_offer; /* a word */

/* All zero: nothing is open. */
struct cv_offers {
  struct cv_offer *all; /* by number */
};

void cv_offers_fini(struct cv_offers *offers);
/* CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_offers_set(struct cv_offers *offers, uint64_t index);
void cv_offers_clear(struct cv_offers *offers, uint64_t index);
/* Bits set. */
uint64_t cv_offers_count(const struct cv_offers *offers);

/*
 * The first of the `n` bits from `from` on that is neither used nor open, counted from there; n if there is none.
 * *ret_used_up: all are used. Looks at words, not at bits.
 */
uint64_t cv_offers_find(const struct cv_offers *offers, struct cv_chunks *used, uint64_t from, uint64_t n,
                        bool *ret_used_up);

#endif
