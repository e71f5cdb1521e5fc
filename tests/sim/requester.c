/* SPDX-License-Identifier: Apache-2.0 */
/* The requester: submits each campaign until it is accepted, watches it to its end, exports it. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/net.h"
#include "tests/sim/truth.h"
#include "tests/support/alloc_fault.h"

enum { TIMER_CANCEL };
enum stage { STAGE_SUBMIT, STAGE_WATCH, STAGE_EXPORT, STAGE_DONE };

struct self {
  uint32_t index; /* of the campaign, from 0, among its own */
  uint64_t id;
  enum stage stage;
};

static uint32_t number_of(const struct party *party) {
  return party->number - party->world->requester[0]->number;
}

/* Of the campaign that it is at, among all. */
static uint32_t owner_of(const struct party *party) {
  const struct self *self = party->self;
  return 1 + number_of(party) * party->world->scenario.campaigns + self->index;
}

static void send(struct party *party, struct cv_order_frame *frame) {
  struct world *world = party->world;
  if (!party->greeted) {
    frame->hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "requester"};
    party->greeted = true;
  }
  CV_REQUIRE(cv_order_encode(frame, &world->encoding, &world->bytes) == CV_OK);
  net_send(party->end, world->bytes.data, world->bytes.len);
  cv_buf_clear(&world->bytes);
}

static void ask(struct party *party) {
  struct self *self = party->self;
  struct cv_order_frame frame = {.kind = CV_ORDER_NONE};
  switch (self->stage) {
    case STAGE_SUBMIT:
      frame.kind = CV_ORDER_SUBMIT;
      truth_asking(party->world->truth, owner_of(party));
      memset(frame.as.submit.client_key, 17 + (int)self->index, CV_CLIENT_KEY_BYTES); /* each has keys of its own */
      scenario_spec(&party->world->scenario, &frame.as.submit.spec);
      break;
    case STAGE_WATCH:
    case STAGE_EXPORT:
      frame.kind = self->stage == STAGE_WATCH ? CV_ORDER_WATCH : CV_ORDER_EXPORT;
      frame.as.campaign = self->id;
      break;
    default:
      return;
  }
  send(party, &frame);
}

static void opened(struct party *party, struct end *end) {
  struct self *self = party->self;
  party_opened(party, end);
  self->stage = self->stage == STAGE_DONE ? STAGE_DONE : STAGE_SUBMIT;
  ask(party);
}

static void next_campaign(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  self->stage = STAGE_SUBMIT;
  if (self->index == world->scenario.campaigns / 4) {
    world->live_early = alloc_fault_live();
  }
  if (++self->index == party->world->scenario.campaigns) {
    self->stage = STAGE_DONE;
    world->live_late = alloc_fault_live();
    world->done |= 1U << number_of(party);
    world->finished = world->done == (1U << world->scenario.requesters) - 1;
    world_log(world, "%s: has everything", party->identity.name);
  }
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct self *self = party->self;
  struct world *world = party->world;
  struct cv_order_frame frame;
  CV_REQUIRE(cv_order_decode(bytes, n, &world->decoding, &frame) == CV_OK);
  if (frame.kind == CV_ORDER_ACCEPTED && self->stage == STAGE_SUBMIT) {
    truth_accepted(world->truth, owner_of(party), frame.as.accepted.campaign);
    self->id = frame.as.accepted.campaign;
    self->stage = STAGE_WATCH;
    ask(party);
  } else if (frame.kind == CV_ORDER_FINISHED && self->stage == STAGE_WATCH) {
    truth_finished(world->truth, &frame.as.finished);
    self->stage = STAGE_EXPORT;
    ask(party);
  } else if (frame.kind == CV_ORDER_PART && self->stage == STAGE_EXPORT) {
    truth_exported(world->truth, &frame.as.part);
    if (frame.as.part.last) {
      next_campaign(party);
      ask(party);
    }
  } else if (frame.kind == CV_ORDER_ERROR) {
    world_fail(world, "%s: the broker says: %s", party->identity.name, frame.as.error);
  }
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  if (party->end != NULL && self->stage == STAGE_WATCH) {
    struct cv_order_frame frame = {.kind = CV_ORDER_CANCEL, .as.campaign = self->id};
    send(party, &frame);
    return;
  }
  party_after(party, 50, TIMER_CANCEL);
}

static bool start(struct party *party, struct cv_why *why) {
  party_self_new(party, sizeof(struct self));
  if (party->world->scenario.ending == ENDING_CANCEL) {
    party_after(party, party->world->scenario.ending_ms, TIMER_CANCEL);
  }
  return true;
}

const struct party_ops party_requester = {
    .start = start, .stop = party_self_free, .opened = opened, .frame = frame, .closed = party_closed, .timer = timer};
