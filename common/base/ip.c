/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

bool cv_ip_of(const struct sockaddr *address, struct cv_ip *ret) {
  *ret = (struct cv_ip){{0}};
  if (address != NULL && address->sa_family == AF_INET) {
    memcpy(ret->byte, MAPPED, sizeof(MAPPED));
    memcpy(ret->byte + sizeof(MAPPED), &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    return true;
  }
  if (address != NULL && address->sa_family == AF_INET6) {
    memcpy(ret->byte, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, sizeof(ret->byte));
    return true;
  }
  return false;
}

/* Whether the first `n` characters are nothing, or a colon and a port. */
static bool is_port(const char *text, size_t n) {
  return n == 0 || (n >= 2 && n <= 6 && text[0] == ':' && strspn(text + 1, "0123456789") >= n - 1);
}

bool cv_ip_read(const char *text, size_t n, struct cv_ip *ret) {
  char host[INET6_ADDRSTRLEN];
  bool bracketed = n > 0 && text[0] == '[';
  const char *end = memchr(text, bracketed ? ']' : ':', n), *again;
  size_t host_n = end == NULL ? n : (size_t)(end - text), from = bracketed ? 1 : 0;
  if (bracketed && end == NULL) {
    return false;
  }
  again = bracketed || end == NULL ? NULL : memchr(end + 1, ':', n - host_n - 1);
  host_n = again != NULL ? n : host_n - from; /* two colons without brackets: IPv6 without a port */
  size_t used = from + host_n + from;
  if (host_n == 0 || host_n >= sizeof(host) || !is_port(text + used, n - used)) {
    return false;
  }
  memcpy(host, text + from, host_n);
  host[host_n] = '\0';
  if (bracketed || again != NULL) {
    return inet_pton(AF_INET6, host, ret->byte) == 1;
  }
  memcpy(ret->byte, MAPPED, sizeof(MAPPED));
  return inet_pton(AF_INET, host, ret->byte + sizeof(MAPPED)) == 1;
}

static bool is_ipv4(const struct cv_ip *ip) {
  return memcmp(ip->byte, MAPPED, sizeof(MAPPED)) == 0;
}

bool cv_ip_is_loopback(const struct cv_ip *ip) {
  static const struct cv_ip one = {.byte = {[15] = 1}};
  return is_ipv4(ip) ? ip->byte[12] == 127 : memcmp(ip, &one, sizeof(one)) == 0;
}

uint64_t cv_ip_network(const struct cv_ip *ip) {
  bool short_one = is_ipv4(ip);
  uint64_t number = short_one ? 0xffff : 0;
  for (int i = short_one ? 12 : 0; i < (short_one ? 16 : 8); i++) {
    number = number << 8 | ip->byte[i];
  }
  return number;
}
