/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "thirdparty/policy/policy.h"

/* A lifetime epsilon that no worker of a campaign without a graph can spend. */
enum { WEALTH_MICRO = 100000000 };

static bool is(const char *name, const char *other) {
  return strcmp(name, other) == 0;
}

static void choose(struct cv_choice *choice, const char *name) {
  (void)snprintf(choice->name, sizeof(choice->name), "%s", name);
}

/* Randomized response in every form that a campaign can give: epsilon with or without delta, by either rule, or the
 * probabilities. From its own random stream. */
static void draw_response(struct scenario *s, double epsilon) {
  static const double deltas[] = {0.5, 0.125, 1e-6};
  struct cv_params *params = &s->privatizer.params;
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 84, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  uint64_t way = cv_rng_below(rng, 4);
  double delta = cv_rng_below(rng, 2) == 0 ? deltas[cv_rng_below(rng, CV_COUNT(deltas))] : 0;
  if (way == 0) {
    CV_REQUIRE(cv_params_set_number(params, "p00", 0.6 + 0.01 * (double)cv_rng_below(rng, 30)) == CV_OK &&
               cv_params_set_number(params, "p11", 0.6 + 0.01 * (double)cv_rng_below(rng, 30)) == CV_OK);
  } else {
    CV_REQUIRE(cv_params_set_number(params, "epsilon", epsilon) == CV_OK);
    if (way == 1) {
      CV_REQUIRE(cv_params_set_text(params, "rule", "printed") == CV_OK);
    }
  }
  if (delta > 0) {
    CV_REQUIRE(cv_params_set_number(params, "delta", delta) == CV_OK);
  }
}

/* One campaign in four is behind a privatizer. */
static void draw_privatizer(struct scenario *s, struct cv_rng *rng) {
  static const char *const names[] = {"none", "none", "none", "none", "none", "none", "randomized-response", "laplace"};
  struct cv_privatizer *privatizer;
  choose(&s->privatizer, names[cv_rng_below(rng, CV_COUNT(names))]);
  double epsilon = is(s->privatizer.name, "none") ? 0 : 1 + (double)cv_rng_below(rng, 6);
  if (is(s->privatizer.name, "laplace")) {
    CV_REQUIRE(cv_params_set_number(&s->privatizer.params, "epsilon", epsilon) == CV_OK);
  } else if (epsilon > 0) {
    draw_response(s, epsilon);
  }
  CV_REQUIRE(cv_privatizer_new(&s->privatizer, s->arms, &privatizer, NULL) == CV_OK);
  s->applied = *privatizer;
  cv_privatizer_free(privatizer);
}

/* Half of the campaigns with exact releases or fresh sums have a bandit policy. From its own random stream: the rest of
 * a seed's scenario stays the same. */
static void draw_policy(struct scenario *s) {
  static const char *const bits[] = {"klucb-cf", "ucb-cf", "ts-cf", "kl-local", "posterior-quantile", "tsallis-inf"},
                           *const trusted[] = {"exp3-tau", "ts-cf", "tsallis-inf"},
                           *const noisy[] = {"dp-exp3-lap", "tsallis-inf"};
  const bool is_plain = is(s->privatizer.name, "none"), fresh = is(s->mechanism, "batch") && is_plain;
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 77, 2, 0);
  s->policy = "ppar";
  if ((!is(s->mechanism, "none") && !fresh) || cv_rng_below(&rng.rng, 2) == 0) {
    return;
  }
  if (fresh) {
    s->policy = "tsallis-inf";
  } else if (is(s->privatizer.name, "laplace")) {
    s->policy = noisy[cv_rng_below(&rng.rng, CV_COUNT(noisy))];
  } else if (is_plain) {
    s->policy = trusted[cv_rng_below(&rng.rng, CV_COUNT(trusted))];
  } else {
    s->policy = bits[cv_rng_below(&rng.rng, CV_COUNT(bits))];
  }
}

static void draw_campaign(struct scenario *s, struct cv_rng *rng) {
  static const char *const mechanisms[] = {"none", "hybrid",   "hybrid",   "hybrid", "binary",   "binary-honaker",
                                           "kary", "segments", "doubling", "batch",  "per-item", "kary-blocks"};
  s->arms = 2 + (uint32_t)cv_rng_below(rng, SCENARIO_ARMS - 1);
  s->requesters = cv_rng_below(rng, 4) == 0 ? 2 : 1;
  s->campaigns = cv_rng_below(rng, 5) == 0 ? 2 : 1;
  s->tokens_per_round = 2 + (uint32_t)cv_rng_below(rng, 16);
  s->tokens_per_worker = 1 + (uint32_t)cv_rng_below(rng, 3);
  s->tokens = 60 + cv_rng_below(rng, 260);
  for (uint32_t i = 0; i < s->arms; i++) {
    s->mean[i] = 0.25 + 0.5 * cv_rng_unit(rng);
  }
  s->alpha = cv_rng_below(rng, 2) == 0 ? 0.05 : 0.25;
  s->radius = cv_rng_below(rng, 3) == 0 ? "sound" : "printed";
  s->settled = cv_rng_below(rng, 2) == 0 ? "pull" : "hold";
  s->mechanism = mechanisms[cv_rng_below(rng, CV_COUNT(mechanisms))];
  s->epsilon_micro = 1000000 + cv_rng_below(rng, 4) * 1000000;
  s->noise_seeded = cv_rng_below(rng, 3) > 0;
  draw_privatizer(s, rng);
  draw_policy(s);
}

