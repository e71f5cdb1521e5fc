/* SPDX-License-Identifier: Apache-2.0 */
/* Gold items: the answers of each worker, whom they find, and what fills a found worker's places. */
#include <math.h>
#include <stdlib.h>

#include "common/base/grid.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth_state.h"

void truth_make_room_for_golds(struct truth *truth) {
  for (uint32_t i = 0; i < truth->world->room; i++) {
    truth->campaign[i].golds = calloc(truth->workers, sizeof(*truth->campaign[i].golds));
    CV_REQUIRE(truth->campaign[i].golds != NULL);
  }
}

/* The average likelihood ratio of 16 alternatives to the honest error, by products instead of logarithms. */
static bool is_found(const struct cv_gold *gold, const struct golds *golds) {
  double q = gold->error_micro / 1e6, sum = 0;
  for (int i = 0; i < 16; i++) {
    double p = q + (1 - q) * (2 * i + 1) / 32;
    sum += pow(p / q, golds->wrong) * pow((1 - p) / (1 - q), golds->answers - golds->wrong);
  }
  return sum / 16 * gold->level_micro >= 1e6;
}

/* Runs while memory may run out: nothing is allocated. */
void truth_gold_answer(struct truth *truth, struct campaign *campaign, const struct cv_ticket *ticket, int64_t value) {
  const struct scenario *scenario = &truth->world->scenario;
  struct golds *golds = &campaign->golds[ticket->worker];
  struct cv_gold gold;
  scenario_gold(scenario, &gold);
  uint32_t index = scenario_arm(scenario, ticket->item) - scenario->arms;
  bool wrong = llabs(value - gold.item[index].answer) > gold.tolerance;
  golds->answers++;
  golds->wrong += wrong;
  golds->ever++;
  bool found = golds->found || is_found(&gold, golds);
  tally_add(TALLY_FOUND, found && !golds->found);
  tally(TALLY_GOLD);
  golds->found = found;
}

int64_t truth_gold_value(struct campaign *campaign, uint64_t worker, uint32_t arm, int64_t value) {
  campaign->neutral[arm].tokens += campaign->golds[worker].found;
  tally_add(TALLY_NEUTRAL, campaign->golds[worker].found);
  return campaign->golds[worker].found ? CV_GRID / 2 : value;
}

uint64_t truth_gold_answers(const struct truth *truth, const struct campaign *campaign) {
  uint64_t answers = 0;
  for (uint64_t worker = 1; campaign->golds != NULL && worker < truth->workers; worker++) {
    answers += campaign->golds[worker].answers;
  }
  return answers;
}

void truth_gold_most(const struct truth *truth, const struct campaign *campaign, uint64_t *least, uint64_t *most) {
  for (uint64_t worker = 1; campaign->golds != NULL && worker < truth->workers; worker++) {
    *least += campaign->golds[worker].acknowledged * scenario_cost(&truth->world->scenario);
    *most += campaign->golds[worker].ever * scenario_cost(&truth->world->scenario);
  }
}

/* The noise of each number is drawn once: a restart may lose the last batch's tokens, but it changes no noise, unless
 * it loses the campaign, too. */
static void check_neutral(struct truth *truth, const struct cv_broker_campaign *core, struct campaign *campaign,
                          bool again) {
  for (uint32_t arm = 0; core->gold.neutral != NULL && campaign->plans_stored > 0 && arm < core->spec.arms; arm++) {
    struct neutral *neutral = &campaign->neutral[arm];
    int64_t told = core->gold.neutral[arm], tokens = told - neutral->noise;
    if (!neutral->is_known) {
      *neutral = (struct neutral){.noise = told - neutral->tokens, .tokens = neutral->tokens, .is_known = true};
      continue;
    }
    if (again ? tokens < 0 || tokens > neutral->tokens : tokens != neutral->tokens) {
      world_fail(truth->world, "17: item %u has %lld neutral tokens beside its noise; expected %lld", arm,
                 (long long)tokens, (long long)neutral->tokens);
    }
    neutral->tokens = tokens;
  }
}

void truth_check_golds(struct truth *truth, struct cv_broker_campaign *core, struct campaign *campaign, bool again) {
  for (uint64_t worker = 1; campaign->golds != NULL && worker < truth->workers; worker++) {
    struct golds *golds = &campaign->golds[worker];
    const struct cv_chunk *chunk = cv_chunks_find(&core->gold.workers, worker / CV_CHUNK_CELLS);
    uint32_t cell = chunk == NULL ? 0 : chunk->as.cell[worker % CV_CHUNK_CELLS];
    uint32_t answers = cell >> 16 & 0x7fff, wrong = cell & 0xffff;
    bool found = cell >> 31 != 0;
    /* After a restart the last batch may be missing, but nothing that was acknowledged. */
    bool is_same = again ? answers <= golds->answers && wrong <= golds->wrong && answers >= golds->acknowledged &&
                               (golds->found || !found)
                         : answers == golds->answers && wrong == golds->wrong && found == golds->found;
    if (!is_same) {
      world_fail(truth->world,
                 "17: worker %llu has %u answers to gold items, %u wrong, found %d; expected %u, %u, %d, and %u "
                 "acknowledged",
                 (unsigned long long)worker, answers, wrong, found, golds->answers, golds->wrong, golds->found,
                 golds->acknowledged);
    }
    golds->answers = answers;
    golds->wrong = wrong;
    golds->found = found;
  }
  check_neutral(truth, core, campaign, again);
}
