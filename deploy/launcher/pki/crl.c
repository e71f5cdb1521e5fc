/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/crl.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "common/net/certificate.h"
#include "common/net/crl.h"
#include "common/net/sslerr.h"

/* A new list is signed when less than half of its 90 days are left. The margin: not for each certificate of a day. */
enum { DAY_S = 86400, VALID_S = CV_PKI_LEAF_DAYS * DAY_S, LEAST_S = VALID_S / 2, MARGIN_S = DAY_S };

/* --- reading --- */

/* The list of this CA in a file; NULL if there is none. The caller frees it. */
static X509_CRL *read_own(const char *path, X509 *ca) {
  FILE *file = fopen(path, "re");
  X509_CRL *list = NULL;
  bool is_damaged;
  while (file != NULL && (list = cv_crl_read(file, &is_damaged)) != NULL && !cv_crl_is_of(list, ca)) {
    X509_CRL_free(list);
  }
  if (file != NULL) {
    (void)fclose(file);
  }
  return list;
}

static ASN1_INTEGER *serial_of(const struct cv_pki_entry *entry) {
  BIGNUM *number = NULL;
  ASN1_INTEGER *serial = BN_hex2bn(&number, entry->serial.hex) != 0 ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
  BN_free(number);
  return serial;
}

/* --- signing --- */

/* When the list must be valid at least: until the last certificate ends, but never longer than the CA. */
static int64_t needed_until(const struct cv_pki_ca *ca, int64_t now) {
  int64_t until = now + LEAST_S, ca_end = cv_certificate_end_s(ca->pair.cert);
  for (size_t i = 0; i < ca->index.count; i++) {
    until = ca->index.entry[i].not_after > until ? ca->index.entry[i].not_after : until;
  }
  return until < ca_end ? until : ca_end;
}

static int64_t planned_until(const struct cv_pki_ca *ca, int64_t now) {
  int64_t until = needed_until(ca, now), ca_end = cv_certificate_end_s(ca->pair.cert);
  until = until < now + VALID_S ? now + VALID_S : until;
  until += MARGIN_S;
  return until < ca_end ? until : ca_end;
}

static bool add_entry(X509_CRL *list, const struct cv_pki_entry *entry) {
  X509_REVOKED *revoked = X509_REVOKED_new();
  ASN1_TIME *at = ASN1_TIME_set(NULL, (time_t)entry->revoked);
  ASN1_INTEGER *serial = serial_of(entry);
  bool ok = revoked != NULL && at != NULL && serial != NULL && X509_REVOKED_set_serialNumber(revoked, serial) &&
            X509_REVOKED_set_revocationDate(revoked, at) && X509_CRL_add0_revoked(list, revoked);
  ASN1_TIME_free(at);
  ASN1_INTEGER_free(serial);
  if (!ok) {
    X509_REVOKED_free(revoked);
  }
  return ok;
}

/* Numbers grow also when the clock goes back, or when two lists are signed in one second. */
static bool set_number(X509_CRL *list, const X509_CRL *before, int64_t now) {
  ASN1_INTEGER *last = before == NULL ? NULL : X509_CRL_get_ext_d2i(before, NID_crl_number, NULL, NULL);
  ASN1_INTEGER *number = ASN1_INTEGER_new();
  int64_t value = 0;
  if (last == NULL || !ASN1_INTEGER_get_int64(&value, last) || value < now) {
    value = now - 1;
  }
  bool ok = number != NULL && ASN1_INTEGER_set_int64(number, value + 1) &&
            X509_CRL_add1_ext_i2d(list, NID_crl_number, number, 0, 0) == 1;
  ASN1_INTEGER_free(number);
  ASN1_INTEGER_free(last);
  return ok;
}

static bool set_issuer(X509_CRL *list, X509 *ca) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, ca, NULL, NULL, list, 0);
  X509_EXTENSION *key = X509V3_EXT_conf_nid(NULL, &context, NID_authority_key_identifier, "keyid:always");
  bool ok = key != NULL && X509_CRL_add_ext(list, key, -1) && X509_CRL_set_issuer_name(list, X509_get_subject_name(ca));
  X509_EXTENSION_free(key);
  return ok;
}

