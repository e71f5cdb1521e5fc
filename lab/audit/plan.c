/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/audit/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/local.h"
#include "lab/audit/subjects.h"

enum { SUBJECTS_MAX = 8192, SPECS_MAX = 128, CHOICES_MAX = 64 };

struct cv_audit_plan {
  const char *only;
  size_t count, specs, choices;
  uint32_t sweeps;
  struct cv_audit_subject subject[SUBJECTS_MAX];
  struct cv_spec spec[SPECS_MAX];
  struct cv_choice choice[CHOICES_MAX];
};

/*
 * Streams with many runs each, for faults that exceed a claim by little. The item with the largest privacy loss differs
 * between mechanisms: under hybrid the third of four items is in a segment and in a p-sum of each level, under binary
 * the first.
 */
static const struct {
  uint32_t items, changed, arity;
  const char *mechanism; /* NULL: all */
  bool full;
  uint32_t share;
} streams[] = {
    {1, 1, 0, NULL, false, 1},
    {3, 2, 0, NULL, true, 1},
    {4, 3, 0, NULL, false, 1},
    {4, 1, 0, NULL, false, 1},
    {7, 3, 0, NULL, true, 1},
    {8, 5, 0, NULL, false, 1},
    {64, 1, 0, NULL, false, 4},
    {64, 33, 0, NULL, true, 4},
    {4, 3, 3, "kary", false, 1},
    {13, 5, 3, "kary", false, 1},
    {13, 7, 3, "kary-blocks", false, 1},
};

/*
 * Sweeps: streams in which every item is changed in turn, with a part of the runs for each. A fault that keeps or omits
 * noise at one moment of a stream shows only if the right item differs, but then few runs reveal it. The length lets
 * binary counters carry into their sixth digit and fall back, and balanced ternary ones, at k = 3, carry through three
 * levels at once (at 14) and into a fourth. The blocks of kary-blocks begin anew at 5 and 14 for k = 3, at 7 and 32 for
 * k = 5.
 */
enum {
  SWEEP_ITEMS = 34,
  SWEEP_TOKENS = 12,
  SWEEP_SHARE = 25,
  FULL_MORE = 5,
  PIPELINE_SHARE = 2,
  PIPELINE_SWEEP_SHARE = 50,
  TWO_SHARE = 10,
  TWO_SWEEP_SHARE = 50
};
static const struct {
  const char *mechanism; /* NULL: all mechanisms that no row names */
  uint32_t arity;
} sweeps[] = {{NULL, 0}, {"kary", 3}, {"kary", 5}, {"kary-blocks", 3}, {"kary-blocks", 5}};

static const struct {
  uint64_t micro;
  bool full;
} epsilons[] = {{250000, true}, {1000000, false}, {2000000, true}};

static void keep(struct cv_audit_plan *plan, const struct cv_audit_subject *subject) {
  if (plan->only == NULL || strcmp(plan->only, subject->part) == 0) {
    CV_REQUIRE(plan->count < SUBJECTS_MAX);
    plan->subject[plan->count++] = *subject;
  }
}

/* Adds a subject to the present sweep. */
static void keep_swept(struct cv_audit_plan *plan, struct cv_audit_subject *subject, uint32_t share, bool full) {
  subject->sweep = plan->sweeps;
  subject->share = full ? share / FULL_MORE : share;
  keep(plan, subject);
}

/*
 * The stream of a sweep in which item `changed` differs. In half of the streams the other scores are the highest, and
 * the difference is odd, so that it also affects the lowest bit; in a third the broker restarts before and after each
 * release.
 */
static struct cv_audit_stream swept(uint32_t items, uint32_t changed) {
  bool odd = changed % 2 == 1;
  return (struct cv_audit_stream){.items = items,
                                  .changed = changed,
                                  .base = odd ? 0 : CV_GRID,
                                  .score = odd ? CV_GRID : CV_GRID - 1,
                                  .restarts = changed % 3 == 0};
}

