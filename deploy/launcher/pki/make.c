/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/make.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/net/certificate.h"
#include "deploy/launcher/pki/ca.h"

struct paths {
  struct cv_pki_files files;
  char ca[CV_PKI_PATH];
};

static enum cv_err name_files(const struct cv_pki_party *party, struct paths *ret, struct cv_why *why) {
  CV_TRY(cv_pki_join(ret->ca, party->path, "ca", ".pem", why));
  CV_TRY(cv_pki_join(ret->files.cert, party->path, "cert", ".pem", why));
  return cv_pki_join(ret->files.key, party->path, "key", ".pem", why);
}

/* --- planning: what exists, and what has to be made --- */

/* Fails if the certificate is of another identity or was issued by another CA. */
static enum cv_err check_holder(const struct cv_pki_ca *ca, const struct cv_pki_party *party, const char *path,
                                X509 *cert, struct cv_why *why) {
  struct cv_identity found;
  enum cv_err err = cv_certificate_identity(cert, &found, why);
  if (err != CV_OK) {
    cv_why_prefix(why, "%s", path);
    return err;
  }
  if (found.role != party->identity.role || strcmp(found.name, party->identity.name) != 0) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: the certificate is of %s/%s; expected one of %s/%s, or no file", path,
                   cv_role_text(found.role), found.name, cv_role_text(party->identity.role), party->identity.name);
  }
  if (ca->pair.cert == NULL || X509_verify(cert, ca->pair.key) != 1) {
    return cv_fail(why, CV_ERR_EXISTS,
                   "%s: issued by another CA than that in %s; expected a certificate of that CA, or no file", path,
                   ca->folder);
  }
  return CV_OK;
}

static bool fits(const struct cv_pki_files *files) {
  struct cv_pki_pair pair;
  if (cv_pki_read_pair(files, &pair, NULL) != CV_OK) {
    return false;
  }
  cv_pki_pair_fini(&pair);
  return true;
}

/* *ret_good: the certificate is valid now and its key belongs to it. */
static enum cv_err judge(const struct cv_pki_ca *ca, const struct paths *paths, const struct cv_pki_party *party,
                         X509 *cert, bool *ret_good, int64_t *ret_until_s, struct cv_why *why) {
  CV_TRY(check_holder(ca, party, paths->files.cert, cert, why));
  *ret_until_s = cv_certificate_end_s(cert);
  *ret_good = *ret_until_s > (int64_t)time(NULL) && fits(&paths->files);
  return CV_OK;
}

static enum cv_err plan_one(const struct cv_pki_ca *ca, bool renew, struct cv_pki_party *party, struct cv_why *why) {
  struct paths paths;
  X509 *cert;
  CV_TRY(name_files(party, &paths, why));
  CV_TRY(cv_pki_read_cert(paths.files.cert, &cert, why));
  bool is_there = cert != NULL, is_good = false;
  enum cv_err err = is_there ? judge(ca, &paths, party, cert, &is_good, &party->until_s, why) : CV_OK;
  X509_free(cert);
  CV_TRY(err);
  if (access(paths.ca, F_OK) == 0 && (ca->pair.cert == NULL || !cv_pki_file_has(paths.ca, ca->pair.cert))) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: not the certificate of the CA in %s; expected that, or no file", paths.ca,
                   ca->folder);
  }
  party->planned = is_good && !renew ? CV_PKI_THERE : is_there ? CV_PKI_RENEWED : CV_PKI_MADE;
  return party->planned == CV_PKI_THERE
             ? CV_OK
             : cv_pki_index_check(&ca->index, ca->index_path, &party->identity, true, (int64_t)time(NULL), why);
}

