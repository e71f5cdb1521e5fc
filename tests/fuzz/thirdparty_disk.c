/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/thirdparty_disk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "thirdparty/replay.h"

static struct shelf *find(const struct disk *disk, const struct cv_thirdparty_campaign_key *key) {
  struct shelf *shelf = disk->first;
  while (shelf != NULL && (shelf->key.campaign != key->campaign || strcmp(shelf->key.broker, key->broker) != 0)) {
    shelf = shelf->next;
  }
  return shelf;
}

static struct shelf *create(struct disk *disk, const struct cv_delta *delta) {
  struct shelf *shelf = calloc(1, sizeof(*shelf));
  CV_REQUIRE(shelf != NULL && cv_spec_copy(&delta->spec, &shelf->spec) == CV_OK);
  shelf->key = delta->key;
  shelf->seed = delta->seed;
  shelf->spec_digest = delta->spec_digest;
  shelf->standing = calloc(delta->spec.arms, sizeof(*shelf->standing));
  CV_REQUIRE(shelf->standing != NULL);
  for (uint32_t i = 0; i < delta->spec.arms; i++) {
    shelf->standing[i].arm = i;
  }
  struct shelf **at = &disk->first;
  while (*at != NULL) {
    at = &(*at)->next;
  }
  *at = shelf;
  return shelf;
}

static void shelf_free(struct shelf *shelf) {
  for (size_t i = 0; i < shelf->kept.plans; i++) {
    free(shelf->kept.plan[i].plan.want);
  }
  free(shelf->kept.plan);
  free(shelf->kept.release);
  free(shelf->kept.decision);
  cv_buf_fini(&shelf->kept.state);
  cv_spec_fini(&shelf->spec);
  free(shelf->standing);
  free(shelf);
}

void disk_fini(struct disk *disk) {
  while (disk->first != NULL) {
    struct shelf *next = disk->first->next;
    shelf_free(disk->first);
    disk->first = next;
  }
}

static void keep_plan(struct cv_delta *kept, const struct cv_stored_plan *stored) {
  uint64_t number = stored->plan.number;
  CV_REQUIRE(number >= 1 && (number == kept->plans || number == kept->plans + 1));
  if (number == kept->plans) {
    free(kept->plan[--kept->plans].plan.want);
  }
  CV_REQUIRE(cv_delta_add_plan(kept, &stored->plan, stored->recorded) == CV_OK);
}

static void keep(struct shelf *shelf, const struct cv_delta *delta) {
  struct cv_delta *kept = &shelf->kept;
  for (size_t i = 0; i < delta->plans; i++) {
    keep_plan(kept, &delta->plan[i]);
  }
  for (size_t i = 0; i < delta->releases; i++) {
    CV_REQUIRE(delta->release[i].number == kept->releases + 1);
    CV_REQUIRE(cv_delta_add_release(kept, &delta->release[i]) == CV_OK);
  }
  for (size_t i = 0; i < delta->decisions; i++) {
    CV_REQUIRE(delta->decision[i].number == kept->decisions + 1);
    CV_REQUIRE(cv_delta_add_decision(kept, &delta->decision[i]) == CV_OK);
  }
  for (size_t i = 0; i < delta->standings; i++) {
    CV_REQUIRE(delta->standing[i].arm < shelf->spec.arms);
    shelf->standing[delta->standing[i].arm] = delta->standing[i];
  }
  if (delta->has_state) {
    cv_buf_clear(&kept->state);
    cv_buf_put(&kept->state, delta->state.data, delta->state.len);
  }
  shelf->row = delta->row;
  CV_REQUIRE(shelf->row.releases == kept->releases && shelf->row.decisions == kept->decisions);
  CV_REQUIRE(shelf->row.plan == kept->plans && shelf->row.accepted <= kept->plans);
  CV_REQUIRE(cv_text_is_clean(shelf->row.note, strlen(shelf->row.note)));
}

void disk_apply(struct disk *disk, const struct cv_thirdparty_batch *batch) {
  for (const struct cv_delta *delta = batch->first; delta != NULL; delta = delta->next) {
    struct shelf *shelf = find(disk, &delta->key);
    CV_REQUIRE((shelf == NULL) == delta->created);
    keep(shelf == NULL ? create(disk, delta) : shelf, delta);
  }
}

static void restore(const struct shelf *shelf, struct cv_thirdparty *thirdparty) {
  const struct cv_delta *kept = &shelf->kept;
  struct cv_stored_campaign stored = {
      .key = shelf->key, .spec_digest = shelf->spec_digest, .seed = shelf->seed, .row = shelf->row};
  struct cv_why why = {.text = ""};
  if (!shelf->row.closed) {
    stored.spec = shelf->spec;
    stored.state = kept->state;
    stored.plan = kept->plan[kept->plans - 1].plan;
    size_t first = kept->releases;
    while (first > 0 && kept->release[first - 1].plan > shelf->row.state_plan) {
      first--;
    }
    stored.release = kept->release == NULL ? NULL : &kept->release[first];
    stored.releases = kept->releases - first;
  }
  CV_REQUIRE(cv_thirdparty_restore(thirdparty, &stored, &why) == CV_OK);
}

void disk_load(const struct disk *disk, struct cv_thirdparty *thirdparty) {
  for (const struct shelf *shelf = disk->first; shelf != NULL; shelf = shelf->next) {
    restore(shelf, thirdparty);
  }
}

bool disk_replays(const struct shelf *shelf) {
  const struct cv_delta *kept = &shelf->kept;
  struct cv_plan *plan = calloc(kept->plans + 1, sizeof(*plan));
  struct cv_replay_verdict verdict = {0};
  struct cv_why why = {.text = ""};
  CV_REQUIRE(plan != NULL);
  for (size_t i = 0; i < kept->plans; i++) {
    plan[i] = kept->plan[i].plan;
  }
  const struct cv_replay_records records = {.spec = &shelf->spec,
                                            .seed = shelf->seed,
                                            .plan = plan,
                                            .plans = shelf->row.accepted,
                                            .release = kept->release,
                                            .releases = kept->releases,
                                            .decision = kept->decision,
                                            .decisions = kept->decisions,
                                            .end = shelf->row.end,
                                            .standing = shelf->standing,
                                            .standings = shelf->spec.arms};
  CV_REQUIRE(cv_replay_records(&records, &verdict, &why) == CV_OK);
  free(plan);
  CV_REQUIRE(verdict.agrees || verdict.first.text[0] != '\0');
  return verdict.agrees;
}
