/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/party.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
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
