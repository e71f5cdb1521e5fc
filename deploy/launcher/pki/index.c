/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/pki/index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/array.h"
#include "common/base/before.h"
#include "common/net/certificate.h"
#include "deploy/launcher/pki/files.h"

enum { LINE_BYTES = 320, FIELDS_BEFORE = 3, FIELDS = 6 };

/* --- reading --- */

static bool read_time(const char *text, int64_t *ret) {
  char *end;
  if (strcmp(text, "-") == 0) {
    *ret = 0;
    return true;
  }
  errno = 0;
  *ret = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0';
}

/* Returns the number of fields; 0 unless they are all there and what they should be. */
static int read_line(char *line, struct cv_pki_entry *ret) {
  char *field[FIELDS] = {0};
  int fields = 0;
  size_t n = strlen(line);
  if (n == 0 || line[n - 1] != '\n') { /* cut, or too long */
    return 0;
  }
  line[n - 1] = '\0';
  for (char *rest = line; rest != NULL && fields <= FIELDS; fields++) {
    char *text = strsep(&rest, "\t");
    if (fields < FIELDS) {
      field[fields] = text;
    }
  }
  *ret = (struct cv_pki_entry){0};
  bool is_good =
      fields == FIELDS_BEFORE ||
      (fields == FIELDS && cv_serial_parse(field[0], &ret->serial) &&
       cv_identity_parse(field[1], &ret->identity, NULL) == CV_OK && read_time(field[2], &ret->not_after) &&
       read_time(field[3], &ret->made) && read_time(field[4], &ret->superseded) && read_time(field[5], &ret->revoked));
  return is_good ? fields : 0;
}

static enum cv_err read_lines(FILE *file, const char *path, struct cv_pki_index *index, struct cv_why *why) {
  char line[LINE_BYTES];
  for (unsigned number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
    struct cv_pki_entry *entry = CV_ARRAY_PUSH(index->entry, index->count, index->cap);
    if (entry == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "%s: no memory", path);
    }
    int fields = read_line(line, entry);
    if (fields == FIELDS_BEFORE) {
      return cv_fail(why, CV_ERR_VERSION,
                     "%s: an index " CV_BEFORE "; make a new CA in another folder: crowdveil pki make", path);
    }
    if (fields == 0) {
      return cv_fail(why, CV_ERR_DAMAGED, "%s:%u: expected SERIAL, IDENTITY, SECONDS and three more times, with tabs",
                     path, number);
    }
  }
  return ferror(file) ? cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno)) : CV_OK;
}

enum cv_err cv_pki_index_read(const char *path, struct cv_pki_index *ret, struct cv_why *why) {
  struct cv_pki_index index = {.fd = -1};
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  enum cv_err err = read_lines(file, path, &index, why);
  (void)fclose(file);
  if (err != CV_OK) {
    cv_pki_index_close(&index);
    return err;
  }
  *ret = index;
  return CV_OK;
}

/* --- the lock --- */

/* Returns true if `path` still is the open file. */
static bool is_at(int fd, const char *path) {
  struct stat open_, there;
  return fstat(fd, &open_) == 0 && stat(path, &there) == 0 && open_.st_dev == there.st_dev &&
         open_.st_ino == there.st_ino;
}

