/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hybrid mechanism of Chan, Shi and Song, "Private and Continual Release of Statistics" (2010/2011), without a
 * horizon. Half of epsilon goes to each part:
 *
 * - logarithmic part: at n = 2^m one fresh Lap(2) is added to the running noisy sum, so the prefix sum at a power of
 * two   carries m + 1 noises, one for each segment between powers of two;
 * - binary part: the items after N = 2^m, counted by v = n - N < N, go into p-sums. The p-sum of level j covers 2^j
 *   items, ends at a v whose lowest one is bit j, and carries one Lap(2 m). A prefix uses the p-sums of the ones of v.
 *
 * An item is in one segment and in at most m p-sums: epsilon/2 + m epsilon/(2 m).
 */
#include "broker/mechanism/classes.h"

enum { LEVELS = 48 /* log2 of CV_RELEASES_END */ };

struct psum {
  int64_t exact, noise;
};

struct hybrid {
  struct cv_mechanism head;
  int64_t running;          /* noisy sum of items 1 .. N, N the largest power of two <= releases */
  int64_t pending;          /* the noise of item releases + 1, if drawn */
  struct psum psum[LEVELS]; /* valid where v has a one; together they cover the items after N */
};

/* v = n - N. */
static uint64_t past_power(uint64_t n) {
  return n == 0 ? 0 : n - (UINT64_C(1) << cv_log2_floor(n));
}

static void draw(struct cv_mechanism *self, struct cv_rng *rng) {
  struct hybrid *hybrid = (struct hybrid *)self;
  uint64_t n = self->releases + 1;
  uint64_t b = past_power(n) == 0 ? 2 : 2 * (uint64_t)cv_log2_floor(n);
  hybrid->pending = cv_mechanism_laplace(self, b, rng);
}

/* Exact sum of the p-sums of the ones of `levels`. */
static int64_t exact_over(const struct hybrid *hybrid, uint64_t levels) {
  int64_t sum = 0;
  for (; levels != 0; levels &= levels - 1) {
    sum = cv_wrapping_add(sum, hybrid->psum[__builtin_ctzll(levels)].exact);
  }
  return sum;
}

static int64_t noise_over(const struct hybrid *hybrid, uint64_t levels) {
  int64_t sum = 0;
  for (; levels != 0; levels &= levels - 1) {
    sum = cv_wrapping_add(sum, hybrid->psum[__builtin_ctzll(levels)].noise);
  }
  return sum;
}

static int64_t release(struct cv_mechanism *self, int64_t item) {
  struct hybrid *hybrid = (struct hybrid *)self;
  uint64_t before = past_power(self->releases);
  uint64_t v = past_power(self->releases + 1);
  /* Levels that the new item completes: all at a power of two, else those below the lowest one of v. */
  int64_t completed = cv_wrapping_add(exact_over(hybrid, before & ~v), item);
  int64_t noise = hybrid->pending;
  hybrid->pending = 0;
  if (v == 0) {
    hybrid->running = cv_wrapping_add(hybrid->running, cv_wrapping_add(completed, noise));
    return hybrid->running;
  }
  hybrid->psum[__builtin_ctzll(v)] = (struct psum){.exact = completed, .noise = noise};
  return cv_wrapping_add(hybrid->running, cv_wrapping_add(exact_over(hybrid, v), noise_over(hybrid, v)));
}

static void noise(uint64_t n, struct cv_noise *ret) {
  unsigned m = cv_log2_floor(n);
  uint64_t v = past_power(n);
  ret->groups = v == 0 ? 1 : 2;
  ret->group[0] = (struct cv_noise_group){.scale = 2, .count = m + 1};
  ret->group[1] = (struct cv_noise_group){.scale = 2.0 * m, .count = (uint32_t)__builtin_popcountll(v)};
}

/* Item 3 meets no second noise before n = 4. */
static uint64_t spent_micro(uint64_t epsilon_micro, uint64_t n) {
  if (n == 0) {
    return 0;
  }
  return n < 4 ? epsilon_micro / 2 + epsilon_micro % 2 : epsilon_micro;
}

static void save(const struct cv_mechanism *self, struct cv_buf *out) {
  const struct hybrid *hybrid = (const struct hybrid *)self;
  cv_buf_put_u64(out, (uint64_t)hybrid->running);
  for (uint64_t left = past_power(self->releases); left != 0; left &= left - 1) {
    const struct psum *psum = &hybrid->psum[__builtin_ctzll(left)];
    cv_buf_put_u64(out, (uint64_t)psum->exact);
    cv_buf_put_u64(out, (uint64_t)psum->noise);
  }
  if (self->drawn) {
    cv_buf_put_u64(out, (uint64_t)hybrid->pending);
  }
}

static void load(struct cv_mechanism *self, struct cv_reader *in) {
  struct hybrid *hybrid = (struct hybrid *)self;
  hybrid->running = (int64_t)cv_read_u64(in);
  for (uint64_t left = past_power(self->releases); left != 0; left &= left - 1) {
    struct psum *psum = &hybrid->psum[__builtin_ctzll(left)];
    psum->exact = (int64_t)cv_read_u64(in);
    psum->noise = (int64_t)cv_read_u64(in);
  }
  if (self->drawn) {
    hybrid->pending = (int64_t)cv_read_u64(in);
  }
}

const struct cv_mechanism_class cv_mechanism_hybrid = {
    .name = "hybrid",
    .guarantee = "epsilon-differential privacy per arm for all releases together (event level), no horizon",
    .is_private = true,
    .size = sizeof(struct hybrid),
    .draw = draw,
    .release = release,
    .noise = noise,
    .spent_micro = spent_micro,
    .save = save,
    .load = load,
};
