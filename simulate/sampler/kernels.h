/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the sampler. Each is one generic body, written with vectors of eight words and compiled once per
 * instruction set, so that all kernels do the same operations in the same order.
 */
#ifndef CV_SIMULATE_SAMPLER_KERNELS_H
#define CV_SIMULATE_SAMPLER_KERNELS_H

#include "simulate/sampler/sampler.h"

struct cv_sampler_kernel {
  const char *name;
  bool (*runs)(void);
  /* cv_sampler_bernoulli_sum for 0 < p < 1. */
  uint64_t (*bernoulli)(struct cv_sampler *sampler, uint64_t count, double p);
  /* cv_sampler_clipped_normal_sum. */
  uint64_t (*clipped_normal)(struct cv_sampler *sampler, uint64_t count, double mean, double sd);
};

#define CV_INLINE static inline __attribute__((always_inline))

#ifdef __x86_64__
#define CV_TARGET_AVX2   __attribute__((target("avx2")))
#define CV_TARGET_AVX512 __attribute__((target("avx512f,avx512dq,avx512vl")))
#endif

/* Eight words in parallel; the state of a sampler need not be aligned. */
typedef uint64_t cv_simd __attribute__((vector_size(64)));
typedef uint64_t cv_simd_unaligned __attribute__((vector_size(64), aligned(8), may_alias));

struct cv_simd_state {
  cv_simd s0, s1, s2, s3;
};

CV_INLINE void cv_simd_load(const struct cv_sampler *from, struct cv_simd_state *ret) {
  ret->s0 = *(const cv_simd_unaligned *)from->state[0];
  ret->s1 = *(const cv_simd_unaligned *)from->state[1];
  ret->s2 = *(const cv_simd_unaligned *)from->state[2];
  ret->s3 = *(const cv_simd_unaligned *)from->state[3];
}

CV_INLINE void cv_simd_store(const struct cv_simd_state *state, struct cv_sampler *to) {
  *(cv_simd_unaligned *)to->state[0] = state->s0;
  *(cv_simd_unaligned *)to->state[1] = state->s1;
  *(cv_simd_unaligned *)to->state[2] = state->s2;
  *(cv_simd_unaligned *)to->state[3] = state->s3;
}

/* 512 fresh bits: xoshiro256++ in each lane. */
CV_INLINE void cv_simd_next(struct cv_simd_state *state, cv_simd *ret) {
  cv_simd sum = state->s0 + state->s3;
  *ret = ((sum << 23) | (sum >> 41)) + state->s0;
  cv_simd t = state->s1 << 17;
  state->s2 ^= state->s0;
  state->s3 ^= state->s1;
  state->s1 ^= state->s2;
  state->s0 ^= state->s3;
  state->s2 ^= t;
  state->s3 = (state->s3 << 45) | (state->s3 >> 19);
}

uint64_t cv_sampler_bernoulli_plain(struct cv_sampler *sampler, uint64_t count, double p);
uint64_t cv_clipped_normal_plain(struct cv_sampler *sampler, uint64_t count, double mean, double sd);
#ifdef __x86_64__
uint64_t cv_sampler_bernoulli_avx2(struct cv_sampler *sampler, uint64_t count, double p);
uint64_t cv_sampler_bernoulli_avx512(struct cv_sampler *sampler, uint64_t count, double p);
uint64_t cv_clipped_normal_avx2(struct cv_sampler *sampler, uint64_t count, double mean, double sd);
uint64_t cv_clipped_normal_avx512(struct cv_sampler *sampler, uint64_t count, double mean, double sd);
#endif

#endif
