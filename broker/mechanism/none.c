/* SPDX-License-Identifier: Apache-2.0 */
/* No noise: exact prefix sums, for a trusted third-party or behind a privatizer. */
#include "broker/mechanism/classes.h"

struct none {
  struct cv_mechanism head;
  int64_t sum;
};

static void draw(struct cv_mechanism *self, struct cv_rng *rng) {
  (void)self;
  (void)rng;
}

static int64_t release(struct cv_mechanism *self, int64_t item) {
  struct none *none = (struct none *)self;
  none->sum = cv_wrapping_add(none->sum, item);
  return none->sum;
}

static void noise(uint64_t n, struct cv_noise *ret) {
  (void)n;
  ret->groups = 0;
}

static uint64_t spent_micro(uint64_t epsilon_micro, uint64_t n) {
  (void)epsilon_micro;
  (void)n;
  return 0;
}

static void save(const struct cv_mechanism *self, struct cv_buf *out) {
  const struct none *none = (const struct none *)self;
  cv_buf_put_u64(out, (uint64_t)none->sum);
}

static void load(struct cv_mechanism *self, struct cv_reader *in) {
  struct none *none = (struct none *)self;
  none->sum = (int64_t)cv_read_u64(in);
}

const struct cv_mechanism_class cv_mechanism_none = {
    .name = "none",
    .guarantee = "none: releases are exact sums",
    .is_private = false,
    .size = sizeof(struct none),
    .draw = draw,
    .release = release,
    .noise = noise,
    .spent_micro = spent_micro,
    .save = save,
    .load = load,
};
