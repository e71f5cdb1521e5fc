/* SPDX-License-Identifier: Apache-2.0 */
/* The requester: submits each campaign until it is accepted, watches it to its end and exports it. Some requesters
 * then export the campaign before it again, and some of those purge it. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/net.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"
#include "tests/support/alloc_fault.h"

enum { TIMER_CANCEL, AGAIN_MS = 500 /* after a lie a campaign may go on for ever, and a request may be lost */ };
enum stage { STAGE_SUBMIT, STAGE_WATCH, STAGE_EXPORT, STAGE_PURGE, STAGE_GONE, STAGE_DONE };

struct self {
  uint32_t index; /* number of the campaign among its own, from 0 */
  uint64_t id;
  enum stage stage;
  bool described;   /* since it began to watch */
  bool back;        /* `id` is the campaign before */
  uint64_t earlier; /* the campaign before, if it is known; 0 = not */
};

static uint32_t number_of(const struct party *party) {
  return party->number - party->world->requester[0]->number;
}

/* The number of the current campaign among those of all requesters. */
static uint32_t owner_of(const struct party *party) {
  const struct self *self = party->self;
  return 1 + number_of(party) * party->world->scenario.campaigns + self->index;
}

static void send(struct party *party, struct cv_order_frame *frame) {
  if (!party->greeted) {
    frame->hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "requester"};
    party->greeted = true;
  }
  net_send_frame(party->end, &CV_ORDER_WIRE, frame);
}