static void draw_faults(struct scenario *s, struct cv_rng *rng) {
  static const uint32_t usual[FAULT_COUNT] = {
      [FAULT_CUT] = 6,
      [FAULT_CRASH_BROKER] = 6,
      [FAULT_CRASH_THIRDPARTY] = 4,
      [FAULT_CRASH_POOL] = 2,
      [FAULT_CRASH_REQUESTER] = 1,
      [FAULT_DISK_BROKER] = 2,
      [FAULT_DISK_THIRDPARTY] = 1,
      [FAULT_JUMP] = 1,
      [FAULT_STALL] = 1,
      [FAULT_MEMORY] = 1,
  };
  s->faults = 1 + (uint32_t)cv_rng_below(rng, 24);
  s->gap_ms = 20 + (uint32_t)cv_rng_below(rng, 200);
  for (int i = 0; i < FAULT_DRAIN; i++) { /* so that a world has only some kinds of faults */
    s->weight[i] = cv_rng_below(rng, 3) > 0 ? usual[i] : 0;
  }
  s->rollback = cv_rng_below(rng, 10) == 0   ? ROLLBACK_DATABASE
                : cv_rng_below(rng, 16) == 0 ? ROLLBACK_BOTH
                                             : ROLLBACK_NONE;
  s->weight[FAULT_ROLLBACK] = s->rollback == ROLLBACK_NONE ? 0 : 4;
  /* a third-party that knows more is detected only if it does */
  bool forgetful = s->rollback != ROLLBACK_BOTH;
  s->weight[FAULT_LOSE_THIRDPARTY] = forgetful && cv_rng_below(rng, 6) == 0 ? 2 : 0;
  s->weight[FAULT_OLDER_THIRDPARTY] = forgetful && cv_rng_below(rng, 6) == 0 ? 3 : 0;
  s->requesters = forgetful ? s->requesters : 1;
  s->liars = (uint32_t)cv_rng_below(rng, 3);
  uint64_t ending = cv_rng_below(rng, 16);
  s->ending = ending == 0 ? ENDING_CANCEL : ending == 1 ? ENDING_DEADLINE : ending == 2 ? ENDING_IDLE : ENDING_PLAIN;
  s->ending_ms = 200 + cv_rng_below(rng, 3000);
  s->thirdparty_campaigns = s->requesters == 2 && cv_rng_below(rng, 16) == 0 ? 1 : 0;
  s->pests = cv_rng_below(rng, 4) == 0;
}

/* Few workers who may give little: they spend their lifetime epsilon before the campaign ends, and it ends idle. */
static void draw_poverty(struct scenario *s, struct cv_rng *rng) {
  s->pool_workers = 10 + (uint32_t)cv_rng_below(rng, 40);
  s->tokens_per_worker = 3;
  s->worker_epsilon_micro = scenario_cost(s) * (1 + cv_rng_below(rng, 2));
  s->ending = ENDING_IDLE;
  s->ending_ms = 1000 + cv_rng_below(rng, 3000);
}

/* The worker of an arm: mostly one behind an honest gateway, sometimes one that a liar lets arrive. */
static uint64_t draw_hire(const struct scenario *s, struct cv_rng *rng) {
  enum { FAVOURITES = 8 };
  uint64_t gateway = cv_rng_below(rng, s->pools + (cv_rng_below(rng, 4) == 0 ? s->liars : 0));
  uint64_t among = gateway < s->pools ? s->pool_workers : FAVOURITES;
  return 1 + gateway * s->pool_workers + cv_rng_below(rng, among);
}

static void draw_hires(struct scenario *s, struct cv_rng *rng) {
  for (uint32_t i = 0; i < s->arms; i++) {
    s->cost_micro[i] = 200000 + cv_rng_below(rng, 1800000);
    bool taken;
    do {
      s->worker[i] = draw_hire(s, rng);
      taken = false;
      for (uint32_t j = 0; j < i; j++) {
        taken = taken || s->worker[j] == s->worker[i];
      }
    } while (taken);
  }
}

/* Half of the campaigns with dpu have dpu-kl and its mechanism instead. From its own random stream, as above. */
static void draw_segments(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 78, 2, 0);
  if (cv_rng_below(&seeded.rng, 2) == 0) {
    s->policy = "dpu-kl";
    s->mechanism = is(s->mechanism, "none") ? "none" : "segments";
  }
}

/* One seed in eight recruits. From its own random stream: the other seeds' scenarios stay the same. A policy with an
 * index bounds its noise and accepts few mechanisms; the others accept all but doubling. */
