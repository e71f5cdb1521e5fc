/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration of a co-broker's core. */
#ifndef CV_COBROKER_CONFIG_H
#define CV_COBROKER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/both/gate.h"
#include "common/base/digest.h"
#include "common/base/event.h"
#include "common/base/log_line.h"
#include "common/base/rng.h"
#include "common/base/split.h"

enum { CV_COBROKER_JOURNAL_BYTES = 1 << 20 /* default length of the journal before chunks are written */ };

struct cv_cobroker_config {
  char broker[CV_NAME_BYTES];   /* the one broker that may connect ... */
  struct cv_duo duo;            /* ... with this key; and the key of this co-broker's own certificate */
  struct cv_gate_limits limits; /* over all requesters: open at once, opened a minute, records kept */
  uint32_t sessions;            /* most sessions of workers and gateways */
  cv_digest_fn *digest;
  struct cv_rng *noise; /* source of the noise's randomness */
  bool noise_seeded;    /* unsafe, for tests: noise is a function of (noise_seed, arm, release) instead, never the
                         * broker's own */
  uint64_t noise_seed;
  struct cv_rng *key;     /* of verify keys and of the ids of sessions; never seeded by noise_seed */
  uint64_t journal_bytes; /* length of the journal before chunks are written; 0: CV_COBROKER_JOURNAL_BYTES */
  /* Both take `crypto_data`. The first takes the session's key from the TLS connection of `shell`; an error closes
   * that connection. The second opens a sealed seed with such a key: CV_ERR_DAMAGED if it does not open; any
   * other error ends the core. */
  enum cv_err (*export_key)(void *data, void *shell, const struct cv_digest *context, uint8_t ret[CV_SPLIT_SEED_BYTES]);
  enum cv_err (*open_seed)(void *data, const uint8_t key[CV_SPLIT_SEED_BYTES], uint64_t counter,
                           const uint8_t bound[CV_SPLIT_BOUND_BYTES], const uint8_t sealed[CV_SPLIT_SEALED_BYTES],
                           uint8_t ret[CV_SPLIT_SEED_BYTES]);
  void *crypto_data;
  /* Writes one line to the log; may be NULL. */
  void (*note)(void *data, const struct cv_note *note);
  void *note_data;
  /* Takes an event for the audit log; may be NULL. It must be durable before the next batch is stored, or before the
   * next outputs are sent if no batch is. */
  void (*audit)(void *data, const struct cv_event *event);
  void *audit_data;
};

#endif
