/* SPDX-License-Identifier: Apache-2.0 */
/* Replays test vectors; see `usage`. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "tests/vectors/vector.h"

static const char usage[] =
    "usage: replay FOLDER...\n"
    "Does the operations of all test vectors, files *.json of draft-irtf-cfrg-vdaf, again, and prints a line for each "
    "file\n"
    "in TAP. Algorithms: Prio3Count, Prio3Sum and XofTurboShake128; a file's name begins with one. Others are "
    "skipped.\n"
    "Exit status 0 if no file failed, 1 if one failed, 2 if a folder cannot be read or has no such file.\n";

static int is_vector(const struct dirent *entry) {
  size_t n = strlen(entry->d_name);
  return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static enum outcome replay(const char *folder, const char *name, struct cv_why *why) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >= sizeof(path)) {
    return cv_fail(why, FAILED, "its path is too long");
  }
  json_t *root = vector_read(path, why);
  enum outcome outcome = root != NULL ? vector_replay(name, root, why) : FAILED;
  json_decref(root);
  return outcome;
}

/* One line of TAP, and before it the reason of a skip; a `#` in it would begin a directive. */
static void tell(int number, enum outcome outcome, const char *name, const struct cv_why *why) {
  struct cv_why line;
  cv_text_print(line.text, sizeof(line.text), "%s%s%s", name, outcome == FAILED ? ": " : "",
                outcome == FAILED ? why->text : "");
  for (char *at = line.text; *at != '\0'; at++) {
    *at = *at == '#' ? '?' : *at;
  }
  if (outcome == SKIPPED) {
    printf("# skipped: %s\n", why->text);
  }
  printf("%s %d - %s\n", outcome == FAILED ? "not ok" : "ok", number, line.text);
}

/* Replays a folder's files, or only counts them; -1 if it cannot be read or has none. */
static int visit(const char *folder, bool only_count, int *number, bool *failed) {
  struct dirent **entry;
  int n = scandir(folder, &entry, is_vector, alphasort);
  if (n <= 0) {
    (void)fprintf(stderr, "%s: %s; expected a folder with test vectors\n", cv_text_quote(folder).text,
                  n < 0 ? "cannot be read" : "has no file *.json");
    free(n == 0 ? entry : NULL);
    return -1;
  }
  for (int i = 0; i < n; i++) {
    if (!only_count) {
      struct cv_why why = {.text = ""};
      enum outcome outcome = replay(folder, entry[i]->d_name, &why);
      *failed |= outcome == FAILED;
      tell(++*number, outcome, entry[i]->d_name, &why);
    }
    free(entry[i]);
  }
  free(entry);
  return n;
}

int main(int argc, char **argv) {
  int total = 0, number = 0;
  bool failed = false;
  if (argc < 2 || argv[1][0] == '-') {
    (void)fputs(usage, stderr);
    return 2;
  }
  for (int i = 1; i < argc; i++) {
    int n = visit(argv[i], true, &number, &failed);
    if (n < 0) {
      return 2;
    }
    total += n;
  }
  printf("1..%d\n", total);
  for (int i = 1; i < argc; i++) {
    if (visit(argv[i], false, &number, &failed) < 0) {
      return 2;
    }
  }
  return failed ? 1 : 0;
}
