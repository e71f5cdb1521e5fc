/* SPDX-License-Identifier: Apache-2.0 */
/* Brokers, co-brokers and workers know each other by fingerprints of keys: do the configuration files agree on them? */
#ifndef CV_LAUNCHER_PINS_H
#define CV_LAUNCHER_PINS_H

#include "common/config/document.h"
#include "common/net/identity.h"
#include "deploy/launcher/findings.h"

/* What one party's configuration says. The texts are owned; NULL: the key is not there. */
struct cv_pins {
  char *cobroker_key; /* a broker's */
  char *broker_key;   /* a co-broker's */
  char *pairs;        /* a worker's `accept.pairs` */
};

/* Reads them; whether they are valid is checked by the party's own program. */
void cv_pins_read(struct cv_yaml *yaml, struct cv_pins *ret);
void cv_pins_fini(struct cv_pins *pins);

struct cv_pinned {
  const struct cv_pins *pins;
  const char *file;            /* for a person */
  struct cv_identity identity; /* of its certificate; its key is zeros if the certificate could not be read */
};

/*
 * Compares the parties of a deployment with each other and adds findings. Without a co-broker there is nothing to
 * compare, except what a single configuration says of itself.
 */
void cv_pins_compare(const struct cv_pinned *party, size_t parties, struct cv_findings *findings);

#endif
