/* SPDX-License-Identifier: Apache-2.0 */
/* Requesters: each submits, watches, cancels and exports its own campaigns. One answer a flush, in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/state.h"

enum { PROGRESS_MS = 200, STATUS_MAX = 256, PART_PLANS = 16, PART_WANTS = 8192 };

static enum cv_err push_request(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_request *request,
                                struct cv_why *why) {
  if (conn->requests == CV_REQUESTS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%d requests are unanswered; expected to wait", CV_REQUESTS_MAX);
  }
  conn->request[conn->requests++] = *request;
  broker->said = true;
  return CV_OK;
}

static enum cv_err answer_error(struct cv_broker *broker, struct cv_broker_conn *conn, enum cv_refusal kind,
                                struct cv_why *why, const char *text) {
  cv_refusals_add(&broker->figures.refusals, kind);
  cv_broker_note(broker, conn->who, "refused: %s", text);
  struct cv_request request = {.answer = CV_ORDER_ERROR};
  (void)snprintf(request.text, sizeof(request.text), "%.*s", (int)sizeof(request.text) - 1, text);
  return push_request(broker, conn, &request, why);
}

static bool is_of(const struct cv_campaign *campaign, const struct cv_broker_conn *conn) {
  return strcmp(campaign->requester, conn->identity.name) == 0;
}

static const struct cv_ended *first_ended(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  const struct cv_owner *owner = cv_archive_owner(&broker->archive, conn->identity.name);
  return owner == NULL ? NULL : owner->first;
}

static uint32_t newest(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  uint32_t id = 0;
  for (const struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    id = is_of(campaign, conn) && campaign->id > id ? campaign->id : id;
  }
  for (const struct cv_ended *ended = first_ended(broker, conn); ended != NULL; ended = ended->after) {
    id = !ended->purged && ended->id > id ? ended->id : id;
  }
  return id;
}

/* The requester's own campaign; 0 means its newest. False, and a line, if there is none (any more). */
static bool find_own(struct cv_broker *broker, const struct cv_broker_conn *conn, uint64_t id, uint32_t *ret_id,
                     char text[CV_WHY_BYTES]) {
  const char *name = conn->identity.name;
  if (id == 0) {
    *ret_id = newest(broker, conn);
    (void)snprintf(text, CV_WHY_BYTES, "no campaign of %s", name);
    return *ret_id != 0;
  }
  const struct cv_campaign *campaign = cv_campaign_find(broker, id);
  const struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  *ret_id = (uint32_t)id;
  (void)snprintf(text, CV_WHY_BYTES, "no campaign %llu of %s", (unsigned long long)id, name);
  if (ended != NULL && ended->purged && strcmp(ended->owner->name, name) == 0) {
    (void)snprintf(text, CV_WHY_BYTES, "campaign %llu of %s was purged", (unsigned long long)id, name);
    return false;
  }
  return ended != NULL ? strcmp(ended->owner->name, name) == 0 : campaign != NULL && is_of(campaign, conn);
}

static uint32_t open_of(const struct cv_broker *broker, const struct cv_broker_conn *conn) {
  uint32_t open = 0;
  for (const struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    open += is_of(campaign, conn);
  }
  return open;
}

/* The campaign that was submitted with this key, purged or not; 0 if none is known. */
static uint32_t by_client_key(const struct cv_broker *broker, const struct cv_broker_conn *conn, const uint8_t *key) {
  for (const struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (is_of(campaign, conn) && memcmp(campaign->client_key, key, CV_CLIENT_KEY_BYTES) == 0) {
      return campaign->id;
    }
  }
  for (const struct cv_ended *ended = first_ended(broker, conn); ended != NULL; ended = ended->after) {
    if (memcmp(ended->client_key, key, CV_CLIENT_KEY_BYTES) == 0) {
      return ended->id;
    }
  }
  return 0;
}