static bool set_dates(X509_CRL *list, int64_t from, int64_t until) {
  ASN1_TIME *last = ASN1_TIME_set(NULL, (time_t)from), *next = ASN1_TIME_set(NULL, (time_t)until);
  bool ok =
      last != NULL && next != NULL && X509_CRL_set1_lastUpdate(list, last) && X509_CRL_set1_nextUpdate(list, next);
  ASN1_TIME_free(last);
  ASN1_TIME_free(next);
  return ok;
}

static X509_CRL *sign(const struct cv_pki_ca *ca, const X509_CRL *before, int64_t now) {
  X509_CRL *list = X509_CRL_new();
  bool ok = list != NULL && X509_CRL_set_version(list, X509_CRL_VERSION_2) &&
            set_dates(list, now - CV_PKI_SKEW_S, planned_until(ca, now)) && set_issuer(list, ca->pair.cert) &&
            set_number(list, before, now);
  for (size_t i = 0; ok && i < ca->index.count; i++) {
    ok = ca->index.entry[i].revoked == 0 || add_entry(list, &ca->index.entry[i]);
  }
  ok = ok && X509_CRL_sort(list) && X509_CRL_sign(list, ca->pair.key, EVP_sha256()) != 0;
  if (!ok) {
    X509_CRL_free(list);
    list = NULL;
  }
  return list;
}

/* --- the CA's own file --- */

static bool lists(X509_CRL *list, const struct cv_pki_entry *entry) {
  X509_REVOKED *found = NULL;
  ASN1_INTEGER *serial = serial_of(entry);
  bool is = serial != NULL && X509_CRL_get0_by_serial(list, &found, serial) != 0;
  ASN1_INTEGER_free(serial);
  return is;
}

/* Whether every certificate of the list is revoked in the index; *ret gets the first one that is not. */
static bool is_kept(X509_CRL *list, const struct cv_pki_index *index, struct cv_serial *ret) {
  const STACK_OF(X509_REVOKED) *listed = X509_CRL_get_REVOKED(list);
  int kept = 0;
  for (size_t i = 0; i < index->count; i++) {
    kept += index->entry[i].revoked != 0 && lists(list, &index->entry[i]);
  }
  for (int i = 0; kept < sk_X509_REVOKED_num(listed) && i < sk_X509_REVOKED_num(listed); i++) {
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(listed, i)), NULL);
    char *hex = number == NULL ? NULL : BN_bn2hex(number);
    bool is_read = hex != NULL && cv_serial_parse(hex, ret);
    const struct cv_pki_entry *entry = is_read ? cv_pki_index_find(index, ret) : NULL;
    OPENSSL_free(hex);
    BN_free(number);
    if (entry == NULL || entry->revoked == 0) {
      return false;
    }
  }
  return true;
}

static enum cv_err check_list(const struct cv_pki_ca *ca, X509_CRL *list, const char *path, struct cv_why *why) {
  struct cv_serial serial = {.hex = ""};
  if (is_kept(list, &ca->index, &serial)) {
    return CV_OK;
  }
  bool is_known = cv_pki_index_find(&ca->index, &serial) != NULL;
  return cv_fail(why, CV_ERR_STATE,
                 "%.150s has certificate %s as revoked, %.150s has not: an older index; expected the one of this list "
                 "or a later one put back, or else %s",
                 path, serial.hex, ca->index_path,
                 is_known ? "crowdveil pki revoke of this number" : "a new CA in another folder");
}

enum cv_err cv_pki_crl_check(const struct cv_pki_ca *ca, const char *path, struct cv_why *why) {
  X509_CRL *list = read_own(path, ca->pair.cert);
  enum cv_err err = list == NULL ? CV_OK : check_list(ca, list, path, why);
  X509_CRL_free(list);
  return err;
}

static bool is_current(X509_CRL *list, const struct cv_pki_ca *ca, int64_t now) {
  int revoked = 0;
  for (size_t i = 0; i < ca->index.count; i++) {
    if (ca->index.entry[i].revoked != 0) {
      revoked++;
      if (!lists(list, &ca->index.entry[i])) {
        return false;
      }
    }
  }
  int listed = sk_X509_REVOKED_num(X509_CRL_get_REVOKED(list));
  return revoked == (listed < 0 ? 0 : listed) && cv_crl_end_s(list) >= needed_until(ca, now);
}

