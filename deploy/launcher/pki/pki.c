/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/pki.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/net/identity.h"
#include "common/net/sslerr.h"
#include "deploy/launcher/pki/index.h"
#include "deploy/launcher/pki/x509.h"

enum { PATH_BYTES = sizeof(((struct cv_pki_files *)0)->cert), ALT_NAMES_BYTES = 4096 };

/* --- files --- */

static enum cv_err join(char ret[PATH_BYTES], const char *folder, const char *stem, const char *suffix,
                        struct cv_why *why) {
  int n = snprintf(ret, PATH_BYTES, "%s/%s%s", folder, stem, suffix);
  return n < PATH_BYTES ? CV_OK : cv_fail(why, CV_ERR_LIMIT, "%.64s...: the path is too long", folder);
}

/* *ret_made says whether there is something to remove after a later failure. */
static enum cv_err make_folder(const char *path, bool *ret_made, struct cv_why *why) {
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

static enum cv_err create_file(const char *path, mode_t mode, FILE **ret, struct cv_why *why) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    return cv_fail(why, errno == EEXIST ? CV_ERR_EXISTS : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  FILE *file = fchmod(fd, mode) == 0 ? fdopen(fd, "w") : NULL;
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
  ok = (fclose(file) == 0) && ok;
  if (ok) {
    return CV_OK;
  }
  enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  (void)unlink(path);
  ERR_clear_error();
  return err;
}

static enum cv_err write_key(const char *path, EVP_PKEY *key, struct cv_why *why) {
  FILE *file;
  CV_TRY(create_file(path, 0600, &file, why));
  return finish_file(file, PEM_write_PKCS8PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1, path, why);
}

static enum cv_err write_cert(const char *path, X509 *cert, struct cv_why *why) {
  FILE *file;
  CV_TRY(create_file(path, 0644, &file, why));
  return finish_file(file, PEM_write_X509(file, cert) == 1, path, why);
}

/* Both files or none. */
static enum cv_err write_pair(const struct cv_pki_files *files, const struct cv_pki_pair *pair, struct cv_why *why) {
  CV_TRY(write_key(files->key, pair->key, why));
  enum cv_err err = write_cert(files->cert, pair->cert, why);
  if (err != CV_OK) {
    (void)unlink(files->key);
  }
  return err;
}

static int no_password(char *text, int size, int writing, void *data) {
  return -1;
}

static enum cv_err read_pair(const struct cv_pki_files *files, struct cv_pki_pair *ret, struct cv_why *why) {
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
  pair.cert = PEM_read_X509(cert, NULL, NULL, NULL);
  pair.key = PEM_read_PrivateKey(key, NULL, no_password, NULL);
  (void)fclose(cert);
  (void)fclose(key);
  if (pair.cert == NULL || pair.key == NULL || X509_check_private_key(pair.cert, pair.key) != 1) {
    cv_pki_pair_fini(&pair);
    ERR_clear_error();
    return cv_fail(why, CV_ERR_FORMAT, "%s: not a certificate that belongs to the key in %s", files->cert, files->key);
  }
  *ret = pair;
  return CV_OK;
}

/* --- the CA --- */

static enum cv_err ca_paths(const char *folder, struct cv_pki_files *ret, char index[PATH_BYTES], struct cv_why *why) {
  CV_TRY(join(ret->cert, folder, "ca", ".pem", why));
  CV_TRY(join(ret->key, folder, "ca", ".key", why));
  return join(index, folder, "index", ".tsv", why);
}

static enum cv_err make_ca_files(const struct cv_pki_files *files, const char *index_path, const char *name,
                                 int64_t valid_s, struct cv_why *why) {
  int64_t now = (int64_t)time(NULL);
  struct cv_pki_plan plan = {.name = name, .now = now, .not_after = now + valid_s};
  struct cv_pki_pair pair;
  CV_TRY(cv_pki_pair_make(&plan, NULL, &pair, why));
  struct cv_pki_index index;
  enum cv_err err = cv_pki_index_open(index_path, true, &index, why);
  if (err == CV_OK) {
    err = write_pair(files, &pair, why);
    if (err != CV_OK) {
      (void)unlink(index_path);
    }
    cv_pki_index_close(&index);
  }
  cv_pki_pair_fini(&pair);
  return err;
}

enum cv_err cv_pki_make_ca(const char *folder, const char *name, int64_t valid_s, struct cv_why *why) {
  struct cv_pki_files files;
  char index[PATH_BYTES];
  CV_TRY(ca_paths(folder, &files, index, why));
  bool made;
  CV_TRY(make_folder(folder, &made, why));
  enum cv_err err = make_ca_files(&files, index, name, valid_s, why);
  if (err != CV_OK && made) {
    (void)rmdir(folder);
  }
  return err;
}

/* --- parties --- */

static enum cv_err read_identity(const char *text, struct cv_identity *ret, struct cv_why *why) {
  char uri[128];
  bool has_scheme = strncmp(text, "crowdveil:", 10) == 0;
  (void)snprintf(uri, sizeof(uri), "%s%s", has_scheme ? "" : "crowdveil:", text);
  return cv_identity_parse(uri, ret, why);
}

/* Hosts become part of a text that OpenSSL parses, so only what cannot mean anything else there is let in. */
static enum cv_err add_host(char *text, size_t size, const char *host, struct cv_why *why) {
  unsigned char address[16];
  bool is_ip = inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
  size_t n = strlen(host);
  if (!is_ip &&
      (n == 0 || n > 253 || strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != n)) {
    return cv_fail(why, CV_ERR_FORMAT, "host '%.64s' is neither an IP address nor a DNS name", host);
  }
  size_t used = strlen(text);
  if ((size_t)snprintf(text + used, size - used, ",%s:%s", is_ip ? "IP" : "DNS", host) >= size - used) {
    return cv_fail(why, CV_ERR_LIMIT, "too many hosts for one certificate");
  }
  return CV_OK;
}

static enum cv_err alt_names(const struct cv_identity *identity, const struct cv_pki_request *request,
                             char ret[ALT_NAMES_BYTES], struct cv_why *why) {
  (void)snprintf(ret, ALT_NAMES_BYTES, "URI:crowdveil:%s/%s", cv_role_text(identity->role), identity->name);
  for (size_t i = 0; i < request->hosts_n; i++) {
    CV_TRY(add_host(ret, ALT_NAMES_BYTES, request->hosts[i], why));
  }
  return CV_OK;
}

static enum cv_err write_and_list(const struct cv_pki_files *files, const struct cv_pki_pair *pair,
                                  struct cv_pki_index *index, const char *index_path,
                                  const struct cv_identity *identity, int64_t not_after, struct cv_why *why) {
  char serial[CV_PKI_SERIAL_HEX];
  CV_TRY(cv_pki_serial(pair->cert, serial, why));
  CV_TRY(write_pair(files, pair, why));
  enum cv_err err = cv_pki_index_append(index, index_path, serial, identity, not_after, why);
  if (err != CV_OK) {
    (void)unlink(files->cert);
    (void)unlink(files->key);
  }
  return err;
}

static enum cv_err issue_locked(struct cv_pki_index *index, const char *index_path, const struct cv_pki_pair *ca,
                                const struct cv_identity *identity, const struct cv_pki_request *request,
                                const struct cv_pki_files *files, struct cv_why *why) {
  char names[ALT_NAMES_BYTES];
  char shown[96];
  int64_t now = (int64_t)time(NULL);
  CV_TRY(cv_pki_index_check(index, index_path, identity, request->renew, now, why));
  CV_TRY(alt_names(identity, request, names, why));
  (void)snprintf(shown, sizeof(shown), "%s-%s", cv_role_text(identity->role), identity->name);
  shown[64] = '\0'; /* the longest common name; the identity stands whole in the alternative name */
  struct cv_pki_plan plan = {.name = shown, .alt_names = names, .now = now, .not_after = now + request->valid_s};
  struct cv_pki_pair pair;
  CV_TRY(cv_pki_pair_make(&plan, ca, &pair, why));
  enum cv_err err = write_and_list(files, &pair, index, index_path, identity, plan.not_after, why);
  cv_pki_pair_fini(&pair);
  return err;
}

/* What is in the folder stays; in the CA's own it is there already. */
static enum cv_err add_ca(const char *path, X509 *cert, bool *ret_made, struct cv_why *why) {
  struct cv_why what;
  enum cv_err err = write_cert(path, cert, &what);
  if (err != CV_OK && err != CV_ERR_EXISTS) {
    return cv_fail(why, err, "%s", what.text);
  }
  *ret_made = err == CV_OK;
  return CV_OK;
}

static enum cv_err issue_with_ca(const char *ca_folder, const char *ca_copy, const struct cv_identity *identity,
                                 const struct cv_pki_request *request, const struct cv_pki_files *files,
                                 struct cv_why *why) {
  struct cv_pki_files ca_files;
  char index_path[PATH_BYTES];
  CV_TRY(ca_paths(ca_folder, &ca_files, index_path, why));
  struct cv_pki_pair ca;
  CV_TRY(read_pair(&ca_files, &ca, why));
  struct cv_pki_index index;
  enum cv_err err = cv_pki_index_open(index_path, false, &index, why);
  bool copied = false;
  if (err == CV_OK) {
    err = add_ca(ca_copy, ca.cert, &copied, why);
    if (err == CV_OK) {
      err = issue_locked(&index, index_path, &ca, identity, request, files, why);
    }
    if (err != CV_OK && copied) {
      (void)unlink(ca_copy);
    }
    cv_pki_index_close(&index);
  }
  cv_pki_pair_fini(&ca);
  return err;
}

enum cv_err cv_pki_issue(const char *ca_folder, const char *folder, const struct cv_pki_request *request,
                         struct cv_pki_files *ret, struct cv_why *why) {
  struct cv_identity identity;
  CV_TRY(read_identity(request->identity, &identity, why));
  char stem[96];
  (void)snprintf(stem, sizeof(stem), "%s-%s", cv_role_text(identity.role), identity.name);
  struct cv_pki_files files;
  char ca_copy[PATH_BYTES];
  CV_TRY(join(ca_copy, folder, "ca", ".pem", why));
  CV_TRY(join(files.cert, folder, stem, ".pem", why));
  CV_TRY(join(files.key, folder, stem, ".key", why));
  bool made;
  CV_TRY(make_folder(folder, &made, why));
  enum cv_err err = issue_with_ca(ca_folder, ca_copy, &identity, request, &files, why);
  if (err != CV_OK) {
    if (made) {
      (void)rmdir(folder);
    }
    return err;
  }
  if (ret != NULL) {
    *ret = files;
  }
  return CV_OK;
}
