/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/lies.h"

#include <string.h>

#include "cobroker/campaign.h"
#include "common/prio/field.h"
#include "tests/sim/cobroker.h"
#include "tests/sim/tally.h"

/* ---- of the broker, to the co-broker ---- */

static struct cv_share_pending *any_token(struct world *world, const struct cv_share_frame *frame) {
  const struct cv_share_batch *batch = frame->batches == 0 ? NULL : &frame->batch[world_below(world, frame->batches)];
  return batch == NULL ? NULL : &batch->token[world_below(world, batch->tokens)];
}

static bool move_token(struct world *world, struct cv_share_frame *frame, enum lie lie) {
  struct cv_share_pending *pending = any_token(world, frame);
  if (pending == NULL) {
    return false;
  }
  switch (lie) {
    case LIE_PLACE:
      pending->token.place += world_chance(world, 50) || pending->token.place == 0 ? 1 : UINT64_MAX;
      return true;
    case LIE_ARM:
      pending->token.arm = (pending->token.arm + 1) % world->scenario.arms;
      return true;
    case LIE_WORKER:
      pending->token.slot ^= 1;
      return true;
    default:
      pending->verifier[world_below(world, pending->verifiers)] = cv_rng_u64(world->rng) % CV_FIELD_P;
      return true;
  }
}

/* One token in two places of a batch, or in two batches. */
static bool repeat_token(struct world *world, struct cv_share_frame *frame) {
  static struct cv_share_pending kept;
  static uint64_t kept_of;
  struct cv_share_pending *pending = any_token(world, frame);
  if (pending == NULL) {
    return false;
  }
  if (kept_of == world->scenario.seed + 1) {
    *pending = kept;
    return true;
  }
  kept = *pending;
  kept_of = world->scenario.seed + 1;
  return false;
}

/* Under the number of the batch before. */
static bool send_again(struct cv_share_frame *frame) {
  if (frame->batches == 0 || frame->batch[0].number < 2) {
    return false;
  }
  frame->batch[0].number--;
  return true;
}

/* Closes an epoch that is not complete, with everything that the co-broker compares but the tokens that are missing. */
static bool close_early(struct world *world, struct cv_share_frame *frame) {
  static struct cv_share_close close;
  struct cv_cobroker_campaign *campaign =
      frame->batches == 0 || !world->cobroker->up
          ? NULL
          : cv_cobroker_campaign_find(cobroker_core(world->cobroker), frame->batch[0].campaign);
  const uint32_t index = campaign == NULL ? 0 : frame->batch[0].token[0].token.arm;
  if (campaign == NULL || frame->closes > 0 || campaign->arm[index].plan == 0 ||
      campaign->arm[index].filled == campaign->arm[index].want) {
    return false;
  }
  const struct cv_cobroker_arm *arm = &campaign->arm[index];
  close = (struct cv_share_close){.campaign = campaign->id,
                                  .number = campaign->closings + 1,
                                  .plan = arm->plan,
                                  .plan_hash = cv_cobroker_campaign_plan_hash(campaign, arm->plan),
                                  .chain = arm->chain,
                                  .arm = index,
                                  .count = world_chance(world, 50) ? arm->filled : arm->want};
  frame->close = &close;
  frame->closes = 1;
  frame->batches = 0;
  return true;
}

static bool change_closing(struct world *world, struct cv_share_frame *frame) {
  if (frame->closes == 0) {
    return false;
  }
  struct cv_share_close *close = &frame->close[0];
  switch (world_below(world, 4)) {
    case 0:
      close->count--;
      return true;
    case 1:
      close->chain.bytes[world_below(world, CV_DIGEST_BYTES)] ^= 1;
      return true;
    case 2:
      close->arm = (close->arm + 1) % world->scenario.arms;
      return true;
    default:
      close->plan_hash.bytes[world_below(world, CV_DIGEST_BYTES)] ^= 1;
      return true;
  }
}

static bool change_plan(struct world *world, struct cv_share_frame *frame) {
  if (frame->plans == 0) {
    return false;
  }
  struct cv_plan *plan = &frame->plan[0].plan;
  struct cv_want *want = (struct cv_want *)(uintptr_t)&plan->want[world_below(world, plan->wants)];
  want->tokens += world_chance(world, 50) || want->tokens == 1 ? 1 : UINT32_MAX;
  return true;
}

static bool change_opening(struct world *world, struct cv_share_frame *frame) {
  if (frame->opens == 0) {
    return false;
  }
  struct cv_share_open *open = &frame->open[0];
  switch (world_below(world, 3)) {
    case 0:
      open->database[0] ^= 1;
      return true;
    case 1:
      open->spec.epsilon_micro++;
      return true;
    default:
      open->position.batches_hash.bytes[0] ^= 1;
      return true;
  }
}

/* ---- of the co-broker ---- */

static bool change_answers(struct world *world, struct cv_share_frame *frame, enum lie lie) {
  for (size_t i = 0; i < frame->answers; i++) {
    for (size_t j = 0; j < frame->answer[i].answers; j++) {
      uint8_t *answer = &frame->answer[i].answer[j];
      bool counts = *answer == CV_ANSWER_ACCEPTED;
      if (counts == (lie == LIE_SESSION)) {
        *answer = counts ? CV_ANSWER_SESSION : CV_ANSWER_ACCEPTED;
        return true;
      }
    }
  }
  return false;
}

