/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deployment's folder: pki/ with the CA; tls/ with a folder of certificates for each party, which may read all that
 * lies there; broker/ and thirdparty/, each the state of one party; anchor/ and keys/, which the broker keeps apart
 * from its state; a configuration and a log per program.
 */
#ifndef CV_LAUNCHER_PARTIES_H
#define CV_LAUNCHER_PARTIES_H

#include <stdint.h>

#include "common/base/spec.h"
#include "deploy/launcher/folder.h"

/* The names in their certificates. */
#define CV_PARTIES_THIRDPARTY "main"
#define CV_PARTIES_BROKER     "main"
#define CV_PARTIES_REQUESTER  "local"

struct cv_parties {
  const struct cv_folder *folder;
  uint32_t gateways, alone; /* programs for workers: gateways, and workers with a program each of their own */
  uint64_t workers; /* at least gateways + alone; the last are alone, the others shared out evenly to the gateways */
  uint64_t before;  /* ids below those of the first worker: it is before + 1 */
};

/* Folders, CA and certificates: broker/main, thirdparty/main, requester/local, one for each program for workers. */
CV_MUST_USE enum cv_err cv_parties_make(const struct cv_parties *parties, struct cv_why *why);

struct cv_party_files {
  char ca[1200], cert[1200], key[1200];
};
/* The files of "requester-local" and the like. */
void cv_parties_files(const struct cv_parties *parties, const char *party, struct cv_party_files *ret);

/* Each writes a configuration; the broker permits whatever this campaign asks for, since its requester runs it. */
CV_MUST_USE enum cv_err cv_parties_write_thirdparty(const struct cv_parties *parties, struct cv_why *why);
/* What a broker does only when told to. */
struct cv_broker_risks {
  const struct cv_spec *spec; /* the campaign's, which gets the delta and the trust that it names and no more */
  const uint64_t *noise_seed; /* NULL: none */
  bool mechanisms;            /* that tell more than they say */
};
CV_MUST_USE enum cv_err cv_parties_write_broker(const struct cv_parties *parties, const char *thirdparty,
                                                const struct cv_broker_risks *risks, struct cv_why *why);
/* A program for workers, the gateways first: "gateway-1", "worker-1000". */
struct cv_party_name {
  char text[40];
};
/* `number` from 1 to gateways + alone. */
struct cv_party_name cv_parties_name(const struct cv_parties *parties, uint32_t number);
struct cv_worker_work {
  const char *broker;   /* its address */
  const char *campaign; /* the file, absolute */
  const struct cv_spec *spec;
  const uint64_t *seed; /* NULL: the file's */
  bool remembers;       /* which rows it has given: it has a state folder */
};
/* NAME.yaml of cv_parties_name(), and a folder NAME for its socket and, if it remembers, its state. */
CV_MUST_USE enum cv_err cv_parties_write_worker(const struct cv_parties *parties, uint32_t number,
                                                const struct cv_worker_work *work, struct cv_why *why);

#endif
