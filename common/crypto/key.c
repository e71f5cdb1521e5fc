/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/crypto.h"

void cv_key_wipe(struct cv_key *key) {
  if (key != NULL) {
    OPENSSL_cleanse(key->bytes, sizeof(key->bytes));
  }
}

static enum cv_err check_file(int fd, const char *path, struct cv_why *why) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: not a regular file; expected a key file of %d bytes", path, CV_KEY_BYTES);
  }
  /* Refused, not repaired: a key that others could read may be known to them. */
  if ((info.st_mode & 077) != 0) {
    return cv_fail(why, CV_ERR_DENIED, "%s: mode %04o gives others access to the key; expected 0600 or stricter", path,
                   (unsigned)info.st_mode & 07777U);
  }
  if (info.st_size != CV_KEY_BYTES) {
    return cv_fail(why, CV_ERR_FORMAT, "%s: %lld bytes; expected a key file of %d bytes", path, (long long)info.st_size,
                   CV_KEY_BYTES);
  }
  return CV_OK;
}

static enum cv_err read_checked(int fd, const char *path, struct cv_key *ret, struct cv_why *why) {
  CV_TRY(check_file(fd, path, why));
  /* Checked and read through one descriptor: the file cannot be exchanged in between. */
  struct cv_key key;
  ssize_t got = read(fd, key.bytes, sizeof(key.bytes));
  if (got == (ssize_t)sizeof(key.bytes)) {
    *ret = key;
  }
  cv_key_wipe(&key);
  if (got < 0) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  return got == (ssize_t)sizeof(key.bytes)
             ? CV_OK
             : cv_fail(why, CV_ERR_FORMAT, "%s: %zd bytes; expected a key file of %d bytes", path, got, CV_KEY_BYTES);
}

enum cv_err cv_key_read(const char *path, struct cv_key *ret, struct cv_why *why) {
  /* O_NONBLOCK: a pipe in the file's place must not hang the program. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) {
    return cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: cannot open the key file: %s", path,
                   strerror(errno));
  }
  enum cv_err err = read_checked(fd, path, ret, why);
  (void)close(fd);
  return err;
}

/* Makes the file's directory entry durable. */
static int sync_folder_of(const char *path) {
  char *copy = strdup(path);
  if (copy == NULL) {
    return -1;
  }
  int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  free(copy);
  if (fd < 0) {
    return -1;
  }
  int failed = fsync(fd);
  (void)close(fd);
  return failed;
}

enum cv_err cv_key_create(const char *path, struct cv_key *ret, struct cv_why *why) {
  struct cv_key key;
  if (RAND_priv_bytes(key.bytes, sizeof(key.bytes)) != 1) {
    return cv_fail(why, CV_ERR_CRYPTO, "%s: no random bytes for a new key", path);
  }
  /* O_EXCL: a key that exists is never replaced, since it may be the only one that opens a database. */
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    cv_key_wipe(&key);
    return cv_fail(why, errno == EEXIST ? CV_ERR_EXISTS : CV_ERR_IO, "%s: cannot create the key file: %s", path,
                   strerror(errno));
  }
  int failed =
      fchmod(fd, 0600) != 0 || write(fd, key.bytes, sizeof(key.bytes)) != (ssize_t)sizeof(key.bytes) || fsync(fd) != 0;
  failed = close(fd) != 0 || failed || sync_folder_of(path) != 0;
  if (failed) {
    int cause = errno;
    /* Otherwise the next start would find a key of the wrong length. */
    (void)unlink(path);
    cv_key_wipe(&key);
    return cv_fail(why, CV_ERR_IO, "%s: cannot write the key file: %s", path, strerror(cause));
  }
  *ret = key;
  cv_key_wipe(&key);
  return CV_OK;
}

enum cv_err cv_key_derive(const struct cv_key *master, const char *label, uint64_t number, struct cv_key *ret) {
  struct cv_buf info = {0};
  cv_buf_put(&info, label, strlen(label) + 1); /* with the terminator, so that no label is a prefix of another */
  cv_buf_put_u64(&info, number);
  if (!cv_buf_ok(&info)) {
    return CV_ERR_NOMEM;
  }
  EVP_KDF *hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
  EVP_KDF_CTX *ctx = hkdf != NULL ? EVP_KDF_CTX_new(hkdf) : NULL;
  EVP_KDF_free(hkdf);
  char digest[] = "SHA256";
  /* A copy, since OpenSSL's parameter is not const; wiped below. */
  struct cv_key secret = *master, key;
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.bytes, sizeof(secret.bytes)),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data, info.len),
      OSSL_PARAM_construct_end(),
  };
  int derived = ctx != NULL && EVP_KDF_derive(ctx, key.bytes, sizeof(key.bytes), params) == 1;
  EVP_KDF_CTX_free(ctx);
  cv_buf_fini(&info);
  if (derived) {
    *ret = key;
  }
  cv_key_wipe(&secret);
  cv_key_wipe(&key);
  return derived ? CV_OK : CV_ERR_CRYPTO;
}
