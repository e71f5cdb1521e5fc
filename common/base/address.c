/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

/* True for a name, an IPv4 address or, if bracketed, an IPv6 address with an optional zone. */
static bool is_host(const char *host, size_t n, bool bracketed) {
  const char *const marks = bracketed ? ":.%-_" : ".-_";
  for (size_t i = 0; i < n; i++) {
    bool alphanumeric =
        (host[i] >= '0' && host[i] <= '9') || (host[i] >= 'a' && host[i] <= 'z') || (host[i] >= 'A' && host[i] <= 'Z');
    if (!alphanumeric && (host[i] == '\0' || strchr(marks, host[i]) == NULL)) {
      return false;
    }
  }
  return n > 0;
}

enum cv_err cv_address_parse(const char *text, struct cv_address *ret, struct cv_why *why) {
  const char *host = text;
  const char *colon = strrchr(text, ':');
  size_t host_n = colon != NULL ? (size_t)(colon - text) : 0;
  bool bracketed = host_n >= 2 && text[0] == '[' && text[host_n - 1] == ']';
  if (bracketed) {
    host++;
    host_n -= 2;
  }
  const char *port = colon != NULL ? colon + 1 : "";
  size_t port_n = strlen(port);
  bool good = host_n < sizeof(ret->host) && is_host(host, host_n, bracketed) && port_n > 0 &&
              port_n < sizeof(ret->port) && strspn(port, "0123456789") == port_n && strtoul(port, NULL, 10) <= 65535;
  if (!good) {
    return cv_fail(why, CV_ERR_FORMAT, "'%s' is not an address; " CV_ADDRESS_EXPECTED, text);
  }
  memcpy(ret->host, host, host_n);
  ret->host[host_n] = '\0';
  memcpy(ret->port, port, port_n + 1);
  return CV_OK;
}

enum cv_err cv_addresses_parse(const char *text, struct cv_addresses *ret, struct cv_why *why) {
  struct cv_addresses found = {0};
  size_t n;
  for (const char *at = text, *word; (word = cv_text_word(&at, &n)) != NULL; found.count++) {
    if (found.count == CV_ADDRESSES_MAX) {
      return cv_fail(why, CV_ERR_FORMAT, "'%s' has more than %d addresses", text, CV_ADDRESSES_MAX);
    }
    char *one = found.text[found.count];
    (void)snprintf(one, CV_ADDRESS_BYTES, "%.*s", (int)n, word);
    /* What is too long for it is no address either when it is cut. */
    CV_TRY(cv_address_parse(one, &found.address[found.count], why));
  }
  if (found.count == 0) {
    return cv_fail(why, CV_ERR_FORMAT, "'%s' is not an address; " CV_ADDRESS_EXPECTED, text);
  }
  *ret = found;
  return CV_OK;
}

bool cv_address_is_loopback(const struct cv_address *address) {
  const char *host = address->host;
  bool is_ipv4 = host[strspn(host, "0123456789.")] == '\0'; /* 127.example is a name */
  return (is_ipv4 && strncmp(host, "127.", 4) == 0) || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}
