/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/shard.h"

#include <stdbool.h>

/* Reads a number from 1 to the limit that ends at the character `end`. Moves *at past it. */
static bool read_number(const char **at, char end, uint64_t *ret) {
  uint64_t value = 0;
  const char *c = *at;
  for (; *c >= '0' && *c <= '9' && value <= CV_LAB_SHARDS_MAX; c++) {
    value = value * 10 + (uint64_t)(*c - '0');
  }
  if (*c != end || value < 1 || value > CV_LAB_SHARDS_MAX) {
    return false;
  }
  *at = c + (end != '\0');
  *ret = value;
  return true;
}

enum cv_err cv_lab_shard_parse(const char *text, struct cv_lab_shard *ret, struct cv_why *why) {
  struct cv_lab_shard shard;
  const char *at = text;
  if (!read_number(&at, '/', &shard.index) || !read_number(&at, '\0', &shard.of) || shard.index > shard.of) {
    return cv_fail(why, CV_ERR_INVALID, "\"%.40s\" is not a shard; expected I/N with I from 1 to N and N at most %d",
                   text, CV_LAB_SHARDS_MAX);
  }
  *ret = shard;
  return CV_OK;
}

uint64_t cv_lab_shard_count(const struct cv_lab_shard *shard, uint64_t pieces) {
  /* The first pieces % of shards have one piece more than the others. */
  return pieces / shard->of + (pieces % shard->of >= shard->index);
}

uint64_t cv_lab_shard_piece(const struct cv_lab_shard *shard, uint64_t i) {
  return i * shard->of + shard->index - 1;
}
