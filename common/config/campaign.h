/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The campaign file (YAML): one schema for every command. Whoever reads it takes what concerns it: `items` (where
 * scores come from) is for the workers and the requester, the spec for broker and third-party; `experiment` is the
 * lab's (lab/experiment.h), and nobody else looks at it.
 */
#ifndef CV_CONFIG_CAMPAIGN_H
#define CV_CONFIG_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/spec.h"

enum cv_source { CV_SOURCE_SYNTHETIC, CV_SOURCE_GIVEN, CV_SOURCE_CSV, CV_SOURCE_ADVERSARY, CV_SOURCE_TAXI };
enum cv_rewards { CV_REWARDS_BERNOULLI, CV_REWARDS_BETA, CV_REWARDS_CLIPPED_NORMAL, CV_REWARDS_TRUNCATED_NORMAL };

/* One item with a quality of its own. */
struct cv_item {
  char name[CV_NAME_BYTES];
  double mean;
  double spread; /* standard deviation (normals) or concentration a+b (beta); the section's unless it has its own */
  uint64_t id, cost_micro; /* of a worker that can be hired */
};

/* The section `items`, or `workers`: workers that can be hired are items with a cost. */

struct cv_items {
  enum cv_source source;
  uint32_t line; /* of the section, for messages */
  /* synthetic and given */
  enum cv_rewards rewards;
  double spread;         /* default standard deviation or concentration; 0 for bernoulli */
  uint32_t count;        /* synthetic, adversary: number of items */
  double mean, variance; /* synthetic: item means ~ N(mean, variance) clipped to [0,1] */
  bool has_seed;
  uint64_t seed;        /* of the instance and the scores; --seed overrides */
  struct cv_item *item; /* given: `items` of them */
  uint32_t items;
  /* adversary, of `count` items */
  const char *adversary; /* its name */
  uint32_t best;         /* the best item, from 1 */
  uint64_t rounds;       /* of the game; 0: the limit of tokens */
  /* csv */
  char *file; /* resolved against the campaign file's folder */
  char item_column[CV_NAME_BYTES], score_column[CV_NAME_BYTES];
  char delimiter; /* ',' or '\t' */
  bool has_scale; /* false: min-max over the file */
  double scale_low, scale_high;
  bool replacement;
  char worker_column[CV_NAME_BYTES]; /* names the person whose row it is; "": nobody is told apart */
  uint64_t first_worker;             /* id of the first person in the file, the next has the next */
  uint32_t score_line;               /* of the score key, for messages */
  /* workers: qualities and, of the normals, standard deviations of synthetic ones and taxis ~ U(0,1) */
  bool are_paid;
  double cost_low, cost_high; /* synthetic: costs ~ U[low, high] */
  /* taxi: `file` has trips; who has at least `least_trips` of them from `area` (0: any), at most the `top` (0: all)
     with the most of them; a driver's cost is his mean trip's miles x cost_per_mile */
  uint64_t area, least_trips;
  uint32_t top;
  double cost_per_mile;
  const struct cv_taxis *taxis; /* they have been read, and are borrowed (worker/taxi.h); NULL: read them */
};

/* A feedback graph: its edges are in the spec, or to be drawn. */
struct cv_graph {
  uint32_t line; /* of the section; 0: there is none */
  bool is_drawn, has_seed;
  double p;
  uint64_t seed;
};

struct cv_yaml;

struct cv_campaign_file {
  char *path;
  struct cv_spec spec; /* arms and names are 0 and NULL for a file of data until it has been read; names are there only
                          with share_names; of a recruitment the budget, but costs and workers come with the source */
  bool share_names;
  struct cv_items items;
  struct cv_graph graph;
  uint32_t policy_line, privacy_line;
};

/*
 * Reads and checks a campaign file. Errors are one line `FILE:LINE:COLUMN: what; expected ...`. The policy's parameters
 * are taken as they stand with their places; whoever links the policy table checks them (cv_policy_check).
 */
CV_MUST_USE enum cv_err cv_campaign_load(const char *path, struct cv_campaign_file *ret, struct cv_why *why);
/* The same of a file that has been parsed (document.h). */
CV_MUST_USE enum cv_err cv_campaign_read(struct cv_yaml *yaml, struct cv_campaign_file *ret, struct cv_why *why);
/*
 * Once the spec's arms are known: checks the section `graph` against them and draws its edges, with `seed` if it has
 * none of its own. Errors are one line.
 */
CV_MUST_USE enum cv_err cv_campaign_graph(struct cv_campaign_file *campaign, uint64_t seed, struct cv_why *why);
void cv_campaign_fini(struct cv_campaign_file *campaign);

/* What a synthetic or given item is called: "item 7" or "worker 7" (from 1), or as given. */
void cv_items_name(const struct cv_items *items, uint32_t arm, struct cv_label *ret);

#endif
