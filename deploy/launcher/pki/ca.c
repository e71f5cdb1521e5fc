/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/ca.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/net/certificate.h"
#include "deploy/launcher/pki/crl.h"
#include "deploy/launcher/pki/party.h"

static enum cv_err name_files(const char *folder, struct cv_pki_ca *ca, struct cv_why *why) {
  CV_TRY(cv_pki_join(ca->index_path, folder, "index", ".tsv", why));
  CV_TRY(cv_pki_join(ca->crl_path, folder, "crl", ".pem", why));
  CV_TRY(cv_pki_join(ca->files.cert, folder, "ca", ".pem", why));
  (void)snprintf(ca->folder, sizeof(ca->folder), "%s", folder);
  return cv_pki_join(ca->files.key, folder, "ca", ".key", why);
}

enum cv_err cv_pki_ca_check(const struct cv_pki_ca *ca, struct cv_why *why) {
  return cv_certificate_end_s(ca->pair.cert) > (int64_t)time(NULL)
             ? CV_OK
             : cv_fail(why, CV_ERR_STATE, "%s: the CA has expired; expected a valid CA; make one in a new folder",
                       ca->files.cert);
}

enum cv_err cv_pki_ca_open(const char *folder, struct cv_pki_ca *ret, struct cv_why *why) {
  struct cv_pki_ca ca = {0};
  CV_TRY(name_files(folder, &ca, why));
  CV_TRY(cv_pki_read_pair(&ca.files, &ca.pair, why));
  enum cv_err err = cv_pki_ca_check(&ca, why);
  if (err == CV_OK) {
    err = cv_pki_index_open(ca.index_path, false, &ca.index, why);
  }
  if (err != CV_OK) {
    cv_pki_pair_fini(&ca.pair);
    return err;
  }
  *ret = ca;
  return CV_OK;
}

/* Makes the index before key and certificate, so that a process that finds one of these also finds the index. */
static enum cv_err open_index(struct cv_pki_ca *ca, struct cv_why *why) {
  bool has_file = access(ca->files.cert, F_OK) == 0 || access(ca->files.key, F_OK) == 0;
  if (access(ca->index_path, F_OK) != 0) {
    if (has_file) {
      return cv_fail(why, CV_ERR_EXISTS,
                     "%s: the CA has no index.tsv; expected ca.pem, ca.key and index.tsv, or none of them", ca->folder);
    }
    enum cv_err err = cv_pki_index_open(ca->index_path, true, &ca->index, why);
    ca->is_new_index = err == CV_OK;
    if (err != CV_ERR_EXISTS) {
      return err;
    }
  }
  return cv_pki_index_open(ca->index_path, false, &ca->index, why);
}

static enum cv_err read_if_there(struct cv_pki_ca *ca, struct cv_why *why) {
  if (access(ca->files.cert, F_OK) == 0) {
    return cv_pki_read_pair(&ca->files, &ca->pair, why);
  }
  return ca->index.count == 0
             ? CV_OK
             : cv_fail(why, CV_ERR_DAMAGED, "%s: missing, but %s lists issued certificates; expected both files",
                       ca->files.cert, ca->index_path);
}

enum cv_err cv_pki_ca_open_place(const char *folder, struct cv_pki_ca *ret, struct cv_why *why) {
  struct cv_pki_ca ca = {0};
  CV_TRY(name_files(folder, &ca, why));
  CV_TRY(cv_pki_make_folder(folder, &ca.is_new_folder, why));
  enum cv_err err = open_index(&ca, why);
  if (err != CV_OK) {
    if (ca.is_new_folder) {
      (void)rmdir(folder);
    }
    return err;
  }
  err = read_if_there(&ca, why);
  if (err != CV_OK) {
    cv_pki_ca_close(&ca);
    return err;
  }
  *ret = ca;
  return CV_OK;
}

enum cv_err cv_pki_ca_make(struct cv_pki_ca *ca, const char *name, int64_t valid_s, struct cv_why *why) {
  int64_t now = (int64_t)time(NULL);
  struct cv_pki_plan plan = {.name = name, .now = now, .not_after = now + valid_s};
  struct cv_pki_pair pair;
  CV_TRY(cv_pki_pair_make(&plan, NULL, &pair, why));
  /* Staged and renamed, so that an interruption never leaves half a CA under its final names. */
  enum cv_err err = cv_pki_stage_pair(&ca->files, &pair, why);
  if (err == CV_OK) {
    err = cv_pki_adopt_pair(&ca->files, why);
  }
  if (err != CV_OK) {
    cv_pki_drop_pair(&ca->files);
    cv_pki_pair_fini(&pair);
    return err;
  }
  ca->pair = pair;
  return cv_pki_crl_refresh(ca, now, why);
}

