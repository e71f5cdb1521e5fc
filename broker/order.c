/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/order.h"

#include <stdio.h>
#include <string.h>

#include "broker/admission.h"
#include "broker/campaign.h"
#include "broker/conn.h"
#include "broker/ended.h"
#include "broker/ending.h"
#include "broker/epoch.h"
#include "broker/requester.h"
#include "broker/state.h"
#include "broker/statement.h"
#include "broker/talk.h"
#include "common/base/names.h"
#include "common/base/normal.h"
#include "common/base/text.h"

static enum cv_err answer_error(struct cv_broker *broker, struct cv_broker_conn *conn, enum cv_refusal kind,
                                struct cv_why *why, const char *text) {
  cv_refusals_add(&broker->figures.refusals, kind);
  cv_broker_note_refused(broker, conn->who, NULL, kind, "refused: %s", text);
  struct cv_request request = {.answer = CV_ORDER_ERROR};
  (void)snprintf(request.text, sizeof(request.text), "%.*s", (int)sizeof(request.text) - 1, text);
  return cv_broker_requester_push(broker, conn->requester, &request, why);
}

/* Bounds the rate: each campaign costs the third-party a policy and both parties a commit, even if it is cancelled. */
static enum cv_err check_rate(const struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_why *why) {
  const struct cv_gate_limits *limits = &broker->config.limits;
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

static enum cv_err check_name(const char *name, size_t size, struct cv_why *why) {
  return cv_name_is_normal(name, size)
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID,
                       "the name %s is not in its normal form; expected Unicode's NFC, no blanks at its ends and no "
                       "character that cannot be seen",
                       cv_text_quote(name).text);
}

/* Two names for one thing would be two things to whoever compares bytes. Only here: what is accepted stays as it is. */
static enum cv_err check_names(const struct cv_spec *spec, struct cv_why *why) {
  CV_TRY(check_name(spec->name, CV_NAME_BYTES, why));
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    CV_TRY(check_name(spec->names[i], CV_ITEM_BYTES, why));
  }
  return CV_OK;
}

/* Completes the spec. */
static enum cv_err check_submit(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                                struct cv_submit *submit, uint32_t open, struct cv_why *why) {
  CV_TRY(check_rate(broker, conn, why));
  CV_TRY(cv_admission_check(broker, &submit->spec, &submit->gold, why));
  CV_TRY(check_names(&submit->spec, why));
  CV_TRY(cv_gold_check_new(&submit->gold, &submit->spec, why));
  CV_TRY(cv_spec_check_questions(&submit->spec, submit->gold.items, why));
  if (submit->spec.brokers == 2 && submit->gold.items > 0) {
    return cv_fail(why, CV_ERR_DENIED,
                   "gold items with two brokers; expected none: no broker can read an answer to compare it");
  }
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
  /* The spec is sent to the third-party and to watchers in one frame each, with other fields beside it. */
  size_t most = CV_SPEC_BYTES + (size_t)CV_SPEC_ARM_BYTES * broker->config.limits.arms;
  if (n > most) {
    return cv_fail(why, CV_ERR_DENIED, "the campaign's names and edges take %zu bytes; expected at most %zu", n, most);
  }
  return CV_OK;
}

/* As the campaign was accepted, by the limits of then. Of one that has ended the spec is not in memory: by today's. */
static enum cv_err complete_like(const struct cv_broker *broker, const struct cv_broker_campaign *campaign,
                                 struct cv_spec *spec) {
  struct cv_privacy privacy;
  CV_TRY(campaign == NULL ? cv_admission_complete(broker, spec, NULL)
                          : cv_spec_raise_release_tokens(spec, cv_spec_release_tokens(&campaign->spec)));
  return cv_privacy_init(spec, &privacy, NULL);
}

/* Compares with the accepted spec, which was completed by cv_privacy_init(). */
static enum cv_err compare_specs(struct cv_broker *broker, uint32_t id, const struct cv_submit *theirs,
                                 bool *ret_same) {
  const struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, id);
  struct cv_spec completed = theirs->spec;
  struct cv_digest a, b;
  enum cv_err err = complete_like(broker, campaign, &completed);
  if (err != CV_OK) {
    *ret_same = false;
    return err == CV_ERR_NOMEM ? err : CV_OK;
  }
  CV_TRY(cv_broker_campaign_digest(broker, &completed, &theirs->gold, &a));
  if (campaign != NULL) {
    CV_TRY(cv_broker_campaign_digest(broker, &campaign->spec, &campaign->gold.terms, &b));
  } else {
    b = cv_archive_find(&broker->archive, id)->spec_digest;
  }
  *ret_same = memcmp(&a, &b, sizeof(a)) == 0;
  return CV_OK;
}

