/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes all certificates of a deployment from arguments IDENTITY[@HOST[,HOST]...]=FOLDER. Each party has its own folder
 * with ca.pem, cert.pem and key.pem. Valid certificates are kept, so the same call can be repeated at any time.
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
  char *word; /* owned copy of the argument; the other strings point into it */
  const char *host[CV_PKI_HOSTS_MAX];
  size_t hosts;
  const char *folder;             /* as given */
  char path[CV_PKI_PATH];         /* the folder, absolute and without symbolic links */
  enum cv_pki_done planned, done; /* `done` is NOTHING until the plan is carried out */
  int64_t until_s;                /* end of the certificate, seconds since 1970, once done */
};

/*
 * Parses 1 to CV_PKI_PARTIES_MAX arguments and checks them for conflicts with each other and with the folder of the CA;
 * changes no file. The caller frees *ret with cv_pki_parties_free(). CV_ERR_FORMAT for a malformed argument,
 * CV_ERR_INVALID for a conflict, CV_ERR_LIMIT for too many hosts or too long a path.
 */
CV_MUST_USE enum cv_err cv_pki_parties_parse(const char *const *word, size_t words, const char *ca_folder,
                                             struct cv_pki_party **ret, struct cv_why *why);
void cv_pki_parties_free(struct cv_pki_party *party, size_t parties);

struct cv_pki_make {
  const char *ca_folder, *ca_name; /* the CA is made if it does not exist */
  int64_t valid_s;                 /* validity of new certificates, as in pki.h; at most until the CA expires */
  bool renew;                      /* replace valid certificates, too */
};

/*
 * Makes missing certificates; replaces expired ones and those that do not belong to their key. Checks all folders
 * before it changes anything: CV_ERR_EXISTS for a certificate of another identity or another CA in a folder, and for
 * worker ids that this CA has issued to another identity; CV_ERR_FORMAT for a file that is not a certificate;
 * CV_ERR_STATE for an expired CA. After a later failure `done` says which parties are complete, and the same call
 * continues. An identity may have an earlier certificate in the index that was lost.
 */
CV_MUST_USE enum cv_err cv_pki_make(const struct cv_pki_make *make, struct cv_pki_party *party, size_t parties,
                                    struct cv_why *why);

#endif
