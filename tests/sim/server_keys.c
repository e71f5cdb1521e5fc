/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped keys in a database that brokers share. */
#include <string.h>

#include "tests/sim/server_state.h"

static enum cv_err put_key(void *data, const struct cv_vault_row *row, struct cv_why *why) {
  struct cv_vault_row copy;
  memset(&copy, 0, sizeof(copy));
  copy = *row;
  session_change(data, (struct change){.kind = DATABASE_KEY,
                                       .campaign = row->campaign,
                                       .number = row->use,
                                       .bytes = (uint8_t *)&copy,
                                       .n = sizeof(copy)});
  return CV_OK;
}

static enum cv_err drop_keys(void *data, uint32_t campaign, struct cv_why *why) {
  session_change(data, (struct change){.kind = DATABASE_KEYS_DROPPED, .campaign = campaign});
  return CV_OK;
}

static enum cv_err get_key(void *data, uint32_t campaign, uint32_t use, struct cv_vault_row *ret, bool *ret_found,
                           struct cv_why *why) {
  const struct session *session = data;
  *ret_found = database_key(&session->server->now, &session->transaction.changes, campaign, use, ret);
  return CV_OK;
}

/* What is asked of all keys. */
struct question {
  const struct cv_key_id *master;
  struct cv_vault_row *other;
  bool is_found;
  struct cv_vault_count count;
  enum cv_err (*take)(void *taker, const struct cv_key_id *id, struct cv_why *why);
  void *taker;
  struct cv_why *why;
};

static enum cv_err look_at_key(void *data, const struct cv_vault_row *row) {
  struct question *question = data;
  if (question->take != NULL) {
    return question->take(question->taker, &row->master, question->why);
  }
  bool is_current = memcmp(row->master.bytes, question->master->bytes, sizeof(row->master.bytes)) == 0;
  question->count.keys++;
  question->count.current += is_current;
  if (!is_current && question->other != NULL) {
    question->is_found = true;
    *question->other = *row;
  }
  return CV_OK;
}

static enum cv_err other_key(void *data, const struct cv_key_id *master, struct cv_vault_row *ret, bool *ret_found,
                             struct cv_why *why) {
  const struct session *session = data;
  struct question question = {.master = master, .other = ret};
  enum cv_err err = database_keys(&session->server->now, look_at_key, &question);
  *ret_found = question.is_found;
  return err;
}

static enum cv_err masters(void *data, enum cv_err (*take)(void *, const struct cv_key_id *, struct cv_why *),
                           void *taker, struct cv_why *why) {
  const struct session *session = data;
  struct question question = {.take = take, .taker = taker, .why = why};
  return database_keys(&session->server->now, look_at_key, &question);
}

static enum cv_err count_keys(void *data, const struct cv_key_id *master, struct cv_vault_count *ret,
                              struct cv_why *why) {
  const struct session *session = data;
  struct question question = {.master = master};
  enum cv_err err = database_keys(&session->server->now, look_at_key, &question);
  *ret = question.count;
  return err;
}

enum cv_err server_begin_keys(void *data, struct cv_why *why) {
  struct session *session = data;
  const struct cv_anchor_mark mark = session->term.mark;
  return session_begin(session, &mark, why);
}

static enum cv_err scrub(void *data, struct cv_why *why) {
  return CV_OK;
}

const struct cv_vault_rows_ops SERVER_KEYS = {.put = put_key,
                                              .drop = drop_keys,
                                              .get = get_key,
                                              .other = other_key,
                                              .masters = masters,
                                              .count = count_keys,
                                              .begin = server_begin_keys,
                                              .commit = session_commit,
                                              .rollback = session_rollback,
                                              .scrub = scrub,
                                              .name = server_name};
