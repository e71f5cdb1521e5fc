/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/shell.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/admin/metrics.h"
#include "common/base/clock.h"
#include "common/crypto/crypto.h"
#include "common/daemon/daemon.h"
#include "thirdparty/core.h"
#include "thirdparty/showing.h"
#include "thirdparty/store.h"
#include "thirdparty/tell.h"

enum {
  TICK_MS = 1000,
  CROWD_RELEASES = 9,       /* a batch with fewer releases is stored at once: a plan may wait for it */
  BACKLOG_RELEASES = 16384, /* back-pressure: with more gathered releases the shell stops reading from brokers */
};

struct shell {
  const struct cv_thirdparty_settings *settings;
  struct cv_daemon *daemon;
  struct cv_thirdparty *core;
  struct cv_thirdparty_store *store;
  struct cv_thirdparty_batch batch; /* the batch being stored */
  struct cv_showing showing;        /* for the page */
};

/* ---- connections ---- */

static enum cv_err join(void *party, const struct cv_identity *identity, struct cv_lane *lane, void **ret_conn,
                        struct cv_why *why) {
  const struct shell *shell = party;
  struct cv_thirdparty_conn *conn = NULL;
  enum cv_err err = cv_thirdparty_join(shell->core, identity->name, lane, &conn);
  *ret_conn = conn;
  return err;
}

static void leave(void *party, void *conn) {
  const struct shell *shell = party;
  cv_thirdparty_leave(shell->core, conn);
}

static enum cv_err feed_rank(void *party, void *conn, const void *frame, uint64_t now_ms, uint64_t wall_ms,
                             struct cv_why *why) {
  const struct shell *shell = party;
  return cv_thirdparty_on_rank(shell->core, conn, frame);
}

static bool next_out(void *party, struct cv_lane_out *ret) {
  const struct shell *shell = party;
  struct cv_thirdparty_out out;
  if (!cv_thirdparty_next_out(shell->core, &out)) {
    return false;
  }
  *ret = (struct cv_lane_out){.lane = out.data, .frame = out.frame, .close = out.close};
  return true;
}

/* Not per connection: releases of one broker that wait to be stored use the memory of all. */
static bool is_over_share(const void *party, const void *conn) {
  const struct shell *shell = party;
  return cv_thirdparty_gathered(shell->core) > BACKLOG_RELEASES;
}

static size_t largest(const void *party) {
  return CV_LARGE_FRAME_BYTES;
}

static const struct cv_lane_kind kinds[] = {
    {.roles = 1U << CV_ROLE_BROKER,
     .wire = &CV_RANK_WIRE,
     .largest = largest,
     .largest_out = CV_LARGE_FRAME_BYTES,
     .feed = feed_rank},
};

/* ---- the turn ---- */

static bool is_pending(void *party) {
  const struct shell *shell = party;
  return cv_thirdparty_is_pending(shell->core);
}

static size_t gathered(void *party) {
  const struct shell *shell = party;
  return cv_thirdparty_gathered(shell->core);
}

static enum cv_err flush(void *party, uint64_t now_ms, uint64_t wall_ms, bool *ret_store) {
  struct shell *shell = party;
  CV_TRY(cv_thirdparty_flush(shell->core, &shell->batch));
  /* Letters without a change, such as a repeated acknowledgement, need no commit. */
  *ret_store = shell->batch.first != NULL;
  return CV_OK;
}

/* May run on the storage thread; the batch is its own until stored(). */
static enum cv_err commit(void *party, struct cv_why *why) {
  struct shell *shell = party;
  return cv_thirdparty_store_commit(shell->store, &shell->batch, why);
}

static void stored(void *party) {
  struct shell *shell = party;
  /* Never before the commit: the page shows what the database holds. */
  (void)cv_chronicle_take(shell->showing.chronicle, &shell->batch, cv_clock_mono_ms());
  cv_daemon_show(shell->daemon);
  cv_thirdparty_batch_fini(&shell->batch);
  cv_thirdparty_stored(shell->core);
}

/* ---- admin endpoint ---- */

/* Healthy without a broker, too: brokers dial, and none may be running. */
static enum cv_err health(void *party, struct cv_why *why) {
  return CV_OK;
}

