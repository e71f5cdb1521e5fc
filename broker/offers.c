/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/offers.h"

#include <stdlib.h>

enum { WORD = 64 };

struct cv_offer {
  uint64_t number, bits;
  UT_hash_handle hh;
};

static struct cv_offer *find(const struct cv_offers *offers, uint64_t number) {
  struct cv_offer *offer;
  HASH_FIND(hh, offers->all, &number, sizeof(number), offer);
  return offer;
}

void cv_offers_fini(struct cv_offers *offers) {
  CV_TABLE_DRAIN(offers->all, free);
}

enum cv_err cv_offers_set(struct cv_offers *offers, uint64_t index) {
  struct cv_offer *offer = find(offers, index / WORD);
  if (offer == NULL) {
    offer = calloc(1, sizeof(*offer));
    if (offer == NULL) {
      return CV_ERR_NOMEM;
    }
    offer->number = index / WORD;
    if (CV_TABLE_ADD(offers->all, number, offer) != CV_OK) {
      free(offer);
      return CV_ERR_NOMEM;
    }
  }
  offer->bits |= UINT64_C(1) << index % WORD;
  return CV_OK;
}

void cv_offers_clear(struct cv_offers *offers, uint64_t index) {
  struct cv_offer *offer = find(offers, index / WORD);
  if (offer == NULL) {
    return;
  }
  offer->bits &= ~(UINT64_C(1) << index % WORD);
  /* Empty words are freed, so that memory follows the open assignments and not all workers ever seen. */
  if (offer->bits == 0) {
    HASH_DEL(offers->all, offer);
    free(offer);
  }
}

bool cv_offers_has(const struct cv_offers *offers, uint64_t index) {
  const struct cv_offer *offer = find(offers, index / WORD);
  return offer != NULL && (offer->bits >> index % WORD & 1) != 0;
}

uint64_t cv_offers_count(const struct cv_offers *offers) {
  uint64_t bits = 0;
  for (const struct cv_offer *offer = offers->all; offer != NULL; offer = offer->hh.next) {
    bits += (uint64_t)__builtin_popcountll(offer->bits);
  }
  return bits;
}

uint64_t cv_offers_find(const struct cv_offers *offers, struct cv_chunks *used, uint64_t from, uint64_t n,
                        bool *ret_used_up) {
  uint64_t end = from + n, at = cv_chunks_unset(used, from, end);
  *ret_used_up = at == end;
  while (at < end) {
    uint64_t number = at / WORD;
    const struct cv_offer *offer = find(offers, number);
    /* A worker's slots begin at any bit: `from` masks the slots of the worker before it, `end` those of the one
     * after. */
    uint64_t taken = cv_chunks_word(used, number) | (offer == NULL ? 0 : offer->bits);
    uint64_t unset = ~taken & UINT64_MAX << at % WORD;
    if (unset != 0) {
      at = number * WORD + (uint64_t)__builtin_ctzll(unset);
      return at < end ? at - from : n;
    }
    uint64_t next = (number + 1) * WORD;
    at = next < end ? cv_chunks_unset(used, next, end) : end;
  }
  return n;
}
