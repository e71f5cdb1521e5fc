/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to common/net: rate limits by client address. An address is one IPv4 address or one IPv6 /64 prefix. Pure:
 * time is an argument.
 *
 * The listener answers at most `hellos` TLS hellos per second from one address, and four times as many from all unknown
 * addresses together: those from which no peer has been admitted for ten minutes. So a flood from many new addresses
 * does not use up the share of known ones.
 */
#ifndef CV_NET_CALLERS_H
#define CV_NET_CALLERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/base/err.h"

enum { CV_CALLERS_KEPT = 2048 /* addresses kept without an unfinished handshake, of each kind */ };

struct cv_callers;
struct cv_caller; /* an address */

/* `hellos` is the limit per second for one address, at least 1. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_callers_new(unsigned hellos, struct cv_callers **ret);
void cv_callers_free(struct cv_callers *callers);

/* A new connection: the address has one more unfinished handshake. `address` NULL: unknown. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_callers_enter(struct cv_callers *callers, const struct sockaddr *address, uint64_t now_ms,
                                         struct cv_caller **ret);
/* The handshake has ended; `let_in`: a peer with a valid certificate was admitted. May free the caller. */
void cv_callers_leave(struct cv_callers *callers, struct cv_caller *caller, bool let_in, uint64_t now_ms);
/* Whether a hello from this address may be answered now; if so, counts the answer. */
bool cv_callers_answer(struct cv_callers *callers, struct cv_caller *caller, uint64_t now_ms);
/* The number of addresses kept. */
unsigned cv_callers_count(const struct cv_callers *callers);
/* The number of places that an address claims: its unfinished handshakes; up to four of a known address count as
 * none. The address that claims most loses a handshake first. */
unsigned cv_caller_claim(const struct cv_caller *caller, uint64_t now_ms);

#endif
