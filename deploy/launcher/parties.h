/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a deployment: pki/ with the CA; tls/ with a folder of certificates for each party; broker/ and
 * thirdparty/ with the state of these parties; anchor/ and keys/, which the broker keeps outside its state; with two
 * brokers cobroker/, cobroker-anchor/ and cobroker-keys/ as well; one configuration file and one log per program.
 */
#ifndef CV_LAUNCHER_PARTIES_H
#define CV_LAUNCHER_PARTIES_H

#include <stdint.h>

#include "common/base/spec.h"
#include "deploy/launcher/folder.h"

/* The names in the certificates. */
/* In the folder: the key of the rows of a data file, which all workers have. */
#define CV_PARTIES_ROW_KEY    "rows/row.key"
#define CV_PARTIES_THIRDPARTY "main"
#define CV_PARTIES_BROKER     "main"
#define CV_PARTIES_COBROKER   "second"
#define CV_PARTIES_REQUESTER  "local"

struct cv_parties {
  const struct cv_folder *folder;
  uint32_t gateways, alone; /* numbers of gateways and of workers with their own process */
  uint64_t workers; /* at least gateways + alone; the last `alone` are alone, the gateways share the others evenly */
  uint64_t before;  /* the first worker's id is before + 1 */
  bool is_two;      /* with a co-broker */
};

/* Makes folders, CA and certificates: broker/main, cobroker/second if there is one, thirdparty/main, requester/local,
 * one per gateway or worker. */
CV_MUST_USE enum cv_err cv_parties_make(const struct cv_parties *parties, struct cv_why *why);

struct cv_parties_paths {
  char ca[1200], cert[1200], key[1200], crl[1200];
};
/* Returns the paths of a party's TLS files; `party` is "requester-local", "broker-main" and so on. */
void cv_parties_files(const struct cv_parties *parties, const char *party, struct cv_parties_paths *ret);

/* Writes the path of an admin socket; CV_ERR_LIMIT if it is too long for a Unix socket, and the party has none. */
CV_MUST_USE enum cv_err cv_parties_socket(const struct cv_parties *parties, const char *name, char *to, size_t size,
                                          struct cv_why *why);

/* The next functions write configuration files. The parties permit what this campaign requests, since one person runs
 * all of them, and no more. */
CV_MUST_USE enum cv_err cv_parties_write_thirdparty(const struct cv_parties *parties, struct cv_why *why);
/* What a broker or co-broker permits only if its configuration says so. */
struct cv_launcher_risks {
  const struct cv_spec *spec; /* the campaign's spec: the broker permits its epsilon, delta and trust, no more */
  uint64_t token_micro;       /* what a token is charged, without unsafe mechanisms */
  const uint64_t *noise_seed; /* NULL: none */
  bool mechanisms;            /* permit mechanisms that exceed their stated epsilon */
};
/* `cobroker` is its HOST:PORT; NULL without one. */
CV_MUST_USE enum cv_err cv_parties_write_broker(const struct cv_parties *parties, const char *thirdparty,
                                                const char *cobroker, const struct cv_launcher_risks *risks,
                                                struct cv_why *why);
CV_MUST_USE enum cv_err cv_parties_write_cobroker(const struct cv_parties *parties,
                                                  const struct cv_launcher_risks *risks, struct cv_why *why);
/* Name of a gateway or worker program: "gateway-1", "worker-1000". */
struct cv_parties_label {
  char text[40];
};
/* `number` is from 1 to gateways + alone; the gateways come first. */
struct cv_parties_label cv_parties_name(const struct cv_parties *parties, uint32_t number);
struct cv_launcher_work {
  const char *broker;   /* HOST:PORT */
  const char *cobroker; /* likewise; NULL without one */
  const char *campaign; /* campaign file, absolute path */
  const struct cv_spec *spec;
  uint64_t beside_micro; /* what a token is charged beside the releases */
  const uint64_t *seed;  /* NULL: that of the file */
  bool is_shown;         /* UNSAFE: prints its scores and tokens */
  bool remembers;        /* has a state folder, to remember which rows were given */
  bool shares_rows;      /* has the key of a data file's rows, as the others have */
};
/* Writes NAME.yaml (NAME from cv_parties_name()) and makes the folder NAME for the admin socket and the state. */
CV_MUST_USE enum cv_err cv_parties_write_worker(const struct cv_parties *parties, uint32_t number,
                                                const struct cv_launcher_work *work, struct cv_why *why);

#endif
