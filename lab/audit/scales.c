/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scores of a data file, from the file to their noisy sum. Two files differ in one row, whose score is the lowest
 * of the scale, or far above its highest. On a declared scale it moves the sum by one score. On a scale that follows
 * from the file it moves all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/grid.h"
#include "common/base/rng.h"
#include "common/noise/dlaplace.h"
#include "lab/audit/subjects.h"
#include "worker/data.h"

static const struct cv_scale STARS = {.low = 1, .high = 5};

static enum cv_err read_sum(const char *path, bool is_declared, int64_t *ret) {
  struct cv_items_csv ask = {.format = CV_FORMAT_CSV,
                             .file = (char[64]){0},
                             .item_column = "item",
                             .score_column = "score",
                             .delimiter = ',',
                             .clamps = is_declared};
  struct cv_data data;
  (void)snprintf(ask.file, 64, "%s", path);
  if (is_declared) {
    ask.scale = STARS;
  }
  CV_TRY(cv_data_read(&ask, is_declared, &data, NULL));
  *ret = 0;
  for (uint64_t row = 0; row < data.rows.start[data.rows.arms]; row++) {
    *ret += data.rows.value[row];
  }
  cv_data_fini(&data);
  return CV_OK;
}

/* The sum of the scores of a file in memory. */
static enum cv_err sum_of(bool neighbour, bool is_declared, int64_t *ret) {
  char path[64];
  int fd = memfd_create("scores", MFD_CLOEXEC);
  if (fd < 0) {
    return CV_ERR_IO;
  }
  int bytes = dprintf(fd, "item,score\nRoma,4\nRoma,4\nRoma,4\nRoma,4\nRoma,4\nRoma,%d\n", neighbour ? 500 : 1);
  (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  enum cv_err err = bytes < 0 ? CV_ERR_IO : read_sum(path, is_declared, ret);
  (void)close(fd);
  return err;
}

static enum cv_err sample(const struct cv_audit_subject *self, bool neighbour, uint64_t stream, uint64_t runs,
                          int64_t *row) {
  struct cv_dlaplace law;
  struct cv_rng_seeded seeded;
  int64_t sum;
  CV_TRY(sum_of(neighbour, self->is_sound, &sum));
  CV_TRY(cv_dlaplace_init(&law, CV_GRID * (uint64_t)CV_MICRO, self->epsilon_micro));
  cv_rng_seeded_init(&seeded, stream, CV_RNG_NOISE, 0, 0);
  for (uint64_t run = 0; run < runs; run++) {
    row[run] = sum + cv_dlaplace_draw(&law, &seeded.rng);
  }
  return CV_OK;
}

static void label(const struct cv_audit_subject *self, uint32_t at, char text[CV_AUDIT_TEXT]) {
  (void)snprintf(text, CV_AUDIT_TEXT, "sum");
}

void cv_audit_scale(bool is_declared, uint64_t epsilon_micro, struct cv_audit_subject *ret) {
  *ret = (struct cv_audit_subject){
      .is_sound = is_declared,
      .epsilon = (double)epsilon_micro / CV_MICRO,
      .share = 4,
      .width = 1,
      .series = 1,
      .sample = sample,
      .label = label,
      .epsilon_micro = epsilon_micro,
  };
  (void)snprintf(ret->part, sizeof(ret->part), "gateway");
  (void)snprintf(ret->setting, sizeof(ret->setting), is_declared ? "a declared scale" : "a scale of the file's own");
}