static bool is_named(const char *mechanism) {
  for (size_t i = 0; i < CV_COUNT(sweeps); i++) {
    if (sweeps[i].mechanism != NULL && strcmp(sweeps[i].mechanism, mechanism) == 0) {
      return true;
    }
  }
  return false;
}

static enum cv_err add_streams(struct cv_audit_plan *plan, const struct cv_mechanism_class *class, uint64_t micro,
                               bool full) {
  for (size_t i = 0; i < CV_COUNT(streams); i++) {
    struct cv_audit_stream stream = {
        .items = streams[i].items, .changed = streams[i].changed, .score = CV_GRID, .arity = streams[i].arity};
    struct cv_audit_subject subject;
    if ((streams[i].full && !full) ||
        (streams[i].mechanism != NULL && strcmp(streams[i].mechanism, class->traits->name) != 0)) {
      continue;
    }
    CV_TRY(cv_audit_mechanism(class, micro, &stream, &subject));
    subject.share = streams[i].share;
    keep(plan, &subject);
    if (!cv_mechanism_is_private(class)) {
      stream.charged = true;
      CV_TRY(cv_audit_mechanism(class, micro, &stream, &subject));
      subject.share = streams[i].share;
      keep(plan, &subject);
    }
  }
  return CV_OK;
}

/* A mechanism that is not private is charged more with every release: a smaller epsilon keeps the claim low enough for
 * few runs to refute. */
static enum cv_err add_sweeps(struct cv_audit_plan *plan, const struct cv_mechanism_class *class, uint64_t micro,
                              bool full) {
  for (size_t i = 0; i < CV_COUNT(sweeps); i++) {
    const char *mechanism = sweeps[i].mechanism;
    if (mechanism == NULL ? is_named(class->traits->name) : strcmp(mechanism, class->traits->name) != 0) {
      continue;
    }
    plan->sweeps++;
    for (uint32_t changed = 1; changed <= SWEEP_ITEMS; changed++) {
      struct cv_audit_subject subject;
      struct cv_audit_stream stream = swept(SWEEP_ITEMS, changed);
      stream.arity = sweeps[i].arity;
      stream.charged = !cv_mechanism_is_private(class);
      CV_TRY(cv_audit_mechanism(class, stream.charged ? micro / 4 : micro, &stream, &subject));
      keep_swept(plan, &subject, SWEEP_SHARE, full);
    }
  }
  return CV_OK;
}

static enum cv_err add_mechanisms(struct cv_audit_plan *plan, bool full) {
  for (size_t i = 0; cv_mechanism_at(i) != NULL; i++) {
    if (!cv_mechanism_has_noise(cv_mechanism_at(i))) {
      continue;
    }
    for (size_t e = 0; e < CV_COUNT(epsilons); e++) {
      if (full || !epsilons[e].full) {
        CV_TRY(add_streams(plan, cv_mechanism_at(i), epsilons[e].micro, full));
        CV_TRY(add_sweeps(plan, cv_mechanism_at(i), epsilons[e].micro, full));
      }
    }
  }
  return CV_OK;
}

/* Parameters of privatizers: up to four numbers and a word. */
static const struct local {
  const char *name, *key[4];
  double number[4];
  const char *rule;
  bool full;
  uint32_t arms; /* 0: 1 */
} locals[] = {
    {.name = "randomized-response", .key = {"epsilon"}, .number = {.5}},
    {.name = "randomized-response", .key = {"epsilon"}, .number = {2}},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {1, .05}},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {1, .05}, .rule = "printed"},
    {.name = "randomized-response", .key = {"p00", "p11"}, .number = {.8, .6}},
    {.name = "randomized-response", .key = {"p00", "p11"}, .number = {.2, .3}},
    {.name = "randomized-response", .key = {"epsilon"}, .number = {.1}, .full = true},
    {.name = "randomized-response", .key = {"p00", "p11"}, .number = {.99, .02}, .full = true},
    {.name = "laplace", .key = {"epsilon"}, .number = {.5}},
    {.name = "laplace", .key = {"epsilon"}, .number = {2}},
    {.name = "laplace", .key = {"epsilon"}, .number = {.1}, .full = true},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {.1, .5}},
    {.name = "randomized-response", .key = {"epsilon", "delta"}, .number = {.1, .5}, .rule = "printed", .full = true},
    {.name = "randomized-response", .key = {"p00", "p11", "delta"}, .number = {.7, .8, .6}, .full = true},
    {.name = "randomized-response",
     .key = {"p00.1", "p11.1", "p00.2", "p11.2"},
     .number = {.6, .65, .85, .9},
     .arms = 2},
};

