/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/order.h"

#include <order.pb-c.h>
#include <string.h>

#include "proto/codec/base.h"

/* Encoding: `made` holds the envelope's single message, so only repeated fields use the scratch arena. */

struct made {
  Crowdveil__Order__Envelope envelope;
  union {
    Crowdveil__Order__Submit submit;
    Crowdveil__Order__Watch watch;
    Crowdveil__Order__Cancel cancel;
    Crowdveil__Order__Export export;
    Crowdveil__Order__Status status;
    Crowdveil__Order__Accepted accepted;
    Crowdveil__Order__Purge purge;
    Crowdveil__Order__Purged purged;
    Crowdveil__Order__Standings standings;
    Crowdveil__Order__Finished finished;
    Crowdveil__Order__Part part;
    Crowdveil__Order__StatusAnswer status_answer;
    Crowdveil__Order__Ledger ledger;
    Crowdveil__Order__Statement statement;
    Crowdveil__Order__Description description;
    Crowdveil__Order__Error error;
  } as;
  Crowdveil__Order__Progress progress; /* of the message that has one */
};

/* What hinders the campaign: arms without data, and reasons of workers that declined it. */
static enum cv_err put_hindrances(const struct cv_progress *from, struct cv_arena *scratch,
                                  Crowdveil__Order__Progress *ret) {
  Crowdveil__Order__UsedUp *used_up;
  Crowdveil__Order__Declined *declined;
  if (!CV_CODEC_ROWS(scratch, from->used_ups, used_up, ret->used_up) ||
      !CV_CODEC_ROWS(scratch, from->declineds, declined, ret->declined)) {
    return CV_ERR_LIMIT;
  }
  ret->n_used_up = from->used_ups;
  ret->used_up_arms = from->used_up_arms;
  for (uint32_t i = 0; i < from->used_ups; i++) {
    used_up[i] = (Crowdveil__Order__UsedUp)CROWDVEIL__ORDER__USED_UP__INIT;
    used_up[i].arm = from->used_up[i].arm;
    used_up[i].tokens = from->used_up[i].tokens;
    used_up[i].wanted = from->used_up[i].wanted;
    ret->used_up[i] = &used_up[i];
  }
  ret->n_declined = from->declineds;
  ret->declined_all = from->declined_all;
  for (uint32_t i = 0; i < from->declineds; i++) {
    declined[i] = (Crowdveil__Order__Declined)CROWDVEIL__ORDER__DECLINED__INIT;
    declined[i].why = cv_codec_put_text(from->declined[i].why, CV_DECLINED_BYTES, scratch);
    declined[i].connections = from->declined[i].connections;
    if (declined[i].why == NULL) {
      return CV_ERR_LIMIT;
    }
    ret->declined[i] = &declined[i];
  }
  return CV_OK;
}

static enum cv_err put_progress(const struct cv_progress *from, struct cv_arena *scratch,
                                Crowdveil__Order__Progress *ret) {
  *ret = (Crowdveil__Order__Progress)CROWDVEIL__ORDER__PROGRESS__INIT;
  ret->campaign = from->campaign;
  ret->name = cv_codec_put_text(from->name, CV_NAME_BYTES, scratch);
  ret->tokens = from->tokens;
  ret->tokens_limit = from->tokens_limit;
  ret->releases = from->releases;
  ret->plans = from->plans;
  ret->elapsed_ms = from->elapsed_ms;
  ret->arms = from->arms;
  ret->decided = from->decided;
  ret->parked = from->parked;
  ret->contradictions = from->contradictions;
  ret->classes = from->classes;
  ret->epsilon_spent_micro = from->epsilon_spent_micro;
  ret->workers = from->workers;
  ret->end = (Crowdveil__Base__End)from->end;
  ret->thirdparty_connected = from->thirdparty_connected;
  ret->paid_micro = from->paid_micro;
  ret->budget_micro = from->budget_micro;
  ret->waits_for_cobroker = from->waits_for_cobroker;
  ret->cobroker_connected = from->cobroker_connected;
  ret->waits_for = cv_codec_put_text(from->waits_for, CV_NAME_BYTES, scratch);
  ret->why = cv_codec_put_text(from->why, sizeof(from->why), scratch);
  bool is_full = ret->name == NULL || ret->waits_for == NULL || ret->why == NULL;
  return is_full ? CV_ERR_LIMIT : put_hindrances(from, scratch, ret);
}

