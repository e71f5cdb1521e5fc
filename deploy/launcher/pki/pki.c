/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/pki.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "deploy/launcher/pki/ca.h"
#include "deploy/launcher/pki/crl.h"
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

static enum cv_err expect_new(const char *path, struct cv_why *why) {
  return access(path, F_OK) != 0 ? CV_OK : cv_fail(why, CV_ERR_EXISTS, "%s: File exists", path);
}

static enum cv_err issue(struct cv_pki_ca *ca, const struct cv_identity *identity, const struct cv_pki_request *request,
                         const struct cv_pki_files *files, struct cv_why *why) {
  int64_t end_s;
  CV_TRY(cv_pki_index_check(&ca->index, identity, request->renew, (int64_t)time(NULL), why));
  CV_TRY(expect_new(files->key, why));
  CV_TRY(expect_new(files->cert, why));
  const struct cv_pki_wish wish = {
      .identity = identity, .hosts = request->hosts, .hosts_n = request->hosts_n, .valid_s = request->valid_s};
  return cv_pki_ca_issue(ca, &wish, files, &end_s, why);
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

static enum cv_err issue_into(const char *ca_folder, const char *folder, const struct cv_identity *identity,
                              const struct cv_pki_request *request, const struct cv_pki_files *files,
                              struct cv_why *why) {
  char ca_copy[CV_PKI_PATH];
  CV_TRY(cv_pki_join(ca_copy, folder, "ca", ".pem", why));
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
  if (err == CV_OK) {
    err = cv_pki_crl_copy(&ca, folder, why);
  }
  cv_pki_ca_close(&ca);
  return err;
}

static enum cv_err name_files(const char *folder, const struct cv_identity *identity, struct cv_pki_files *ret,
                              struct cv_why *why) {
  char stem[96];
  (void)snprintf(stem, sizeof(stem), "%s-%s", cv_role_text(identity->role), identity->name);
  CV_TRY(cv_pki_join(ret->cert, folder, stem, ".pem", why));
  return cv_pki_join(ret->key, folder, stem, ".key", why);
}

enum cv_err cv_pki_issue(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                         struct cv_pki_files *ret, struct cv_why *why) {
  struct cv_identity identity;
  struct cv_pki_files files;
  CV_TRY(cv_pki_identity(request->identity, &identity, why));
  CV_TRY(cv_pki_check_hosts(&identity, request->hosts_n, why));
  CV_TRY(name_files(folder, &identity, &files, why));
  bool made;
  CV_TRY(cv_pki_make_folder(folder, &made, why));
  enum cv_err err = issue_into(ca_folder, folder, &identity, request, &files, why);
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

/* --- renewing --- */

/* Finds the pair as issue names it, or as make does. */
static enum cv_err find_files(const char *folder, const struct cv_identity *identity, struct cv_pki_files *ret,
                              struct cv_why *why) {
  struct cv_pki_files issued, made;
  CV_TRY(name_files(folder, identity, &issued, why));
  CV_TRY(cv_pki_join(made.cert, folder, "cert", ".pem", why));
  CV_TRY(cv_pki_join(made.key, folder, "key", ".pem", why));
  if (access(issued.cert, F_OK) != 0 && access(made.cert, F_OK) != 0) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: No such file; expected the certificate to renew there, or as cert.pem",
                   issued.cert);
  }
  *ret = access(issued.cert, F_OK) == 0 ? issued : made;
  return CV_OK;
}

/* The old certificate's hosts and key stay, unless there are new ones. */
static enum cv_err renew_pair(struct cv_pki_ca *ca, const struct cv_identity *identity,
                              const struct cv_pki_request *request, const struct cv_pki_files *files, X509 *old,
                              bool *ret_is_new, struct cv_why *why) {
  struct cv_pki_hosts hosts;
  int64_t end_s;
  CV_TRY(cv_pki_ca_check_holder(ca, identity, files->cert, old, why));
  CV_TRY(cv_pki_index_check(&ca->index, identity, true, (int64_t)time(NULL), why));
  CV_TRY(cv_pki_hosts_of(old, &hosts, why));
  const bool keeps_hosts = request->hosts_n == 0;
  const struct cv_pki_wish wish = {.identity = identity,
                                   .hosts = keeps_hosts ? (const char *const *)hosts.host : request->hosts,
                                   .hosts_n = keeps_hosts ? hosts.n : request->hosts_n,
                                   .valid_s = request->valid_s,
                                   .key = request->new_key ? NULL : cv_pki_ca_key(ca, files)};
  *ret_is_new = wish.key == NULL;
  enum cv_err err = cv_pki_ca_issue(ca, &wish, files, &end_s, why);
  EVP_PKEY_free(wish.key);
  cv_pki_hosts_fini(&hosts);
  return err;
}

enum cv_err cv_pki_renew(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                         struct cv_pki_files *ret, bool *ret_is_new, struct cv_why *why) {
  struct cv_identity identity;
  struct cv_pki_files files;
  struct cv_pki_ca ca;
  X509 *old = NULL;
  CV_TRY(cv_pki_identity(request->identity, &identity, why));
  CV_TRY(find_files(folder, &identity, &files, why));
  CV_TRY(cv_pki_ca_open(ca_folder, &ca, why));
  enum cv_err err = cv_pki_read_cert(files.cert, &old, why);
  if (err == CV_OK && old == NULL) {
    err = cv_fail(why, CV_ERR_NOT_FOUND, "%s: No such file", files.cert);
  }
  if (err == CV_OK) {
    err = renew_pair(&ca, &identity, request, &files, old, ret_is_new, why);
  }
  if (err == CV_OK) {
    err = cv_pki_crl_copy(&ca, folder, why);
  }
  X509_free(old);
  cv_pki_ca_close(&ca);
  if (err == CV_OK) {
    *ret = files;
  }
  return err;
}
