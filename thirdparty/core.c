/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/core.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/base/text.h"
#include "thirdparty/campaign.h"
#include "thirdparty/closed.h"
#include "thirdparty/outbox.h"

enum { REFUSALS_MAX = 256, WHY_ROOM = CV_WHY_BYTES - 1 };

const struct cv_thirdparty_limits CV_THIRDPARTY_DEFAULTS = {
    .campaigns = 256, .arms = CV_ARMS_MAX, .queued_wants = 8u << 20};

struct broker {
  char name[CV_NAME_BYTES];
  struct cv_thirdparty_conn *conn;          /* NULL while the broker is not connected */
  struct cv_thirdparty_campaign *campaigns; /* open, or closed but not flushed yet */
  struct cv_closed closed;
  uint32_t open;
  size_t queued_wants;
  UT_hash_handle hh;
};

struct cv_thirdparty_conn {
  struct cv_thirdparty_conn *prev, *next;
  struct broker *broker;
  void *data;
  bool greeted, hello_due;
  uint64_t term;   /* of the broker that dialled, as it says */
  bool is_closing; /* further frames of the broker are ignored */
  bool goodbye_due;
  char goodbye[CV_WHY_BYTES];
  struct cv_thirdparty_refusal *refusal;
  size_t refusals;
};

struct cv_thirdparty {
  struct cv_thirdparty_config config;
  struct broker *brokers;
  struct cv_thirdparty_conn *conns;
  struct cv_thirdparty_campaign *dirty;
  struct cv_thirdparty_outbox outbox;
  size_t gathered; /* releases since the last flush */
  struct cv_thirdparty_figures figures;
  bool failed; /* memory ran out: no further work */
};

/* What a line is about: `campaign` 0 and `reason` NULL for none. With a broker the line shares that broker's log rate
 * limit; NULL: no limit. */
struct about {
  enum cv_log_level level;
  const struct broker *broker;
  uint64_t campaign;
  const char *reason;
};

static void note(const struct cv_thirdparty *thirdparty, struct about about, const char *fmt, ...) CV_PRINTF(3, 4);
static void note(const struct cv_thirdparty *thirdparty, struct about about, const char *fmt, ...) {
  if (thirdparty->config.note == NULL) {
    return;
  }
  char line[2 * CV_WHY_BYTES], who[CV_NAME_BYTES + 16];
  struct cv_note note = {.level = about.level, .text = line, .campaign = about.campaign, .reason = about.reason};
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(line, sizeof(line), fmt, args);
  va_end(args);
  if (about.broker != NULL) {
    (void)snprintf(who, sizeof(who), "broker/%s", about.broker->name);
    note.peer = who;
  }
  thirdparty->config.note(thirdparty->config.data, &note);
}

/* ---- brokers and campaigns ---- */

/* Finds or adds the broker of this name; NULL if out of memory. */
static struct broker *broker_of(struct cv_thirdparty *thirdparty, const char *name) {
  struct broker *broker = NULL;
  HASH_FIND_STR(thirdparty->brokers, name, broker);
  if (broker != NULL) {
    return broker;
  }
  broker = calloc(1, sizeof(*broker));
  if (broker == NULL) {
    return NULL;
  }
  (void)snprintf(broker->name, sizeof(broker->name), "%s", name);
  if (CV_TABLE_ADD_TEXT(thirdparty->brokers, name, broker) != CV_OK) {
    free(broker);
    return NULL;
  }
  return broker;
}

static struct cv_thirdparty_campaign *find(const struct broker *broker, uint64_t id) {
  struct cv_thirdparty_campaign *campaign = NULL;
  HASH_FIND(hh, broker->campaigns, &id, sizeof(id), campaign);
  return campaign;
}

static struct cv_thirdparty_campaign *campaign_alloc(struct cv_thirdparty *thirdparty, struct broker *broker,
                                                     uint64_t id) {
  struct cv_thirdparty_campaign *campaign = calloc(1, sizeof(*campaign));
  if (campaign != NULL) {
    campaign->id = id;
    campaign->broker_name = broker->name;
    campaign->digest = thirdparty->config.digest;
    campaign->dirty = &thirdparty->dirty;
    campaign->queued_wants = &broker->queued_wants;
    campaign->queue_end = &campaign->queue;
  }
  return campaign;
}

