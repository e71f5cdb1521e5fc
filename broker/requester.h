/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A requester's connection: its unanswered requests, and which campaigns belong to it. order.h handles its frames,
 * answer.h prepares the answers.
 */
#ifndef CV_BROKER_REQUESTER_H
#define CV_BROKER_REQUESTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "proto/codec/order.h"

struct cv_broker;
struct cv_broker_campaign;
struct cv_broker_conn;
struct cv_ended;

enum {
  CV_REQUESTS_MAX = 16,    /* unanswered requests of a connection */
  CV_REQUESTER_CONNS = 16, /* connections of a requester */
};

/* A request that waits for its answer. */
struct cv_request {
  enum cv_order_kind answer;
  uint32_t campaign;
  uint32_t purged; /* number of purged campaigns */
  bool existed;
  char text[CV_WHY_BYTES];
  struct cv_statement *statement; /* owned, with its accounts; NULL: made when the request is first in line */
};

struct cv_broker_requester {
  struct cv_request request[CV_REQUESTS_MAX]; /* in the order of arrival */
  uint32_t requests;
  uint32_t watching; /* campaign; 0 = none */
  bool finish_told, progress_due, progress_stale, describe_due;
  bool standings_wanted;
  uint64_t standings_plan;               /* the standings that were sent last followed this plan; 0 = none were sent */
  uint64_t progress_ms, progress_tokens; /* time and token count of the last progress message */
  struct {
    uint32_t campaign; /* 0 = no export runs */
    bool begun;
    size_t plans, releases;
  } export;
  uint64_t fetched_nth; /* fetch counter of the last campaign fetched for it; 0 = none */
  /* the answer that is ready to be sent, and what it points to; owned */
  bool order_ready;
  struct cv_order_frame order;
  struct cv_progress *status;
  struct cv_statement *statement;
  struct cv_release *part_release;
  struct cv_plan *part_plan;
  char error[CV_WHY_BYTES];
};

/* On the heap; NULL if out of memory. */
struct cv_broker_requester *cv_broker_requester_new(void);
void cv_broker_requester_free(struct cv_broker_requester *requester);
/* Frees the answer that is ready. */
void cv_broker_requester_clear(struct cv_broker_requester *requester);

/* Appends a request; the connection takes ownership of its statement. CV_ERR_LIMIT if too many are unanswered. */
CV_MUST_USE enum cv_err cv_broker_requester_push(struct cv_broker *broker, struct cv_broker_requester *requester,
                                                 const struct cv_request *request, struct cv_why *why);
/* The ended campaign that the connection's next answer needs in memory; 0 = none. */
uint32_t cv_broker_requester_needs(const struct cv_broker_requester *requester);
/* Answers with the error `text` what needed the campaign, because it cannot be read. */
void cv_broker_requester_miss(struct cv_broker *broker, struct cv_broker_requester *requester, const char *text);

/* Whether the campaign belongs to this requester. */
bool cv_broker_requester_owns(const struct cv_broker_conn *conn, const struct cv_broker_campaign *campaign);
/* How many of its campaigns are open. */
uint32_t cv_broker_requester_open(const struct cv_broker *broker, const struct cv_broker_conn *conn);
/* The first ended campaign of this requester, linked by `after`; NULL if there is none. */
const struct cv_ended *cv_broker_requester_ended(const struct cv_broker *broker, const struct cv_broker_conn *conn);
/* Finds a campaign of this requester; id 0 means its newest. False, with a line in `text`, if there is none or it was
 * purged. */
bool cv_broker_requester_find(struct cv_broker *broker, const struct cv_broker_conn *conn, uint64_t id,
                              uint32_t *ret_id, char text[CV_WHY_BYTES]);
/* The campaign that was submitted with this key (CV_CLIENT_KEY_BYTES), purged or not; 0 if none is known. */
uint32_t cv_broker_requester_by_key(const struct cv_broker *broker, const struct cv_broker_conn *conn,
                                    const uint8_t *key);

#endif
