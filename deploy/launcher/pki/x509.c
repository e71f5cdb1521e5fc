/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/x509.h"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/net/sslerr.h"

enum { SERIAL_BITS = 159 };

struct extension {
  int nid;
  const char *value;
};

static const struct extension CA_EXTENSIONS[] = {
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign,cRLSign"},
    {NID_subject_key_identifier, "hash"},
};

/* A broker is a server for workers and a client of the third-party, so all certificates permit both. */
static const struct extension PARTY_EXTENSIONS[] = {
    {NID_basic_constraints, "critical,CA:FALSE"},   {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "clientAuth,serverAuth"},   {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
};

void cv_pki_pair_fini(struct cv_pki_pair *pair) {
  X509_free(pair->cert);
  EVP_PKEY_free(pair->key);
  *pair = (struct cv_pki_pair){0};
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
  bool ok = extension != NULL && X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
  return ok;
}

static bool add_extensions(X509 *cert, X509 *issuer, const struct extension *extensions, size_t n) {
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++) {
    ok = add_extension(cert, issuer, extensions[i].nid, extensions[i].value);
  }
  return ok;
}

/* The top bit is set, so every serial number has the same length and none is zero. */
static bool set_serial(X509 *cert) {
  BIGNUM *number = BN_new();
  bool ok = number != NULL && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
            BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
  BN_free(number);
  return ok;
}

/* A certificate that is already expired, as tests need, begins before its end, not now. */
static bool set_times(X509 *cert, const struct cv_pki_plan *plan) {
  int64_t from = plan->now < plan->not_after ? plan->now : plan->not_after;
  return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(from - CV_PKI_SKEW_S)) != NULL &&
         ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)plan->not_after) != NULL;
}

static bool fill(X509 *cert, EVP_PKEY *key, const struct cv_pki_plan *plan, const struct cv_pki_pair *ca) {
  X509 *issuer = ca != NULL ? ca->cert : cert;
  X509_NAME *name = X509_get_subject_name(cert);
  if (!X509_set_version(cert, X509_VERSION_3) || !set_serial(cert) || !set_times(cert, plan) ||
      !X509_set_pubkey(cert, key) ||
      !X509_NAME_add_entry_by_NID(name, NID_organizationName, MBSTRING_ASC, (const unsigned char *)"Crowdveil", -1, -1,
                                  0) ||
      !X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, (const unsigned char *)plan->name, -1, -1, 0) ||
      !X509_set_issuer_name(cert, X509_get_subject_name(issuer))) {
    return false;
  }
  bool ok = ca == NULL ? add_extensions(cert, issuer, CA_EXTENSIONS, CV_COUNT(CA_EXTENSIONS))
                       : add_extensions(cert, issuer, PARTY_EXTENSIONS, CV_COUNT(PARTY_EXTENSIONS)) &&
                             add_extension(cert, issuer, NID_subject_alt_name, plan->alt_names);
  return ok && X509_sign(cert, ca != NULL ? ca->key : key, EVP_sha256()) != 0;
}

enum cv_err cv_pki_pair_make(const struct cv_pki_plan *plan, const struct cv_pki_pair *ca, struct cv_pki_pair *ret,
                             struct cv_why *why) {
  ERR_clear_error();
  bool is_kept = plan->key != NULL && EVP_PKEY_up_ref(plan->key) == 1;
  struct cv_pki_pair pair = {.cert = X509_new(), .key = is_kept ? plan->key : EVP_EC_gen("P-256")};
  if (pair.cert == NULL || pair.key == NULL || !fill(pair.cert, pair.key, plan, ca)) {
    enum cv_err err = cv_ssl_fail(why, "%s: cannot make a certificate", plan->name);
    cv_pki_pair_fini(&pair);
    return err;
  }
  *ret = pair;
  return CV_OK;
}
