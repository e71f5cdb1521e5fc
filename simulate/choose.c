/* SPDX-License-Identifier: Apache-2.0 */
#include "simulate/choose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/mechanism/mechanism.h"
#include "common/campaign/complete.h"
#include "common/campaign/worth.h"
#include "simulate/candidates.h"
#include "simulate/guess.h"
#include "simulate/instance.h"
#include "simulate/trial.h"
#include "worker/quality/truth.h"

enum {
  ITEMS_MAX = 20,
  ITEMS_MAX_REGRET = 10,
  TOKENS_MAX = 20000, /* pulls one at a time, and hires */
  PLANS_MAX = 2000,
  FIRST = 4, /* instances for every candidate, and for the best */
  BEST = 4,
  ALL = 20,
};

static const uint64_t SEED = 20260101;

/* The scores of a candidate, by instance: smaller is better. */
struct result {
  const struct cv_candidate *candidate;
  double score[ALL];
  uint32_t count;
};

/* What all simulations share: the campaign, complete, and the size of its smaller copy. */
struct asked {
  struct cv_campaign_file campaign;
  struct cv_score_source source;
  enum cv_goal goal;
  uint32_t arms;
  uint64_t tokens, budget_micro;
};

static bool counts_tokens(enum cv_goal goal) {
  return goal == CV_GOAL_CLASSES || goal == CV_GOAL_BEST;
}

static bool is_regret(enum cv_goal goal) {
  return goal == CV_GOAL_REGRET || goal == CV_GOAL_GAINS || goal == CV_GOAL_GRAPH;
}

/* ---- the smaller copy ---- */

static void set_size(struct asked *asked) {
  const struct cv_spec *spec = &asked->campaign.spec;
  uint32_t most = is_regret(asked->goal) ? ITEMS_MAX_REGRET : ITEMS_MAX;
  asked->arms = asked->goal != CV_GOAL_GAINS && spec->arms > most ? most : spec->arms;
  double share = (double)asked->arms / spec->arms;
  asked->tokens = (uint64_t)ceil((double)spec->tokens * share);
  if (is_regret(asked->goal) && asked->tokens > TOKENS_MAX) {
    asked->tokens = TOKENS_MAX;
  }
  asked->budget_micro = (uint64_t)ceil((double)spec->budget_micro * share);
  uint64_t cheapest = UINT64_MAX;
  for (uint32_t i = 0; i < asked->arms && spec->cost_micro != NULL; i++) {
    cheapest = spec->cost_micro[i] < cheapest ? spec->cost_micro[i] : cheapest;
  }
  if (asked->budget_micro / TOKENS_MAX > cheapest) {
    asked->budget_micro = cheapest * TOKENS_MAX;
  }
}

/* The edges whose ends are both in the copy. */
static void keep_edges(struct cv_spec *spec, uint32_t arms) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < spec->edges; i++) {
    if (spec->edge[i].b < arms) {
      spec->edge[kept++] = spec->edge[i];
    }
  }
  spec->edges = kept;
  if (kept == 0) {
    free(spec->edge);
    spec->edge = NULL;
  }
}

/* The law of the simulated scores: that of the campaign's, or bits. */
static struct cv_items_law law_of(const struct cv_items *items) {
  const struct cv_items_law *law = cv_items_law(items);
  return law != NULL ? *law : (struct cv_items_law){.rewards = CV_REWARDS_BERNOULLI};
}

/* Means of an instance; qualities of workers are uniform. */
static void draw_means(const struct cv_items *items, uint64_t seed, uint32_t arms, double *ret) {
  struct cv_guess guess = CV_GUESS_USUAL;
  if (items->source == CV_SOURCE_SYNTHETIC) {
    guess = (struct cv_guess){.mean = items->synthetic.mean, .spread = sqrt(items->synthetic.variance)};
  }
  if (!items->are_paid) {
    cv_guess_draw(&guess, seed, arms, ret);
  }
  for (uint32_t i = 0; i < arms && items->are_paid; i++) {
    struct cv_rng_seeded rng;
    cv_rng_seeded_init(&rng, seed, CV_RNG_INSTANCE, i, 1);
    ret[i] = fmin(fmax(cv_rng_unit(&rng.rng), CV_GUESS_LOW), CV_GUESS_HIGH);
  }
}

