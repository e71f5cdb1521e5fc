/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a party's master keys. Keys of data are stored wrapped by a master key; the file's first key wraps, all
 * of them unwrap. So a new master key takes over without a moment in which one file fits and the other does not.
 *
 * The file is text, at most CV_RING_KEYS keys, newest first, numbers descending:
 *
 *   crowdveil seal keys 1
 *   NUMBER SECONDS KEY
 *
 * SECONDS since 1970 at which the key was made (0: unknown), KEY in 64 lower-case hexadecimal digits.
 */
#ifndef CV_RING_H
#define CV_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/crypto/crypto.h"

enum { CV_RING_KEYS = 8, CV_KEY_ID_BYTES = 8, CV_KEY_NAME_DIGITS = 8 };

/* Tells keys apart and says nothing about them: the first bytes of SHA-256 over a label and the key. */
struct cv_key_id {
  uint8_t bytes[CV_KEY_ID_BYTES];
};
struct cv_key_id cv_key_id(const struct cv_key *key);
/* The first digits of an id, for people. */
struct cv_key_name {
  char text[CV_KEY_NAME_DIGITS + 1];
};
struct cv_key_name cv_key_name(const struct cv_key_id *id);

struct cv_ring_key {
  uint32_t number;
  uint64_t made_s;
  struct cv_key *key; /* in key memory */
};

struct cv_ring {
  struct cv_ring_key item[CV_RING_KEYS]; /* the first is the current one */
  size_t n;
};

/* Wipes and frees the keys. */
void cv_ring_fini(struct cv_ring *ring);
/* Puts a copy of the key in front. CV_ERR_LIMIT if the ring is full, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ring_add(struct cv_ring *ring, const struct cv_key *key, uint64_t made_s);
/* Puts a new random key in front. The same errors, and CV_ERR_CRYPTO. */
CV_MUST_USE enum cv_err cv_ring_renew(struct cv_ring *ring, uint64_t made_s);
/* Makes `*ret` a copy of the first `n` keys. CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ring_copy(const struct cv_ring *ring, size_t n, struct cv_ring *ret);
/* Wipes and removes all keys but the first `n`. */
void cv_ring_cut(struct cv_ring *ring, size_t n);
/* The key with this id; NULL if the ring does not have it. */
const struct cv_key *cv_ring_find(const struct cv_ring *ring, const struct cv_key_id *id);
/* The names of all keys, "1a2b3c4d, 5e6f7081", for messages. */
struct cv_ring_names {
  char text[CV_RING_KEYS * (CV_KEY_NAME_DIGITS + 2)];
};
struct cv_ring_names cv_ring_names(const struct cv_ring *ring);

/* Reads the bytes of a key file; `path` is for messages, which never contain a key. CV_ERR_FORMAT,
 * CV_ERR_VERSION, CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_ring_parse(const char *path, const char *bytes, size_t n, struct cv_ring *ret,
                                      struct cv_why *why);
/* Reads a key file, which only its owner may access. CV_ERR_NOT_FOUND, CV_ERR_DENIED, CV_ERR_FORMAT, CV_ERR_INVALID,
 * CV_ERR_VERSION. */
CV_MUST_USE enum cv_err cv_ring_read(const char *path, struct cv_ring *ret, struct cv_why *why);
/* Creates a key file with one new key and mode 0600. CV_ERR_EXISTS if the file exists. */
CV_MUST_USE enum cv_err cv_ring_create(const char *path, uint64_t made_s, struct cv_ring *ret, struct cv_why *why);
/*
 * Replaces a key file: after a crash at any time the path has the old content or the new one. Owner and mode stay. The
 * old file's bytes are overwritten, unless it has other names (hard links). After an error it is unknown which content
 * the path has.
 */
CV_MUST_USE enum cv_err cv_ring_replace(const char *path, const struct cv_ring *ring, struct cv_why *why);

/* Keeps other processes from changing the file, until the descriptor is closed. CV_ERR_STATE if one is at it. */
CV_MUST_USE enum cv_err cv_ring_lock(const char *path, int *ret_fd, struct cv_why *why);

#endif
