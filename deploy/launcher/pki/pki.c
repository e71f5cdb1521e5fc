/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/pki.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "deploy/launcher/pki/ca.h"
#include "deploy/launcher/pki/party.h"

enum cv_err cv_pki_make_ca(const char *folder, const char *name, int64_t valid_s, struct cv_why *why) {
  struct cv_pki_ca ca;
  CV_TRY(cv_pki_ca_open_place(folder, &ca, why));
  enum cv_err err = ca.pair.cert == NULL
                        ? cv_pki_ca_make(&ca, name, valid_s, why)
                        : cv_fail(why, CV_ERR_EXISTS, "%s: the folder already has a CA; expected none", ca.files.cert);
  cv_pki_ca_close(&ca);
  return err;
}

/* A certificate that cannot be listed is removed: the index would permit a second one for the same workers. */
static enum cv_err write_and_list(struct cv_pki_ca *ca, const struct cv_pki_files *files,
                                  const struct cv_pki_pair *pair, const struct cv_identity *identity, int64_t not_after,
                                  struct cv_why *why) {
  CV_TRY(cv_pki_write_pair(files, pair, why));
  enum cv_err err = cv_pki_ca_list(ca, pair->cert, identity, not_after, why);
  if (err != CV_OK) {
    (void)unlink(files->cert);
    (void)unlink(files->key);
  }
  return err;
}

static enum cv_err issue(struct cv_pki_ca *ca, const struct cv_identity *identity, const struct cv_pki_request *request,
                         const struct cv_pki_files *files, struct cv_why *why) {
  int64_t now = (int64_t)time(NULL), not_after = now + request->valid_s;
  struct cv_pki_pair pair;
  CV_TRY(cv_pki_index_check(&ca->index, ca->index_path, identity, request->renew, now, why));
  CV_TRY(cv_pki_ca_sign(ca, identity, request->hosts, request->hosts_n, now, not_after, &pair, why));
  enum cv_err err = write_and_list(ca, files, &pair, identity, not_after, why);
  cv_pki_pair_fini(&pair);
  return err;
}

/* Keeps an existing ca.pem; in the CA's own folder there always is one. */
static enum cv_err add_ca(const char *path, X509 *cert, bool *ret_made, struct cv_why *why) {
  struct cv_why what;
  enum cv_err err = cv_pki_write_cert(path, cert, &what);
  if (err != CV_OK && err != CV_ERR_EXISTS) {
    return cv_fail(why, err, "%s", what.text);
  }
  *ret_made = err == CV_OK;
  return CV_OK;
}

static enum cv_err issue_with_ca(const char *ca_folder, const char *ca_copy, const struct cv_identity *identity,
                                 const struct cv_pki_request *request, const struct cv_pki_files *files,
                                 struct cv_why *why) {
  struct cv_pki_ca ca;
  CV_TRY(cv_pki_ca_open(ca_folder, &ca, why));
  bool copied = false;
  enum cv_err err = add_ca(ca_copy, ca.pair.cert, &copied, why);
  if (err == CV_OK) {
    err = issue(&ca, identity, request, files, why);
  }
  /* Only a copy of the CA's certificate that this call made is removed. */
  if (err != CV_OK && copied) {
    (void)unlink(ca_copy);
  }
  cv_pki_ca_close(&ca);
  return err;
}

enum cv_err cv_pki_issue(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                         struct cv_pki_files *ret, struct cv_why *why) {
  struct cv_identity identity;
  CV_TRY(cv_pki_identity(request->identity, &identity, why));
  char stem[96];
  (void)snprintf(stem, sizeof(stem), "%s-%s", cv_role_text(identity.role), identity.name);
  struct cv_pki_files files;
  char ca_copy[CV_PKI_PATH];
  CV_TRY(cv_pki_join(ca_copy, folder, "ca", ".pem", why));
  CV_TRY(cv_pki_join(files.cert, folder, stem, ".pem", why));
  CV_TRY(cv_pki_join(files.key, folder, stem, ".key", why));
  bool made;
  CV_TRY(cv_pki_make_folder(folder, &made, why));
  enum cv_err err = issue_with_ca(ca_folder, ca_copy, &identity, request, &files, why);
  if (err != CV_OK) {
    if (made) {
      (void)rmdir(folder);
    }
    return err;
  }
  if (ret != NULL) {
    *ret = files;
  }
  return CV_OK;
}