static void draw_recruitment(struct scenario *s) {
  enum { HIRES_LEAST = 16, HIRES_MORE = 44 };
  static const char *const policies[] = {"dpf",     "dpf",        "dpu",     "dpu",     "cheapest",
                                         "uniform", "eps-greedy", "spender", "spender", "spender"},
                           *const mechanisms[] = {"hybrid", "none", "hybrid", "batch", "binary", "per-item"};
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 78, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  if (cv_rng_below(rng, 8) != 0) {
    return;
  }
  s->policy = policies[cv_rng_below(rng, CV_COUNT(policies))];
  bool index = is(s->policy, "dpu");
  bool bounded = index && !is(s->privatizer.name, "laplace");
  s->policy = index && !bounded ? "uniform" : s->policy;
  s->mechanism = mechanisms[cv_rng_below(rng, bounded ? 3 : CV_COUNT(mechanisms))];
  if (bounded) {
    draw_segments(s);
  }
  s->pulls = 1 + (uint32_t)cv_rng_below(rng, 4);
  s->by_pull = cv_rng_below(rng, 2) == 0;
  draw_hires(s, rng);
  uint64_t least = s->cost_micro[0];
  for (uint32_t i = 1; i < s->arms; i++) {
    least = s->cost_micro[i] < least ? s->cost_micro[i] : least;
  }
  uint64_t hires = HIRES_LEAST + cv_rng_below(rng, HIRES_MORE);
  s->budget_micro = hires * least + cv_rng_below(rng, least);
  s->tokens_per_worker = (uint32_t)hires;
  s->tokens = cv_rng_below(rng, 8) == 0 ? hires / 2 : hires;
  s->tokens_per_round = 1;
  s->worker_epsilon_micro = UINT32_MAX; /* some workers give all tokens */
  s->plans = 5 + (uint32_t)cv_rng_below(rng, 40);
  s->plays = 1 + (uint32_t)cv_rng_below(rng, 4);
  s->greed = is(s->policy, "spender") && cv_rng_below(rng, 2) == 0 ? 8 : 0;
  if (s->faults > 0 && s->rollback == ROLLBACK_NONE && cv_rng_below(rng, 4) == 0) {
    s->rollback = ROLLBACK_DATABASE;
    s->weight[FAULT_ROLLBACK] = 8;
    s->requesters = 1;
  }
  if (s->rollback == ROLLBACK_BOTH) {
    /* A gateway remembers tokens that a rolled-back broker has forgotten, and gives no more for them. */
    s->ending = ENDING_IDLE;
  }
}

static void draw_edges(struct scenario *s, struct cv_rng *rng) {
  uint64_t percent = 30 + cv_rng_below(rng, 70);
  for (uint32_t a = 0; a < s->arms; a++) {
    for (uint32_t b = a + 1; b < s->arms; b++) {
      if (cv_rng_below(rng, 100) < percent) {
        s->edge[s->edges++] = (struct cv_edge){.a = a, .b = b};
        s->joined[a][b] = s->joined[b][a] = true;
      }
    }
  }
}

/* A policy of the product. A phase of the private ones takes about 360 plays of each played arm, and five times as
 * many behind a privatizer: their campaigns have few arms and no privatizer. */
static void draw_elimination(struct scenario *s, struct cv_rng *rng) {
  enum { PHASE = 370 };
  static const char *const policies[] = {"alpha-sample", "alpha-sample", "alpha-sample", "aae",
                                         "gap",          "gap",          "gapu",         "dp-se"};
  s->policy = policies[cv_rng_below(rng, is(s->privatizer.name, "none") ? CV_COUNT(policies) : 4)];
  bool exact = is(s->policy, "aae") || is(s->policy, "alpha-sample"), alone = is(s->policy, "aae");
  s->mechanism = exact ? "none" : "batch";
  s->delta = exact ? 0.5 + 0.4 * cv_rng_unit(rng) : 0.99;
  if (!exact) {
    alone = is(s->policy, "dp-se");
    s->arms = 2 + (uint32_t)cv_rng_below(rng, 2);
    s->tokens = PHASE * ((alone ? s->arms : 1) + cv_rng_below(rng, 3));
  }
  if (!alone) {
    draw_edges(s, rng);
  }
}

/* For the best arm, without a graph, in one of four campaigns of the product's policies. From its own random stream. */
static bool draw_best_arm(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 79, 3, 0);
  if (cv_rng_below(&rng.rng, 4) != 0) {
    return false;
  }
  s->policy = cv_rng_below(&rng.rng, 2) == 0 ? "best-arm" : "adap-tt";
  s->mechanism = is(s->policy, "adap-tt") ? "batch" : cv_rng_below(&rng.rng, 2) == 0 ? "doubling" : "segments";
  s->tokens_per_round = 1 + (uint32_t)cv_rng_below(&rng.rng, 20);
  s->delta = 0.2 + 0.7 * cv_rng_unit(&rng.rng);
  return true;
}

