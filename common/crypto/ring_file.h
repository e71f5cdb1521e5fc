/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a key file (ring.h): private, written whole, and never lost. */
#ifndef CV_RING_FILE_H
#define CV_RING_FILE_H

#include "common/base/err.h"

enum { CV_RING_FILE_BYTES = 1024 /* a file with the most keys is shorter */ };

/* Reads at most `size` bytes of a regular file that only its owner may access. */
CV_MUST_USE enum cv_err cv_ring_file_read(const char *path, char *to, size_t size, size_t *ret_n, struct cv_why *why);
/* Creates the file with mode 0600; CV_ERR_EXISTS if there is one. Leaves none after an error. */
CV_MUST_USE enum cv_err cv_ring_file_create(const char *path, const char *bytes, size_t n, struct cv_why *why);
/* cv_ring_replace(). */
CV_MUST_USE enum cv_err cv_ring_file_replace(const char *path, const char *bytes, size_t n, struct cv_why *why);

#endif