/* Items with drawn means, whose costs are those of the campaign. */
static enum cv_err draw_items(const struct asked *asked, uint64_t seed, struct cv_items *ret) {
  struct cv_instance_items items = {
      .count = asked->arms, .law = law_of(&asked->campaign.items), .cost_micro = asked->source.cost_micro};
  struct cv_quality_item *item = calloc(asked->arms, sizeof(*item));
  double *means = calloc(asked->arms, sizeof(*means));
  enum cv_err err = item == NULL || means == NULL ? CV_ERR_NOMEM : CV_OK;
  if (err == CV_OK) {
    draw_means(&asked->campaign.items, seed, asked->arms, means);
    for (uint32_t i = 0; i < asked->arms; i++) {
      item[i] = (struct cv_quality_item){.mean = means[i], .spread = items.law.spread};
    }
    items.item = item;
    err = cv_instance_items(&items, ret);
  }
  free(item);
  free(means);
  return err;
}

/* Scores of rows that are used once have a law of their own. */
static enum cv_err say_drawn_once(const struct asked *asked, struct cv_choice *policy) {
  const struct cv_policy_class *class = cv_policy_find(policy->name);
  const struct cv_items *items = &asked->campaign.items;
  bool once = items->source == CV_SOURCE_CSV && !items->csv.replacement && class->once_key != NULL;
  return once ? cv_params_set_text(&policy->params, class->once_key, class->once_word) : CV_OK;
}

/* A campaign file in memory: the settings, the candidate, and an instance. */
static enum cv_err make_copy(const struct asked *asked, const struct cv_candidate *candidate, uint64_t seed,
                             struct cv_campaign_file *ret) {
  struct cv_campaign_file copy;
  CV_TRY(cv_instance_file(asked->campaign.path, &asked->campaign.spec, &copy));
  struct cv_spec *spec = &copy.spec;
  spec->tokens = asked->tokens;
  spec->budget_micro = asked->budget_micro;
  keep_edges(spec, asked->arms);
  spec->policy = candidate->policy;
  spec->mechanism = candidate->mechanism;
  enum cv_err err = say_drawn_once(asked, &spec->policy);
  if (err == CV_OK && asked->goal == CV_GOAL_GAINS) {
    copy.items = asked->campaign.items; /* an adversary's settings; nothing in them is owned */
  } else if (err == CV_OK) {
    err = draw_items(asked, seed, &copy.items);
  }
  if (err != CV_OK) {
    cv_campaign_fini(&copy);
    return err;
  }
  *ret = copy;
  return CV_OK;
}

/* ---- one simulation ---- */

/* Items without a class or in a wrong one. */
static enum cv_err count_wrong(const struct cv_prepared *prepared, const struct cv_trial *trial, enum cv_goal goal,
                               uint32_t *ret) {
  uint32_t arms = prepared->file.spec.arms, wrong = 0;
  uint32_t *truth = calloc(arms, sizeof(*truth));
  if (truth == NULL) {
    return CV_ERR_NOMEM;
  }
  if (goal == CV_GOAL_CLASSES) {
    double alpha = cv_params_number(&prepared->file.spec.policy.params, "alpha");
    (void)cv_truth_classes(prepared->truth, arms, alpha, truth);
  } else { /* class 1: still in the running */
    const struct cv_worth worth = {.arms = arms, .mean = prepared->truth, .tokens = prepared->file.spec.tokens};
    for (uint32_t i = 0; i < arms; i++) {
      truth[i] = prepared->truth[i] >= prepared->truth[cv_worth_best(&worth)] ? 1 : 2;
    }
  }
  for (uint32_t i = 0; i < arms; i++) {
    const struct cv_standing *found = &trial->standing[i];
    wrong += found->held != CV_HELD_NO || found->rank_class != truth[i];
  }
  free(truth);
  *ret = wrong;
  return CV_OK;
}

