/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's master key replaced, or looked at, with a running broker or a stopped one. Prints findings
 * (common/base/finding.h).
 *
 * A rotation has three steps, each durable before the next begins: the key file gets the new key in front of the old
 * one; the stored keys are wrapped by the new key, by the running broker itself or here; the key file loses the old
 * key. After each of them the file opens the database. A rotation that finds two keys goes on with the second step.
 */
#ifndef CV_BROKER_ROTATE_H
#define CV_BROKER_ROTATE_H

#include "broker/shell.h"
#include "common/base/event.h"
#include "common/crypto/ring.h"

enum cv_broker_seal { CV_BROKER_SEAL_RUN, CV_BROKER_SEAL_STATUS, CV_BROKER_SEAL_ROTATE };
/* For the option --seal; ends with NULL. */
extern const char *const CV_BROKER_SEAL_WORDS[];

/* The line for the audit log; `facts` is the room for its further fields, and borrows the names. */
struct cv_event cv_broker_seal_event(const struct cv_key_name *from, const struct cv_key_name *to,
                                     struct cv_event_fact facts[2]);

/* Both return the exit status. */
CV_MUST_USE int cv_broker_seal_status(const struct cv_broker_settings *settings);
CV_MUST_USE int cv_broker_seal_rotate(const struct cv_broker_settings *settings);

#endif
