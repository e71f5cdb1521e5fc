/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The master key of a broker's or a co-broker's database replaced, or looked at, with a running program or a stopped
 * one. Prints findings (common/base/finding.h).
 *
 * A rotation has three steps, each durable before the next begins: the key file gets the new key in front of the old
 * one; the stored keys are wrapped by the new key, by the running program itself or here; the key file loses the old
 * key. After each of them the file opens the database. A rotation that finds two keys goes on with the second step.
 */
#ifndef CV_BROKER_BOTH_ROTATE_H
#define CV_BROKER_BOTH_ROTATE_H

#include "broker/both/vault.h"
#include "common/base/event.h"
#include "common/crypto/ring.h"

enum cv_rotate_mode { CV_ROTATE_RUN, CV_ROTATE_STATUS, CV_ROTATE_ROTATE };
/* For the option --seal; ends with NULL. */
extern const char *const CV_ROTATE_WORDS[];

/* Whose keys: the party's settings, and the functions of its store, which `open` makes. */
struct cv_rotate_party {
  const char *program;  /* "crowdveil-broker" */
  const char *name;     /* "broker" */
  const char *database; /* the path, or the name of one on a server */
  bool is_shared;       /* it is on a server */
  const char *anchor, *seal_key;
  const char *admin, *audit; /* NULL: none */
  /* CV_ERR_STATE if a running program has the database open. */
  enum cv_err (*open)(const struct cv_rotate_party *party, const struct cv_ring *ring, bool readonly, void **ret,
                      struct cv_why *why);
  void (*close)(void *store);
  struct cv_vault *(*vault)(void *store);
};

/* The line for the audit log; `facts` is the room for its further fields, and borrows the names. */
struct cv_event cv_rotate_event(const struct cv_key_name *from, const struct cv_key_name *to,
                                struct cv_event_fact facts[2]);

/* Does what the mode says, which is not CV_ROTATE_RUN. Returns the exit status. */
CV_MUST_USE int cv_rotate_run(const struct cv_rotate_party *party, enum cv_rotate_mode mode);

#endif
