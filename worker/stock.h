/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that the persons behind one connection have not given yet. The stock gives each row at most once and chooses
 * which row comes next for which arm. While each item is asked of a person once, a person gives one of its rows of an
 * item, drawn among them, or the one that it has given before, and the others are barred. Pure.
 *
 * What it draws: an arm's rows come in a random order, whosever they are and wherever they are in the file, and are
 * given in that order. A row waits for its person if that one is busy with another arm, and at most CV_STOCK_LATE rows
 * wait, so that a person with rows of many arms does not come later than one with rows of few. Only who has given all
 * that it may is passed over. So each next row of an arm is a uniform draw among what is left of it: a row, or, while
 * each item is asked of a person once, a person.
 *
 * A person has rows for few arms, and a broker assigns arms in turn. So a person comes with a wish, an arm that it has
 * a row for. The number of persons that may wait for an arm grows by one with each granted wish and halves with each
 * missed one; at 0 the arm closes for a while, longer each time. A few persons explore, that is, come without a wish,
 * while closed arms have rows left; an arm that the broker assigns to an explorer opens again. Which arm that is, the
 * broker says, so an explorer gives a row only if it is the next one of that arm. A person without rows never comes, so
 * there is no loop of assignments and declines.
 */
#ifndef CV_WORKER_STOCK_H
#define CV_WORKER_STOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/quality/persons.h"

/* No arm; on the wire: no wish. */
#define CV_STOCK_NONE UINT32_MAX

/* Rows of an arm that wait for their persons. */
enum { CV_STOCK_LATE = 64 };

/* Whether a person may come. */
enum cv_stock_may { CV_STOCK_COMES, CV_STOCK_BUSY /* later */, CV_STOCK_OUT };

struct cv_stock_config {
  const struct cv_persons *persons; /* borrowed until cv_stock_free() */
  uint64_t first_worker;            /* id of person 0 */
  uint64_t first, last;             /* workers of the connection, both included */
  uint32_t arms;
  uint64_t seed; /* of the random order of rows; the file's own order may be sorted */
};

struct cv_stock;

CV_MUST_USE enum cv_err cv_stock_new(const struct cv_stock_config *config, struct cv_stock **ret);
void cv_stock_free(struct cv_stock *stock);

/* The number of the connection's workers that are persons of the data set. */
uint32_t cv_stock_persons(const struct cv_stock *stock);
/* Whether a person gives only one row of each arm, a drawn one, and none if it gave one before; false at first.
 * CV_ERR_NOMEM. */
CV_MUST_USE enum cv_err cv_stock_ask_once(struct cv_stock *stock, bool once);
/* Whether the worker has given a row of the arm. */
bool cv_stock_has_given(const struct cv_stock *stock, uint64_t worker, uint32_t arm);
/* The number of rows that a worker has given; 0 for a worker that is not a person. */
uint64_t cv_stock_given(const struct cv_stock *stock, uint64_t worker);
/* The number of rows that a worker may still give; 0 for a worker that is not a person. */
uint64_t cv_stock_left(const struct cv_stock *stock, uint64_t worker);
/* True if may() holds for a person with rows left. */
bool cv_stock_any(const struct cv_stock *stock, bool (*may)(void *data, uint64_t worker), void *data);
/* True if the arm has a row left of a person for which may() holds; or if the last search for the next person of the
 * arm found one, so that only a doubt costs a look at each row. */
bool cv_stock_any_of(const struct cv_stock *stock, uint32_t arm, bool (*may)(void *data, uint64_t worker), void *data);
bool cv_stock_has(const struct cv_stock *stock, uint64_t worker, uint32_t arm);
/* Whether the worker's row that cv_stock_next() chose last is one of the arm. */
bool cv_stock_is_next(const struct cv_stock *stock, uint64_t worker, uint32_t arm);
/* Takes that row, else one of the worker's rows left for the arm, in random order, and its number in the data set.
 * False if there is none. */
CV_MUST_USE bool cv_stock_take(struct cv_stock *stock, uint64_t worker, uint32_t arm, uint64_t *ret_row,
                               int64_t *ret_score);

/* Marks a row, by its number in the data set, as given in an earlier run. False if there is no such row. */
CV_MUST_USE bool cv_stock_mark(struct cv_stock *stock, uint64_t row);
/* The rows taken since cv_stock_kept(); the caller stores them before their tokens leave. */
const uint32_t *cv_stock_taken(const struct cv_stock *stock, size_t *ret_count);
void cv_stock_kept(struct cv_stock *stock);

/*
 * cv_stock_dealt() reports that the broker assigned `arm` to a person, or no arm (CV_STOCK_NONE); `wish` is the arm
 * that cv_stock_next() returned for the person. cv_stock_forget() reports that the connection closed before an answer.
 */
void cv_stock_dealt(struct cv_stock *stock, uint32_t wish, uint32_t arm, uint64_t now_ms);
void cv_stock_forget(struct cv_stock *stock, uint32_t wish);
/*
 * Chooses the next row, of a person that comes, and with it the person's wish, CV_STOCK_NONE for an explorer: open arms
 * in turn. Returns false if it finds none; it tries only a few rows per arm, so a later call may succeed.
 */
bool cv_stock_next(struct cv_stock *stock, uint64_t now_ms, enum cv_stock_may (*may)(void *data, uint64_t worker),
                   void *data, uint64_t *ret_worker, uint32_t *ret_arm);

#endif
