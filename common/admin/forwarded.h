/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a reverse proxy says that it asks for. */
#ifndef CV_ADMIN_FORWARDED_H
#define CV_ADMIN_FORWARDED_H

#include <stdbool.h>

#include "common/base/ip.h"

/*
 * The last address of a request's X-Forwarded-For, or of its Forwarded (RFC 7239): the one that the nearest proxy
 * wrote, since whoever asks can write those before it. Each is the header's last line; NULL: the request has none.
 * False if there is no such address, if it is none, or if both headers are there and differ.
 */
bool cv_forwarded_read(const char *x_forwarded_for, const char *forwarded, struct cv_ip *ret);

#endif