/* For low regret on a graph, in one of four campaigns of the product's policies. From its own random stream. */
static bool draw_graph_ucb(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 79, 2, 0);
  if (cv_rng_below(&rng.rng, 4) != 0) {
    return false;
  }
  s->policy = "graph-ucb";
  s->mechanism = "segments";
  s->tokens_per_round = 1 + (uint32_t)cv_rng_below(&rng.rng, 20);
  draw_edges(s, &rng.rng);
  return true;
}

/* The simulator's own policy, with every mechanism but doubling, with which no policy of the product uses a graph. */
static void draw_script(struct scenario *s, struct cv_rng *rng) {
  static const char *const mechanisms[] = {"hybrid", "hybrid",   "hybrid", "none",     "binary",     "binary-honaker",
                                           "kary",   "segments", "batch",  "per-item", "kary-blocks"};
  s->policy = "script";
  s->mechanism = mechanisms[cv_rng_below(rng, CV_COUNT(mechanisms))];
  s->plans = 3 + (uint32_t)cv_rng_below(rng, 20);
  s->plays = 1 + (uint32_t)cv_rng_below(rng, 9);
  s->greed = cv_rng_below(rng, 4) == 0 ? 8 : 0;
  s->tokens_per_round = 1;
  draw_edges(s, rng);
}

static uint32_t shown_most(const struct scenario *s) {
  uint32_t most = 1;
  for (uint32_t a = 0; a < s->arms; a++) {
    uint32_t shown = 1;
    for (uint32_t b = 0; b < s->arms; b++) {
      shown += s->joined[a][b];
    }
    most = shown > most ? shown : most;
  }
  return most;
}

/* From its own random stream, as for drains. */
static void draw_damage(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 77, 5, 0);
  s->weight[FAULT_DAMAGE] = cv_rng_below(&seeded.rng, 6) == 0 ? 6 : 0;
}

/* In one world of four the broker is asked to stop now and then, in another a gateway cannot store what it gives, and
 * in another the seal key is replaced. From its own random stream. */
static void draw_drains(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 80, 1, 0);
  s->weight[FAULT_DRAIN] = cv_rng_below(&seeded.rng, 4) == 0 ? 3 : 0;
  s->weight[FAULT_FULL_POOL] = cv_rng_below(&seeded.rng, 4) == 0 ? 2 : 0;
  s->weight[FAULT_ROTATE] = cv_rng_below(&seeded.rng, 4) == 0 ? 5 : 0;
}

/* One in six of the seeds that do not recruit plays on a graph. From its own random stream. */
static void draw_graph(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 79, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  if (cv_rng_below(rng, 6) != 0 || s->budget_micro > 0) {
    return;
  }
  s->graph = true;
  if (is(s->privatizer.name, "laplace") || cv_rng_below(rng, 5) < 3) {
    draw_script(s, rng);
  } else if (!draw_graph_ucb(s) && !draw_best_arm(s)) {
    draw_elimination(s, rng);
  }
  if (s->worker_epsilon_micro < WEALTH_MICRO) {
    s->worker_epsilon_micro = scenario_cost(s) * (shown_most(s) + cv_rng_below(rng, 2 * (uint64_t)shown_most(s)));
  } else {
    uint32_t enough = (uint32_t)(2 * s->tokens / (s->pools * s->tokens_per_worker)) + 1;
    s->pool_workers = enough > s->pool_workers ? enough : s->pool_workers;
    s->worker_epsilon_micro = UINT32_MAX;
  }
}

/* Mechanisms with a horizon get one that is too short in one campaign of three: it ends with what it has by then.
 * From its own random stream: the rest of a seed's scenario stays the same. */
static void draw_horizon(struct scenario *s) {
  static const char *const bounded[] = {"binary", "binary-honaker", "kary"};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 77, 3, 0);
  for (size_t i = 0; i < CV_COUNT(bounded); i++) {
    if (is(s->mechanism, bounded[i]) && cv_rng_below(&rng.rng, 3) == 0) {
      s->horizon = 1 + (uint32_t)cv_rng_below(&rng.rng, 8);
    }
  }
}

/* In one world of four workers have an owner's limit, with enough workers for three times the tokens that are asked
 * for. From its own random stream. */
static void draw_owners(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 77, 4, 0);
  if (cv_rng_below(&rng.rng, 4) == 0 && s->budget_micro == 0) {
    uint64_t asked = s->tokens * s->campaigns * s->requesters * shown_most(s);
    uint64_t enough = 3 * asked / ((uint64_t)s->pools * s->pool_workers) + shown_most(s);
    s->own_tokens = (uint32_t)(enough + cv_rng_below(&rng.rng, 3));
  }
}

/* A worker that gives exact sums gives to no other campaign. So there are workers for every campaign, and hired ones
 * are hired in one only; and since a recovery may charge all of them for tokens that it cannot know, a later
 * campaign ends when no worker comes. */