enum cv_err cv_pki_index_open(const char *path, bool create, struct cv_pki_index *ret, struct cv_why *why) {
  int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0) {
    return cv_fail(why, errno == EEXIST ? CV_ERR_EXISTS : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  if (flock(fd, LOCK_EX) != 0) {
    enum cv_err err = cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
    (void)close(fd);
    return err;
  }
  if (!is_at(fd, path)) { /* the previous owner of the lock replaced or removed the file: open the new one */
    (void)close(fd);
    return cv_pki_index_open(path, create, ret, why);
  }
  enum cv_err err = cv_pki_index_read(path, ret, why);
  if (err != CV_OK) {
    (void)close(fd);
    return err;
  }
  ret->fd = fd;
  return CV_OK;
}

void cv_pki_index_close(struct cv_pki_index *index) {
  if (index->fd >= 0) {
    (void)close(index->fd);
  }
  free(index->entry);
  *index = (struct cv_pki_index){.fd = -1};
}

/* --- writing --- */

struct stamp {
  char text[24];
};

static struct stamp stamp_of(int64_t at) {
  struct stamp stamp = {.text = "-"};
  if (at != 0) {
    (void)snprintf(stamp.text, sizeof(stamp.text), "%" PRId64, at);
  }
  return stamp;
}

static bool write_lines(FILE *file, const struct cv_pki_index *index) {
  for (size_t i = 0; i < index->count; i++) {
    const struct cv_pki_entry *entry = &index->entry[i];
    if (fprintf(file, "%s\tcrowdveil:%s/%s\t%" PRId64 "\t%s\t%s\t%s\n", entry->serial.hex,
                cv_role_text(entry->identity.role), entry->identity.name, entry->not_after, stamp_of(entry->made).text,
                stamp_of(entry->superseded).text, stamp_of(entry->revoked).text) < 0) {
      return false;
    }
  }
  return true;
}

enum cv_err cv_pki_index_save(struct cv_pki_index *index, const char *path, struct cv_why *why) {
  FILE *file;
  CV_TRY(cv_pki_file_stage(path, 0600, &file, why));
  /* The new file is locked before it has its name, so the lock passes to it without a gap. */
  int fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
  bool is_locked = fd >= 0 && flock(fd, LOCK_EX) == 0;
  enum cv_err err = cv_pki_file_adopt(file, is_locked && write_lines(file, index), path, why);
  if (fd >= 0 && is_at(fd, path)) {
    (void)close(index->fd);
    index->fd = fd;
  } else if (fd >= 0) {
    (void)close(fd);
  }
  return err;
}

/* --- entries --- */

static bool is_same(const struct cv_identity *a, const struct cv_identity *b) {
  return a->role == b->role && strcmp(a->name, b->name) == 0;
}

static enum cv_err refuse_second(const struct cv_pki_entry *entry, struct cv_why *why) {
  const char *role = cv_role_text(entry->identity.role), *name = entry->identity.name;
  return entry->revoked != 0
             ? cv_fail(why, CV_ERR_EXISTS,
                       "%s/%s: its certificate %s was revoked on %s; expected --renew to make another", role, name,
                       entry->serial.hex, cv_certificate_date(entry->revoked).text)
             : cv_fail(why, CV_ERR_EXISTS,
                       "%s/%s: has a certificate already, %s, valid until %s; expected --renew to make another; if the "
                       "first one is lost, revoke it",
                       role, name, entry->serial.hex, cv_certificate_date(entry->not_after).text);
}

enum cv_err cv_pki_index_check(const struct cv_pki_index *index, const struct cv_identity *identity, bool renew,
                               int64_t now, struct cv_why *why) {
  /* The newest first: of an identity's certificates the message names the one in use. */
  for (size_t i = index->count; i-- > 0;) {
    const struct cv_pki_entry *entry = &index->entry[i];
    bool is_own = is_same(&entry->identity, identity);
    if (entry->not_after <= now || (is_own && (renew || entry->superseded != 0))) {
      continue;
    }
    if (is_own) {
      return refuse_second(entry, why);
    }
    if (entry->revoked == 0 && cv_identity_overlaps(&entry->identity, identity)) {
      return cv_fail(why, CV_ERR_EXISTS, "%s/%s: overlaps %s/%s, which has a certificate already, %s",
                     cv_role_text(identity->role), identity->name, cv_role_text(entry->identity.role),
                     entry->identity.name, entry->serial.hex);
    }
  }
  return CV_OK;
}

enum cv_err cv_pki_index_add(struct cv_pki_index *index, const struct cv_pki_entry *entry, struct cv_why *why) {
  if (CV_ARRAY_ROOM(index->entry, index->count + 1, index->cap) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "%s", cv_err_text(CV_ERR_NOMEM));
  }
  for (size_t i = 0; i < index->count; i++) {
    struct cv_pki_entry *other = &index->entry[i];
    if (other->superseded == 0 && is_same(&other->identity, &entry->identity)) {
      other->superseded = entry->made;
    }
  }
  index->entry[index->count++] = *entry;
  return CV_OK;
}

struct cv_pki_entry *cv_pki_index_find(const struct cv_pki_index *index, const struct cv_serial *serial) {
  for (size_t i = 0; i < index->count; i++) {
    if (strcmp(index->entry[i].serial.hex, serial->hex) == 0) {
      return &index->entry[i];
    }
  }
  return NULL;
}

const char *cv_pki_entry_state(const struct cv_pki_entry *entry, int64_t now) {
  return entry->revoked != 0       ? "revoked"
         : entry->not_after <= now ? "expired"
         : entry->superseded != 0  ? "superseded"
                                   : "valid";
}
