/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the co-broker's core, for its own files only; campaigns and connections have their own headers. */
#ifndef CV_COBROKER_STATE_H
#define CV_COBROKER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/both/ledger.h"
#include "broker/both/recovery.h"
#include "cobroker/config.h"
#include "cobroker/dirty.h"
#include "cobroker/ended.h"
#include "cobroker/figures.h"

struct cv_cobroker {
  struct cv_cobroker_config config;
  uint64_t commit;                        /* number of the batch being gathered */
  bool changed;                           /* the batch has something to store */
  bool said;                              /* there is output */
  bool in_flight;                         /* between flush and stored */
  bool quiet;                             /* restoring: changes are not reported */
  bool failed;                            /* out of memory: the core has ended */
  bool examines;                          /* restored to be looked at: nothing is ended */
  struct cv_cobroker_campaign *campaigns; /* open ones, by id */
  struct cv_cobroker_archive archive;     /* of those that have ended */
  struct cv_cobroker_session *sessions;   /* by id, in the order of their beginning */
  struct cv_accounts accounts;            /* of the workers */
  struct cv_totals totals;
  struct cv_recovery recovery; /* the last one */
  uint32_t recoveries;
  bool recovery_due;                   /* the recovery must be written with the next batch */
  struct cv_cobroker_conn *conns;      /* list, newest first */
  struct cv_cobroker_conn *broker;     /* if connected */
  struct cv_cobroker_conn *cursor;     /* next connection of cv_cobroker_next_out */
  struct cv_cobroker_outbox *last_out; /* returned by cv_cobroker_next_out, emptied at the next call */
  struct cv_cobroker_dirt dirt;
  uint64_t journal_bytes; /* written since the last round of folding */
  uint64_t fold_until;    /* the round writes what was dirty at this commit; 0 = no round runs */
  size_t gathered;        /* tokens judged for the next batch */
  uint64_t now_ms, wall_ms, swept_ms;
  uint64_t minute_ms; /* the begin of a minute, and the campaigns that were opened in it */
  uint32_t minute_opened;
  struct cv_cobroker_figures figures;
};

#endif
