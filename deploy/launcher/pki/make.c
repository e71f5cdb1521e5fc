/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/make.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/net/certificate.h"
#include "deploy/launcher/pki/ca.h"
#include "deploy/launcher/pki/crl.h"

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

static bool fits(const struct cv_pki_files *files) {
  struct cv_pki_pair pair;
  if (cv_pki_read_pair(files, &pair, NULL) != CV_OK) {
    return false;
  }
  cv_pki_pair_fini(&pair);
  return true;
}

/*
 * True if an interrupted run has listed a certificate that it did not put in place: the staged certificate is good and
 * fits the staged key, or the key that has been put in place already.
 */
static bool can_finish(const struct cv_pki_ca *ca, const struct paths *paths, const struct cv_pki_party *party,
                       int64_t now) {
  struct cv_pki_files beside;
  X509 *cert;
  if (cv_pki_staged_pair(&paths->files, &beside, NULL) != CV_OK ||
      cv_pki_read_cert(beside.cert, &cert, NULL) != CV_OK) {
    return false;
  }
  const struct cv_pki_entry *entry = cert == NULL ? NULL : cv_pki_ca_find(ca, cert);
  bool can = entry != NULL && entry->revoked == 0 && entry->not_after > now &&
             cv_pki_ca_check_holder(ca, &party->identity, beside.cert, cert, NULL) == CV_OK;
  X509_free(cert);
  if (access(beside.key, F_OK) != 0) {
    (void)snprintf(beside.key, sizeof(beside.key), "%s", paths->files.key);
  }
  return can && fits(&beside);
}

struct state {
  bool is_there, is_expired, is_revoked, is_whole; /* the certificate; the last: its key belongs to it */
};

static enum cv_err look(const struct cv_pki_ca *ca, const struct paths *paths, struct cv_pki_party *party, int64_t now,
                        struct state *ret, struct cv_why *why) {
  X509 *cert;
  CV_TRY(cv_pki_read_cert(paths->files.cert, &cert, why));
  *ret = (struct state){.is_there = cert != NULL};
  if (cert == NULL) {
    return CV_OK;
  }
  enum cv_err err = cv_pki_ca_check_holder(ca, &party->identity, paths->files.cert, cert, why);
  if (err == CV_OK) {
    const struct cv_pki_entry *entry = cv_pki_ca_find(ca, cert);
    party->until_s = cv_certificate_end_s(cert);
    ret->is_expired = party->until_s <= now;
    ret->is_revoked = entry != NULL && entry->revoked != 0;
    ret->is_whole = fits(&paths->files);
  }
  X509_free(cert);
  return err;
}

static enum cv_pki_done choose(const struct state *state, bool renew, bool finish) {
  if (renew || finish) {
    return state->is_there ? CV_PKI_RENEWED : CV_PKI_MADE;
  }
  return !state->is_there    ? CV_PKI_MADE
         : state->is_expired ? CV_PKI_RENEWED
         : state->is_revoked ? CV_PKI_REVOKED
         : state->is_whole   ? CV_PKI_THERE
                             : CV_PKI_RENEWED;
}

static enum cv_err plan_one(const struct cv_pki_ca *ca, bool renew, struct cv_pki_party *party, struct cv_why *why) {
  struct paths paths;
  struct state state;
  int64_t now = (int64_t)time(NULL);
  CV_TRY(name_files(party, &paths, why));
  CV_TRY(look(ca, &paths, party, now, &state, why));
  if (access(paths.ca, F_OK) == 0 && (ca->pair.cert == NULL || !cv_pki_file_has(paths.ca, ca->pair.cert))) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: not the certificate of the CA in %s; expected that, or no file", paths.ca,
                   ca->folder);
  }
  party->finish = !renew && can_finish(ca, &paths, party, now);
  party->planned = choose(&state, renew, party->finish);
  if (party->finish || party->planned == CV_PKI_THERE || party->planned == CV_PKI_REVOKED) {
    return CV_OK;
  }
  /* A pair that does not fit is of no use to anybody: it may be replaced like an expired one. */
  return cv_pki_index_check(&ca->index, &party->identity, renew || (state.is_there && !state.is_expired), now, why);
}

static enum cv_err plan(const struct cv_pki_ca *ca, const struct cv_pki_make *make, struct cv_pki_party *party,
                        size_t parties, struct cv_why *why) {
  /* Nothing is written in this function: all conflicts must show before the first change. */
  if (ca->pair.cert != NULL) {
    CV_TRY(cv_pki_ca_check(ca, why));
  } else if (make->ca_valid_s <= 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the new CA would already be expired; expected days above 0", ca->folder);
  }
  for (size_t i = 0; i < parties; i++) {
    CV_TRY(plan_one(ca, make->renew, &party[i], why));
  }
  return CV_OK;
}

/* --- making --- */

static enum cv_err renew_pair(struct cv_pki_ca *ca, const struct paths *paths, struct cv_pki_party *party,
                              const struct cv_pki_make *make, struct cv_why *why) {
  if (party->finish) {
    return cv_pki_adopt_pair(&paths->files, why);
  }
  const struct cv_pki_wish wish = {.identity = &party->identity,
                                   .hosts = party->host,
                                   .hosts_n = party->hosts,
                                   .valid_s = make->valid_s,
                                   .key = make->new_key ? NULL : cv_pki_ca_key(ca, &paths->files)};
  party->is_new_key = wish.key == NULL;
  enum cv_err err = cv_pki_ca_issue(ca, &wish, &paths->files, &party->until_s, why);
  EVP_PKEY_free(wish.key);
  return err;
}

/* Writes ca.pem last: a folder with ca.pem is complete. */
static enum cv_err fill(struct cv_pki_ca *ca, struct cv_pki_party *party, const struct cv_pki_make *make,
                        struct cv_why *why) {
  struct paths paths;
  CV_TRY(name_files(party, &paths, why));
  if (party->planned == CV_PKI_THERE || party->planned == CV_PKI_REVOKED) {
    cv_pki_drop_pair(&paths.files); /* staged files of a run that was interrupted before it listed them */
  } else {
    CV_TRY(renew_pair(ca, &paths, party, make, why));
  }
  CV_TRY(cv_pki_crl_copy(ca, party->path, why));
  return access(paths.ca, F_OK) == 0 ? CV_OK : cv_pki_replace_cert(paths.ca, ca->pair.cert, why);
}

static enum cv_err carry_out(struct cv_pki_ca *ca, const struct cv_pki_make *make, struct cv_pki_party *party,
                             size_t parties, struct cv_why *why) {
  if (ca->pair.cert == NULL) {
    CV_TRY(cv_pki_ca_make(ca, make->ca_name, make->ca_valid_s, why));
  }
  CV_TRY(cv_pki_crl_refresh(ca, (int64_t)time(NULL), why));
  for (size_t i = 0; i < parties; i++) {
    bool is_new;
    /* A failure leaves the earlier parties complete; the next call continues with this one. */
    CV_TRY(cv_pki_make_folder(party[i].path, &is_new, why));
    enum cv_err err = fill(ca, &party[i], make, why);
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
