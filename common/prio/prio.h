/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prio3 of draft-irtf-cfrg-vdaf (wire version 18): Prio3Count and Prio3Sum over Field64, with one proof and without
 * joint randomness.
 *
 * A worker splits a measurement into a leader's share with a proof of its range, and a helper's share, a seed
 * (shard.h). Each of the two aggregators makes a verifier share and an output share of its share alone (verify.h). The
 * sum of both verifier shares says whether the measurement is in range; the sum of both output shares is the
 * measurement. A party links shard.h or verify.h, never both.
 *
 * Measurements, shares, seeds and randomness are secret, and so is the verify key before all but the aggregators: no
 * branch and no index depends on them. Lengths, the context, the nonce, and whether a share is accepted are public.
 */
#ifndef CV_PRIO_PRIO_H
#define CV_PRIO_PRIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum cv_prio_circuit {
  CV_PRIO_COUNT = 1, /* a measurement is 0 or 1 */
  CV_PRIO_SUM = 2,   /* a measurement is 0 .. max */
};

#define CV_PRIO_VERSION       18 /* of the wire */
#define CV_PRIO_NONCE_BYTES   16
#define CV_PRIO_SEED_BYTES    32    /* a helper's share; the verify key */
#define CV_PRIO_CONTEXT_BYTES 65527 /* the longest context */

/* The largest instance that a campaign has, Prio3Sum with measurements up to 2^14, and arrays that hold what it or
 * Prio3Count has between two aggregators. */
#define CV_PRIO_MAX_MEASUREMENT       (UINT64_C(1) << 14)
#define CV_PRIO_MAX_LEADER_ELEMENTS   47
#define CV_PRIO_MAX_LEADER_BYTES      376
#define CV_PRIO_MAX_VERIFIER_ELEMENTS 4
#define CV_PRIO_MAX_VERIFIER_BYTES    32
#define CV_PRIO_MAX_RAND_BYTES        64

/* Roots of unity that an instance of 64 bits needs. */
#define CV_PRIO_ROOTS 128

/* The public parameters of an instance; read only after cv_prio_init(). */
struct cv_prio {
  enum cv_prio_circuit circuit;
  uint64_t max; /* the largest measurement */
  unsigned shares;
  size_t leader_bytes;      /* a leader's share */
  size_t verifier_elements; /* a verifier share */
  size_t verifier_bytes;
  size_t rand_bytes; /* fresh random bytes for each sharding */
  /* of the proof system */
  unsigned measurement_elements; /* gadget calls, too */
  unsigned arity;                /* inputs of the gadget */
  unsigned points;               /* values of a wire polynomial, a power of two above the gadget's calls */
  unsigned proof_elements;
  unsigned query_elements;              /* of query randomness */
  uint64_t last_weight;                 /* of the last element of a measurement; the others weigh 1, 2, 4, ... */
  uint64_t share_of_one;                /* 1/(2 points) */
  uint64_t inverse_root[CV_PRIO_ROOTS]; /* powers of the inverse of the principal (2 points)-th root of unity */
};

/* An instance with two shares. `max` is 1 for CV_PRIO_COUNT, and 1 .. p - 1 for CV_PRIO_SUM: CV_ERR_LIMIT otherwise. */
CV_MUST_USE enum cv_err cv_prio_init(struct cv_prio *ret, enum cv_prio_circuit circuit, uint64_t max);
/* With `shares` of 2 .. 255: one leader, and shares - 1 helpers. */
CV_MUST_USE enum cv_err cv_prio_init_shares(struct cv_prio *ret, enum cv_prio_circuit circuit, uint64_t max,
                                            unsigned shares);

#endif
