/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/showing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "thirdparty/tell.h"

/* Steps of one piece; a piece ends after the step that fills it. */
enum { PIECE_BYTES = 16384, CAMPAIGNS_MAX = 200 };

/* ---- campaigns ---- */

static void put_campaign(sqlite3_stmt *stmt, struct cv_jot *json) {
  static const char *const whole[] = {"arms", "plans", "decided"};
  const char *policy = (const char *)sqlite3_column_text(stmt, 4);
  cv_jot_open(json, '{');
  cv_jot_key(json, "id");
  cv_jot_whole(json, (uint64_t)sqlite3_column_int64(stmt, 0));
  cv_jot_key(json, "number");
  cv_jot_whole(json, (uint64_t)sqlite3_column_int64(stmt, 1));
  cv_jot_key(json, "broker");
  cv_jot_text(json, (const char *)sqlite3_column_text(stmt, 2));
  cv_jot_key(json, "name");
  cv_jot_text(json, (const char *)sqlite3_column_text(stmt, 3));
  cv_jot_key(json, "kind");
  cv_jot_text(json, cv_tell_kind(policy == NULL ? "" : policy));
  cv_jot_key(json, "state");
  cv_jot_text(json, (const char *)sqlite3_column_text(stmt, 5));
  for (int i = 0; i < (int)CV_COUNT(whole); i++) {
    cv_jot_key(json, whole[i]);
    cv_jot_whole(json, (uint64_t)sqlite3_column_int64(stmt, 6 + i));
  }
  cv_jot_close(json, '}');
}

static enum cv_err put_campaigns(struct cv_db *db, struct cv_jot *json) {
  sqlite3_stmt *stmt;
  int row;
  CV_TRY(cv_db_prepare(db,
                       "SELECT id, number, broker, name, policy, state, arms, plans_accepted,"
                       " (SELECT count(*) FROM standing s WHERE s.campaign = c.id AND s.class > 0)"
                       " FROM campaign c ORDER BY id DESC LIMIT ?",
                       &stmt, NULL));
  (void)sqlite3_bind_int64(stmt, 1, CAMPAIGNS_MAX);
  CV_TRY(cv_db_step(db, stmt, &row, NULL));
  while (row != 0) {
    put_campaign(stmt, json);
    CV_TRY(cv_db_step(db, stmt, &row, NULL));
  }
  return CV_OK;
}

enum cv_page_found cv_showing_campaigns(struct cv_showing *showing, struct cv_buf *out) {
  struct cv_jot json = {.out = out};
  cv_chronicle_begin(showing->chronicle);
  cv_jot_open(&json, '{');
  cv_jot_key(&json, "party");
  cv_jot_text(&json, "third-party");
  cv_jot_key(&json, "program");
  cv_jot_text(&json, "crowdveil-thirdparty");
  cv_jot_key(&json, "campaigns");
  cv_jot_open(&json, '[');
  enum cv_err err = put_campaigns(showing->db, &json);
  cv_jot_close(&json, ']');
  cv_jot_close(&json, '}');
  return err == CV_OK ? CV_PAGE_HERE : CV_PAGE_FAILED;
}

/* ---- one campaign ---- */

enum cv_page_found cv_showing_find(struct cv_showing *showing, uint64_t id) {
  static const enum cv_page_found found[] = {[CV_CHRONICLE_HERE] = CV_PAGE_HERE,
                                             [CV_CHRONICLE_LATER] = CV_PAGE_LATER,
                                             [CV_CHRONICLE_ABSENT] = CV_PAGE_ABSENT,
                                             [CV_CHRONICLE_FAILED] = CV_PAGE_FAILED};
  const struct cv_chronicle_entry *entry;
  return id > INT64_MAX ? CV_PAGE_ABSENT : found[cv_chronicle_find(showing->chronicle, (int64_t)id, &entry)];
}

uint64_t cv_showing_newest(struct cv_showing *showing) {
  sqlite3_stmt *stmt;
  int row = 0;
  if (cv_db_prepare(showing->db, "SELECT coalesce(max(id), 0) FROM campaign", &stmt, NULL) != CV_OK ||
      cv_db_step(showing->db, stmt, &row, NULL) != CV_OK || row == 0) {
    return 0;
  }
  uint64_t id = (uint64_t)sqlite3_column_int64(stmt, 0);
  (void)sqlite3_reset(stmt);
  return id;
}

