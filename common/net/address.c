/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/address.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>

unsigned cv_sockaddr_port(const struct sockaddr *address) {
  if (address->sa_family == AF_INET6) {
    return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
  }
  return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
}

void cv_sockaddr_text(const uv_tcp_t *tcp, char *text, size_t size) {
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
    (void)snprintf(text, size, "%s%s%s:%u", six ? "[" : "", ip, six ? "]" : "", cv_sockaddr_port(address));
  }
}
