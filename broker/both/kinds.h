/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse arrays of a broker's database, and what is written and deleted like them. */
#ifndef CV_BROKER_BOTH_KINDS_H
#define CV_BROKER_BOTH_KINDS_H

#include <stdbool.h>

#include "common/base/chunks.h"

enum cv_kind {
  CV_CHUNK_PLACES = 1, /* by their round (places.h) */
  CV_CHUNK_PAYERS,
  CV_CHUNK_ARM,
  CV_CHUNK_ACCOUNTS,
  CV_CHUNK_GOLD,
  /* Of a campaign with two brokers; no arrays, but written and deleted like them (broker/two.h). */
  CV_CHUNK_TWO,     /* its key, and what has been settled with the co-broker */
  CV_CHUNK_PENDING, /* a batch of tokens that wait for the co-broker */
  CV_CHUNK_CLOSING, /* a closing that waits for the co-broker's half */
  /* An array again. */
  CV_CHUNK_ANSWERED, /* what workers have answered (common/base/answered.h) */
};

/* Whether chunks of this kind are 32-bit counters; else bits. */
static inline bool cv_kind_has_cells(enum cv_kind kind) {
  return kind == CV_CHUNK_ACCOUNTS || kind == CV_CHUNK_GOLD;
}

#endif
