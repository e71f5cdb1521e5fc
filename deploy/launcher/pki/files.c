/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/private.h"

enum cv_err cv_pki_join(char ret[CV_PKI_PATH], const char *folder, const char *stem, const char *suffix,
                        struct cv_why *why) {
  int n = snprintf(ret, CV_PKI_PATH, "%s/%s%s", folder, stem, suffix);
  return n < CV_PKI_PATH ? CV_OK : cv_fail(why, CV_ERR_LIMIT, "%.64s...: the path is too long", folder);
}

static enum cv_err add_suffix(char ret[CV_PKI_PATH], const char *path, struct cv_why *why) {
  int n = snprintf(ret, CV_PKI_PATH, "%s.new", path);
  return n < CV_PKI_PATH ? CV_OK : cv_fail(why, CV_ERR_LIMIT, "%.64s...: the path is too long", path);
}

enum cv_err cv_pki_make_folder(const char *path, bool *ret_made, struct cv_why *why) {
  if (mkdir(path, 0700) == 0) {
    *ret_made = true;
    return CV_OK;
  }
  struct stat stat_;
  if (errno == EEXIST && stat(path, &stat_) == 0 && S_ISDIR(stat_.st_mode)) {
    *ret_made = false;
    return CV_OK;
  }
  return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno == EEXIST ? ENOTDIR : errno));
}

/* Root renews the files of daemons that run as other users: the new file belongs to the owner of the replaced one. */
static bool keep_owner(int fd, const char *replaced) {
  struct stat old;
  return replaced == NULL || geteuid() != 0 || lstat(replaced, &old) != 0 || !S_ISREG(old.st_mode) ||
         fchown(fd, old.st_uid, old.st_gid) == 0;
}

/* `replaced`: the file that the new one will replace, or NULL. */
static enum cv_err create_file(const char *path, mode_t mode, const char *replaced, FILE **ret, struct cv_why *why) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return cv_fail(why, errno == EEXIST ? CV_ERR_EXISTS : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  /* The file was created with mode 0600, so a key is never readable by others, whatever the umask. */
  FILE *file = fchmod(fd, mode) == 0 && keep_owner(fd, replaced) ? fdopen(fd, "w") : NULL;
  if (file == NULL) {
    enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
    (void)close(fd);
    (void)unlink(path);
    return err;
  }
  *ret = file;
  return CV_OK;
}

static enum cv_err finish_file(FILE *file, bool written, const char *path, struct cv_why *why) {
  bool ok = written && fflush(file) == 0 && fsync(fileno(file)) == 0;
  int error = errno; /* of the first failure */
  if (fclose(file) != 0 && ok) {
    error = errno;
    ok = false;
  }
  if (ok) {
    return CV_OK;
  }
  enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: cannot write: %s", path, strerror(error));
  (void)unlink(path);
  ERR_clear_error();
  return err;
}

static enum cv_err write_key(const char *path, EVP_PKEY *key, const char *replaced, struct cv_why *why) {
  FILE *file;
  CV_TRY(create_file(path, 0600, replaced, &file, why));
  return finish_file(file, PEM_write_PKCS8PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1, path, why);
}

static enum cv_err write_cert(const char *path, X509 *cert, const char *replaced, struct cv_why *why) {
  FILE *file;
  CV_TRY(create_file(path, 0644, replaced, &file, why));
  return finish_file(file, PEM_write_X509(file, cert) == 1, path, why);
}

enum cv_err cv_pki_write_cert(const char *path, X509 *cert, struct cv_why *why) {
  return write_cert(path, cert, NULL, why);
}

/* --- replacing --- */

enum cv_err cv_pki_staged_pair(const struct cv_pki_files *files, struct cv_pki_files *ret, struct cv_why *why) {
  CV_TRY(add_suffix(ret->cert, files->cert, why));
  return add_suffix(ret->key, files->key, why);
}

enum cv_err cv_pki_stage_pair(const struct cv_pki_files *files, const struct cv_pki_pair *pair, struct cv_why *why) {
  struct cv_pki_files beside;
  CV_TRY(cv_pki_staged_pair(files, &beside, why));
  (void)unlink(beside.cert);
  (void)unlink(beside.key);
  CV_TRY(write_key(beside.key, pair->key, files->key, why));
  enum cv_err err = write_cert(beside.cert, pair->cert, files->cert, why);
  if (err != CV_OK) {
    (void)unlink(beside.key);
  }
  return err;
}

void cv_pki_drop_pair(const struct cv_pki_files *files) {
  struct cv_pki_files beside;
  if (cv_pki_staged_pair(files, &beside, NULL) == CV_OK) {
    (void)unlink(beside.cert);
    (void)unlink(beside.key);
  }
}

