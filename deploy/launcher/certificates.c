/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/certificates.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/net/tls.h"

enum { DAY_S = 86400, SOON_DAYS = 14 };

struct date {
  char text[32];
};

/* Formats a date of a certificate in UTC. */
static struct date date_of(const ASN1_TIME *at) {
  struct tm tm;
  struct date date = {.text = "an unknown time"};
  if (ASN1_TIME_to_tm(at, &tm) == 1) {
    (void)strftime(date.text, sizeof(date.text), "%Y-%m-%d %H:%M UTC", &tm);
  }
  return date;
}

static struct date date_of_clock(int64_t now) {
  time_t seconds = (time_t)now;
  struct tm tm;
  struct date date = {.text = ""};
  if (gmtime_r(&seconds, &tm) != NULL) {
    (void)strftime(date.text, sizeof(date.text), "%Y-%m-%d %H:%M UTC", &tm);
  }
  return date;
}

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

/* Adds a finding about the certificate's dates. Returns true if it is valid now. */
static bool examine_dates(const X509 *cert, const char *path, const char *renew, int64_t now,
                          struct cv_findings *findings) {
  const ASN1_TIME *first = X509_get0_notBefore(cert), *last = X509_get0_notAfter(cert);
  time_t clock = (time_t)now;
  int days = 0, seconds = 0;
  ASN1_TIME *here = ASN1_TIME_set(NULL, clock);
  bool in_date = here != NULL && ASN1_TIME_diff(&days, &seconds, here, last) == 1;
  ASN1_TIME_free(here);
  if (X509_cmp_time(first, &clock) > 0) {
    cv_findings_add(findings, CV_FINDING_WRONG, "if the clock of this machine is wrong, set it",
                    "certificate %s: valid from %s, but the clock says %s", path, date_of(first).text,
                    date_of_clock(now).text);
    return false;
  }
  if (!in_date || X509_cmp_time(last, &clock) < 0) {
    cv_findings_add(findings, CV_FINDING_WRONG, renew, "certificate %s: expired on %s", path, date_of(last).text);
    return false;
  }
  if (days < SOON_DAYS) {
    cv_findings_add(findings, CV_FINDING_WARNING, renew, "certificate %s: expires in %d days, on %s", path, days,
                    date_of(last).text);
  } else {
    cv_findings_add(findings, CV_FINDING_OK, "", "certificate %s: valid until %s", path, date_of(last).text);
  }
  return true;
}

/* Tries each permitted role in turn. *ret_err and, on failure, *why are those of the last attempt. */
static enum cv_role one_of(unsigned roles, const char *cert, const struct cv_certificates *files, struct cv_tls **ret,
                           enum cv_err *ret_err, struct cv_why *why) {
  const struct cv_tls_files tls = {.ca = files->ca, .cert = cert, .key = files->key};
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
                             char *ret_name) {
  struct cv_tls *tls = NULL;
  struct cv_why why = {.text = ""};
  enum cv_err err = CV_ERR_INVALID;
  X509 *ca = read_certificate(files->ca, findings), *cert = read_certificate(files->cert, findings);
  ret_name[0] = '\0';
  bool good = ca != NULL && cert != NULL;
  good = (ca == NULL ||
          examine_dates(ca, files->ca, "make a new CA and new certificates with crowdveil pki", now, findings)) &&
         good;
  good = (cert == NULL ||
          examine_dates(cert, files->cert,
                        "renew it with crowdveil pki issue --renew or make --renew, then send SIGHUP to the program",
                        now, findings)) &&
         good;
  /* cv_tls_new() would report an expired certificate again, in other words: it runs only if the dates are good. */
  if (good) {
    (void)one_of(files->roles, files->cert, files, &tls, &err, &why);
    if (err != CV_OK) {
      cv_findings_add(findings, CV_FINDING_WRONG, "issue a new certificate and key with crowdveil pki issue or make",
                      "%s", why.text);
    } else {
      const struct cv_identity *identity = cv_tls_identity(tls);
      (void)snprintf(ret_name, CV_NAME_BYTES, "%s", identity->name);
      cv_findings_add(findings, CV_FINDING_OK, "", "identity %s/%s: key, CA and role match",
                      cv_role_text(identity->role), identity->name);
      cv_tls_unref(tls);
    }
  }
  X509_free(ca);
  X509_free(cert);
}
