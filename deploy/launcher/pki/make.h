/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All certificates of a deployment, as words say: IDENTITY[@HOST[,HOST]...]=FOLDER. Each party has a folder of its own
 * with ca.pem, cert.pem and key.pem. What is there and good stays, so that this can be done again at any time.
 */
#ifndef CV_DEPLOY_PKI_MAKE_H
#define CV_DEPLOY_PKI_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/identity.h"
#include "deploy/launcher/pki/files.h"

enum { CV_PKI_PARTIES_MAX = 256, CV_PKI_HOSTS_MAX = 32 };

enum cv_pki_done { CV_PKI_NOTHING, CV_PKI_MADE, CV_PKI_THERE, CV_PKI_RENEWED };

struct cv_pki_party {
  struct cv_identity identity;
  char *word; /* owned; the other texts point into it */
  const char *host[CV_PKI_HOSTS_MAX];
  size_t hosts;
  const char *folder;             /* as it was written */
  char path[CV_PKI_PATH];         /* the folder: absolute, without links */
  enum cv_pki_done planned, done; /* NOTHING until it is */
  int64_t until_s;                /* since 1970: the end of its certificate, once done */
};

/*
 * Reads 1 .. CV_PKI_PARTIES_MAX words and holds them against each other and the folder of the CA; touches no file. The
 * caller frees *ret with cv_pki_parties_free(). CV_ERR_FORMAT for a word that is none, CV_ERR_INVALID for one that does
 * not go with the others, CV_ERR_LIMIT for too many hosts or too long a path.
 */
CV_MUST_USE enum cv_err cv_pki_parties_parse(const char *const *word, size_t words, const char *ca_folder,
                                             struct cv_pki_party **ret, struct cv_why *why);
void cv_pki_parties_free(struct cv_pki_party *party, size_t parties);

struct cv_pki_make {
  const char *ca_folder, *ca_name; /* a CA is made where there is none */
  int64_t valid_s;                 /* of what is made, as in pki.h; no certificate outlives its CA */
  bool renew;                      /* also what is there and good */
};

/*
 * Makes what is missing and renews what has expired or is a key and a certificate that do not fit. Everything is looked
 * at first: a folder with another identity, or with a certificate of another CA (CV_ERR_EXISTS), one that holds what is
 * no certificate (CV_ERR_FORMAT), worker ids that this CA has given to another (CV_ERR_EXISTS), or a CA that has
 * expired (CV_ERR_STATE) leave everything as it was. After a later failure `done` says how far it came; doing it again
 * goes on. The identity may have had a certificate that is lost.
 */
CV_MUST_USE enum cv_err cv_pki_make(const struct cv_pki_make *make, struct cv_pki_party *party, size_t parties,
                                    struct cv_why *why);

#endif