static enum cv_err replace(struct cv_pki_ca *ca, const X509_CRL *before, int64_t now, struct cv_why *why) {
  ERR_clear_error();
  X509_CRL *list = sign(ca, before, now);
  if (list == NULL) {
    return cv_ssl_fail(why, "%s: cannot sign the list", ca->crl_path);
  }
  FILE *file;
  enum cv_err err = cv_pki_file_stage(ca->crl_path, 0644, &file, why);
  if (err == CV_OK) {
    err = cv_pki_file_adopt(file, PEM_write_X509_CRL(file, list) == 1, ca->crl_path, why);
  }
  X509_CRL_free(list);
  return err;
}

enum cv_err cv_pki_crl_refresh(struct cv_pki_ca *ca, int64_t now, struct cv_why *why) {
  X509_CRL *before = read_own(ca->crl_path, ca->pair.cert);
  enum cv_err err = before == NULL ? CV_OK : check_list(ca, before, ca->crl_path, why);
  if (err == CV_OK && (before == NULL || !is_current(before, ca, now))) {
    err = replace(ca, before, now, why);
  }
  X509_CRL_free(before);
  return err;
}

/* --- a party's copy --- */

struct copy {
  STACK_OF(X509_CRL) * list; /* of the other CAs */
  bool is_same;              /* the file has the current list, and none that the party does not need */
};

/* True if one of the certificates in the party's ca.pem has signed the list. */
static bool is_trusted(X509_CRL *list, const char *ca_path) {
  FILE *file = fopen(ca_path, "re");
  X509 *ca = NULL;
  bool is = false;
  while (file != NULL && !is && (ca = PEM_read_X509(file, NULL, NULL, NULL)) != NULL) {
    is = cv_crl_is_of(list, ca);
    X509_free(ca);
  }
  ERR_clear_error();
  if (file != NULL) {
    (void)fclose(file);
  }
  return is;
}

/* Takes over the lists of the other CAs that the party trusts. What is not a list is dropped. */
static enum cv_err read_copy(const char *path, const char *ca_path, X509_CRL *ours, X509 *ca, struct copy *copy,
                             struct cv_why *why) {
  FILE *file = fopen(path, "re");
  bool is_damaged = false, is_current = false;
  unsigned ours_n = 0, dropped = 0;
  if (file == NULL) {
    return errno == ENOENT ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  for (X509_CRL *list; (list = cv_crl_read(file, &is_damaged)) != NULL;) {
    if (cv_crl_is_of(list, ca)) {
      ours_n++;
      is_current = X509_CRL_match(list, ours) == 0;
      X509_CRL_free(list);
    } else if (!is_trusted(list, ca_path) || !sk_X509_CRL_push(copy->list, list)) {
      dropped++;
      X509_CRL_free(list);
    }
  }
  (void)fclose(file);
  copy->is_same = ours_n == 1 && is_current && dropped == 0 && !is_damaged;
  return CV_OK;
}

static enum cv_err write_copy(const char *path, X509_CRL *ours, const struct copy *copy, struct cv_why *why) {
  FILE *file;
  CV_TRY(cv_pki_file_stage(path, 0644, &file, why));
  bool ok = PEM_write_X509_CRL(file, ours) == 1;
  for (int i = 0; ok && i < sk_X509_CRL_num(copy->list); i++) {
    ok = PEM_write_X509_CRL(file, sk_X509_CRL_value(copy->list, i)) == 1;
  }
  return cv_pki_file_adopt(file, ok, path, why);
}

enum cv_err cv_pki_crl_copy(const struct cv_pki_ca *ca, const char *folder, struct cv_why *why) {
  char path[CV_PKI_PATH], ca_path[CV_PKI_PATH];
  CV_TRY(cv_pki_join(path, folder, "crl", ".pem", why));
  CV_TRY(cv_pki_join(ca_path, folder, "ca", ".pem", why));
  CV_TRY(cv_pki_crl_check(ca, path, why));
  X509_CRL *ours = read_own(ca->crl_path, ca->pair.cert);
  struct copy copy = {.list = sk_X509_CRL_new_null()};
  enum cv_err err = ours == NULL || copy.list == NULL ? cv_fail(why, CV_ERR_IO, "%s: cannot be read", ca->crl_path)
                                                      : read_copy(path, ca_path, ours, ca->pair.cert, &copy, why);
  if (err == CV_OK && !copy.is_same) {
    err = write_copy(path, ours, &copy, why);
  }
  sk_X509_CRL_pop_free(copy.list, X509_CRL_free);
  X509_CRL_free(ours);
  return err;
}
