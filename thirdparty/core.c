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

enum { REFUSALS_MAX = 256, WHY_ROOM = CV_WHY_BYTES - 1 };

const struct cv_ranker_limits CV_RANKER_DEFAULTS = {.campaigns = 256, .arms = CV_ARMS_MAX, .queued_wants = 8u << 20};

struct broker {
  char name[CV_NAME_BYTES];
  struct cv_ranker_link *link;   /* NULL while it is away */
  struct cv_campaign *campaigns; /* not closed, or not yet stored as such */
  struct cv_closed closed;
  uint32_t open;
  size_t queued_wants;
  UT_hash_handle hh;
};

struct refusal {
  uint64_t campaign;
  char why[CV_WHY_BYTES];
};

struct cv_ranker_link {
  struct cv_ranker_link *prev, *next;
  struct broker *broker;
  void *data;
  bool greeted, hello_due;
  bool is_closing; /* the rest of what it sends is ignored */
  bool goodbye_due;
  char goodbye[CV_WHY_BYTES];
  struct refusal *refusal;
  size_t refusals;
};

/* A frame with all that it points to. */
struct out {
  struct out *prev, *next;
  struct cv_ranker_link *link;
  struct cv_rank_frame frame;
  struct cv_rank_opened opened;
  struct cv_rank_number ack;
  struct cv_rank_plan plan;
  struct cv_rank_result result;
  struct cv_standing *standing;
  struct cv_rank_opened *refused;
  struct refusal *refusal;
  bool close;
  char goodbye[CV_WHY_BYTES];
};

struct cv_ranker {
  struct cv_ranker_setup setup;
  struct broker *brokers;
  struct cv_ranker_link *links;
  struct cv_campaign *dirty;
  struct out *held, *ready; /* before and after their commit */
  struct out *lent;         /* what cv_ranker_next gave last */
  size_t backlog;
  struct cv_ranker_counts counts;
  bool failed; /* memory ran out: the core is at its end */
};

/* At the end of every entry from outside: out of memory, then or earlier, is final. Passes `err` on, else. */
static enum cv_err unless_failed(struct cv_ranker *ranker, enum cv_err err) {
  ranker->failed = ranker->failed || err == CV_ERR_NOMEM;
  return ranker->failed ? CV_ERR_NOMEM : err;
}

static void note(const struct cv_ranker *ranker, const struct broker *broker, const char *fmt, ...) CV_PRINTF(3, 4);
/* `broker` NULL: however often it happens it is news. */
static void note(const struct cv_ranker *ranker, const struct broker *broker, const char *fmt, ...) {
  if (ranker->setup.note == NULL) {
    return;
  }
  char line[2 * CV_WHY_BYTES];
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(line, sizeof(line), fmt, args);
  va_end(args);
  char who[CV_NAME_BYTES + 16];
  if (broker != NULL) {
    (void)snprintf(who, sizeof(who), "broker/%s", broker->name);
  }
  ranker->setup.note(ranker->setup.data, broker != NULL ? who : NULL, line);
}

/* ---- storage of its own ---- */

static void out_free(struct out *out) {
  if (out != NULL) {
    free(out->plan.plan.want);
    free(out->standing);
    free(out->refused);
    free(out->refusal);
    free(out);
  }
}

static void drop_outs(struct out **list, const struct cv_ranker_link *link) {
  struct out *out, *next;
  DL_FOREACH_SAFE(*list, out, next) {
    if (link == NULL || out->link == link) {
      DL_DELETE(*list, out);
      out_free(out);
    }
  }
}

static struct out *out_new(struct cv_ranker *ranker, struct cv_ranker_link *link) {
  struct out *out = calloc(1, sizeof(*out));
  if (out != NULL) {
    out->link = link;
    DL_APPEND(ranker->held, out);
  }
  return out;
}

/* The broker of this name, made if need be; NULL: out of memory. */
static struct broker *broker_of(struct cv_ranker *ranker, const char *name) {
  struct broker *broker = NULL;
  HASH_FIND_STR(ranker->brokers, name, broker);
  if (broker != NULL) {
    return broker;
  }
  broker = calloc(1, sizeof(*broker));
  if (broker == NULL) {
    return NULL;
  }
  (void)snprintf(broker->name, sizeof(broker->name), "%s", name);
  if (CV_TABLE_ADD_TEXT(ranker->brokers, name, broker) != CV_OK) {
    free(broker);
    return NULL;
  }
  return broker;
}

