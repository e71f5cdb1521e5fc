/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside common/net: the addresses that call a listener, and what is done for each of them. An address is one of IPv4,
 * or the /64 of one of IPv6. Pure: time is an argument.
 *
 * So many hellos a second are answered of an address, and four times as many of all strangers together: of addresses
 * from which nobody has been let in for ten minutes. A flood from many addresses leaves those that are known theirs.
 */
#ifndef CV_NET_CALLERS_H
#define CV_NET_CALLERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/base/err.h"

enum { CV_CALLERS_KEPT = 2048 /* addresses without an unfinished handshake that are remembered, of either kind */ };

struct cv_callers;
struct cv_caller; /* an address */

/* `hellos` a second of an address, at least 1. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_callers_new(unsigned hellos, struct cv_callers **ret);
void cv_callers_free(struct cv_callers *callers);

/* Somebody calls: one more unfinished handshake of the address. NULL is an address that is not known. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_callers_enter(struct cv_callers *callers, const struct sockaddr *address, uint64_t now_ms,
                                         struct cv_caller **ret);
/* It is over: somebody with a certificate was let in, or not. The caller may be gone. */
void cv_callers_leave(struct cv_callers *callers, struct cv_caller *caller, bool let_in, uint64_t now_ms);
/* Whether a hello of this address is answered now, which counts as an answer. */
bool cv_callers_answer(struct cv_callers *callers, struct cv_caller *caller, uint64_t now_ms);
/* Addresses that are remembered. */
unsigned cv_callers_count(const struct cv_callers *callers);
/* Who claims most gives way first: its unfinished handshakes, but up to four of a known address claim nothing. */
unsigned cv_caller_claim(const struct cv_caller *caller, uint64_t now_ms);

#endif
