/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mechanism: a stream of exact integer sums in, noisy prefix sums out. One object per arm.
 *
 * Item n is the sum of the tokens of the arm's n-th epoch; one token changes it by at most CV_GRID. Noise is an exact
 * integer. The noise of item n is drawn by cv_mechanism_draw() before the item's sum is known (the sampler's running
 * time depends on the value it draws) and is part of the saved state, so that a release is never drawn twice.
 *
 * Each mechanism is one file and one row of cv_mechanism_table.
 */
#ifndef CV_BROKER_MECHANISM_H
#define CV_BROKER_MECHANISM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/result.h"
#include "common/base/rng.h"

struct cv_mechanism;

struct cv_mechanism_class {
  const char *name;
  const char *guarantee; /* one line for documents and messages */
  bool is_private;       /* may leave the broker towards an untrusted third-party */
  size_t size;           /* bytes of the object, which starts with struct cv_mechanism */
  void (*draw)(struct cv_mechanism *self, struct cv_rng *rng);
  int64_t (*release)(struct cv_mechanism *self, int64_t item);
  void (*noise)(uint64_t n, struct cv_noise *ret);
  uint64_t (*spent_micro)(uint64_t epsilon_micro, uint64_t n);
  void (*save)(const struct cv_mechanism *self, struct cv_buf *out);
  void (*load)(struct cv_mechanism *self, struct cv_reader *in);
};

/* The head of every mechanism object. */
struct cv_mechanism {
  const struct cv_mechanism_class *class;
  uint64_t epsilon_micro;
  uint64_t releases; /* n: items released so far */
  bool drawn;        /* the noise of item n + 1 is there */
};

/* The table, by name; NULL if there is none of that name. cv_mechanism_at() enumerates, NULL past the end. */
const struct cv_mechanism_class *cv_mechanism_find(const char *name);
const struct cv_mechanism_class *cv_mechanism_at(size_t index);

/* A new object with nothing released. epsilon_micro > 0 unless the class is not private. */
CV_MUST_USE enum cv_err cv_mechanism_new(const struct cv_mechanism_class *class, uint64_t epsilon_micro,
                                         struct cv_mechanism **ret);
void cv_mechanism_free(struct cv_mechanism *mechanism);

/* Draws what item n + 1 needs; does nothing if that has been done. */
void cv_mechanism_draw(struct cv_mechanism *mechanism, struct cv_rng *rng);
/* Item n + 1 in, noisy sum of items 1 .. n + 1 out. The noise must have been drawn. No randomness is used. */
int64_t cv_mechanism_release(struct cv_mechanism *mechanism, int64_t item);

/* The noise in the n-th noisy prefix sum (n >= 1), for the release. */
void cv_mechanism_noise(const struct cv_mechanism *mechanism, uint64_t n, struct cv_noise *ret);
/* Epsilon spent on one arm's stream after n releases, micro-epsilon. */
uint64_t cv_mechanism_spent_micro(const struct cv_mechanism *mechanism, uint64_t n);

/* The whole state, byte for byte: save(load(x)) = x. As secret as an exact sum. */
void cv_mechanism_save(const struct cv_mechanism *mechanism, struct cv_buf *out);
/* The class and epsilon must be those of the saved object. */
CV_MUST_USE enum cv_err cv_mechanism_load(const struct cv_mechanism_class *class, struct cv_reader *in,
                                          struct cv_mechanism **ret);

#endif
