/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept in memory of campaigns that have ended: a small record each, by number and by requester. All else of
 * them lies in the database, from where it is fetched when somebody asks.
 *
 * A record lives in one of three ways:
 *
 *   KEPT     its campaign can be fetched
 *   PURGED   its campaign is gone, or is going, a few rows a commit (`dropped` says how far); the number and the client
 *            key are known still, so that a submission that is repeated is not a new campaign
 *   none     forgotten: only the sums of all such campaigns are left, since totals must never shrink
 *
 * Numbers are given once, whatever is forgotten. Workers' accounts are no part of a campaign, and never go.
 */
#ifndef CV_BROKER_ARCHIVE_H
#define CV_BROKER_ARCHIVE_H

#include "broker/batch.h"
#include "common/base/digest.h"
#include "common/base/table.h"
#include "proto/codec/order.h"

struct cv_owner;

struct cv_ended {
  uint32_t id;
  UT_hash_handle hh;
  struct cv_owner *owner;
  struct cv_ended *before, *after; /* of the same requester, in the order in which they ended */
  struct cv_ended *leaving;        /* the next one whose rows go */
  struct cv_ended *closing;        /* the next one that the third-party is told of */
  struct cv_ended *next_changed;   /* since they were stored */
  uint8_t client_key[CV_CLIENT_KEY_BYTES];
  struct cv_digest spec_digest;   /* of what was accepted */
  char thirdparty[CV_NAME_BYTES]; /* that opened it; "": none, or it is not known */
  struct cv_progress progress;    /* at its end; workers and third-party are those of the moment */
  uint64_t ended_wall_ms;
  uint64_t cost_micro;   /* what its tokens have cost their workers at least */
  uint64_t worker_micro; /* the most that it can have cost one worker */
  bool purged;
  bool is_clean;    /* and all its rows are gone */
  bool forget;      /* when they are, the record goes, too */
  bool changed;     /* since it was stored */
  bool close_due;   /* the third-party is told */
  uint64_t dropped; /* rows of plans and releases up to this number are gone */
};

/* A requester with campaigns that have ended. */
struct cv_owner {
  char name[CV_NAME_BYTES];
  UT_hash_handle hh;
  struct cv_ended *first, *last;
  uint32_t count;  /* of them */
  uint32_t forgot; /* of these: whose record is about to go */
};

/* What all forgotten campaigns come to. */
struct cv_past {
  uint64_t count, cost_micro;
  struct cv_totals totals;
};

struct cv_archive {
  struct cv_ended *all; /* by number */
  struct cv_owner *owners;
  struct cv_ended *leaving, **leaving_end; /* whose rows go, in that order */
  struct cv_ended *closing, **closing_end; /* that the third-party is to let go of */
  struct cv_ended *changed;
  uint32_t count;
  struct cv_past past;
};

void cv_archive_init(struct cv_archive *archive);
void cv_archive_fini(struct cv_archive *archive);

/* NULL if there is none, or no more. */
struct cv_ended *cv_archive_find(const struct cv_archive *archive, uint64_t id);
struct cv_owner *cv_archive_owner(const struct cv_archive *archive, const char *requester);
/* The record becomes the archive's, as its requester's last; CV_ERR_NOMEM, and it is not. */
CV_MUST_USE enum cv_err cv_archive_add(struct cv_archive *archive, struct cv_ended *ended, const char *requester);
/* It differs from what is stored. */
void cv_archive_mark(struct cv_archive *archive, struct cv_ended *ended);
/* One of those, which then does not any more; NULL if there is none. */
struct cv_ended *cv_archive_take_changed(struct cv_archive *archive);
/* The third-party is to be told; the first of those, NULL if there is none; nobody is to be told any more. */
void cv_archive_close(struct cv_archive *archive, struct cv_ended *ended);
struct cv_ended *cv_archive_take_closing(struct cv_archive *archive);
void cv_archive_close_none(struct cv_archive *archive);
/* Its rows go from now on; with `forget` the record goes with them. */
void cv_archive_purge(struct cv_archive *archive, struct cv_ended *ended, bool forget);
/* Takes the first one whose rows go off the list: they are gone. */
void cv_archive_left(struct cv_archive *archive);
/* Frees the record, which is neither leaving nor changed; the past has its sums. */
void cv_archive_forget(struct cv_archive *archive, struct cv_ended *ended);
/* What all of them come to, forgotten ones included; sums stop at the end of their range. */
void cv_archive_totals(const struct cv_archive *archive, struct cv_totals *ret, uint64_t *ret_cost_micro);

/* The stored forms. CV_ERR_DAMAGED; CV_ERR_NOMEM. */
void cv_ended_put(const struct cv_ended *ended, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_archive_read(struct cv_archive *archive, uint32_t id, struct cv_reader *row);
void cv_past_put(const struct cv_past *past, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_past_read(struct cv_reader *row, struct cv_past *ret);

#endif