static enum cv_err adopt(const char *from, const char *to, struct cv_why *why) {
  return rename(from, to) == 0 ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: cannot replace: %s", to, strerror(errno));
}

/* Syncs the folder of a file, so that a rename in it survives a power failure. */
static enum cv_err sync_folder(const char *path, struct cv_why *why) {
  char folder[CV_PKI_PATH];
  (void)snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
  int fd = open(folder[0] == '\0' ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool ok = fd >= 0 && fsync(fd) == 0;
  enum cv_err err = ok ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: cannot sync: %s", folder, strerror(errno));
  if (fd >= 0) {
    (void)close(fd);
  }
  return err;
}

enum cv_err cv_pki_adopt_pair(const struct cv_pki_files *files, struct cv_why *why) {
  struct cv_pki_files beside;
  CV_TRY(cv_pki_staged_pair(files, &beside, why));
  if (access(beside.key, F_OK) == 0) {
    CV_TRY(adopt(beside.key, files->key, why));
  }
  CV_TRY(adopt(beside.cert, files->cert, why));
  return sync_folder(files->cert, why);
}

enum cv_err cv_pki_file_stage(const char *path, mode_t mode, FILE **ret, struct cv_why *why) {
  char beside[CV_PKI_PATH];
  CV_TRY(add_suffix(beside, path, why));
  (void)unlink(beside);
  return create_file(beside, mode, path, ret, why);
}

enum cv_err cv_pki_file_adopt(FILE *file, bool is_written, const char *path, struct cv_why *why) {
  char beside[CV_PKI_PATH];
  (void)snprintf(beside, sizeof(beside), "%s.new", path);
  CV_TRY(finish_file(file, is_written, beside, why));
  enum cv_err err = adopt(beside, path, why);
  if (err != CV_OK) {
    (void)unlink(beside);
    return err;
  }
  return sync_folder(path, why);
}

enum cv_err cv_pki_replace_cert(const char *path, X509 *cert, struct cv_why *why) {
  FILE *file;
  CV_TRY(cv_pki_file_stage(path, 0644, &file, why));
  return cv_pki_file_adopt(file, PEM_write_X509(file, cert) == 1, path, why);
}

/* --- reading --- */

/* Refuses encrypted keys instead of asking for a password on the terminal. */
static int no_password(char *text, int size, int writing, void *data) {
  return -1;
}

enum cv_err cv_pki_read_pair(const struct cv_pki_files *files, struct cv_pki_pair *ret, struct cv_why *why) {
  struct cv_pki_pair pair = {0};
  FILE *cert = fopen(files->cert, "re");
  if (cert == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s (make the CA first)", files->cert, strerror(errno));
  }
  FILE *key = fopen(files->key, "re");
  if (key == NULL) {
    (void)fclose(cert);
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s", files->key, strerror(errno));
  }
  enum cv_err err = cv_private_check(fileno(key), files->key, why);
  if (err == CV_OK) {
    pair.cert = PEM_read_X509(cert, NULL, NULL, NULL);
    pair.key = PEM_read_PrivateKey(key, NULL, no_password, NULL);
  }
  (void)fclose(cert);
  (void)fclose(key);
  if (err != CV_OK) {
    return err;
  }
  if (pair.cert == NULL || pair.key == NULL || X509_check_private_key(pair.cert, pair.key) != 1) {
    cv_pki_pair_fini(&pair);
    ERR_clear_error();
    return cv_fail(why, CV_ERR_FORMAT, "%s: not a certificate that belongs to the key in %s", files->cert, files->key);
  }
  *ret = pair;
  return CV_OK;
}

enum cv_err cv_pki_read_cert(const char *path, X509 **ret, struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL && errno != ENOENT) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  X509 *cert = file == NULL ? NULL : PEM_read_X509(file, NULL, NULL, NULL);
  ERR_clear_error();
  if (file != NULL) {
    (void)fclose(file);
  }
  if (file != NULL && cert == NULL) {
    return cv_fail(why, CV_ERR_FORMAT, "%s: not a certificate in PEM form; expected one, or no file", path);
  }
  *ret = cert;
  return CV_OK;
}

bool cv_pki_file_has(const char *path, const X509 *cert) {
  FILE *file = fopen(path, "re");
  X509 *each = NULL;
  bool has = false;
  while (file != NULL && !has && (each = PEM_read_X509(file, NULL, NULL, NULL)) != NULL) {
    has = X509_cmp(each, cert) == 0;
    X509_free(each);
  }
  ERR_clear_error();
  if (file != NULL) {
    (void)fclose(file);
  }
  return has;
}
