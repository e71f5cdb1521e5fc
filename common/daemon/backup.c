/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/backup.h"

#include <stdio.h>

enum {
  PAGES = 32,            /* between two looks at the clock */
  STEP_NS = 3000 * 1000, /* a batch that is complete meanwhile waits for the rest of the step */
  RESTS = 9,             /* the pause after a step, in steps */
  NS_IN_MS = 1000 * 1000,
};

void cv_backup_start(struct cv_backup *backup) {
  (void)uv_timer_init(backup->loop, &backup->rest);
  backup->rest.data = backup->work.data = backup;
  backup->has_timer = true;
}

enum cv_err cv_backup_begin(struct cv_backup *backup, struct cv_db *db, const char *folder, struct cv_why *why) {
  if (backup->active) {
    return cv_fail(why, CV_ERR_EXISTS, "a copy is being made already; try again when it is complete");
  }
  if (snprintf(backup->path, sizeof(backup->path), "%s/" CV_BACKUP_FILE, folder) >= (int)sizeof(backup->path)) {
    return cv_fail(why, CV_ERR_LIMIT, "state: the path is too long");
  }
  backup->db = db;
  backup->active = true;
  backup->done = false;
  return CV_OK;
}

/* On the storage thread, which uses the database alone until after(). */
static enum cv_err step(struct cv_backup *backup, struct cv_why *why) {
  uint64_t began_ns = uv_hrtime();
  if (backup->copy == NULL) {
    CV_TRY(cv_db_copy_begin(backup->db, backup->path, &backup->copy, why));
  }
  while (!backup->done && uv_hrtime() - began_ns < STEP_NS) {
    CV_TRY(cv_db_copy_step(backup->copy, PAGES, &backup->done, why));
  }
  backup->step_ns = uv_hrtime() - began_ns;
  return CV_OK;
}

static void work(uv_work_t *request) {
  struct cv_backup *backup = request->data;
  backup->err = step(backup, &backup->why);
}

static void end(struct cv_backup *backup) {
  cv_db_copy_end(backup->copy);
  backup->copy = NULL;
  backup->active = false;
}

static void tell(struct cv_backup *backup) {
  uint64_t bytes = 0;
  int fd = backup->err == CV_OK ? cv_db_copy_take(backup->copy, &bytes) : -1;
  end(backup);
  backup->made(backup->data, fd, bytes, &backup->why);
}

static void on_rested(uv_timer_t *timer) {
  struct cv_backup *backup = timer->data;
  backup->resting = false;
}

static void after(uv_work_t *request, int status) {
  struct cv_backup *backup = request->data;
  CV_REQUIRE(status == 0);
  backup->working = false;
  cv_turn_give_back(backup->turn);
  if (backup->stopped) {
    end(backup);
    return;
  }
  if (backup->done || backup->err != CV_OK) {
    tell(backup);
    return;
  }
  backup->resting = true;
  (void)uv_timer_start(&backup->rest, on_rested, RESTS * backup->step_ns / NS_IN_MS + 1, 0);
}

void cv_backup_turn(struct cv_backup *backup) {
  if (!backup->active || backup->working || backup->resting || backup->stopped || !cv_turn_take(backup->turn)) {
    return;
  }
  backup->working = true;
  int rc = uv_queue_work(backup->loop, &backup->work, work, after);
  CV_REQUIRE(rc == 0);
}

void cv_backup_stop(struct cv_backup *backup) {
  backup->stopped = true;
  if (backup->has_timer) {
    backup->has_timer = false;
    uv_close((uv_handle_t *)&backup->rest, NULL);
  }
  if (!backup->working) {
    end(backup);
  }
}