static enum cv_err choose(const struct local *local, struct cv_choice *ret) {
  *ret = (struct cv_choice){0};
  (void)snprintf(ret->name, sizeof(ret->name), "%s", local->name);
  for (size_t i = 0; i < CV_COUNT(local->key) && local->key[i] != NULL; i++) {
    CV_TRY(cv_params_set_number(&ret->params, local->key[i], local->number[i]));
  }
  return local->rule == NULL ? CV_OK : cv_params_set_text(&ret->params, "rule", local->rule);
}

/* Adds one subject per arm with a single token and all runs, then a sweep over a row of tokens. */
static enum cv_err add_tokens(struct cv_audit_plan *plan, const struct cv_choice *choice, uint32_t arms, bool full) {
  struct cv_audit_subject subject;
  for (uint32_t arm = 0; arm < arms; arm++) {
    struct cv_audit_stream stream = {.items = 1, .changed = 1, .score = CV_GRID, .arm = arm};
    CV_TRY(cv_audit_privatizer(choice, arms, &stream, &subject, NULL));
    keep(plan, &subject);
  }
  plan->sweeps++;
  for (uint32_t changed = 1; changed <= SWEEP_TOKENS; changed++) {
    struct cv_audit_stream stream = {.items = SWEEP_TOKENS, .changed = changed, .score = CV_GRID};
    stream.base = changed % 2 == 1 ? 0 : CV_GRID;
    stream.arm = (changed - 1) / 2 % arms;
    CV_TRY(cv_audit_privatizer(choice, arms, &stream, &subject, NULL));
    keep_swept(plan, &subject, SWEEP_SHARE, full);
  }
  return CV_OK;
}

/* Adds the privatizers without parameters, which need no row of `locals`. */
static enum cv_err add_fixed(struct cv_audit_plan *plan, bool full) {
  for (size_t i = 0; cv_local_names[i] != NULL; i++) {
    struct cv_choice choice = {0};
    struct cv_local law;
    (void)snprintf(choice.name, sizeof(choice.name), "%s", cv_local_names[i]);
    if (cv_local_init(&choice, 1, &law, NULL) == CV_OK && law.epsilon_micro != CV_EPSILON_NONE) {
      CV_REQUIRE(plan->choices < CHOICES_MAX);
      plan->choice[plan->choices] = choice;
      CV_TRY(add_tokens(plan, &plan->choice[plan->choices++], 1, full));
    }
  }
  return CV_OK;
}

static enum cv_err add_privatizers(struct cv_audit_plan *plan, bool full) {
  for (size_t i = 0; i < CV_COUNT(locals); i++) {
    if (full || !locals[i].full) {
      struct cv_choice *choice = &plan->choice[plan->choices++];
      CV_TRY(choose(&locals[i], choice));
      CV_TRY(add_tokens(plan, choice, locals[i].arms == 0 ? 1 : locals[i].arms, full));
    }
  }
  return add_fixed(plan, full);
}