static enum cv_err plan(const struct cv_pki_ca *ca, const struct cv_pki_make *make, struct cv_pki_party *party,
                        size_t parties, struct cv_why *why) {
  /* Nothing is written in this function: all conflicts must show before the first change. */
  if (ca->pair.cert != NULL && cv_certificate_end_s(ca->pair.cert) <= (int64_t)time(NULL)) {
    return cv_fail(why, CV_ERR_STATE, "%s: the CA has expired; expected a valid CA; make one in a new folder",
                   ca->files.cert);
  }
  if (ca->pair.cert == NULL && make->valid_s <= 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the new CA would already be expired; expected days above 0", ca->folder);
  }
  for (size_t i = 0; i < parties; i++) {
    CV_TRY(plan_one(ca, make->renew, &party[i], why));
  }
  return CV_OK;
}

/* --- making --- */

/* Lists the certificate before it can be used: after an interruption no usable certificate is missing in the index. */
static enum cv_err replace_pair(struct cv_pki_ca *ca, const struct paths *paths, const struct cv_pki_party *party,
                                const struct cv_pki_pair *pair, int64_t not_after, struct cv_why *why) {
  enum cv_err err = cv_pki_stage_pair(&paths->files, pair, why);
  if (err == CV_OK) {
    err = cv_pki_ca_list(ca, pair->cert, &party->identity, not_after, why);
  }
  if (err == CV_OK) {
    err = cv_pki_adopt_pair(&paths->files, why);
  }
  if (err != CV_OK) {
    cv_pki_drop_pair(&paths->files);
  }
  return err;
}

static enum cv_err issue(struct cv_pki_ca *ca, const struct paths *paths, struct cv_pki_party *party, int64_t valid_s,
                         struct cv_why *why) {
  int64_t now = (int64_t)time(NULL), ca_end = cv_certificate_end_s(ca->pair.cert);
  int64_t not_after = now + valid_s < ca_end ? now + valid_s : ca_end;
  struct cv_pki_pair pair;
  CV_TRY(cv_pki_ca_sign(ca, &party->identity, party->host, party->hosts, now, not_after, &pair, why));
  enum cv_err err = replace_pair(ca, paths, party, &pair, not_after, why);
  cv_pki_pair_fini(&pair);
  party->until_s = err == CV_OK ? not_after : party->until_s;
  return err;
}

/* Writes ca.pem last: a folder with ca.pem is complete. */
static enum cv_err fill(struct cv_pki_ca *ca, struct cv_pki_party *party, int64_t valid_s, struct cv_why *why) {
  struct paths paths;
  CV_TRY(name_files(party, &paths, why));
  if (party->planned == CV_PKI_THERE) {
    cv_pki_drop_pair(&paths.files); /* staged files of an interrupted run */
  } else {
    CV_TRY(issue(ca, &paths, party, valid_s, why));
  }
  return access(paths.ca, F_OK) == 0 ? CV_OK : cv_pki_replace_cert(paths.ca, ca->pair.cert, why);
}

static enum cv_err carry_out(struct cv_pki_ca *ca, const struct cv_pki_make *make, struct cv_pki_party *party,
                             size_t parties, struct cv_why *why) {
  if (ca->pair.cert == NULL) {
    CV_TRY(cv_pki_ca_make(ca, make->ca_name, make->valid_s, why));
  }
  for (size_t i = 0; i < parties; i++) {
    bool is_new;
    /* A failure leaves the earlier parties complete; the next call continues with this one. */
    CV_TRY(cv_pki_make_folder(party[i].path, &is_new, why));
    enum cv_err err = fill(ca, &party[i], make->valid_s, why);
    if (err != CV_OK) {
      if (is_new) {
        (void)rmdir(party[i].path);
      }
      return err;
    }
    party[i].done = party[i].planned;
  }
  return CV_OK;
}

enum cv_err cv_pki_make(const struct cv_pki_make *make, struct cv_pki_party *party, size_t parties,
                        struct cv_why *why) {
  struct cv_pki_ca ca;
  CV_TRY(cv_pki_ca_open_place(make->ca_folder, &ca, why));
  enum cv_err err = plan(&ca, make, party, parties, why);
  if (err == CV_OK) {
    err = carry_out(&ca, make, party, parties, why);
  }
  cv_pki_ca_close(&ca);
  return err;
}
