/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario of a seed: the campaign, the crowd, and the faults. */
#ifndef CV_SIM_SCENARIO_H
#define CV_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/gold.h"
#include "common/base/spec.h"
#include "worker/coin.h"
#include "worker/privatizer/privatizer.h"

enum {
  SCENARIO_ARMS = 6,
  SCENARIO_GOLDS = 7,
  SCENARIO_REQUESTERS = 2,
  SCENARIO_RIVALS = 2,
  SCENARIO_EDGES = SCENARIO_ARMS * (SCENARIO_ARMS - 1) / 2
};

/* Worker numbers from here on: workers of a liar's wide certificate, far apart, which arrive and give no token. */
#define SCENARIO_FAR (UINT64_C(1) << 40)

enum ending { ENDING_PLAIN, ENDING_CANCEL, ENDING_DEADLINE, ENDING_IDLE };
enum rollback { ROLLBACK_NONE, ROLLBACK_DATABASE, ROLLBACK_BOTH };

/* The workers that a rival's certificate covers, relative to its victim's range: one, as a worker or as a gateway;
 * the range and more; a part inside; from below, or above, up to one end of it; the same certificate. */
enum rival { RIVAL_WORKER, RIVAL_ALONE, RIVAL_AROUND, RIVAL_INSIDE, RIVAL_BELOW, RIVAL_ABOVE, RIVAL_SAME, RIVAL_COUNT };

enum fault {
  FAULT_CUT,
  FAULT_CRASH_BROKER,
  FAULT_CRASH_THIRDPARTY,
  FAULT_CRASH_POOL,
  FAULT_CRASH_REQUESTER,
  FAULT_DISK_BROKER,
  FAULT_DISK_THIRDPARTY,
  FAULT_JUMP,
  FAULT_STALL,
  FAULT_MEMORY,
  FAULT_LOSE_THIRDPARTY,
  FAULT_OLDER_THIRDPARTY,
  FAULT_ROLLBACK,
  FAULT_DRAIN,
  FAULT_FULL_POOL,
  FAULT_DAMAGE,
  FAULT_ROTATE,
  FAULT_CRASH_COBROKER,
  FAULT_DISK_COBROKER,
  FAULT_CUT_COBROKER,
  FAULT_REVOKE,
  FAULT_ROLLBACK_COBROKER,
  FAULT_COMMIT,
  FAULT_CUT_SERVER,
  FAULT_PROMOTE,
  FAULT_RESTORE,
  FAULT_LOAD,
  FAULT_FREEZE,
  FAULT_COUNT
};

/* What a broker tells the co-broker that is not so; then what a co-broker tells the broker, or a worker. */
#define LIES(LIE)                                                        \
  LIE(NONE, "nothing")                                                   \
  LIE(PLACE, "another place of a token")                                 \
  LIE(ARM, "another arm of a token")                                     \
  LIE(WORKER, "another slot of a token")                                 \
  LIE(TWICE, "a token twice")                                            \
  LIE(GARBAGE, "another verifier share")                                 \
  LIE(AGAIN, "a batch under the number of the one before")               \
  LIE(SHORT, "a closing before all tokens are there")                    \
  LIE(CLOSING, "a closing of another arm, plan, or tokens")              \
  LIE(PLAN, "another plan")                                              \
  LIE(OPENING, "another database, spec or position")                     \
  LIE(SILENCE, "nothing of what it should")                              \
  LIE(SESSION, "that a session is not known, of a token that it counts") \
  LIE(ACCEPTED, "that a token counts that does not")                     \
  LIE(HALF, "another half")                                              \
  LIE(KEY, "a second key")                                               \
  LIE(TERMS, "other terms to a worker")                                  \
  LIE(SILENCE_CO, "nothing of what it should, as the co-broker")
#define LIE_NAME(name, words)  LIE_##name,
#define LIE_WORDS(name, words) words,
enum lie { LIES(LIE_NAME) LIE_COUNT };