static void campaign_free(struct cv_thirdparty_campaign *campaign) {
  cv_thirdparty_campaign_fini(campaign);
  free(campaign);
}

enum cv_err cv_thirdparty_new(const struct cv_thirdparty_config *setup, struct cv_thirdparty **ret) {
  struct cv_thirdparty *thirdparty = calloc(1, sizeof(*thirdparty));
  if (thirdparty == NULL) {
    return CV_ERR_NOMEM;
  }
  thirdparty->config = *setup;
  *ret = thirdparty;
  return CV_OK;
}

static void conn_free(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn) {
  DL_DELETE(thirdparty->conns, conn);
  free(conn->refusal);
  free(conn);
}

static void broker_free(struct broker *broker) {
  CV_TABLE_DRAIN(broker->campaigns, campaign_free);
  cv_closed_fini(&broker->closed);
  free(broker);
}

void cv_thirdparty_free(struct cv_thirdparty *thirdparty) {
  if (thirdparty == NULL) {
    return;
  }
  while (thirdparty->conns != NULL) {
    conn_free(thirdparty, thirdparty->conns);
  }
  CV_TABLE_DRAIN(thirdparty->brokers, broker_free);
  cv_thirdparty_outbox_fini(&thirdparty->outbox);
  free(thirdparty);
}

static enum cv_err restore(struct cv_thirdparty *thirdparty, struct broker *broker,
                           const struct cv_stored_campaign *stored, struct cv_why *why) {
  struct cv_spec spec = stored->spec; /* shallow: only the policy's parameters change */
  struct cv_stored_campaign checked = *stored;
  const struct cv_param *bad;
  CV_TRY(cv_policy_check(&spec.policy, &bad, why));
  checked.spec = spec;
  struct cv_thirdparty_campaign *campaign = campaign_alloc(thirdparty, broker, stored->key.campaign);
  enum cv_err err = campaign == NULL ? CV_ERR_NOMEM : cv_thirdparty_campaign_restore(&checked, campaign, why);
  if (err == CV_OK) {
    err = CV_TABLE_ADD(broker->campaigns, id, campaign);
  }
  if (err != CV_OK && campaign != NULL) {
    campaign_free(campaign);
  }
  return err;
}

enum cv_err cv_thirdparty_restore(struct cv_thirdparty *thirdparty, const struct cv_stored_campaign *stored,
                                  struct cv_why *why) {
  struct cv_why reason = {.text = "out of memory"};
  bool closed = stored->row.closed;
  struct broker *broker = broker_of(thirdparty, stored->key.broker);
  enum cv_err err = broker == NULL ? CV_ERR_NOMEM
                    : closed       ? cv_closed_add(&broker->closed, stored->key.campaign)
                                   : restore(thirdparty, broker, stored, &reason);
  if (err != CV_OK) {
    return cv_fail(why, err, "campaign %" PRIu64 " of broker %s: %s", stored->key.campaign, stored->key.broker,
                   err == CV_ERR_NOMEM ? "out of memory" : reason.text);
  }
  broker->open += !closed;
  thirdparty->figures.campaigns_open += !closed;
  thirdparty->figures.campaigns_closed += closed;
  return CV_OK;
}

/* ---- connections ---- */

/* Closes a connection with a goodbye. CV_REFUSALS as `kind` counts no refusal. */
static void reject(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn, enum cv_refusal kind,
                   const char *reason) {
  if (conn->is_closing) {
    return;
  }
  cv_refusals_add(&thirdparty->figures.refusals, kind);
  note(thirdparty,
       (struct about){
           .level = CV_LOG_INFO, .broker = conn->broker, .reason = kind < CV_REFUSALS ? cv_refusal_text(kind) : NULL},
       "closing the connection: %s", reason);
  conn->is_closing = true;
  conn->goodbye_due = true;
  (void)snprintf(conn->goodbye, sizeof(conn->goodbye), "%.*s", WHY_ROOM, reason);
}

