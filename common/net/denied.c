/* SPDX-License-Identifier: Apache-2.0 */
#include "common/net/denied.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/array.h"

static int compare(const void *a, const void *b) {
  return strcmp(((const struct cv_serial *)a)->hex, ((const struct cv_serial *)b)->hex);
}

/* Removes comment and blanks in place. A zero byte stays, so that the line is not a valid serial number. */
static void strip(char *line, size_t n) {
  char *to = line;
  for (const char *from = line; from < line + n && *from != '#'; from++) {
    if (!isspace((unsigned char)*from)) {
      *to++ = *from != '\0' ? *from : '?';
    }
  }
  *to = '\0';
}

static enum cv_err append(struct cv_denied *denied, size_t *cap, const struct cv_serial *serial) {
  CV_TRY(CV_ARRAY_ROOM(denied->serial, denied->count + 1, *cap));
  denied->serial[denied->count++] = *serial;
  return CV_OK;
}

static enum cv_err take_line(const char *line, const char *path, unsigned number, struct cv_denied *denied, size_t *cap,
                             struct cv_why *why) {
  struct cv_serial serial;
  if (!cv_serial_parse(line, &serial)) {
    return cv_fail(why, CV_ERR_FORMAT, "%s:%u: expected one serial number in hex a line", path, number);
  }
  if (denied->count == CV_DENIED_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s:%u: more than %d serial numbers", path, number, CV_DENIED_MAX);
  }
  return append(denied, cap, &serial) == CV_OK ? CV_OK : cv_fail(why, CV_ERR_NOMEM, "%s: no memory", path);
}

static enum cv_err read_lines(FILE *file, const char *path, struct cv_denied *denied, struct cv_why *why) {
  char *line = NULL;
  size_t room = 0, cap = 0;
  enum cv_err err = CV_OK;
  for (unsigned number = 1; err == CV_OK; number++) {
    /* getline() returns -1 at the end and for an error; only errno tells them apart. */
    errno = 0;
    ssize_t n = getline(&line, &room, file); /* of any length: comments may be long */
    if (n < 0) {
      bool is_end = feof(file) && errno == 0;
      err = is_end ? CV_OK : cv_fail(why, errno == ENOMEM ? CV_ERR_NOMEM : CV_ERR_IO, "%s: %s", path, strerror(errno));
      break;
    }
    strip(line, (size_t)n);
    err = line[0] == '\0' ? CV_OK : take_line(line, path, number, denied, &cap, why);
  }
  free(line);
  return err;
}

enum cv_err cv_denied_load(const char *path, struct cv_denied *ret, struct cv_why *why) {
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  struct cv_denied denied = {0};
  enum cv_err err = read_lines(file, path, &denied, why);
  (void)fclose(file);
  if (err != CV_OK) {
    cv_denied_fini(&denied);
    return err;
  }
  if (denied.count > 0) {
    /* Sorted for bsearch(): looked up for each certificate of each handshake. */
    qsort(denied.serial, denied.count, sizeof(*denied.serial), compare);
  }
  *ret = denied;
  return CV_OK;
}

void cv_denied_fini(struct cv_denied *denied) {
  free(denied->serial);
  *denied = (struct cv_denied){0};
}

static bool lists(const struct cv_denied *denied, const struct cv_serial *serial) {
  return denied->count > 0 && bsearch(serial, denied->serial, denied->count, sizeof(*serial), compare) != NULL;
}

bool cv_denied_has(const struct cv_denied *denied, const X509 *cert) {
  struct cv_serial serial;
  /* A serial number that cannot be compared counts as revoked. */
  return denied->count > 0 && (!cv_serial_of(cert, &serial) || lists(denied, &serial));
}

bool cv_denied_lists(const struct cv_denied *denied, const char *serial) {
  struct cv_serial parsed;
  return denied->count > 0 && (!cv_serial_parse(serial, &parsed) || lists(denied, &parsed));
}

size_t cv_denied_beyond(const struct cv_denied *denied, const struct cv_denied *other) {
  size_t beyond = 0;
  for (size_t i = 0; i < denied->count; i++) {
    beyond += !lists(other, &denied->serial[i]);
  }
  return beyond;
}
