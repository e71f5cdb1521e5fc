/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/parts.h"

#include <stdlib.h>

#include "tests/sim/tally.h"

enum { DENIED_PERCENT = 10 };

/* Between half of `part_rows` and all. */
uint64_t parts_rows(const struct scenario *scenario, uint32_t gateway, uint32_t arm) {
  uint64_t bits = cv_mix64(scenario->seed ^ (uint64_t)gateway << 32 ^ (uint64_t)arm << 40 ^ PARTS_PRINT);
  return scenario->part_rows - bits % (scenario->part_rows / 2 + 1);
}

uint64_t parts_row(const struct scenario *scenario, uint32_t gateway, uint32_t arm, uint64_t at) {
  return (parts_rows(scenario, gateway, arm) - 1 - at) * scenario->pools + gateway;
}

uint64_t *parts_taken(const struct world *world, uint32_t gateway, uint64_t campaign, uint32_t arm) {
  return &world->taken[(gateway * world->room + campaign) * SCENARIO_ARMS + arm];
}

void parts_add(struct world *world) {
  const struct scenario *scenario = &world->scenario;
  if (scenario->parts) {
    size_t n = (size_t)scenario->pools * world->room * SCENARIO_ARMS;
    world->taken = calloc(n, sizeof(*world->taken));
    CV_REQUIRE(world->taken != NULL);
    tally(TALLY_PARTS);
    tally_add(TALLY_PARTS_TWO, scenario->two);
    tally_add(TALLY_PARTS_LOCAL, scenario->applied.law.epsilon_micro != CV_EPSILON_NONE);
  }
}

/* ---- a gateway ---- */

static uint32_t number_of(const struct part *part) {
  return (uint32_t)(part->party->number - part->party->world->first_pool);
}

static uint64_t row(void *data, uint32_t arm, uint64_t place) {
  struct party *party = data;
  struct part *part = party->part;
  part->number = parts_row(&party->world->scenario, number_of(part), arm, place);
  return part->number;
}

enum cv_err part_score(const struct part *part, int64_t *ret_score) {
  const struct scenario *scenario = &part->party->world->scenario;
  if (part->at >= parts_rows(scenario, number_of(part), part->arm)) {
    tally(TALLY_PARTS_OUT);
    return CV_ERR_LIMIT;
  }
  *ret_score = world_score(scenario, part->arm, parts_row(scenario, number_of(part), part->arm, part->at));
  return CV_OK;
}

static enum cv_err serve(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                         uint64_t *ret_taken, struct cv_why *why) {
  struct part *part = data;
  struct world *world = part->party->world;
  if (terms->id >= world->room) {
    return cv_fail(why, CV_ERR_DENIED, "a campaign with a number that none has");
  }
  part->denied = !world->scenario.peaceful && world->calm_ms == 0 && world_chance(world, DENIED_PERCENT);
  tally_add(TALLY_PARTS_DENIED, part->denied);
  if (part->denied) {
    return cv_fail(why, CV_ERR_IO, "the record cannot be read");
  }
  for (uint32_t arm = 0; ret_taken != NULL && arm < work->arms; arm++) {
    ret_taken[arm] = *parts_taken(world, number_of(part), terms->id, arm);
    tally_add(TALLY_PARTS_AGAIN, ret_taken[arm] > 0);
  }
  return CV_OK;
}

static void take(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken) {
  const struct part *part = data;
  part->noted[terms->id * SCENARIO_ARMS + arm] = taken;
}

void part_start(struct part *part, struct party *party, struct cv_work *work) {
  const struct scenario *scenario = &party->world->scenario;
  *part = (struct part){.party = party, .record = {.serve = serve, .take = take, .data = part}};
  party->part = part;
  if (scenario->parts) {
    part->noted = calloc((size_t)party->world->room * SCENARIO_ARMS, sizeof(*part->noted));
    CV_REQUIRE(part->noted != NULL);
    work->print = PARTS_PRINT;
    work->is_part = true;
    work->scale = (struct cv_scale){.low = 0, .high = 1};
    work->row = row;
  }
}

bool part_redials(struct part *part) {
  bool redials = part->denied;
  part->denied = false;
  return redials;
}

void part_stop(struct part *part) {
  free(part->noted);
}

void part_keep(struct part *part) {
  const struct world *world = part->party->world;
  for (uint32_t id = 0; part->noted != NULL && id < world->room; id++) {
    for (uint32_t arm = 0; arm < SCENARIO_ARMS; arm++) {
      uint64_t *noted = &part->noted[id * SCENARIO_ARMS + arm];
      if (*noted > 0) {
        *parts_taken(world, number_of(part), id, arm) = *noted;
        *noted = 0;
      }
    }
  }
}
