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

/* The requester's own campaign; 0 means its newest. */
static struct cv_campaign *own(struct cv_broker *broker, const struct cv_broker_conn *conn, uint64_t id) {
  if (id != 0) {
    struct cv_campaign *campaign = cv_campaign_find(broker, id);
    return campaign != NULL && strcmp(campaign->requester, conn->identity.name) == 0 ? campaign : NULL;
  }
  struct cv_campaign *newest = NULL;
  for (struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (strcmp(campaign->requester, conn->identity.name) == 0 && (newest == NULL || campaign->id > newest->id)) {
      newest = campaign;
    }
  }
  return newest;
}

static struct cv_campaign *by_client_key(struct cv_broker *broker, const struct cv_broker_conn *conn,
                                         const uint8_t *key, uint32_t *ret_open, uint32_t *ret_kept) {
  struct cv_campaign *found = NULL;
  uint32_t open = 0, kept = 0;
  for (struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (strcmp(campaign->requester, conn->identity.name) != 0) {
      continue;
    }
    kept++;
    open += campaign->phase != CV_PHASE_ENDED;
    if (memcmp(campaign->client_key, key, CV_CLIENT_KEY_BYTES) == 0) {
      found = campaign;
    }
  }
  *ret_open = open;
  *ret_kept = kept;
  return found;
}

static enum cv_err check_submit(const struct cv_broker *broker, const struct cv_submit *submit, uint32_t open,
                                uint32_t kept, struct cv_why *why) {
  CV_TRY(cv_gate_spec(&submit->spec, &broker->config.limits, why));
  if (open >= broker->config.limits.campaigns) {
    return cv_fail(why, CV_ERR_DENIED, "%u campaigns of this requester are open; expected fewer than %u", open,
                   broker->config.limits.campaigns);
  }
  if (kept >= CV_CAMPAIGNS_KEPT) {
    return cv_fail(why, CV_ERR_DENIED, "%u campaigns of this requester are stored; expected fewer than %d", kept,
                   CV_CAMPAIGNS_KEPT);
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
static enum cv_err compare_specs(const struct cv_broker *broker, const struct cv_spec *ours,
                                 const struct cv_spec *theirs, bool *ret_same) {
  struct cv_buf bytes[2] = {{0}};
  struct cv_spec completed = *theirs;
  struct cv_privacy privacy;
  enum cv_err err = cv_privacy_init(&completed, &broker->config.limits, &privacy, NULL);
  if (err != CV_OK) {
    *ret_same = false;
    return err == CV_ERR_NOMEM ? err : CV_OK;
  }
  cv_spec_encode(ours, &bytes[0]);
  cv_spec_encode(&completed, &bytes[1]);
  bool ok = cv_buf_ok(&bytes[0]) && cv_buf_ok(&bytes[1]);
  if (ok) {
    *ret_same = bytes[0].len == bytes[1].len && memcmp(bytes[0].data, bytes[1].data, bytes[0].len) == 0;
  }
  cv_buf_fini(&bytes[0]);
  cv_buf_fini(&bytes[1]);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

static enum cv_err on_submit(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_submit *submit,
                             struct cv_why *why) {
  uint32_t open, kept;
  struct cv_campaign *campaign = by_client_key(broker, conn, submit->client_key, &open, &kept);
  struct cv_request request = {.answer = CV_ORDER_ACCEPTED, .existed = campaign != NULL};
  bool is_same = true;
  if (campaign != NULL) {
    CV_TRY(compare_specs(broker, &campaign->spec, &submit->spec, &is_same));
  }
  if (!is_same) { /* to say "accepted" would be to run what was not asked for */
    char text[160];
    (void)snprintf(text, sizeof(text),
                   "client key was used for another campaign (%u); expected the same campaign, or a key of its own",
                   campaign->id);
    return answer_error(broker, conn, CV_REFUSED_SUBMIT, why, text);
  }
  if (campaign == NULL) {
    struct cv_why reason;
    enum cv_err err = check_submit(broker, submit, open, kept, &reason);
    if (err != CV_OK) {
      return err == CV_ERR_NOMEM ? err : answer_error(broker, conn, CV_REFUSED_SUBMIT, why, reason.text);
    }
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
    cv_campaign_mark(broker, campaign);
    cv_broker_note(broker, NULL, "campaign %u \"%s\" accepted from %s: %u arms, policy %s, mechanism %s", campaign->id,
                   campaign->spec.name, campaign->requester, campaign->spec.arms, campaign->spec.policy.name,
                   campaign->spec.mechanism.name);
  }
  request.campaign = campaign->id;
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
  struct cv_campaign *campaign = own(broker, conn, id);
  if (campaign == NULL) {
    char text[CV_WHY_BYTES];
    if (id == 0) {
      (void)snprintf(text, sizeof(text), "no campaign of %s", conn->identity.name);
    } else {
      (void)snprintf(text, sizeof(text), "no campaign %llu of %s", (unsigned long long)id, conn->identity.name);
    }
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  broker->said = true;
  switch (frame->kind) {
    case CV_ORDER_WATCH:
      conn->watching = campaign->id;
      conn->finish_told = false;
      conn->progress_due = true;
      conn->describe_due = frame->as.watch.describe;
      return CV_OK;
    case CV_ORDER_LEDGER: { /* made when it is its turn: what leaves until then is in it */
      const struct cv_request request = {.answer = CV_ORDER_STATEMENT, .campaign = campaign->id};
      return push_request(broker, conn, &request, why);
    }
    case CV_ORDER_CANCEL: {
      cv_campaign_stop(broker, campaign, CV_END_CANCELLED);
      const struct cv_request request = {.answer = CV_ORDER_ACCEPTED, .campaign = campaign->id, .existed = true};
      return push_request(broker, conn, &request, why);
    }
    default:
      conn->export.campaign = campaign->id;
      conn->export.begun = false;
      conn->export.plans = conn->export.releases = 0;
      return CV_OK;
  }
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

static enum cv_err fill_status(struct cv_broker *broker, struct cv_broker_conn *conn) {
  struct cv_progress *progress = calloc(STATUS_MAX, sizeof(*progress));
  if (progress == NULL) {
    return CV_ERR_NOMEM;
  }
  size_t n = 0;
  for (const struct cv_campaign *campaign = broker->campaigns; campaign != NULL; campaign = campaign->hh.next) {
    if (strcmp(campaign->requester, conn->identity.name) == 0) {
      if (n == STATUS_MAX) { /* the newest are of interest */
        memmove(progress, progress + 1, (STATUS_MAX - 1) * sizeof(*progress));
        n--;
      }
      cv_campaign_progress(broker, campaign, &progress[n++]);
    }
  }
  conn->status = progress;
  conn->order.kind = CV_ORDER_STATUS_ANSWER;
  conn->order.as.status = (struct cv_status){.campaigns = n,
                                             .campaign = progress,
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
  broker->said = broker->said || conn->requests > 0 || conn->export.campaign != 0;
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