/* Each costs the third-party a policy and both a commit, however soon it is cancelled. */
static enum cv_err check_rate(const struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_why *why) {
  const struct cv_broker_limits *limits = &broker->config.limits;
  uint32_t most = limits->kept > 0 && limits->kept < limits->submits ? limits->kept : limits->submits;
  uint32_t recent = most == 0 ? 0 : cv_ended_recent(broker, conn->identity.name);
  return most == 0 || recent < most
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_DENIED,
                   "%u campaigns of this requester were submitted within a minute; expected fewer than %u; try again "
                   "later",
                   recent, most);
}

static enum cv_err check_submit(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                                const struct cv_submit *submit, uint32_t open, struct cv_why *why) {
  CV_TRY(check_rate(broker, conn, why));
  CV_TRY(cv_gate_spec(&submit->spec, &broker->config.limits, why));
  if (open >= broker->config.limits.campaigns) {
    return cv_fail(why, CV_ERR_DENIED, "%u campaigns of this requester are open; expected fewer than %u", open,
                   broker->config.limits.campaigns);
  }
  struct cv_buf bytes = {0};
  cv_spec_encode(&submit->spec, &bytes);
  size_t n = bytes.len;
  bool ok = cv_buf_ok(&bytes);
  cv_buf_fini(&bytes);
  if (!ok) {
    return CV_ERR_NOMEM;
  }
  if (n > CV_SPEC_BYTES_MAX) {
    return cv_fail(why, CV_ERR_DENIED, "the campaign's names take %zu bytes; expected at most %d", n,
                   CV_SPEC_BYTES_MAX);
  }
  return CV_OK;
}

/* What was accepted has been completed (cv_privacy_init). */
static enum cv_err compare_specs(struct cv_broker *broker, uint32_t id, const struct cv_spec *theirs, bool *ret_same) {
  const struct cv_campaign *campaign = cv_campaign_find(broker, id);
  struct cv_spec completed = *theirs;
  struct cv_privacy privacy;
  struct cv_digest a, b;
  enum cv_err err = cv_privacy_init(&completed, &broker->config.limits, &privacy, NULL);
  if (err != CV_OK) {
    *ret_same = false;
    return err == CV_ERR_NOMEM ? err : CV_OK;
  }
  CV_TRY(cv_campaign_digest(broker, &completed, &a));
  if (campaign != NULL) {
    CV_TRY(cv_campaign_digest(broker, &campaign->spec, &b));
  } else {
    b = cv_archive_find(&broker->archive, id)->spec_digest;
  }
  *ret_same = memcmp(&a, &b, sizeof(a)) == 0;
  return CV_OK;
}

static enum cv_err make_campaign(struct cv_broker *broker, const struct cv_broker_conn *conn,
                                 const struct cv_submit *submit, uint32_t *ret_id) {
  struct cv_campaign *campaign;
  CV_TRY(cv_campaign_new(broker, (uint32_t)broker->totals.campaigns + 1, &submit->spec, false, &campaign));
  memcpy(campaign->requester, conn->identity.name, sizeof(campaign->requester));
  memcpy(campaign->client_key, submit->client_key, sizeof(campaign->client_key));
  campaign->submitted_wall_ms = broker->wall_ms;
  campaign->active_ms = broker->now_ms;
  if (submit->spec.deadline_ms > 0) {
    campaign->deadline_wall_ms = broker->wall_ms + submit->spec.deadline_ms;
    campaign->deadline_ms = broker->now_ms + submit->spec.deadline_ms;
  }
  campaign->fresh = true;
  cv_campaign_count(broker, campaign);
  cv_campaign_mark(broker, campaign);
  cv_broker_note(broker, NULL, "campaign %u \"%s\" accepted from %s: %u arms, policy %s, mechanism %s", campaign->id,
                 campaign->spec.name, campaign->requester, campaign->spec.arms, campaign->spec.policy.name,
                 campaign->spec.mechanism.name);
  *ret_id = campaign->id;
  return CV_OK;
}

