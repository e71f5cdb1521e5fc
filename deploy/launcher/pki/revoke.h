/* SPDX-License-Identifier: Apache-2.0 */
/* Revokes certificates of a CA: marks them in its index, then signs a new crl.pem. */
#ifndef CV_DEPLOY_PKI_REVOKE_H
#define CV_DEPLOY_PKI_REVOKE_H

#include "deploy/launcher/pki/index.h"
#include "deploy/launcher/pki/pki.h"

/*
 * `what` is an identity, which stands for all of its certificates that have not expired, or a serial number in hex.
 * `told` gets each certificate that it names, once the list is signed; entry->revoked is the time of the revocation,
 * which may be an earlier one. Repeating a call that was interrupted completes it. CV_ERR_FORMAT if `what` is neither,
 * CV_ERR_NOT_FOUND if the CA has no such certificate; then nothing has changed.
 */
CV_MUST_USE enum cv_err cv_pki_revoke(const char *ca_folder, const char *what,
                                      void (*told)(void *data, const struct cv_pki_entry *entry), void *data,
                                      struct cv_why *why);

#endif
