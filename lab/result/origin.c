/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/crypto.h"

void cv_lab_origin_fini(struct cv_lab_origin *origin) {
  for (size_t i = 0; i < origin->files; i++) {
    free(origin->file[i].path);
  }
  free(origin->file);
  free(origin->name);
  free(origin->text);
  free(origin->series_name);
  free(origin->metric_name);
  free(origin->x);
  *origin = (struct cv_lab_origin){0};
}

size_t cv_lab_origin_moments(const struct cv_lab_origin *origin) {
  return origin->points / origin->settings;
}

size_t cv_lab_origin_numbers(const struct cv_lab_origin *origin) {
  return origin->series * cv_lab_origin_moments(origin) * origin->metrics;
}

struct cv_lab_place cv_lab_origin_place(const struct cv_lab_origin *origin, size_t setting, size_t number) {
  size_t moments = cv_lab_origin_moments(origin);
  return (struct cv_lab_place){.series = number / (moments * origin->metrics),
                               .point = setting + number / origin->metrics % moments,
                               .metric = number % origin->metrics};
}

bool cv_lab_origin_is_valid(const struct cv_lab_origin *origin) {
  /* Each factor is checked before the products, which could overflow with sizes from a damaged file. */
  const size_t most = CV_LAB_NUMBERS_MAX;
  return origin->series >= 1 && origin->series <= most && origin->points >= 1 && origin->points <= most &&
         origin->metrics >= 1 && origin->metrics <= most &&
         (origin->settings == 1 || origin->settings == origin->points) &&
         origin->series * cv_lab_origin_moments(origin) <= most && cv_lab_origin_numbers(origin) <= most;
}

/* The number, from 1, of the first line in which the texts differ. */
static size_t line_of_difference(const char *a, const char *b) {
  size_t line = 1;
  for (; *a == *b && *a != '\0'; a++, b++) {
    line += *a == '\n';
  }
  return line;
}

static enum cv_err match_files(const struct cv_lab_origin *found, const struct cv_lab_origin *expected,
                               const char *path, struct cv_why *why) {
  if (found->files != expected->files) {
    return cv_fail(why, CV_ERR_INVALID, "%s: results of %zu data files; expected %zu", path, found->files,
                   expected->files);
  }
  for (size_t i = 0; i < found->files; i++) {
    const struct cv_lab_data_file *a = &found->file[i], *b = &expected->file[i];
    /* By content: shards run on machines that store the file elsewhere. */
    if (a->bytes != b->bytes || strcmp(a->sha256, b->sha256) != 0) {
      return cv_fail(why, CV_ERR_INVALID,
                     "%s: results of other data: %.80s of %" PRIu64
                     " bytes, SHA-256 %.12s...; expected %.80s of %" PRIu64 " bytes, SHA-256 %.12s...",
                     path, a->path, a->bytes, a->sha256, b->path, b->bytes, b->sha256);
    }
  }
  return CV_OK;
}

enum cv_err cv_lab_origin_match(const struct cv_lab_origin *found, const struct cv_lab_origin *expected,
                                const char *path, struct cv_why *why) {
  static const char *const ways[] = {"sums drawn at once", "tokens drawn one by one (--token-level)"};
  if (strcmp(found->name, expected->name) != 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: results of experiment %s; expected %s", path, found->name, expected->name);
  }
  /* The whole text, comments too: telling which changes matter to the values would need a second reader. */
  if (strcmp(found->text, expected->text) != 0) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: results of another text of experiment %s, different from line %zu on; expected the same text",
                   path, found->name, line_of_difference(found->text, expected->text));
  }
  if (found->seed != expected->seed) {
    return cv_fail(why, CV_ERR_INVALID, "%s: results of seed %" PRIu64 "; expected seed %" PRIu64, path, found->seed,
                   expected->seed);
  }
  if (found->token_level != expected->token_level) {
    return cv_fail(why, CV_ERR_INVALID, "%s: results of %s; expected %s", path, ways[found->token_level],
                   ways[expected->token_level]);
  }
  CV_TRY(match_files(found, expected, path, why));
  /* Last: with equal texts and data, other sizes can only come from another version of the program. */
  if (found->settings != expected->settings || found->series != expected->series || found->points != expected->points ||
      found->metrics != expected->metrics) {
    return cv_fail(why, CV_ERR_INVALID, "%s: made by version %s, which measured other numbers; expected version %s",
                   path, found->program, expected->program);
  }
  return CV_OK;
}

void cv_lab_sha256_hex(const void *bytes, size_t n, char ret[CV_LAB_HEX_BYTES]) {
  static const char digit[] = "0123456789abcdef";
  struct cv_digest digest;
  cv_sha256(bytes, n, "", 0, &digest);
  for (size_t i = 0; i < CV_DIGEST_BYTES; i++) {
    ret[2 * i] = digit[digest.bytes[i] >> 4];
    ret[2 * i + 1] = digit[digest.bytes[i] & 15];
  }
  ret[CV_LAB_HEX_BYTES - 1] = '\0';
}

static enum cv_err read_mapped(int fd, const char *path, struct cv_lab_data_file *ret, struct cv_why *why) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  size_t n = (size_t)info.st_size;
  if (!S_ISREG(info.st_mode) || n == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: empty or not a regular file; expected a data file", path);
  }
  /* Mapped, not read: data files may be larger than memory. */
  void *bytes = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
  char *copy = strdup(path);
  if (bytes == MAP_FAILED || copy == NULL) {
    free(copy);
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
  }
  ret->path = copy;
  ret->bytes = n;
  cv_lab_sha256_hex(bytes, n, ret->sha256);
  (void)munmap(bytes, n);
  return CV_OK;
}

enum cv_err cv_lab_data_file_read(const char *path, struct cv_lab_data_file *ret, struct cv_why *why) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return cv_fail(why, errno == ENOENT ? CV_ERR_NOT_FOUND : CV_ERR_IO, "%s: %s", path, strerror(errno));
  }
  enum cv_err err = read_mapped(fd, path, ret, why);
  (void)close(fd);
  return err;
}