/* Cancels the due messages of a closed connection: the broker opens its campaigns again on the next one. */
static void say_nothing_more(struct cv_thirdparty *thirdparty, const struct broker *broker) {
  for (struct cv_thirdparty_campaign *campaign = thirdparty->dirty; campaign != NULL; campaign = campaign->next_dirty) {
    if (strcmp(campaign->broker_name, broker->name) == 0) {
      /* Positions are compared anew on the next connection; a message of the old one could contradict them. */
      campaign->due_opened = campaign->due_ack = campaign->due_plan = campaign->due_result = false;
    }
  }
}

enum cv_err cv_thirdparty_join(struct cv_thirdparty *thirdparty, const char *name, void *data,
                               struct cv_thirdparty_conn **ret) {
  struct broker *broker = broker_of(thirdparty, name);
  struct cv_thirdparty_conn *conn = calloc(1, sizeof(*conn));
  if (thirdparty->failed || broker == NULL || conn == NULL) {
    free(conn);
    return cv_unless_failed(&thirdparty->failed, CV_ERR_NOMEM, NULL);
  }
  conn->broker = broker;
  conn->data = data;
  conn->hello_due = true;
  DL_APPEND(thirdparty->conns, conn);
  *ret = conn;
  return CV_OK;
}

static void show_link(const struct cv_thirdparty *thirdparty, const struct cv_thirdparty_conn *conn) {
  if (thirdparty->config.linked != NULL) {
    const struct cv_thirdparty_link link = {
        .broker = conn->broker->name, .is_connected = conn->broker->conn == conn, .term = conn->term};
    thirdparty->config.linked(thirdparty->config.data, &link);
  }
}

/*
 * The broker's hello makes this connection its link. A broker that dials again has mostly lost the older connection
 * before this side noticed; but one whose term is over, and that has not found out yet, takes nothing over. Terms are
 * compared with that of the open link only: none is stored, as a restored database begins at a lower one.
 */
static enum cv_err link_broker(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn, uint64_t term,
                               struct cv_why *why) {
  struct cv_thirdparty_conn *before = conn->broker->conn;
  if (before != NULL && before->term > term) {
    return cv_fail(why, CV_ERR_STATE, "term %llu; a broker of term %llu is connected", (unsigned long long)term,
                   (unsigned long long)before->term);
  }
  if (before != NULL) {
    reject(thirdparty, before, CV_REFUSALS, "a newer connection of the same broker takes over");
    say_nothing_more(thirdparty, conn->broker);
  }
  conn->term = term;
  conn->broker->conn = conn;
  show_link(thirdparty, conn);
  return CV_OK;
}

void cv_thirdparty_leave(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn) {
  /* Held letters go, too: their cause is stored or being stored, and the next connection starts from the positions. */
  cv_thirdparty_outbox_drop(&thirdparty->outbox, conn);
  if (conn->broker->conn == conn) {
    conn->broker->conn = NULL;
    say_nothing_more(thirdparty, conn->broker);
    show_link(thirdparty, conn);
  }
  conn_free(thirdparty, conn);
}

/* ---- messages ---- */

/* Queues the refusal of one campaign, with the reason; the connection stays open. */
static enum cv_err refuse(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn, uint64_t campaign,
                          const char *reason, struct cv_why *why) {
  cv_refusals_add(&thirdparty->figures.refusals, CV_REFUSED_SUBMIT);
  /* Refusals are held until the next flush: without a bound, invalid campaigns would fill the memory. */
  if (conn->refusals == REFUSALS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %d invalid campaigns in a row", REFUSALS_MAX);
  }
  if (conn->refusal == NULL) {
    conn->refusal = calloc(REFUSALS_MAX, sizeof(*conn->refusal));
    if (conn->refusal == NULL) {
      return CV_ERR_NOMEM;
    }
  }
  struct cv_thirdparty_refusal *refusal = &conn->refusal[conn->refusals++];
  refusal->campaign = campaign;
  (void)snprintf(refusal->why, sizeof(refusal->why), "%.*s", WHY_ROOM, reason);
  return CV_OK;
}

