/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mechanism: a stream of exact integer sums in, noisy sums out. One object per arm.
 *
 * Item n is the sum of the tokens of the arm's n-th epoch; one token changes it by at most CV_GRID. The n-th release is
 * the exact sum of the items that it covers plus noise that is an exact integer and depends on nothing but n and
 * chance. So a mechanism is its noise: which nodes (segments, nodes of a tree, ...) carry noise of which scale, and
 * which of them are in the n-th release. A node's noise is drawn once, when first used, and kept as long as a later
 * release may use it.
 *
 * The noise of release n is drawn by cv_mechanism_draw() before the item's sum is known (the sampler's running time
 * depends on the value it draws) and is part of the saved state, so that a release is never drawn twice.
 *
 * Each mechanism is one file and one row of the table.
 */
#ifndef CV_BROKER_MECHANISM_H
#define CV_BROKER_MECHANISM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/result.h"
#include "common/base/rng.h"
#include "common/base/spec.h"

/* An arm makes fewer releases than this: their number fits 32 bits, every scale fits the sampler. */
#define CV_RELEASES_END (UINT64_C(1) << 32)

struct cv_mechanism;
struct cv_mechanism_class;

/* A mechanism with its parameters: what all arms of a campaign share. */
struct cv_mechanism_law {
  const struct cv_mechanism_class *class;
  uint64_t epsilon_micro; /* of one arm's stream; 0 only without noise */
  uint64_t horizon;       /* releases an arm may make, below CV_RELEASES_END */
  uint32_t arity;         /* children of a node, where a campaign may choose */
  uint32_t levels;        /* of the tree, where the horizon decides */
  uint32_t nodes;         /* noises an object can hold */
};

/* Which items the n-th release sums. */
enum cv_cover {
  CV_COVER_ALL,    /* 1 .. n */
  CV_COVER_ITEM,   /* n alone */
  CV_COVER_BEFORE, /* those of release n - 1, which it repeats */
};

struct cv_mechanism_class {
  const char *name;
  const char *guarantee; /* one line for documents and messages */
  bool has_noise;        /* false: releases are exact */
  bool is_private;       /* one arm's releases together are epsilon-differentially private */
  const struct cv_param_rule *rules;
  size_t rule_count;
  /* Levels, arity and nodes from the horizon and the (checked) parameters; what it derives goes into them. */
  enum cv_err (*prepare)(struct cv_mechanism_law *law, struct cv_params *params, struct cv_why *why);
  enum cv_cover (*cover)(uint64_t n); /* NULL: always CV_COVER_ALL */
  /* From the nodes of release n - 1 to those of release n: draws what is new, and makes 0 what is no longer live. */
  void (*draw)(struct cv_mechanism *self, uint64_t n, struct cv_rng *rng);
  /* Whether a later release than n - 1 may use this node's noise, once that of release n is drawn; 1 <= n. */
  bool (*is_live)(const struct cv_mechanism_law *law, uint64_t n, uint32_t node);
  int64_t (*total)(const struct cv_mechanism *self, uint64_t n); /* the noise in release n */
  void (*noise)(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret);
  uint64_t (*spent_micro)(const struct cv_mechanism_law *law, uint64_t n); /* 1 <= n */
};

struct cv_mechanism {
  struct cv_mechanism_law law;
  uint64_t releases; /* n: made so far */
  bool drawn;        /* the noise of release n + 1 is there */
  int64_t exact;     /* sum of the items that release n covers */
  int64_t waiting;   /* sum of the items since */
  int64_t noise;     /* in release n + 1, if drawn; follows from the nodes */
  int64_t node[];    /* law.nodes noises, 0 where nothing is live */
};

/* The table, by name; NULL if there is none of that name. cv_mechanism_at() enumerates, NULL past the end. */
const struct cv_mechanism_class *cv_mechanism_find(const char *name);
const struct cv_mechanism_class *cv_mechanism_at(size_t index);

/*
 * What a campaign asks for. `choice` is checked against the mechanism's own rules and completed: with a horizon, if it
 * needs one and names none, of `releases` (the most that an arm can come to; 0: not known), and with what else follows
 * from it, so that the completed choice always gives the same law. CV_ERR_NOT_FOUND or CV_ERR_INVALID with the reason.
 */
CV_MUST_USE enum cv_err cv_mechanism_law_init(struct cv_choice *choice, uint64_t epsilon_micro, uint64_t releases,
                                              struct cv_mechanism_law *ret, struct cv_why *why);
/* The same for a class at hand; `params` may be NULL for none. */
CV_MUST_USE enum cv_err cv_mechanism_law_for(const struct cv_mechanism_class *class, struct cv_params *params,
                                             uint64_t epsilon_micro, uint64_t releases, struct cv_mechanism_law *ret,
                                             struct cv_why *why);
/* Which items the n-th release (n >= 1) sums. */
enum cv_cover cv_mechanism_cover(const struct cv_mechanism_law *law, uint64_t n);
/* The noise in the n-th release (n >= 1), for the release. */
void cv_mechanism_noise(const struct cv_mechanism_law *law, uint64_t n, struct cv_noise *ret);
/* Epsilon spent on one arm's stream after n releases, micro-epsilon, rounded up. */
uint64_t cv_mechanism_spent_micro(const struct cv_mechanism_law *law, uint64_t n);

/* A new object with nothing released. */
CV_MUST_USE enum cv_err cv_mechanism_new(const struct cv_mechanism_law *law, struct cv_mechanism **ret);
void cv_mechanism_free(struct cv_mechanism *mechanism);

/* The horizon is reached: no further item may be given. */
bool cv_mechanism_is_spent(const struct cv_mechanism *mechanism);
/* Draws what release n + 1 needs, which must lie within the horizon; does nothing if that has been done. */
void cv_mechanism_draw(struct cv_mechanism *mechanism, struct cv_rng *rng);
/* Item n + 1 in, release n + 1 out. Its noise must have been drawn. No randomness is used. */
int64_t cv_mechanism_release(struct cv_mechanism *mechanism, int64_t item);

/* The whole state, byte for byte: save(load(x)) = x. As secret as an exact sum. */
void cv_mechanism_save(const struct cv_mechanism *mechanism, struct cv_buf *out);
/* CV_ERR_DAMAGED or CV_ERR_VERSION if it is not the state of an object of this law. */
CV_MUST_USE enum cv_err cv_mechanism_load(const struct cv_mechanism_law *law, struct cv_reader *in,
                                          struct cv_mechanism **ret);

#endif
