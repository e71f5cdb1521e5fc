/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile requester: it asks for campaigns of other requesters, submits invalid campaigns, sends messages that only a
 * broker may send, too many requests at once, and frames with changed bytes. It must receive errors and nothing else.
 */
#include <string.h>

#include "tests/sim/fuzz.h"
#include "tests/sim/net.h"
#include "tests/sim/tally.h"
#include "tests/sim/truth.h"

enum { TIMER_ACT, ACT_MS = 70, REQUESTS = 3 };

/* Makes the campaign invalid: in every way at once if its bytes are to be changed, since a change might undo a
 * single fault. */
static void spoil(struct world *world, struct cv_spec *spec, bool thoroughly) {
  uint64_t what = world_below(world, 6);
  if (thoroughly || what == 0) {
    spec->epsilon_micro = UINT64_C(1) << 40; /* too large, and without a privatizer that would suffice alone */
    spec->privatizer = (struct cv_choice){.name = "none"};
  }
  if (thoroughly || what == 1) {
    spec->arms = SCENARIO_ARMS + 1;
  }
  if (thoroughly || what == 2) {
    spec->mechanism.name[0] = '?';
  }
  if (thoroughly || what == 3) {
    spec->tokens = UINT64_C(1) << 40;
  }
  if (what == 4) { /* nearly every score unchanged */
    spec->privatizer = (struct cv_choice){.name = "randomized-response"};
    CV_REQUIRE(cv_params_set_number(&spec->privatizer.params, "epsilon", 1e-6) == CV_OK &&
               cv_params_set_number(&spec->privatizer.params, "delta", 0.999999) == CV_OK);
  }
  if (what == 5) { /* every score unchanged, for an untrusted third-party */
    spec->privatizer = spec->mechanism = (struct cv_choice){.name = "none"};
    spec->thirdparty_trusted = false;
  }
}

static void choose_order(struct world *world, struct cv_order_frame *frame, bool fuzz) {
  static const enum cv_order_kind kinds[] = {CV_ORDER_WATCH,  CV_ORDER_CANCEL, CV_ORDER_EXPORT,
                                             CV_ORDER_SUBMIT, CV_ORDER_STATUS, CV_ORDER_PURGE};
  frame->kind = kinds[world_below(world, CV_COUNT(kinds))];
  if (frame->kind != CV_ORDER_SUBMIT) {
    uint64_t campaign = world_below(world, 4); /* 0: its newest */
    campaign += frame->kind == CV_ORDER_PURGE; /* 0 would purge all of its own, and it has none */
    if (frame->kind == CV_ORDER_WATCH) {
      frame->as.watch.campaign = campaign;
      frame->as.watch.describe = frame->as.watch.standings = true;
    } else {
      frame->as.campaign = campaign;
    }
    return;
  }
  memset(frame->as.submit.client_key, 17, CV_CLIENT_KEY_BYTES); /* the keys that the honest requesters use first */
  scenario_spec(&world->scenario, &frame->as.submit.spec);
  spoil(world, &frame->as.submit.spec, fuzz);
}

static void act(struct party *party) {
  struct world *world = party->world;
  struct cv_order_frame frame = {.kind = CV_ORDER_NONE};
  bool fuzz = world_chance(world, 20);
  choose_order(world, &frame, fuzz);
  if (!party->greeted) {
    frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = "pest"};
    party->greeted = true;
  }
  CV_REQUIRE(cv_order_encode(&frame, &world->encoding, &world->bytes) == CV_OK);
  if (fuzz) {
    fuzz_send(world, party->end);
  } else {
    net_send(party->end, world->bytes.data, world->bytes.len);
  }
  cv_buf_clear(&world->bytes);
}

static void frame(struct party *party, struct end *end, const uint8_t *bytes, size_t n) {
  struct world *world = party->world;
  struct cv_order_frame frame;
  CV_REQUIRE(cv_order_decode(bytes, n, &world->decoding, &frame) == CV_OK);
  if (frame.kind == CV_ORDER_ERROR) {
    tally(TALLY_REFUSED_ORDER);
    return;
  }
  bool is_empty = frame.kind == CV_ORDER_STATUS_ANSWER ? frame.as.status.campaigns == 0
                  : frame.kind == CV_ORDER_PURGED      ? frame.as.purged == 0
                                                       : frame.kind == CV_ORDER_NONE;
  if (!is_empty) {
    world_fail(world, "8: a requester with nothing of its own gets an answer of kind %d", (int)frame.kind);
  }
}

static void timer(struct party *party, int which) {
  struct world *world = party->world;
  uint64_t requests = world_chance(world, 2) ? 40 : world_below(world, REQUESTS);
  for (uint64_t i = 0; i < requests && party->end != NULL && !world->finished; i++) {
    act(party);
  }
  party_after(party, ACT_MS, TIMER_ACT);
}

static bool start(struct party *party, struct cv_why *why) {
  party_after(party, ACT_MS, TIMER_ACT);
  return true;
}

const struct party_ops party_pest = {.start = start,
                                     .stop = party_self_free,
                                     .opened = party_opened,
                                     .frame = frame,
                                     .closed = party_closed,
                                     .timer = timer};