void cv_pki_ca_close(struct cv_pki_ca *ca) {
  bool is_empty = ca->pair.cert == NULL && ca->is_new_index && access(ca->files.cert, F_OK) != 0 &&
                  access(ca->files.key, F_OK) != 0;
  if (is_empty) {
    (void)unlink(ca->index_path);
  }
  cv_pki_index_close(&ca->index);
  if (is_empty && ca->is_new_folder) {
    (void)rmdir(ca->folder);
  }
  cv_pki_pair_fini(&ca->pair);
}

/* --- issuing --- */

enum cv_err cv_pki_ca_check_holder(const struct cv_pki_ca *ca, const struct cv_identity *identity, const char *path,
                                   X509 *cert, struct cv_why *why) {
  struct cv_identity found;
  enum cv_err err = cv_certificate_identity(cert, &found, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", path);
    return err;
  }
  if (found.role != identity->role || strcmp(found.name, identity->name) != 0) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: the certificate is of %s/%s; expected one of %s/%s, or no file", path,
                   cv_role_text(found.role), found.name, cv_role_text(identity->role), identity->name);
  }
  if (ca->pair.cert == NULL || X509_verify(cert, ca->pair.key) != 1) {
    return cv_fail(why, CV_ERR_EXISTS,
                   "%s: issued by another CA than that in %s; expected a certificate of that CA, or no file", path,
                   ca->folder);
  }
  return CV_OK;
}

const struct cv_pki_entry *cv_pki_ca_find(const struct cv_pki_ca *ca, const X509 *cert) {
  struct cv_serial serial;
  return cv_serial_of(cert, &serial) ? cv_pki_index_find(&ca->index, &serial) : NULL;
}

EVP_PKEY *cv_pki_ca_key(const struct cv_pki_ca *ca, const struct cv_pki_files *files) {
  struct cv_pki_pair pair;
  if (cv_pki_read_pair(files, &pair, NULL) != CV_OK) {
    return NULL;
  }
  const struct cv_pki_entry *entry = cv_pki_ca_find(ca, pair.cert);
  EVP_PKEY *key = pair.key;
  if (entry == NULL || entry->revoked == 0) {
    pair.key = NULL;
  } else {
    key = NULL;
  }
  cv_pki_pair_fini(&pair);
  return key;
}

static enum cv_err sign(const struct cv_pki_ca *ca, const struct cv_pki_wish *wish, int64_t now, int64_t not_after,
                        struct cv_pki_pair *ret, struct cv_why *why) {
  const struct cv_identity *identity = wish->identity;
  char names[CV_PKI_ALT_NAMES_BYTES];
  char shown[96];
  CV_TRY(cv_pki_check_hosts(identity, wish->hosts_n, why));
  CV_TRY(cv_pki_alt_names(identity, wish->hosts, wish->hosts_n, names, why));
  (void)snprintf(shown, sizeof(shown), "%s-%s", cv_role_text(identity->role), identity->name);
  shown[64] = '\0'; /* longest permitted common name; the alternative name has the whole identity */
  const struct cv_pki_plan plan = {
      .name = shown, .alt_names = names, .now = now, .not_after = not_after, .key = wish->key};
  return cv_pki_pair_make(&plan, &ca->pair, ret, why);
}

static enum cv_err list(struct cv_pki_ca *ca, const X509 *cert, const struct cv_identity *identity, int64_t now,
                        int64_t not_after, struct cv_why *why) {
  struct cv_pki_entry entry = {.identity = *identity, .not_after = not_after, .made = now};
  if (!cv_serial_of(cert, &entry.serial)) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  CV_TRY(cv_pki_index_add(&ca->index, &entry, why));
  return cv_pki_index_save(&ca->index, ca->index_path, why);
}

enum cv_err cv_pki_ca_issue(struct cv_pki_ca *ca, const struct cv_pki_wish *wish, const struct cv_pki_files *files,
                            int64_t *ret_end_s, struct cv_why *why) {
  int64_t now = (int64_t)time(NULL), ca_end = cv_certificate_end_s(ca->pair.cert);
  int64_t not_after = now + wish->valid_s < ca_end ? now + wish->valid_s : ca_end;
  struct cv_pki_pair pair;
  CV_TRY(cv_pki_crl_check(ca, ca->crl_path, why)); /* an older index does not know whom it has certified either */
  CV_TRY(sign(ca, wish, now, not_after, &pair, why));
  enum cv_err err = cv_pki_stage_pair(files, &pair, why);
  if (err == CV_OK) {
    err = list(ca, pair.cert, wish->identity, now, not_after, why);
  }
  if (err == CV_OK) {
    err = cv_pki_adopt_pair(files, why);
  }
  cv_pki_pair_fini(&pair);
  if (err != CV_OK) {
    cv_pki_drop_pair(files);
    return err;
  }
  *ret_end_s = not_after;
  return cv_pki_crl_refresh(ca, now, why);
}