static void status(void *party, char *text, size_t size) {
  const struct shell *shell = party;
  struct cv_thirdparty_figures counts;
  cv_thirdparty_figures(shell->core, &counts);
  (void)snprintf(text, size, "campaigns open: %zu; brokers connected: %zu", counts.campaigns_open,
                 counts.brokers_connected);
}

static void metrics(void *party, const struct cv_refusals *network, struct cv_buf *out) {
  const struct shell *shell = party;
  struct cv_thirdparty_figures counts;
  cv_thirdparty_figures(shell->core, &counts);
  cv_metric_gauge(out, "crowdveil_thirdparty_brokers", "Connected brokers.", (double)counts.brokers_connected);
  cv_metric_gauge(out, "crowdveil_thirdparty_campaigns_open", "Campaigns that are not closed.",
                  (double)counts.campaigns_open);
  cv_metric_gauge(out, "crowdveil_thirdparty_campaigns_closed", "Campaigns whose result the broker received.",
                  (double)counts.campaigns_closed);
  cv_metric_counter(out, "crowdveil_thirdparty_releases_total", "Releases applied since the start.", counts.releases);
  cv_metric_counter(out, "crowdveil_thirdparty_decisions_total", "Decisions made since the start.", counts.decisions);
  cv_metric_counter(out, "crowdveil_thirdparty_contradictions_total",
                    "Arms found since the start the limits of whose mean contradict each other.",
                    counts.contradictions);
  cv_refusals_sum(&counts.refusals, network);
  cv_metric_refusals(out, &counts.refusals);
}

/* ---- the page ---- */

/* While a batch is stored the database is the storage thread's; stored() wakes the requests that wait. */
static bool is_storing(const struct shell *shell) {
  return cv_daemon_is_storing(shell->daemon);
}

static enum cv_page_found find(void *party, uint64_t id) {
  struct shell *shell = party;
  enum cv_page_found found = is_storing(shell) ? CV_PAGE_LATER : cv_showing_find(&shell->showing, id);
  if (found == CV_PAGE_LATER) {
    cv_daemon_work(shell->daemon);
  }
  return found;
}

static enum cv_page_found campaigns(void *party, struct cv_buf *out) {
  struct shell *shell = party;
  return is_storing(shell) ? CV_PAGE_LATER : cv_showing_campaigns(&shell->showing, out);
}

static enum cv_page_found table(void *party, uint64_t id, struct cv_buf *out) {
  struct shell *shell = party;
  if (id == 0 && !is_storing(shell) && (id = cv_showing_newest(&shell->showing)) == 0) {
    cv_tell_no_table(out);
    return CV_PAGE_HERE;
  }
  enum cv_page_found found = find(shell, id);
  return found == CV_PAGE_HERE ? cv_showing_table(&shell->showing, id, out) : found;
}

static enum cv_page_next history(void *party, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out) {
  struct shell *shell = party;
  return cv_showing_history(&shell->showing, id, at, out);
}

static enum cv_page_next events(void *party, uint64_t id, struct cv_page_cursor *at, struct cv_buf *out) {
  struct shell *shell = party;
  return cv_showing_events(&shell->showing, id, at, out);
}

static enum cv_page_found boundary(void *party, uint64_t id, uint64_t arm, struct cv_buf *out) {
  struct shell *shell = party;
  enum cv_page_found found = find(party, id);
  return found == CV_PAGE_HERE ? cv_showing_column(&shell->showing, id, arm, out) : found;
}

static bool work(void *party) {
  struct shell *shell = party;
  struct cv_why why;
  bool failed;
  if (cv_chronicle_work(shell->showing.chronicle, &failed, &why)) {
    cv_daemon_show(shell->daemon);
  }
  if (failed) {
    cv_daemon_note(shell->daemon, &(struct cv_note){.level = CV_LOG_WARN, .peer = "page", .text = why.text});
  }
  return cv_chronicle_has_work(shell->showing.chronicle);
}

static const struct cv_page_ops page_ops = {.campaigns = campaigns,
                                            .find = find,
                                            .history = history,
                                            .events = events,
                                            .table = table,
                                            .boundary = boundary,
                                            .files = &CV_PAGE_FILES};

/* ---- start and end ---- */

static enum cv_err restore(void *data, const struct cv_stored_campaign *stored, struct cv_why *why) {
  const struct shell *shell = data;
  return cv_thirdparty_restore(shell->core, stored, why);
}

