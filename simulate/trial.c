/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell of a deployed campaign without its parties: the loop of run_plans() does what broker, workers and
 * third-party do in turn, with the same mechanism, privatizer and policy. What differs is how scores are drawn: an
 * experiment needs thousands of campaigns with millions of tokens each, so where only a sum matters, the sum is drawn.
 */
#include "simulate/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "broker/mechanism/mechanism.h"
#include "common/base/grid.h"
#include "common/base/neighbours.h"
#include "simulate/sampler/sampler.h"
#include "worker/privatizer/privatizer.h"

/* One broker's part of an arm: its mechanism, which adds noise of its own. */
struct half {
  struct cv_mechanism *mechanism;
  struct cv_rng_seeded noise;
};

struct arm {
  struct half half[CV_BROKERS_MAX]; /* the first one releases the sum, the others their noise */
  uint64_t tokens;                  /* collected */
  uint64_t covered;                 /* by the last release */
  enum { BITS, NORMAL, STRATA, OTHER } tokens_are;
  double chance;               /* BITS: probability that a token is CV_GRID and not 0 */
  uint32_t opponent;           /* pairs: 1 + the arm that the present plan compares it with; 0: drawn */
  struct cv_binomial law;      /* BITS: of the last sum; n = 0 before the first */
  struct cv_quality_item item; /* NORMAL: law of clipped scores that reach the broker unchanged */
  uint32_t shown;              /* scores that the present plan gives over the graph */
  bool is_used_up;             /* its data */
  uint32_t zero;               /* index of the present plan's score that is replaced by 0; CV_TURNS_NO_ARM: none */
  struct cv_rng_seeded score;
  struct cv_sampler sampler; /* many scores at once */
};

/* The totals of the present plan if all of it is played. */
struct sums {
  uint64_t pulls, paid_micro;
  double reward;
};

struct run {
  struct cv_trial *trial;
  const struct cv_spec *spec;
  struct cv_mechanism_law law;
  struct cv_privatizer *privatizer;
  struct cv_policy *policy;
  struct cv_policy_step step;
  struct cv_neighbours graph;
  struct arm *arm;
  struct cv_rng_seeded privacy;
  struct cv_release release; /* the last one */
  uint64_t plan;
  uint32_t brokers;
  struct sums sums;  /* of the plan */
  size_t moment;     /* the next one */
  uint32_t last_arm; /* against an adversary: of the round before; `arms` before the first */
  uint32_t switched; /* of that round, as in struct cv_moment */
};

/* ---- setting up ---- */

/* Of BITS: the probability of a one, against the arm's opponent. */
static void set_chance(struct run *run, uint32_t index) {
  struct arm *arm = &run->arm[index];
  const struct cv_pairs *pairs = cv_quality_pairs(run->trial->campaign->source.quality);
  struct cv_feedback feedback = cv_local_feedback(&run->privatizer->law, index);
  double wins = arm->opponent == 0 ? arm->item.mean : cv_pairs_chance(pairs, index, arm->opponent - 1);
  arm->chance = fmin(1, fmax(0, feedback.offset + feedback.slope * wins));
  arm->law.n = 0;
}

static void init_arm(struct run *run, uint32_t index) {
  struct arm *arm = &run->arm[index];
  uint64_t seed = run->trial->seed;
  const struct cv_prepared *campaign = run->trial->campaign;
  /* Places UINT64_MAX - 1 and UINT64_MAX: no token has them, so no stream here repeats a score of a place. */
  cv_rng_seeded_init(&arm->score, seed, CV_RNG_SCORE, index, UINT64_MAX - 1);
  for (uint32_t i = 0; i < run->brokers; i++) { /* other noise for each broker, as for each of the turns' coupling */
    uint64_t turn = run->trial->turns == NULL ? 0 : run->trial->turns->noise;
    cv_rng_seeded_init(&arm->half[i].noise, seed, CV_RNG_NOISE, index, i == 0 ? turn : ~turn);
  }
  cv_sampler_init(&arm->sampler, seed, CV_RNG_SCORE, index, UINT64_MAX);
  const struct cv_quality_model *model = cv_quality_law(campaign->source.quality, index, &arm->item);
  enum cv_local_kind local = run->privatizer->law.kind;
  /* A sum may be drawn at once only if it has a known law: bits stay bits behind randomized response, but a clipped
   * normal score behind any privatizer, or any score behind Laplace noise, has none. */
  arm->tokens_are = OTHER;
  arm->zero = CV_TURNS_NO_ARM;
  /* Replacing a single score needs single scores, not sums. */
  if (run->trial->turns != NULL) {
    return;
  }
  if (model != NULL && strcmp(model->name, "bernoulli") == 0 && local != CV_LOCAL_LAPLACE) {
    arm->tokens_are = BITS;
    set_chance(run, index);
  } else if (model != NULL && strcmp(model->name, "clipped-normal") == 0 && local == CV_LOCAL_NONE) {
    arm->tokens_are = NORMAL;
  } else if (run->trial->strata != NULL && cv_strata_has(run->trial->strata, index) && local == CV_LOCAL_NONE) {
    arm->tokens_are = STRATA;
  }
}