struct scenario {
  uint64_t seed;
  uint32_t requesters, campaigns; /* at once; of each requester, one after another */
  uint32_t arms, tokens_per_round, tokens_per_worker;
  bool repeat; /* a worker may be asked the same question again */
  const char *policy;
  uint64_t tokens;
  double mean[SCENARIO_ARMS];
  double alpha;
  const char *radius, *settled, *mechanism;
  const char *scores; /* ppar-kl: what it is told of them, and the arms of a plan */
  uint32_t arms_per_plan;
  uint32_t lies; /* false tokens that a ranking is told to bear */
  bool pairs;    /* tokens are comparisons: bits */
  /* Gold items, 0: none. The workers of the last honest gateway answer them wrong and are to be found. */
  uint32_t golds;
  struct cv_gold_item gold[SCENARIO_GOLDS];
  uint64_t epsilon_micro;
  uint32_t horizon; /* releases of an arm that its noise is made for; 0: as many as the tokens allow */
  uint8_t coin_key[CV_COIN_KEY_BYTES]; /* of all pools: a place that another one answers has the same token */
  struct cv_choice privatizer;
  struct cv_privatizer applied; /* the privatizer made from it */
  /* A recruitment: the payment of each arm's worker for a token, and the worker. Without a budget there are no
   * payments. */
  uint64_t cost_micro[SCENARIO_ARMS], worker[SCENARIO_ARMS], budget_micro;
  uint32_t pulls; /* dpu: in a plan */
  bool by_pull;   /* dpf and dpu: their printed noise */
  /* A feedback graph, or none. */
  bool graph; /* a policy for graphs, with or without edges */
  uint32_t edges;
  struct cv_edge edge[SCENARIO_EDGES];
  bool joined[SCENARIO_ARMS][SCENARIO_ARMS];
  double delta;                 /* of ppar-kl and the policies that drop arms */
  uint32_t plans, plays, greed; /* script and spender: see script.c */
  bool noise_seeded;
  uint32_t pools, liars, pests, pool_workers, concurrency;
  uint32_t rivals, rival_victim, rival_worker; /* how many; of which gateway; of its workers, from 0 */
  enum rival rival[SCENARIO_RIVALS];
  uint32_t lease_ms, queue, delay_ms;
  uint32_t batch_crowd, batch_full; /* tokens or releases in a batch: see common/daemon/turn.h */
  uint32_t release_tokens;          /* the operator's smallest release */
  uint64_t worker_epsilon_micro;    /* the lifetime epsilon of a worker */
  bool picky;                       /* the last honest gateway serves the first requester only */
  bool impostor;                    /* the broker is now and then connected to a third-party of another name */
  uint32_t own_tokens;              /* journal size at which it is folded; 0 = the default, which is never reached */
  uint64_t journal_bytes;           /* journal size at which it is folded; 0 = the default, which no world reaches */
  uint32_t thirdparty_campaigns;    /* that the third-party accepts at once */
  /* Workers are persons of a data file, who answer with their own rows; the first such worker. `peaceful`: no faults
   * and one campaign, in which every person that is wanted must come. */
  bool persons, peaceful;
  uint32_t first_person;
  bool parts; /* gateways have a part of a data file each; the most rows of an arm in a part */
  uint32_t part_rows;
  bool wishes;             /* liars' workers wish for one arm each, or for one that does not exist */
  bool looks_back, purges; /* a requester exports the campaign before its last one again; and then purges it */
  uint32_t kept;           /* campaigns of a requester that the broker keeps; 0 = all */
  enum ending ending;
  uint64_t ending_ms;
  enum rollback rollback;
  uint32_t faults, gap_ms;
  uint32_t weight[FAULT_COUNT];
  /* Campaigns with two brokers; which of them lies, from when on and how often. */
  bool two;
  uint32_t score_bits;
  uint64_t co_epsilon_micro; /* the lifetime epsilon of a worker at the co-broker */
  enum rollback co_rollback;
  enum lie lie;
  uint64_t lie_ms;
  uint32_t lie_times;
  bool shared; /* two brokers, of which one is active, share a database */
};

/* The least tokens of an epoch: the operator's limit, unless each token is protected by itself. */
uint32_t scenario_least(const struct scenario *scenario);
/* The number of releases that each arm's mechanism is made for, if it needs one. */
uint64_t scenario_releases(const struct scenario *scenario);
/* Draws the scenario of a seed. `calm`: without faults and liars, to the campaign's own end. */
void scenario_draw(uint64_t seed, bool calm, struct scenario *ret);
enum kind { KIND_RANKING, KIND_GRAPH, KIND_HIRES, KIND_COUNT };
/* Campaigns of one kind, one after another, without faults: to find what grows with time and must not. */
void scenario_soak(enum kind kind, uint32_t campaigns, struct scenario *ret);
/* Lets one seed in some have campaigns with two brokers. */
void scenario_draw_two(struct scenario *scenario, bool calm);
/* Lets one seed in some have brokers that share a database. */
void scenario_draw_shared(struct scenario *scenario, bool calm);
/* Lets one seed in some have gateways with a part of a data file each. */
void scenario_draw_parts(struct scenario *scenario);
/* The lie is one of the broker. */
bool scenario_lies_broker(const struct scenario *scenario);
/* A description in words, one or two lines. */
void scenario_tell(const struct scenario *scenario, char *to, size_t n);
/* Whether what a place's token is depends on more than the place: on its worker, the gateway's part of the rows or,
 * behind a privatizer, the opponent. */
bool scenario_values_vary(const struct scenario *scenario);
/* Exact sums leave: a worker that gives is unprotected, and gives to no other campaign. */
bool scenario_is_exact(const struct scenario *scenario);
/* The micro-epsilon that a score costs its worker. */
uint64_t scenario_cost(const struct scenario *scenario);
/* The policy is one of the simulator's own. */
bool scenario_is_scripted(const struct scenario *scenario);
/* Borrows costs, workers and edges. */
void scenario_spec(const struct scenario *scenario, struct cv_spec *ret);
/* The same as the broker accepts it, but for the mechanism's parameters: with the smallest release. */
void scenario_accepted(const struct scenario *scenario, struct cv_spec *ret);
/* Borrows the items. */
void scenario_gold(const struct scenario *scenario, struct cv_gold *ret);
/* The arm of an item, as workers number them; a gold item is an arm from `arms` on. */
uint32_t scenario_arm(const struct scenario *scenario, uint32_t item);

#endif