static struct cv_campaign *find(const struct broker *broker, uint64_t id) {
  struct cv_campaign *campaign = NULL;
  HASH_FIND(hh, broker->campaigns, &id, sizeof(id), campaign);
  return campaign;
}

static struct cv_campaign *campaign_alloc(struct cv_ranker *ranker, struct broker *broker, uint64_t id) {
  struct cv_campaign *campaign = calloc(1, sizeof(*campaign));
  if (campaign != NULL) {
    campaign->id = id;
    campaign->broker_name = broker->name;
    campaign->digest = ranker->setup.digest;
    campaign->dirty = &ranker->dirty;
    campaign->queued_wants = &broker->queued_wants;
    campaign->queue_end = &campaign->queue;
  }
  return campaign;
}

static void campaign_free(struct cv_campaign *campaign) {
  cv_campaign_fini(campaign);
  free(campaign);
}

enum cv_err cv_ranker_new(const struct cv_ranker_setup *setup, struct cv_ranker **ret) {
  struct cv_ranker *ranker = calloc(1, sizeof(*ranker));
  if (ranker == NULL) {
    return CV_ERR_NOMEM;
  }
  ranker->setup = *setup;
  *ret = ranker;
  return CV_OK;
}

static void link_free(struct cv_ranker *ranker, struct cv_ranker_link *link) {
  DL_DELETE(ranker->links, link);
  free(link->refusal);
  free(link);
}

static void broker_free(struct broker *broker) {
  CV_TABLE_DRAIN(broker->campaigns, campaign_free);
  cv_closed_fini(&broker->closed);
  free(broker);
}

void cv_ranker_free(struct cv_ranker *ranker) {
  if (ranker == NULL) {
    return;
  }
  while (ranker->links != NULL) {
    link_free(ranker, ranker->links);
  }
  CV_TABLE_DRAIN(ranker->brokers, broker_free);
  drop_outs(&ranker->held, NULL);
  drop_outs(&ranker->ready, NULL);
  out_free(ranker->lent);
  free(ranker);
}

static enum cv_err restore(struct cv_ranker *ranker, struct broker *broker, const struct cv_stored_campaign *stored,
                           struct cv_why *why) {
  struct cv_spec spec = stored->spec; /* shallow: only the policy's parameters change */
  struct cv_stored_campaign checked = *stored;
  const struct cv_param *bad;
  CV_TRY(cv_policy_check(&spec.policy, &bad, why));
  checked.spec = spec;
  struct cv_campaign *campaign = campaign_alloc(ranker, broker, stored->key.campaign);
  enum cv_err err = campaign == NULL ? CV_ERR_NOMEM : cv_campaign_restore(&checked, campaign, why);
  if (err == CV_OK) {
    err = CV_TABLE_ADD(broker->campaigns, id, campaign);
  }
  if (err != CV_OK && campaign != NULL) {
    campaign_free(campaign);
  }
  return err;
}

enum cv_err cv_ranker_restore(struct cv_ranker *ranker, const struct cv_stored_campaign *stored, struct cv_why *why) {
  struct cv_why reason = {.text = "out of memory"};
  bool closed = stored->row.closed;
  struct broker *broker = broker_of(ranker, stored->key.broker);
  enum cv_err err = broker == NULL ? CV_ERR_NOMEM
                    : closed       ? cv_closed_add(&broker->closed, stored->key.campaign)
                                   : restore(ranker, broker, stored, &reason);
  if (err != CV_OK) {
    return cv_fail(why, err, "campaign %" PRIu64 " of broker %s: %s", stored->key.campaign, stored->key.broker,
                   err == CV_ERR_NOMEM ? "out of memory" : reason.text);
  }
  broker->open += !closed;
  ranker->counts.campaigns_open += !closed;
  ranker->counts.campaigns_closed += closed;
  return CV_OK;
}

/* ---- connections ---- */

void cv_ranker_reject(struct cv_ranker *ranker, struct cv_ranker_link *link, enum cv_refusal kind, const char *reason) {
  if (link->is_closing) {
    return;
  }
  cv_refusals_add(&ranker->counts.refusals, kind);
  note(ranker, link->broker, "closing the connection: %s", reason);
  link->is_closing = true;
  link->goodbye_due = true;
  (void)snprintf(link->goodbye, sizeof(link->goodbye), "%.*s", WHY_ROOM, reason);
}

