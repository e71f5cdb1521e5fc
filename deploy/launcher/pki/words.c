/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "deploy/launcher/pki/make.h"
#include "deploy/launcher/pki/party.h"

/* --- folders --- */

/* Resolves a folder that does not exist yet; its parent must exist. */
static enum cv_err resolve_new(const char *folder, char ret[CV_PKI_PATH], struct cv_why *why) {
  char text[PATH_MAX], parent[PATH_MAX];
  size_t n = strlen(folder);
  while (n > 1 && folder[n - 1] == '/') {
    n--;
  }
  (void)snprintf(text, sizeof(text), "%.*s", (int)n, folder);
  char *slash = strrchr(text, '/');
  const char *name = slash == NULL ? text : slash + 1;
  if (slash != NULL) {
    *slash = '\0';
  }
  if (realpath(slash == NULL ? "." : slash == text ? "/" : text, parent) == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "%s: parent folder: %s; expected an existing folder", folder, strerror(errno));
  }
  return cv_pki_join(ret, parent[1] == '\0' ? "" : parent, name, "", why);
}

/* Writes the absolute path without symbolic links, so that two names of one folder compare equal. */
static enum cv_err resolve(const char *folder, char ret[CV_PKI_PATH], struct cv_why *why) {
  char path[PATH_MAX];
  struct stat found;
  if (strlen(folder) >= PATH_MAX - sizeof("/cert.pem.new")) {
    return cv_fail(why, CV_ERR_LIMIT, "%.64s...: the path is too long", folder);
  }
  if (lstat(folder, &found) != 0 && errno == ENOENT) {
    return resolve_new(folder, ret, why);
  }
  if (realpath(folder, path) == NULL || stat(path, &found) != 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %s; expected a folder", folder, strerror(errno));
  }
  if (!S_ISDIR(found.st_mode)) {
    return cv_fail(why, CV_ERR_INVALID, "%s: not a folder; expected a folder, or a path that does not exist", folder);
  }
  (void)snprintf(ret, CV_PKI_PATH, "%s", path);
  return CV_OK;
}

/* --- one argument --- */

static enum cv_err split_hosts(struct cv_pki_party *party, char *hosts, struct cv_why *why) {
  for (char *host; (host = strsep(&hosts, ",")) != NULL;) {
    if (party->hosts == CV_PKI_HOSTS_MAX) {
      return cv_fail(why, CV_ERR_LIMIT, "more than %d hosts", CV_PKI_HOSTS_MAX);
    }
    party->host[party->hosts++] = host;
  }
  return CV_OK;
}

/* Splits IDENTITY[@HOST[,HOST]...]=FOLDER in place. */
static enum cv_err split(struct cv_pki_party *party, struct cv_why *why) {
  char *folder = strchr(party->word, '=');
  if (folder == NULL || folder[1] == '\0') {
    return cv_fail(why, CV_ERR_FORMAT, "expected IDENTITY[@HOST[,HOST]...]=FOLDER");
  }
  *folder++ = '\0';
  party->folder = folder;
  char *hosts = strchr(party->word, '@');
  if (hosts != NULL) {
    *hosts++ = '\0';
    CV_TRY(split_hosts(party, hosts, why));
  }
  char names[CV_PKI_ALT_NAMES_BYTES];
  CV_TRY(cv_pki_identity(party->word, &party->identity, why));
  CV_TRY(cv_pki_check_hosts(&party->identity, party->hosts, why));
  CV_TRY(cv_pki_alt_names(&party->identity, party->host, party->hosts, names, why));
  return resolve(folder, party->path, why);
}

/* --- conflicts between arguments --- */

static enum cv_err compare(const struct cv_pki_party *a, const struct cv_pki_party *b, struct cv_why *why) {
  if (strcmp(a->path, b->path) == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s is also the folder of %s; expected one folder for each party", a->folder,
                   b->word);
  }
  if (a->identity.role == b->identity.role && strcmp(a->identity.name, b->identity.name) == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s is given twice; expected each party once", a->word);
  }
  if (cv_identity_overlaps(&a->identity, &b->identity)) {
    return cv_fail(why, CV_ERR_INVALID, "%s overlaps %s; expected each worker once", a->word, b->word);
  }
  return CV_OK;
}

static enum cv_err take(struct cv_pki_party *party, size_t at, const char *word, const char *ca_path,
                        struct cv_why *why) {
  party[at].word = strdup(word);
  if (party[at].word == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  CV_TRY(split(&party[at], why));
  if (strcmp(party[at].path, ca_path) == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s is the folder of the CA; expected another folder", party[at].folder);
  }
  for (size_t i = 0; i < at; i++) {
    CV_TRY(compare(&party[at], &party[i], why));
  }
  return CV_OK;
}

enum cv_err cv_pki_parties_parse(const char *const *word, size_t words, const char *ca_folder,
                                 struct cv_pki_party **ret, struct cv_why *why) {
  char ca_path[CV_PKI_PATH];
  CV_TRY(resolve(ca_folder, ca_path, why));
  struct cv_pki_party *party = calloc(words, sizeof(*party));
  if (party == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (size_t i = 0; i < words; i++) {
    enum cv_err err = take(party, i, word[i], ca_path, why);
    if (err != CV_OK) {
      cv_why_prefix(why, "\"%.120s\"", word[i]);
      cv_pki_parties_free(party, words);
      return err;
    }
  }
  *ret = party;
  return CV_OK;
}

void cv_pki_parties_free(struct cv_pki_party *party, size_t parties) {
  for (size_t i = 0; i < parties; i++) {
    free(party[i].word);
  }
  free(party);
}