static void draw_exact(struct scenario *s) {
  if (!scenario_is_exact(s)) {
    return;
  }
  s->worker_epsilon_micro = s->worker_epsilon_micro < UINT32_MAX ? s->worker_epsilon_micro : UINT32_MAX;
  if (s->budget_micro > 0) {
    s->requesters = s->campaigns = 1;
  } else if (s->ending != ENDING_IDLE && s->requesters * s->campaigns > 1) {
    uint32_t enough = (uint32_t)(2 * s->tokens * s->requesters * s->campaigns / s->pools) + 1;
    s->pool_workers = enough > s->pool_workers ? enough : s->pool_workers;
  }
  if (s->rollback != ROLLBACK_NONE && s->ending == ENDING_PLAIN) {
    s->ending = ENDING_IDLE;
    s->ending_ms = 3000;
  }
}

/* In one of two eligible worlds a gateway serves only one of the requesters, and there are enough workers without
 * it; in one of six there is a second third-party. From its own random stream. */
static void draw_names(struct scenario *s, bool calm) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 77, 5, 0);
  bool can_be = s->requesters > 1 && s->pools > 1 && s->budget_micro == 0 && s->worker_epsilon_micro >= WEALTH_MICRO;
  s->picky = cv_rng_below(&rng.rng, 2) == 0 && can_be;
  s->pool_workers *= s->picky ? 2 : 1;
  s->impostor = cv_rng_below(&rng.rng, 6) == 0 && !calm && !s->peaceful;
}

/* No faults and a single campaign, with workers who may give all that they are asked for. */
static void make_peaceful(struct scenario *s) {
  s->peaceful = true;
  s->faults = s->liars = s->pests = 0;
  s->rollback = ROLLBACK_NONE;
  s->requesters = s->campaigns = 1;
  s->worker_epsilon_micro = UINT32_MAX;
}

/* In one of four eligible worlds workers are persons with rows of their own. Some are so few that they give all
 * their rows before the campaign ends: it ends when no worker comes, and the score of a place depends on the person
 * that had it. In one of three liars have wishes. From its own random stream. */
static void draw_persons(struct scenario *s) {
  enum { PATIENCE_MS = 12000 }; /* longer than an arm stays paused at a gateway */
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 85, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  s->wishes = cv_rng_below(rng, 3) == 0;
  if (cv_rng_below(rng, 4) != 0 || !is(s->privatizer.name, "none") || s->budget_micro > 0 || s->graph) {
    return;
  }
  s->persons = true;
  s->noise_seeded = false;
  if (cv_rng_below(rng, 2) == 0) {
    s->pool_workers = 10 + (uint32_t)cv_rng_below(rng, 60);
  }
  s->first_person = 1 + (uint32_t)cv_rng_below(rng, s->pool_workers / 2);
  if (s->ending == ENDING_PLAIN && cv_rng_below(rng, 3) == 0) {
    make_peaceful(s);
  }
  if (s->ending == ENDING_PLAIN || s->ending == ENDING_CANCEL) { /* of several campaigns, not every one is cancelled */
    s->ending = ENDING_IDLE;
    s->ending_ms = PATIENCE_MS;
  }
}

/* Small limits, since batches of a world are small. From its own random stream. */
static void draw_batches(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 81, 1, 0);
  s->batch_crowd = 1 + (uint32_t)cv_rng_below(&rng.rng, 8);
  s->batch_full = s->batch_crowd * (1 + (uint32_t)cv_rng_below(&rng.rng, 6));
}

/* In one world of four there are certificates that cover the same workers. From its own random stream. */
static void draw_rivals(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 82, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  s->rivals = cv_rng_below(rng, 4) == 0 && !s->peaceful ? 1 + (uint32_t)cv_rng_below(rng, SCENARIO_RIVALS) : 0;
  s->rival_victim = (uint32_t)cv_rng_below(rng, s->pools + s->liars);
  s->rival_worker = (uint32_t)cv_rng_below(rng, s->pool_workers);
  for (uint32_t i = 0; i < s->rivals; i++) {
    s->rival[i] = (enum rival)cv_rng_below(rng, RIVAL_COUNT);
  }
}

uint32_t scenario_least(const struct scenario *s) {
  bool is_protected = s->applied.law.epsilon_micro != CV_EPSILON_NONE && s->applied.law.delta_pico == 0;
  return is_protected ? 1 : s->release_tokens;
}

/* In one world of four the operator requires more than one token in a release: mostly at most as many as a round
 * has, more often more where the privatizer has a delta and does not suffice. From its own random stream. */
static void draw_smallest(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 83, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  uint32_t round = s->tokens_per_round;
  bool is_doubtful = s->applied.law.delta_pico > 0;
  s->release_tokens = 1;
  if (cv_rng_below(rng, is_doubtful ? 2 : 4) == 0 && (round > 1 || cv_rng_below(rng, 4) == 0)) {
    s->release_tokens = 2 + (uint32_t)cv_rng_below(rng, round > 2 ? round - 1 : 1);
    s->release_tokens += cv_rng_below(rng, is_doubtful ? 2 : 8) == 0 ? round : 0;
  }
  /* The third-party refuses a policy that asks for single tokens. */
  s->release_tokens = scenario_least(s) == 1 || cv_policy_find(s->policy)->has_floor ? s->release_tokens : 1;
}