static void audit_submit(struct cv_broker *broker, const struct cv_broker_conn *conn, uint32_t id,
                         const struct cv_spec *spec, const char *refused) {
  const struct cv_event_fact facts[] = {{.name = "arms", .number = spec->arms},
                                        {.name = "tokens", .number = spec->tokens},
                                        {.name = "epsilon_micro", .number = spec->epsilon_micro},
                                        {.name = "policy", .text = spec->policy.name},
                                        {.name = "mechanism", .text = spec->mechanism.name},
                                        {.name = "privatizer", .text = spec->privatizer.name}};
  cv_broker_audit(broker, conn,
                  (struct cv_event){.what = "submit",
                                    .campaign = id,
                                    .name = spec->name,
                                    .refused = refused,
                                    .fact = facts,
                                    .facts = refused == NULL ? CV_COUNT(facts) : 0});
}

static enum cv_err make_campaign(struct cv_broker *broker, const struct cv_broker_conn *conn,
                                 const struct cv_submit *submit, uint32_t *ret_id) {
  struct cv_broker_campaign *campaign;
  /* Never a number of a campaign that was forgotten or lost: totals keep the highest one, through recoveries, too. */
  CV_TRY(
      cv_broker_campaign_new(broker, (uint32_t)broker->totals.campaigns + 1, &submit->spec, &submit->gold, &campaign));
  memcpy(campaign->requester, conn->identity.name, sizeof(campaign->requester));
  memcpy(campaign->client_key, submit->client_key, sizeof(campaign->client_key));
  campaign->submitted_wall_ms = broker->wall_ms;
  campaign->active_ms = broker->now_ms;
  if (submit->spec.deadline_ms > 0) {
    campaign->deadline_wall_ms = broker->wall_ms + submit->spec.deadline_ms;
    campaign->deadline_ms = broker->now_ms + submit->spec.deadline_ms;
  }
  campaign->fresh = true;
  cv_epoch_draw_neutral(broker, campaign);
  cv_broker_campaign_count(broker, campaign);
  cv_broker_campaign_mark(broker, campaign);
  cv_broker_note(broker, NULL, campaign, " accepted from %s: %u arms, policy %s, mechanism %s", campaign->requester,
                 campaign->spec.arms, campaign->spec.policy.name, campaign->spec.mechanism.name);
  audit_submit(broker, conn, campaign->id, &campaign->spec, NULL);
  *ret_id = campaign->id;
  return CV_OK;
}

static enum cv_err on_submit(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_submit *submit,
                             struct cv_why *why) {
  uint32_t id = cv_broker_requester_by_key(broker, conn, submit->client_key);
  bool existed = id != 0, is_same = true;
  if (existed) {
    CV_TRY(compare_specs(broker, id, submit, &is_same));
  }
  if (!is_same) { /* "accepted" would refer to a different campaign */
    char text[160];
    (void)snprintf(text, sizeof(text),
                   "client key already used for campaign %u with another spec; expected the same spec or a new key",
                   id);
    audit_submit(broker, conn, id, &submit->spec, text);
    return answer_error(broker, conn, CV_REFUSED_SUBMIT, why, text);
  }
  if (!existed) {
    struct cv_why reason;
    /* Checked only for a new campaign: repeating a submission succeeds even if limits have changed. */
    uint32_t open = cv_broker_requester_open(broker, conn);
    struct cv_submit completed = *submit;
    enum cv_err err = check_submit(broker, conn, &completed, open, &reason);
    if (err == CV_ERR_NOMEM) {
      return err;
    }
    if (err != CV_OK) {
      audit_submit(broker, conn, 0, &submit->spec, reason.text);
      return answer_error(broker, conn, CV_REFUSED_SUBMIT, why, reason.text);
    }
    cv_ended_make_room(broker, conn->identity.name, open);
    CV_TRY(make_campaign(broker, conn, &completed, &id));
  }
  const struct cv_request request = {.answer = CV_ORDER_ACCEPTED, .campaign = id, .existed = existed};
  return cv_broker_requester_push(broker, conn->requester, &request, why);
}

static enum cv_err push_statement(struct cv_broker *broker, struct cv_broker_conn *conn, struct cv_statement *statement,
                                  struct cv_why *why) {
  const struct cv_request request = {.answer = CV_ORDER_STATEMENT, .statement = statement};
  enum cv_err err = cv_broker_requester_push(broker, conn->requester, &request, why);
  if (err != CV_OK) {
    cv_broker_statement_free(statement);
  }
  return err;
}

static enum cv_err on_plan(struct cv_broker *broker, struct cv_broker_conn *conn,
                           const struct cv_statement_request *asked, struct cv_why *why) {
  struct cv_statement *statement;
  struct cv_why reason;
  enum cv_err err = cv_broker_statement_plan(broker, &asked->plan, &asked->gold, &statement, &reason);
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  return err == CV_OK ? push_statement(broker, conn, statement, why)
                      : answer_error(broker, conn, CV_REFUSED_SUBMIT, why, reason.text);
}

