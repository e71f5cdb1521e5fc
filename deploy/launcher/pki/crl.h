/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to pki: crl.pem, the CA's signed list of revoked certificates. It is valid for 90 days and at least as long
 * as every certificate that the CA has issued so far: a party whose certificate is valid has a list that is, if it took
 * the list together with the certificate.
 */
#ifndef CV_DEPLOY_PKI_CRL_H
#define CV_DEPLOY_PKI_CRL_H

#include "deploy/launcher/pki/ca.h"

/*
 * CV_ERR_STATE if the list of this CA in the file `path` has a certificate that the index does not know to be revoked:
 * the index is an older one, as from a backup, and what it would sign would take a revocation back. No file is no list.
 */
CV_MUST_USE enum cv_err cv_pki_crl_check(const struct cv_pki_ca *ca, const char *path, struct cv_why *why);
/*
 * Makes the list agree with the index: signs a new one, and replaces the file, if the file is missing or damaged, lists
 * fewer certificates than are revoked, or ends too early. CV_ERR_STATE as above.
 */
CV_MUST_USE enum cv_err cv_pki_crl_refresh(struct cv_pki_ca *ca, int64_t now, struct cv_why *why);
/*
 * Copies the list into a party's folder, unless it is there already. Lists of other CAs in that file stay if the ca.pem
 * there has the CA, as while a CA is replaced; a damaged file is replaced. CV_ERR_STATE if the party
 * has a newer list, as above.
 */
CV_MUST_USE enum cv_err cv_pki_crl_copy(const struct cv_pki_ca *ca, const char *folder, struct cv_why *why);

#endif