static enum cv_err put_gold(const struct cv_gold *from, struct cv_arena *scratch, Crowdveil__Order__Gold **ret) {
  if (from->items == 0) {
    return CV_OK;
  }
  Crowdveil__Order__Gold *to = cv_codec_room(scratch, 1, sizeof(*to));
  uint32_t *item = cv_codec_room(scratch, from->items, sizeof(*item));
  uint64_t *answer = cv_codec_room(scratch, from->items, sizeof(*answer));
  if (to == NULL || item == NULL || answer == NULL) {
    return CV_ERR_LIMIT;
  }
  for (uint32_t i = 0; i < from->items; i++) {
    item[i] = from->item[i].item;
    answer[i] = (uint64_t)from->item[i].answer;
  }
  *to = (Crowdveil__Order__Gold)CROWDVEIL__ORDER__GOLD__INIT;
  to->n_items = to->n_answers = from->items;
  to->items = item;
  to->answers = answer;
  to->tolerance = (uint64_t)from->tolerance;
  to->error_micro = from->error_micro;
  to->level_micro = from->level_micro;
  to->share_micro = from->share_micro;
  to->epsilon_micro = from->epsilon_micro;
  *ret = to;
  return CV_OK;
}

static enum cv_err put_submit(const struct cv_submit *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Submit *to = &made->as.submit;
  *to = (Crowdveil__Order__Submit)CROWDVEIL__ORDER__SUBMIT__INIT;
  to->client_key = cv_codec_bytes(from->client_key, CV_CLIENT_KEY_BYTES);
  made->envelope.submit = to;
  CV_TRY(put_gold(&from->gold, scratch, &to->gold));
  return cv_codec_put_spec(&from->spec, scratch, &to->spec);
}

static enum cv_err put_description(const struct cv_description *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Description *to = &made->as.description;
  *to = (Crowdveil__Order__Description)CROWDVEIL__ORDER__DESCRIPTION__INIT;
  to->campaign = from->campaign;
  made->envelope.description = to;
  return cv_codec_put_spec(&from->spec, scratch, &to->spec);
}

static enum cv_err put_standings(const struct cv_standings *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Standings *to = &made->as.standings;
  *to = (Crowdveil__Order__Standings)CROWDVEIL__ORDER__STANDINGS__INIT;
  to->campaign = from->campaign;
  to->n_standings = from->standings;
  made->envelope.standings = to;
  return cv_codec_put_standings(from->standing, from->standings, scratch, &to->standings);
}

static enum cv_err put_finished(const struct cv_finished *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Finished *to = &made->as.finished;
  *to = (Crowdveil__Order__Finished)CROWDVEIL__ORDER__FINISHED__INIT;
  to->progress = &made->progress;
  to->n_standings = from->standings;
  made->envelope.finished = to;
  CV_TRY(put_progress(&from->progress, scratch, &made->progress));
  return cv_codec_put_standings(from->standing, from->standings, scratch, &to->standings);
}

static enum cv_err put_records(const struct cv_part *from, struct cv_arena *scratch, Crowdveil__Order__Part *to) {
  Crowdveil__Base__Plan *plan;
  Crowdveil__Base__Release *release;
  if (!CV_CODEC_ROWS(scratch, from->plans, plan, to->plans) ||
      !CV_CODEC_ROWS(scratch, from->releases, release, to->releases)) {
    return CV_ERR_LIMIT;
  }
  to->n_plans = from->plans;
  for (size_t i = 0; i < from->plans; i++) {
    CV_TRY(cv_codec_put_plan(from->campaign, &from->plan[i], scratch, &plan[i]));
    to->plans[i] = &plan[i];
  }
  to->n_releases = from->releases;
  for (size_t i = 0; i < from->releases; i++) {
    CV_TRY(cv_codec_put_release(from->campaign, &from->release[i], scratch, &release[i]));
    to->releases[i] = &release[i];
  }
  to->n_neutral = from->neutrals;
  to->neutral = from->neutral;
  to->neutral_epsilon_micro = from->neutral_epsilon_micro;
  to->n_standings = from->standings;
  return cv_codec_put_standings(from->standing, from->standings, scratch, &to->standings);
}

