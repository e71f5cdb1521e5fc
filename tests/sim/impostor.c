/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A third-party of another name, to which the broker is connected for short periods. It never opens a campaign. It
 * sends messages about campaigns that another third-party has opened: it must receive nothing about them, and they must
 * go on.
 */
#include "tests/sim/net.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

enum { TIMER_ACT, ACT_MS = 60, PATIENCE = 5 };

struct self {
  struct end *end; /* NULL: the broker is not connected */
  uint32_t acts;   /* on this connection */
};

static void send(struct party *party, const struct cv_rank_frame *frame) {
  const struct self *self = party->self;
  net_send_frame(self->end, &CV_RANK_WIRE, frame);
}

/* A message about a campaign of another third-party. */
static void lie(struct party *party, uint64_t campaign) {
  struct cv_want want = {.arm = 0, .tokens = 1};
  const struct cv_rank_plan plan = {.campaign = campaign,
                                    .plan = {.number = 1 + world_below(party->world, 3), .wants = 1, .want = &want}};
  const struct cv_rank_result result = {.campaign = campaign, .reason = CV_END_COMPLETE};
  const struct cv_rank_number ack = {.campaign = campaign, .number = 1 + world_below(party->world, 100)};
  const struct cv_rank_opened opened = {.position.campaign = campaign, .seed = 1};
  struct cv_rank_frame frame = {.plan = (struct cv_rank_plan *)(uintptr_t)&plan,
                                .result = (struct cv_rank_result *)(uintptr_t)&result,
                                .ack = (struct cv_rank_number *)(uintptr_t)&ack,
                                .answer = (struct cv_rank_opened *)(uintptr_t)&opened};
  uint64_t which = world_below(party->world, 4);
  frame.plans = which == 0;
  frame.results = which == 1;
  frame.acks = which == 2;
  frame.opened = which == 3;
  tally(TALLY_IMPOSED);
  send(party, &frame);
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  party_after(party, ACT_MS, TIMER_ACT);
  if (self->end == NULL || !self->end->open) {
    return;
  }
  uint64_t campaign = truth_opened(party->world->truth, world_below(party->world, 16));
  if (++self->acts > PATIENCE || party->world->calm_ms != 0) {
    net_close(self->end);
    self->end = NULL;
  } else if (campaign > 0 && !party->world->rolled_back && world_chance(party->world, 40)) {
    lie(party, campaign);
  }
}

static bool start(struct party *party, struct cv_why *why) {
  party_self_new(party, sizeof(struct self));
  party_after(party, ACT_MS, TIMER_ACT);
  return true;
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  if (self->end != NULL) { /* another broker's */
    net_close(self->end);
  }
  *self = (struct self){.end = end};
  send(party, &(struct cv_rank_frame){.hello = {.present = true, .version = CV_WIRE_VERSION, .program = "impostor"}});
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct cv_rank_frame frame;
  CV_REQUIRE(cv_rank_decode(bytes, n, &party->world->decoding, &frame) == CV_OK);
}

static void closed(struct party *party, struct end *end) {
  struct self *self = party->self;
  self->end = self->end == end ? NULL : self->end;
}

const struct party_ops party_impostor = {
    .start = start, .stop = party_self_free, .opened = opened, .frame = frame, .closed = closed, .timer = timer};