static enum cv_err on_submit(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_submit *submit,
                             struct cv_why *why) {
  uint32_t id = by_client_key(broker, conn, submit->client_key);
  bool existed = id != 0, is_same = true;
  if (existed) {
    CV_TRY(compare_specs(broker, id, &submit->spec, &is_same));
  }
  if (!is_same) { /* to say "accepted" would be to run what was not asked for */
    char text[160];
    (void)snprintf(text, sizeof(text),
                   "client key was used for another campaign (%u); expected the same campaign, or a key of its own",
                   id);
    return answer_error(broker, conn, CV_REFUSED_SUBMIT, why, text);
  }
  if (!existed) {
    struct cv_why reason;
    uint32_t open = open_of(broker, conn);
    enum cv_err err = check_submit(broker, conn, submit, open, &reason);
    if (err != CV_OK) {
      return err == CV_ERR_NOMEM ? err : answer_error(broker, conn, CV_REFUSED_SUBMIT, why, reason.text);
    }
    cv_ended_make_room(broker, conn->identity.name, open);
    CV_TRY(make_campaign(broker, conn, submit, &id));
  }
  const struct cv_request request = {.answer = CV_ORDER_ACCEPTED, .campaign = id, .existed = existed};
  return push_request(broker, conn, &request, why);
}

static enum cv_err push_statement(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_statement *statement,
                                  struct cv_why *why) {
  const struct cv_request request = {.answer = CV_ORDER_STATEMENT, .statement = statement};
  enum cv_err err = push_request(broker, conn, &request, why);
  if (err != CV_OK) {
    cv_statement_free(statement);
  }
  return err;
}

static enum cv_err on_plan(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_spec *spec,
                           struct cv_why *why) {
  struct cv_statement *statement;
  struct cv_why reason;
  enum cv_err err = cv_statement_plan(broker, spec, &statement, &reason);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  return err == CV_OK ? push_statement(broker, conn, statement, why)
                      : answer_error(broker, conn, CV_REFUSED_SUBMIT, why, reason.text);
}