/* Retention of ended campaigns. A requester that crashes starts with its first campaign again, which the broker must
 * still have then. From its own random stream. */
static void draw_retention(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 84, 1, 0);
  s->looks_back = cv_rng_below(&rng.rng, 2) == 0;
  s->purges = s->looks_back && cv_rng_below(&rng.rng, 2) == 0;
  bool remembers = s->weight[FAULT_CRASH_REQUESTER] == 0 && s->weight[FAULT_ROLLBACK] == 0;
  s->kept = remembers && cv_rng_below(&rng.rng, 3) == 0 ? 1 : 0;
}

uint64_t scenario_releases(const struct scenario *s) {
  uint32_t least = scenario_least(s), each = least > s->tokens_per_round ? least : s->tokens_per_round;
  return s->horizon > 0 ? s->horizon : s->tokens / each;
}

/* A third of the rankings that ppar-kl can have. Few tokens decide only with much doubt. From its own random stream. */
static void draw_ranking(struct scenario *s) {
  static const char *const scores[] = {"independent", "independent", "without-replacement", "reacting"};
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 87, 1, 0);
  bool suits = !is(s->mechanism, "batch") && !is(s->privatizer.name, "laplace") && !s->persons;
  if (!is(s->policy, "ppar") || !suits || cv_rng_below(&rng.rng, 3) > 0) {
    return;
  }
  bool fresh = is(s->mechanism, "segments") || is(s->mechanism, "none") || is(s->mechanism, "per-item");
  s->policy = "ppar-kl";
  s->alpha = 0.5;
  s->delta = 0.9;
  size_t some = is(s->mechanism, "doubling") ? 2 : fresh ? CV_COUNT(scores) : CV_COUNT(scores) - 1;
  s->scores = scores[cv_rng_below(&rng.rng, some)];
  s->arms_per_plan = 1 + (uint32_t)cv_rng_below(&rng.rng, s->arms);
}

/* Half of the rankings by intervals bear lies: a few, or more than there can be. From its own random stream. */
static void draw_lies(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 89, 1, 0);
  s->lies = cv_rng_below(&rng.rng, 2) == 0
                ? 0
                : (uint32_t)cv_rng_below(&rng.rng, cv_rng_below(&rng.rng, 4) == 0 ? 1000000 : 4);
}

/* One in four of the rankings that suit compares pairs, half of them by duels. From its own random stream. */
static void draw_pairs(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 93, 1, 0);
  bool ranks = is(s->policy, "ppar") || is(s->policy, "ppar-kl");
  bool bits = is(s->privatizer.name, "none") || s->applied.law.bits;
  if (!ranks || !bits || s->persons || s->golds > 0 || s->arms < 2 || cv_rng_below(&rng.rng, 4) > 0) {
    return;
  }
  s->pairs = true;
  s->noise_seeded =
      s->noise_seeded && is(s->privatizer.name, "none"); /* else the run without faults has other tokens */
  bool fresh = is(s->mechanism, "segments") || is(s->mechanism, "none") || is(s->mechanism, "per-item");
  s->policy = fresh && cv_rng_below(&rng.rng, 2) == 0 ? "pair-sort" : s->policy;
}

/* One in six of the worlds that suit has gold items, and workers who give many tokens each, about an item once. A
 * place's value then depends on its worker. From its own random stream. */
static void draw_gold(struct scenario *s) {
  struct cv_rng_seeded seeded;
  cv_rng_seeded_init(&seeded, s->seed, 90, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  bool suits = is(s->privatizer.name, "none") && s->budget_micro == 0 && !s->graph && !s->persons &&
               !scenario_is_exact(s) && s->worker_epsilon_micro >= WEALTH_MICRO;
  if (cv_rng_below(rng, 6) > 0 || !suits) {
    return;
  }
  s->noise_seeded = false;
  s->own_tokens = 0;
  s->worker_epsilon_micro = UINT32_MAX;
  s->rival_worker %= s->pool_workers;
  s->golds = 4 + (uint32_t)cv_rng_below(rng, SCENARIO_GOLDS - 3);
  s->tokens_per_worker = 6 + (uint32_t)cv_rng_below(rng, s->arms + s->golds - 5);
  s->pool_workers = (2 * (uint32_t)s->tokens + 20) * (s->picky ? 2 : 1); /* an arm may take a token of each */
  uint32_t item = 0;
  for (uint32_t i = 0; i < s->golds; i++) {
    item += (uint32_t)cv_rng_below(rng, s->arms + s->golds - item - (s->golds - i - 1));
    s->gold[i] = (struct cv_gold_item){.item = item++, .answer = cv_rng_below(rng, 2) == 0 ? 0 : CV_GRID};
  }
}

void scenario_gold(const struct scenario *s, struct cv_gold *ret) {
  *ret = (struct cv_gold){.items = s->golds,
                          .item = s->golds == 0 ? NULL : (struct cv_gold_item *)(uintptr_t)s->gold,
                          .tolerance = CV_GRID / 4,
                          .error_micro = 100000,
                          .level_micro = 10000,
                          .share_micro = 500000,
                          .epsilon_micro = 50000};
}

uint32_t scenario_arm(const struct scenario *s, uint32_t item) {
  uint32_t before = 0;
  for (uint32_t i = 0; i < s->golds && s->gold[i].item <= item; i++) {
    if (s->gold[i].item == item) {
      return s->arms + i;
    }
    before++;
  }
  return item - before;
}

/* Who may be asked the same question again: where each worker gives more tokens than there are questions, or a token
 * shows several items, and else in one world of three. From its own random stream. */
static void draw_repeat(struct scenario *s) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, s->seed, 96, 1, 0);
  uint32_t items = s->arms + s->golds, questions = s->pairs ? items * (items - 1) / 2 : items;
  bool chance = cv_rng_below(&rng.rng, 3) == 0;
  s->repeat = s->tokens_per_worker > 1 && s->golds == 0 && (chance || s->graph || s->tokens_per_worker > questions);
}