static enum cv_err digest_of(const struct cv_thirdparty *thirdparty, const struct cv_spec *spec,
                             struct cv_digest *ret) {
  struct cv_buf bytes = {0};
  cv_spec_encode(spec, &bytes);
  bool ok = cv_buf_ok(&bytes);
  if (ok) {
    thirdparty->config.digest(bytes.data, bytes.len, "", 0, ret);
  }
  cv_buf_fini(&bytes);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

static enum cv_err check_new(const struct cv_thirdparty *thirdparty, const struct broker *broker, struct cv_spec *spec,
                             struct cv_why *why) {
  const struct cv_param *bad;
  CV_TRY(cv_spec_check(spec, why));
  if (spec->arms > thirdparty->config.limits.arms) {
    return cv_fail(why, CV_ERR_LIMIT, "%" PRIu32 " arms; expected at most %" PRIu32 ", which is limits.arms",
                   spec->arms, thirdparty->config.limits.arms);
  }
  /* Each open campaign has a policy in memory, whose size its broker chooses by the number of arms. */
  if (broker->open >= thirdparty->config.limits.campaigns) {
    return cv_fail(why, CV_ERR_LIMIT, "%" PRIu32 " campaigns are open already, which is limits.campaigns",
                   broker->open);
  }
  CV_TRY(cv_policy_check(&spec->policy, &bad, why));
  return cv_policy_fits(spec, why);
}

/* Creates a campaign; *ret is NULL if the third-party refuses it. */
static enum cv_err create(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                          const struct cv_rank_open *open, const struct cv_digest *digest,
                          struct cv_thirdparty_campaign **ret, struct cv_why *why) {
  struct broker *broker = conn->broker;
  struct cv_spec spec = open->spec; /* shallow: only the policy's parameters change */
  struct cv_why reason;
  *ret = NULL;
  if (check_new(thirdparty, broker, &spec, &reason) != CV_OK) {
    return refuse(thirdparty, conn, open->position.campaign, reason.text, why);
  }
  struct cv_thirdparty_campaign *campaign = campaign_alloc(thirdparty, broker, open->position.campaign);
  if (campaign == NULL) {
    return CV_ERR_NOMEM;
  }
  /* A campaign that the broker opened before keeps its seed, although this database may have lost it: only then do the
   * recorded plans and releases replay to the same decisions. */
  uint64_t seed = open->has_seed ? open->seed : cv_rng_u64(thirdparty->config.rng);
  enum cv_err err = cv_thirdparty_campaign_create(&spec, digest, seed, campaign, &reason);
  if (err == CV_OK) {
    err = CV_TABLE_ADD(broker->campaigns, id, campaign);
  }
  if (err != CV_OK) {
    campaign_free(campaign);
    return err == CV_ERR_NOMEM ? err : refuse(thirdparty, conn, open->position.campaign, reason.text, why);
  }
  broker->open++;
  thirdparty->figures.campaigns_open++;
  note(thirdparty, (struct about){.level = CV_LOG_INFO, .campaign = campaign->id},
       "broker %s: campaign %" PRIu64 " (%s) is open: %" PRIu32 " arms, policy %s", broker->name, campaign->id,
       cv_text_shown(spec.name).text, spec.arms, spec.policy.name);
  *ret = campaign;
  return CV_OK;
}

static const char CLOSED[] = "this campaign has been closed";

static const char *mismatch(const struct cv_thirdparty_campaign *campaign, const struct cv_rank_open *open,
                            const struct cv_digest *digest) {
  if (campaign->row.closed) {
    return CLOSED;
  }
  if (memcmp(&campaign->spec_digest, digest, sizeof(*digest)) != 0) {
    return "this campaign was opened before with another spec";
  }
  return open->has_seed && open->seed != campaign->seed ? "this campaign was opened before with another seed" : NULL;
}

/* Logs if the broker's records contradict or fall behind the stored ones. Neither is an error here: the broker compares
 * as well and freezes the campaign, since it is the side that knows what has left it. */
static void compare_hashes(const struct cv_thirdparty *thirdparty, const struct broker *broker,
                           const struct cv_thirdparty_campaign *campaign, const struct cv_position *position) {
  const struct about about = {.level = CV_LOG_INFO, .broker = broker, .campaign = campaign->id};
  const struct cv_thirdparty_campaign_row *row = &campaign->row;
  if (position->releases == row->releases &&
      memcmp(&position->releases_hash, &row->releases_hash, sizeof(row->releases_hash)) != 0) {
    note(thirdparty, about, "campaign %" PRIu64 ": the broker's releases up to %" PRIu64 " differ from the stored ones",
         campaign->id, row->releases);
  }
  if (position->releases < row->releases || position->plans < row->accepted) {
    note(thirdparty, about,
         "campaign %" PRIu64 ": the broker returned with fewer records (releases %" PRIu64 " of %" PRIu64 ")",
         campaign->id, position->releases, row->releases);
  }
}

static enum cv_err on_open(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                           const struct cv_rank_open *open, struct cv_why *why) {
  struct cv_digest digest;
  struct cv_thirdparty_campaign *campaign = find(conn->broker, open->position.campaign);
  /* Closed campaigns keep only their number: opened again, one would begin from nothing and decide differently. */
  if (cv_closed_has(&conn->broker->closed, open->position.campaign)) {
    return refuse(thirdparty, conn, open->position.campaign, CLOSED, why);
  }
  CV_TRY(digest_of(thirdparty, &open->spec, &digest));
  if (campaign != NULL) {
    const char *wrong = mismatch(campaign, open, &digest);
    if (wrong != NULL) {
      return refuse(thirdparty, conn, open->position.campaign, wrong, why);
    }
    compare_hashes(thirdparty, conn->broker, campaign, &open->position);
  } else {
    CV_TRY(create(thirdparty, conn, open, &digest, &campaign, why));
  }
  return campaign == NULL ? CV_OK : cv_thirdparty_campaign_open(campaign, &open->position, open->stop, why);
}

/* Finds a campaign that the broker opened. For a closed campaign *ret is NULL with CV_OK, since messages may cross. */
static enum cv_err known(const struct cv_thirdparty_conn *conn, uint64_t id, struct cv_thirdparty_campaign **ret,
                         struct cv_why *why) {
  /* Numbers are per broker: a broker that names another one's campaign does not find it. */
  struct cv_thirdparty_campaign *campaign = find(conn->broker, id);
  if (campaign == NULL && !cv_closed_has(&conn->broker->closed, id)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "campaign %" PRIu64 " has not been opened", id);
  }
  *ret = campaign == NULL || campaign->row.closed ? NULL : campaign;
  return CV_OK;
}

