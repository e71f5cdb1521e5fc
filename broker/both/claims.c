/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/both/claims.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/finding.h"
#include "common/base/fingerprint.h"

enum { SHARE_FIELDS = 10, LINE_BYTES = 1024 };

void cv_claims_tell_other(const struct cv_digest *key) {
  cv_fact("other\t%s", cv_fingerprint_of(key).text);
}

void cv_claims_tell(const struct cv_recover_claim *claim, enum cv_end end) {
  cv_fact("share\t%" PRIu64 "\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
          claim->campaign, cv_end_text(end), claim->plans, claim->batches, claim->closings, claim->releases,
          claim->tokens, claim->worker_micro);
}

/* ---- reading ---- */

struct reading {
  const struct cv_digest *own;
  struct cv_recover_claims claims;
  bool is_ours, is_whole;
};

static size_t split(char *line, char *field[SHARE_FIELDS + 1]) {
  size_t n = 0;
  line[strcspn(line, "\r\n")] = '\0';
  for (char *at = strsep(&line, "\t"); at != NULL && n <= SHARE_FIELDS; at = strsep(&line, "\t")) {
    field[n++] = at;
  }
  return n;
}

static bool read_number(const char *text, uint64_t *ret) {
  char *end = NULL;
  errno = 0;
  *ret = strtoull(text, &end, 10);
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static bool read_share(char *const field[SHARE_FIELDS], struct cv_recover_claim *ret) {
  *ret = (struct cv_recover_claim){.campaign = 0};
  uint64_t *const number[SHARE_FIELDS] = {
      [2] = &ret->campaign, [4] = &ret->plans,  [5] = &ret->batches,     [6] = &ret->closings,
      [7] = &ret->releases, [8] = &ret->tokens, [9] = &ret->worker_micro};
  bool good = true;
  for (size_t i = 0; i < SHARE_FIELDS; i++) {
    good = good && (number[i] == NULL || read_number(field[i], number[i]));
  }
  return good && ret->campaign > 0 && ret->campaign <= UINT32_MAX;
}

/* Lines that are no facts are findings, for people. CV_ERR_INVALID for a share that cannot be read. */
static enum cv_err read_line(struct reading *reading, char *line) {
  char *field[SHARE_FIELDS + 1];
  size_t n = split(line, field);
  if (n < 2 || strcmp(field[0], "fact") != 0) {
    return CV_OK;
  }
  if (n == 3 && strcmp(field[1], "other") == 0) {
    struct cv_digest key;
    reading->is_ours = strlen(field[2]) == CV_FINGERPRINT_DIGITS && cv_fingerprint_read(field[2], &key) &&
                       cv_digest_is_same(&key, reading->own);
  } else if (strcmp(field[1], "read") == 0) {
    reading->is_whole = n == 2;
  } else if (strcmp(field[1], "share") == 0) {
    struct cv_recover_claim claim;
    return n == SHARE_FIELDS && read_share(field, &claim) ? cv_recover_claims_add(&reading->claims, &claim)
                                                          : CV_ERR_INVALID;
  }
  return CV_OK;
}

static enum cv_err read_file(FILE *file, const char *path, struct reading *reading, struct cv_why *why) {
  char line[LINE_BYTES];
  for (unsigned number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
    enum cv_err err = read_line(reading, line);
    if (err == CV_ERR_INVALID) {
      return cv_fail(why, err, "%s:%u: expected the number of a campaign, its state and six counts", path, number);
    }
    if (err != CV_OK) {
      return cv_fail(why, err, "%s", cv_err_text(err));
    }
  }
  return ferror(file) == 0 ? CV_OK : cv_fail(why, CV_ERR_IO, "%s: %s", path, strerror(errno));
}

static enum cv_err check(const struct reading *reading, const char *path, const char *program, struct cv_why *why) {
  if (!reading->is_ours) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: not about this party; expected the output of %s --examine, with the key %s", path, program,
                   cv_fingerprint_of(reading->own).text);
  }
  return reading->is_whole
             ? CV_OK
             : cv_fail(
                   why, CV_ERR_INVALID,
                   "%s: incomplete; expected the whole output of %s --examine, stopped and with a readable database",
                   path, program);
}

enum cv_err cv_claims_read(const char *path, const char *program, const struct cv_digest *own,
                           struct cv_recover_claims *claims, struct cv_why *why) {
  struct reading reading = {.own = own};
  FILE *file = fopen(path, "re");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_NOT_FOUND, "%s: %s", path, strerror(errno));
  }
  enum cv_err err = read_file(file, path, &reading, why);
  (void)fclose(file);
  err = err == CV_OK ? check(&reading, path, program, why) : err;
  for (size_t i = 0; err == CV_OK && i < reading.claims.n; i++) {
    err = cv_recover_claims_add(claims, &reading.claims.claim[i]);
  }
  cv_recover_claims_fini(&reading.claims);
  return err;
}
