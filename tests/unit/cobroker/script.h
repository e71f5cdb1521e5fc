/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker and the gateway of a world (world.h) do: a whole campaign step by step, or single tokens. */
#ifndef CV_TESTS_COBROKER_SCRIPT_H
#define CV_TESTS_COBROKER_SCRIPT_H

#include "tests/unit/cobroker/world.h"

/* ---- a campaign ---- */

/* Opens the leader's next plan, with every place waiting for a token. */
static inline void next_plan(struct world *world) {
  struct leader *leader = &world->leader;
  uint64_t before = leader->plans;
  say_plan(world, leader->plans + 1, TAU);
  turn(world);
  if (leader->plans > before) {
    struct cv_want want[ARMS];
    for (uint32_t i = 0; i < ARMS; i++) {
      want[i] = (struct cv_want){.arm = i, .tokens = TAU};
    }
    const struct cv_plan plan = {.number = leader->plans, .wants = ARMS, .want = want};
    assert_int_equal(cv_chain_plan(&leader->plans_hash, &plan, cv_sha256), CV_OK);
    for (uint32_t i = 0; i < ARMS; i++) {
      leader->chain[i] = leader->plans_hash;
      memset(leader->todo[i] + (leader->plans - 1) * TAU, 1, TAU);
    }
  }
}

/* The worker of a place, and its slot: every worker gives SLOTS tokens. */
static inline uint64_t worker_of(uint32_t arm, uint64_t place) {
  return 1 + (place * ARMS + arm) / SLOTS;
}

static inline uint32_t slot_of(uint32_t arm, uint64_t place) {
  return (uint32_t)((place * ARMS + arm) % SLOTS);
}

/* Sends one batch of tokens that wait; false if none does. */
static inline bool send_some(struct world *world) {
  struct leader *leader = &world->leader;
  struct pending token[BATCH];
  size_t n = 0;
  for (uint32_t arm = 0; arm < ARMS; arm++) {
    for (uint64_t place = 0; place < leader->plans * TAU && n < BATCH; place++) {
      if (leader->todo[arm][place] == 1) {
        leader->todo[arm][place] = 2;
        make_token(world, leader->plans, arm, place, worker_of(arm, place), slot_of(arm, place), score_of(arm, place),
                   &token[n++]);
      }
    }
  }
  if (n > 0) {
    commit_batch(world, token, n);
  }
  return n > 0;
}

static inline bool is_full(const struct world *world) {
  for (uint32_t i = 0; i < ARMS; i++) {
    if (world->leader.filled[i] < TAU) {
      return false;
    }
  }
  return true;
}

/* The exact sum of an arm's first n epochs, on the grid. */
static inline int64_t exact_of(uint32_t arm, uint64_t epochs) {
  uint64_t sum = 0;
  for (uint64_t place = 0; place < epochs * TAU; place++) {
    sum += score_of(arm, place) * cv_split_scale(WORLD_BITS);
  }
  return (int64_t)sum;
}

/* The noise of an arm's n-th release in the co-broker's half: drawn by a mechanism over integers that sees no token. */
static inline int64_t noise_of(uint32_t arm, uint64_t n) {
  struct cv_spec spec = spec_of_test();
  struct cv_mechanism_law law;
  assert_int_equal(cv_mechanism_law_init(&spec.mechanism, EPSILON, 0, &law, NULL), CV_OK);
  struct cv_mechanism *mechanism = mechanism_new(&law);
  int64_t noise = 0;
  for (uint64_t i = 1; i <= n; i++) {
    struct cv_rng_seeded seeded;
    cv_rng_seeded_init(&seeded, NOISE_SEED, CV_RNG_NOISE_COBROKER, arm, i);
    cv_mechanism_draw(mechanism, &seeded.rng);
    noise = cv_mechanism_release(mechanism, 0);
  }
  cv_mechanism_free(mechanism);
  return noise;
}

/* Both brokers' shares, without the broker's noise, are the exact sum and the co-broker's noise. */
static inline void check_halves(const struct world *world) {
  const struct leader *leader = &world->leader;
  uint64_t sum[ARMS][PLANS + 1] = {{0}}, made[ARMS] = {0};
  const struct cv_mechanism_law law = mechanism_law("hybrid", EPSILON, 0);
  for (uint64_t i = 1; i <= leader->closed; i++) {
    uint32_t arm = leader->close[i].arm;
    uint64_t n = ++made[arm];
    int64_t lifted;
    sum[arm][n] = cv_field_add(sum[arm][n - 1], leader->leader_sum[i]);
    uint64_t epochs = cv_mechanism_cover(&law, n) == CV_COVER_ALL ? n : n - 1;
    assert_true(cv_field_lift(cv_field_add(sum[arm][epochs], leader->half[i]), &lifted));
    assert_int_equal(lifted, exact_of(arm, epochs) + noise_of(arm, n));
  }
}

/* The next step of the script. False once the campaign is over. */
static inline bool step(struct world *world) {
  struct leader *leader = &world->leader;
  if (leader->over) {
    return false;
  }
  if (!leader->opened || (leader->plan_open && !world->has_session)) {
    return true; /* what was asked for comes with the next turn */
  }
  if (!leader->plan_open) {
    if (leader->plans == PLANS) {
      say_over(world, CV_END_COMPLETE);
    } else {
      next_plan(world);
    }
    return true;
  }
  if (is_full(world)) {
    for (uint32_t i = 0; i < ARMS; i++) {
      struct cv_share_close close = closing_of(world, i);
      commit_closing(world, &close);
    }
  } else if (leader->closings == leader->plans * ARMS) {
    leader->plan_open = leader->closed < leader->closings;
    if (!leader->plan_open) {
      say_done(world, leader->booked);
    }
  } else {
    (void)send_some(world);
  }
  return true;
}

/* ---- a campaign with an open plan, token by token ---- */

static inline void begin(struct world *world) {
  world_make(world);
  turn(world);
  next_plan(world);
  turn(world); /* the session */
  assert_true(world->leader.plan_open && world->has_session);
}

/* Sends one token in a batch of its own; returns its answer. */
static inline enum cv_share_answer judged(struct world *world, const struct pending *token) {
  unsigned before = world->got_answers;
  commit_batch(world, token, 1);
  turn(world);
  assert_int_equal(world->got_answers, before + 1);
  return (enum cv_share_answer)world->answer[0];
}

static inline struct pending token_of(struct world *world, uint32_t arm, uint64_t place, uint64_t worker,
                                      uint32_t slot) {
  struct pending token;
  make_token(world, world->leader.plans, arm, place, worker, slot, score_of(arm, place), &token);
  return token;
}

static inline enum cv_share_answer give(struct world *world, uint32_t arm, uint64_t place, uint64_t worker,
                                        uint32_t slot) {
  struct pending token = token_of(world, arm, place, worker, slot);
  return judged(world, &token);
}

static inline struct cv_cobroker_campaign *campaign_of(const struct world *world) {
  return cv_cobroker_campaign_find(world->core, 1);
}

static inline void open_with(struct world *world, const struct cv_share_open *open) {
  say_open(world, open);
  turn(world);
}

#endif
