/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a campaign's scores: the section `items`, or `workers` that can be hired (items with a cost). */
#ifndef CV_CAMPAIGN_ITEMS_H
#define CV_CAMPAIGN_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/spec.h"
#include "common/config/rewards.h"

/* CSV: rows of a data file in any of the formats below. */
enum cv_source { CV_SOURCE_SYNTHETIC, CV_SOURCE_GIVEN, CV_SOURCE_CSV, CV_SOURCE_ADVERSARY, CV_SOURCE_TAXI };
enum cv_format { CV_FORMAT_CSV, CV_FORMAT_JSONL, CV_FORMAT_SQLITE };

/* The distribution of scores around an item's mean. */
struct cv_items_law {
  enum cv_rewards rewards;
  double spread; /* standard deviation (normals) or concentration a+b (beta) of an item without its own */
};

/* One item with a quality of its own. */
struct cv_item {
  double mean;             /* NAN: not known, as of all items of the list; people give the scores */
  double spread;           /* as in the law; the section's unless the item has its own */
  uint64_t id, cost_micro; /* of a worker that can be hired */
};

/* Item means are drawn from N(mean, variance) and clipped to [0,1]. For workers: qualities likewise, costs from
 * U[cost_low, cost_high], and standard deviations of the normal laws from U(0,1). */
struct cv_items_synthetic {
  struct cv_items_law law;
  uint32_t count;
  double mean, variance;
  double cost_low, cost_high;
};

struct cv_items_given {
  struct cv_items_law law;
  uint32_t count;
  struct cv_item *item; /* owned */
  const char **name;    /* of each (names.h), owned; NULL: numbered, as cv_items_name() says */
};

/* Of memory that the rows of a data file take while they are read, unless `memory` says another number. */
#define CV_ITEMS_MEMORY_MIB 512

/* The rows of a data file: each has an item, a score and perhaps a person. */
struct cv_items_csv {
  enum cv_format format;
  char *file;     /* resolved against the campaign file's folder; owned */
  char *query;    /* the SELECT of an SQLite database; owned; NULL for the other formats */
  uint64_t steps; /* of SQLite's machine that it may take; 0: the reader's own bound */
  char item_column[CV_NAME_BYTES], score_column[CV_NAME_BYTES];
  char versus_column[CV_NAME_BYTES]; /* names the item that a row compares with; "": rows are scores of one item */
  char delimiter;                    /* ',' or '\t' */
  struct cv_scale scale;             /* not declared: min-max over the file, if nothing has to stay private */
  bool clamps;                       /* a score outside the scale counts as its nearer end; false: it is an error */
  bool replacement;
  char worker_column[CV_NAME_BYTES]; /* column that names the person of a row; "": persons are not distinguished */
  uint64_t first_worker;             /* worker id of the first person in the file; later persons get consecutive ids */
  uint32_t score_line;               /* of the score key, for messages */
  bool skips_missing;                /* rows without a score are left out; false: they are an error */
  uint32_t top;                      /* so many items with most rows are kept; 0: all */
  uint64_t least_rows;               /* items with fewer rows are left out; 0: none */
  uint64_t memory;                   /* MiB that the rows may take while they are read; 0: CV_ITEMS_MEMORY_MIB */
  /* Of a gateway that has only part `part` of `parts` of each item's rows, from 1; set by no campaign file. 0: all. */
  uint32_t part, parts;
};

struct cv_items_adversary {
  const char *name; /* static */
  uint32_t count;
  uint32_t best;   /* the best item, from 1 */
  uint64_t rounds; /* length of the game; 0: the limit of tokens */
  bool has_memory; /* else the adversary's own */
  uint32_t memory; /* rounds */
};

/*
 * Drivers in a file of taxi trips: those with at least `least_trips` trips from `area` (0: any area); of these the
 * `top` drivers with most trips (0: all). A driver's cost is the mean miles of the driver's trips x cost_per_mile.
 * Qualities are drawn as in synthetic.
 */
struct cv_items_taxi {
  struct cv_items_law law;
  char *file; /* as in csv; owned */
  uint64_t area, least_trips;
  uint32_t top;
  double cost_per_mile;
  const struct cv_taxis *taxis; /* trips already read, borrowed (worker/taxi.h); NULL: read the file */
};

struct cv_items {
  enum cv_source source; /* selects the member of the union */
  uint32_t line;         /* of the section, for messages */
  bool are_paid;         /* workers that can be hired */
  bool has_seed;
  uint64_t seed; /* of the instance and the scores; --seed overrides */
  union {
    struct cv_items_synthetic synthetic;
    struct cv_items_given given;
    struct cv_items_csv csv;
    struct cv_items_adversary adversary;
    struct cv_items_taxi taxi;
  };
};

/* Whether two items are compared, and not one scored. */
bool cv_items_are_pairs(const struct cv_items *items);
/* The number of items; 0 for a data file that has not been read. */
uint32_t cv_items_count(const struct cv_items *items);
/* The path of the data file, borrowed; NULL if there is none. */
const char *cv_items_file(const struct cv_items *items);
/* The law of the scores; NULL if they are rows of a file or an adversary's gains. */
const struct cv_items_law *cv_items_law(const struct cv_items *items);
/* Adds the name of a synthetic or given item: the given one, "item 7" (counted from 1) or "worker 7" (by its id). */
void cv_items_name(const struct cv_items *items, uint32_t arm, struct cv_names *ret);
/* Whether somebody can simulate the scores: false for a list without means. */
bool cv_items_have_means(const struct cv_items *items);
void cv_items_fini(struct cv_items *items);

#endif
