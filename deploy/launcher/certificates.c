/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/certificates.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/net/certificate.h"
#include "common/net/crl.h"
#include "common/net/tls.h"

enum { DAY_S = 86400, SOON_DAYS = 14 };

/* Returns the first certificate of a PEM file; NULL, with a finding, if there is none. The caller frees it. */
static X509 *read_certificate(const char *path, struct cv_findings *findings) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    cv_findings_add(findings, CV_FINDING_WRONG, "correct the path, or copy the file here", "certificate %s: %s", path,
                    strerror(errno));
    return NULL;
  }
  X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
  (void)fclose(file);
  if (cert == NULL) {
    cv_findings_add(findings, CV_FINDING_WRONG, "copy it again from the machine that issued it",
                    "certificate %s: not a PEM certificate", path);
  }
  ERR_clear_error();
  return cert;
}

/* Adds a finding about the last moment of a certificate or a list. Returns true if it has not come. */
static bool examine_end(const char *what, const char *path, int64_t end_s, const char *renew, int64_t now,
                        struct cv_findings *findings) {
  struct cv_date end = cv_certificate_date(end_s);
  if (end_s <= now) {
    cv_findings_add(findings, CV_FINDING_WRONG, renew, "%s %s: expired on %s", what, path, end.text);
  } else if (end_s - now < (int64_t)SOON_DAYS * DAY_S) {
    cv_findings_add(findings, CV_FINDING_WARNING, renew, "%s %s: expires in %d days, on %s", what, path,
                    (int)((end_s - now) / DAY_S), end.text);
  } else {
    cv_findings_add(findings, CV_FINDING_OK, "", "%s %s: valid until %s", what, path, end.text);
  }
  return end_s > now;
}

/* Adds a finding about the certificate's dates. Returns true if it is valid now. */
static bool examine_dates(const X509 *cert, const char *path, const char *renew, int64_t now,
                          struct cv_findings *findings) {
  int64_t first_s = cv_certificate_time_s(X509_get0_notBefore(cert));
  if (first_s > now) {
    cv_findings_add(findings, CV_FINDING_WRONG, "if the clock of this machine is wrong, set it",
                    "certificate %s: valid from %s, but the clock says %s", path, cv_certificate_date(first_s).text,
                    cv_certificate_date(now).text);
    return false;
  }
  return examine_end("certificate", path, cv_certificate_end_s(cert), renew, now, findings);
}

/* The same for the lists of revoked certificates; cv_tls_new() reports what else is wrong with them. */
static bool examine_list(const char *path, int64_t now, struct cv_findings *findings) {
  FILE *file = fopen(path, "re");
  int64_t end_s = INT64_MAX;
  bool is_damaged;
  for (X509_CRL *list; file != NULL && (list = cv_crl_read(file, &is_damaged)) != NULL;) {
    int64_t each_s = cv_crl_end_s(list);
    end_s = each_s < end_s ? each_s : end_s;
    X509_CRL_free(list);
  }
  if (file != NULL) {
    (void)fclose(file);
  }
  return end_s == INT64_MAX ||
         examine_end("CRL", path, end_s,
                     "let crowdveil pki make copy the CA's crl.pem here, or copy it, then send SIGHUP to the program",
                     now, findings);
}

/* Tries each permitted role in turn. *ret_err and, on failure, *why are those of the last attempt. */
static enum cv_role one_of(unsigned roles, const char *cert, const struct cv_certificates *files, struct cv_tls **ret,
                           enum cv_err *ret_err, struct cv_why *why) {
  const struct cv_tls_files tls = {
      .ca = files->ca, .cert = cert, .key = files->key, .denied = files->denied, .crl = files->crl};
  enum cv_role role = CV_ROLE_NONE;
  for (unsigned each = 0; each < 32; each++) {
    if ((roles >> each & 1) != 0) {
      role = (enum cv_role)each;
      *ret_err = cv_tls_new(&tls, role, (struct cv_tls_peers){.roles = ~0U}, false, ret, why);
      if (*ret_err == CV_OK) {
        break;
      }
    }
  }
  return role;
}

void cv_certificates_examine(const struct cv_certificates *files, int64_t now, struct cv_findings *findings,
                             struct cv_identity *ret_identity) {
  struct cv_tls *tls = NULL;
  struct cv_why why = {.text = ""};
  enum cv_err err = CV_ERR_INVALID;
  X509 *ca = read_certificate(files->ca, findings), *cert = read_certificate(files->cert, findings);
  *ret_identity = (struct cv_identity){0};
  bool good = ca != NULL && cert != NULL;
  good = (ca == NULL ||
          examine_dates(ca, files->ca, "make a new CA and new certificates with crowdveil pki", now, findings)) &&
         good;
  good = (cert == NULL ||
          examine_dates(cert, files->cert,
                        "renew it with crowdveil pki renew or make --renew, then send SIGHUP to the program", now,
                        findings)) &&
         good;
  good = (files->crl == NULL || examine_list(files->crl, now, findings)) && good;
  /* cv_tls_new() would report an expired certificate again, in other words: it runs only if the dates are good. */
  if (good) {
    (void)one_of(files->roles, files->cert, files, &tls, &err, &why);
    if (err != CV_OK) {
      cv_findings_add(findings, CV_FINDING_WRONG,
                      "correct the file, or issue a new certificate and key with crowdveil pki issue or make", "%s",
                      why.text);
    } else {
      const struct cv_identity *identity = cv_tls_identity(tls);
      *ret_identity = *identity;
      cv_findings_add(findings, CV_FINDING_OK, "", "identity %s/%s: key, CA and role match",
                      cv_role_text(identity->role), identity->name);
      if (cv_tls_is_revoked(tls)) {
        cv_findings_add(findings, CV_FINDING_WRONG,
                        "if the party may go on, renew it with crowdveil pki renew, then send SIGHUP to the program",
                        "certificate %s: revoked", files->cert);
      }
      cv_tls_unref(tls);
    }
  }
  X509_free(ca);
  X509_free(cert);
}