static enum cv_err score(const struct asked *asked, const struct cv_prepared *prepared, const struct cv_trial *trial,
                         double *ret) {
  const struct cv_spec *spec = &prepared->file.spec;
  const struct cv_worth worth = {.arms = spec->arms,
                                 .mean = prepared->truth,
                                 .cost_micro = spec->cost_micro,
                                 .budget_micro = spec->budget_micro,
                                 .tokens = spec->tokens};
  if (counts_tokens(asked->goal)) {
    uint32_t wrong = 0;
    CV_TRY(count_wrong(prepared, trial, asked->goal, &wrong));
    bool right = trial->complete && wrong == 0;
    *ret = right ? (double)trial->decided : (double)spec->tokens * (1 + (double)wrong / spec->arms);
  } else if (asked->goal == CV_GOAL_HIRES) {
    *ret = 1 - trial->total.reward / cv_worth_reward(&worth);
  } else {
    double best = trial->game != NULL ? cv_game_best(trial->game, trial->total.pulls)
                                      : (double)trial->total.pulls * worth.mean[cv_worth_best(&worth)];
    /* What a campaign that ends early does not pull, it loses. */
    *ret = (best - trial->total.reward) * (double)spec->tokens / fmax(1, (double)trial->total.pulls);
  }
  return CV_OK;
}

static enum cv_err simulate(const struct asked *asked, const struct cv_candidate *candidate, uint64_t seed,
                            struct cv_game *game, double *ret, struct cv_why *why) {
  struct cv_campaign_file copy;
  struct cv_prepared prepared;
  enum cv_err err = make_copy(asked, candidate, seed, &copy);
  if (err != CV_OK) {
    return cv_fail(why, err, "%s", cv_err_text(err));
  }
  CV_TRY(cv_prepare_campaign(&copy, seed, &prepared, why));
  struct cv_trial trial = {.campaign = &prepared, .seed = seed, .plans = counts_tokens(asked->goal) ? PLANS_MAX : 0};
  const struct cv_adversary *adversary = cv_quality_adversary(prepared.source.quality);
  if (adversary != NULL) {
    err = cv_game_set(game, adversary, prepared.file.spec.tokens, why);
    trial.game = game;
  }
  if (err == CV_OK) {
    err = cv_trial_run(&trial, why);
  }
  if (err == CV_OK) {
    err = score(asked, &prepared, &trial, ret);
  }
  cv_trial_fini(&trial);
  cv_prepared_fini(&prepared);
  return err;
}

/* ---- all candidates ---- */

static double mean_of(const struct asked *asked, const struct result *result) {
  double sum = 0;
  for (uint32_t i = 0; i < result->count; i++) {
    sum += counts_tokens(asked->goal) ? log(fmax(result->score[i], 1)) : result->score[i];
  }
  return counts_tokens(asked->goal) ? exp(sum / result->count) : sum / result->count;
}

/* The mean over the same instances for all: the first ones. */
static double first_mean(const struct asked *asked, const struct result *result, uint32_t count) {
  struct result first = *result;
  first.count = count;
  return mean_of(asked, &first);
}

/* The candidate with the `place`-th smallest mean moves to that place; equal ones keep their order. */
static void sort(const struct asked *asked, struct result *result, uint32_t n, uint32_t count) {
  for (uint32_t i = 1; i < n; i++) {
    for (uint32_t j = i; j > 0 && first_mean(asked, &result[j], count) < first_mean(asked, &result[j - 1], count);
         j--) {
      struct result other = result[j];
      result[j] = result[j - 1];
      result[j - 1] = other;
    }
  }
}