static enum cv_err init_tables(struct run *run) {
  const struct cv_spec *spec = run->spec;
  struct cv_trial *trial = run->trial;
  run->arm = calloc(spec->arms, sizeof(*run->arm));
  trial->standing = calloc(spec->arms, sizeof(*trial->standing));
  trial->lies = calloc(spec->arms, sizeof(*trial->lies));
  trial->pulls = calloc(spec->arms, sizeof(*trial->pulls));
  trial->releases = calloc(spec->arms, sizeof(*trial->releases));
  if (run->arm == NULL || trial->standing == NULL || trial->lies == NULL || trial->pulls == NULL ||
      trial->releases == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    for (uint32_t j = 0; j < run->brokers; j++) {
      CV_TRY(cv_mechanism_new(&run->law, &run->arm[i].half[j].mechanism));
    }
    init_arm(run, i);
  }
  return cv_neighbours_init(spec, &run->graph);
}

static enum cv_err init(struct run *run, struct cv_why *why) {
  const struct cv_spec *spec = run->spec;
  struct cv_choice mechanism = spec->mechanism;
  /* The broker's bound on an arm's releases: the horizon, and so the noise, must be that of the deployed campaign. */
  uint64_t releases = cv_mechanism_releases(spec);
  releases = releases < CV_RELEASES_END ? releases : CV_RELEASES_END - 1;
  CV_TRY(cv_mechanism_law_init(&mechanism, spec->epsilon_micro, releases, &run->law, why));
  CV_TRY(cv_privatizer_new(&spec->privatizer, spec->arms, &run->privatizer, why));
  uint64_t choices = run->trial->turns == NULL ? 0 : run->trial->turns->choices;
  CV_TRY(cv_policy_new(spec, cv_mix64(run->trial->seed ^ CV_RNG_POLICY) + choices, &run->policy));
  if (run->trial->campaign->truth != NULL) {
    cv_policy_tell(run->policy, run->trial->campaign->truth);
  }
  cv_policy_count_lies(run->policy);
  cv_rng_seeded_init(&run->privacy, run->trial->seed, CV_RNG_PRIVATIZER, 0, 0);
  run->last_arm = spec->arms;
  return init_tables(run);
}

static void fini(struct run *run) {
  for (uint32_t i = 0; i < run->spec->arms && run->arm != NULL; i++) {
    for (uint32_t j = 0; j < CV_BROKERS_MAX; j++) {
      cv_mechanism_free(run->arm[i].half[j].mechanism);
    }
  }
  free(run->arm);
  cv_neighbours_fini(&run->graph);
  cv_policy_step_fini(&run->step);
  cv_policy_free(run->policy);
  cv_privatizer_free(run->privatizer);
}

/* ---- tokens ---- */

static enum cv_err draw_score(struct run *run, uint32_t index, int64_t *ret) {
  const struct cv_quality *quality = run->trial->campaign->source.quality;
  struct arm *arm = &run->arm[index];
  bool is_drawn =
      !run->trial->token_level && arm->opponent == 0 && cv_quality_draw(quality, index, &arm->score.rng, ret);
  const struct cv_moment at = {.place = arm->tokens, .round = arm->tokens, .opponent = arm->opponent};
  return is_drawn ? CV_OK : cv_quality_score_at(quality, index, &at, ret);
}

