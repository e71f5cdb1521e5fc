/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/share.h"

#include <share.pb-c.h>
#include <string.h>

#include "proto/codec/base.h"

/* Encoding: one function per repeated field of the envelope, in the envelope's order. */

static enum cv_err put_enters(const struct cv_share_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Enter *row;
  if (!CV_CODEC_ROWS(scratch, frame->enters, row, to->enters)) {
    return CV_ERR_LIMIT;
  }
  to->n_enters = frame->enters;
  for (size_t i = 0; i < frame->enters; i++) {
    row[i] = (Crowdveil__Share__Enter)CROWDVEIL__SHARE__ENTER__INIT;
    row[i].campaign = frame->enter[i];
    to->enters[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_sessions(const struct cv_share_frame *frame, struct cv_arena *scratch,
                                Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Session *row;
  Crowdveil__Base__Terms *terms = cv_codec_room(scratch, frame->sessions, sizeof(*terms));
  if (terms == NULL || !CV_CODEC_ROWS(scratch, frame->sessions, row, to->sessions)) {
    return CV_ERR_LIMIT;
  }
  to->n_sessions = frame->sessions;
  for (size_t i = 0; i < frame->sessions; i++) {
    row[i] = (Crowdveil__Share__Session)CROWDVEIL__SHARE__SESSION__INIT;
    CV_TRY(cv_codec_put_terms(&frame->session[i].terms, scratch, &terms[i]));
    row[i].terms = &terms[i];
    row[i].id = cv_codec_bytes(frame->session[i].id, CV_SPLIT_SESSION_BYTES);
    to->sessions[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_turned(const struct cv_share_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Turned *row;
  if (!CV_CODEC_ROWS(scratch, frame->turned, row, to->turned)) {
    return CV_ERR_LIMIT;
  }
  to->n_turned = frame->turned;
  for (size_t i = 0; i < frame->turned; i++) {
    row[i] = (Crowdveil__Share__Turned)CROWDVEIL__SHARE__TURNED__INIT;
    row[i].campaign = frame->turn[i].campaign;
    row[i].why = cv_codec_put_text(frame->turn[i].why, CV_WHY_BYTES, scratch);
    row[i].again_ms = frame->turn[i].again_ms;
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    to->turned[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_position(const struct cv_share_position *position, struct cv_arena *scratch,
                                Crowdveil__Share__Position **ret) {
  Crowdveil__Share__Position *to = cv_codec_room(scratch, 1, sizeof(*to));
  if (to == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Share__Position)CROWDVEIL__SHARE__POSITION__INIT;
  to->campaign = position->campaign;
  to->plans = position->plans;
  to->plans_hash = cv_codec_bytes(position->plans_hash.bytes, CV_DIGEST_BYTES);
  to->batches = position->batches;
  to->batches_hash = cv_codec_bytes(position->batches_hash.bytes, CV_DIGEST_BYTES);
  to->closings = position->closings;
  to->closings_hash = cv_codec_bytes(position->closings_hash.bytes, CV_DIGEST_BYTES);
  *ret = to;
  return CV_OK;
}

static enum cv_err put_opens(const struct cv_share_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Open *row;
  if (!CV_CODEC_ROWS(scratch, frame->opens, row, to->opens)) {
    return CV_ERR_LIMIT;
  }
  to->n_opens = frame->opens;
  for (size_t i = 0; i < frame->opens; i++) {
    const struct cv_share_open *from = &frame->open[i];
    row[i] = (Crowdveil__Share__Open)CROWDVEIL__SHARE__OPEN__INIT;
    CV_TRY(cv_codec_put_spec(&from->spec, scratch, &row[i].spec));
    CV_TRY(put_position(&from->position, scratch, &row[i].position));
    row[i].database = cv_codec_bytes(from->database, CV_SPLIT_DATABASE_BYTES);
    row[i].requester = cv_codec_put_text(from->requester, CV_NAME_BYTES, scratch);
    row[i].deadline_ms = from->deadline_ms;
    if (row[i].requester == NULL) {
      return CV_ERR_LIMIT;
    }
    to->opens[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_opened(const struct cv_share_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Opened *row;
  if (!CV_CODEC_ROWS(scratch, frame->opened, row, to->opened)) {
    return CV_ERR_LIMIT;
  }
  to->n_opened = frame->opened;
  for (size_t i = 0; i < frame->opened; i++) {
    const struct cv_share_opened *from = &frame->open_answer[i];
    row[i] = (Crowdveil__Share__Opened)CROWDVEIL__SHARE__OPENED__INIT;
    CV_TRY(put_position(&from->position, scratch, &row[i].position));
    if (from->refused == NULL) {
      row[i].key = cv_codec_bytes(from->key, CV_SPLIT_SEED_BYTES);
    }
    CV_TRY(cv_codec_put_refused(from->refused, scratch, &row[i].refused));
    to->opened[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_plans(const struct cv_share_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__PlanOpen *row;
  Crowdveil__Base__Plan *plan = cv_codec_room(scratch, frame->plans, sizeof(*plan));
  if (plan == NULL || !CV_CODEC_ROWS(scratch, frame->plans, row, to->plans)) {
    return CV_ERR_LIMIT;
  }
  to->n_plans = frame->plans;
  for (size_t i = 0; i < frame->plans; i++) {
    row[i] = (Crowdveil__Share__PlanOpen)CROWDVEIL__SHARE__PLAN_OPEN__INIT;
    CV_TRY(cv_codec_put_plan(frame->plan[i].campaign, &frame->plan[i].plan, scratch, &plan[i]));
    row[i].plan = &plan[i];
    to->plans[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_plans_opened(const struct cv_share_frame *frame, struct cv_arena *scratch,
                                    Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__PlanOpened *row;
  if (!CV_CODEC_ROWS(scratch, frame->plans_opened, row, to->plans_opened)) {
    return CV_ERR_LIMIT;
  }
  to->n_plans_opened = frame->plans_opened;
  for (size_t i = 0; i < frame->plans_opened; i++) {
    row[i] = (Crowdveil__Share__PlanOpened)CROWDVEIL__SHARE__PLAN_OPENED__INIT;
    row[i].campaign = frame->plan_opened[i].campaign;
    row[i].plan = frame->plan_opened[i].number;
    to->plans_opened[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_plans_refused(const struct cv_share_frame *frame, struct cv_arena *scratch,
                                     Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__PlanRefused *row;
  if (!CV_CODEC_ROWS(scratch, frame->plans_refused, row, to->plans_refused)) {
    return CV_ERR_LIMIT;
  }
  to->n_plans_refused = frame->plans_refused;
  for (size_t i = 0; i < frame->plans_refused; i++) {
    const struct cv_share_refused *from = &frame->plan_refused[i];
    row[i] = (Crowdveil__Share__PlanRefused)CROWDVEIL__SHARE__PLAN_REFUSED__INIT;
    row[i].campaign = from->campaign;
    row[i].plan = from->plan;
    row[i].reason = (Crowdveil__Base__End)from->reason;
    row[i].why = cv_codec_put_text(from->why, CV_WHY_BYTES, scratch);
    row[i].asked = from->asked;
    row[i].left = from->left;
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    to->plans_refused[i] = &row[i];
  }
  return CV_OK;
}

static void put_pending(const struct cv_share_pending *from, Crowdveil__Share__Pending *ret) {
  *ret = (Crowdveil__Share__Pending)CROWDVEIL__SHARE__PENDING__INIT;
  ret->plan = from->token.plan;
  ret->arm = from->token.arm;
  ret->place = from->token.place;
  ret->worker = from->token.worker;
  ret->slot = from->token.slot;
  ret->nonce = cv_codec_bytes(from->token.nonce, CV_SPLIT_NONCE_BYTES);
  ret->session = cv_codec_bytes(from->session, CV_SPLIT_SESSION_BYTES);
  ret->counter = from->counter;
  ret->sealed = cv_codec_bytes(from->sealed, CV_SPLIT_SEALED_BYTES);
  ret->n_verifier = from->verifiers;
  ret->verifier = cv_codec_borrow(from->verifier);
}

static enum cv_err put_batch(const struct cv_share_batch *from, struct cv_arena *scratch,
                             Crowdveil__Share__Batch *ret) {
  *ret = (Crowdveil__Share__Batch)CROWDVEIL__SHARE__BATCH__INIT;
  ret->campaign = from->campaign;
  ret->number = from->number;
  Crowdveil__Share__Pending *row;
  if (!CV_CODEC_ROWS(scratch, from->tokens, row, ret->tokens)) {
    return CV_ERR_LIMIT;
  }
  ret->n_tokens = from->tokens;
  for (size_t i = 0; i < from->tokens; i++) {
    put_pending(&from->token[i], &row[i]);
    ret->tokens[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_batches(const struct cv_share_frame *frame, struct cv_arena *scratch,
                               Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Batch *row;
  if (!CV_CODEC_ROWS(scratch, frame->batches, row, to->batches)) {
    return CV_ERR_LIMIT;
  }
  to->n_batches = frame->batches;
  for (size_t i = 0; i < frame->batches; i++) {
    CV_TRY(put_batch(&frame->batch[i], scratch, &row[i]));
    to->batches[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_answers(const struct cv_share_frame *frame, struct cv_arena *scratch,
                               Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Answers *row;
  if (!CV_CODEC_ROWS(scratch, frame->answers, row, to->answers)) {
    return CV_ERR_LIMIT;
  }
  to->n_answers = frame->answers;
  for (size_t i = 0; i < frame->answers; i++) {
    const struct cv_share_answers *from = &frame->answer[i];
    row[i] = (Crowdveil__Share__Answers)CROWDVEIL__SHARE__ANSWERS__INIT;
    row[i].campaign = from->campaign;
    row[i].number = from->number;
    row[i].n_answers = from->answers;
    row[i].answers = cv_codec_room(scratch, from->answers, sizeof(*row[i].answers));
    if (row[i].answers == NULL) {
      return CV_ERR_LIMIT;
    }
    for (size_t j = 0; j < from->answers; j++) {
      row[i].answers[j] = (Crowdveil__Share__Answer)from->answer[j];
    }
    to->answers[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_dones(const struct cv_share_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Done *row;
  if (!CV_CODEC_ROWS(scratch, frame->dones, row, to->dones)) {
    return CV_ERR_LIMIT;
  }
  to->n_dones = frame->dones;
  for (size_t i = 0; i < frame->dones; i++) {
    row[i] = (Crowdveil__Share__Done)CROWDVEIL__SHARE__DONE__INIT;
    row[i].campaign = frame->done[i].campaign;
    row[i].number = frame->done[i].number;
    to->dones[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_closes(const struct cv_share_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Close *row;
  if (!CV_CODEC_ROWS(scratch, frame->closes, row, to->closes)) {
    return CV_ERR_LIMIT;
  }
  to->n_closes = frame->closes;
  for (size_t i = 0; i < frame->closes; i++) {
    const struct cv_share_close *from = &frame->close[i];
    row[i] = (Crowdveil__Share__Close)CROWDVEIL__SHARE__CLOSE__INIT;
    row[i].campaign = from->campaign;
    row[i].number = from->number;
    row[i].plan = from->plan;
    row[i].plan_hash = cv_codec_bytes(from->plan_hash.bytes, CV_DIGEST_BYTES);
    row[i].arm = from->arm;
    row[i].count = from->count;
    row[i].chain = cv_codec_bytes(from->chain.bytes, CV_DIGEST_BYTES);
    row[i].discard = from->discard;
    to->closes[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_closed(const struct cv_share_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Closed *row;
  if (!CV_CODEC_ROWS(scratch, frame->closed, row, to->closed)) {
    return CV_ERR_LIMIT;
  }
  to->n_closed = frame->closed;
  for (size_t i = 0; i < frame->closed; i++) {
    row[i] = (Crowdveil__Share__Closed)CROWDVEIL__SHARE__CLOSED__INIT;
    row[i].campaign = frame->half[i].campaign;
    row[i].number = frame->half[i].number;
    row[i].half = frame->half[i].half;
    to->closed[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_overs(const struct cv_share_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Over *row;
  if (!CV_CODEC_ROWS(scratch, frame->overs, row, to->overs)) {
    return CV_ERR_LIMIT;
  }
  to->n_overs = frame->overs;
  for (size_t i = 0; i < frame->overs; i++) {
    row[i] = (Crowdveil__Share__Over)CROWDVEIL__SHARE__OVER__INIT;
    row[i].campaign = frame->over[i].campaign;
    row[i].reason = (Crowdveil__Base__End)frame->over[i].reason;
    to->overs[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_ended(const struct cv_share_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Share__Envelope *to) {
  Crowdveil__Share__Ended *row;
  if (!CV_CODEC_ROWS(scratch, frame->ended, row, to->ended)) {
    return CV_ERR_LIMIT;
  }
  to->n_ended = frame->ended;
  for (size_t i = 0; i < frame->ended; i++) {
    row[i] = (Crowdveil__Share__Ended)CROWDVEIL__SHARE__ENDED__INIT;
    row[i].campaign = frame->end[i].campaign;
    row[i].reason = (Crowdveil__Base__End)frame->end[i].reason;
    row[i].why = cv_codec_put_text(frame->end[i].why, CV_WHY_BYTES, scratch);
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    to->ended[i] = &row[i];
  }
  return CV_OK;
}

enum cv_err cv_share_encode(const struct cv_share_frame *frame, struct cv_arena *scratch, struct cv_buf *out) {
  cv_arena_reset(scratch);
  Crowdveil__Share__Envelope to = CROWDVEIL__SHARE__ENVELOPE__INIT;
  CV_TRY(cv_codec_put_greetings(&frame->hello, frame->goodbye, scratch, &to.hello, &to.goodbye));
  CV_TRY(put_enters(frame, scratch, &to));
  CV_TRY(put_sessions(frame, scratch, &to));
  CV_TRY(put_turned(frame, scratch, &to));
  CV_TRY(put_opens(frame, scratch, &to));
  CV_TRY(put_opened(frame, scratch, &to));
  CV_TRY(put_plans(frame, scratch, &to));
  CV_TRY(put_plans_opened(frame, scratch, &to));
  CV_TRY(put_plans_refused(frame, scratch, &to));
  CV_TRY(put_batches(frame, scratch, &to));
  CV_TRY(put_answers(frame, scratch, &to));
  CV_TRY(put_dones(frame, scratch, &to));
  CV_TRY(put_closes(frame, scratch, &to));
  CV_TRY(put_closed(frame, scratch, &to));
  CV_TRY(put_overs(frame, scratch, &to));
  CV_TRY(put_ended(frame, scratch, &to));
  return cv_codec_pack(&to.base, CV_LARGE_FRAME_BYTES, out);
}

/* Decoding: texts stay in protobuf-c's memory, which is in the arena, too. */

/* Allocates the rows of one of a frame's arrays. */
#define ROOM(arena, ret, array, count, n)                                                                    \
  (((ret)->array = cv_codec_room((arena), (n), sizeof(*(ret)->array))) != NULL ? ((ret)->count = (n), CV_OK) \
                                                                               : CV_ERR_LIMIT)

static enum cv_err take_enters(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                               struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, enter, enters, in->n_enters));
  for (size_t i = 0; i < in->n_enters; i++) {
    ret->enter[i] = in->enters[i]->campaign;
  }
  return CV_OK;
}

static enum cv_err take_sessions(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                                 struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, session, sessions, in->n_sessions));
  for (size_t i = 0; i < in->n_sessions; i++) {
    struct cv_share_session *to = &ret->session[i];
    CV_TRY(cv_codec_take_terms(in->sessions[i]->terms, &to->terms));
    if (to->terms.split.score_bits == 0) {
      return CV_ERR_FORMAT;
    }
    CV_TRY(cv_codec_take_bytes(&in->sessions[i]->id, to->id, sizeof(to->id)));
  }
  return CV_OK;
}

static enum cv_err take_turned(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                               struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, turn, turned, in->n_turned));
  for (size_t i = 0; i < in->n_turned; i++) {
    const Crowdveil__Share__Turned *from = in->turned[i];
    if (!cv_codec_text_fits(from->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    ret->turn[i] = (struct cv_share_turned){.campaign = from->campaign, .why = from->why, .again_ms = from->again_ms};
  }
  return CV_OK;
}

static enum cv_err take_position(const Crowdveil__Share__Position *in, struct cv_share_position *ret) {
  if (in == NULL) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_share_position){
      .campaign = in->campaign, .plans = in->plans, .batches = in->batches, .closings = in->closings};
  CV_TRY(cv_codec_take_digest(&in->plans_hash, &ret->plans_hash));
  CV_TRY(cv_codec_take_digest(&in->batches_hash, &ret->batches_hash));
  return cv_codec_take_digest(&in->closings_hash, &ret->closings_hash);
}

static enum cv_err take_opens(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                              struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, open, opens, in->n_opens));
  for (size_t i = 0; i < in->n_opens; i++) {
    const Crowdveil__Share__Open *from = in->opens[i];
    struct cv_share_open *to = &ret->open[i];
    *to = (struct cv_share_open){.deadline_ms = from->deadline_ms};
    CV_TRY(cv_codec_take_spec(from->spec, arena, &to->spec));
    cv_codec_clean_names(&to->spec);
    CV_TRY(take_position(from->position, &to->position));
    CV_TRY(cv_codec_take_bytes(&from->database, to->database, sizeof(to->database)));
    CV_TRY(cv_codec_take_text(from->requester, to->requester, sizeof(to->requester)));
  }
  return CV_OK;
}

static enum cv_err take_opened(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                               struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, open_answer, opened, in->n_opened));
  for (size_t i = 0; i < in->n_opened; i++) {
    const Crowdveil__Share__Opened *from = in->opened[i];
    struct cv_share_opened *to = &ret->open_answer[i];
    *to = (struct cv_share_opened){.refused = from->refused[0] == '\0' ? NULL : from->refused};
    if (!cv_codec_text_fits(from->refused, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    CV_TRY(take_position(from->position, &to->position));
    /* No key for a campaign that is refused: there is nothing to verify. */
    CV_TRY(cv_codec_take_bytes(&from->key, to->key, to->refused == NULL ? sizeof(to->key) : 0));
  }
  return CV_OK;
}

static enum cv_err take_plans(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                              struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, plan, plans, in->n_plans));
  for (size_t i = 0; i < in->n_plans; i++) {
    const Crowdveil__Base__Plan *from = in->plans[i]->plan;
    if (from == NULL || from->n_standings > 0) {
      return CV_ERR_FORMAT;
    }
    ret->plan[i].campaign = from->campaign;
    CV_TRY(cv_codec_take_accepted_plan(from, arena, &ret->plan[i].plan));
  }
  return CV_OK;
}

static enum cv_err take_plans_opened(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                                     struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, plan_opened, plans_opened, in->n_plans_opened));
  for (size_t i = 0; i < in->n_plans_opened; i++) {
    ret->plan_opened[i] =
        (struct cv_share_number){.campaign = in->plans_opened[i]->campaign, .number = in->plans_opened[i]->plan};
  }
  return CV_OK;
}

static enum cv_err take_plans_refused(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                                      struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, plan_refused, plans_refused, in->n_plans_refused));
  for (size_t i = 0; i < in->n_plans_refused; i++) {
    const Crowdveil__Share__PlanRefused *from = in->plans_refused[i];
    if (!cv_codec_is_reason(from->reason) || !cv_codec_text_fits(from->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    ret->plan_refused[i] = (struct cv_share_refused){.campaign = from->campaign,
                                                     .plan = from->plan,
                                                     .reason = (enum cv_end)from->reason,
                                                     .why = from->why,
                                                     .asked = from->asked,
                                                     .left = from->left};
  }
  return CV_OK;
}

static enum cv_err take_pending(const Crowdveil__Share__Pending *from, struct cv_share_pending *to) {
  if (from->arm >= CV_ARMS_MAX || from->n_verifier < 1 || from->n_verifier > CV_SPLIT_VERIFIERS_MOST) {
    return CV_ERR_FORMAT;
  }
  *to = (struct cv_share_pending){
      .token = {.plan = from->plan, .arm = from->arm, .place = from->place, .worker = from->worker, .slot = from->slot},
      .counter = from->counter,
      .verifiers = (uint32_t)from->n_verifier};
  memcpy(to->verifier, from->verifier, from->n_verifier * sizeof(*from->verifier));
  CV_TRY(cv_codec_take_bytes(&from->nonce, to->token.nonce, sizeof(to->token.nonce)));
  CV_TRY(cv_codec_take_bytes(&from->session, to->session, sizeof(to->session)));
  return cv_codec_take_bytes(&from->sealed, to->sealed, sizeof(to->sealed));
}

static bool batch_fits(uint64_t number, size_t tokens) {
  return number > 0 && tokens > 0 && tokens <= CV_BATCH_TOKENS;
}

static enum cv_err take_batches(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                                struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, batch, batches, in->n_batches));
  for (size_t i = 0; i < in->n_batches; i++) {
    const Crowdveil__Share__Batch *from = in->batches[i];
    struct cv_share_batch *to = &ret->batch[i];
    if (!batch_fits(from->number, from->n_tokens)) {
      return CV_ERR_FORMAT;
    }
    *to = (struct cv_share_batch){.campaign = from->campaign, .number = from->number};
    CV_TRY(ROOM(arena, to, token, tokens, from->n_tokens));
    for (size_t j = 0; j < from->n_tokens; j++) {
      CV_TRY(take_pending(from->tokens[j], &to->token[j]));
    }
  }
  return CV_OK;
}

static enum cv_err take_answers(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                                struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, answer, answers, in->n_answers));
  for (size_t i = 0; i < in->n_answers; i++) {
    const Crowdveil__Share__Answers *from = in->answers[i];
    struct cv_share_answers *to = &ret->answer[i];
    if (!batch_fits(from->number, from->n_answers)) {
      return CV_ERR_FORMAT;
    }
    *to = (struct cv_share_answers){.campaign = from->campaign, .number = from->number};
    CV_TRY(ROOM(arena, to, answer, answers, from->n_answers));
    for (size_t j = 0; j < from->n_answers; j++) {
      /* protobuf-c reads any number into an enum, negative ones too. */
      int64_t answer = from->answers[j];
      if (answer <= CV_ANSWER_NONE || answer >= CV_ANSWERS) {
        return CV_ERR_FORMAT;
      }
      to->answer[j] = (uint8_t)answer;
    }
  }
  return CV_OK;
}

static enum cv_err take_dones(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                              struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, done, dones, in->n_dones));
  for (size_t i = 0; i < in->n_dones; i++) {
    ret->done[i] = (struct cv_share_number){.campaign = in->dones[i]->campaign, .number = in->dones[i]->number};
  }
  return CV_OK;
}

static enum cv_err take_closes(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                               struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, close, closes, in->n_closes));
  for (size_t i = 0; i < in->n_closes; i++) {
    const Crowdveil__Share__Close *from = in->closes[i];
    struct cv_share_close *to = &ret->close[i];
    if (from->number == 0 || from->plan == 0 || from->arm >= CV_ARMS_MAX) {
      return CV_ERR_FORMAT;
    }
    *to = (struct cv_share_close){.campaign = from->campaign,
                                  .number = from->number,
                                  .plan = from->plan,
                                  .arm = from->arm,
                                  .count = from->count,
                                  .discard = from->discard != 0};
    CV_TRY(cv_codec_take_digest(&from->plan_hash, &to->plan_hash));
    CV_TRY(cv_codec_take_digest(&from->chain, &to->chain));
  }
  return CV_OK;
}

static enum cv_err take_closed(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                               struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, half, closed, in->n_closed));
  for (size_t i = 0; i < in->n_closed; i++) {
    const Crowdveil__Share__Closed *from = in->closed[i];
    if (from->number == 0) {
      return CV_ERR_FORMAT;
    }
    ret->half[i] = (struct cv_share_closed){.campaign = from->campaign, .number = from->number, .half = from->half};
  }
  return CV_OK;
}

static enum cv_err take_overs(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                              struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, over, overs, in->n_overs));
  for (size_t i = 0; i < in->n_overs; i++) {
    if (!cv_codec_is_reason(in->overs[i]->reason)) {
      return CV_ERR_FORMAT;
    }
    ret->over[i] =
        (struct cv_share_end){.campaign = in->overs[i]->campaign, .reason = (enum cv_end)in->overs[i]->reason};
  }
  return CV_OK;
}

static enum cv_err take_ended(const Crowdveil__Share__Envelope *in, struct cv_arena *arena,
                              struct cv_share_frame *ret) {
  CV_TRY(ROOM(arena, ret, end, ended, in->n_ended));
  for (size_t i = 0; i < in->n_ended; i++) {
    const Crowdveil__Share__Ended *from = in->ended[i];
    if (!cv_codec_is_reason(from->reason) || !cv_codec_text_fits(from->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    ret->end[i] =
        (struct cv_share_end){.campaign = from->campaign, .reason = (enum cv_end)from->reason, .why = from->why};
  }
  return CV_OK;
}

static size_t entries(const struct cv_share_frame *frame) {
  return frame->enters + frame->sessions + frame->turned + frame->opens + frame->opened + frame->plans +
         frame->plans_opened + frame->plans_refused + frame->batches + frame->answers + frame->dones + frame->closes +
         frame->closed + frame->overs + frame->ended;
}

static enum cv_err take_all(const Crowdveil__Share__Envelope *in, struct cv_arena *arena, struct cv_share_frame *ret) {
  CV_TRY(cv_codec_take_greetings(in->hello, in->goodbye, &ret->hello, &ret->goodbye));
  CV_TRY(take_enters(in, arena, ret));
  CV_TRY(take_sessions(in, arena, ret));
  CV_TRY(take_turned(in, arena, ret));
  CV_TRY(take_opens(in, arena, ret));
  CV_TRY(take_opened(in, arena, ret));
  CV_TRY(take_plans(in, arena, ret));
  CV_TRY(take_plans_opened(in, arena, ret));
  CV_TRY(take_plans_refused(in, arena, ret));
  CV_TRY(take_batches(in, arena, ret));
  CV_TRY(take_answers(in, arena, ret));
  CV_TRY(take_dones(in, arena, ret));
  CV_TRY(take_closes(in, arena, ret));
  CV_TRY(take_closed(in, arena, ret));
  CV_TRY(take_overs(in, arena, ret));
  return take_ended(in, arena, ret);
}

enum cv_err cv_share_decode(const void *bytes, size_t n, struct cv_arena *arena, struct cv_share_frame *ret) {
  ProtobufCMessage *message;
  CV_TRY(cv_codec_unpack(&crowdveil__share__envelope__descriptor, bytes, n, CV_LARGE_FRAME_BYTES, arena, &message));
  struct cv_share_frame frame = {0};
  CV_TRY(take_all((const Crowdveil__Share__Envelope *)message, arena, &frame));
  /* As in crowd.c: at least one field that this version knows. */
  if (!frame.hello.present && frame.goodbye == NULL && entries(&frame) == 0) {
    return CV_ERR_FORMAT;
  }
  *ret = frame;
  return CV_OK;
}

/* ---- the wire ---- */

static enum cv_err decode(const void *bytes, size_t n, struct cv_arena *arena, void *ret_frame) {
  return cv_share_decode(bytes, n, arena, ret_frame);
}

static enum cv_err encode(const void *frame, struct cv_arena *scratch, struct cv_buf *out) {
  return cv_share_encode(frame, scratch, out);
}

static void goodbye(const char *why, const char *program, void *ret_frame) {
  *(struct cv_share_frame *)ret_frame = (struct cv_share_frame){
      .hello = {.present = program != NULL, .version = CV_WIRE_VERSION, .program = program}, .goodbye = why};
}

/* The most bytes of one entry in an envelope. */
enum {
  FULL = 200 * 1024, /* of an envelope's entries together; hello and goodbye have room beside them */
  SMALL_BYTES = 64,  /* numbers only */
  TEXT_BYTES = SMALL_BYTES + CV_WHY_BYTES,
  CLOSE_BYTES = 160,
  OPENED_BYTES = 512,
  SESSION_BYTES = 8 * 1024,
  WANT_BYTES = 24,
  PENDING_BYTES = 192,
};
_Static_assert(SMALL_BYTES + CV_BATCH_TOKENS * PENDING_BYTES <= FULL, "a batch fits into an envelope");

/* Whether an entry of so many bytes still fits; the first one always does. */
static bool fits(size_t *room, size_t bytes) {
  bool ok = *room == FULL || bytes <= *room;
  if (ok) {
    *room -= bytes < *room ? bytes : *room;
  }
  return ok;
}

/* Moves as many elements of one of the frame's arrays as fit; all that follow wait until it is empty. */
#define TAKE(array, count, bytes)                                   \
  do {                                                              \
    size_t i = 0;                                                   \
    while (i < rest->count && fits(&room, SMALL_BYTES + (bytes))) { \
      i++;                                                          \
    }                                                               \
    CV_CODEC_MOVE(rest, part, array, count, i);                     \
    if (rest->count > 0) {                                          \
      return true;                                                  \
    }                                                               \
  } while (0)

/* In the order of the envelope's fields, so that the parts say together what one envelope would. A campaign's spec has
 * an envelope of its own. */
static bool cut(void *from, void *to) {
  struct cv_share_frame *rest = from, *part = to;
  *part = (struct cv_share_frame){.hello = rest->hello};
  rest->hello.present = false;
  size_t room = FULL;
  TAKE(enter, enters, 0);
  TAKE(session, sessions, SESSION_BYTES);
  TAKE(turn, turned, TEXT_BYTES);
  TAKE(open, opens, FULL);
  TAKE(open_answer, opened, OPENED_BYTES);
  TAKE(plan, plans, rest->plan[i].plan.wants * (size_t)WANT_BYTES);
  TAKE(plan_opened, plans_opened, 0);
  TAKE(plan_refused, plans_refused, TEXT_BYTES);
  TAKE(batch, batches, rest->batch[i].tokens * PENDING_BYTES);
  TAKE(answer, answers, rest->answer[i].answers);
  TAKE(done, dones, 0);
  TAKE(close, closes, CLOSE_BYTES);
  TAKE(half, closed, 0);
  TAKE(over, overs, 0);
  TAKE(end, ended, TEXT_BYTES);
  /* In the last part: the peer closes when it reads it. */
  part->goodbye = rest->goodbye;
  return false;
}

const struct cv_wire CV_SHARE_WIRE = {.frame_bytes = sizeof(struct cv_share_frame),
                                      .arena_bytes = CV_LARGE_ARENA_BYTES,
                                      .decode = decode,
                                      .encode = encode,
                                      .goodbye = goodbye,
                                      .cut = cut};
