/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to pki: index.tsv, the issued certificates: serial number, identity, last valid second (since 1970). */
#ifndef CV_DEPLOY_PKI_INDEX_H
#define CV_DEPLOY_PKI_INDEX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/net/identity.h"

struct cv_pki_index {
  int fd;    /* locked against other processes while it is open */
  off_t end; /* bytes */
};

/* Opens and locks the index. `create`: makes an empty one; CV_ERR_EXISTS if it exists. */
CV_MUST_USE enum cv_err cv_pki_index_open(const char *path, bool create, struct cv_pki_index *ret, struct cv_why *why);
/* CV_ERR_EXISTS if a certificate that is valid after `now` overlaps `identity`; with `renew` the same identity may. */
CV_MUST_USE enum cv_err cv_pki_index_check(const struct cv_pki_index *index, const char *path,
                                           const struct cv_identity *identity, bool renew, int64_t now,
                                           struct cv_why *why);
/* Appends a line and syncs it. On failure the file is unchanged. */
CV_MUST_USE enum cv_err cv_pki_index_append(struct cv_pki_index *index, const char *path, const char *serial,
                                            const struct cv_identity *identity, int64_t not_after, struct cv_why *why);
void cv_pki_index_close(struct cv_pki_index *index);

#endif
