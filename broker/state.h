/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the broker's core, for its own files only; campaigns and connections have their own headers. */
#ifndef CV_BROKER_STATE_H
#define CV_BROKER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "broker/archive.h"
#include "broker/batch.h"
#include "broker/both/ledger.h"
#include "broker/both/recovery.h"
#include "broker/config.h"
#include "broker/figures.h"

struct cv_broker {
  struct cv_broker_config config;
  uint64_t commit; /* number of the batch being gathered */
  bool changed;    /* the batch has something to store */
  bool said;       /* there is output */
  bool unserved;   /* a connection has used up its share of answers while more of its workers wait */
  bool in_flight;  /* between flush and stored */
  bool quiet;      /* restoring: changes are not reported */
  bool failed;     /* out of memory: the core has ended */
  bool overtaken;  /* a peer has shown that another broker has the term */
  bool draining;
  struct cv_broker_campaign *campaigns; /* by id: open, just ended, or fetched */
  struct cv_broker_campaign *open;      /* list, oldest first */
  uint32_t open_count;
  struct cv_archive archive;   /* of those that have ended */
  bool wants;                  /* a requester waits for a campaign that has to be fetched */
  uint64_t fetches;            /* so far */
  uint64_t swept_ms;           /* last check of the age of ended campaigns */
  struct cv_accounts accounts; /* of the workers */
  struct cv_totals totals;
  struct cv_recovery recovery; /* the last one */
  uint32_t recoveries;
  bool recovery_due;            /* the recovery must be written with the next batch */
  uint64_t forgotten_next;      /* the next forgotten campaign to close at the third-party */
  struct cv_broker_conn *conns; /* list, newest first */
  uint32_t crowd_conns, order_conns;
  struct cv_broker_conn *rank;     /* the third-party, if connected */
  struct cv_broker_conn *cobroker; /* the co-broker, if connected */
  bool knows_cobroker;             /* it has told its limits, to this process */
  struct cv_gate_limits cobroker_limits;
  bool overs_due;                    /* the co-broker may have to be told of ended campaigns */
  struct cv_broker_conn *cursor;     /* next connection of cv_broker_next_out */
  struct cv_broker_conn *fair;       /* first connection of the last turn of assignments */
  struct cv_broker_outbox *last_out; /* returned by cv_broker_next_out, emptied at the next call */
  struct cv_dirty *dirty;            /* ring; owned */
  size_t dirty_cap, dirty_head, dirty_count;
  uint64_t journal_bytes; /* written since the last round of folding */
  uint64_t fold_until;    /* the round writes what was dirty at this commit; 0 = no round runs */
  size_t gathered;        /* tokens counted for the next batch */
  uint64_t started_ms, ticked_ms, now_ms, wall_ms;
  uint64_t parted_ms; /* when the last worker or gateway left, or this broker started */
  struct cv_broker_figures figures;
};

/* For answers that need not hold in a later term: the next flush is stored before they leave. A broker whose term is
 * over, and that has not found out yet, cannot commit and so never gives them. One without terms gives them at once. */
static inline void cv_broker_only_with_a_commit(struct cv_broker *broker) {
  broker->changed = broker->changed || broker->config.term > 0;
}

#endif