void scenario_draw(uint64_t seed, bool calm, struct scenario *ret) {
  struct cv_rng_seeded seeded;
  struct scenario s = {.seed = seed};
  memcpy(s.coin_key, &seed, sizeof(seed));
  cv_rng_seeded_init(&seeded, seed, 77, 1, 0);
  struct cv_rng *rng = &seeded.rng;
  draw_campaign(&s, rng);
  s.pools = 1 + (uint32_t)cv_rng_below(rng, 4);
  s.concurrency = 2 + (uint32_t)cv_rng_below(rng, 24);
  s.lease_ms = 1000 + (uint32_t)cv_rng_below(rng, 4000);
  s.queue = 8 + (uint32_t)cv_rng_below(rng, 120);
  s.delay_ms = 1 + (uint32_t)cv_rng_below(rng, 20);
  s.pool_workers = 400;
  s.worker_epsilon_micro = WEALTH_MICRO;
  s.journal_bytes = cv_rng_below(rng, 3) == 0 ? 64 + cv_rng_below(rng, 4000) : 0;
  if (!calm) {
    draw_faults(&s, rng);
    draw_drains(&s);
    draw_damage(&s);
    if (cv_rng_below(rng, 12) == 0) {
      draw_poverty(&s, rng);
    }
  }
  draw_recruitment(&s);
  draw_graph(&s);
  draw_horizon(&s);
  draw_owners(&s);
  draw_exact(&s);
  draw_persons(&s);
  draw_batches(&s);
  draw_smallest(&s);
  if (!calm) {
    draw_rivals(&s);
  }
  draw_names(&s, calm);
  draw_retention(&s);
  draw_ranking(&s);
  draw_lies(&s);
  draw_gold(&s);
  draw_pairs(&s);
  scenario_draw_two(&s, calm);
  scenario_draw_shared(&s, calm);
  scenario_draw_parts(&s);
  draw_repeat(&s);
  *ret = s;
}

static enum kind kind_of(const struct scenario *s) {
  return s->budget_micro > 0 ? KIND_HIRES : s->graph ? KIND_GRAPH : KIND_RANKING;
}

/* Small campaigns fit many of its tokens, whatever the noise, and a worker of one campaign may give in the next,
 * without a limit. */
static bool can_soak(const struct scenario *s) {
  bool plays = !s->graph || (scenario_is_scripted(s) && s->edges > 0 && s->plays > 4);
  bool goes_on =
      !scenario_is_exact(s) && !s->two && !s->shared && !s->persons && s->own_tokens == 0 && s->golds == 0 && !s->parts;
  return is(s->privatizer.name, "none") && goes_on && s->greed == 0 && plays;
}

void scenario_soak(enum kind kind, uint32_t campaigns, struct scenario *ret) {
  uint64_t seed = 1;
  do {
    scenario_draw(seed++, true, ret);
  } while (kind_of(ret) != kind || !can_soak(ret));
  ret->requesters = 1;
  ret->campaigns = campaigns;
  ret->pools = ret->pools > 2 ? ret->pools : 2;
  ret->epsilon_micro = kind == KIND_RANKING ? ret->epsilon_micro : 1000; /* a hired worker is hired in all of them */
  ret->worker_epsilon_micro = UINT32_MAX;
  ret->journal_bytes = 2000;
  ret->looks_back = ret->purges = true;
  ret->kept = 4;
}

bool scenario_values_vary(const struct scenario *s) {
  return s->persons || s->parts || s->golds > 0 || (s->pairs && !is(s->privatizer.name, "none"));
}

bool scenario_is_exact(const struct scenario *s) {
  return is(s->mechanism, "none") && is(s->privatizer.name, "none");
}

