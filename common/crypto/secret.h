/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for keys: never swapped or dumped, between guard pages, and wiped when freed. OpenSSL keeps the private keys
 * that it reads or generates there, too, but not the key schedules of its ciphers and MACs.
 */
#ifndef CV_SECRET_H
#define CV_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "common/crypto/crypto.h"

/*
 * Sets up the key memory. Call once, before a key is read and before a second thread starts. `bytes` is a power of two;
 * TLS needs about 64 bytes for each connection and accepts no connection when none are left. Returns false, with
 * nothing set up, if so much memory cannot be locked; true if it was already set up.
 */
bool cv_secret_begin(size_t bytes);

/* Copies the key into key memory, or into ordinary memory if none was set up; NULL if there is no room. */
struct cv_key *cv_secret_key(const struct cv_key *key);
/* Wipes and frees the key. */
void cv_secret_free(struct cv_key *key);

#endif