/* The number of ones. Plans mostly repeat their token counts, so the law of the last sum is kept. */
static uint64_t draw_ones(struct arm *arm, uint32_t count) {
  if (arm->law.n != count || count == 0) {
    cv_binomial_init(&arm->law, count, arm->chance);
  }
  return cv_binomial_draw(&arm->law, &arm->score.rng);
}

/* Draws up to `count` tokens of an arm and sets their sum; fewer only if its data are used up. Returns their number. */
static uint32_t collect(struct run *run, uint32_t index, uint32_t count, int64_t *ret_sum) {
  struct arm *arm = &run->arm[index];
  int64_t sum = 0;
  if (arm->tokens_are == BITS) {
    uint64_t ones =
        run->trial->token_level ? cv_sampler_bernoulli_sum(&arm->sampler, count, arm->chance) : draw_ones(arm, count);
    sum = (int64_t)ones * CV_GRID;
    arm->tokens += count;
  } else if (arm->tokens_are == NORMAL) {
    sum = cv_sampler_clipped_normal_sum(&arm->sampler, count, arm->item.mean, arm->item.spread);
    arm->tokens += count;
  } else if (arm->tokens_are == STRATA) {
    sum = cv_strata_sum(run->trial->strata, index, count, &arm->score.rng);
    arm->tokens += count;
  } else {
    for (uint32_t i = 0; i < count; i++) {
      int64_t score;
      if (draw_score(run, index, &score) != CV_OK) {
        count = i;
        break;
      }
      score = i == arm->zero ? 0 : score;
      sum += cv_privatizer_apply(run->privatizer, index, score, &run->privacy.rng);
      arm->tokens++;
    }
  }
  *ret_sum = sum;
  return count;
}

/* The same against an adversary, whose gains depend on the campaign's rounds. */
static int64_t play(struct run *run, uint32_t index, uint32_t count, uint64_t round, double *reward) {
  const struct cv_game *game = run->trial->game;
  int64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    bool is_other = run->last_arm != index && run->last_arm < game->adversary.arms;
    run->switched = cv_adversary_switched(run->switched, is_other);
    run->last_arm = index;
    int32_t gain = cv_game_gain(game, index, round + i, run->switched);
    *reward += cv_grid_to(gain);
    sum += cv_privatizer_apply(run->privatizer, index, gain, &run->privacy.rng);
  }
  run->arm[index].tokens += count;
  return sum;
}

/* ---- releases ---- */

/* What all brokers' halves come to. */
static int64_t release_sum(const struct run *run, struct arm *arm, int64_t sum) {
  int64_t total = 0;
  for (uint32_t i = 0; i < run->brokers; i++) {
    struct half *half = &arm->half[i];
    cv_mechanism_draw(half->mechanism, &half->noise.rng);
    total += cv_mechanism_release(half->mechanism, i == 0 ? sum : 0);
  }
  return total;
}

static void give(struct run *run, uint32_t index, int64_t sum, uint32_t count) {
  struct arm *arm = &run->arm[index];
  struct cv_release *release = &run->release;
  uint64_t n = arm->half[0].mechanism->releases + 1;
  /* The policy must get the token count that the sum covers: a wrong one would bias every mean. */
  enum cv_cover cover = cv_mechanism_cover(&run->law, n);
  arm->covered = cover == CV_COVER_ITEM ? count : cover == CV_COVER_BEFORE ? arm->covered : arm->tokens;
  release->number++;
  release->plan = run->plan;
  release->arm = index;
  release->tokens = arm->covered;
  release->noisy_sum = release_sum(run, arm, sum);
  if (cv_mechanism_has_noise(run->law.class)) {
    cv_mechanism_noise(&run->law, n, &release->noise);
    cv_noise_times(&release->noise, run->brokers);
  }
  run->trial->releases[index] = n;
  cv_policy_apply(run->policy, release);
}

/* ---- plans ---- */

/* The totals of the plan's first `wants` wants. */
static struct sums add_up(const struct run *run, size_t wants) {
  const double *truth = run->trial->campaign->truth;
  struct sums sums = {0};
  for (size_t i = 0; i < wants; i++) {
    struct cv_want want = run->step.want[i];
    sums.pulls += want.tokens;
    sums.reward += truth == NULL ? 0 : want.tokens * truth[want.arm];
    sums.paid_micro += run->spec->cost_micro == NULL ? 0 : want.tokens * run->spec->cost_micro[want.arm];
  }
  return sums;
}

