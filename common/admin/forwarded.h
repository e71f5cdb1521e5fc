/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse proxies, and whom they say that they ask for. */
#ifndef CV_ADMIN_FORWARDED_H
#define CV_ADMIN_FORWARDED_H

#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/ip.h"

enum { CV_PROXIES_MAX = 8 };

/* Whose word is taken for the address of who asks. */
struct cv_proxies {
  bool has_loopback; /* every loopback address is one */
  size_t count;
  struct cv_ip ip[CV_PROXIES_MAX];
};

/* Reads a list of IP addresses (text.h). CV_ERR_FORMAT, also for more than CV_PROXIES_MAX. */
CV_MUST_USE enum cv_err cv_proxies_read(const char *list, struct cv_proxies *ret, struct cv_why *why);
bool cv_proxies_have(const struct cv_proxies *proxies, const struct cv_ip *ip);

/*
 * The last address of a request's X-Forwarded-For, or of its Forwarded (RFC 7239): the one that the nearest proxy
 * wrote, since whoever asks can write those before it. Each is the header's last line; NULL: the request has none.
 * False if there is no such address, if it is none, or if both headers are there and differ.
 */
bool cv_forwarded_read(const char *x_forwarded_for, const char *forwarded, struct cv_ip *ret);

#endif
