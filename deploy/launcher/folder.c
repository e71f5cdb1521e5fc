/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_empty(const char *path) {
  DIR *dir = opendir(path);
  bool empty = dir != NULL;
  for (struct dirent *entry = dir == NULL ? NULL : readdir(dir); entry != NULL; entry = readdir(dir)) {
    empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
  }
  if (dir != NULL) {
    (void)closedir(dir);
  }
  return empty;
}

static enum cv_err make_temporary(struct cv_folder *ret, struct cv_why *why) {
  const char *parent = getenv("TMPDIR");
  struct cv_folder folder = {.is_temporary = true};
  (void)snprintf(folder.path, sizeof(folder.path), "%s/crowdveil-XXXXXX",
                 parent != NULL && parent[0] == '/' ? parent : "/tmp");
  if (mkdtemp(folder.path) == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot make the folder: %s", folder.path, strerror(errno));
  }
  *ret = folder;
  return CV_OK;
}

enum cv_err cv_folder_make(const char *path, struct cv_folder *ret, struct cv_why *why) {
  char absolute[PATH_MAX];
  struct cv_folder folder = {0};
  if (path == NULL) {
    return make_temporary(ret, why);
  }
  if (mkdir(path, 0700) != 0 && errno != EEXIST) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot make the folder: %s", path, strerror(errno));
  }
  if (realpath(path, absolute) == NULL || strlen(absolute) + 64 > sizeof(folder.path)) {
    return cv_fail(why, CV_ERR_IO, "%s: the path does not exist or is too long", path);
  }
  if (!is_empty(absolute)) {
    return cv_fail(why, CV_ERR_EXISTS, "%s: not empty; expected a new or empty folder", path);
  }
  memcpy(folder.path, absolute, strlen(absolute) + 1);
  *ret = folder;
  return CV_OK;
}

enum cv_err cv_folder_add(const struct cv_folder *folder, const char *name, struct cv_why *why) {
  const char *path = cv_folder_file(folder, name);
  return mkdir(path, 0700) == 0 ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
}

const char *cv_folder_file(const struct cv_folder *folder, const char *name) {
  static char path[8][CV_FOLDER_BYTES + 128];
  static unsigned turn;
  char *at = path[turn++ % CV_COUNT(path)];
  (void)snprintf(at, sizeof(path[0]), "%s/%s", folder->path, name);
  return at;
}

enum cv_err cv_folder_write(const char *path, const char *text, struct cv_why *why) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  bool written = fputs(text, file) >= 0;
  if (fclose(file) != 0 || !written) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
  }
  return CV_OK;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
  (void)remove(path);
  return 0;
}

void cv_folder_remove(const struct cv_folder *folder) {
  enum { OPEN_FOLDERS = 16 };
  (void)nftw(folder->path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}
