/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for keys that never goes to a swap device or into a core dump, between pages that nobody may touch, and is
 * wiped when it is given back. The private keys that OpenSSL reads or makes lie there as well; what its ciphers and
 * codes make of a key does not.
 */
#ifndef CV_SECRET_H
#define CV_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "common/crypto/crypto.h"

/*
 * Sets that memory up, once, before a key is read and before there is a second thread. `bytes` is a power of two; TLS
 * takes some 64 of them a connection, and makes none when there are none left. False, and nothing is set up, if that
 * much cannot be locked. True if it was set up before.
 */
bool cv_secret_begin(size_t bytes);

/* A copy of the key there, or in ordinary memory where none was set up; NULL if there is no room. */
struct cv_key *cv_secret_key(const struct cv_key *key);
/* Wipes it and gives its memory back. */
void cv_secret_free(struct cv_key *key);

#endif