/* Of a request to change a campaign: `name` NULL if the campaign is not known, `refused` NULL if it was changed. */
static void audit_change(struct cv_broker *broker, const struct cv_broker_conn *conn, const char *what, uint64_t id,
                         const char *name, const char *refused) {
  cv_broker_audit(broker, conn, (struct cv_event){.what = what, .campaign = id, .name = name, .refused = refused});
}

static void cancel(struct cv_broker *broker, const struct cv_broker_conn *conn, struct cv_broker_campaign *campaign) {
  if (campaign->phase < CV_PHASE_STOPPING) {
    audit_change(broker, conn, "cancel", campaign->id, campaign->spec.name, NULL);
    cv_broker_campaign_stop(broker, campaign, CV_END_CANCELLED, NULL);
  }
}

static enum cv_err on_own(struct cv_broker *broker, struct cv_broker_conn *conn, const struct cv_order_frame *frame,
                          uint64_t id, struct cv_why *why) {
  struct cv_broker_requester *requester = conn->requester;
  char text[CV_WHY_BYTES];
  uint32_t own;
  if (!cv_broker_requester_find(broker, conn, id, &own, text)) {
    if (frame->kind == CV_ORDER_CANCEL) {
      audit_change(broker, conn, "cancel", id, NULL, text);
    }
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  /* NULL if the campaign has ended and is not in memory; answers that need it wait until it is fetched. */
  struct cv_broker_campaign *campaign = cv_broker_campaign_find(broker, own);
  broker->said = true;
  switch (frame->kind) {
    case CV_ORDER_WATCH:
      requester->watching = own;
      requester->finish_told = false;
      requester->progress_due = true;
      requester->describe_due = frame->as.watch.describe;
      requester->standings_wanted = frame->as.watch.standings;
      requester->standings_plan = 0;
      return CV_OK;
    case CV_ORDER_LEDGER: { /* made when its turn comes, so it includes all releases until then */
      const struct cv_request request = {.answer = CV_ORDER_STATEMENT, .campaign = own};
      return cv_broker_requester_push(broker, conn->requester, &request, why);
    }
    case CV_ORDER_CANCEL: {
      /* An ended campaign is confirmed as well: the first confirmation may have been lost. */
      if (campaign != NULL) {
        cancel(broker, conn, campaign);
      }
      const struct cv_request request = {.answer = CV_ORDER_ACCEPTED, .campaign = own, .existed = true};
      return cv_broker_requester_push(broker, conn->requester, &request, why);
    }
    default:
      requester->export.campaign = own;
      requester->export.begun = false;
      requester->export.plans = requester->export.releases = 0;
      return CV_OK;
  }
}

/* Purges ended campaigns of this requester: one, or all of them if id is 0. */
static enum cv_err on_purge(struct cv_broker *broker, struct cv_broker_conn *conn, uint64_t id, struct cv_why *why) {
  struct cv_owner *owner = cv_archive_owner(&broker->archive, conn->identity.name);
  struct cv_request request = {.answer = CV_ORDER_PURGED};
  char text[CV_WHY_BYTES];
  uint32_t own;
  if (id != 0 && !cv_broker_requester_find(broker, conn, id, &own, text)) {
    audit_change(broker, conn, "purge", id, NULL, text);
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  if (id != 0 && cv_archive_find(&broker->archive, id) == NULL) {
    (void)snprintf(text, sizeof(text), "campaign %llu has not ended; expected an ended campaign; cancel it first",
                   (unsigned long long)id);
    audit_change(broker, conn, "purge", id, NULL, text);
    return answer_error(broker, conn, CV_REFUSED_CAMPAIGN, why, text);
  }
  for (struct cv_ended *ended = owner == NULL ? NULL : owner->first; ended != NULL; ended = ended->after) {
    if (!ended->purged && (id == 0 || ended->id == id)) {
      audit_change(broker, conn, "purge", ended->id, ended->progress.name, NULL);
      cv_archive_purge(&broker->archive, ended, false);
      broker->changed = true;
      request.purged++;
    }
  }
  if (request.purged > 0) {
    cv_broker_note(broker, conn->who, NULL, "%u ended campaigns purged", request.purged);
  }
  return cv_broker_requester_push(broker, conn->requester, &request, why);
}

enum cv_err cv_broker_order_frame(struct cv_broker *broker, struct cv_broker_conn *conn,
                                  const struct cv_order_frame *frame, struct cv_why *why) {
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
      return frame->as.ledger.has_plan ? on_plan(broker, conn, &frame->as.ledger, why)
                                       : on_own(broker, conn, frame, frame->as.ledger.campaign, why);
    case CV_ORDER_STATUS: {
      const struct cv_request request = {.answer = CV_ORDER_STATUS_ANSWER};
      return cv_broker_requester_push(broker, conn->requester, &request, why);
    }
    default:
      return cv_fail(why, CV_ERR_DENIED, "unexpected message; only a broker may send it");
  }
}
