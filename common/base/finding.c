/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/finding.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/base/text.h"

enum { LINE_BYTES = 2048, ROOM_MIB = 256 };

const char *cv_finding_text(enum cv_finding level) {
  static const char *const text[CV_FINDING_COUNT] = {"ok", "note", "warning", "wrong"};
  return text[level];
}

const char *cv_finding_advice(enum cv_err err, const char *advice) {
  return err == CV_ERR_VERSION ? "" : advice;
}

void cv_finding(enum cv_finding level, const char *advice, const char *fmt, ...) {
  char what[LINE_BYTES], todo[LINE_BYTES];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(what, sizeof(what), fmt, args);
  va_end(args);
  (void)snprintf(todo, sizeof(todo), "%s", advice);
  /* Tabs separate the fields of a line and are cleaned out of them. */
  cv_text_clean(what, strlen(what));
  cv_text_clean(todo, strlen(todo));
  (void)printf("%s\t%s\t%s\n", cv_finding_text(level), what, todo);
}

void cv_finding_stranger(void *name, const char *what) {
  cv_finding(CV_FINDING_WARNING,
             "no program of ours makes it: find out who did, and remove it while the program is stopped",
             "database %s: %s; expected nothing besides its own tables", *(const char **)name, what);
}

void cv_fact(const char *line, ...) {
  va_list args;
  va_start(args, line);
  (void)printf("fact\t");
  (void)vprintf(line, args);
  (void)printf("\n");
  va_end(args);
}

bool cv_finding_folder(const char *path) {
  struct stat info;
  struct statvfs room;
  if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
    cv_finding(CV_FINDING_WRONG, "create it with mode 0700, owned by the program's user, or correct `state`",
               "folder %s: does not exist", path);
    return false;
  }
  if ((info.st_mode & 022) != 0) {
    cv_finding(CV_FINDING_WRONG, "chmod go-w", "folder %s: mode %04o lets others write into it", path,
               (unsigned)info.st_mode & 07777U);
  }
  if (statvfs(path, &room) == 0) {
    unsigned long long mib = (unsigned long long)room.f_bavail * room.f_frsize >> 20;
    if (mib < ROOM_MIB) {
      cv_finding(CV_FINDING_WARNING, "free disk space: a program that cannot store its state stops",
                 "folder %s: %llu MiB are free", path, mib);
    } else {
      cv_finding(CV_FINDING_OK, "", "folder %s: %llu MiB are free", path, mib);
    }
  }
  return true;
}
