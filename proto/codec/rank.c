/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/rank.h"

#include <rank.pb-c.h>

#include "proto/codec/base.h"

/* Encoding: one function per repeated field of the envelope, in the envelope's order. */

static enum cv_err put_position(const struct cv_position *position, struct cv_arena *scratch,
                                Crowdveil__Rank__Position **ret) {
  Crowdveil__Rank__Position *to = cv_codec_room(scratch, 1, sizeof(*to));
  if (to == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Rank__Position)CROWDVEIL__RANK__POSITION__INIT;
  to->campaign = position->campaign;
  to->releases = position->releases;
  to->releases_hash = cv_codec_bytes(position->releases_hash.bytes, CV_DIGEST_BYTES);
  to->plans = position->plans;
  to->plans_hash = cv_codec_bytes(position->plans_hash.bytes, CV_DIGEST_BYTES);
  *ret = to;
  return CV_OK;
}

static enum cv_err put_opens(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__OpenCampaign *row;
  if (!CV_CODEC_ROWS(scratch, frame->opens, row, to->opens)) {
    return CV_ERR_LIMIT;
  }
  to->n_opens = frame->opens;
  for (size_t i = 0; i < frame->opens; i++) {
    const struct cv_rank_open *from = &frame->open[i];
    row[i] = (Crowdveil__Rank__OpenCampaign)CROWDVEIL__RANK__OPEN_CAMPAIGN__INIT;
    CV_TRY(cv_codec_put_spec(&from->spec, scratch, &row[i].spec));
    CV_TRY(put_position(&from->position, scratch, &row[i].position));
    if (from->has_seed) {
      CV_TRY(cv_codec_put_seed(from->seed, scratch, &row[i].seed));
    }
    row[i].stop = (Crowdveil__Base__End)from->stop;
    to->opens[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_plan(const struct cv_rank_plan *from, struct cv_arena *scratch, Crowdveil__Base__Plan *ret) {
  CV_TRY(cv_codec_put_plan(from->campaign, &from->plan, scratch, ret));
  ret->n_standings = from->standings;
  return cv_codec_put_standings(from->standing, from->standings, scratch, &ret->standings);
}

static enum cv_err put_recorded(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                                Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__Recorded *row;
  Crowdveil__Base__Plan *plan = cv_codec_room(scratch, frame->recorded, sizeof(*plan));
  if (plan == NULL || !CV_CODEC_ROWS(scratch, frame->recorded, row, to->recorded)) {
    return CV_ERR_LIMIT;
  }
  to->n_recorded = frame->recorded;
  for (size_t i = 0; i < frame->recorded; i++) {
    row[i] = (Crowdveil__Rank__Recorded)CROWDVEIL__RANK__RECORDED__INIT;
    CV_TRY(put_plan(&frame->record[i], scratch, &plan[i]));
    row[i].plan = &plan[i];
    to->recorded[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_releases(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                                Crowdveil__Rank__Envelope *to) {
  Crowdveil__Base__Release *row;
  if (!CV_CODEC_ROWS(scratch, frame->releases, row, to->releases)) {
    return CV_ERR_LIMIT;
  }
  to->n_releases = frame->releases;
  for (size_t i = 0; i < frame->releases; i++) {
    CV_TRY(cv_codec_put_release(frame->release[i].campaign, &frame->release[i].release, scratch, &row[i]));
    to->releases[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_accepted(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                                Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__PlanAccepted *row;
  if (!CV_CODEC_ROWS(scratch, frame->accepted, row, to->accepted)) {
    return CV_ERR_LIMIT;
  }
  to->n_accepted = frame->accepted;
  for (size_t i = 0; i < frame->accepted; i++) {
    row[i] = (Crowdveil__Rank__PlanAccepted)CROWDVEIL__RANK__PLAN_ACCEPTED__INIT;
    row[i].campaign = frame->accept[i].campaign;
    row[i].plan = frame->accept[i].number;
    to->accepted[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_refused(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                               Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__PlanRefused *row;
  if (!CV_CODEC_ROWS(scratch, frame->refused, row, to->refused)) {
    return CV_ERR_LIMIT;
  }
  to->n_refused = frame->refused;
  for (size_t i = 0; i < frame->refused; i++) {
    const struct cv_rank_refused *from = &frame->refuse[i];
    row[i] = (Crowdveil__Rank__PlanRefused)CROWDVEIL__RANK__PLAN_REFUSED__INIT;
    row[i].campaign = from->campaign;
    row[i].plan = from->plan;
    row[i].reason = (Crowdveil__Base__End)from->reason;
    row[i].why = cv_codec_put_text(from->why, CV_WHY_BYTES, scratch);
    row[i].asked = from->asked;
    row[i].left = from->left;
    if (row[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    to->refused[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_stops(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__Stop *row;
  if (!CV_CODEC_ROWS(scratch, frame->stops, row, to->stops)) {
    return CV_ERR_LIMIT;
  }
  to->n_stops = frame->stops;
  for (size_t i = 0; i < frame->stops; i++) {
    row[i] = (Crowdveil__Rank__Stop)CROWDVEIL__RANK__STOP__INIT;
    row[i].campaign = frame->stop[i].campaign;
    row[i].reason = (Crowdveil__Base__End)frame->stop[i].reason;
    to->stops[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_closed(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__Closed *row;
  if (!CV_CODEC_ROWS(scratch, frame->closed, row, to->closed)) {
    return CV_ERR_LIMIT;
  }
  to->n_closed = frame->closed;
  for (size_t i = 0; i < frame->closed; i++) {
    row[i] = (Crowdveil__Rank__Closed)CROWDVEIL__RANK__CLOSED__INIT;
    row[i].campaign = frame->close[i];
    to->closed[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_opened(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                              Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__Opened *row;
  if (!CV_CODEC_ROWS(scratch, frame->opened, row, to->opened)) {
    return CV_ERR_LIMIT;
  }
  to->n_opened = frame->opened;
  for (size_t i = 0; i < frame->opened; i++) {
    const struct cv_rank_opened *from = &frame->answer[i];
    row[i] = (Crowdveil__Rank__Opened)CROWDVEIL__RANK__OPENED__INIT;
    CV_TRY(put_position(&from->position, scratch, &row[i].position));
    CV_TRY(cv_codec_put_seed(from->seed, scratch, &row[i].seed));
    CV_TRY(cv_codec_put_refused(from->refused, scratch, &row[i].refused));
    to->opened[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_acks(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                            Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__Ack *row;
  if (!CV_CODEC_ROWS(scratch, frame->acks, row, to->acks)) {
    return CV_ERR_LIMIT;
  }
  to->n_acks = frame->acks;
  for (size_t i = 0; i < frame->acks; i++) {
    row[i] = (Crowdveil__Rank__Ack)CROWDVEIL__RANK__ACK__INIT;
    row[i].campaign = frame->ack[i].campaign;
    row[i].release = frame->ack[i].number;
    to->acks[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_plans(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                             Crowdveil__Rank__Envelope *to) {
  Crowdveil__Base__Plan *row;
  if (!CV_CODEC_ROWS(scratch, frame->plans, row, to->plans)) {
    return CV_ERR_LIMIT;
  }
  to->n_plans = frame->plans;
  for (size_t i = 0; i < frame->plans; i++) {
    CV_TRY(put_plan(&frame->plan[i], scratch, &row[i]));
    to->plans[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_results(const struct cv_rank_frame *frame, struct cv_arena *scratch,
                               Crowdveil__Rank__Envelope *to) {
  Crowdveil__Rank__Result *row;
  if (!CV_CODEC_ROWS(scratch, frame->results, row, to->results)) {
    return CV_ERR_LIMIT;
  }
  to->n_results = frame->results;
  for (size_t i = 0; i < frame->results; i++) {
    const struct cv_rank_result *from = &frame->result[i];
    row[i] = (Crowdveil__Rank__Result)CROWDVEIL__RANK__RESULT__INIT;
    row[i].campaign = from->campaign;
    row[i].reason = (Crowdveil__Base__End)from->reason;
    row[i].n_standings = from->standings;
    CV_TRY(cv_codec_put_standings(from->standing, from->standings, scratch, &row[i].standings));
    to->results[i] = &row[i];
  }
  return CV_OK;
}

enum cv_err cv_rank_encode(const struct cv_rank_frame *frame, struct cv_arena *scratch, struct cv_buf *out) {
  cv_arena_reset(scratch);
  Crowdveil__Rank__Envelope to = CROWDVEIL__RANK__ENVELOPE__INIT;
  CV_TRY(cv_codec_put_greetings(&frame->hello, frame->goodbye, scratch, &to.hello, &to.goodbye));
  CV_TRY(put_opens(frame, scratch, &to));
  CV_TRY(put_recorded(frame, scratch, &to));
  CV_TRY(put_releases(frame, scratch, &to));
  CV_TRY(put_accepted(frame, scratch, &to));
  CV_TRY(put_refused(frame, scratch, &to));
  CV_TRY(put_stops(frame, scratch, &to));
  CV_TRY(put_closed(frame, scratch, &to));
  CV_TRY(put_opened(frame, scratch, &to));
  CV_TRY(put_acks(frame, scratch, &to));
  CV_TRY(put_plans(frame, scratch, &to));
  CV_TRY(put_results(frame, scratch, &to));
  return cv_codec_pack(&to.base, CV_LARGE_FRAME_BYTES, out);
}

/* Decoding. */

static enum cv_err take_position(const Crowdveil__Rank__Position *in, struct cv_position *ret) {
  if (in == NULL) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_position){.campaign = in->campaign, .releases = in->releases, .plans = in->plans};
  CV_TRY(cv_codec_take_digest(&in->releases_hash, &ret->releases_hash));
  return cv_codec_take_digest(&in->plans_hash, &ret->plans_hash);
}

static enum cv_err take_opens(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ret->open = cv_codec_room(arena, in->n_opens, sizeof(*ret->open));
  if (ret->open == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->opens = in->n_opens;
  for (size_t i = 0; i < in->n_opens; i++) {
    const Crowdveil__Rank__OpenCampaign *from = in->opens[i];
    struct cv_rank_open *to = &ret->open[i];
    *to = (struct cv_rank_open){.has_seed = from->seed.len > 0, .stop = (enum cv_end)from->stop};
    if (!cv_codec_end_fits(from->stop)) {
      return CV_ERR_FORMAT;
    }
    CV_TRY(cv_codec_take_spec(from->spec, arena, &to->spec));
    cv_codec_clean_names(&to->spec);
    CV_TRY(take_position(from->position, &to->position));
    if (to->has_seed) {
      CV_TRY(cv_codec_take_seed(&from->seed, &to->seed));
    }
  }
  return CV_OK;
}

static enum cv_err take_plan(const Crowdveil__Base__Plan *in, bool accepted, struct cv_arena *arena,
                             struct cv_rank_plan *ret) {
  if (in == NULL) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_rank_plan){.campaign = in->campaign};
  CV_TRY((accepted ? cv_codec_take_accepted_plan : cv_codec_take_plan)(in, arena, &ret->plan));
  return cv_codec_take_standings(in->standings, in->n_standings, arena, &ret->standings, &ret->standing);
}

static enum cv_err take_recorded(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena,
                                 struct cv_rank_frame *ret) {
  ret->record = cv_codec_room(arena, in->n_recorded, sizeof(*ret->record));
  if (ret->record == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->recorded = in->n_recorded;
  for (size_t i = 0; i < in->n_recorded; i++) {
    CV_TRY(take_plan(in->recorded[i]->plan, true, arena, &ret->record[i]));
  }
  return CV_OK;
}

static enum cv_err take_releases(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena,
                                 struct cv_rank_frame *ret) {
  ret->release = cv_codec_room(arena, in->n_releases, sizeof(*ret->release));
  if (ret->release == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->releases = in->n_releases;
  for (size_t i = 0; i < in->n_releases; i++) {
    ret->release[i].campaign = in->releases[i]->campaign;
    CV_TRY(cv_codec_take_release(in->releases[i], &ret->release[i].release));
  }
  return CV_OK;
}

static enum cv_err take_accepted(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena,
                                 struct cv_rank_frame *ret) {
  ret->accept = cv_codec_room(arena, in->n_accepted, sizeof(*ret->accept));
  if (ret->accept == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->accepted = in->n_accepted;
  for (size_t i = 0; i < in->n_accepted; i++) {
    ret->accept[i] = (struct cv_rank_number){.campaign = in->accepted[i]->campaign, .number = in->accepted[i]->plan};
  }
  return CV_OK;
}

static enum cv_err take_refused(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena,
                                struct cv_rank_frame *ret) {
  ret->refuse = cv_codec_room(arena, in->n_refused, sizeof(*ret->refuse));
  if (ret->refuse == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->refused = in->n_refused;
  for (size_t i = 0; i < in->n_refused; i++) {
    const Crowdveil__Rank__PlanRefused *from = in->refused[i];
    if (!cv_codec_is_reason(from->reason) || !cv_codec_text_fits(from->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    ret->refuse[i] = (struct cv_rank_refused){.campaign = from->campaign,
                                              .plan = from->plan,
                                              .reason = (enum cv_end)from->reason,
                                              .why = from->why,
                                              .asked = from->asked,
                                              .left = from->left};
  }
  return CV_OK;
}

static enum cv_err take_stops(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ret->stop = cv_codec_room(arena, in->n_stops, sizeof(*ret->stop));
  if (ret->stop == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->stops = in->n_stops;
  for (size_t i = 0; i < in->n_stops; i++) {
    if (!cv_codec_is_reason(in->stops[i]->reason)) {
      return CV_ERR_FORMAT;
    }
    ret->stop[i] =
        (struct cv_rank_stop){.campaign = in->stops[i]->campaign, .reason = (enum cv_end)in->stops[i]->reason};
  }
  return CV_OK;
}

static enum cv_err take_closed(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ret->close = cv_codec_room(arena, in->n_closed, sizeof(*ret->close));
  if (ret->close == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->closed = in->n_closed;
  for (size_t i = 0; i < in->n_closed; i++) {
    ret->close[i] = in->closed[i]->campaign;
  }
  return CV_OK;
}

static enum cv_err take_opened(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ret->answer = cv_codec_room(arena, in->n_opened, sizeof(*ret->answer));
  if (ret->answer == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->opened = in->n_opened;
  for (size_t i = 0; i < in->n_opened; i++) {
    const Crowdveil__Rank__Opened *from = in->opened[i];
    struct cv_rank_opened *to = &ret->answer[i];
    *to = (struct cv_rank_opened){.refused = from->refused[0] == '\0' ? NULL : from->refused};
    if (!cv_codec_text_fits(from->refused, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    CV_TRY(take_position(from->position, &to->position));
    /* A third-party that refuses may not have drawn a seed. */
    if (to->refused == NULL || from->seed.len > 0) {
      CV_TRY(cv_codec_take_seed(&from->seed, &to->seed));
    }
  }
  return CV_OK;
}

static enum cv_err take_acks(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ret->ack = cv_codec_room(arena, in->n_acks, sizeof(*ret->ack));
  if (ret->ack == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->acks = in->n_acks;
  for (size_t i = 0; i < in->n_acks; i++) {
    ret->ack[i] = (struct cv_rank_number){.campaign = in->acks[i]->campaign, .number = in->acks[i]->release};
  }
  return CV_OK;
}

static enum cv_err take_plans(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ret->plan = cv_codec_room(arena, in->n_plans, sizeof(*ret->plan));
  if (ret->plan == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->plans = in->n_plans;
  for (size_t i = 0; i < in->n_plans; i++) {
    CV_TRY(take_plan(in->plans[i], false, arena, &ret->plan[i]));
  }
  return CV_OK;
}

static enum cv_err take_results(const Crowdveil__Rank__Envelope *in, struct cv_arena *arena,
                                struct cv_rank_frame *ret) {
  ret->result = cv_codec_room(arena, in->n_results, sizeof(*ret->result));
  if (ret->result == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->results = in->n_results;
  for (size_t i = 0; i < in->n_results; i++) {
    const Crowdveil__Rank__Result *from = in->results[i];
    struct cv_rank_result *to = &ret->result[i];
    if (!cv_codec_is_reason(from->reason)) {
      return CV_ERR_FORMAT;
    }
    *to = (struct cv_rank_result){.campaign = from->campaign, .reason = (enum cv_end)from->reason};
    CV_TRY(cv_codec_take_standings(from->standings, from->n_standings, arena, &to->standings, &to->standing));
  }
  return CV_OK;
}

static bool is_empty(const struct cv_rank_frame *frame) {
  return !frame->hello.present && frame->goodbye == NULL &&
         frame->opens + frame->recorded + frame->releases + frame->accepted + frame->refused + frame->stops +
                 frame->closed + frame->opened + frame->acks + frame->plans + frame->results ==
             0;
}

enum cv_err cv_rank_decode(const void *bytes, size_t n, struct cv_arena *arena, struct cv_rank_frame *ret) {
  ProtobufCMessage *message;
  CV_TRY(cv_codec_unpack(&crowdveil__rank__envelope__descriptor, bytes, n, CV_LARGE_FRAME_BYTES, arena, &message));
  const Crowdveil__Rank__Envelope *in = (const Crowdveil__Rank__Envelope *)message;
  struct cv_rank_frame frame = {0};
  CV_TRY(cv_codec_take_greetings(in->hello, in->goodbye, &frame.hello, &frame.goodbye));
  CV_TRY(take_opens(in, arena, &frame));
  CV_TRY(take_recorded(in, arena, &frame));
  CV_TRY(take_releases(in, arena, &frame));
  CV_TRY(take_accepted(in, arena, &frame));
  CV_TRY(take_refused(in, arena, &frame));
  CV_TRY(take_stops(in, arena, &frame));
  CV_TRY(take_closed(in, arena, &frame));
  CV_TRY(take_opened(in, arena, &frame));
  CV_TRY(take_acks(in, arena, &frame));
  CV_TRY(take_plans(in, arena, &frame));
  CV_TRY(take_results(in, arena, &frame));
  /* As in crowd.c: at least one field that this version knows. */
  if (is_empty(&frame)) {
    return CV_ERR_FORMAT;
  }
  *ret = frame;
  return CV_OK;
}

/* ---- the wire ---- */

static enum cv_err decode(const void *bytes, size_t n, struct cv_arena *arena, void *ret_frame) {
  return cv_rank_decode(bytes, n, arena, ret_frame);
}

static enum cv_err encode(const void *frame, struct cv_arena *scratch, struct cv_buf *out) {
  return cv_rank_encode(frame, scratch, out);
}

static void goodbye(const char *why, const char *program, void *ret_frame) {
  *(struct cv_rank_frame *)ret_frame = (struct cv_rank_frame){
      .hello = {.present = program != NULL, .version = CV_WIRE_VERSION, .program = program}, .goodbye = why};
}

const struct cv_wire CV_RANK_WIRE = {.frame_bytes = sizeof(struct cv_rank_frame),
                                     .arena_bytes = CV_LARGE_ARENA_BYTES,
                                     .decode = decode,
                                     .encode = encode,
                                     .goodbye = goodbye};
