/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of hosts. */
#ifndef CV_BASE_IP_H
#define CV_BASE_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* IPv6, or IPv4 as ::ffff:a.b.c.d. */
struct cv_ip {
  uint8_t byte[16];
};

/* False, and zeros, for NULL and for other families. */
bool cv_ip_of(const struct sockaddr *address, struct cv_ip *ret);
/* Reads "192.0.2.7", "192.0.2.7:80", "2001:db8::7" or "[2001:db8::7]:80", the first `n` characters of `text`. */
bool cv_ip_read(const char *text, size_t n, struct cv_ip *ret);
bool cv_ip_is_loopback(const struct cv_ip *ip);
/* By which an address counts in a limit: an IPv4 address below 2^48, or the first 64 bits of an IPv6 one, since a host
 * can choose among all addresses of its network. */
uint64_t cv_ip_network(const struct cv_ip *ip);

#endif
