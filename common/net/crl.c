/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/crl.h"

#include <errno.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"
#include "common/net/certificate.h"

#define FOREVER_S (INT64_MAX / 1000) /* fits milliseconds, too */

X509_CRL *cv_crl_read(FILE *file, bool *ret_damaged) {
  ERR_clear_error();
  X509_CRL *list = PEM_read_X509_CRL(file, NULL, NULL, NULL);
  /* The end of the file is reported as a missing start line. */
  *ret_damaged = list == NULL && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
  ERR_clear_error();
  return list;
}

bool cv_crl_is_of(X509_CRL *list, X509 *ca) {
  /* Two CAs may have the same name: the signature decides. */
  bool is = X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(ca)) == 0 &&
            X509_CRL_verify(list, X509_get0_pubkey(ca)) == 1;
  ERR_clear_error();
  return is;
}

int64_t cv_crl_end_s(const X509_CRL *list) {
  const ASN1_TIME *end = X509_CRL_get0_nextUpdate(list);
  return end == NULL ? 0 : cv_certificate_time_s(end);
}

/* --- reading --- */

static enum cv_err check_dates(X509_CRL *list, const char *path, int64_t now_s, struct cv_why *why) {
  int64_t from_s = cv_certificate_time_s(X509_CRL_get0_lastUpdate(list)), until_s = cv_crl_end_s(list);
  if (from_s > now_s) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the CRL is valid from %s; expected an earlier time (is a clock wrong?)",
                   path, cv_certificate_date(from_s).text);
  }
  if (until_s == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the CRL has no nextUpdate; expected one of crowdveil pki", path);
  }
  if (until_s <= now_s) {
    return cv_fail(why, CV_ERR_DENIED, "%s: the CRL expired on %s; expected the CA's current crl.pem", path,
                   cv_certificate_date(until_s).text);
  }
  return CV_OK;
}

/* A critical extension changes what a list means: it may be of some certificates only, or of several CAs. */
static enum cv_err check_list(X509_CRL *list, const char *path, const STACK_OF(X509) * cas, int64_t now_s,
                              struct cv_why *why) {
  bool is_known = false;
  for (int i = 0; i < sk_X509_num(cas) && !is_known; i++) {
    is_known = cv_crl_is_of(list, sk_X509_value(cas, i));
  }
  if (!is_known) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: a CRL is not signed by our CA; expected only those of the CAs that we trust", path);
  }
  if (X509_CRL_get_ext_by_critical(list, 1, -1) >= 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the CRL has a critical extension; expected a complete CRL of one CA",
                   path);
  }
  return check_dates(list, path, now_s, why);
}

static enum cv_err take(struct cv_crls *crls, X509_CRL *list, const char *path, struct cv_why *why) {
  struct cv_crl *crl = CV_ARRAY_PUSH(crls->crl, crls->count, crls->cap);
  if (crl == NULL) {
    X509_CRL_free(list);
    return cv_fail(why, CV_ERR_NOMEM, "%s: no memory", path);
  }
  *crl = (struct cv_crl){.list = list, .until_s = cv_crl_end_s(list)};
  return CV_OK;
}

static enum cv_err read_lists(FILE *file, const char *path, const STACK_OF(X509) * cas, int64_t now_s,
                              struct cv_crls *crls, struct cv_why *why) {
  bool is_damaged;
  for (X509_CRL *list; (list = cv_crl_read(file, &is_damaged)) != NULL;) {
    enum cv_err err = check_list(list, path, cas, now_s, why);
    if (err != CV_OK) {
      X509_CRL_free(list);
      return err;
    }
    CV_TRY(take(crls, list, path, why));
  }
  return is_damaged || crls->count == 0
             ? cv_fail(why, CV_ERR_FORMAT, "%s: CRL %zu is damaged or not in PEM form", path, crls->count + 1)
             : CV_OK;
}

/* Without the list of a CA none of its certificates could be accepted; with two it would be unclear which one holds. */
static enum cv_err check_cas(const struct cv_crls *crls, const char *path, const STACK_OF(X509) * cas,
                             struct cv_why *why) {
  for (int i = 0; i < sk_X509_num(cas); i++) {
    size_t lists = 0;
    for (size_t at = 0; at < crls->count; at++) {
      lists += cv_crl_is_of(crls->crl[at].list, sk_X509_value(cas, i));
    }
    if (lists != 1) {
      return cv_fail(why, CV_ERR_INVALID, "%s: %s; expected one of each CA that we trust", path,
                     lists == 0 ? "no CRL of one of our CAs" : "two CRLs of the same CA");
    }
  }
  return CV_OK;
}

enum cv_err cv_crls_load(const char *path, const STACK_OF(X509) * cas, int64_t now_s, struct cv_crls *ret,
                         struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  struct cv_crls crls = {0};
  enum cv_err err = read_lists(file, path, cas, now_s, &crls, why);
  (void)fclose(file);
  if (err == CV_OK) {
    err = check_cas(&crls, path, cas, why);
  }
  if (err != CV_OK) {
    cv_crls_fini(&crls);
    return err;
  }
  *ret = crls;
  return CV_OK;
}

