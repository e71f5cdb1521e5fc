/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/quality/rows.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/err.h"
#include "common/base/grid.h"
#include "common/base/rng.h"

enum { ROUNDS = 6 };

void cv_rows_fini(struct cv_rows *rows) {
  if (rows == NULL) {
    return;
  }
  free(rows->start);
  free(rows->value);
  *rows = (struct cv_rows){0};
}

void cv_rows_part(struct cv_rows *rows, uint32_t part, uint32_t parts) {
  uint64_t kept = 0, start = 0;
  for (uint32_t arm = 0; arm < rows->arms; arm++) {
    uint64_t end = rows->start[arm + 1];
    for (uint64_t row = start + part - 1; row < end; row += parts) {
      rows->value[kept++] = rows->value[row];
    }
    start = end;
    rows->start[arm + 1] = kept;
  }
}

double cv_rows_mean(const struct cv_rows *rows, uint32_t arm) {
  uint64_t count = rows->start[arm + 1] - rows->start[arm];
  uint64_t sum = 0;
  for (uint64_t i = rows->start[arm]; i < rows->start[arm + 1]; i++) {
    sum += rows->value[i];
  }
  return count == 0 ? nan("") : (double)sum / (double)count / (double)CV_GRID;
}

static uint64_t feistel(uint64_t key, unsigned half_bits, uint64_t index) {
  uint64_t mask = (UINT64_C(1) << half_bits) - 1;
  uint64_t left = index >> half_bits, right = index & mask;
  for (uint64_t round = 1; round <= ROUNDS; round++) {
    uint64_t next = left ^ (cv_mix64(key + (round << 56) + right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

uint64_t cv_permute(uint64_t key, uint64_t n, uint64_t index) {
  CV_REQUIRE(index < n && n <= UINT64_C(1) << 62);
  unsigned half_bits = 1;
  while (n > UINT64_C(1) << (2 * half_bits)) {
    half_bits++;
  }
  /* Cycle walking: the network permutes [0, 4^half_bits), so repeat until the image is below n. */
  do {
    index = feistel(key, half_bits, index);
  } while (index >= n);
  return index;
}