static bool change_half(struct world *world, struct cv_share_frame *frame) {
  if (frame->closed == 0) {
    return false;
  }
  frame->half[0].half = world_chance(world, 50) ? cv_rng_u64(world->rng) % CV_FIELD_P
                                                : cv_field_add(frame->half[0].half, 1 + world_below(world, 1 << 24));
  return true;
}

static bool change_key(struct world *world, struct cv_share_frame *frame) {
  if (frame->opened == 0 || frame->open_answer[0].refused != NULL || frame->open_answer[0].position.plans == 0) {
    return false;
  }
  frame->open_answer[0].key[world_below(world, CV_SPLIT_SEED_BYTES)] ^= 1;
  return true;
}

static bool change_terms(struct world *world, struct cv_share_frame *frame) {
  if (frame->sessions == 0) {
    return false;
  }
  frame->session[0].terms.split.key.bytes[0] ^= 1;
  return true;
}

/* ---- both ---- */

enum { MEET_MS = 500 };

static bool change(struct world *world, struct cv_share_frame *frame) {
  enum lie lie = world->scenario.lie;
  switch (lie) {
    case LIE_PLACE:
    case LIE_ARM:
    case LIE_WORKER:
    case LIE_GARBAGE:
      return move_token(world, frame, lie);
    case LIE_TWICE:
      return repeat_token(world, frame);
    case LIE_AGAIN:
      return send_again(frame);
    case LIE_SHORT:
      return close_early(world, frame);
    case LIE_CLOSING:
      return change_closing(world, frame);
    case LIE_PLAN:
      return change_plan(world, frame);
    case LIE_OPENING:
      return change_opening(world, frame);
    case LIE_SESSION:
    case LIE_ACCEPTED:
      return change_answers(world, frame, lie);
    case LIE_HALF:
      return change_half(world, frame);
    case LIE_KEY:
      return change_key(world, frame);
    case LIE_TERMS:
      return change_terms(world, frame);
    default:
      return false;
  }
}

/* To whom the lie is told: the co-broker, the broker, or a worker. */
static bool is_told_to(const struct world *world, const struct end *end) {
  const struct party *from = end->party, *to = end->other->party;
  enum lie lie = world->scenario.lie;
  bool may_last = lie != LIE_SILENCE && lie != LIE_SILENCE_CO; /* silence would end nothing */
  if (lie == LIE_NONE || (world->calm_ms != 0 && !may_last)) {
    return false;
  }
  if (lie == LIE_TERMS) {
    return from == world->cobroker && to != world->broker;
  }
  return scenario_lies_broker(&world->scenario) ? from == world->broker && to == world->cobroker
                                                : from == world->cobroker && to == world->broker;
}

static bool is_silent(struct world *world) {
  enum lie lie = world->scenario.lie;
  return (lie == LIE_SILENCE || lie == LIE_SILENCE_CO) && world->now_ms >= world->scenario.lie_ms;
}

static void note_lie(struct world *world) {
  static const char *const words[] = {LIES(LIE_WORDS)};
  world->lies++;
  world->lied = true;
  tally((enum tally)(TALLY_LIE_PLACE + world->scenario.lie - LIE_PLACE));
  world_log(world, "fault: a lie: %s", words[world->scenario.lie]);
  lies_meet_again(world, MEET_MS + world_below(world, MEET_MS));
}

static void meet(struct world *world, struct event *event) {
  struct cable *cable = net_between(world, world->broker, world->cobroker);
  if (cable != NULL) {
    net_cut(world, cable);
  }
}

void lies_meet_again(struct world *world, uint64_t delay_ms) {
  world_at(world, delay_ms, meet, NULL, NULL, 0);
}

void lies_send(struct world *world, struct end *end, const struct cv_share_frame *frame) {
  if (!is_told_to(world, end) || world->lies >= world->scenario.lie_times) {
    net_send_frame(end, &CV_SHARE_WIRE, frame);
    return;
  }
  if (is_silent(world)) {
    note_lie(world);
    return;
  }
  struct cv_share_frame mine;
  if (world->now_ms < world->scenario.lie_ms) {
    net_send_frame(end, &CV_SHARE_WIRE, frame);
    return;
  }
  CV_REQUIRE(cv_share_encode(frame, &world->encoding, &world->bytes) == CV_OK &&
             cv_share_decode(world->bytes.data, world->bytes.len, &world->decoding, &mine) == CV_OK);
  cv_buf_clear(&world->bytes);
  if (change(world, &mine)) {
    note_lie(world);
  }
  net_send_frame(end, &CV_SHARE_WIRE, &mine);
}

/* ---- who is said to have lied ---- */

void lies_noted(struct world *world, const struct cv_note *note) {
  bool names = strstr(note->text, "broker") != NULL || (note->peer != NULL && strstr(note->peer, "broker") != NULL);
  world->blamed = world->blamed || (world->lied && names);
}

void lies_blamed(struct world *world, const struct party *peer, const char *why) {
  world->blamed = world->blamed || (world->lied && (peer == world->broker || peer == world->cobroker) && why[0] != 0);
}
