/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/owned.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Who reads the messages: through sudo it is not the user that the program runs as. */
static uid_t reader(void) {
  const char *sudo = geteuid() == 0 ? getenv("SUDO_UID") : NULL;
  char *end = NULL;
  unsigned long uid = sudo == NULL ? 0 : strtoul(sudo, &end, 10);
  return end != NULL && end != sudo && *end == '\0' ? (uid_t)uid : getuid();
}

bool cv_owned_may_quote(const char *path, const char *named_in) {
  struct stat file, naming;
  bool has_more_rights = geteuid() == 0 || geteuid() != getuid();
  if (!has_more_rights || stat(path, &file) != 0) {
    return true;
  }
  return file.st_uid == reader() && (named_in == NULL || stat(named_in, &naming) != 0 || naming.st_uid == file.st_uid);
}

/* The length of "PATH:LINE:COLUMN", as far as a message begins with it. */
static size_t place_of(const char *path, const char *text) {
  size_t n = strlen(path);
  if (strncmp(text, path, n) != 0) {
    return 0;
  }
  for (size_t digits; text[n] == ':' && (digits = strspn(text + n + 1, "0123456789")) > 0; n += 1 + digits) {
  }
  return n;
}

enum cv_err cv_owned_tell(const char *path, const char *named_in, enum cv_err err, struct cv_why *why) {
  bool is_about_content = err != CV_OK && err != CV_ERR_IO && err != CV_ERR_NOMEM && err != CV_ERR_NOT_FOUND;
  if (!is_about_content || why == NULL || cv_owned_may_quote(path, named_in)) {
    return err;
  }
  struct cv_why told = *why;
  size_t n = place_of(path, told.text);
  return cv_fail(why, err, "%.*s: not what the campaign expects; only the file's owner is told what is in it",
                 n > 0 ? (int)n : (int)strlen(path), n > 0 ? told.text : path);
}
