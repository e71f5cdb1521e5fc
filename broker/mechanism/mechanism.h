/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mechanism: takes a stream of exact integer sums, returns noisy sums. One object per arm.
 *
 * Item n is the sum of the tokens of the arm's n-th epoch; one token changes it by at most CV_GRID. The n-th release is
 * the exact sum of the items that it covers plus noise that is an exact integer and depends only on n and on
 * randomness. So a mechanism is defined by its noise: which nodes (segments, nodes of a tree, ...) carry noise of which
 * scale, and which nodes are part of the n-th release. A node's noise is drawn once, when first used, and kept as long
 * as a later release may use it.
 *
 * cv_mechanism_draw() draws the noise of release n before the item's sum is known, because the sampler's running time
 * depends on the value it draws. The noise is part of the saved state, so a release is never drawn twice.
 *
 * Each mechanism is one file here and one row of common/base/mechanisms.h, which has its public properties.
 */
#ifndef CV_BROKER_MECHANISM_H
#define CV_BROKER_MECHANISM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/mechanisms.h"
#include "common/base/result.h"
#include "common/base/rng.h"
#include "common/base/spec.h"

/* An arm makes fewer releases than this, so their number fits 32 bits and every scale fits the sampler. */
#define CV_RELEASES_END (UINT64_C(1) << 32)

struct cv_mechanism;
struct cv_mechanism_class;

/* A mechanism with its parameters, shared by all arms of a campaign. */
struct cv_mechanism_law {
  const struct cv_mechanism_class *class;
  uint64_t epsilon_micro; /* of one arm's stream; 0 only without noise */
  uint64_t horizon;       /* largest number of releases of an arm, below CV_RELEASES_END */
  uint32_t arity;         /* children per node, if the campaign chooses it */
  uint32_t levels;        /* of the tree, if the horizon determines it */
  uint32_t nodes;         /* noises that an object holds */
  bool shares;            /* items are shares of sums: elements of Field64 (common/prio/field.h), as are releases */
};

/* Which items the n-th release sums, according to the class's cv_sums. */
enum cv_cover {
  CV_COVER_ALL,    /* 1 .. n */
  CV_COVER_ITEM,   /* n alone */
  CV_COVER_BEFORE, /* the items of release n - 1, whose sum it repeats */
};

struct cv_mechanism_class {
  const struct cv_traits *traits; /* its name, and which items a release sums */
  const char *guarantee;          /* one line for documents and messages */
  const struct cv_param_rule *rules;
  size_t rule_count;
  /* Derives levels, arity and nodes from the horizon and the checked parameters; writes derived values into `params`.
   * */
  enum cv_err (*prepare)(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why);
  /* Moves from the nodes of release n - 1 to those of release n: draws new noise, and zeroes noise no longer live. */
  void (*draw)(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng);
  /* Whether release n or a later one may use this node's noise, once the noise of release n is drawn; 1 <= n. */
  bool (*is_live)(const struct cv_mechanism_law *law, uint64_t n, uint32_t node);
  int64_t (*total)(const struct cv_mechanism *self, uint64_t n); /* the noise in release n */
  void (*noise)(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret);
  uint64_t (*spent_micro)(const struct cv_mechanism_law *law, uint64_t n); /* 1 <= n */
};

struct cv_mechanism {
  struct cv_mechanism_law law;
  uint64_t releases; /* n: releases made so far */
  bool drawn;        /* the noise of release n + 1 is drawn */
  int64_t exact;     /* sum of the items that release n covers; of shares, an element below p */
  int64_t waiting;   /* sum of the later items; the same */
  int64_t noise;     /* in release n + 1, if drawn; follows from the nodes */
  int64_t node[];    /* law.nodes noises, 0 where none is live */
};

/* The class of that name; NULL if unknown. cv_mechanism_at() enumerates all classes and returns NULL past the end. */
const struct cv_mechanism_class *cv_mechanism_find(const char *name);
const struct cv_mechanism_class *cv_mechanism_at(size_t index);

/* False if its releases are exact. */
static inline bool cv_mechanism_has_noise(const struct cv_mechanism_class *class) {
  return class->traits->noise != CV_NOISE_NONE;
}

/* Whether one arm's releases together are epsilon-differentially private, up to the law's horizon. */
static inline bool cv_mechanism_is_private(const struct cv_mechanism_class *class) {
  return class->traits->private != CV_PRIVATE_NEVER;
}

/* An upper bound of the releases of one arm, as far as the spec determines it. */
uint64_t cv_mechanism_releases(const struct cv_spec *spec);
/*
 * The law of a campaign's choice. Checks `choice` against the mechanism's rules and completes it: with a horizon
 * derived from `releases` (the largest number of releases of an arm; 0: unknown) if it needs one and names none, and
 * with all values that follow, so that the completed choice always gives the same law. CV_ERR_NOT_FOUND or
 * CV_ERR_INVALID with the reason.
 */
CV_MUST_USE enum cv_err cv_mechanism_law_init(struct cv_choice *choice, uint64_t epsilon_micro, uint64_t releases,
                                              struct cv_mechanism_law *ret, struct cv_why *why);
/* The same for a given class; `params` may be NULL for none. */
CV_MUST_USE enum cv_err cv_mechanism_law_for(const struct cv_mechanism_class *class, struct cv_params *params,
                                             uint64_t epsilon_micro, uint64_t releases, struct cv_mechanism_law *ret,
                                             struct cv_why *why);
/* Which items the n-th release (n >= 1) sums. */
enum cv_cover cv_mechanism_cover(const struct cv_mechanism_law *law, uint64_t n);
/* Describes the noise in the n-th release (n >= 1). */
void cv_mechanism_noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret);
/* Epsilon spent on one arm's stream after n releases, in micro-epsilon, rounded up. */
uint64_t cv_mechanism_spent_micro(const struct cv_mechanism_law *law, uint64_t n);

/* A new object without releases. */
CV_MUST_USE enum cv_err cv_mechanism_new(const struct cv_mechanism_law *law, struct cv_mechanism **ret);
void cv_mechanism_free(struct cv_mechanism *mechanism);

/* Whether the horizon is reached: no further item is allowed. */
bool cv_mechanism_is_spent(const struct cv_mechanism *mechanism);
/* Draws the noise of release n + 1, which must be within the horizon; does nothing if it is already drawn. */
void cv_mechanism_draw(struct cv_mechanism *mechanism, struct cv_rng *rng);
/* Takes item n + 1 and returns release n + 1. Its noise must have been drawn. Uses no randomness. */
int64_t cv_mechanism_release(struct cv_mechanism *mechanism, int64_t item);
/* The same for a law of shares: item and release are elements. The noise, an exact integer, is reduced once. */
uint64_t cv_mechanism_release_share(struct cv_mechanism *mechanism, uint64_t item);

/* The complete state, byte for byte: save(load(x)) = x. It is as secret as an exact sum. */
void cv_mechanism_save(const struct cv_mechanism *mechanism, struct cv_buf *out);
/* CV_ERR_DAMAGED or CV_ERR_VERSION if it is not the state of an object of this law. */
CV_MUST_USE enum cv_err cv_mechanism_load(const struct cv_mechanism_law *law, struct cv_reader *in,
                                          struct cv_mechanism **ret);

#endif
