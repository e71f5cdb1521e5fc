/* SPDX-License-Identifier: Apache-2.0 */
/* Writes lists of revoked certificates as crowdveil pki would not: expired, endless, critical. After cmocka.h. */
#ifndef CV_TESTS_NET_LISTS_H
#define CV_TESTS_NET_LISTS_H

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

struct list_plan {
  const char *ca;             /* folder of the CA */
  int64_t from_s, until_s;    /* from now; until_s 0: without an end */
  const X509 *const *revoked; /* certificates */
  size_t revoked_n;
  bool critical; /* with a critical extension */
};

static inline X509 *list_cert(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
  (void)fclose(file);
  assert_non_null(cert);
  return cert;
}

static inline void list_add(X509_CRL *list, const X509 *cert, ASN1_TIME *at) {
  X509_REVOKED *entry = X509_REVOKED_new();
  ASN1_INTEGER *serial = ASN1_INTEGER_dup(X509_get0_serialNumber(cert));
  assert_true(X509_REVOKED_set_serialNumber(entry, serial));
  assert_true(X509_REVOKED_set_revocationDate(entry, at));
  assert_true(X509_CRL_add0_revoked(list, entry));
  ASN1_INTEGER_free(serial);
}

static inline X509_CRL *list_make(const struct list_plan *plan) {
  char path[160];
  (void)snprintf(path, sizeof(path), "%s/ca.pem", plan->ca);
  X509 *ca = list_cert(path);
  (void)snprintf(path, sizeof(path), "%s/ca.key", plan->ca);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  EVP_PKEY *key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
  (void)fclose(file);
  ASN1_TIME *from = ASN1_TIME_set(NULL, time(NULL) + plan->from_s);
  ASN1_TIME *until = ASN1_TIME_set(NULL, time(NULL) + plan->until_s);
  X509_CRL *list = X509_CRL_new();
  assert_true(X509_CRL_set_version(list, X509_CRL_VERSION_2));
  assert_true(X509_CRL_set_issuer_name(list, X509_get_subject_name(ca)));
  assert_true(X509_CRL_set1_lastUpdate(list, from));
  assert_true(plan->until_s == 0 || X509_CRL_set1_nextUpdate(list, until));
  for (size_t i = 0; i < plan->revoked_n; i++) {
    list_add(list, plan->revoked[i], from);
  }
  if (plan->critical) {
    X509_EXTENSION *extension =
        X509V3_EXT_conf_nid(NULL, NULL, NID_issuing_distribution_point, "critical,onlyuser:TRUE");
    assert_non_null(extension);
    assert_true(X509_CRL_add_ext(list, extension, -1));
    X509_EXTENSION_free(extension);
  }
  assert_true(X509_CRL_sort(list));
  assert_true(X509_CRL_sign(list, key, EVP_sha256()) > 0);
  ASN1_TIME_free(from);
  ASN1_TIME_free(until);
  EVP_PKEY_free(key);
  X509_free(ca);
  return list;
}

/* Appends a list to a file, or begins the file with it. */
static inline void list_write(const struct list_plan *plan, const char *path, bool append) {
  X509_CRL *list = list_make(plan);
  FILE *file = fopen(path, append ? "a" : "w");
  assert_non_null(file);
  assert_true(PEM_write_X509_CRL(file, list));
  assert_int_equal(fclose(file), 0);
  X509_CRL_free(list);
}

#endif