uint64_t scenario_cost(const struct scenario *s) {
  if (scenario_is_exact(s)) {
    return CV_UNPROTECTED_MICRO;
  }
  const struct cv_local *local = &s->applied.law;
  if (is(s->mechanism, "none") && local->epsilon_micro != CV_EPSILON_NONE) {
    return local->epsilon_micro;
  }
  struct cv_gold gold;
  scenario_gold(s, &gold);
  return (s->epsilon_micro < local->pure_micro ? s->epsilon_micro : local->pure_micro) +
         (s->golds > 0 ? gold.epsilon_micro : 0);
}

bool scenario_is_scripted(const struct scenario *s) {
  return is(s->policy, "script") || is(s->policy, "spender");
}

static void put_hiring_params(const struct scenario *s, struct cv_params *params) {
  bool dpu = is(s->policy, "dpu");
  if (dpu || is(s->policy, "dpf")) {
    CV_REQUIRE(cv_params_set_text(params, "noise", s->by_pull ? "printed" : "sound") == CV_OK);
  }
  if (dpu) {
    CV_REQUIRE(cv_params_set_number(params, "pulls", s->pulls) == CV_OK);
  }
}

static void put_graph_params(const struct scenario *s, struct cv_params *params) {
  if (is(s->policy, "graph-ucb")) {
    CV_REQUIRE(cv_params_set_number(params, "first", s->tokens_per_round) == CV_OK);
    return;
  }
  CV_REQUIRE(cv_params_set_number(params, "delta", s->delta) == CV_OK);
  if (is(s->policy, "aae") || is(s->policy, "best-arm")) {
    CV_REQUIRE(cv_params_set_number(params, "tokens_per_round", s->tokens_per_round) == CV_OK);
  }
}

static void put_script_params(const struct scenario *s, struct cv_params *params) {
  CV_REQUIRE(cv_params_set_number(params, "plans", s->plans) == CV_OK &&
             cv_params_set_number(params, "most", s->plays) == CV_OK &&
             cv_params_set_number(params, "greed", s->greed) == CV_OK);
}

static void put_params(const struct scenario *s, struct cv_params *params) {
  if (scenario_is_scripted(s)) {
    put_script_params(s, params);
    return;
  }
  if (s->graph) {
    put_graph_params(s, params);
    return;
  }
  if (s->budget_micro > 0) {
    put_hiring_params(s, params);
    return;
  }
  if (is(s->policy, "dp-exp3-lap")) { /* one token at a time */
    return;
  }
  bool has_tau = is(s->policy, "exp3-tau") || is(s->policy, "tsallis-inf");
  const char *round = has_tau ? "tau" : "tokens_per_round";
  CV_REQUIRE(cv_params_set_number(params, round, s->tokens_per_round) == CV_OK);
  if (is(s->policy, "ppar")) {
    CV_REQUIRE(cv_params_set_number(params, "alpha", s->alpha) == CV_OK &&
               cv_params_set_text(params, "radius", s->radius) == CV_OK &&
               cv_params_set_text(params, "settled", s->settled) == CV_OK &&
               cv_params_set_number(params, "lies", is(s->radius, "sound") ? s->lies : 0) == CV_OK);
  } else if (is(s->policy, "ppar-kl")) {
    CV_REQUIRE(cv_params_set_number(params, "alpha", s->alpha) == CV_OK &&
               cv_params_set_number(params, "delta", s->delta) == CV_OK &&
               cv_params_set_text(params, "scores", s->scores) == CV_OK &&
               cv_params_set_number(params, "arms_per_plan", s->arms_per_plan) == CV_OK &&
               cv_params_set_number(params, "lies", s->lies) == CV_OK);
  }
}

void scenario_spec(const struct scenario *s, struct cv_spec *ret) {
  struct cv_spec spec = {.name = "sim",
                         .arms = s->arms,
                         .epsilon_micro = s->epsilon_micro,
                         .tokens_per_worker = s->tokens_per_worker,
                         .repeat = s->repeat,
                         .thirdparty_trusted = is(s->mechanism, "none"),
                         .pairs = s->pairs,
                         .tokens = s->tokens,
                         .deadline_ms = s->ending == ENDING_DEADLINE ? s->ending_ms : 0,
                         .idle_ms = s->ending == ENDING_IDLE ? s->ending_ms : 0,
                         .brokers = s->two ? 2 : 0,
                         .score_bits = s->score_bits};
  choose(&spec.policy, s->policy);
  choose(&spec.mechanism, s->mechanism);
  CV_REQUIRE(s->horizon == 0 || cv_params_set_number(&spec.mechanism.params, "horizon", s->horizon) == CV_OK);
  spec.privatizer = s->privatizer;
  put_params(s, &spec.policy.params);
  if (s->budget_micro > 0) {
    spec.cost_micro = (uint64_t *)(uintptr_t)s->cost_micro;
    spec.worker = (uint64_t *)(uintptr_t)s->worker;
    spec.budget_micro = s->budget_micro;
  }
  if (s->edges > 0) {
    spec.edges = s->edges;
    spec.edge = (struct cv_edge *)(uintptr_t)s->edge;
  }
  *ret = spec;
}
