/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/standby.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/admin/metrics.h"

enum {
  BEAT_MS = 1000,        /* an idle broker commits that often, though nothing changed */
  FAILED_LOAD_MS = 30000 /* until the next attempt: another broker may do better */
};

enum cv_err cv_standby_open(struct cv_standby *standby, struct cv_why *why) {
  CV_TRY(standby->ops->open(&standby->config, &standby->remote, why));
  standby->ops->view(standby->remote, &standby->view);
  return CV_OK;
}

/* ---- on the storage thread ---- */

/* A store that cannot be loaded is given back with the term. */
static enum cv_err load(struct cv_standby *standby, struct cv_why *why) {
  struct cv_broker_store *store = NULL;
  enum cv_err err = standby->ops->store(standby->remote, &store, why);
  err = err == CV_OK ? standby->load(standby->party, store, why) : err;
  err = err == CV_OK ? standby->ops->beat(standby->remote, why) : err;
  if (err != CV_OK) {
    standby->has_failed = true;
    standby->ops->leave(standby->remote);
    standby->rest_ms = FAILED_LOAD_MS;
  }
  return err;
}

enum cv_err cv_standby_work(struct cv_standby *standby, struct cv_why *why) {
  bool taken = false;
  if (standby->is_active) {
    return standby->ops->beat(standby->remote, why);
  }
  CV_TRY(standby->ops->step(standby->remote, &taken, &standby->rest_ms, why));
  CV_TRY(taken ? load(standby, why) : CV_OK);
  standby->has_loaded = taken;
  return CV_OK;
}

/* ---- on the loop ---- */

static void note(const struct cv_standby *standby, enum cv_log_level level, const char *text) {
  standby->note(standby->party, &(struct cv_note){.level = level, .text = text});
}

/* Says each failure and each broker that is active once, until there is another. */
static void say(struct cv_standby *standby, enum cv_err err, const struct cv_why *why) {
  char text[sizeof(standby->said)] = "", line[sizeof(text) + 20];
  if (err != CV_OK) {
    (void)snprintf(text, sizeof(text), "%s", why->text);
  } else if (standby->view.holder[0] != '\0') {
    (void)snprintf(text, sizeof(text), "term %" PRIu64 " of %s is active", standby->view.term, standby->view.holder);
  }
  if (text[0] != '\0' && strcmp(text, standby->said) != 0) {
    memcpy(standby->said, text, sizeof(text));
    (void)snprintf(line, sizeof(line), "standing by: %s", text);
    note(standby, err == CV_OK ? CV_LOG_INFO : CV_LOG_WARN, line);
  }
}

static void begin(struct cv_standby *standby, uint64_t now_ms) {
  char line[100];
  standby->is_active = true;
  standby->stored_ms = now_ms;
  (void)snprintf(line, sizeof(line), "active: term %" PRIu64 ", after commit %" PRIu64, standby->view.term,
                 standby->view.commit);
  note(standby, CV_LOG_INFO, line);
  standby->active(standby->party);
  standby->is_serving = true;
  standby->failure.text[0] = '\0';
}

static void stand_on(struct cv_standby *standby, enum cv_err err, const struct cv_why *why, uint64_t now_ms) {
  standby->next_ms = now_ms + standby->rest_ms;
  if (standby->has_failed) {
    standby->has_failed = false;
    standby->unload(standby->party);
  }
  say(standby, err, why);
  (void)snprintf(standby->failure.text, sizeof(standby->failure.text), "%s", err == CV_OK ? "" : why->text);
}

void cv_standby_worked(struct cv_standby *standby, enum cv_err err, const struct cv_why *why, uint64_t now_ms) {
  standby->is_working = false;
  standby->ops->view(standby->remote, &standby->view);
  if (!standby->is_active) {
    standby->has_loaded ? begin(standby, now_ms) : stand_on(standby, err, why, now_ms);
    return;
  }
  standby->stored_ms = now_ms;
  if (err != CV_OK) {
    standby->fail(standby->party, "the term is over", why);
  }
}

void cv_standby_tick(struct cv_standby *standby, uint64_t now_ms) {
  if (standby->is_working || standby->remote == NULL) {
    return;
  }
  bool is_due = standby->is_active ? now_ms - standby->stored_ms >= BEAT_MS : now_ms >= standby->next_ms;
  standby->is_working = is_due && standby->borrow(standby->party);
}

void cv_standby_stored(struct cv_standby *standby, uint64_t now_ms) {
  standby->stored_ms = now_ms;
  standby->ops->view(standby->remote, &standby->view);
}

void cv_standby_leave(struct cv_standby *standby) {
  if (standby->remote != NULL) {
    standby->ops->leave(standby->remote);
  }
}

void cv_standby_close(struct cv_standby *standby) {
  if (standby->remote != NULL) {
    standby->ops->close(standby->remote);
    standby->remote = NULL;
  }
}

/* ---- for operators ---- */

static const char *role(const struct cv_standby *standby) {
  return standby->is_active ? "active" : "standby";
}

void cv_standby_status(const struct cv_standby *standby, char *text, size_t size) {
  const struct cv_remote_view *view = &standby->view;
  char anchor[64] = "none";
  if (view->has_anchor) {
    uint64_t lag = view->commit > view->anchor_commit ? view->commit - view->anchor_commit : 0;
    (void)snprintf(anchor, sizeof(anchor), "%" PRIu64 " behind", lag);
  }
  (void)snprintf(text, size, "role=%s term=%" PRIu64 " since=%" PRIu64 " holder=\"%s\" anchor=\"%s\" replica=%s%s%s",
                 role(standby), view->term, view->since_ms / 1000, view->holder, anchor,
                 view->replica[0] == '\0' ? "unknown" : view->replica,
                 view->disputed[0] == '\0' ? "" : " disputed: ", view->disputed);
}

enum cv_err cv_standby_health(const struct cv_standby *standby, struct cv_why *why) {
  if (standby->is_active && !standby->is_serving) {
    return cv_fail(why, CV_ERR_STATE, "role=active, but not serving yet");
  }
  if (standby->failure.text[0] != '\0') {
    return cv_fail(why, CV_ERR_STATE, "role=standby: %.400s", standby->failure.text);
  }
  char text[480];
  cv_standby_status(standby, text, sizeof(text));
  return cv_fail(why, CV_OK, "ok %.460s", text);
}

void cv_standby_metrics(const struct cv_standby *standby, struct cv_buf *out) {
  const struct cv_remote_view *view = &standby->view;
  cv_metric_gauge(out, "crowdveil_broker_active", "1 if this broker is active, 0 if it stands by.",
                  standby->is_active ? 1 : 0);
  cv_metric_gauge(out, "crowdveil_broker_term", "The number of the present term.", (double)view->term);
  cv_metric_gauge(out, "crowdveil_broker_since_seconds", "When this broker became active or began to stand by.",
                  (double)view->since_ms / 1000);
  cv_metric_gauge(out, "crowdveil_broker_replica",
                  "1 if a synchronous replica was there at this active broker's last commit.",
                  strcmp(view->replica, "sync") == 0 || strcmp(view->replica, "quorum") == 0 ? 1 : 0);
  cv_metric_gauge(out, "crowdveil_broker_disputed", "1 if a broker's anchor contradicts the database.",
                  view->disputed[0] == '\0' ? 0 : 1);
  cv_metric_gauge(out, "crowdveil_broker_anchor_commits",
                  "Commits between the database's last and this broker's anchor.",
                  (double)(view->commit > view->anchor_commit ? view->commit - view->anchor_commit : 0));
}
