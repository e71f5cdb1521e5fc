/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Campaigns that have ended, in memory: one small record each, by number and by requester. Everything else about them
 * is in the database and is fetched on request (fetch.h).
 *
 * A record is in one of three states:
 *
 *   KEPT     the campaign can be fetched
 *   PURGED   the campaign's rows are deleted or being deleted, a few per commit (up to `dropped`); number and client
 *            key are kept, so that a repeated submission does not create a new campaign
 *   none     forgotten: only the sums over all such campaigns remain, because totals must never shrink
 *
 * A number is never used twice, even after its record is forgotten. Workers' accounts are not part of a campaign and
 * are never deleted.
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
  struct cv_ended *before, *after; /* of the same requester, in the order of their ends */
  struct cv_ended *leaving;        /* next record whose rows are to be deleted */
  struct cv_ended *closing;        /* next record to close at the third-party */
  struct cv_ended *next_changed;   /* next record that differs from its stored form */
  uint8_t client_key[CV_CLIENT_KEY_BYTES];
  struct cv_digest spec_digest;   /* of the spec as accepted */
  char thirdparty[CV_NAME_BYTES]; /* the third-party that opened it; "": none, or unknown */
  struct cv_progress progress;    /* at its end; workers and third-party are filled in when reported */
  uint64_t ended_wall_ms;
  uint64_t cost_micro;   /* lower bound of what its tokens have cost their workers in total */
  uint64_t worker_micro; /* upper bound of what it has cost one worker */
  bool purged;
  bool is_clean;    /* purged, and all its rows are deleted */
  bool forget;      /* delete the record once its rows are deleted */
  bool changed;     /* differs from the stored form */
  bool close_due;   /* the third-party must be sent a close */
  bool over_due;    /* with two brokers: the co-broker has not confirmed the end */
  bool over_sent;   /* it was told on the current connection. Not stored */
  uint64_t dropped; /* plans and releases up to this number are deleted */
};

/* A requester with campaigns that have ended. */
struct cv_owner {
  char name[CV_NAME_BYTES];
  UT_hash_handle hh;
  struct cv_ended *first, *last;
  uint32_t count;  /* records */
  uint32_t forgot; /* of these: records that are about to be forgotten */
};

/* Sums over all forgotten campaigns. */
struct cv_past {
  uint64_t count, cost_micro;
  struct cv_totals totals;
};

struct cv_archive {
  struct cv_ended *all; /* by number */
  struct cv_owner *owners;
  struct cv_ended *leaving, **leaving_end; /* rows to be deleted, in this order */
  struct cv_ended *closing, **closing_end; /* to close at the third-party */
  struct cv_ended *changed;
  uint32_t count;
  struct cv_past past;
};

void cv_archive_init(struct cv_archive *archive);
void cv_archive_fini(struct cv_archive *archive);

/* Both return NULL if there is none, or if it was forgotten. */
struct cv_ended *cv_archive_find(const struct cv_archive *archive, uint64_t id);
struct cv_owner *cv_archive_owner(const struct cv_archive *archive, const char *requester);
/* Takes ownership of the record, as the last one of its requester. CV_ERR_NOMEM: the caller keeps it. */
CV_MUST_USE enum cv_err cv_archive_add(struct cv_archive *archive, struct cv_ended *ended, const char *requester);
/* Marks the record for the next batch: it differs from its stored form. */
void cv_archive_mark(struct cv_archive *archive, struct cv_ended *ended);
/* Removes one record from the list of changed ones and returns it; NULL if the list is empty. */
struct cv_ended *cv_archive_take_changed(struct cv_archive *archive);
/* The list of records to close at the third-party: append; take the first, NULL if empty; clear. */
void cv_archive_close(struct cv_archive *archive, struct cv_ended *ended);
struct cv_ended *cv_archive_take_closing(struct cv_archive *archive);
void cv_archive_close_none(struct cv_archive *archive);
/* Starts to delete the campaign's rows; with `forget` the record is deleted after them. */
void cv_archive_purge(struct cv_archive *archive, struct cv_ended *ended, bool forget);
/* Removes the first record from the list of those whose rows are being deleted: all its rows are deleted. */
void cv_archive_left(struct cv_archive *archive);
/* Adds the record to the sums of forgotten campaigns and frees it. It must be neither leaving nor changed. */
void cv_archive_forget(struct cv_archive *archive, struct cv_ended *ended);
/* Totals over all records, forgotten ones included; sums saturate. */
void cv_archive_totals(const struct cv_archive *archive, struct cv_totals *ret, uint64_t *ret_cost_micro);

/* The stored forms. Reading: CV_ERR_DAMAGED, CV_ERR_NOMEM. */
void cv_ended_put(const struct cv_ended *ended, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_archive_read(struct cv_archive *archive, uint32_t id, struct cv_reader *row);
void cv_past_put(const struct cv_past *past, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_past_read(struct cv_reader *row, struct cv_past *ret);

#endif