/* Pipelines from a score to the third-party: a local law or NULL, a mechanism, and the number of releases per arm. */
static const struct way {
  const struct local *local;
  const char *mechanism;
  uint32_t rounds;
  bool full;
  uint32_t arity, campaigns; /* campaigns 0: 1 */
  bool hires;                /* a recruitment: rounds 3, so that each segment has an item that is changed */
  bool asks;                 /* workers that could give two tokens */
} ways[] = {
    {NULL, "hybrid", 1, false},
    {NULL, "hybrid", 4, false},
    {NULL, "segments", 4, false},
    {NULL, "batch", 3, false},
    {NULL, "kary", 4, true},
    {NULL, "kary-blocks", 4, true},
    {NULL, "binary", 4, true},
    {NULL, "doubling", 4, true},
    {NULL, "per-item", 3, true},
    {NULL, "binary-honaker", 4, true},
    {&locals[1], "none", 3, false},
    {&locals[9], "none", 3, false},
    {&locals[1], "hybrid", 4, false},
    {&locals[2], "none", 3, true},
    {&locals[8], "segments", 3, true},
    {&locals[11], "batch", 1, false},
    {NULL, "kary", 5, false, .arity = 3},
    {NULL, "segments", 3, false, .campaigns = 2},
    {NULL, "segments", 3, false, .hires = true},
    {NULL, "batch", 4, false, .asks = true},
    {NULL, "hybrid", 4, false, .asks = true},
};

/* Adds one score in the middle with many runs, then a sweep over the scores of both arms. */
static enum cv_err add_both(struct cv_audit_plan *plan, const struct cv_spec *spec, const struct way *way, bool full) {
  struct cv_audit_subject subject;
  uint32_t rounds = way->rounds;
  struct cv_audit_stream stream = {
      .items = rounds, .changed = rounds < 3 ? 1 : 3, .score = CV_GRID, .campaigns = way->campaigns};
  CV_TRY(cv_audit_pipeline(spec, &stream, &subject));
  subject.share = full ? 1 : PIPELINE_SHARE;
  keep(plan, &subject);
  plan->sweeps++;
  for (uint32_t at = 0; rounds > 1 && at < 2 * rounds; at++) {
    stream = swept(rounds, at / 2 + 1);
    stream.arm = at % 2;
    stream.campaigns = way->campaigns;
    CV_TRY(cv_audit_pipeline(spec, &stream, &subject));
    keep_swept(plan, &subject, PIPELINE_SWEEP_SHARE, full);
  }
  return CV_OK;
}

/* Adds the answer of the first worker, who comes again before the last one does. */
static enum cv_err add_asked(struct cv_audit_plan *plan, const struct cv_spec *spec, const struct way *way, bool full) {
  struct cv_audit_subject subject;
  const struct cv_audit_stream stream = {.items = way->rounds, .changed = 1, .score = CV_GRID};
  CV_TRY(cv_audit_pipeline(spec, &stream, &subject));
  subject.share = full ? 1 : TWO_SHARE;
  keep(plan, &subject);
  return CV_OK;
}

/* Two workers, who are paid one unit of money for each token. */
static void make_recruitment(struct cv_spec *spec, uint32_t rounds) {
  static uint64_t cost_micro[] = {CV_MICRO, CV_MICRO}, worker[] = {1, 2};
  (void)snprintf(spec->policy.name, sizeof(spec->policy.name), "dpu-kl");
  spec->cost_micro = cost_micro;
  spec->worker = worker;
  spec->tokens = UINT64_C(1) << rounds;
  spec->tokens_per_worker = (uint32_t)spec->tokens; /* what the budget buys of one worker */
  spec->budget_micro = spec->tokens * CV_MICRO;
}

static enum cv_err add_way(struct cv_audit_plan *plan, const struct way *way, bool full) {
  struct cv_spec *spec = &plan->spec[plan->specs++];
  *spec = (struct cv_spec){.name = "audit",
                           .arms = 2,
                           .policy.name = "ppar",
                           .privatizer.name = "none",
                           .epsilon_micro = 1000000,
                           .tokens_per_worker = way->asks ? 2 : 1,
                           .tokens = 2 * (uint64_t)way->rounds};
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "%s", way->mechanism);
  if (way->hires) {
    make_recruitment(spec, way->rounds);
  }
  if (way->arity > 0) {
    CV_TRY(cv_params_set_number(&spec->mechanism.params, "k", way->arity));
  }
  if (way->local != NULL) {
    CV_TRY(choose(way->local, &spec->privatizer));
  }
  return way->asks ? add_asked(plan, spec, way, full) : add_both(plan, spec, way, full);
}