/* What is still due was asked on a connection that is gone: on the next one the broker opens its campaigns anew. */
static void say_nothing_more(struct cv_ranker *ranker, const struct broker *broker) {
  for (struct cv_campaign *campaign = ranker->dirty; campaign != NULL; campaign = campaign->next_dirty) {
    if (strcmp(campaign->broker_name, broker->name) == 0) {
      campaign->due_opened = campaign->due_ack = campaign->due_plan = campaign->due_result = false;
    }
  }
}

enum cv_err cv_ranker_connected(struct cv_ranker *ranker, const char *name, void *data, struct cv_ranker_link **ret) {
  struct broker *broker = broker_of(ranker, name);
  struct cv_ranker_link *link = calloc(1, sizeof(*link));
  enum cv_err err = unless_failed(ranker, broker == NULL || link == NULL ? CV_ERR_NOMEM : CV_OK);
  if (err != CV_OK) {
    free(link);
    return err;
  }
  if (broker->link != NULL) {
    cv_ranker_reject(ranker, broker->link, CV_REFUSALS, "a newer connection of the same broker takes over");
    say_nothing_more(ranker, broker);
  }
  link->broker = broker;
  link->data = data;
  link->hello_due = true;
  broker->link = link;
  DL_APPEND(ranker->links, link);
  *ret = link;
  return CV_OK;
}

void cv_ranker_disconnected(struct cv_ranker *ranker, struct cv_ranker_link *link) {
  drop_outs(&ranker->held, link);
  drop_outs(&ranker->ready, link);
  if (ranker->lent != NULL && ranker->lent->link == link) {
    out_free(ranker->lent);
    ranker->lent = NULL;
  }
  if (link->broker->link == link) {
    link->broker->link = NULL;
    say_nothing_more(ranker, link->broker);
  }
  link_free(ranker, link);
}

/* ---- messages ---- */

static enum cv_err refuse(struct cv_ranker *ranker, struct cv_ranker_link *link, uint64_t campaign, const char *reason,
                          struct cv_why *why) {
  cv_refusals_add(&ranker->counts.refusals, CV_REFUSED_SUBMIT);
  if (link->refusals == REFUSALS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "more than %d campaigns that cannot be run, one after the other", REFUSALS_MAX);
  }
  if (link->refusal == NULL) {
    link->refusal = calloc(REFUSALS_MAX, sizeof(*link->refusal));
    if (link->refusal == NULL) {
      return CV_ERR_NOMEM;
    }
  }
  struct refusal *refusal = &link->refusal[link->refusals++];
  refusal->campaign = campaign;
  (void)snprintf(refusal->why, sizeof(refusal->why), "%.*s", WHY_ROOM, reason);
  return CV_OK;
}

static enum cv_err digest_of(const struct cv_ranker *ranker, const struct cv_spec *spec, struct cv_digest *ret) {
  struct cv_buf bytes = {0};
  cv_spec_encode(spec, &bytes);
  bool ok = cv_buf_ok(&bytes);
  if (ok) {
    ranker->setup.digest(bytes.data, bytes.len, "", 0, ret);
  }
  cv_buf_fini(&bytes);
  return ok ? CV_OK : CV_ERR_NOMEM;
}

static enum cv_err check_new(const struct cv_ranker *ranker, const struct broker *broker, struct cv_spec *spec,
                             struct cv_why *why) {
  const struct cv_param *bad;
  CV_TRY(cv_spec_check(spec, why));
  if (spec->arms > ranker->setup.limits.arms) {
    return cv_fail(why, CV_ERR_LIMIT, "%" PRIu32 " arms; at most %" PRIu32 " are served here", spec->arms,
                   ranker->setup.limits.arms);
  }
  if (broker->open >= ranker->setup.limits.campaigns) {
    return cv_fail(why, CV_ERR_LIMIT, "%" PRIu32 " campaigns are open already; at most that many are served",
                   broker->open);
  }
  CV_TRY(cv_policy_check(&spec->policy, &bad, why));
  return cv_policy_fits(spec, why);
}