static enum cv_err run_more(const struct asked *asked, struct result *result, uint32_t n, uint32_t until,
                            struct cv_game *game, struct cv_why *why) {
  for (uint32_t instance = result[0].count; instance < until; instance++) { /* candidates share an instance's game */
    for (uint32_t i = 0; i < n; i++) {
      CV_TRY(simulate(asked, result[i].candidate, SEED + instance, game, &result[i].score[instance], why));
      result[i].count = instance + 1;
    }
  }
  return CV_OK;
}

static enum cv_err race(const struct asked *asked, const struct cv_candidates *candidates, struct result *result,
                        struct cv_why *why) {
  uint32_t n = candidates->count, best = n < BEST ? n : BEST;
  struct cv_game game = {0};
  for (uint32_t i = 0; i < n; i++) {
    result[i] = (struct result){.candidate = &candidates->candidate[i]};
  }
  enum cv_err err = n == 1 ? CV_OK : run_more(asked, result, n, FIRST, &game, why);
  if (err == CV_OK && n > 1) {
    sort(asked, result, n, FIRST);
    err = run_more(asked, result, best, ALL, &game, why);
  }
  if (err == CV_OK && n > 1) {
    sort(asked, result, best, ALL);
  }
  cv_game_fini(&game);
  return err;
}

/* ---- the line ---- */

/* To three digits. */
static double rounded(double value) {
  double unit = value < 1000 ? 1 : pow(10, floor(log10(value)) - 2);
  return round(value / unit) * unit;
}

static void print_score(const struct asked *asked, const struct result *result, char to[64]) {
  double mean = mean_of(asked, result);
  if (counts_tokens(asked->goal)) {
    double most = (double)asked->tokens;
    (void)snprintf(to, 64, mean >= most ? "no end within %.0f tokens" : "%.0f tokens", rounded(fmin(mean, most)));
  } else if (asked->goal == CV_GOAL_HIRES) {
    (void)snprintf(to, 64, "%.1f %% of the best reward", 100 * (1 - mean));
  } else {
    (void)snprintf(to, 64, "regret %.0f in %.0f tokens", rounded(mean), (double)asked->tokens);
  }
}

static void print_choice(const struct asked *asked, const struct result *result, uint32_t n, struct cv_chosen *ret) {
  char best[64], next[64];
  const struct cv_candidate *first = result[0].candidate;
  if (n == 1) {
    (void)snprintf(ret->text, sizeof(ret->text), "policy %s, mechanism %s: the only ones that fit", first->policy.name,
                   first->mechanism.name);
    return;
  }
  print_score(asked, &result[0], best);
  uint32_t other = 1; /* not one whose noise has the same law */
  while (other + 1 < n && other + 1 < BEST && mean_of(asked, &result[other]) <= mean_of(asked, &result[0])) {
    other++;
  }
  print_score(asked, &result[other], next);
  (void)snprintf(ret->text, sizeof(ret->text),
                 "policy %s, mechanism %s: %s; next %s, %s: %s (%d simulations of %u items with guessed scores)",
                 first->policy.name, first->mechanism.name, best, result[other].candidate->policy.name,
                 result[other].candidate->mechanism.name, next, ALL, asked->arms);
}

/* ---- the choice ---- */