static enum cv_err put_part(const struct cv_part *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Part *to = &made->as.part;
  *to = (Crowdveil__Order__Part)CROWDVEIL__ORDER__PART__INIT;
  to->campaign = from->campaign;
  to->last = from->last;
  made->envelope.part = to;
  if (from->first) {
    CV_TRY(cv_codec_put_spec(&from->spec, scratch, &to->spec));
    CV_TRY(cv_codec_put_seed(from->seed, scratch, &to->seed));
    CV_TRY(put_progress(&from->progress, scratch, &made->progress));
    to->progress = &made->progress;
  }
  return put_records(from, scratch, to);
}

static enum cv_err put_status(const struct cv_status *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__StatusAnswer *to = &made->as.status_answer;
  *to = (Crowdveil__Order__StatusAnswer)CROWDVEIL__ORDER__STATUS_ANSWER__INIT;
  Crowdveil__Order__Progress *row;
  to->broker = cv_codec_put_text(from->broker, CV_NAME_BYTES, scratch);
  if (to->broker == NULL || !CV_CODEC_ROWS(scratch, from->campaigns, row, to->campaigns)) {
    return CV_ERR_LIMIT;
  }
  to->uptime_ms = from->uptime_ms;
  to->term = from->term;
  to->n_campaigns = from->campaigns;
  for (size_t i = 0; i < from->campaigns; i++) {
    CV_TRY(put_progress(&from->campaign[i], scratch, &row[i]));
    to->campaigns[i] = &row[i];
  }
  made->envelope.status_answer = to;
  return CV_OK;
}

static enum cv_err put_ledger(const struct cv_statement_request *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Ledger *to = &made->as.ledger;
  *to = (Crowdveil__Order__Ledger)CROWDVEIL__ORDER__LEDGER__INIT;
  to->campaign = from->campaign;
  made->envelope.ledger = to;
  CV_TRY(put_gold(&from->gold, scratch, &to->gold));
  return from->has_plan ? cv_codec_put_spec(&from->plan, scratch, &to->plan) : CV_OK;
}

static enum cv_err put_accounts(const struct cv_statement *from, struct cv_arena *scratch,
                                Crowdveil__Order__Statement *to) {
  Crowdveil__Order__Account *row;
  if (!CV_CODEC_ROWS(scratch, from->arms, row, to->accounts)) {
    return CV_ERR_LIMIT;
  }
  to->n_accounts = from->arms;
  for (uint32_t i = 0; i < from->arms; i++) {
    row[i] = (Crowdveil__Order__Account)CROWDVEIL__ORDER__ACCOUNT__INIT;
    row[i].spent = from->account[i].spent_micro;
    row[i].lost = from->account[i].lost_micro;
    row[i].releases = from->account[i].releases;
    row[i].tokens = from->account[i].tokens;
    row[i].worker = from->account[i].worker;
    row[i].hires = from->account[i].hires;
    row[i].paid = from->account[i].paid_micro;
    to->accounts[i] = &row[i];
  }
  return CV_OK;
}

static enum cv_err put_statement(const struct cv_statement *from, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Statement *to = &made->as.statement;
  *to = (Crowdveil__Order__Statement)CROWDVEIL__ORDER__STATEMENT__INIT;
  to->campaign = from->campaign;
  to->name = cv_codec_put_text(from->name, CV_NAME_BYTES, scratch);
  to->mechanism = cv_codec_put_text(from->mechanism, CV_PARAM_TEXT, scratch);
  to->privatizer = cv_codec_put_text(from->privatizer, CV_PARAM_TEXT, scratch);
  to->guarantee = cv_codec_put_text(from->guarantee, CV_WHY_BYTES, scratch);
  to->why = cv_codec_put_text(from->why, sizeof(from->why), scratch);
  to->exact = from->is_exact;
  to->epsilon_micro = from->epsilon_micro;
  to->tokens_per_worker = from->tokens_per_worker;
  to->worker_epsilon_micro = from->worker_epsilon_micro;
  to->lifetime_epsilon_micro = from->lifetime_epsilon_micro;
  to->floor_micro = from->floor_micro;
  to->delta_pico = from->delta_pico;
  to->release_tokens = from->release_tokens;
  to->budget_micro = from->budget_micro;
  to->end = (Crowdveil__Base__End)from->end;
  made->envelope.statement = to;
  if (to->name == NULL || to->mechanism == NULL || to->privatizer == NULL || to->guarantee == NULL || to->why == NULL) {
    return CV_ERR_LIMIT;
  }
  return put_accounts(from, scratch, to);
}