/* Advances by `pulls` pulls, and records the moments on the way; the reward is spread evenly over the pulls. */
static void pass(struct run *run, uint64_t pulls, double reward) {
  struct cv_trial *trial = run->trial;
  struct cv_trial_totals *total = &trial->total;
  for (; run->moment < trial->moments && trial->moment[run->moment] <= total->pulls + pulls; run->moment++) {
    double share = (double)(trial->moment[run->moment] - total->pulls) / (double)pulls;
    struct cv_trial_totals at = *total;
    at.pulls = trial->moment[run->moment];
    at.reward += share * reward;
    trial->at[run->moment] = at;
  }
  total->pulls += pulls;
  total->reward += reward;
}

/* Records the arms of the next rounds in `turns`, and finds the score among them that is to be replaced by 0. */
static void tell(struct run *run, uint64_t rounds, bool is_released) {
  struct cv_turns *turns = run->trial->turns;
  uint64_t before = run->trial->total.pulls;
  uint32_t *played = turns->played + before, place = CV_TURNS_NO_ARM;
  cv_turns_fill(&run->step, rounds, played);
  if (is_released && turns->round >= before && turns->round < before + rounds) {
    const struct cv_neighbours *graph = run->spec->edges > 0 ? &run->graph : NULL;
    place = cv_turns_place(&run->step, graph, played, turns->round - before, turns->arm);
  }
  turns->is_shown = turns->is_shown || place != CV_TURNS_NO_ARM;
  run->arm[turns->arm].zero = turns->is_zero ? place : CV_TURNS_NO_ARM;
}

/* Counts how many scores of each arm the plan gives: its own plays, and those of its neighbours. */
static void show(struct run *run) {
  const struct cv_neighbours *graph = &run->graph;
  const struct cv_policy_step *step = &run->step;
  for (uint32_t i = 0; i < run->spec->arms; i++) {
    run->arm[i].shown = 0;
  }
  for (size_t i = 0; i < step->wants; i++) {
    struct cv_want want = step->want[i];
    run->arm[want.arm].shown += want.tokens;
    for (uint32_t j = graph->first[want.arm]; j < graph->first[want.arm + 1]; j++) {
      run->arm[graph->arm[j]].shown += want.tokens;
    }
  }
}

/* An arm's data ended in the middle of a plan: tokens collected so far count as pulls, released or not. */
static void pass_collected(struct run *run, size_t wants, uint64_t tokens) {
  run->trial->end = CV_TRIAL_USED_UP;
  const double *truth = run->trial->campaign->truth;
  struct sums sums = add_up(run, wants);
  sums.reward += truth == NULL ? 0 : (double)tokens * truth[run->step.want[wants].arm];
  if (sums.pulls + tokens > 0) {
    pass(run, sums.pulls + tokens, sums.reward);
  }
  run->trial->total.paid_micro += sums.paid_micro;
}

/* Compares the arm with the opponent that the plan names, if it is another than before. */
static void face(struct run *run, const struct cv_want *want) {
  struct arm *arm = &run->arm[want->arm];
  if (arm->opponent != want->opponent) {
    arm->opponent = want->opponent;
    set_chance(run, want->arm);
  }
}

/* Notes that an arm's data gave `got` of the tokens that the plan wants. */
static void run_short(struct run *run, uint32_t index, uint32_t got, uint32_t wanted) {
  struct cv_trial *trial = run->trial;
  struct arm *arm = &run->arm[index];
  arm->is_used_up = true;
  if (trial->used_up == CV_TURNS_NO_ARM) {
    trial->used_up = index;
    trial->wanted = arm->tokens - got + wanted;
  }
}

/* Plays one want of the plan and releases its sum. *ret_missing: tokens that the arm's data no longer had.
 * CV_ERR_LIMIT: the campaign is over because of that. */
