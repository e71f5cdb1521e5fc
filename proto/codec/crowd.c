/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/crowd.h"

#include <crowd.pb-c.h>
#include <string.h>

#include "proto/codec/base.h"

/* Encoding: one function per repeated field of the envelope, in the envelope's order. */

static enum cv_err put_arrives(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                               Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Arrive *row;
  if (!CV_CODEC_ROWS(scratch, frame->arrives, row, to->arrives)) {
    return CV_ERR_LIMIT;
  }
  to->n_arrives = frame->arrives;
  for (size_t i = 0; i < frame->arrives; i++) {
    const struct cv_arrive *from = &frame->arrive[i];
    row[i] = (Crowdveil__Crowd__Arrive)CROWDVEIL__CROWD__ARRIVE__INIT;
    row[i].n_workers = from->workers;
    row[i].workers = cv_codec_borrow(from->worker);
    row[i].n_wishes = from->wish == NULL ? 0 : from->workers;
    row[i].wishes = cv_codec_borrow(from->wish);
    row[i].credit = from->credit;
    to->arrives[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_share(const struct cv_token_share *from, struct cv_arena *scratch,
                             Crowdveil__Crowd__Share **ret) {
  if (from == NULL) {
    return CV_OK;
  }
  Crowdveil__Crowd__Share *to = cv_codec_room(scratch, 1, sizeof(*to));
  if (to == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Crowd__Share)CROWDVEIL__CROWD__SHARE__INIT;
  to->nonce = cv_codec_bytes(from->nonce, CV_SPLIT_NONCE_BYTES);
  to->leader = cv_codec_bytes(from->leader, from->leader_bytes);
  to->session = cv_codec_bytes(from->session, CV_SPLIT_SESSION_BYTES);
  to->counter = from->counter;
  to->sealed = cv_codec_bytes(from->sealed, CV_SPLIT_SEALED_BYTES);
  *ret = to;
  return CV_OK;
}

static enum cv_err put_tokens(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Token *row;
  if (!CV_CODEC_ROWS(scratch, frame->tokens, row, to->tokens)) {
    return CV_ERR_LIMIT;
  }
  to->n_tokens = frame->tokens;
  for (size_t i = 0; i < frame->tokens; i++) {
    const struct cv_token *from = &frame->token[i];
    row[i] = (Crowdveil__Crowd__Token)CROWDVEIL__CROWD__TOKEN__INIT;
    row[i].ticket = cv_codec_bytes(from->ticket, CV_TICKET_BYTES);
    row[i].n_values = from->values;
    row[i].values = cv_codec_borrow(from->value);
    CV_TRY(put_share(from->share, scratch, &row[i].share));
    to->tokens[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_declines(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                                Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Decline *row;
  if (!CV_CODEC_ROWS(scratch, frame->declines, row, to->declines)) {
    return CV_ERR_LIMIT;
  }
  to->n_declines = frame->declines;
  for (size_t i = 0; i < frame->declines; i++) {
    row[i] = (Crowdveil__Crowd__Decline)CROWDVEIL__CROWD__DECLINE__INIT;
    row[i].campaign = frame->decline[i].campaign;
    row[i].why = cv_codec_put_text(frame->decline[i].why, CV_WHY_BYTES, scratch);
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    if (frame->decline[i].has_ticket) {
      row[i].ticket = cv_codec_bytes(frame->decline[i].ticket, CV_TICKET_BYTES);
    }
    row[i].used_up = frame->decline[i].used_up;
    row[i].n_arms = frame->decline[i].arms;
    row[i].arms = cv_codec_borrow(frame->decline[i].arm);
    to->declines[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_campaigns(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                                 Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Base__Terms *row;
  if (!CV_CODEC_ROWS(scratch, frame->campaigns, row, to->campaigns)) {
    return CV_ERR_LIMIT;
  }
  to->n_campaigns = frame->campaigns;
  for (size_t i = 0; i < frame->campaigns; i++) {
    CV_TRY(cv_codec_put_terms(&frame->campaign[i], scratch, &row[i]));
    to->campaigns[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_assigns(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                               Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Assign *row;
  if (!CV_CODEC_ROWS(scratch, frame->assigns, row, to->assigns)) {
    return CV_ERR_LIMIT;
  }
  to->n_assigns = frame->assigns;
  for (size_t i = 0; i < frame->assigns; i++) {
    const struct cv_assign *from = &frame->assign[i];
    row[i] = (Crowdveil__Crowd__Assign)CROWDVEIL__CROWD__ASSIGN__INIT;
    row[i].campaign = from->campaign;
    row[i].worker = from->worker;
    row[i].ticket = cv_codec_bytes(from->ticket, CV_TICKET_BYTES);
    row[i].n_arms = from->arms;
    row[i].arms = cv_codec_borrow(from->arms == 1 ? &from->arm.one : from->arm.many);
    row[i].place = from->place;
    row[i].round = from->round;
    row[i].switched = from->switched;
    row[i].opponent = from->opponent;
    row[i].plan = from->plan;
    row[i].slot = from->slot;
    to->assigns[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_acks(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                            Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Ack *row;
  if (!CV_CODEC_ROWS(scratch, frame->acks, row, to->acks)) {
    return CV_ERR_LIMIT;
  }
  to->n_acks = frame->acks;
  for (size_t i = 0; i < frame->acks; i++) {
    const struct cv_crowd_ack *from = &frame->ack[i];
    row[i] = (Crowdveil__Crowd__Ack)CROWDVEIL__CROWD__ACK__INIT;
    row[i].ticket = cv_codec_bytes(from->ticket, CV_TICKET_BYTES);
    row[i].verdict = (Crowdveil__Crowd__Verdict)from->verdict;
    row[i].why = cv_codec_put_text(from->why, CV_WHY_BYTES, scratch);
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    to->acks[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_backoffs(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                                Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Backoff *row;
  if (!CV_CODEC_ROWS(scratch, frame->backoffs, row, to->backoffs)) {
    return CV_ERR_LIMIT;
  }
  to->n_backoffs = frame->backoffs;
  for (size_t i = 0; i < frame->backoffs; i++) {
    const struct cv_backoff *from = &frame->backoff[i];
    row[i] = (Crowdveil__Crowd__Backoff)CROWDVEIL__CROWD__BACKOFF__INIT;
    row[i].n_workers = from->workers;
    row[i].workers = cv_codec_borrow(from->worker);
    row[i].delay_ms = from->delay_ms;
    row[i].campaign = from->campaign;
    row[i].why = cv_codec_put_text(from->why, CV_WHY_BYTES, scratch);
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    to->backoffs[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_dones(const struct cv_crowd_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Crowd__Envelope *to) {
  Crowdveil__Crowd__Done *row;
  if (!CV_CODEC_ROWS(scratch, frame->dones, row, to->dones)) {
    return CV_ERR_LIMIT;
  }
  to->n_dones = frame->dones;
  for (size_t i = 0; i < frame->dones; i++) {
    row[i] = (Crowdveil__Crowd__Done)CROWDVEIL__CROWD__DONE__INIT;
    row[i].campaign = frame->done[i];
    to->dones[i] = &row[i];
  }
  return CV_OK;
}

enum cv_err cv_crowd_encode(const struct cv_crowd_frame *frame, struct cv_arena *scratch, struct cv_buf *out) {
  cv_arena_reset(scratch);
  Crowdveil__Crowd__Envelope to = CROWDVEIL__CROWD__ENVELOPE__INIT;
  CV_TRY(cv_codec_put_greetings(&frame->hello, frame->goodbye, scratch, &to.hello, &to.goodbye));
  CV_TRY(put_arrives(frame, scratch, &to));
  CV_TRY(put_tokens(frame, scratch, &to));
  CV_TRY(put_declines(frame, scratch, &to));
  CV_TRY(put_campaigns(frame, scratch, &to));
  CV_TRY(put_assigns(frame, scratch, &to));
  CV_TRY(put_acks(frame, scratch, &to));
  CV_TRY(put_backoffs(frame, scratch, &to));
  CV_TRY(put_dones(frame, scratch, &to));
  return cv_codec_pack(&to.base, CV_FRAME_BYTES, out);
}

/* Decoding: workers, values and texts stay in protobuf-c's memory, which is in the arena, too. */

static enum cv_err take_arrives(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                                struct cv_crowd_frame *ret) {
  ret->arrive = cv_codec_room(arena, in->n_arrives, sizeof(*ret->arrive));
  if (ret->arrive == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->arrives = in->n_arrives;
  for (size_t i = 0; i < in->n_arrives; i++) {
    const Crowdveil__Crowd__Arrive *from = in->arrives[i];
    if (from->n_wishes > 0 && from->n_wishes != from->n_workers) {
      return CV_ERR_FORMAT;
    }
    ret->arrive[i] = (struct cv_arrive){.workers = from->n_workers,
                                        .worker = from->workers,
                                        .wish = from->n_wishes == 0 ? NULL : from->wishes,
                                        .credit = from->credit};
  }
  return CV_OK;
}

static enum cv_err take_share(const Crowdveil__Crowd__Share *from, struct cv_arena *arena,
                              const struct cv_token_share **ret) {
  struct cv_token_share *to = cv_codec_room(arena, 1, sizeof(*to));
  if (to == NULL) {
    return CV_ERR_LIMIT;
  }
  if (from->leader.len < 1 || from->leader.len > CV_SPLIT_LEADER_MOST) {
    return CV_ERR_FORMAT;
  }
  *to =
      (struct cv_token_share){.leader_bytes = from->leader.len, .leader = from->leader.data, .counter = from->counter};
  CV_TRY(cv_codec_take_bytes(&from->nonce, to->nonce, sizeof(to->nonce)));
  CV_TRY(cv_codec_take_bytes(&from->session, to->session, sizeof(to->session)));
  CV_TRY(cv_codec_take_bytes(&from->sealed, to->sealed, sizeof(to->sealed)));
  *ret = to;
  return CV_OK;
}

static enum cv_err take_token(const Crowdveil__Crowd__Token *from, struct cv_arena *arena, struct cv_token *to) {
  bool is_split = from->share != NULL;
  /* Values or a share: a token with both would tell the score that the share hides. */
  if (from->n_values > CV_VALUES_MAX || (from->n_values == 0) != is_split) {
    return CV_ERR_FORMAT;
  }
  *to = (struct cv_token){.values = from->n_values, .value = from->values};
  CV_TRY(cv_codec_take_bytes(&from->ticket, to->ticket, CV_TICKET_BYTES));
  return is_split ? take_share(from->share, arena, &to->share) : CV_OK;
}

static enum cv_err take_tokens(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                               struct cv_crowd_frame *ret) {
  ret->token = cv_codec_room(arena, in->n_tokens, sizeof(*ret->token));
  if (ret->token == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->tokens = in->n_tokens;
  for (size_t i = 0; i < in->n_tokens; i++) {
    CV_TRY(take_token(in->tokens[i], arena, &ret->token[i]));
  }
  return CV_OK;
}

/* Arms are named by data that are used up, and then only without a ticket, whose arm is known. */
static bool decline_fits(const Crowdveil__Crowd__Decline *from) {
  bool has_ticket = from->ticket.len > 0, names_arms = from->used_up && !has_ticket;
  return cv_codec_text_fits(from->why, CV_WHY_BYTES) &&
         (!has_ticket || (from->ticket.len == CV_TICKET_BYTES && from->campaign == 0)) &&
         (names_arms ? from->n_arms > 0 && from->n_arms <= CV_SPENT_ARMS_MOST : from->n_arms == 0);
}

static enum cv_err take_declines(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                                 struct cv_crowd_frame *ret) {
  ret->decline = cv_codec_room(arena, in->n_declines, sizeof(*ret->decline));
  if (ret->decline == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->declines = in->n_declines;
  for (size_t i = 0; i < in->n_declines; i++) {
    const Crowdveil__Crowd__Decline *from = in->declines[i];
    bool has_ticket = from->ticket.len > 0;
    if (!decline_fits(from)) {
      return CV_ERR_FORMAT;
    }
    ret->decline[i] = (struct cv_decline){.campaign = from->campaign,
                                          .why = from->why,
                                          .used_up = from->used_up != 0,
                                          .arms = from->n_arms,
                                          .arm = from->arms,
                                          .has_ticket = has_ticket};
    if (has_ticket) {
      memcpy(ret->decline[i].ticket, from->ticket.data, CV_TICKET_BYTES);
    }
  }
  return CV_OK;
}

static enum cv_err take_campaigns(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                                  struct cv_crowd_frame *ret) {
  ret->campaign = cv_codec_room(arena, in->n_campaigns, sizeof(*ret->campaign));
  if (ret->campaign == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->campaigns = in->n_campaigns;
  for (size_t i = 0; i < in->n_campaigns; i++) {
    CV_TRY(cv_codec_take_terms(in->campaigns[i], &ret->campaign[i]));
    CV_TRY(ret->campaign[i].lease_ms > 0 ? CV_OK : CV_ERR_FORMAT);
  }
  return CV_OK;
}

static enum cv_err take_assign(const Crowdveil__Crowd__Assign *from, struct cv_assign *to) {
  if (from->ticket.len != CV_TICKET_BYTES || from->n_arms < 1 || from->n_arms > CV_VALUES_MAX) {
    return CV_ERR_FORMAT;
  }
  /* A comparison is one answer about two arms. */
  if (from->opponent > CV_ARMS_MAX || (from->opponent > 0 && from->n_arms > 1)) {
    return CV_ERR_FORMAT;
  }
  for (size_t i = 0; i < from->n_arms; i++) {
    if (from->arms[i] >= CV_ARMS_MAX) {
      return CV_ERR_FORMAT;
    }
  }
  to->campaign = from->campaign;
  to->worker = from->worker;
  memcpy(to->ticket, from->ticket.data, CV_TICKET_BYTES);
  to->arms = (uint32_t)from->n_arms;
  if (from->n_arms == 1) {
    to->arm.one = from->arms[0];
  } else {
    to->arm.many = from->arms;
  }
  to->place = from->place;
  to->round = from->round;
  to->switched = from->switched;
  to->opponent = from->opponent;
  to->plan = from->plan;
  to->slot = from->slot;
  return CV_OK;
}

static enum cv_err take_assigns(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                                struct cv_crowd_frame *ret) {
  ret->assign = cv_codec_room(arena, in->n_assigns, sizeof(*ret->assign));
  if (ret->assign == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->assigns = in->n_assigns;
  for (size_t i = 0; i < in->n_assigns; i++) {
    CV_TRY(take_assign(in->assigns[i], &ret->assign[i]));
  }
  return CV_OK;
}

static enum cv_err take_acks(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena, struct cv_crowd_frame *ret) {
  ret->ack = cv_codec_room(arena, in->n_acks, sizeof(*ret->ack));
  if (ret->ack == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->acks = in->n_acks;
  for (size_t i = 0; i < in->n_acks; i++) {
    const Crowdveil__Crowd__Ack *from = in->acks[i];
    enum cv_verdict verdict = (enum cv_verdict)from->verdict;
    if (from->ticket.len != CV_TICKET_BYTES || verdict < CV_VERDICT_ACCEPTED || verdict > CV_VERDICT_REFUSED ||
        !cv_codec_text_fits(from->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    struct cv_crowd_ack *to = &ret->ack[i];
    memcpy(to->ticket, from->ticket.data, CV_TICKET_BYTES);
    to->verdict = verdict;
    to->why = from->why;
  }
  return CV_OK;
}

static enum cv_err take_backoffs(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                                 struct cv_crowd_frame *ret) {
  ret->backoff = cv_codec_room(arena, in->n_backoffs, sizeof(*ret->backoff));
  if (ret->backoff == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->backoffs = in->n_backoffs;
  for (size_t i = 0; i < in->n_backoffs; i++) {
    const Crowdveil__Crowd__Backoff *from = in->backoffs[i];
    if (!cv_codec_text_fits(from->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    ret->backoff[i] = (struct cv_backoff){.workers = from->n_workers,
                                          .worker = from->workers,
                                          .delay_ms = from->delay_ms,
                                          .why = from->why,
                                          .campaign = from->campaign};
  }
  return CV_OK;
}

static enum cv_err take_dones(const Crowdveil__Crowd__Envelope *in, struct cv_arena *arena,
                              struct cv_crowd_frame *ret) {
  ret->done = cv_codec_room(arena, in->n_dones, sizeof(*ret->done));
  if (ret->done == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->dones = in->n_dones;
  for (size_t i = 0; i < in->n_dones; i++) {
    ret->done[i] = in->dones[i]->campaign;
  }
  return CV_OK;
}

static bool is_empty(const struct cv_crowd_frame *frame) {
  return !frame->hello.present && frame->goodbye == NULL &&
         frame->arrives + frame->tokens + frame->declines + frame->campaigns + frame->assigns + frame->acks +
                 frame->backoffs + frame->dones ==
             0;
}

enum cv_err cv_crowd_decode(const void *bytes, size_t n, struct cv_arena *arena, struct cv_crowd_frame *ret) {
  ProtobufCMessage *message;
  CV_TRY(cv_codec_unpack(&crowdveil__crowd__envelope__descriptor, bytes, n, CV_FRAME_BYTES, arena, &message));
  const Crowdveil__Crowd__Envelope *in = (const Crowdveil__Crowd__Envelope *)message;
  struct cv_crowd_frame frame = {0};
  CV_TRY(cv_codec_take_greetings(in->hello, in->goodbye, &frame.hello, &frame.goodbye));
  CV_TRY(take_arrives(in, arena, &frame));
  CV_TRY(take_tokens(in, arena, &frame));
  CV_TRY(take_declines(in, arena, &frame));
  CV_TRY(take_campaigns(in, arena, &frame));
  CV_TRY(take_assigns(in, arena, &frame));
  CV_TRY(take_acks(in, arena, &frame));
  CV_TRY(take_backoffs(in, arena, &frame));
  CV_TRY(take_dones(in, arena, &frame));
  /* Fields of later versions are ignored; an envelope of nothing else is not for this version. */
  if (is_empty(&frame)) {
    return CV_ERR_FORMAT;
  }
  *ret = frame;
  return CV_OK;
}

/* ---- the wire ---- */

enum {
  SLICE = 1000, /* most acknowledgements, assignments and ended campaigns per envelope */
  SLICE_SMALL = 16,
  SLICE_DECLINES = 256,
  SLICE_TOKENS = 2000,
  TOKEN_BYTES = 64,         /* most bytes of a token without its values and its share */
  VALUE_BYTES = 10,         /* most bytes of a value */
  SHARE_BYTES = 128,        /* most bytes of a share without the leader's */
  SLICE_BYTES = 160 * 1024, /* most bytes of tokens per envelope */
};

static enum cv_err decode(const void *bytes, size_t n, struct cv_arena *arena, void *ret_frame) {
  return cv_crowd_decode(bytes, n, arena, ret_frame);
}

static enum cv_err encode(const void *frame, struct cv_arena *scratch, struct cv_buf *out) {
  return cv_crowd_encode(frame, scratch, out);
}

static void goodbye(const char *why, const char *program, void *ret_frame) {
  *(struct cv_crowd_frame *)ret_frame = (struct cv_crowd_frame){
      .hello = {.present = program != NULL, .version = CV_WIRE_VERSION, .program = program}, .goodbye = why};
}

/* The number of tokens that fit into one envelope. */
static size_t fitting(const struct cv_token *token, size_t tokens) {
  size_t n = 0;
  for (size_t bytes = 0; n < tokens && n < SLICE_TOKENS; n++) {
    bytes += TOKEN_BYTES + VALUE_BYTES * token[n].values;
    bytes += token[n].share == NULL ? 0 : SHARE_BYTES + token[n].share->leader_bytes;
    /* At least one token fits: values and share are bounded. */
    if (bytes > SLICE_BYTES) {
      break;
    }
  }
  return n;
}

static size_t left_in(const struct cv_crowd_frame *frame) {
  return frame->arrives + frame->tokens + frame->declines + frame->campaigns + frame->assigns + frame->acks +
         frame->backoffs + frame->dones;
}

static bool cut(void *from, void *to) {
  struct cv_crowd_frame *rest = from, *part = to;
  *part = (struct cv_crowd_frame){.hello = rest->hello};
  rest->hello.present = false;
  /* Terms go before everything else: an assignment must not overtake those of its campaign. */
  CV_CODEC_MOVE(rest, part, campaign, campaigns, SLICE_SMALL);
  if (rest->campaigns == 0) {
    CV_CODEC_MOVE(rest, part, decline, declines, SLICE_DECLINES);
    CV_CODEC_MOVE(rest, part, arrive, arrives, 1);
    CV_CODEC_MOVE(rest, part, token, tokens, fitting(rest->token, rest->tokens));
    CV_CODEC_MOVE(rest, part, ack, acks, SLICE);
    CV_CODEC_MOVE(rest, part, assign, assigns, SLICE);
    CV_CODEC_MOVE(rest, part, backoff, backoffs, SLICE_SMALL);
    CV_CODEC_MOVE(rest, part, done, dones, SLICE);
  }
  if (left_in(rest) > 0) {
    return true;
  }
  /* In the last part: the peer closes when it reads it. */
  part->goodbye = rest->goodbye;
  return false;
}

const struct cv_wire CV_CROWD_WIRE = {.frame_bytes = sizeof(struct cv_crowd_frame),
                                      .arena_bytes = CV_ARENA_BYTES,
                                      .decode = decode,
                                      .encode = encode,
                                      .goodbye = goodbye,
                                      .cut = cut};
