/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/party.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum cv_err cv_pki_identity(const char *text, struct cv_identity *ret, struct cv_why *why) {
  char uri[128];
  bool has_scheme = strncmp(text, "crowdveil:", 10) == 0;
  (void)snprintf(uri, sizeof(uri), "%s%s", has_scheme ? "" : "crowdveil:", text);
  return cv_identity_parse(uri, ret, why);
}

/* OpenSSL parses the text, so a host may only have characters without a special meaning there. */
static enum cv_err add_host(char *text, size_t size, const char *host, struct cv_why *why) {
  unsigned char address[16];
  bool is_ip = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
  size_t n = strlen(host);
  if (!is_ip &&
      (n == 0 || n > 253 || strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != n)) {
    return cv_fail(why, CV_ERR_FORMAT, "host '%.64s' is neither an IP address nor a DNS name", host);
  }
  size_t used = strlen(text);
  if ((size_t)snprintf(text + used, size - used, ",%s:%s", is_ip ? "IP" : "DNS", host) >= size - used) {
    return cv_fail(why, CV_ERR_LIMIT, "too many hosts for one certificate");
  }
  return CV_OK;
}

enum cv_err cv_pki_alt_names(const struct cv_identity *identity, const char *const *hosts, size_t hosts_n,
                             char ret[CV_PKI_ALT_NAMES_BYTES], struct cv_why *why) {
  (void)snprintf(ret, CV_PKI_ALT_NAMES_BYTES, "URI:crowdveil:%s/%s", cv_role_text(identity->role), identity->name);
  for (size_t i = 0; i < hosts_n; i++) {
    CV_TRY(add_host(ret, CV_PKI_ALT_NAMES_BYTES, hosts[i], why));
  }
  return CV_OK;
}

enum cv_err cv_pki_check_hosts(const struct cv_identity *identity, size_t hosts_n, struct cv_why *why) {
  const enum cv_role role = identity->role;
  bool is_dialled = role == CV_ROLE_BROKER || role == CV_ROLE_COBROKER || role == CV_ROLE_THIRDPARTY;
  return hosts_n > 0 || !is_dialled
             ? CV_OK
             : cv_fail(why, CV_ERR_INVALID, "%s/%s: no host; expected each host name or IP address that others dial",
                       cv_role_text(identity->role), identity->name);
}

/* --- the hosts in a certificate --- */

/* Returns a copy of a DNS name or IP address, "" for another kind of name, NULL if memory runs out. */
static char *copy_host(const GENERAL_NAME *name) {
  char text[INET6_ADDRSTRLEN] = "";
  if (name->type == GEN_DNS) {
    return strndup((const char *)ASN1_STRING_get0_data(name->d.dNSName), (size_t)ASN1_STRING_length(name->d.dNSName));
  }
  if (name->type == GEN_IPADD) {
    int n = ASN1_STRING_length(name->d.iPAddress);
    if (n == 4 || n == 16) {
      (void)inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text));
    }
  }
  return strdup(text);
}

void cv_pki_hosts_fini(struct cv_pki_hosts *hosts) {
  for (size_t i = 0; i < hosts->n; i++) {
    free(hosts->host[i]);
  }
  *hosts = (struct cv_pki_hosts){0};
}

enum cv_err cv_pki_hosts_of(const X509 *cert, struct cv_pki_hosts *ret, struct cv_why *why) {
  GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
  struct cv_pki_hosts hosts = {0};
  bool ok = true;
  for (int i = 0; ok && i < sk_GENERAL_NAME_num(names) && hosts.n < CV_PKI_HOSTS_MAX; i++) {
    char *host = copy_host(sk_GENERAL_NAME_value(names, i));
    ok = host != NULL;
    if (ok && host[0] != '\0') {
      hosts.host[hosts.n++] = host;
    } else {
      free(host);
    }
  }
  GENERAL_NAMES_free(names);
  if (!ok) {
    cv_pki_hosts_fini(&hosts);
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  *ret = hosts;
  return CV_OK;
}