static enum cv_err play_want(struct run *run, size_t at, uint64_t *round, double *gained, uint32_t *ret_missing) {
  struct cv_trial *trial = run->trial;
  struct cv_want want = run->step.want[at];
  face(run, &want);
  uint32_t shown = run->spec->edges > 0 ? run->arm[want.arm].shown : want.tokens, got = shown;
  int64_t sum;
  if (trial->game != NULL) {
    sum = play(run, want.arm, shown, *round, gained); /* an adversary's rounds run on from arm to arm */
    *round += shown;
  } else {
    got = collect(run, want.arm, shown, &sum);
  }
  *ret_missing = shown - got;
  if (got < shown) {
    run_short(run, want.arm, got, shown);
    if (!trial->as_deployed || run->policy->class->exhaust == NULL) {
      pass_collected(run, at, got);
      return CV_ERR_LIMIT;
    }
  }
  trial->pulls[want.arm] += run->spec->edges > 0 ? want.tokens : got;
  if (got > 0) {
    give(run, want.arm, sum, got);
  }
  return CV_OK;
}

/* Tells the policy which arms have no further tokens. CV_ERR_LIMIT: it cannot go on without one. */
static enum cv_err exhaust(struct run *run) {
  for (size_t i = 0; i < run->step.wants; i++) {
    uint32_t arm = run->step.want[i].arm;
    if (run->arm[arm].is_used_up && !cv_policy_exhaust(run->policy, arm)) {
      run->trial->end = CV_TRIAL_USED_UP;
      return CV_ERR_LIMIT;
    }
  }
  return CV_OK;
}

/* Plays the present plan, and releases the sum of each of its arms to the policy. */
static enum cv_err play_all(struct run *run) {
  struct cv_trial *trial = run->trial;
  const double *truth = trial->campaign->truth;
  struct sums sums = run->sums;
  uint64_t round = trial->total.pulls;
  double gained = 0;
  if (run->spec->edges > 0) {
    show(run);
  }
  /* Before any token is drawn: collect() replaces the score that tell() finds. */
  if (trial->turns != NULL) {
    tell(run, run->sums.pulls, true);
  }
  for (size_t i = 0; i < run->step.wants; i++) {
    uint32_t missing;
    CV_TRY(play_want(run, i, &round, &gained, &missing));
    sums.pulls -= missing;
    sums.reward -= truth == NULL ? 0 : missing * truth[run->step.want[i].arm];
  }
  trial->total.paid_micro += sums.paid_micro;
  pass(run, sums.pulls, trial->game == NULL ? sums.reward : gained);
  trial->total.rounds++;
  return exhaust(run);
}

/* Plays the part of a plan that fits into the tokens left, its arms in turn. Nothing is released. */
static void play_part(struct run *run, uint64_t left) {
  struct cv_trial *trial = run->trial;
  /* Arms take turns, so the part gets its share of the reward. In a game sums.reward is 0, and play() adds the
   * gains. */
  double reward = run->sums.reward * (double)left / (double)run->sums.pulls;
  if (trial->game != NULL) {
    (void)play(run, run->step.want[0].arm, (uint32_t)left, trial->total.pulls, &reward);
  }
  if (trial->turns != NULL) {
    tell(run, left, false);
  }
  pass(run, left, reward);
}

/* After an elimination: plays the arm that it has found for the rest of the tokens. */
static void play_found(struct run *run, uint64_t left) {
  struct cv_trial *trial = run->trial;
  for (uint32_t i = 0; i < run->spec->arms; i++) {
    struct cv_standing standing;
    cv_policy_standing(run->policy, i, &standing);
    if (standing.rank_class == 1) {
      trial->pulls[i] += left;
      for (uint64_t n = 0; trial->turns != NULL && n < left; n++) {
        trial->turns->played[trial->total.pulls + n] = i;
      }
      pass(run, left, (double)left * trial->campaign->truth[i]);
      return;
    }
  }
}

static bool fits(const struct run *run, uint64_t left) {
  const struct cv_trial_totals *total = &run->trial->total;
  bool is_paid = run->spec->cost_micro == NULL || run->sums.paid_micro <= run->spec->budget_micro - total->paid_micro;
  return run->sums.pulls <= left && is_paid;
}

/* True if an arm of the plan has reached its mechanism's horizon, which ends a campaign. */
static bool is_spent(const struct run *run) {
  for (size_t i = 0; i < run->step.wants; i++) {
    if (cv_mechanism_is_spent(run->arm[run->step.want[i].arm].half[0].mechanism)) {
      return true;
    }
  }
  return false;
}

