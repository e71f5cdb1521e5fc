/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to pki: certificates and keys as files. Keys have mode 0600, certificates 0644, folders 0700. */
#ifndef CV_DEPLOY_PKI_FILES_H
#define CV_DEPLOY_PKI_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "deploy/launcher/pki/pki.h"
#include "deploy/launcher/pki/x509.h"

enum { CV_PKI_PATH = sizeof(((struct cv_pki_files *)0)->cert) };

/* Writes FOLDER/STEMSUFFIX to `ret`. CV_ERR_LIMIT if the path is too long. */
CV_MUST_USE enum cv_err cv_pki_join(char ret[CV_PKI_PATH], const char *folder, const char *stem, const char *suffix,
                                    struct cv_why *why);
/* Makes a folder, unless it exists. *ret_made: it was made, so the caller removes it after a later failure. */
CV_MUST_USE enum cv_err cv_pki_make_folder(const char *path, bool *ret_made, struct cv_why *why);

/*
 * Replaces any file in two steps: stage opens FILE.new, overwriting that of an interrupted run; adopt closes, syncs and
 * renames it and syncs the folder. `is_written` false, or a failure: the file stays as it was, without FILE.new. A file
 * that root replaces, here or below, keeps its owner.
 */
CV_MUST_USE enum cv_err cv_pki_file_stage(const char *path, mode_t mode, FILE **ret, struct cv_why *why);
CV_MUST_USE enum cv_err cv_pki_file_adopt(FILE *file, bool is_written, const char *path, struct cv_why *why);

/* Writes a new file and syncs it. CV_ERR_EXISTS if the file exists. */
CV_MUST_USE enum cv_err cv_pki_write_cert(const char *path, X509 *cert, struct cv_why *why);

/*
 * Replace a pair in two steps: stage writes and syncs the files with the suffix ".new", overwriting those of an
 * interrupted run; then adopt renames them, the key first, and syncs the folder, or drop removes them. After an
 * interruption between the renames adopt continues with the certificate.
 */
CV_MUST_USE enum cv_err cv_pki_stage_pair(const struct cv_pki_files *files, const struct cv_pki_pair *pair,
                                          struct cv_why *why);
CV_MUST_USE enum cv_err cv_pki_adopt_pair(const struct cv_pki_files *files, struct cv_why *why);
void cv_pki_drop_pair(const struct cv_pki_files *files);
/* Stages and adopts a single certificate. */
CV_MUST_USE enum cv_err cv_pki_replace_cert(const char *path, X509 *cert, struct cv_why *why);

/* The paths of the staged files. */
CV_MUST_USE enum cv_err cv_pki_staged_pair(const struct cv_pki_files *files, struct cv_pki_files *ret,
                                           struct cv_why *why);

/* CV_ERR_NOT_FOUND if a file cannot be opened, CV_ERR_DENIED if others than its owner may
 * access the key, CV_ERR_FORMAT if key and certificate do not belong together. */
CV_MUST_USE enum cv_err cv_pki_read_pair(const struct cv_pki_files *files, struct cv_pki_pair *ret, struct cv_why *why);
/* *ret is NULL if the file does not exist; the caller frees it. CV_ERR_FORMAT if the file has no certificate. */
CV_MUST_USE enum cv_err cv_pki_read_cert(const char *path, X509 **ret, struct cv_why *why);
/* Returns true if the file has this certificate, among others; false if the file cannot be read. */
bool cv_pki_file_has(const char *path, const X509 *cert);

#endif
