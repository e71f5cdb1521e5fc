/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a broker's core. */
#ifndef CV_BROKER_CONFIG_H
#define CV_BROKER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/gate.h"
#include "broker/ticket.h"
#include "common/base/digest.h"
#include "common/base/event.h"
#include "common/base/log_line.h"
#include "common/base/rng.h"
#include "common/base/split.h"

enum { CV_JOURNAL_BYTES = 1 << 20 /* default length of the journal before chunks are written */ };

struct cv_broker_config {
  char name[CV_NAME_BYTES];
  struct cv_gate_limits limits;
  struct cv_tagger tagger;
  cv_digest_fn *digest;
  struct cv_duo duo;                         /* the keys of this broker and its co-broker; of campaigns with two */
  uint8_t database[CV_SPLIT_DATABASE_BYTES]; /* this broker's */
  struct cv_rng *noise;                      /* source of the noise's randomness */
  bool noise_seeded; /* unsafe, for tests: noise is a function of (noise_seed, arm, release) instead */
  uint64_t noise_seed;
  uint64_t term;          /* of a database that several brokers share; 0: it is this broker's alone */
  uint64_t stall_ms;      /* a longer gap between ticks means that the process was stalled; 0: CV_STALL_MS */
  uint64_t journal_bytes; /* length of the journal before chunks are written; 0: CV_JOURNAL_BYTES */
  /* Writes one line to the log; may be NULL. */
  void (*note)(void *data, const struct cv_note *note);
  void *note_data;
  /* Takes an event for the audit log; may be NULL. It must be durable before the next batch is stored, or before the
   * next outputs are sent if no batch is. */
  void (*audit)(void *data, const struct cv_event *event);
  void *audit_data;
};

#endif
