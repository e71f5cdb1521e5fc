/* SPDX-License-Identifier: Apache-2.0 */
/* TurboSHAKE128 of RFC 9861, with Keccak-p[1600,12]. Constant time for all bytes of the message. */
#ifndef CV_PRIO_TURBOSHAKE_H
#define CV_PRIO_TURBOSHAKE_H

#include <stddef.h>
#include <stdint.h>

#define CV_TURBOSHAKE_RATE 168 /* bytes that one permutation takes in or gives out */

struct cv_turboshake {
  uint64_t lane[25];
  uint8_t block[CV_TURBOSHAKE_RATE]; /* of the message, then of the output */
  size_t at;                         /* byte of the block that is next */
};

void cv_turboshake_init(struct cv_turboshake *ret);
/* Takes in further bytes of the message. */
void cv_turboshake_absorb(struct cv_turboshake *state, const void *bytes, size_t n);
/* Ends the message. `domain` is the domain separation byte, 0x01 .. 0x7f. Then squeeze. */
void cv_turboshake_finish(struct cv_turboshake *state, uint8_t domain);
/* The next n bytes of output. */
void cv_turboshake_squeeze(struct cv_turboshake *state, void *ret, size_t n);

#endif
