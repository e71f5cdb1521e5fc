/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/worker_rows.h"

#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"

enum { SERVED_MOST = 3 /* campaigns and laws of a file */ };

static const char *const file_name[FILES] = {"fuzz", "other"};

uint32_t files_find(const struct cv_terms *terms) {
  return strcmp(terms->name, file_name[1]) == 0 ? 1 : 0;
}

uint32_t files_law(const struct cv_terms *terms) {
  if (terms->privatizer.params.count == 0) {
    return 0;
  }
  return strcmp(terms->privatizer.name, "laplace") == 0                 ? 3
         : cv_params_number(&terms->privatizer.params, "epsilon") < 0.4 ? 1
                                                                        : 2;
}

void files_set_law(struct cv_choice *privatizer, uint32_t law) {
  static const char *const names[ROW_LAWS] = {"none", "randomized-response", "randomized-response", "laplace"};
  (void)snprintf(privatizer->name, sizeof(privatizer->name), "%s", names[law]);
  CV_REQUIRE(law == 0 || cv_params_set_number(&privatizer->params, "epsilon", law == 1 ? 0.25 : 0.5) == CV_OK);
}

static uint64_t row_of(void *data, uint32_t arm, uint64_t place) {
  struct files *files = ((struct file *)data)->files;
  CV_REQUIRE(arm < ROW_ARMS && place < ROWS_EACH);
  files->at = place;
  files->row = (place * 7 + arm) % ROWS_EACH;
  return files->row;
}

static enum cv_err score_of(void *data, uint32_t arm, const struct cv_moment *at, int64_t *ret_score) {
  CV_REQUIRE(arm < ROW_ARMS);
  if (at->place >= ROWS_EACH) {
    return CV_ERR_LIMIT;
  }
  *ret_score = (int64_t)(cv_mix64(row_of(data, arm, at->place) << 8 | arm) % (CV_GRID + 1));
  return CV_OK;
}

static enum cv_err serve(void *data, const struct cv_work *work, const struct cv_terms *terms, uint64_t law,
                         uint64_t *ret_taken, struct cv_why *why) {
  struct files *files = data;
  struct file *file = work->data;
  uint32_t served = 0, which = files_law(terms);
  CV_REQUIRE(terms->id >= 1 && terms->id <= ROW_CAMPAIGNS && (law == 0) == (which == 0));
  CV_REQUIRE(ret_taken == NULL || work->is_part);
  for (uint32_t i = 0; i < (ROW_CAMPAIGNS + 1) * ROW_LAWS; i++) {
    served += file->served[i / ROW_LAWS][i % ROW_LAWS];
  }
  files->denied[terms->id] = served >= SERVED_MOST && !file->served[terms->id][which];
  if (files->denied[terms->id]) {
    return cv_fail(why, CV_ERR_DENIED, "the rows have been disclosed too often");
  }
  file->served[terms->id][which] = true;
  for (uint32_t arm = 0; ret_taken != NULL && arm < ROW_ARMS; arm++) {
    ret_taken[arm] = file->taken[terms->id][arm];
  }
  return CV_OK;
}

static void take(void *data, const struct cv_work *work, const struct cv_terms *terms, uint32_t arm, uint64_t taken) {
  struct file *file = work->data;
  uint64_t *known = &file->taken[terms->id][arm];
  (void)data;
  CV_REQUIRE(work->is_part && taken == *known + 1 && taken <= ROWS_EACH);
  *known = taken;
}

void files_start(struct files *files, uint8_t parts) {
  *files = (struct files){.record = {.serve = serve, .take = take, .data = files}};
  for (uint32_t i = 0; i < FILES; i++) {
    files->file[i].files = files;
    files->work[i] = (struct cv_work){.data = &files->file[i],
                                      .campaign = file_name[i],
                                      .arms = ROW_ARMS,
                                      .print = 1 + i,
                                      .file = "rows.csv",
                                      .scale = {.low = 0, .high = 1},
                                      .is_part = (parts >> i & 1) != 0,
                                      .row = row_of,
                                      .score = score_of};
  }
}

/* The token is the row's under its law; a row of a part leaves once to a campaign, and is recorded before. */
void files_hear(struct files *files, uint64_t campaign, uint32_t number, const struct disclosure *heard) {
  struct file *file = &files->file[heard->file];
  CV_REQUIRE(heard->arm < ROW_ARMS && heard->row < ROWS_EACH);
  bool *is_out = &file->is_out[heard->law][heard->arm][heard->row];
  int64_t *value = &file->value[heard->law][heard->arm][heard->row];
  CV_REQUIRE(!*is_out || *value == heard->value);
  *is_out = true;
  *value = heard->value;
  if (files->work[heard->file].is_part) {
    uint32_t *left = &file->left[campaign][heard->arm][heard->row];
    CV_REQUIRE(heard->at < file->taken[campaign][heard->arm] && (*left == 0 || *left == number + 1));
    *left = number + 1;
  }
}