static bool has_delta(const struct local *local) {
  return (local->key[1] != NULL && strcmp(local->key[1], "delta") == 0) ||
         (local->key[2] != NULL && strcmp(local->key[2], "delta") == 0);
}

/* Adds every privatizer with a delta, combined once with every private mechanism: what is charged must cover what the
 * third-party learns with certainty. */
static enum cv_err add_deltas(struct cv_audit_plan *plan) {
  for (size_t i = 0; i < CV_COUNT(locals); i++) {
    for (size_t j = 0; cv_mechanism_at(j) != NULL && has_delta(&locals[i]); j++) {
      if (cv_mechanism_is_private(cv_mechanism_at(j))) {
        CV_TRY(add_way(plan, &(struct way){&locals[i], cv_mechanism_at(j)->traits->name, 1, true}, true));
      }
    }
  }
  return CV_OK;
}

static enum cv_err add_pipelines(struct cv_audit_plan *plan, bool full) {
  for (size_t i = 0; i < CV_COUNT(ways); i++) {
    if (full || !ways[i].full) {
      CV_TRY(add_way(plan, &ways[i], full));
    }
  }
  return full ? add_deltas(plan) : CV_OK;
}

/* ---- two brokers ---- */

/* Adds one token with many runs, then a sweep over the tokens of both arms. Every third sweep has its noise seeded. */
static enum cv_err add_insider(struct cv_audit_plan *plan, const struct cv_spec *spec, uint32_t rounds,
                               bool is_cobroker, bool full) {
  struct cv_audit_subject subject;
  struct cv_audit_stream stream = {.items = rounds, .changed = rounds < 3 ? 1 : 3, .score = CV_GRID};
  struct cv_audit_brokers brokers = {.is_cobroker = is_cobroker};
  CV_TRY(cv_audit_two_brokers(spec, &stream, &brokers, &subject));
  subject.share = full ? 1 : TWO_SHARE;
  keep(plan, &subject);
  plan->sweeps++;
  for (uint32_t at = 0; at < 2 * rounds; at++) {
    stream = swept(rounds, at / 2 + 1);
    stream.arm = at % 2;
    if (spec->score_bits == CV_SPLIT_BIT) {
      stream.score = CV_GRID;
    }
    brokers.seeded = at % 3 != 1;
    CV_TRY(cv_audit_two_brokers(spec, &stream, &brokers, &subject));
    keep_swept(plan, &subject, TWO_SWEEP_SHARE, full);
  }
  return CV_OK;
}

static struct cv_spec *two_brokers(struct cv_audit_plan *plan, const char *mechanism, uint64_t tokens) {
  struct cv_spec *spec = &plan->spec[plan->specs++];
  *spec = (struct cv_spec){.name = "audit",
                           .arms = 2,
                           .policy.name = "ppar",
                           .privatizer.name = "none",
                           .epsilon_micro = 1000000,
                           .tokens_per_worker = 1,
                           .tokens = tokens,
                           .brokers = 2,
                           .score_bits = CV_SPLIT_SCORE};
  (void)snprintf(spec->mechanism.name, sizeof(spec->mechanism.name), "%s", mechanism);
  return spec;
}

static enum cv_err add_lies(struct cv_audit_plan *plan) {
  for (enum cv_lie lie = CV_LIE_ARM; lie <= CV_LIE_KEY; lie++) {
    struct cv_audit_subject subject;
    struct cv_audit_stream stream = {.items = 1, .changed = 1, .score = CV_GRID};
    struct cv_audit_brokers brokers = {.lie = lie, .is_cobroker = lie == CV_LIE_KEY};
    struct cv_spec *spec = two_brokers(plan, "batch", lie == CV_LIE_SHORT || lie == CV_LIE_AGAIN ? 4 : 2);
    spec->tokens_per_worker = lie == CV_LIE_AGAIN ? 2 : 1;
    CV_TRY(cv_audit_two_brokers(spec, &stream, &brokers, &subject));
    subject.share = TWO_SHARE;
    keep(plan, &subject);
  }
  return CV_OK;
}