static void ask(struct party *party) {
  struct self *self = party->self;
  struct cv_order_frame frame = {.kind = CV_ORDER_NONE};
  switch (self->stage) {
    case STAGE_SUBMIT:
      frame.kind = CV_ORDER_SUBMIT;
      truth_asking(party->world->truth, owner_of(party));
      memset(frame.as.submit.client_key, 17 + (int)self->index, CV_CLIENT_KEY_BYTES); /* no two alike */
      scenario_spec(&party->world->scenario, &frame.as.submit.spec);
      scenario_gold(&party->world->scenario, &frame.as.submit.gold);
      break;
    case STAGE_WATCH:
      frame.kind = CV_ORDER_WATCH;
      frame.as.watch.campaign = self->id;
      frame.as.watch.describe = frame.as.watch.standings = true;
      self->described = false;
      break;
    case STAGE_PURGE:
      frame.kind = CV_ORDER_PURGE;
      frame.as.campaign = self->id;
      truth_purging(party->world->truth, self->id);
      break;
    case STAGE_GONE:
    case STAGE_EXPORT:
      frame.kind = CV_ORDER_EXPORT;
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
  self->back = false;
  ask(party);
}

static void next_campaign(struct party *party) {
  struct self *self = party->self;
  struct world *world = party->world;
  self->earlier = self->back ? self->earlier : self->id;
  self->back = false;
  self->stage = STAGE_SUBMIT;
  if (self->index == world->scenario.campaigns / 4) {
    world->live_early = alloc_fault_live();
  }
  if (++self->index == party->world->scenario.campaigns) {
    self->stage = STAGE_DONE;
    world->live_late = alloc_fault_live();
    world->done |= 1U << number_of(party);
    world->finished = world->done == (1U << world->scenario.requesters) - 1;
    world_log(world, "%s: has all results", party->identity.name);
  }
}

/* It has received all of the current campaign. */
static void go_on(struct party *party) {
  struct self *self = party->self;
  const struct scenario *scenario = &party->world->scenario;
  if (!self->back && scenario->looks_back && self->earlier != 0 && self->earlier != self->id) {
    uint64_t id = self->id;
    self->id = self->earlier;
    self->earlier = id;
    self->back = true;
    self->stage = STAGE_WATCH;
  } else if (self->back && scenario->purges && self->stage == STAGE_EXPORT) {
    self->stage = STAGE_PURGE;
  } else {
    next_campaign(party);
  }
  ask(party);
}

/* Only a campaign that was purged, or forgotten for a newer one, may be missing. */
static void missed(struct party *party, const char *text) {
  struct self *self = party->self;
  if (self->back && party->world->scenario.kept > 0 && strstr(text, "no campaign") != NULL) {
    next_campaign(party);
    ask(party);
    return;
  }
  if (strstr(text, "was purged") == NULL) {
    world_fail(party->world, "%s: the broker says: %s", party->identity.name, text);
    return;
  }
  truth_gone(party->world->truth, self->id);
  tally_add(TALLY_GONE, self->stage == STAGE_GONE);
  next_campaign(party);
  ask(party);
}

/* The description must equal what was submitted, except for the mechanism's parameters and the smallest release, which
 * the broker fills in;
 * it comes before any other answer. */
static void described(struct party *party, const struct cv_description *description) {
  struct self *self = party->self;
  struct cv_spec spec, theirs = description->spec;
  struct cv_buf submitted = {0}, told = {0};
  scenario_accepted(&party->world->scenario, &spec);
  spec.mechanism.params = theirs.mechanism.params = (struct cv_params){0};
  cv_spec_encode(&spec, &submitted);
  cv_spec_encode(&theirs, &told);
  CV_REQUIRE(cv_buf_ok(&submitted) && cv_buf_ok(&told));
  if (description->campaign != self->id || submitted.len != told.len ||
      memcmp(submitted.data, told.data, told.len) != 0) {
    world_fail(party->world, "campaign %llu is described otherwise than it was submitted",
               (unsigned long long)self->id);
  }
  cv_buf_fini(&submitted);
  cv_buf_fini(&told);
  self->described = true;
}

/* The standings are those of the campaign's arms, and come after its description. */
static void stood(struct party *party, const struct cv_standings *standings) {
  struct self *self = party->self;
  struct cv_spec spec;
  scenario_spec(&party->world->scenario, &spec);
  bool fits = self->described && standings->campaign == self->id && standings->standings == spec.arms;
  for (uint32_t i = 0; fits && i < standings->standings; i++) {
    fits = standings->standing[i].arm == i;
  }
  if (!fits) {
    world_fail(party->world, "%s: campaign %llu has standings that do not fit its description", party->identity.name,
               (unsigned long long)self->id);
  }
  tally_add(TALLY_STANDINGS, true);
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
  } else if (frame.kind == CV_ORDER_DESCRIPTION) {
    described(party, &frame.as.description);
  } else if (frame.kind == CV_ORDER_STANDINGS) {
    stood(party, &frame.as.standings);
  } else if (frame.kind == CV_ORDER_PROGRESS && !self->described) {
    world_fail(world, "%s: progress comes before the campaign is described", party->identity.name);
  } else if (frame.kind == CV_ORDER_FINISHED && self->stage == STAGE_WATCH) {
    truth_finished(world->truth, &frame.as.finished);
    self->stage = STAGE_EXPORT;
    ask(party);
  } else if (frame.kind == CV_ORDER_PART && self->stage == STAGE_EXPORT) {
    truth_exported(world->truth, &frame.as.part);
    if (frame.as.part.last) {
      go_on(party);
    }
  } else if (frame.kind == CV_ORDER_PART && self->stage == STAGE_GONE && !world->rolled_back) {
    world_fail(world, "15: campaign %llu was purged and is exported", (unsigned long long)self->id);
  } else if (frame.kind == CV_ORDER_PURGED && self->stage == STAGE_PURGE) {
    truth_purged(world->truth, self->id);
    self->stage = STAGE_GONE;
    ask(party);
  } else if (frame.kind == CV_ORDER_ERROR) {
    missed(party, frame.as.error);
  }
}

static void timer(struct party *party, int which) {
  struct self *self = party->self;
  if (party->end != NULL && self->stage == STAGE_WATCH) {
    struct cv_order_frame frame = {.kind = CV_ORDER_CANCEL, .as.campaign = self->id};
    send(party, &frame);
    if (party->world->scenario.lie == LIE_NONE) {
      return;
    }
  }
  party_after(party, party->world->scenario.lie == LIE_NONE ? 50 : AGAIN_MS, TIMER_CANCEL);
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