static enum cv_err put_error(const char *why, struct cv_arena *scratch, struct made *made) {
  Crowdveil__Order__Error *to = &made->as.error;
  *to = (Crowdveil__Order__Error)CROWDVEIL__ORDER__ERROR__INIT;
  to->why = cv_codec_put_text(why, CV_WHY_BYTES, scratch);
  made->envelope.error = to;
  return to->why == NULL ? CV_ERR_LIMIT : CV_OK;
}

/* Messages with one number or no content. */
static void put_small(const struct cv_order_frame *frame, struct made *made) {
  switch (frame->kind) {
    case CV_ORDER_WATCH:
      made->as.watch = (Crowdveil__Order__Watch)CROWDVEIL__ORDER__WATCH__INIT;
      made->as.watch.campaign = frame->as.watch.campaign;
      made->as.watch.describe = frame->as.watch.describe;
      made->as.watch.standings = frame->as.watch.standings;
      made->envelope.watch = &made->as.watch;
      break;
    case CV_ORDER_CANCEL:
      made->as.cancel = (Crowdveil__Order__Cancel)CROWDVEIL__ORDER__CANCEL__INIT;
      made->as.cancel.campaign = frame->as.campaign;
      made->envelope.cancel = &made->as.cancel;
      break;
    case CV_ORDER_EXPORT:
      made->as.export = (Crowdveil__Order__Export)CROWDVEIL__ORDER__EXPORT__INIT;
      made->as.export.campaign = frame->as.campaign;
      made->envelope.export = &made->as.export;
      break;
    case CV_ORDER_STATUS:
      made->as.status = (Crowdveil__Order__Status)CROWDVEIL__ORDER__STATUS__INIT;
      made->envelope.status = &made->as.status;
      break;
    case CV_ORDER_PURGE:
      made->as.purge = (Crowdveil__Order__Purge)CROWDVEIL__ORDER__PURGE__INIT;
      made->as.purge.campaign = frame->as.campaign;
      made->envelope.purge = &made->as.purge;
      break;
    case CV_ORDER_PURGED:
      made->as.purged = (Crowdveil__Order__Purged)CROWDVEIL__ORDER__PURGED__INIT;
      made->as.purged.campaigns = frame->as.purged;
      made->envelope.purged = &made->as.purged;
      break;
    case CV_ORDER_ACCEPTED:
      made->as.accepted = (Crowdveil__Order__Accepted)CROWDVEIL__ORDER__ACCEPTED__INIT;
      made->as.accepted.campaign = frame->as.accepted.campaign;
      made->as.accepted.existed = frame->as.accepted.existed;
      made->envelope.accepted = &made->as.accepted;
      break;
    default:
      break;
  }
}

static enum cv_err put_kind(const struct cv_order_frame *frame, struct cv_arena *scratch, struct made *made) {
  switch (frame->kind) {
    case CV_ORDER_SUBMIT:
      return put_submit(&frame->as.submit, scratch, made);
    case CV_ORDER_PROGRESS:
      made->envelope.progress = &made->progress;
      return put_progress(&frame->as.progress, scratch, &made->progress);
    case CV_ORDER_DESCRIPTION:
      return put_description(&frame->as.description, scratch, made);
    case CV_ORDER_STANDINGS:
      return put_standings(&frame->as.standings, scratch, made);
    case CV_ORDER_FINISHED:
      return put_finished(&frame->as.finished, scratch, made);
    case CV_ORDER_PART:
      return put_part(&frame->as.part, scratch, made);
    case CV_ORDER_STATUS_ANSWER:
      return put_status(&frame->as.status, scratch, made);
    case CV_ORDER_LEDGER:
      return put_ledger(&frame->as.ledger, scratch, made);
    case CV_ORDER_STATEMENT:
      return put_statement(&frame->as.statement, scratch, made);
    case CV_ORDER_ERROR:
      return put_error(frame->as.error, scratch, made);
    default:
      put_small(frame, made);
      return CV_OK;
  }
}