/* Completes the settings without policy and mechanism. */
static enum cv_err ask(const char *path, uint64_t seed, struct asked *ret, struct cv_why *why) {
  struct asked asked = {0};
  CV_TRY(cv_campaign_load(path, &asked.campaign, why));
  struct cv_campaign_file *file = &asked.campaign;
  uint64_t own = seed != CV_SEED_NONE ? seed : file->items.has_seed ? file->items.seed : SEED;
  enum cv_err err = cv_score_source_init(&asked.source, file, own, why);
  if (err == CV_OK) {
    const struct cv_campaign_arms arms = {.arms = asked.source.items,
                                          .name = asked.source.name,
                                          .worker = asked.source.worker,
                                          .cost_micro = asked.source.cost_micro,
                                          .requests = asked.source.requests};
    const struct cv_choice mechanism = file->spec.mechanism;
    if (cv_campaign_is_auto(&mechanism) && file->spec.epsilon_micro == 0) { /* chosen among those without noise */
      (void)snprintf(file->spec.mechanism.name, sizeof(file->spec.mechanism.name), "none");
    }
    err = cv_campaign_complete(file, &arms, own, why);
    file->spec.mechanism = mechanism;
  }
  if (err != CV_OK) {
    cv_score_source_fini(&asked.source);
    cv_campaign_fini(file);
    return err;
  }
  *ret = asked;
  return CV_OK;
}

/* Names the best candidate in `policy` and `mechanism`. */
static enum cv_err choose(struct asked *asked, struct cv_choice *policy, struct cv_choice *mechanism,
                          struct cv_chosen *ret_chosen, struct cv_why *why) {
  struct cv_candidates *candidates = calloc(1, sizeof(*candidates));
  struct result *result = calloc(CV_CANDIDATES_MAX, sizeof(*result));
  enum cv_err err = candidates == NULL || result == NULL ? cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM))
                                                         : cv_candidates_list(&asked->campaign, candidates, why);
  if (err == CV_OK) {
    asked->goal = candidates->goal;
    set_size(asked);
    err = race(asked, candidates, result, why);
  }
  if (err == CV_OK) {
    *policy = cv_candidate_named(&asked->campaign, result[0].candidate);
    *mechanism = result[0].candidate->mechanism;
    print_choice(asked, result, candidates->count, ret_chosen);
  }
  free(candidates);
  free(result);
  return err;
}

/* What the broker would refuse for its own tables: an unknown mechanism or privatizer, or a wrong parameter of one. */
static enum cv_err check_privacy(const struct cv_campaign_file *file, struct cv_why *why) {
  /* A copy is completed: the broker completes the spec itself. */
  struct cv_choice mechanism = file->spec.mechanism;
  struct cv_mechanism_law law;
  struct cv_local local;
  enum cv_err err = cv_mechanism_law_init(&mechanism, file->spec.epsilon_micro, file->spec.tokens, &law, why);
  if (err == CV_OK) {
    err = cv_local_init(&file->spec.privatizer, file->spec.arms, &local, why);
  }
  if (err != CV_OK) {
    cv_why_prefix(why, "%s:%u", file->path, file->privacy_line);
  }
  return err;
}

enum cv_err cv_choose_prepare(const char *path, uint64_t seed, uint32_t brokers, struct cv_prepared *ret,
                              struct cv_chosen *ret_chosen, struct cv_why *why) {
  struct cv_campaign_file file;
  ret_chosen->text[0] = '\0';
  CV_TRY(cv_campaign_load(path, &file, why));
  if (brokers != 0) {
    file.spec.brokers = brokers == 2 ? 2 : 0;
    file.spec.score_bits = file.spec.brokers == 2 ? file.spec.score_bits : 0;
  }
  if (cv_campaign_is_auto(&file.spec.policy) || cv_campaign_is_auto(&file.spec.mechanism)) {
    struct asked asked;
    enum cv_err err = ask(path, seed, &asked, why);
    if (err == CV_OK) {
      err = choose(&asked, &file.spec.policy, &file.spec.mechanism, ret_chosen, why);
      cv_score_source_fini(&asked.source);
      cv_campaign_fini(&asked.campaign);
    }
    if (err != CV_OK) {
      cv_campaign_fini(&file);
      return err;
    }
  }
  CV_TRY(cv_prepare_file(&file, seed, ret, why));
  enum cv_err err = check_privacy(&ret->file, why);
  if (err != CV_OK) {
    cv_prepared_fini(ret);
  }
  return err;
}
