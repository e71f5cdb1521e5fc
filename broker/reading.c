/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/reading.h"

#include "broker/fetch.h"
#include "common/base/clock.h"

enum { REST = 4 /* pause after reading a campaign, as a multiple of the time that took */ };

static void rest(struct cv_reading *reading) {
  uint64_t took_ms = cv_clock_mono_ms() - reading->began_ms;
  reading->from_ms = took_ms > 0 ? reading->began_ms + took_ms + REST * took_ms : reading->from_ms;
}

/* On the storage thread. */
static enum cv_err read_rows(void *data, struct cv_why *why) {
  struct cv_reading *reading = data;
  return cv_broker_store_read(reading->store, reading->fetched.campaign, &reading->fetched, why);
}

/* The core has gone on meanwhile: who waited may be gone, or the campaign purged, and its rows with it. */
static void have_rows(void *data, enum cv_err err, const struct cv_why *why) {
  struct cv_reading *reading = data;
  struct cv_why reason = *why;
  uint32_t campaign = reading->fetched.campaign;
  bool is_awaited = cv_broker_awaits(reading->core, campaign);
  if (err == CV_OK && is_awaited) {
    err = cv_broker_store_restore(reading->core, &reading->fetched, &reason);
  }
  if (err == CV_ERR_DAMAGED && is_awaited) {
    cv_broker_fetch_failed(reading->core, campaign, reason.text);
  } else if (err != CV_OK && err != CV_ERR_DAMAGED) {
    cv_daemon_fail(reading->daemon, "cannot read", &reason);
  }
  cv_fetched_fini(&reading->fetched);
  rest(reading);
}

static void read_beside(struct cv_reading *reading) {
  reading->fetched = (struct cv_fetched){.campaign = 0};
  if (cv_broker_wanted(reading->core, &reading->fetched.campaign) &&
      !cv_daemon_borrow(reading->daemon, read_rows, have_rows, reading)) {
    reading->from_ms = UINT64_MAX; /* the daemon ends */
  }
}

static void read_here(struct cv_reading *reading) {
  struct cv_why why;
  if (cv_broker_store_serve(reading->store, reading->core, &why) != CV_OK) {
    cv_daemon_fail(reading->daemon, "cannot read", &why);
  }
  rest(reading);
}

void cv_reading_go(struct cv_reading *reading, struct cv_daemon *daemon, struct cv_broker_store *store,
                   struct cv_broker *core) {
  uint64_t now_ms = cv_clock_mono_ms();
  if (now_ms < reading->from_ms) {
    return;
  }
  reading->daemon = daemon;
  reading->store = store;
  reading->core = core;
  reading->began_ms = now_ms;
  if (reading->is_beside) {
    read_beside(reading);
  } else {
    read_here(reading);
  }
}