void cv_crls_fini(struct cv_crls *crls) {
  for (size_t i = 0; i < crls->count; i++) {
    X509_CRL_free(crls->crl[i].list);
  }
  free(crls->crl);
  *crls = (struct cv_crls){0};
}

/* --- looking up --- */

enum cv_crl_verdict cv_crls_judge(const struct cv_crls *crls, const X509 *cert, int64_t now_s) {
  enum cv_crl_verdict verdict = crls->count == 0 ? CV_CRL_GOOD : CV_CRL_MISSING;
  for (size_t i = 0; i < crls->count; i++) {
    const struct cv_crl *crl = &crls->crl[i];
    X509_REVOKED *entry;
    if (X509_NAME_cmp(X509_CRL_get_issuer(crl->list), X509_get_issuer_name(cert)) != 0) {
      continue;
    }
    /* Also by an expired list, and by any of two CAs with the same name. */
    if (X509_CRL_get0_by_serial(crl->list, &entry, X509_get0_serialNumber(cert)) != 0) {
      return CV_CRL_REVOKED;
    }
    if (verdict != CV_CRL_EXPIRED) {
      verdict = crl->until_s <= now_s ? CV_CRL_EXPIRED : CV_CRL_GOOD;
    }
  }
  return verdict;
}

bool cv_crls_list(const struct cv_crls *crls, const char *serial) {
  BIGNUM *number = NULL;
  ASN1_INTEGER *own = BN_hex2bn(&number, serial) > 0 ? BN_to_ASN1_INTEGER(number, NULL) : NULL;
  bool is_listed = crls->count > 0 && own == NULL; /* what cannot be compared counts as revoked */
  for (size_t i = 0; i < crls->count && !is_listed; i++) {
    X509_REVOKED *entry;
    is_listed = X509_CRL_get0_by_serial(crls->crl[i].list, &entry, own) != 0;
  }
  ASN1_INTEGER_free(own);
  BN_free(number);
  return is_listed;
}

int64_t cv_crls_end_s(const struct cv_crls *crls) {
  int64_t end_s = FOREVER_S;
  for (size_t i = 0; i < crls->count; i++) {
    end_s = crls->crl[i].until_s < end_s ? crls->crl[i].until_s : end_s;
  }
  return end_s;
}

static bool has_entry(const struct cv_crls *crls, const X509_NAME *issuer, const X509_REVOKED *entry) {
  X509_REVOKED *found;
  for (size_t i = 0; i < crls->count; i++) {
    if (X509_NAME_cmp(X509_CRL_get_issuer(crls->crl[i].list), issuer) == 0 &&
        X509_CRL_get0_by_serial(crls->crl[i].list, &found, X509_REVOKED_get0_serialNumber(entry)) != 0) {
      return true;
    }
  }
  return false;
}

/* Whether the same key has signed them, by what they say of it: two CAs may have one name. */
static bool is_of_same_key(const X509_CRL *a, const X509_CRL *b) {
  AUTHORITY_KEYID *one = X509_CRL_get_ext_d2i(a, NID_authority_key_identifier, NULL, NULL);
  AUTHORITY_KEYID *two = X509_CRL_get_ext_d2i(b, NID_authority_key_identifier, NULL, NULL);
  bool is = one != NULL && two != NULL && one->keyid != NULL && two->keyid != NULL &&
            ASN1_OCTET_STRING_cmp(one->keyid, two->keyid) == 0;
  AUTHORITY_KEYID_free(one);
  AUTHORITY_KEYID_free(two);
  return is;
}

static bool is_older(const X509_CRL *list, const X509_CRL *before) {
  ASN1_INTEGER *number = X509_CRL_get_ext_d2i(list, NID_crl_number, NULL, NULL);
  ASN1_INTEGER *last = X509_CRL_get_ext_d2i(before, NID_crl_number, NULL, NULL);
  bool is = number != NULL && last != NULL
                ? ASN1_INTEGER_cmp(number, last) < 0
                : ASN1_TIME_compare(X509_CRL_get0_lastUpdate(list), X509_CRL_get0_lastUpdate(before)) == -1;
  ASN1_INTEGER_free(number);
  ASN1_INTEGER_free(last);
  return is;
}

enum cv_err cv_crls_follow(const struct cv_crls *crls, const struct cv_crls *before, const char *path,
                           struct cv_why *why) {
  for (size_t i = 0; i < crls->count * before->count; i++) {
    const X509_CRL *list = crls->crl[i / before->count].list, *last = before->crl[i % before->count].list;
    if (is_of_same_key(list, last) && is_older(list, last)) {
      return cv_fail(why, CV_ERR_STATE, "%s: an older CRL than the one in use; expected that one or a later one", path);
    }
  }
  return CV_OK;
}

size_t cv_crls_beyond(const struct cv_crls *crls, const struct cv_crls *other) {
  size_t beyond = 0;
  for (size_t i = 0; i < crls->count; i++) {
    const STACK_OF(X509_REVOKED) *entries = X509_CRL_get_REVOKED(crls->crl[i].list);
    for (int at = 0; at < sk_X509_REVOKED_num(entries); at++) {
      beyond += !has_entry(other, X509_CRL_get_issuer(crls->crl[i].list), sk_X509_REVOKED_value(entries, at));
    }
  }
  return beyond;
}
