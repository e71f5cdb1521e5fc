/* SPDX-License-Identifier: Apache-2.0 */
/* HOST:PORT, [IPV6]:PORT; and lists of them, of one party that may be found at several. */
#ifndef CV_BASE_ADDRESS_H
#define CV_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

#define CV_ADDRESS_EXPECTED "expected HOST:PORT or [IPV6]:PORT"
enum { CV_ADDRESS_BYTES = 280, CV_ADDRESSES_MAX = 8 };

struct cv_address {
  char host[256]; /* without brackets */
  char port[6];
};

struct cv_addresses {
  size_t count; /* at least 1 */
  struct cv_address address[CV_ADDRESSES_MAX];
  char text[CV_ADDRESSES_MAX][CV_ADDRESS_BYTES]; /* each as it was written */
};

/* Parses HOST:PORT; port 0 is valid. CV_ERR_FORMAT. */
CV_MUST_USE enum cv_err cv_address_parse(const char *text, struct cv_address *ret, struct cv_why *why);
/* Parses one or more of them, separated by commas or blanks. CV_ERR_FORMAT, also for more than CV_ADDRESSES_MAX. */
CV_MUST_USE enum cv_err cv_addresses_parse(const char *text, struct cv_addresses *ret, struct cv_why *why);
/* 127.0.0.0/8, ::1 or localhost; no other name, whatever it resolves to. */
bool cv_address_is_loopback(const struct cv_address *address);

#endif
