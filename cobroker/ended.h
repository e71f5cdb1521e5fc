/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of ended campaigns: what has to be known of them for ever, above all the hash of the verify key, so that none
 * is opened again under another key. They are bounded: beyond the limit the campaign with the lowest number is
 * forgotten, and from then on no campaign up to that number is opened.
 */
#ifndef CV_COBROKER_ENDED_H
#define CV_COBROKER_ENDED_H

#include <stddef.h>
#include <stdint.h>

#include "broker/both/anchor.h"
#include "common/base/buf.h"
#include "common/base/digest.h"
#include "common/base/result.h"
#include "common/base/split.h"
#include "common/base/table.h"

enum { CV_COBROKER_WHY_BYTES = 200 };

struct cv_cobroker_ended {
  uint32_t id;
  UT_hash_handle hh;
  bool changed; /* since it was stored */
  enum cv_end end;
  char why[CV_COBROKER_WHY_BYTES];
  struct cv_split split;    /* of its terms */
  struct cv_digest context; /* of its shares */
  struct cv_totals totals;  /* what it adds to the core's; `campaigns` is its number */
  uint64_t cost_micro;      /* that all its tokens together were charged to workers' accounts */
};

struct cv_cobroker_archive {
  struct cv_cobroker_ended *all; /* by number */
  uint32_t count, changed;       /* of them; since they were stored */
  /* Sums over those that are forgotten: `campaigns` is the highest of their numbers. */
  struct cv_totals past;
  uint64_t past_cost_micro;
  bool past_changed;
  uint32_t *gone; /* forgotten since the last batch: their rows are to be deleted; owned */
  size_t gone_count, gone_cap;
};

void cv_cobroker_archive_fini(struct cv_cobroker_archive *archive);
/* NULL if there is no record. */
struct cv_cobroker_ended *cv_cobroker_archive_find(struct cv_cobroker_archive *archive, uint64_t id);
/* Takes the record, which is on the heap, also after an error. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_archive_add(struct cv_cobroker_archive *archive, struct cv_cobroker_ended *ended);
/* Forgets campaigns until at most `most` records are left. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_cobroker_archive_trim(struct cv_cobroker_archive *archive, uint32_t most);
/* Adds up what all ended campaigns add to the core's totals, and the cost of their tokens. */
void cv_cobroker_archive_totals(const struct cv_cobroker_archive *archive, struct cv_totals *ret,
                                uint64_t *ret_cost_micro);

/* The stored forms of a record, and of the sums. CV_ERR_DAMAGED, CV_ERR_NOMEM. */
void cv_cobroker_ended_put(const struct cv_cobroker_ended *ended, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_cobroker_ended_read(struct cv_cobroker_archive *archive, uint32_t id, struct cv_reader *row);
void cv_cobroker_past_put(const struct cv_cobroker_archive *archive, struct cv_buf *out);
CV_MUST_USE enum cv_err cv_cobroker_past_read(struct cv_cobroker_archive *archive, struct cv_reader *row);

#endif