enum cv_err cv_order_encode(const struct cv_order_frame *frame, struct cv_arena *scratch, struct cv_buf *out) {
  cv_arena_reset(scratch);
  struct made made = {.envelope = CROWDVEIL__ORDER__ENVELOPE__INIT};
  CV_TRY(cv_codec_put_greetings(&frame->hello, frame->goodbye, scratch, &made.envelope.hello, &made.envelope.goodbye));
  CV_TRY(put_kind(frame, scratch, &made));
  return cv_codec_pack(&made.envelope.base, CV_LARGE_FRAME_BYTES, out);
}

/* Decoding. */

static enum cv_err take_hindrances(const Crowdveil__Order__Progress *in, struct cv_progress *ret) {
  if (in->n_used_up > CV_USED_UP_SHOWN || in->n_used_up > in->used_up_arms || in->used_up_arms > in->arms ||
      in->n_declined > CV_DECLINED_SHOWN) {
    return CV_ERR_FORMAT;
  }
  ret->used_up_arms = in->used_up_arms;
  ret->used_ups = (uint32_t)in->n_used_up;
  for (uint32_t i = 0; i < ret->used_ups; i++) {
    const Crowdveil__Order__UsedUp *from = in->used_up[i];
    if (from->arm >= in->arms || from->tokens > from->wanted) {
      return CV_ERR_FORMAT;
    }
    ret->used_up[i] = (struct cv_used_up){.arm = from->arm, .tokens = from->tokens, .wanted = from->wanted};
  }
  ret->declined_all = in->declined_all;
  ret->declineds = (uint32_t)in->n_declined;
  for (uint32_t i = 0; i < ret->declineds; i++) {
    ret->declined[i].connections = in->declined[i]->connections;
    CV_TRY(cv_codec_take_text(in->declined[i]->why, ret->declined[i].why, CV_DECLINED_BYTES));
  }
  return CV_OK;
}

static enum cv_err take_progress(const Crowdveil__Order__Progress *in, struct cv_progress *ret) {
  if (in == NULL || !cv_codec_end_fits(in->end) || in->arms > CV_ARMS_MAX || in->classes > CV_ARMS_MAX ||
      in->paid_micro > in->budget_micro) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_progress){.campaign = in->campaign,
                              .tokens = in->tokens,
                              .tokens_limit = in->tokens_limit,
                              .releases = in->releases,
                              .plans = in->plans,
                              .elapsed_ms = in->elapsed_ms,
                              .arms = in->arms,
                              .decided = in->decided,
                              .parked = in->parked,
                              .contradictions = in->contradictions,
                              .classes = in->classes,
                              .epsilon_spent_micro = in->epsilon_spent_micro,
                              .workers = in->workers,
                              .end = (enum cv_end)in->end,
                              .thirdparty_connected = in->thirdparty_connected != 0,
                              .paid_micro = in->paid_micro,
                              .budget_micro = in->budget_micro,
                              .waits_for_cobroker = in->waits_for_cobroker != 0,
                              .cobroker_connected = in->cobroker_connected != 0};
  CV_TRY(cv_progress_counts_fit(ret) ? CV_OK : CV_ERR_FORMAT);
  CV_TRY(take_hindrances(in, ret));
  CV_TRY(cv_codec_take_text(in->waits_for, ret->waits_for, sizeof(ret->waits_for)));
  CV_TRY(cv_codec_take_text(in->why, ret->why, sizeof(ret->why)));
  return cv_codec_take_text(in->name, ret->name, sizeof(ret->name));
}

static enum cv_err take_gold(const Crowdveil__Order__Gold *in, struct cv_arena *arena, struct cv_gold *ret) {
  if (in == NULL) {
    return CV_OK;
  }
  if (in->n_items == 0 || in->n_items > CV_GOLD_MAX || in->n_answers != in->n_items) {
    return CV_ERR_FORMAT;
  }
  struct cv_gold_item *item = cv_codec_room(arena, in->n_items, sizeof(*item));
  if (item == NULL) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < in->n_items; i++) {
    item[i] = (struct cv_gold_item){.item = in->items[i], .answer = (int64_t)in->answers[i]};
  }
  *ret = (struct cv_gold){.items = (uint32_t)in->n_items,
                          .item = item,
                          .tolerance = (int64_t)in->tolerance,
                          .error_micro = in->error_micro,
                          .level_micro = in->level_micro,
                          .share_micro = in->share_micro,
                          .epsilon_micro = (uint32_t)in->epsilon_micro};
  return in->epsilon_micro <= CV_GOLD_EPSILON_MAX ? CV_OK : CV_ERR_FORMAT;
}

