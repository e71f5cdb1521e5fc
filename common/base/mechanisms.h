/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public traits of a mechanism: which items its releases sum, how their noise grows, and how many releases are
 * private. The broker draws the noise (broker/mechanism) and takes name and sums from here; a policy checks the traits
 * that its analysis needs; the worker accepts mechanisms by name.
 *
 * Items and releases are those of one arm. Item n is the sum of the tokens of the arm's n-th plan; the n-th release
 * follows item n. "Private" means event-level epsilon-differential privacy under continual observation: of all releases
 * together, one token being the event (Dwork, Naor, Pitassi and Rothblum, "Differential Privacy under Continual
 * Observation", 2010).
 */
#ifndef CV_BASE_MECHANISMS_H
#define CV_BASE_MECHANISMS_H

#include <stdbool.h>

/* Which items the n-th release sums. */
enum cv_sums {
  CV_SUMS_ALL,    /* 1 .. n: a counter (Chan, Shi and Song, "Private and Continual Release of Statistics", 2010/2011) */
  CV_SUMS_ITEM,   /* n alone, by parallel composition: phases (Sajed and Sheffet 2019; Lu, Wang, Qiu and Zhang 2022) */
  CV_SUMS_POWERS, /* 1 .. 2^floor(log2 n): between powers of two the last release is repeated (the moments of Chan, Shi
                     and Song's Logarithmic Mechanism) */
};

/* The variance of the noise in the n-th release, in (D/epsilon)^2. */
enum cv_noise_law {
  CV_NOISE_NONE,    /* 0: exact sums */
  CV_NOISE_ONE,     /* 2: one Lap(1), independent of all others */
  CV_NOISE_POLYLOG, /* at most 8 (floor(log2 n) + 1)^3, or that of the horizon for n: trees of partial sums (Chan, Shi
                       and Song; Andersson, Pagh, Steiner and Torkamani 2024) */
  CV_NOISE_WEIGHED, /* likewise, of noises with too many weights for a release (Honaker 2015): it states others with the
                       same sum of squared scales and the same largest scale, which have no smaller moments */
  CV_NOISE_LINEAR,  /* 2n: one Lap(1) an item (Chan, Shi and Song's Simple Counting Mechanism II) */
};

/* How many releases together are private. */
enum cv_private {
  CV_PRIVATE_NEVER,      /* no such number */
  CV_PRIVATE_TO_HORIZON, /* the number given in advance: what Chan, Shi and Song call time-bounded */
  CV_PRIVATE_ALWAYS,     /* any number: their unbounded mechanisms */
};

struct cv_traits {
  const char *name; /* in campaigns and messages */
  enum cv_sums sums;
  enum cv_noise_law noise;
  enum cv_private private;
};

/* The table: ROW(identifier in C, name, traits). broker/mechanism/<identifier>.c describes each mechanism and cites
 * its paper. */
#define CV_MECHANISMS(ROW)                                                                    \
  ROW(hybrid, "hybrid", CV_SUMS_ALL, CV_NOISE_POLYLOG, CV_PRIVATE_ALWAYS)                     \
  ROW(none, "none", CV_SUMS_ALL, CV_NOISE_NONE, CV_PRIVATE_NEVER)                             \
  ROW(binary, "binary", CV_SUMS_ALL, CV_NOISE_POLYLOG, CV_PRIVATE_TO_HORIZON)                 \
  ROW(binary_honaker, "binary-honaker", CV_SUMS_ALL, CV_NOISE_WEIGHED, CV_PRIVATE_TO_HORIZON) \
  ROW(kary, "kary", CV_SUMS_ALL, CV_NOISE_POLYLOG, CV_PRIVATE_TO_HORIZON)                     \
  ROW(segments, "segments", CV_SUMS_ALL, CV_NOISE_LINEAR, CV_PRIVATE_ALWAYS)                  \
  ROW(doubling, "doubling", CV_SUMS_POWERS, CV_NOISE_POLYLOG, CV_PRIVATE_ALWAYS)              \
  ROW(batch, "batch", CV_SUMS_ITEM, CV_NOISE_ONE, CV_PRIVATE_ALWAYS)                          \
  ROW(per_item, "per-item", CV_SUMS_ALL, CV_NOISE_LINEAR, CV_PRIVATE_ALWAYS)                  \
  ROW(hybrid_printed, "hybrid-printed", CV_SUMS_ALL, CV_NOISE_POLYLOG, CV_PRIVATE_NEVER)      \
  ROW(kary_blocks, "kary-blocks", CV_SUMS_ALL, CV_NOISE_POLYLOG, CV_PRIVATE_ALWAYS)

/* cv_traits_hybrid, ... */
#define CV_TRAITS_DECLARED(id, ...) extern const struct cv_traits cv_traits_##id;
CV_MECHANISMS(CV_TRAITS_DECLARED)
#undef CV_TRAITS_DECLARED

/* The most brokers that can each add the mechanism's noise to their part of the same sums: variances are then so many
 * times those of the traits, and counts of noises so many times those of the law (cv_noise_times()). */
enum { CV_BROKERS_MAX = 2 };

/* The names in the order of the table, NULL at the end. */
extern const char *const cv_traits_names[];
/* The traits of the mechanism with this name. An unknown mechanism gets the worst traits: its releases sum all
 * items, its noise grows linearly, and no number of releases is private. */
const struct cv_traits *cv_traits_of(const char *mechanism);

/* A condition on traits that an analysis requires or excludes. */
typedef bool cv_traits_fn(const struct cv_traits *traits);
/* A release is the exact sum of all items so far. */
bool cv_traits_exact_sums(const struct cv_traits *traits);
/* A release has an item of its own and one noise of its own. */
bool cv_traits_fresh_sums(const struct cv_traits *traits);
/* It adds noise, by which some number of releases is private. */
bool cv_traits_covers(const struct cv_traits *traits);
/* A release may repeat the one before. */
bool cv_traits_repeats(const struct cv_traits *traits);
/* The groups of a release are the noises that it has, not others with no smaller moments. */
bool cv_traits_states_noises(const struct cv_traits *traits);

/* The names of all that have a trait: "hybrid or none". */
struct cv_traits_list {
  char text[160];
};
struct cv_traits_list cv_traits_list(cv_traits_fn *has);

#endif
