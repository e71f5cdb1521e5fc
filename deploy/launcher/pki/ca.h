/* SPDX-License-Identifier: Apache-2.0 */
/* Inside pki: a CA at work. While it is open its index is locked, so that one process issues at a time. */
#ifndef CV_DEPLOY_PKI_CA_H
#define CV_DEPLOY_PKI_CA_H

#include "deploy/launcher/pki/files.h"
#include "deploy/launcher/pki/index.h"

struct cv_pki_ca {
  struct cv_pki_pair pair; /* without a certificate: there is no CA yet */
  struct cv_pki_files files;
  struct cv_pki_index index;
  char index_path[CV_PKI_PATH], folder[CV_PKI_PATH];
  bool is_new_folder, is_new_index; /* made by opening */
};

/* CV_ERR_NOT_FOUND if there is none. */
CV_MUST_USE enum cv_err cv_pki_ca_open(const char *folder, struct cv_pki_ca *ret, struct cv_why *why);
/*
 * The CA, or the place for one: the folder and an empty index, made if they are missing. What an interrupted run left
 * of a CA counts as none; a key or certificate without an index is CV_ERR_EXISTS.
 */
CV_MUST_USE enum cv_err cv_pki_ca_open_place(const char *folder, struct cv_pki_ca *ret, struct cv_why *why);
/* Where there is none. `valid_s` as in pki.h. */
CV_MUST_USE enum cv_err cv_pki_ca_make(struct cv_pki_ca *ca, const char *name, int64_t valid_s, struct cv_why *why);
/* A place that is still empty goes again, if opening made it. */
void cv_pki_ca_close(struct cv_pki_ca *ca);

/* A key and a certificate for a party, signed but neither written nor listed. `now` and `not_after`: seconds since
 * 1970. */
CV_MUST_USE enum cv_err cv_pki_ca_sign(const struct cv_pki_ca *ca, const struct cv_identity *identity,
                                       const char *const *hosts, size_t hosts_n, int64_t now, int64_t not_after,
                                       struct cv_pki_pair *ret, struct cv_why *why);
/* Appends it to the index, synced. */
CV_MUST_USE enum cv_err cv_pki_ca_list(struct cv_pki_ca *ca, const X509 *cert, const struct cv_identity *identity,
                                       int64_t not_after, struct cv_why *why);

#endif