/* Creates what `open` names; *ret is NULL if it is refused. */
static enum cv_err create(struct cv_ranker *ranker, struct cv_ranker_link *link, const struct cv_rank_open *open,
                          const struct cv_digest *digest, struct cv_campaign **ret, struct cv_why *why) {
  struct broker *broker = link->broker;
  struct cv_spec spec = open->spec; /* shallow: only the policy's parameters change */
  struct cv_why reason;
  *ret = NULL;
  if (check_new(ranker, broker, &spec, &reason) != CV_OK) {
    return refuse(ranker, link, open->position.campaign, reason.text, why);
  }
  struct cv_campaign *campaign = campaign_alloc(ranker, broker, open->position.campaign);
  if (campaign == NULL) {
    return CV_ERR_NOMEM;
  }
  uint64_t seed = open->has_seed ? open->seed : cv_rng_u64(ranker->setup.rng);
  enum cv_err err = cv_campaign_create(&spec, digest, seed, campaign, &reason);
  if (err == CV_OK) {
    err = CV_TABLE_ADD(broker->campaigns, id, campaign);
  }
  if (err != CV_OK) {
    campaign_free(campaign);
    return err == CV_ERR_NOMEM ? err : refuse(ranker, link, open->position.campaign, reason.text, why);
  }
  broker->open++;
  ranker->counts.campaigns_open++;
  note(ranker, NULL, "broker %s: campaign %" PRIu64 " (%s) is open: %" PRIu32 " arms, policy %s", broker->name,
       campaign->id, spec.name, spec.arms, spec.policy.name);
  *ret = campaign;
  return CV_OK;
}

static const char CLOSED[] = "this campaign has been closed";

static const char *mismatch(const struct cv_campaign *campaign, const struct cv_rank_open *open,
                            const struct cv_digest *digest) {
  if (campaign->row.closed) {
    return CLOSED;
  }
  if (memcmp(&campaign->spec_digest, digest, sizeof(*digest)) != 0) {
    return "this campaign was opened before with another spec";
  }
  return open->has_seed && open->seed != campaign->seed ? "this campaign was opened before with another seed" : NULL;
}

static void compare_hashes(const struct cv_ranker *ranker, const struct broker *broker,
                           const struct cv_campaign *campaign, const struct cv_position *position) {
  const struct cv_campaign_row *row = &campaign->row;
  if (position->releases == row->releases &&
      memcmp(&position->releases_hash, &row->releases_hash, sizeof(row->releases_hash)) != 0) {
    note(ranker, broker, "campaign %" PRIu64 ": its releases up to %" PRIu64 " are not those we were sent",
         campaign->id, row->releases);
  }
  if (position->releases < row->releases || position->plans < row->accepted) {
    note(ranker, broker, "campaign %" PRIu64 ": the broker has gone back (releases %" PRIu64 " of %" PRIu64 ")",
         campaign->id, position->releases, row->releases);
  }
}

static enum cv_err on_open(struct cv_ranker *ranker, struct cv_ranker_link *link, const struct cv_rank_open *open,
                           struct cv_why *why) {
  struct cv_digest digest;
  struct cv_campaign *campaign = find(link->broker, open->position.campaign);
  if (cv_closed_has(&link->broker->closed, open->position.campaign)) {
    return refuse(ranker, link, open->position.campaign, CLOSED, why);
  }
  CV_TRY(digest_of(ranker, &open->spec, &digest));
  if (campaign != NULL) {
    const char *wrong = mismatch(campaign, open, &digest);
    if (wrong != NULL) {
      return refuse(ranker, link, open->position.campaign, wrong, why);
    }
    compare_hashes(ranker, link->broker, campaign, &open->position);
  } else {
    CV_TRY(create(ranker, link, open, &digest, &campaign, why));
  }
  return campaign == NULL ? CV_OK : cv_campaign_open(campaign, &open->position, open->stop, why);
}

/* A campaign that the broker has opened and not closed. A closed one gives CV_OK and NULL: messages cross. */
static enum cv_err known(const struct cv_ranker_link *link, uint64_t id, struct cv_campaign **ret, struct cv_why *why) {
  struct cv_campaign *campaign = find(link->broker, id);
  if (campaign == NULL && !cv_closed_has(&link->broker->closed, id)) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "campaign %" PRIu64 " has not been opened", id);
  }
  *ret = campaign == NULL || campaign->row.closed ? NULL : campaign;
  return CV_OK;
}