/* Whether the run ends before the present plan, which fits: for what `trial->end` says then. */
static bool is_cut(struct run *run) {
  struct cv_trial *trial = run->trial;
  if (trial->plans > 0 && trial->total.rounds == trial->plans) {
    trial->end = CV_TRIAL_PLANS;
  } else if (is_spent(run)) {
    trial->end = CV_TRIAL_HORIZON;
  } else if (trial->is_over != NULL && trial->is_over(trial->data)) {
    trial->end = CV_TRIAL_STOPPED;
  } else {
    return false;
  }
  return true;
}

/* Plays plans until the policy is done or its plan no longer fits. CV_ERR_LIMIT: an arm's data or horizon are used
 * up, or all plans that the trial may have. */
static enum cv_err run_plans(struct run *run, uint64_t *ret_left) {
  struct cv_trial *trial = run->trial;
  for (;;) {
    *ret_left = run->spec->tokens - trial->total.pulls;
    CV_TRY(cv_policy_step(run->policy, ++run->plan, &run->step));
    /* As by the broker, a plan that exceeds the money or the tokens left is refused as a whole; see run_to_end(). */
    run->sums = add_up(run, run->step.wants);
    trial->complete = run->step.done;
    trial->decided = trial->total.pulls;
    if (run->step.done || !fits(run, *ret_left)) {
      trial->end = run->step.done ? CV_TRIAL_COMPLETE : run->sums.pulls > *ret_left ? CV_TRIAL_LIMIT : CV_TRIAL_MONEY;
      return CV_OK;
    }
    if (is_cut(run)) {
      return CV_ERR_LIMIT;
    }
    CV_TRY(play_all(run));
  }
}

static enum cv_err run_to_end(struct run *run) {
  struct cv_trial *trial = run->trial;
  uint64_t left = 0;
  enum cv_err err = run_plans(run, &left);
  if (err != CV_OK && err != CV_ERR_LIMIT) {
    return err;
  }
  bool is_timed =
      !trial->as_deployed && (trial->campaign->kind == CV_POLICY_BANDIT || trial->campaign->kind == CV_POLICY_GRAPH);
  bool has_time = is_timed && err == CV_OK; /* after CV_ERR_LIMIT a deployed campaign ends, with tokens left */
  if (has_time && left > 0 && !trial->complete) {
    play_part(run, left);
  } else if (has_time && left > 0 && trial->game == NULL) {
    play_found(run, left);
  }
  cv_policy_close(run->policy);
  for (uint32_t i = 0; i < run->spec->arms; i++) {
    cv_policy_standing(run->policy, i, &trial->standing[i]);
    trial->end =
        trial->end == CV_TRIAL_COMPLETE && trial->standing[i].held == CV_HELD_USED_UP ? CV_TRIAL_USED_UP : trial->end;
    trial->lies[i] = cv_policy_lies(run->policy, i);
  }
  return CV_OK;
}

enum cv_err cv_trial_run(struct cv_trial *trial, struct cv_why *why) {
  struct run run = {.trial = trial, .spec = &trial->campaign->file.spec};
  run.brokers = run.spec->brokers == 0 ? 1 : run.spec->brokers;
  CV_REQUIRE(run.brokers <= CV_BROKERS_MAX);
  trial->total = (struct cv_trial_totals){0};
  trial->used_up = CV_TURNS_NO_ARM;
  enum cv_err err = init(&run, why);
  if (err == CV_OK) {
    err = run_to_end(&run);
  }
  /* Moments that the run never reached keep its final totals: regret stays where the campaign ended. */
  for (; err == CV_OK && run.moment < trial->moments; run.moment++) {
    trial->at[run.moment] = trial->total;
  }
  fini(&run);
  return err == CV_OK || why->text[0] != '\0' ? err : cv_fail(why, err, "%s", cv_err_text(err));
}

void cv_trial_fini(struct cv_trial *trial) {
  free(trial->standing);
  free(trial->lies);
  free(trial->pulls);
  free(trial->releases);
  trial->standing = NULL;
  trial->lies = NULL;
  trial->pulls = trial->releases = NULL;
}
