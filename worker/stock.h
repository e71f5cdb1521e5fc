/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the persons behind one connection have not said yet: the rows of a data set that have not been given, each of
 * which is given once at most, and which person comes next for which arm. Pure.
 *
 * A person can answer for few arms, and a broker deals them in turn. So a person comes with a wish, an arm that it has
 * a row of. How many may wait for an arm grows by one with each wish that is granted and is halved by one that is not;
 * at none the arm is closed for a while, longer each time. An arm that is dealt to whoever came without a wish is open:
 * a few explore so while there are rows of closed arms, if they find arms that somebody has rows of and may come for.
 * With nothing to give nobody comes: there is no loop of asking and declining.
 */
#ifndef CV_WORKER_STOCK_H
#define CV_WORKER_STOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/quality/persons.h"

/* No arm; on the wire no wish. */
#define CV_STOCK_NONE UINT32_MAX

struct cv_stock_config {
  const struct cv_persons *persons; /* borrowed for as long */
  uint64_t first_worker;            /* who the first of them is */
  uint64_t first, last;             /* workers of the connection, both included */
  uint32_t arms;
  uint64_t seed; /* of the order in which rows come, which must not follow the file's: it may be sorted */
};

struct cv_stock;

CV_MUST_USE enum cv_err cv_stock_new(const struct cv_stock_config *config, struct cv_stock **ret);
void cv_stock_free(struct cv_stock *stock);

/* How many of the workers are persons. */
uint32_t cv_stock_persons(const struct cv_stock *stock);
/* Rows of a worker that have not been given; 0 of one who is no person. */
uint64_t cv_stock_left(const struct cv_stock *stock, uint64_t worker);
/* Whether some person with rows left `may`. */
bool cv_stock_any(const struct cv_stock *stock, bool (*may)(void *data, uint64_t worker), void *data);
bool cv_stock_has(const struct cv_stock *stock, uint64_t worker, uint32_t arm);
/* Gives a row of the worker for the arm, the first that is left; false if there is none. */
CV_MUST_USE bool cv_stock_take(struct cv_stock *stock, uint64_t worker, uint32_t arm, int64_t *ret_score);

/* A row, by its number in the persons' data set, was given in an earlier run. False: there is no such row. */
CV_MUST_USE bool cv_stock_mark(struct cv_stock *stock, uint64_t row);
/* The rows that were taken since cv_stock_kept(), to be remembered before their tokens leave. */
const uint32_t *cv_stock_taken(const struct cv_stock *stock, size_t *ret_count);
void cv_stock_kept(struct cv_stock *stock);

/*
 * What became of a person that has come: it was dealt this arm, or none (CV_STOCK_NONE). `wish` is what it came for, as
 * cv_stock_next() said. And of one whose connection is gone.
 */
void cv_stock_dealt(struct cv_stock *stock, uint32_t wish, uint32_t arm, uint64_t now_ms);
void cv_stock_forget(struct cv_stock *stock, uint32_t wish);
/*
 * The next person to come, and its wish, CV_STOCK_NONE if it explores: open arms in turn, among their persons at random
 * one that `may`. False if there is none; a person that may come may be found on a later call, since few are looked at.
 */
bool cv_stock_next(struct cv_stock *stock, uint64_t now_ms, bool (*may)(void *data, uint64_t worker), void *data,
                   uint64_t *ret_worker, uint32_t *ret_arm);

#endif
