/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the harnesses: their entry point, and ways to pass bytes to code that reads files. */
#ifndef CV_FUZZ_FUZZ_H
#define CV_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/text.h"

/* The entry point for libFuzzer, AFL++'s driver and the replay (driver.c). Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The input as a regular file in memory. */
struct fuzz_file {
  int fd;
  char path[32];
};

static inline void fuzz_file_make(struct fuzz_file *file, const uint8_t *bytes, size_t n) {
  file->fd = memfd_create("input", MFD_CLOEXEC);
  CV_REQUIRE(file->fd >= 0);
  CV_REQUIRE(n == 0 || write(file->fd, bytes, n) == (ssize_t)n);
  (void)snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
}

static inline void fuzz_file_drop(const struct fuzz_file *file) {
  (void)close(file->fd);
}

/* The input as a string on the heap, so that the sanitizer sees where it ends. */
static inline char *fuzz_text(const uint8_t *bytes, size_t n) {
  char *text = malloc(n + 1);
  CV_REQUIRE(text != NULL);
  if (n > 0) {
    memcpy(text, bytes, n);
  }
  text[n] = '\0';
  return text;
}

/* Checks a message for people: one line, not empty, without control characters. */
static inline void fuzz_line(const char *text) {
  CV_REQUIRE(text[0] != '\0' && cv_text_is_clean(text, strlen(text)));
}

/* Inputs of several records: each is a kind, an argument and a 16-bit length, then its bytes. False at the end. */
struct fuzz_record {
  uint8_t kind, argument;
  struct cv_reader bytes;
  size_t n;
};

static inline bool fuzz_record_next(struct cv_reader *in, struct fuzz_record *ret) {
  ret->kind = cv_read_u8(in);
  ret->argument = cv_read_u8(in);
  size_t n = cv_read_u8(in);
  n |= (size_t)cv_read_u8(in) << 8;
  if (in->failed) {
    return false;
  }
  size_t left = (size_t)(in->end - in->at);
  ret->n = n < left ? n : left;
  ret->bytes = cv_reader_over(cv_read(in, ret->n), ret->n);
  return true;
}

#endif