static enum cv_err on_close(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn, uint64_t id) {
  struct cv_thirdparty_campaign *campaign = find(conn->broker, id);
  /* A broker repeats Closed on each connection, and sends it for campaigns that a recovery has lost. */
  if (campaign == NULL || campaign->row.closed) {
    return CV_OK;
  }
  CV_TRY(cv_thirdparty_campaign_close(campaign));
  conn->broker->open--;
  thirdparty->figures.campaigns_open--;
  thirdparty->figures.campaigns_closed++;
  note(thirdparty, (struct about){.level = CV_LOG_INFO, .campaign = id},
       "broker %s: campaign %" PRIu64 " is closed: %s", conn->broker->name, id, cv_end_text(campaign->row.end));
  return CV_OK;
}

static enum cv_err on_release(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                              const struct cv_rank_release *message, struct cv_why *why) {
  struct cv_thirdparty_campaign *campaign = NULL;
  CV_TRY(known(conn, message->campaign, &campaign, why));
  if (campaign == NULL) {
    return CV_OK;
  }
  uint64_t releases = campaign->row.releases, decisions = campaign->row.decisions;
  uint32_t contradictions = campaign->contradictions;
  CV_TRY(cv_thirdparty_campaign_release(campaign, &message->release, why));
  /* 0 for a release that came before: it is acknowledged again, not applied. */
  thirdparty->gathered += campaign->row.releases - releases;
  thirdparty->figures.releases += campaign->row.releases - releases;
  thirdparty->figures.decisions += campaign->row.decisions - decisions;
  if (campaign->contradictions > contradictions) {
    thirdparty->figures.contradictions += campaign->contradictions - contradictions;
    note(thirdparty, (struct about){.level = CV_LOG_WARN, .campaign = campaign->id},
         "broker %s: campaign %" PRIu64 ": the answers contradict the assumption of policy %s: %" PRIu32
         " items so far",
         conn->broker->name, campaign->id, campaign->spec.policy.name, campaign->contradictions);
  }
  if (campaign->row.releases > releases) {
    note(thirdparty, (struct about){.level = CV_LOG_DEBUG, .campaign = campaign->id},
         "broker %s: campaign %" PRIu64 ": release %" PRIu64 " applied, of arm %" PRIu32 ": %" PRIu64
         " decisions; the last plan is %" PRIu64,
         conn->broker->name, campaign->id, message->release.number, message->release.arm + 1,
         campaign->row.decisions - decisions, campaign->row.plan);
  }
  return CV_OK;
}