/* The mechanisms that a campaign with two brokers may choose, from the view of both. */
static enum cv_err add_two_brokers(struct cv_audit_plan *plan, bool full) {
  static const struct {
    const char *mechanism;
    uint32_t rounds;
    const struct local *local;
    bool full;
  } pairs[] = {{"hybrid", 4, NULL, false},  {"segments", 3, NULL, false},    {"batch", 1, NULL, false},
               {"kary", 4, NULL, true},     {"kary-blocks", 4, NULL, true},  {"binary", 4, NULL, true},
               {"doubling", 4, NULL, true}, {"batch", 1, &locals[1], false}, {"binary-honaker", 4, NULL, true}};
  for (size_t i = 0; i < CV_COUNT(pairs); i++) {
    if (pairs[i].full && !full) {
      continue;
    }
    struct cv_spec *spec = two_brokers(plan, pairs[i].mechanism, 2 * (uint64_t)pairs[i].rounds);
    if (pairs[i].local != NULL) {
      CV_TRY(choose(pairs[i].local, &spec->privatizer));
      spec->score_bits = CV_SPLIT_BIT;
    }
    CV_TRY(add_insider(plan, spec, pairs[i].rounds, false, full));
    CV_TRY(add_insider(plan, spec, pairs[i].rounds, true, full));
  }
  struct cv_audit_subject subject;
  cv_audit_verify_key(false, &subject);
  keep(plan, &subject);
  cv_audit_verify_key(true, &subject);
  keep(plan, &subject);
  return add_lies(plan);
}

/* Every lie to gateways, and the rows of data files with a declared scale and without one. */
static enum cv_err add_gateway(struct cv_audit_plan *plan) {
  struct cv_audit_subject subject;
  for (size_t i = 0; i < cv_audit_gateways(); i++) {
    CV_TRY(cv_audit_gateway(i, &subject));
    keep(plan, &subject);
  }
  cv_audit_scale(true, CV_MICRO, &subject);
  keep(plan, &subject);
  cv_audit_scale(false, CV_MICRO, &subject);
  keep(plan, &subject);
  return CV_OK;
}

static void add_gold(struct cv_audit_plan *plan) {
  struct cv_audit_subject subject;
  cv_audit_gold(CV_MICRO / 2, &subject);
  keep(plan, &subject);
}

static void add_laplace(struct cv_audit_plan *plan) {
  struct cv_audit_subject subject;
  cv_audit_laplace(true, 1, &subject);
  keep(plan, &subject);
  cv_audit_laplace(false, 1, &subject);
  keep(plan, &subject);
}

static enum cv_err fill(struct cv_audit_plan *plan, bool full) {
  CV_TRY(add_mechanisms(plan, full));
  CV_TRY(add_privatizers(plan, full));
  CV_TRY(add_pipelines(plan, full));
  CV_TRY(add_two_brokers(plan, full));
  CV_TRY(add_gateway(plan));
  add_gold(plan);
  add_laplace(plan);
  return CV_OK;
}

enum cv_err cv_audit_plan_new(const char *only, bool full, struct cv_audit_plan **ret, struct cv_why *why) {
  struct cv_audit_plan *plan = calloc(1, sizeof(*plan));
  if (plan == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  plan->only = only;
  enum cv_err err = fill(plan, full);
  if (err != CV_OK) {
    cv_why_set(why, "%s", cv_err_text(err));
  } else if (plan->count == 0) {
    err = cv_fail(why, CV_ERR_NOT_FOUND,
                  "unknown part \"%.40s\" of the audit; expected a mechanism, a privatizer, pipeline, two-brokers, "
                  "gateway or gold",
                  only);
  }
  if (err != CV_OK) {
    cv_audit_plan_free(plan);
    return err;
  }
  *ret = plan;
  return CV_OK;
}

void cv_audit_plan_free(struct cv_audit_plan *plan) {
  free(plan);
}

const struct cv_audit_subject *cv_audit_plan_subjects(const struct cv_audit_plan *plan, size_t *ret_count) {
  *ret_count = plan->count;
  return plan->subject;
}