static enum cv_err take_submit(const Crowdveil__Order__Submit *in, struct cv_arena *arena, struct cv_submit *ret) {
  if (in->client_key.len != CV_CLIENT_KEY_BYTES) {
    return CV_ERR_FORMAT;
  }
  memcpy(ret->client_key, in->client_key.data, CV_CLIENT_KEY_BYTES);
  CV_TRY(take_gold(in->gold, arena, &ret->gold));
  return cv_codec_take_spec(in->spec, arena, &ret->spec);
}

static enum cv_err take_description(const Crowdveil__Order__Description *in, struct cv_arena *arena,
                                    struct cv_description *ret) {
  ret->campaign = in->campaign;
  CV_TRY(cv_codec_take_spec(in->spec, arena, &ret->spec));
  cv_codec_clean_names(&ret->spec);
  return CV_OK;
}

static enum cv_err take_finished(const Crowdveil__Order__Finished *in, struct cv_arena *arena,
                                 struct cv_finished *ret) {
  CV_TRY(take_progress(in->progress, &ret->progress));
  return cv_codec_take_standings(in->standings, in->n_standings, arena, &ret->standings, &ret->standing);
}

static enum cv_err take_records(const Crowdveil__Order__Part *in, struct cv_arena *arena, struct cv_part *ret) {
  ret->plan = cv_codec_room(arena, in->n_plans, sizeof(*ret->plan));
  ret->release = cv_codec_room(arena, in->n_releases, sizeof(*ret->release));
  if (ret->plan == NULL || ret->release == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->plans = in->n_plans;
  for (size_t i = 0; i < in->n_plans; i++) {
    if (in->plans[i]->campaign != in->campaign) {
      return CV_ERR_FORMAT;
    }
    CV_TRY(cv_codec_take_accepted_plan(in->plans[i], arena, &ret->plan[i]));
  }
  ret->releases = in->n_releases;
  for (size_t i = 0; i < in->n_releases; i++) {
    if (in->releases[i]->campaign != in->campaign) {
      return CV_ERR_FORMAT;
    }
    CV_TRY(cv_codec_take_release(in->releases[i], &ret->release[i]));
  }
  if (in->n_neutral > CV_ARMS_MAX || (in->n_neutral > 0) != (in->neutral_epsilon_micro > 0)) {
    return CV_ERR_FORMAT;
  }
  ret->neutrals = (uint32_t)in->n_neutral;
  ret->neutral = in->neutral;
  ret->neutral_epsilon_micro = in->neutral_epsilon_micro;
  return cv_codec_take_standings(in->standings, in->n_standings, arena, &ret->standings, &ret->standing);
}

static enum cv_err take_part(const Crowdveil__Order__Part *in, struct cv_arena *arena, struct cv_part *ret) {
  ret->campaign = in->campaign;
  ret->last = in->last != 0;
  ret->first = in->spec != NULL;
  if (ret->first) {
    CV_TRY(cv_codec_take_spec(in->spec, arena, &ret->spec));
    cv_codec_clean_names(&ret->spec);
    CV_TRY(cv_codec_take_seed(&in->seed, &ret->seed));
    CV_TRY(take_progress(in->progress, &ret->progress));
  } else if (in->seed.len > 0 || in->progress != NULL) {
    return CV_ERR_FORMAT;
  }
  return take_records(in, arena, ret);
}

static enum cv_err take_status(const Crowdveil__Order__StatusAnswer *in, struct cv_arena *arena,
                               struct cv_status *ret) {
  if (!cv_codec_text_fits(in->broker, CV_NAME_BYTES)) {
    return CV_ERR_FORMAT;
  }
  ret->broker = in->broker;
  ret->uptime_ms = in->uptime_ms;
  ret->term = in->term;
  ret->campaign = cv_codec_room(arena, in->n_campaigns, sizeof(*ret->campaign));
  if (ret->campaign == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->campaigns = in->n_campaigns;
  for (size_t i = 0; i < in->n_campaigns; i++) {
    CV_TRY(take_progress(in->campaigns[i], &ret->campaign[i]));
  }
  return CV_OK;
}

static enum cv_err take_ledger(const Crowdveil__Order__Ledger *in, struct cv_arena *arena,
                               struct cv_statement_request *ret) {
  ret->campaign = in->campaign;
  ret->has_plan = in->plan != NULL;
  CV_TRY(take_gold(in->gold, arena, &ret->gold));
  return ret->has_plan ? cv_codec_take_spec(in->plan, arena, &ret->plan) : CV_OK;
}

static enum cv_err take_statement(const Crowdveil__Order__Statement *in, struct cv_arena *arena,
                                  struct cv_statement *ret) {
  if (!cv_codec_end_fits(in->end) || in->n_accounts > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_statement){.campaign = in->campaign,
                               .is_exact = in->exact != 0,
                               .epsilon_micro = in->epsilon_micro,
                               .worker_epsilon_micro = in->worker_epsilon_micro,
                               .lifetime_epsilon_micro = in->lifetime_epsilon_micro,
                               .floor_micro = in->floor_micro,
                               .delta_pico = in->delta_pico,
                               .release_tokens = in->release_tokens,
                               .budget_micro = in->budget_micro,
                               .tokens_per_worker = in->tokens_per_worker,
                               .end = (enum cv_end)in->end,
                               .arms = (uint32_t)in->n_accounts};
  CV_TRY(cv_codec_take_text(in->name, ret->name, sizeof(ret->name)));
  CV_TRY(cv_codec_take_text(in->mechanism, ret->mechanism, sizeof(ret->mechanism)));
  CV_TRY(cv_codec_take_text(in->privatizer, ret->privatizer, sizeof(ret->privatizer)));
  CV_TRY(cv_codec_take_text(in->guarantee, ret->guarantee, sizeof(ret->guarantee)));
  CV_TRY(cv_codec_take_text(in->why, ret->why, sizeof(ret->why)));
  ret->account = cv_codec_room(arena, in->n_accounts, sizeof(*ret->account));
  if (ret->account == NULL) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < in->n_accounts; i++) {
    const Crowdveil__Order__Account *row = in->accounts[i];
    if (row->lost > row->spent || row->paid > in->budget_micro) {
      return CV_ERR_FORMAT;
    }
    ret->account[i] = (struct cv_account){.spent_micro = row->spent,
                                          .lost_micro = row->lost,
                                          .releases = row->releases,
                                          .tokens = row->tokens,
                                          .worker = row->worker,
                                          .hires = row->hires,
                                          .paid_micro = row->paid};
  }
  return CV_OK;
}

/* Returns the kind of the envelope's only message; CV_ERR_FORMAT if there are two, or none. */
static enum cv_err find_kind(const Crowdveil__Order__Envelope *in, enum cv_order_kind *ret) {
  const struct {
    const void *message;
    enum cv_order_kind kind;
  } slots[] = {
      {in->submit, CV_ORDER_SUBMIT},       {in->watch, CV_ORDER_WATCH},
      {in->cancel, CV_ORDER_CANCEL},       {in->export, CV_ORDER_EXPORT},
      {in->purge, CV_ORDER_PURGE},         {in->purged, CV_ORDER_PURGED},
      {in->status, CV_ORDER_STATUS},       {in->accepted, CV_ORDER_ACCEPTED},
      {in->progress, CV_ORDER_PROGRESS},   {in->finished, CV_ORDER_FINISHED},
      {in->part, CV_ORDER_PART},           {in->status_answer, CV_ORDER_STATUS_ANSWER},
      {in->error, CV_ORDER_ERROR},         {in->ledger, CV_ORDER_LEDGER},
      {in->statement, CV_ORDER_STATEMENT}, {in->description, CV_ORDER_DESCRIPTION},
      {in->standings, CV_ORDER_STANDINGS},
  };
  enum cv_order_kind kind = CV_ORDER_NONE;
  for (size_t i = 0; i < CV_COUNT(slots); i++) {
    if (slots[i].message == NULL) {
      continue;
    }
    /* One request at a time: two in an envelope would have no order. */
    if (kind != CV_ORDER_NONE) {
      return CV_ERR_FORMAT;
    }
    kind = slots[i].kind;
  }
  if (kind == CV_ORDER_NONE && in->hello == NULL && in->goodbye == NULL) {
    return CV_ERR_FORMAT;
  }
  *ret = kind;
  return CV_OK;
}

static enum cv_err take_kind(const Crowdveil__Order__Envelope *in, struct cv_arena *arena, struct cv_order_frame *ret) {
  switch (ret->kind) {
    case CV_ORDER_NONE:
    case CV_ORDER_STATUS:
      return CV_OK;
    case CV_ORDER_SUBMIT:
      return take_submit(in->submit, arena, &ret->as.submit);
    case CV_ORDER_WATCH:
      ret->as.watch.campaign = in->watch->campaign;
      ret->as.watch.describe = in->watch->describe != 0;
      ret->as.watch.standings = in->watch->standings != 0;
      return CV_OK;
    case CV_ORDER_CANCEL:
      ret->as.campaign = in->cancel->campaign;
      return CV_OK;
    case CV_ORDER_EXPORT:
      ret->as.campaign = in->export->campaign;
      return CV_OK;
    case CV_ORDER_PURGE:
      ret->as.campaign = in->purge->campaign;
      return CV_OK;
    case CV_ORDER_PURGED:
      ret->as.purged = in->purged->campaigns;
      return CV_OK;
    case CV_ORDER_ACCEPTED:
      ret->as.accepted.campaign = in->accepted->campaign;
      ret->as.accepted.existed = in->accepted->existed != 0;
      return CV_OK;
    case CV_ORDER_PROGRESS:
      return take_progress(in->progress, &ret->as.progress);
    case CV_ORDER_DESCRIPTION:
      return take_description(in->description, arena, &ret->as.description);
    case CV_ORDER_STANDINGS:
      ret->as.standings.campaign = in->standings->campaign;
      return cv_codec_take_standings(in->standings->standings, in->standings->n_standings, arena,
                                     &ret->as.standings.standings, &ret->as.standings.standing);
    case CV_ORDER_FINISHED:
      return take_finished(in->finished, arena, &ret->as.finished);
    case CV_ORDER_PART:
      return take_part(in->part, arena, &ret->as.part);
    case CV_ORDER_STATUS_ANSWER:
      return take_status(in->status_answer, arena, &ret->as.status);
    case CV_ORDER_LEDGER:
      return take_ledger(in->ledger, arena, &ret->as.ledger);
    case CV_ORDER_STATEMENT:
      return take_statement(in->statement, arena, &ret->as.statement);
    case CV_ORDER_ERROR:
      ret->as.error = in->error->why;
      return cv_codec_text_fits(in->error->why, CV_WHY_BYTES) ? CV_OK : CV_ERR_FORMAT;
  }
  return CV_ERR_FORMAT;
}

enum cv_err cv_order_decode(const void *bytes, size_t n, struct cv_arena *arena, struct cv_order_frame *ret) {
  ProtobufCMessage *message;
  CV_TRY(cv_codec_unpack(&crowdveil__order__envelope__descriptor, bytes, n, CV_LARGE_FRAME_BYTES, arena, &message));
  const Crowdveil__Order__Envelope *in = (const Crowdveil__Order__Envelope *)message;
  struct cv_order_frame frame = {0};
  CV_TRY(cv_codec_take_greetings(in->hello, in->goodbye, &frame.hello, &frame.goodbye));
  CV_TRY(find_kind(in, &frame.kind));
  CV_TRY(take_kind(in, arena, &frame));
  *ret = frame;
  return CV_OK;
}

/* ---- the wire ---- */

static enum cv_err decode(const void *bytes, size_t n, struct cv_arena *arena, void *ret_frame) {
  return cv_order_decode(bytes, n, arena, ret_frame);
}

static enum cv_err encode(const void *frame, struct cv_arena *scratch, struct cv_buf *out) {
  return cv_order_encode(frame, scratch, out);
}

static void goodbye(const char *why, const char *program, void *ret_frame) {
  *(struct cv_order_frame *)ret_frame = (struct cv_order_frame){
      .hello = {.present = program != NULL, .version = CV_WIRE_VERSION, .program = program}, .goodbye = why};
}

const struct cv_wire CV_ORDER_WIRE = {.frame_bytes = sizeof(struct cv_order_frame),
                                      .arena_bytes = CV_LARGE_ARENA_BYTES,
                                      .decode = decode,
                                      .encode = encode,
                                      .goodbye = goodbye};
