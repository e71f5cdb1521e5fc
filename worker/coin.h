/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random bits by which a fixed opinion is privatized: always the same ones. So a broker that asks again, after a
 * lease, a restart or a loss of its memory, under another ticket, worker, campaign or name, gets the same token again
 * and learns nothing further; only another law, which is another disclosure and charged as one, has bits of its own.
 * Otherwise two thresholds for the same bits would tell the opinion.
 *
 * The bits are those of an extendable output function under a secret key. Whoever lacks the key cannot tell them from
 * uniform ones; whoever has it knows the scores behind all tokens. Pure.
 */
#ifndef CV_WORKER_COIN_H
#define CV_WORKER_COIN_H

#include <stdint.h>

#include "common/base/local.h"
#include "common/base/rng.h"
#include "common/prio/xof_rng.h"

enum { CV_COIN_KEY_BYTES = 32 };

/* A score that does not change: a row of a data set, or the simulated score of a place. */
struct cv_opinion {
  uint64_t source; /* fingerprint of the data set; 0: simulated */
  uint32_t arm;
  uint32_t opponent; /* 1 + the arm that it is compared with; 0: none */
  uint64_t number;   /* of the row or place, among those of the arm */
};

struct cv_coin {
  struct cv_xof_rng bits;
};

/* Of a law; NULL: the bits that round a score for two brokers. `coin` must not move afterwards; the caller wipes it. */
void cv_coin_init(struct cv_coin *coin, const uint8_t key[CV_COIN_KEY_BYTES], const struct cv_local *law,
                  const struct cv_opinion *opinion);
void cv_coin_wipe(struct cv_coin *coin);
/* A fingerprint of a law: two that disclose something else of the same opinions have different ones. 0: none, which
 * discloses the opinions themselves. */
uint64_t cv_coin_law(const struct cv_local *law);

#endif