static enum cv_err on_close(struct cv_ranker *ranker, struct cv_ranker_link *link, uint64_t id) {
  struct cv_campaign *campaign = find(link->broker, id);
  if (campaign == NULL || campaign->row.closed) {
    return CV_OK;
  }
  CV_TRY(cv_campaign_close(campaign));
  link->broker->open--;
  ranker->counts.campaigns_open--;
  ranker->counts.campaigns_closed++;
  note(ranker, NULL, "broker %s: campaign %" PRIu64 " is closed: %s", link->broker->name, id,
       cv_end_text(campaign->row.end));
  return CV_OK;
}

static enum cv_err on_release(struct cv_ranker *ranker, struct cv_ranker_link *link,
                              const struct cv_rank_release *message, struct cv_why *why) {
  struct cv_campaign *campaign = NULL;
  CV_TRY(known(link, message->campaign, &campaign, why));
  if (campaign == NULL) {
    return CV_OK;
  }
  uint64_t releases = campaign->row.releases, decisions = campaign->row.decisions;
  CV_TRY(cv_campaign_release(campaign, &message->release, why));
  ranker->backlog += campaign->row.releases - releases;
  ranker->counts.releases += campaign->row.releases - releases;
  ranker->counts.decisions += campaign->row.decisions - decisions;
  return CV_OK;
}

