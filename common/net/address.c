/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/address.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    return cv_fail(why, CV_ERR_FORMAT, "'%s' is not an address; expected HOST:PORT or [IPV6]:PORT", text);
  }
  memcpy(ret->host, host, host_n);
  ret->host[host_n] = '\0';
  memcpy(ret->port, port, port_n + 1);
  return CV_OK;
}

unsigned cv_address_port(const struct sockaddr *address) {
  if (address->sa_family == AF_INET6) {
    return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
  }
  return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

void cv_address_of(const uv_tcp_t *tcp, char *text, size_t size) {
  struct sockaddr_storage storage;
  const struct sockaddr *address = (const struct sockaddr *)&storage;
  char ip[INET6_ADDRSTRLEN] = "";
  int n = sizeof(storage);
  int status = uv_tcp_getpeername(tcp, (struct sockaddr *)&storage, &n);
  if (status == 0) {
    status = address->sa_family == AF_INET6
                 ? uv_ip6_name((const struct sockaddr_in6 *)(const void *)address, ip, sizeof(ip))
                 : uv_ip4_name((const struct sockaddr_in *)(const void *)address, ip, sizeof(ip));
  }
  if (status != 0) {
    (void)snprintf(text, size, "?");
  } else {
    /* Brackets, so that the port is the part after the last colon in either family. */
    bool six = address->sa_family == AF_INET6;
    (void)snprintf(text, size, "%s%s%s:%u", six ? "[" : "", ip, six ? "]" : "", cv_address_port(address));
  }
}
