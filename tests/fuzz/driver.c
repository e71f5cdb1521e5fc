/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a harness without libFuzzer: on the files, and on the files of the folders, that are its arguments; or, compiled
 * for AFL++, on AFL++'s inputs (one process for many).
 */
#include <dirent.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { INPUT_BYTES = 1 << 20 };

#ifdef __AFL_FUZZ_TESTCASE_LEN
#pragma clang diagnostic ignored "-Wgnu-statement-expression"
__AFL_FUZZ_INIT();

static void run_afl(void) {
  __AFL_INIT();
  const uint8_t *shared = __AFL_FUZZ_TESTCASE_BUF;
  while (__AFL_LOOP(10000)) {
    size_t n = (size_t)__AFL_FUZZ_TESTCASE_LEN;
    uint8_t *copy = malloc(n > 0 ? n : 1); /* of the exact size, so that the sanitizer sees where it ends */
    CV_REQUIRE(copy != NULL);
    memcpy(copy, shared, n);
    (void)LLVMFuzzerTestOneInput(copy, n);
    free(copy);
  }
}
#endif

static int replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  uint8_t *all = malloc(INPUT_BYTES);
  if (file == NULL || all == NULL) {
    (void)fprintf(stderr, "%s: cannot be read\n", path);
    exit(2);
  }
  size_t n = fread(all, 1, INPUT_BYTES, file);
  uint8_t *exact = malloc(n > 0 ? n : 1);
  CV_REQUIRE(exact != NULL);
  memcpy(exact, all, n);
  (void)fclose(file);
  free(all);
  (void)LLVMFuzzerTestOneInput(exact, n);
  free(exact);
  return 1;
}

static int replay(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) {
    return replay_file(path);
  }
  int count = 0;
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char name[4096];
    (void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
    if (entry->d_name[0] != '.') {
      count += replay_file(name);
    }
  }
  (void)closedir(folder);
  return count;
}

int main(int argc, char **argv) {
#ifdef __AFL_FUZZ_TESTCASE_LEN
  if (argc == 1) {
    run_afl();
    return 0;
  }
#endif
  int count = 0;
  for (int i = 1; i < argc; i++) {
    count += replay(argv[i]);
  }
  (void)printf("%d inputs\n", count); /* tests/run adds them up */
  return count > 0 ? 0 : 1;
}