static enum cv_err on_plans(struct cv_ranker *ranker, struct cv_ranker_link *link, const struct cv_rank_frame *frame,
                            struct cv_why *why) {
  struct cv_campaign *campaign = NULL;
  for (size_t i = 0; i < frame->recorded; i++) {
    CV_TRY(known(link, frame->record[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_campaign_record(campaign, &frame->record[i].plan, ranker->setup.limits.queued_wants, why));
    }
  }
  for (size_t i = 0; i < frame->releases; i++) {
    CV_TRY(on_release(ranker, link, &frame->release[i], why));
  }
  for (size_t i = 0; i < frame->accepted; i++) {
    CV_TRY(known(link, frame->accept[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_campaign_accept(campaign, frame->accept[i].number, why));
    }
  }
  return CV_OK;
}

static enum cv_err on_ends(struct cv_ranker *ranker, struct cv_ranker_link *link, const struct cv_rank_frame *frame,
                           struct cv_why *why) {
  struct cv_campaign *campaign = NULL;
  for (size_t i = 0; i < frame->refused; i++) {
    CV_TRY(known(link, frame->refuse[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_campaign_refuse(campaign, &frame->refuse[i], why));
    }
  }
  for (size_t i = 0; i < frame->stops; i++) {
    CV_TRY(known(link, frame->stop[i].campaign, &campaign, why));
    if (campaign != NULL) {
      CV_TRY(cv_campaign_stop(campaign, frame->stop[i].reason, why));
    }
  }
  for (size_t i = 0; i < frame->closed; i++) {
    CV_TRY(on_close(ranker, link, frame->close[i]));
  }
  return CV_OK;
}

static enum cv_err on_frame(struct cv_ranker *ranker, struct cv_ranker_link *link, const struct cv_rank_frame *frame,
                            struct cv_why *why) {
  if (!link->greeted && !frame->hello.present) {
    return cv_fail(why, CV_ERR_VERSION, "the first message is no hello");
  }
  if (frame->hello.present) {
    CV_TRY(cv_hello_check(&frame->hello, "broker", "third-party", why));
  }
  link->greeted = true;
  if (frame->opened + frame->acks + frame->plans + frame->results > 0) {
    return cv_fail(why, CV_ERR_DENIED, "a broker sends no answers to campaigns, acks, plans or results");
  }
  for (size_t i = 0; i < frame->opens; i++) {
    CV_TRY(on_open(ranker, link, &frame->open[i], why));
  }
  CV_TRY(on_plans(ranker, link, frame, why));
  return on_ends(ranker, link, frame, why);
}

enum cv_err cv_ranker_frame(struct cv_ranker *ranker, struct cv_ranker_link *link, const struct cv_rank_frame *frame) {
  if (link->is_closing) {
    return CV_OK;
  }
  CV_TRY(unless_failed(ranker, CV_OK));
  struct cv_why why = {.text = "not understood"};
  enum cv_err err = unless_failed(ranker, on_frame(ranker, link, frame, &why));
  if (err == CV_ERR_NOMEM) {
    return err;
  }
  if (err != CV_OK) {
    cv_ranker_reject(ranker, link, cv_refusal_of(err), why.text);
  } else if (frame->goodbye != NULL) {
    note(ranker, link->broker, "says goodbye: %s", frame->goodbye);
  }
  return CV_OK;
}

/* ---- what leaves ---- */

static void fill_opened(const struct cv_campaign *campaign, struct out *out) {
  out->opened.position = (struct cv_position){.campaign = campaign->id,
                                              .releases = campaign->row.releases,
                                              .plans = campaign->row.accepted,
                                              .releases_hash = campaign->row.releases_hash,
                                              .plans_hash = campaign->row.plans_hash};
  out->opened.seed = campaign->seed;
  out->frame.opened = 1;
  out->frame.answer = &out->opened;
}

static enum cv_err fill_standings(const struct cv_campaign *campaign, struct out *out) {
  out->standing = calloc(campaign->spec.arms, sizeof(*out->standing));
  if (out->standing == NULL) {
    return CV_ERR_NOMEM;
  }
  cv_campaign_standings(campaign, out->standing);
  return CV_OK;
}

static enum cv_err fill_plan(const struct cv_campaign *campaign, struct out *out) {
  CV_TRY(fill_standings(campaign, out));
  out->plan.campaign = campaign->id;
  CV_TRY(cv_plan_copy(&campaign->plan, &out->plan.plan));
  out->plan.standings = campaign->spec.arms;
  out->plan.standing = out->standing;
  out->frame.plans = 1;
  out->frame.plan = &out->plan;
  return CV_OK;
}

static enum cv_err fill_result(const struct cv_campaign *campaign, struct out *out) {
  CV_TRY(fill_standings(campaign, out));
  out->result = (struct cv_rank_result){.campaign = campaign->id,
                                        .reason = campaign->row.end,
                                        .standings = campaign->spec.arms,
                                        .standing = out->standing};
  out->frame.results = 1;
  out->frame.result = &out->result;
  return CV_OK;
}

/* All that is due for one campaign in one frame: with 4096 arms a plan or a result fills most of one. */
static enum cv_err speak(struct cv_ranker *ranker, struct cv_ranker_link *link, struct cv_campaign *campaign) {
  bool plan = campaign->due_plan && cv_campaign_may_ask(campaign);
  if (link == NULL || link->is_closing ||
      !(campaign->due_opened || campaign->due_ack || plan || campaign->due_result)) {
    return CV_OK;
  }
  struct out *out = out_new(ranker, link);
  if (out == NULL) {
    return CV_ERR_NOMEM;
  }
  if (campaign->due_opened) {
    fill_opened(campaign, out);
  }
  if (campaign->due_ack) {
    out->ack = (struct cv_rank_number){.campaign = campaign->id, .number = campaign->row.releases};
    out->frame.acks = 1;
    out->frame.ack = &out->ack;
  }
  CV_TRY(plan ? fill_plan(campaign, out) : CV_OK);
  return campaign->due_result ? fill_result(campaign, out) : CV_OK;
}

static enum cv_err greet(struct cv_ranker *ranker, struct cv_ranker_link *link) {
  if (!link->hello_due && link->refusals == 0) {
    return CV_OK;
  }
  struct out *out = out_new(ranker, link);
  if (out == NULL) {
    return CV_ERR_NOMEM;
  }
  if (link->hello_due) {
    out->frame.hello = (struct cv_hello){.present = true, .version = CV_WIRE_VERSION, .program = ranker->setup.program};
    link->hello_due = false;
  }
  if (link->refusals > 0) {
    out->refused = calloc(link->refusals, sizeof(*out->refused));
    if (out->refused == NULL) {
      return CV_ERR_NOMEM;
    }
    out->refusal = link->refusal;
    for (size_t i = 0; i < link->refusals; i++) {
      out->refused[i].position.campaign = link->refusal[i].campaign;
      out->refused[i].refused = link->refusal[i].why;
    }
    out->frame.opened = link->refusals;
    out->frame.answer = out->refused;
    link->refusal = NULL;
    link->refusals = 0;
  }
  return CV_OK;
}

static enum cv_err part(struct cv_ranker *ranker, struct cv_ranker_link *link) {
  if (!link->goodbye_due) {
    return CV_OK;
  }
  struct out *out = out_new(ranker, link);
  if (out == NULL) {
    return CV_ERR_NOMEM;
  }
  link->goodbye_due = false;
  (void)snprintf(out->goodbye, sizeof(out->goodbye), "%s", link->goodbye);
  out->frame.goodbye = out->goodbye;
  out->close = true;
  return CV_OK;
}

static void take_delta(struct cv_campaign *campaign, struct cv_batch *batch) {
  struct cv_delta *delta = campaign->delta;
  if (delta == NULL) {
    return;
  }
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

bool cv_ranker_has_work(const struct cv_ranker *ranker) {
  if (ranker->dirty != NULL || ranker->failed) {
    return true;
  }
  const struct cv_ranker_link *link;
  DL_FOREACH(ranker->links, link) {
    if (link->hello_due || link->refusals > 0 || link->goodbye_due) {
      return true;
    }
  }
  return false;
}

size_t cv_ranker_backlog(const struct cv_ranker *ranker) {
  return ranker->backlog;
}

/* What the first dirty campaign has to have stored, and to say. */
static enum cv_err flush_first(struct cv_ranker *ranker, struct cv_batch *batch) {
  struct cv_campaign *campaign = ranker->dirty;
  struct broker *broker = NULL;
  HASH_FIND_STR(ranker->brokers, campaign->broker_name, broker);
  CV_REQUIRE(broker != NULL);
  ranker->dirty = campaign->next_dirty;
  campaign->is_dirty = false;
  take_delta(campaign, batch);
  CV_TRY(speak(ranker, broker->link, campaign));
  campaign->due_opened = campaign->due_ack = campaign->due_plan = campaign->due_result = false;
  if (campaign->row.closed) { /* from here on its number is all that counts */
    CV_TRY(cv_closed_add(&broker->closed, campaign->id));
    HASH_DEL(broker->campaigns, campaign);
    campaign_free(campaign);
  }
  return CV_OK;
}

static enum cv_err flush(struct cv_ranker *ranker, struct cv_batch *batch) {
  struct cv_ranker_link *link;
  CV_REQUIRE(ranker->held == NULL);
  DL_FOREACH(ranker->links, link) {
    CV_TRY(greet(ranker, link));
  }
  while (ranker->dirty != NULL) {
    CV_TRY(flush_first(ranker, batch));
  }
  DL_FOREACH(ranker->links, link) {
    CV_TRY(part(ranker, link));
  }
  ranker->backlog = 0;
  return CV_OK;
}

enum cv_err cv_ranker_flush(struct cv_ranker *ranker, struct cv_batch *ret_batch) {
  struct cv_batch batch = {0};
  CV_TRY(unless_failed(ranker, CV_OK));
  enum cv_err err = unless_failed(ranker, flush(ranker, &batch));
  if (err != CV_OK) {
    cv_batch_fini(&batch);
    return err;
  }
  *ret_batch = batch;
  return CV_OK;
}

void cv_ranker_committed(struct cv_ranker *ranker) {
  DL_CONCAT(ranker->ready, ranker->held);
  ranker->held = NULL;
}

bool cv_ranker_next(struct cv_ranker *ranker, struct cv_ranker_out *ret) {
  out_free(ranker->lent);
  ranker->lent = ranker->failed ? NULL : ranker->ready;
  if (ranker->lent == NULL) {
    return false;
  }
  DL_DELETE(ranker->ready, ranker->lent);
  *ret = (struct cv_ranker_out){.link = ranker->lent->link,
                                .data = ranker->lent->link->data,
                                .frame = &ranker->lent->frame,
                                .close = ranker->lent->close ? ranker->lent->goodbye : NULL};
  return true;
}

void cv_ranker_count(const struct cv_ranker *ranker, struct cv_ranker_counts *ret) {
  *ret = ranker->counts;
  ret->brokers_connected = 0;
  const struct broker *broker, *next;
  HASH_ITER(hh, ranker->brokers, broker, next) {
    ret->brokers_connected += broker->link != NULL;
  }
}
