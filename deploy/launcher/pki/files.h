/* SPDX-License-Identifier: Apache-2.0 */
/* Inside pki: certificates and keys as files. Keys have mode 0600, certificates 0644, folders 0700. */
#ifndef CV_DEPLOY_PKI_FILES_H
#define CV_DEPLOY_PKI_FILES_H

#include <stdbool.h>

#include "deploy/launcher/pki/pki.h"
#include "deploy/launcher/pki/x509.h"

enum { CV_PKI_PATH = sizeof(((struct cv_pki_files *)0)->cert) };

/* FOLDER/STEMSUFFIX; CV_ERR_LIMIT if that is too long. */
CV_MUST_USE enum cv_err cv_pki_join(char ret[CV_PKI_PATH], const char *folder, const char *stem, const char *suffix,
                                    struct cv_why *why);
/* *ret_made says whether there is something to remove after a later failure: the folder may be there. */
CV_MUST_USE enum cv_err cv_pki_make_folder(const char *path, bool *ret_made, struct cv_why *why);

/* New files, synced; CV_ERR_EXISTS if they are there. Of the pair both or none. */
CV_MUST_USE enum cv_err cv_pki_write_cert(const char *path, X509 *cert, struct cv_why *why);
CV_MUST_USE enum cv_err cv_pki_write_pair(const struct cv_pki_files *files, const struct cv_pki_pair *pair,
                                          struct cv_why *why);

/*
 * Replacing, in three steps: a pair is staged beside its files (under their names with ".new", synced; what an
 * interrupted run left there goes), then adopted (renamed, the key first, and the folder synced) or dropped.
 */
CV_MUST_USE enum cv_err cv_pki_stage_pair(const struct cv_pki_files *files, const struct cv_pki_pair *pair,
                                          struct cv_why *why);
CV_MUST_USE enum cv_err cv_pki_adopt_pair(const struct cv_pki_files *files, struct cv_why *why);
void cv_pki_drop_pair(const struct cv_pki_files *files);
/* The same in one for a certificate alone. */
CV_MUST_USE enum cv_err cv_pki_replace_cert(const char *path, X509 *cert, struct cv_why *why);

/* CV_ERR_NOT_FOUND if a file cannot be opened, CV_ERR_FORMAT if key and certificate do not fit. */
CV_MUST_USE enum cv_err cv_pki_read_pair(const struct cv_pki_files *files, struct cv_pki_pair *ret, struct cv_why *why);
/* *ret is NULL if there is no such file; CV_ERR_FORMAT if it holds no certificate. The caller frees it. */
CV_MUST_USE enum cv_err cv_pki_read_cert(const char *path, X509 **ret, struct cv_why *why);
/* Whether one of the certificates in a file is this one; false if it cannot be read. */
bool cv_pki_file_has(const char *path, const X509 *cert);

#endif
