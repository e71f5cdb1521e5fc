/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for one test, removed with its contents. Include after cmocka.h. */
#ifndef CV_TESTS_FOLDER_H
#define CV_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct folder {
  char path[64];
};

static inline void folder_make(struct folder *folder) {
  /* In memory if possible: the tests are about the files' contents, not about the disk. */
  (void)snprintf(folder->path, sizeof(folder->path), "%s/crowdveil-test-XXXXXX",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  assert_non_null(mkdtemp(folder->path));
}

/* The path of `name` in the folder; one of four buffers in turn. */
static inline const char *folder_file(const struct folder *folder, const char *name) {
  static char path[4][320];
  static unsigned turn;
  char *at = path[turn++ % 4];
  (void)snprintf(at, sizeof(path[0]), "%s/%s", folder->path, name);
  return at;
}

/* Makes the file `name` of this text. */
static inline void folder_write(const struct folder *folder, const char *name, const char *text) {
  FILE *file = fopen(folder_file(folder, name), "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static inline void folder_remove(const struct folder *folder) {
  DIR *dir = opendir(folder->path);
  assert_non_null(dir);
  for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      assert_int_equal(remove(folder_file(folder, entry->d_name)), 0);
    }
  }
  (void)closedir(dir);
  assert_int_equal(rmdir(folder->path), 0);
}

#endif
