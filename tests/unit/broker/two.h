/* SPDX-License-Identifier: Apache-2.0 */
/* A world with two brokers: a small campaign. Include after cmocka.h. */
#ifndef CV_TESTS_BROKER_TWO_H
#define CV_TESTS_BROKER_TWO_H

#include "broker/campaign.h"
#include "broker/docket.h"
#include "broker/two.h"

#define WORLD_TWO   true
#define WORLD_PLANS 3
#define WORLD_TAU   20
#include "tests/unit/broker/world.h"

static inline struct cv_broker_campaign *campaign_of(struct world *world) {
  return cv_broker_campaign_find(world->core, 1);
}

static inline enum cv_end end_of(struct world *world) {
  const struct cv_ended *ended = cv_archive_find(&world->core->archive, 1);
  return ended == NULL ? CV_END_NONE : ended->progress.end;
}

/* A turn after some workers have come. */
static inline void work(struct world *world, unsigned turns) {
  for (unsigned i = 0; i < turns; i++) {
    arrive(world, 3);
    world->now_ms += 10;
    cv_broker_tick(world->core, world->now_ms, world->now_ms);
    (void)turn(world, false);
  }
}

/* A campaign with an open plan; no token has been sent. */
static inline void begin(struct world *world) {
  world_make(world);
  submit(world);
  for (int i = 0; i < 10 && world->thirdparty.plans == 0; i++) {
    (void)turn(world, false);
  }
  assert_int_equal(world->thirdparty.plans, 1);
}

#endif
