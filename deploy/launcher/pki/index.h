/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal to pki: index.tsv, the issued certificates, one on each line, oldest first, with tabs in between: serial
 * number, identity, last valid second, then the seconds in which it was made, superseded and revoked (since 1970; - for
 * never). A change replaces the file by rename.
 */
#ifndef CV_DEPLOY_PKI_INDEX_H
#define CV_DEPLOY_PKI_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/net/identity.h"
#include "common/net/serial.h"

struct cv_pki_entry {
  struct cv_serial serial;
  struct cv_identity identity;
  int64_t not_after;                 /* seconds since 1970, like the next ones */
  int64_t made, superseded, revoked; /* 0: never */
};

struct cv_pki_index {
  int fd; /* locked against other processes while it is open; -1 for a copy that is only read */
  struct cv_pki_entry *entry;
  size_t count, cap;
};

/* Reads and locks the index. `create`: makes an empty one; CV_ERR_EXISTS if it exists. CV_ERR_DAMAGED with
 * the line, CV_ERR_VERSION. */
CV_MUST_USE enum cv_err cv_pki_index_open(const char *path, bool create, struct cv_pki_index *ret, struct cv_why *why);
/* Reads the index without a lock: every version of the file is whole. */
CV_MUST_USE enum cv_err cv_pki_index_read(const char *path, struct cv_pki_index *ret, struct cv_why *why);
/*
 * CV_ERR_EXISTS if a certificate that is valid after `now` overlaps `identity`, or if the newest one of `identity`
 * expires after `now`, revoked or not; with `renew` the identity may have some.
 */
CV_MUST_USE enum cv_err cv_pki_index_check(const struct cv_pki_index *index, const struct cv_identity *identity,
                                           bool renew, int64_t now, struct cv_why *why);
/* Adds a certificate; earlier ones of the same identity are superseded from now on. */
CV_MUST_USE enum cv_err cv_pki_index_add(struct cv_pki_index *index, const struct cv_pki_entry *entry,
                                         struct cv_why *why);
/* Writes a changed index and syncs it. After a failure the file is either the old one or the new one. */
CV_MUST_USE enum cv_err cv_pki_index_save(struct cv_pki_index *index, const char *path, struct cv_why *why);
/* The entry with this serial number, or NULL. */
struct cv_pki_entry *cv_pki_index_find(const struct cv_pki_index *index, const struct cv_serial *serial);
void cv_pki_index_close(struct cv_pki_index *index);

/* "valid", "superseded", "expired" or "revoked"; the last one that is true. */
const char *cv_pki_entry_state(const struct cv_pki_entry *entry, int64_t now);

#endif
