/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/experiment/data_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/text.h"
#include "lab/experiment/campaigns.h"
#include "worker/records.h"

static void add_column(struct cv_lab_data_need *need, const char *name) {
  if (name[0] != '\0') {
    (void)snprintf(need->column[need->columns++], CV_NAME_BYTES, "%s", name);
  }
}

enum cv_err cv_lab_data_need(const struct cv_lab_experiment *experiment, struct cv_lab_data_need *ret,
                             struct cv_why *why) {
  struct cv_campaign_file campaign;
  struct cv_lab_data_need need = {.delimiter = ','};
  CV_TRY(cv_lab_first_campaign(experiment, &campaign, why));
  const struct cv_items *items = &campaign.items;
  if (items->source == CV_SOURCE_CSV && items->csv.format == CV_FORMAT_CSV) {
    need.delimiter = items->csv.delimiter;
    add_column(&need, items->csv.item_column);
    add_column(&need, items->csv.versus_column);
    add_column(&need, items->csv.score_column);
    add_column(&need, items->csv.worker_column);
  } else if (items->source == CV_SOURCE_TAXI) {
    for (size_t i = 0; i < CV_TAXI_COLUMNS; i++) {
      add_column(&need, cv_taxi_columns[i]);
    }
  }
  cv_campaign_fini(&campaign);
  *ret = need;
  return CV_OK;
}

void cv_lab_data_columns(const struct cv_lab_data_need *need, char to[CV_LAB_DATA_TEXT]) {
  size_t used = 0;
  to[0] = '\0';
  for (size_t i = 0; i < need->columns; i++) {
    const char *separator = i == 0 ? "" : i + 1 < need->columns ? ", " : " and ";
    cv_text_print(to + used, CV_LAB_DATA_TEXT - used, "%s%s", separator, need->column[i]);
    used += strlen(to + used);
  }
}

static bool has_columns(const char *path, const struct cv_lab_data_need *need) {
  struct cv_records records;
  bool end = true;
  uint32_t at;
  if (cv_records_open(path, need->delimiter, &records, NULL) != CV_OK) {
    return false; /* whatever else lies in the folder is not our business */
  }
  bool has_all = cv_records_next(&records, &end, NULL) == CV_OK && !end;
  for (size_t i = 0; has_all && i < need->columns; i++) {
    has_all = cv_records_column(&records, need->column[i], &at, NULL) == CV_OK;
  }
  cv_records_close(&records);
  return has_all;
}

struct search {
  const char *root;
  const struct cv_lab_data_need *need;
  char found[CV_LAB_DATA_PATH]; /* the first, within root; "": none yet */
};

/* Takes a file that fits; CV_ERR_EXISTS if it is the second. */
static enum cv_err take(struct search *search, const char *path, struct cv_why *why) {
  if (!has_columns(path, search->need)) {
    return CV_OK;
  }
  if (search->found[0] != '\0') {
    char columns[CV_LAB_DATA_TEXT];
    size_t skip = strlen(search->root) + 1;
    cv_lab_data_columns(search->need, columns);
    return cv_fail(why, CV_ERR_EXISTS, "%.100s: %.150s and %.150s both have the columns %s; expected one such file",
                   search->root, search->found + skip, path + skip, columns);
  }
  (void)snprintf(search->found, sizeof(search->found), "%s", path);
  return CV_OK;
}

static enum cv_err look_at(struct search *search, const char *path, int depth, struct cv_why *why);

static enum cv_err look_into(struct search *search, const char *folder, int depth, struct cv_why *why) {
  struct dirent **entry;
  int n = scandir(folder, &entry, NULL, alphasort); /* sorted: the same two are named on every machine */
  enum cv_err err = CV_OK;
  if (n < 0) {
    return cv_fail(why, errno == ENOMEM ? CV_ERR_NOMEM : CV_ERR_IO, "%s: %s", folder, strerror(errno));
  }
  for (int i = 0; i < n; i++) {
    char path[CV_LAB_DATA_PATH];
    int bytes = snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
    if (err == CV_OK && entry[i]->d_name[0] != '.' && bytes < (int)sizeof(path)) {
      err = look_at(search, path, depth, why);
    }
    free(entry[i]);
  }
  free(entry);
  return err;
}

static enum cv_err look_at(struct search *search, const char *path, int depth, struct cv_why *why) {
  struct stat is;
  if (stat(path, &is) != 0) {
    return CV_OK;
  }
  if (S_ISDIR(is.st_mode) && depth > 0) {
    /* A folder within that is not readable has nothing for us; memory that runs out is another matter. */
    enum cv_err err = look_into(search, path, depth - 1, why);
    return err == CV_ERR_IO ? CV_OK : err;
  }
  return S_ISREG(is.st_mode) ? take(search, path, why) : CV_OK;
}

enum cv_err cv_lab_data_find(const char *folder, const struct cv_lab_data_need *need, char path[CV_LAB_DATA_PATH],
                             struct cv_why *why) {
  struct search search = {.root = folder, .need = need};
  CV_TRY(look_into(&search, folder, 1, why));
  if (search.found[0] == '\0') {
    char columns[CV_LAB_DATA_TEXT];
    cv_lab_data_columns(need, columns);
    return cv_fail(why, CV_ERR_NOT_FOUND, "no file of --data-folder has the columns %s", columns);
  }
  /* Absolute: a path in an experiment is relative to the experiment's folder. */
  return realpath(search.found, path) != NULL ? CV_OK
                                              : cv_fail(why, CV_ERR_IO, "%s: %s", search.found, strerror(errno));
}
