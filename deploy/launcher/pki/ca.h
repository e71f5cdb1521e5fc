/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to pki: an open CA. Its index is locked while it is open, so only one process issues at a time. */
#ifndef CV_DEPLOY_PKI_CA_H
#define CV_DEPLOY_PKI_CA_H

#include "deploy/launcher/pki/files.h"
#include "deploy/launcher/pki/index.h"

struct cv_pki_ca {
  struct cv_pki_pair pair; /* cert NULL: there is no CA yet */
  struct cv_pki_files files;
  struct cv_pki_index index;
  char index_path[CV_PKI_PATH], crl_path[CV_PKI_PATH], folder[CV_PKI_PATH];
  bool is_new_folder, is_new_index; /* made by cv_pki_ca_open_place() */
};

/* Opens an existing CA. CV_ERR_NOT_FOUND if there is none, CV_ERR_STATE if it has expired. */
CV_MUST_USE enum cv_err cv_pki_ca_open(const char *folder, struct cv_pki_ca *ret, struct cv_why *why);
/*
 * Opens a CA, or prepares a folder for one: makes the folder and an empty index if they do not exist. The remains of an
 * interrupted run count as no CA. CV_ERR_EXISTS for a key or certificate without an index.
 */
CV_MUST_USE enum cv_err cv_pki_ca_open_place(const char *folder, struct cv_pki_ca *ret, struct cv_why *why);
/* Makes a CA where there is none. `valid_s` as in pki.h. */
CV_MUST_USE enum cv_err cv_pki_ca_make(struct cv_pki_ca *ca, const char *name, int64_t valid_s, struct cv_why *why);
/* Removes the folder and the index if opening made them and there is still no CA. */
void cv_pki_ca_close(struct cv_pki_ca *ca);
/* CV_ERR_STATE if the CA has expired. */
CV_MUST_USE enum cv_err cv_pki_ca_check(const struct cv_pki_ca *ca, struct cv_why *why);

/* Fails if the certificate in the file `path` is of another identity or was issued by another CA. */
CV_MUST_USE enum cv_err cv_pki_ca_check_holder(const struct cv_pki_ca *ca, const struct cv_identity *identity,
                                               const char *path, X509 *cert, struct cv_why *why);
/* What the CA knows of a certificate; NULL if it is not listed. */
const struct cv_pki_entry *cv_pki_ca_find(const struct cv_pki_ca *ca, const X509 *cert);
/*
 * The key of a pair, for its next certificate; the caller frees it. NULL if the next one needs a new key: the pair does
 * not fit, or its certificate is revoked, so that the key may have been stolen.
 */
EVP_PKEY *cv_pki_ca_key(const struct cv_pki_ca *ca, const struct cv_pki_files *files);

struct cv_pki_wish {
  const struct cv_identity *identity;
  const char *const *hosts;
  size_t hosts_n;
  int64_t valid_s; /* as in pki.h */
  EVP_PKEY *key;   /* borrowed; NULL: a new key */
};
/*
 * Makes a certificate, which ends with the CA's at the latest, and replaces the pair in `files`. The index lists the
 * certificate before it can be used: after an interruption no usable certificate is missing there. ret_end_s: its last
 * second. CV_ERR_INVALID if a party that others dial has no host.
 */
CV_MUST_USE enum cv_err cv_pki_ca_issue(struct cv_pki_ca *ca, const struct cv_pki_wish *wish,
                                        const struct cv_pki_files *files, int64_t *ret_end_s, struct cv_why *why);

#endif