static void note(void *data, const struct cv_note *note) {
  const struct shell *shell = data;
  cv_daemon_note(shell->daemon, note);
}

/* A page without a broker's connection is better than none: memory that runs out here ends nothing. */
static void linked(void *data, const struct cv_thirdparty_link *link) {
  struct shell *shell = data;
  if (cv_links_take(&shell->showing.links, link, cv_clock_wall_ms()) == CV_OK) {
    cv_daemon_show(shell->daemon);
  }
}

static enum cv_err open_core(struct shell *shell) {
  const struct cv_thirdparty_config config = {
      .digest = cv_sha256,
      .rng = cv_daemon_rng(shell->daemon),
      .program = "crowdveil-thirdparty",
      .note = note,
      .linked = linked,
      .data = shell,
      .limits = {.campaigns = (uint32_t)shell->settings->campaigns,
                 .arms = (uint32_t)shell->settings->arms,
                 .queued_wants = CV_THIRDPARTY_DEFAULTS.queued_wants},
  };
  return cv_thirdparty_new(&config, &shell->core);
}

static enum cv_err open_showing(struct shell *shell, struct cv_why *why) {
  shell->showing.db = cv_thirdparty_store_database(shell->store);
  if (cv_chronicle_new(shell->showing.db, &shell->showing.chronicle) != CV_OK) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  /* Without a page nothing is kept until the admin socket is asked for it. */
  if (shell->settings->page.listen != NULL) {
    cv_chronicle_begin(shell->showing.chronicle);
  }
  return CV_OK;
}

static enum cv_err open_all(void *party, struct cv_daemon *daemon, struct cv_why *why) {
  struct shell *shell = party;
  char *path = NULL;
  shell->daemon = daemon;
  /* The core first: loading puts each stored campaign straight into it. */
  if (open_core(shell) != CV_OK || asprintf(&path, "%s/thirdparty.db", shell->settings->state) < 0) {
    return cv_fail(why, CV_ERR_NOMEM, "out of memory");
  }
  enum cv_err err = cv_thirdparty_store_open(path, NULL, &shell->store, why);
  if (err == CV_OK) {
    err = cv_thirdparty_store_load(shell->store, restore, shell, why);
    if (err != CV_OK) {
      cv_why_prefix(why, "%s", path);
    }
  }
  free(path);
  return err == CV_OK ? open_showing(shell, why) : err;
}

static void close_all(void *party) {
  struct shell *shell = party;
  cv_chronicle_free(shell->showing.chronicle);
  cv_links_fini(&shell->showing.links);
  cv_thirdparty_free(shell->core);
  cv_thirdparty_store_close(shell->store);
  cv_thirdparty_batch_fini(&shell->batch);
}

static enum cv_err database(void *party, struct cv_db **ret, struct cv_why *why) {
  struct shell *shell = party;
  *ret = cv_thirdparty_store_database(shell->store);
  return CV_OK;
}

static const struct cv_daemon_ops ops = {
    .open = open_all,
    .close = close_all,
    .lane = {.kind = kinds,
             .kinds = CV_COUNT(kinds),
             .join = join,
             .leave = leave,
             .next_out = next_out,
             .is_over_share = is_over_share},
    .is_pending = is_pending,
    .gathered = gathered,
    .flush = flush,
    .commit = commit,
    .stored = stored,
    .status = status,
    .database = database,
    .health = health,
    .metrics = metrics,
    .page = &page_ops,
    .work = work,
};

int cv_thirdparty_run(const struct cv_thirdparty_settings *settings) {
  struct shell shell = {.settings = settings};
  const struct cv_daemon_config config = {
      .program = "crowdveil-thirdparty",
      .ops = &ops,
      .party = &shell,
      .settings = &settings->daemon,
      .state = settings->state,
      .database = "thirdparty.db",
      .roles = 1U << CV_ROLE_THIRDPARTY,
      .listen = settings->listen,
      .from = {.roles = 1U << CV_ROLE_BROKER, .names = settings->brokers},
      .limits = CV_NET_DEFAULTS,
      .page = &settings->page,
      .tick_ms = TICK_MS,
      .crowd = CROWD_RELEASES,
      .has_thread = true,
      .not_lost = "nothing that was acknowledged is lost",
  };
  return cv_daemon_run(&config);
}