enum cv_page_found cv_showing_table(struct cv_showing *showing, uint64_t id, struct cv_buf *out) {
  enum cv_page_found found = cv_showing_find(showing, id);
  if (found == CV_PAGE_HERE) {
    cv_tell_table(cv_chronicle_at(showing->chronicle, (int64_t)id), out);
  }
  return found;
}

enum cv_page_found cv_showing_column(struct cv_showing *showing, uint64_t id, uint64_t arm, struct cv_buf *out) {
  enum cv_page_found found = cv_showing_find(showing, id);
  if (found != CV_PAGE_HERE) {
    return found;
  }
  const struct cv_history *history = cv_chronicle_at(showing->chronicle, (int64_t)id)->history;
  if (arm >= history->spec.arms) {
    return CV_PAGE_ABSENT;
  }
  cv_tell_column(history, (uint32_t)arm, out);
  return CV_PAGE_HERE;
}

static const struct cv_history_step *next_step(const struct cv_history *history, struct cv_page_cursor *at) {
  const struct cv_history_step *step = cv_history_after(history, at->has_after, at->after);
  if (step != NULL) {
    at->has_after = true;
    at->after = step->number;
  }
  return step;
}

static const struct cv_link *link_of(const struct cv_showing *showing, const struct cv_chronicle_entry *entry) {
  return cv_links_find(&showing->links, entry->key.broker);
}

enum cv_page_next cv_showing_history(struct cv_showing *showing, uint64_t id, struct cv_page_cursor *at,
                                     struct cv_buf *out) {
  enum { BEGIN, STEPS, END };
  const struct cv_chronicle_entry *entry = cv_chronicle_at(showing->chronicle, (int64_t)id);
  if (entry == NULL || at->part == END) {
    return CV_PAGE_END; /* cut short if the history has made room: no JSON, and the page asks again */
  }
  if (at->part == BEGIN) {
    cv_tell_begin(entry, out);
    at->part = STEPS;
  }
  while (out->len < PIECE_BYTES) {
    bool is_first = !at->has_after;
    uint64_t after = at->after;
    const struct cv_history_step *step = next_step(entry->history, at);
    if (step == NULL) {
      cv_tell_end(entry->history, link_of(showing, entry), out);
      at->part = END;
      return CV_PAGE_MORE;
    }
    if (!is_first) {
      cv_buf_put_u8(out, ',');
    }
    cv_tell_step(step, !is_first, after, out);
  }
  return CV_PAGE_MORE;
}

static void put(struct cv_buf *out, const char *text) {
  cv_buf_put(out, text, strlen(text));
}

static void put_step(const struct cv_history_step *step, bool has_after, uint64_t after, struct cv_buf *out) {
  char head[64];
  (void)snprintf(head, sizeof(head), "event: step\nid: %" PRIu64 "\ndata: ", step->number);
  put(out, head);
  cv_tell_step(step, has_after, after, out);
  put(out, "\n\n");
}

/* A client that has seen more than there is, or whose history has made room, has to begin anew. */
static bool must_reload(const struct cv_chronicle_entry *entry, const struct cv_page_cursor *at) {
  return entry == NULL || (at->has_after && (entry->history->steps == 0 ||
                                             at->after > entry->history->step[entry->history->steps - 1].number));
}

enum cv_page_next cv_showing_events(struct cv_showing *showing, uint64_t id, struct cv_page_cursor *at,
                                    struct cv_buf *out) {
  enum { OPEN, RELOADED };
  const struct cv_chronicle_entry *entry = cv_chronicle_at(showing->chronicle, (int64_t)id);
  const struct cv_history_step *step = NULL;
  if (at->part == RELOADED) {
    return CV_PAGE_END;
  }
  if (must_reload(entry, at)) {
    put(out, "event: reload\ndata: {}\n\n");
    at->part = RELOADED;
    return CV_PAGE_MORE;
  }
  while (out->len < PIECE_BYTES) {
    bool has_after = at->has_after;
    uint64_t after = at->after;
    step = next_step(entry->history, at);
    if (step == NULL) {
      break;
    }
    put_step(step, has_after, after, out);
  }
  if (step == NULL && at->state != entry->history->state) {
    at->state = entry->history->state;
    put(out, "event: state\ndata: ");
    cv_tell_state(entry->history, out);
    put(out, "\n\n");
  }
  const struct cv_link *link = link_of(showing, entry);
  if (step == NULL && link != NULL && at->link != link->version) {
    at->link = link->version;
    put(out, "event: link\ndata: ");
    cv_tell_link(link, out);
    put(out, "\n\n");
  }
  return out->len > 0 ? CV_PAGE_MORE : CV_PAGE_WAIT;
}