static enum cv_err on_own(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_order_frame *frame,
                          uint64_t id, struct cv_why *why) {
  char text[CV_WHY_BYTES];
  uint32_t own;
  if (!find_own(broker, conn, id, &own, text)) {
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  struct cv_campaign *campaign = cv_campaign_find(broker, own);
  broker->said = true;
  switch (frame->kind) {
    case CV_ORDER_WATCH:
      conn->watching = own;
      conn->finish_told = false;
      conn->progress_due = true;
      conn->describe_due = frame->as.watch.describe;
      return CV_OK;
    case CV_ORDER_LEDGER: { /* made when it is its turn: what leaves until then is in it */
      const struct cv_request request = {.answer = CV_ORDER_STATEMENT, .campaign = own};
      return push_request(broker, conn, &request, why);
    }
    case CV_ORDER_CANCEL: {
      if (campaign != NULL) {
        cv_campaign_stop(broker, campaign, CV_END_CANCELLED);
      }
      const struct cv_request request = {.answer = CV_ORDER_ACCEPTED, .campaign = own, .existed = true};
      return push_request(broker, conn, &request, why);
    }
    default:
      conn->export.campaign = own;
      conn->export.begun = false;
      conn->export.plans = conn->export.releases = 0;
      return CV_OK;
  }
}

/* Its own that have ended: one, or with 0 all of them. */
static enum cv_err on_purge(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t id, struct cv_why *why) {
  struct cv_owner *owner = cv_archive_owner(&broker->archive, conn->identity.name);
  struct cv_request request = {.answer = CV_ORDER_PURGED};
  char text[CV_WHY_BYTES];
  uint32_t own;
  if (id != 0 && !find_own(broker, conn, id, &own, text)) {
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  if (id != 0 && cv_archive_find(&broker->archive, id) == NULL) {
    (void)snprintf(text, sizeof(text), "campaign %llu has not ended; expected one that has, or is cancelled first",
                   (unsigned long long)id);
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  for (struct cv_ended *ended = owner == NULL ? NULL : owner->first; ended != NULL; ended = ended->after) {
    if (!ended->purged && (id == 0 || ended->id == id)) {
      cv_archive_purge(&broker->archive, ended, false);
      broker->changed = true;
      request.purged++;
    }
  }
  if (request.purged > 0) {
    cv_broker_note(broker, conn->who, "purges %u of its ended campaigns", request.purged);
  }
  return push_request(broker, conn, &request, why);
}

static enum cv_err on_frame(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_order_frame *frame,
                            struct cv_why *why) {
  CV_TRY(cv_broker_greet(broker, conn, &frame->hello, why));
  switch (frame->kind) {
    case CV_ORDER_NONE:
      return CV_OK;
    case CV_ORDER_SUBMIT:
      return on_submit(broker, conn, &frame->as.submit, why);
    case CV_ORDER_WATCH:
      return on_own(broker, conn, frame, frame->as.watch.campaign, why);
    case CV_ORDER_CANCEL:
    case CV_ORDER_EXPORT:
      return on_own(broker, conn, frame, frame->as.campaign, why);
    case CV_ORDER_PURGE:
      return on_purge(broker, conn, frame->as.campaign, why);
    case CV_ORDER_LEDGER:
      return frame->as.ledger.has_plan ? on_plan(broker, conn, &frame->as.ledger.plan, why)
                                       : on_own(broker, conn, frame, frame->as.ledger.campaign, why);
    case CV_ORDER_STATUS: {
      const struct cv_request request = {.answer = CV_ORDER_STATUS_ANSWER};
      return push_request(broker, conn, &request, why);
    }
    default:
      return cv_fail(why, CV_ERR_DENIED, "a message that only a broker may send");
  }
}

enum cv_err cv_broker_on_order(struct cv_broker *broker, struct cv_broker_conn *conn,
                               const struct cv_order_frame *frame, uint64_t now_ms, uint64_t wall_ms,
                               struct cv_why *why) {
  CV_TRY(cv_broker_unless_failed(broker, CV_OK, why));
  broker->now_ms = now_ms;
  broker->wall_ms = wall_ms;
  return cv_broker_unless_failed(broker, on_frame(broker, conn, frame, why), why);
}

/* ---- answers ---- */

static void clear_ready(struct cv_broker_conn *conn) {
  free(conn->status);
  cv_statement_free(conn->statement);
  free(conn->part_release);
  free(conn->part_plan);
  conn->status = NULL;
  conn->statement = NULL;
  conn->part_release = NULL;
  conn->part_plan = NULL;
  conn->order_ready = false;
}

void cv_order_conn_fini(struct cv_broker_conn *conn) {
  for (uint32_t i = 0; i < conn->requests; i++) {
    cv_statement_free(conn->request[i].statement);
  }
  clear_ready(conn);
}

static int by_number(const void *a, const void *b) {
  const struct cv_progress *x = a, *y = b;
  return x->campaign < y->campaign ? -1 : x->campaign > y->campaign;
}

/* By number; of many the newest, which are of interest. */
static enum cv_err fill_status(struct cv_broker *broker, struct cv_broker_conn *conn) {
  const struct cv_owner *owner = cv_archive_owner(&broker->archive, conn->identity.name);
  size_t room = open_of(broker, conn) + (owner == NULL ? 0 : owner->count), n = 0;
  struct cv_progress *progress = calloc(room + 1, sizeof(*progress));
  if (progress == NULL) {
    return CV_ERR_NOMEM;
  }
  for (const struct cv_ended *ended = first_ended(broker, conn); ended != NULL; ended = ended->after) {
    if (!ended->purged) {
      cv_ended_progress(broker, ended, &progress[n++]);
    }
  }
  for (const struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    if (is_of(campaign, conn)) {
      cv_campaign_progress(broker, campaign, &progress[n++]);
    }
  }
  qsort(progress, n, sizeof(*progress), by_number);
  size_t first = n > STATUS_MAX ? n - STATUS_MAX : 0;
  conn->status = progress;
  conn->order.kind = CV_ORDER_STATUS_ANSWER;
  conn->order.as.status = (struct cv_status){.campaigns = n - first,
                                             .campaign = progress + first,
                                             .broker = broker->config.name,
                                             .uptime_ms = broker->now_ms - broker->started_ms};
  return CV_OK;
}

static enum cv_err fill_part(struct cv_broker *broker, struct cv_broker_conn *conn,
                             const struct cv_campaign *campaign) {
  struct cv_part *part = &conn->order.as.part;
  *part = (struct cv_part){.campaign = campaign->id};
  if (!conn->export.begun) {
    conn->export.begun = true;
    part->first = true;
    part->spec = campaign->spec;
    part->seed = campaign->seed;
    cv_campaign_progress(broker, campaign, &part->progress);
    conn->order.kind = CV_ORDER_PART;
    return CV_OK;
  }
  conn->part_plan = calloc(PART_PLANS, sizeof(*conn->part_plan));
  conn->part_release = calloc(CV_PART_RELEASES, sizeof(*conn->part_release));
  if (conn->part_plan == NULL || conn->part_release == NULL) {
    return CV_ERR_NOMEM;
  }
  part->plan = conn->part_plan;
  part->release = conn->part_release;
  size_t wants = 0;
  while (conn->export.plans < campaign->plans && part->plans < PART_PLANS &&
         (wants == 0 || wants + campaign->plan[conn->export.plans].wants <= PART_WANTS)) {
    wants += campaign->plan[conn->export.plans].wants;
    conn->part_plan[part->plans++] = campaign->plan[conn->export.plans++];
  }
  /* Exact sums are for the third-party that the campaign trusts, not for whoever asked for the ranking. */
  if (campaign->privacy.is_exact) {
    conn->export.releases = campaign->releases;
  }
  while (part->plans == 0 && conn->export.releases < campaign->releases && part->releases < CV_PART_RELEASES) {
    cv_campaign_release(campaign, conn->export.releases++, &conn->part_release[part->releases++]);
  }
  if (part->plans == 0 && part->releases == 0) {
    part->standings = campaign->has_standings ? campaign->spec.arms : 0;
    part->standing = campaign->standing;
    part->last = true;
    conn->export.campaign = 0;
  }
  conn->order.kind = CV_ORDER_PART;
  return CV_OK;
}

static enum cv_err fill_request(struct cv_broker *broker, struct cv_broker_conn *conn) {
  struct cv_request request = conn->request[0];
  conn->requests--;
  memmove(conn->request, conn->request + 1, conn->requests * sizeof(conn->request[0]));
  switch (request.answer) {
    case CV_ORDER_STATUS_ANSWER:
      return fill_status(broker, conn);
    case CV_ORDER_ACCEPTED:
      conn->order.kind = CV_ORDER_ACCEPTED;
      conn->order.as.accepted.campaign = request.campaign;
      conn->order.as.accepted.existed = request.existed;
      return CV_OK;
    case CV_ORDER_PURGED:
      conn->order.kind = CV_ORDER_PURGED;
      conn->order.as.purged = request.purged;
      return CV_OK;
    case CV_ORDER_STATEMENT:
      if (request.statement == NULL) {
        CV_TRY(cv_statement_of(broker, cv_campaign_find(broker, request.campaign), &request.statement));
      }
      conn->statement = request.statement;
      conn->order.kind = CV_ORDER_STATEMENT;
      conn->order.as.statement = *request.statement;
      return CV_OK;
    default:
      memcpy(conn->error, request.text, sizeof(conn->error));
      conn->order.kind = CV_ORDER_ERROR;
      conn->order.as.error = conn->error;
      return CV_OK;
  }
}

static bool fill_watch(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_campaign *campaign) {
  if (conn->describe_due) {
    conn->describe_due = false;
    conn->order.kind = CV_ORDER_DESCRIPTION;
    conn->order.as.description = (struct cv_description){.campaign = campaign->id, .spec = campaign->spec};
    broker->said = true; /* the rest of the answer follows */
    return true;
  }
  if (campaign->phase == CV_PHASE_ENDED) {
    if (conn->finish_told) {
      return false;
    }
    conn->finish_told = true;
    conn->order.kind = CV_ORDER_FINISHED;
    conn->order.as.finished = (struct cv_finished){.standings = campaign->has_standings ? campaign->spec.arms : 0,
                                                   .standing = campaign->standing};
    cv_campaign_progress(broker, campaign, &conn->order.as.finished.progress);
    return true;
  }
  if (!conn->progress_due) {
    return false;
  }
  conn->progress_due = false;
  conn->order.kind = CV_ORDER_PROGRESS;
  cv_campaign_progress(broker, campaign, &conn->order.as.progress);
  return true;
}

uint32_t cv_order_needs(const struct cv_broker_conn *conn) {
  const struct cv_request *first = conn->requests > 0 ? &conn->request[0] : NULL;
  if (first != NULL) {
    return first->answer == CV_ORDER_STATEMENT && first->statement == NULL ? first->campaign : 0;
  }
  return conn->export.campaign != 0 ? conn->export.campaign : conn->finish_told ? 0 : conn->watching;
}

void cv_order_miss(struct cv_broker *broker, struct cv_broker_conn *conn, const char *text) {
  struct cv_request request = {.answer = CV_ORDER_ERROR};
  (void)snprintf(request.text, sizeof(request.text), "%.*s", (int)sizeof(request.text) - 1, text);
  if (conn->requests == 0) { /* what needs a campaign is the first request, or there is none */
    *(conn->export.campaign != 0 ? &conn->export.campaign : &conn->watching) = 0;
    conn->requests = 1;
  }
  conn->request[0] = request;
  broker->said = true;
}

/* False if the campaign that is asked for has left memory: it is to be fetched, if it can be. */
static bool is_at_hand(struct cv_broker *broker, struct cv_broker_conn *conn) {
  uint32_t id = cv_order_needs(conn);
  const struct cv_ended *ended = cv_archive_find(&broker->archive, id);
  if (id == 0 || (ended == NULL && cv_campaign_find(broker, id) != NULL)) {
    return true;
  }
  if (ended == NULL || ended->purged) {
    char text[CV_WHY_BYTES];
    (void)snprintf(text, sizeof(text), "campaign %u of %s was purged", id, conn->identity.name);
    cv_order_miss(broker, conn, text);
    return true;
  }
  broker->wants = broker->wants || cv_campaign_find(broker, id) == NULL;
  return cv_campaign_find(broker, id) != NULL;
}

enum cv_err cv_order_fill(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t now_ms) {
  clear_ready(conn);
  if (conn->held) {
    return CV_OK;
  }
  memset(&conn->order, 0, sizeof(conn->order));
  if (conn->greeted) {
    conn->order.hello = cv_broker_hello(conn);
    conn->order_ready = conn->order.hello.present;
  }
  if (!is_at_hand(broker, conn)) {
    return CV_OK;
  }
  struct cv_campaign *watched = conn->watching == 0 ? NULL : cv_campaign_find(broker, conn->watching);
  struct cv_campaign *exported = conn->export.campaign == 0 ? NULL : cv_campaign_find(broker, conn->export.campaign);
  if (conn->requests > 0) {
    CV_TRY(fill_request(broker, conn));
    conn->order_ready = true;
  } else if (exported != NULL) {
    CV_TRY(fill_part(broker, conn, exported));
    conn->order_ready = true;
  } else if (watched != NULL && fill_watch(broker, conn, watched)) {
    conn->order_ready = true;
  }
  uint32_t next = conn->order.kind != CV_ORDER_NONE ? cv_order_needs(conn) : 0;
  const struct cv_campaign *campaign = next == 0 ? NULL : cv_campaign_find(broker, next);
  bool is_over = next != 0 && (campaign == NULL || campaign->phase == CV_PHASE_ENDED);
  broker->said = broker->said || conn->requests > 0 || conn->export.campaign != 0 || is_over;
  return CV_OK;
}

/* Progress at most every PROGRESS_MS, and only if there is some. */
void cv_order_tick(struct cv_broker *broker, uint64_t now_ms) {
  for (struct cv_broker_conn *conn = broker->conns; conn != NULL; conn = conn->next) {
    struct cv_campaign *campaign = conn->watching == 0 ? NULL : cv_campaign_find(broker, conn->watching);
    if (campaign == NULL || conn->finish_told || now_ms - conn->progress_ms < PROGRESS_MS) {
      continue;
    }
    if (campaign->tokens != conn->progress_tokens || campaign->progressed || campaign->phase == CV_PHASE_ENDED) {
      conn->progress_ms = now_ms;
      conn->progress_tokens = campaign->tokens;
      conn->progress_due = true;
      broker->said = true;
    }
  }
  for (struct cv_campaign *campaign = broker->open; campaign != NULL; campaign = campaign->next_open) {
    campaign->progressed = false;
  }
}