/* The order matters: recorded plans come before their releases, and acceptances refer to the plan after those. */
static enum cv_err on_plans(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                            const struct cv_rank_frame *frame, struct cv_why *why) {
  struct cv_thirdparty_campaign *campaign = NULL;
  for (size_t i = 0; i < frame->recorded; i++) {
    CV_TRY(known(conn, frame->record[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(
          cv_thirdparty_campaign_record(campaign, &frame->record[i].plan, thirdparty->config.limits.queued_wants, why));
    }
  }
  for (size_t i = 0; i < frame->releases; i++) {
    CV_TRY(on_release(thirdparty, conn, &frame->release[i], why));
  }
  for (size_t i = 0; i < frame->accepted; i++) {
    CV_TRY(known(conn, frame->accept[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_thirdparty_campaign_accept(campaign, frame->accept[i].number, why));
    }
  }
  return CV_OK;
}

static enum cv_err on_ends(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                           const struct cv_rank_frame *frame, struct cv_why *why) {
  struct cv_thirdparty_campaign *campaign = NULL;
  for (size_t i = 0; i < frame->refused; i++) {
    CV_TRY(known(conn, frame->refuse[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_thirdparty_campaign_refuse(campaign, &frame->refuse[i], why));
    }
  }
  for (size_t i = 0; i < frame->stops; i++) {
    CV_TRY(known(conn, frame->stop[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_thirdparty_campaign_stop(campaign, frame->stop[i].reason, why));
    }
  }
  for (size_t i = 0; i < frame->closed; i++) {
    CV_TRY(on_close(thirdparty, conn, frame->close[i]));
  }
  return CV_OK;
}

static enum cv_err on_frame(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                            const struct cv_rank_frame *frame, struct cv_why *why) {
  if (!conn->greeted && !frame->hello.present) {
    return cv_fail(why, CV_ERR_VERSION, CV_HELLO_MISSING);
  }
  if (frame->hello.present) {
    CV_TRY(cv_hello_check(&frame->hello, "broker", "third-party", why));
    CV_TRY(conn->greeted ? CV_OK : link_broker(thirdparty, conn, frame->hello.term, why));
  }
  conn->greeted = true;
  /* Roles are checked by TLS; the schema is shared by both directions, so the direction is checked here. */
  if (frame->opened + frame->acks + frame->plans + frame->results > 0) {
    return cv_fail(why, CV_ERR_DENIED, "the broker sent a message that only a third-party may send");
  }
  for (size_t i = 0; i < frame->opens; i++) {
    CV_TRY(on_open(thirdparty, conn, &frame->open[i], why));
  }
  CV_TRY(on_plans(thirdparty, conn, frame, why));
  return on_ends(thirdparty, conn, frame, why);
}

enum cv_err cv_thirdparty_on_rank(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                                  const struct cv_rank_frame *frame) {
  /* Frames that were on the way when the connection was rejected: the goodbye stays the last word. */
  if (conn->is_closing) {
    return CV_OK;
  }
  CV_TRY(cv_unless_failed(&thirdparty->failed, CV_OK, NULL));
  struct cv_why why = {.text = "invalid message"};
  enum cv_err err = cv_unless_failed(&thirdparty->failed, on_frame(thirdparty, conn, frame, &why), &why);
  /* Memory is our problem and ends the core; anything else is a mistake of this broker and ends its connection. */
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  if (err != CV_OK) {
    reject(thirdparty, conn, cv_refusal_of(err), why.text);
  } else if (frame->goodbye != NULL) {
    note(thirdparty, (struct about){.level = CV_LOG_INFO, .broker = conn->broker},
         "the broker closes the connection: %s", frame->goodbye);
  }
  return CV_OK;
}

/* ---- outgoing messages ---- */

/* Adds one letter with all due messages of one campaign. Campaigns do not share a frame: with 4096 arms a plan or a
 * result nearly fills one. */
static enum cv_err speak(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn,
                         struct cv_thirdparty_campaign *campaign) {
  bool plan = campaign->due_plan && cv_thirdparty_campaign_may_ask(campaign);
  if (conn == NULL || conn->is_closing ||
      !(campaign->due_opened || campaign->due_ack || plan || campaign->due_result)) {
    return CV_OK;
  }
  struct cv_thirdparty_letter *letter = cv_thirdparty_outbox_add(&thirdparty->outbox, conn);
  if (letter == NULL) {
    return CV_ERR_NOMEM;
  }
  if (campaign->due_opened) {
    cv_thirdparty_letter_opened(letter, campaign);
  }
  if (campaign->due_ack) {
    cv_thirdparty_letter_ack(letter, campaign);
  }
  CV_TRY(plan ? cv_thirdparty_letter_plan(letter, campaign) : CV_OK);
  return campaign->due_result ? cv_thirdparty_letter_result(letter, campaign) : CV_OK;
}

/* Adds a letter with the hello and the refused campaigns of one connection. */
static enum cv_err greet(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn) {
  if (!conn->hello_due && conn->refusals == 0) {
    return CV_OK;
  }
  struct cv_thirdparty_letter *letter = cv_thirdparty_outbox_add(&thirdparty->outbox, conn);
  if (letter == NULL) {
    return CV_ERR_NOMEM;
  }
  if (conn->hello_due) {
    letter->frame.hello =
        (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = thirdparty->config.program};
    conn->hello_due = false;
  }
  if (conn->refusals > 0) {
    CV_TRY(cv_thirdparty_letter_refused(letter, conn->refusal, conn->refusals));
    conn->refusal = NULL;
    conn->refusals = 0;
  }
  return CV_OK;
}

/* Adds the goodbye letter of a rejected connection. */
static enum cv_err part(struct cv_thirdparty *thirdparty, struct cv_thirdparty_conn *conn) {
  if (!conn->goodbye_due) {
    return CV_OK;
  }
  struct cv_thirdparty_letter *letter = cv_thirdparty_outbox_add(&thirdparty->outbox, conn);
  if (letter == NULL) {
    return CV_ERR_NOMEM;
  }
  conn->goodbye_due = false;
  cv_thirdparty_letter_goodbye(letter, conn->goodbye);
  return CV_OK;
}

/* Moves the campaign's delta into the batch, with a copy of the row as it is now. */
static void take_delta(struct cv_thirdparty_campaign *campaign, struct cv_thirdparty_batch *batch) {
  struct cv_delta *delta = campaign->delta;
  if (delta == NULL) {
    return;
  }
  /* The batch owns the delta from here on: the storage thread reads it while new events make the next one. */
  campaign->delta = NULL;
  campaign->accepted_unstored = false;
  delta->row = campaign->row;
  if (batch->last == NULL) {
    batch->first = delta;
  } else {
    batch->last->next = delta;
  }
  batch->last = delta;
}

bool cv_thirdparty_is_pending(const struct cv_thirdparty *thirdparty) {
  /* A failed core stays pending, so that the next turn flushes, gets the error and stops the daemon. */
  if (thirdparty->dirty != NULL || thirdparty->failed) {
    return true;
  }
  const struct cv_thirdparty_conn *conn;
  DL_FOREACH(thirdparty->conns, conn) {
    if (conn->hello_due || conn->refusals > 0 || conn->goodbye_due) {
      return true;
    }
  }
  return false;
}

size_t cv_thirdparty_gathered(const struct cv_thirdparty *thirdparty) {
  return thirdparty->gathered;
}

/* Flushes the first dirty campaign: its delta goes to the batch, its due messages to the outbox. */
static enum cv_err flush_first(struct cv_thirdparty *thirdparty, struct cv_thirdparty_batch *batch) {
  struct cv_thirdparty_campaign *campaign = thirdparty->dirty;
  struct broker *broker = NULL;
  /* Brokers are never removed: a broker's name stays valid for its campaigns. */
  HASH_FIND_STR(thirdparty->brokers, campaign->broker_name, broker);
  CV_REQUIRE(broker != NULL);
  thirdparty->dirty = campaign->next_dirty;
  campaign->is_dirty = false;
  take_delta(campaign, batch);
  CV_TRY(speak(thirdparty, broker->conn, campaign));
  /* Dropped also if the broker is not connected: it opens the campaign again, which makes them due again. */
  campaign->due_opened = campaign->due_ack = campaign->due_plan = campaign->due_result = false;
  if (campaign->row.closed) { /* only its number is needed from here on */
    /* Its delta is in the batch already, which does not refer to the campaign. */
    CV_TRY(cv_closed_add(&broker->closed, campaign->id));
    HASH_DEL(broker->campaigns, campaign);
    campaign_free(campaign);
  }
  return CV_OK;
}

static enum cv_err flush(struct cv_thirdparty *thirdparty, struct cv_thirdparty_batch *batch) {
  struct cv_thirdparty_conn *conn;
  /* A second flush before cv_thirdparty_stored() would release its frames with the first commit. */
  CV_REQUIRE(thirdparty->outbox.held == NULL);
  /* The order matters: hello is the first message on a connection, goodbye the last. */
  DL_FOREACH(thirdparty->conns, conn) {
    CV_TRY(greet(thirdparty, conn));
  }
  /* Changes of campaigns whose broker has left are stored, too; only their letters are dropped. */
  while (thirdparty->dirty != NULL) {
    CV_TRY(flush_first(thirdparty, batch));
  }
  DL_FOREACH(thirdparty->conns, conn) {
    CV_TRY(part(thirdparty, conn));
  }
  thirdparty->gathered = 0;
  return CV_OK;
}

enum cv_err cv_thirdparty_flush(struct cv_thirdparty *thirdparty, struct cv_thirdparty_batch *ret_batch) {
  struct cv_thirdparty_batch batch = {0};
  CV_TRY(cv_unless_failed(&thirdparty->failed, CV_OK, NULL));
  enum cv_err err = cv_unless_failed(&thirdparty->failed, flush(thirdparty, &batch), NULL);
  if (err != CV_OK) {
    cv_thirdparty_batch_fini(&batch);
    return err;
  }
  *ret_batch = batch;
  return CV_OK;
}

void cv_thirdparty_stored(struct cv_thirdparty *thirdparty) {
  cv_thirdparty_outbox_release(&thirdparty->outbox);
}

bool cv_thirdparty_next_out(struct cv_thirdparty *thirdparty, struct cv_thirdparty_out *ret) {
  const struct cv_thirdparty_letter *letter =
      thirdparty->failed ? NULL : cv_thirdparty_outbox_next(&thirdparty->outbox);
  if (letter == NULL) {
    return false;
  }
  *ret = (struct cv_thirdparty_out){.conn = letter->conn,
                                    .data = letter->conn->data,
                                    .frame = &letter->frame,
                                    .close = letter->close ? letter->goodbye : NULL};
  return true;
}

void cv_thirdparty_figures(const struct cv_thirdparty *thirdparty, struct cv_thirdparty_figures *ret) {
  *ret = thirdparty->figures;
  ret->brokers_connected = 0;
  const struct broker *broker, *next;
  HASH_ITER(hh, thirdparty->brokers, broker, next) {
    ret->brokers_connected += broker->conn != NULL;
  }
}
