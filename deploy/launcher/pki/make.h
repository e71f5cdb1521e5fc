/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes all certificates of a deployment from arguments IDENTITY[@HOST[,HOST]...]=FOLDER. Each party has its own folder
 * with ca.pem, crl.pem, cert.pem and key.pem. Valid certificates are kept, so the same call can be repeated.
 */
#ifndef CV_DEPLOY_PKI_MAKE_H
#define CV_DEPLOY_PKI_MAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/identity.h"
#include "deploy/launcher/pki/files.h"
#include "deploy/launcher/pki/party.h"

enum { CV_PKI_PARTIES_MAX = 256 };

/* REVOKED: the folder has a revoked certificate, and it stays so. */
enum cv_pki_done { CV_PKI_NOTHING, CV_PKI_MADE, CV_PKI_THERE, CV_PKI_RENEWED, CV_PKI_REVOKED };

struct cv_pki_party {
  struct cv_identity identity;
  char *word; /* owned copy of the argument; the other strings point into it */
  const char *host[CV_PKI_HOSTS_MAX];
  size_t hosts;
  const char *folder;             /* as given */
  char path[CV_PKI_PATH];         /* the folder, absolute and without symbolic links */
  enum cv_pki_done planned, done; /* `done` is NOTHING until the plan is carried out */
  bool finish;                    /* planned: adopt the staged pair of an interrupted run */
  int64_t until_s;                /* end of the certificate, seconds since 1970, once done */
  bool is_new_key;                /* once MADE or RENEWED: its key is new */
};

/*
 * Parses 1 to CV_PKI_PARTIES_MAX arguments and checks them for conflicts with each other and with the folder of the CA;
 * changes no file. The caller frees *ret with cv_pki_parties_free(). CV_ERR_FORMAT for a malformed argument,
 * CV_ERR_INVALID for a conflict and for a broker or third-party without a host, CV_ERR_LIMIT for too many hosts or too
 * long a path.
 */
CV_MUST_USE enum cv_err cv_pki_parties_parse(const char *const *word, size_t words, const char *ca_folder,
                                             struct cv_pki_party **ret, struct cv_why *why);
void cv_pki_parties_free(struct cv_pki_party *party, size_t parties);

struct cv_pki_make {
  const char *ca_folder, *ca_name; /* the CA is made if it does not exist */
  int64_t ca_valid_s, valid_s;     /* validity of a new CA and of new certificates, as in pki.h */
  bool renew;                      /* replace valid and revoked certificates, too; permit a second one of an identity */
  bool new_key;                    /* replaced certificates get a new key; else only those whose key is of no use */
};

/*
 * Makes missing certificates; replaces expired ones and those that do not belong to their key; completes what an
 * interrupted run left; brings crl.pem up to date. Checks all folders before it changes anything: CV_ERR_EXISTS for a
 * certificate of another identity or another CA in a folder, for worker ids that this CA has issued to another
 * identity, and, without `renew`, for an identity whose certificate is elsewhere or was revoked; CV_ERR_FORMAT for a
 * file that is not a certificate; CV_ERR_STATE for an expired CA. After a later failure `done` says which parties are
 * complete, and the same call continues.
 */
CV_MUST_USE enum cv_err cv_pki_make(const struct cv_pki_make *make, struct cv_pki_party *party, size_t parties,
                                    struct cv_why *why);

#endif
