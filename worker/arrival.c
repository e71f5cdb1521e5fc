/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/arrival.h"

#include "worker/stall.h"
#include "worker/stock.h"

enum {
  PROBE_MS = 1000,    /* between probes: arrivals while no known campaign wants a worker */
  PROBE_TRIES = 4096, /* workers that are looked at for one */
};

/* Token bucket: adds the arrivals that the rate permits since the last call, at most one second of them. */
static uint64_t permitted(struct cv_worker *pool, uint64_t now_ms) {
  if (pool->config.arrival_rate <= 0) {
    return UINT64_MAX;
  }
  /* At least 1, or a rate below one per second would never permit an arrival. */
  double burst = pool->config.arrival_rate > 1 ? pool->config.arrival_rate : 1;
  pool->allowance += pool->config.arrival_rate * (double)(now_ms - pool->allowance_ms) / 1000;
  pool->allowance_ms = now_ms;
  pool->allowance = pool->allowance < burst ? pool->allowance : burst;
  return (uint64_t)pool->allowance;
}

/* Behind a worker is a person, who may be away. */
static bool only_who_comes(const struct cv_worker *pool) {
  return pool->config.asker != NULL && pool->config.asker->waits;
}

/* The next worker in turn that may come for a campaign that is not known yet. If none may, once all were looked at, one
 * whose own limit is used up comes: it gives nothing, but the pool learns of campaigns, and tells them so. */
static bool find_probe(struct cv_worker *pool, uint64_t *ret_worker) {
  uint64_t workers = pool->config.last - pool->config.first + 1;
  for (uint32_t tries = 0; tries < PROBE_TRIES && pool->missed < workers; tries++) {
    /* Another worker each time: this one may be the only one that no campaign wants. */
    uint64_t worker = pool->probe;
    pool->probe = worker == pool->config.last ? pool->config.first : worker + 1;
    bool is_here = pool->here[worker - pool->config.first];
    if (is_here || (cv_worker_may_come(pool, worker) && cv_worker_is_there(pool, worker))) {
      pool->missed = 0;
      pool->has_barred = false;
      *ret_worker = worker;
      return !is_here && !only_who_comes(pool);
    }
    if (cv_worker_is_barred(pool, worker)) {
      pool->has_barred = true;
      pool->barred = worker;
    }
    pool->missed++;
  }
  bool none = pool->missed >= workers && pool->has_barred;
  pool->missed = pool->missed >= workers ? 0 : pool->missed;
  *ret_worker = pool->barred;
  return none;
}

/* The broker sends campaigns only to workers that arrive. While no known campaign wants a worker, one worker arrives
 * every PROBE_MS to learn of new campaigns. */
static bool next_probe(struct cv_worker *pool, uint64_t now_ms, uint64_t *ret_worker) {
  if (pool->waiting.count > 0 || pool->pendings.count > 0 || now_ms < pool->probed_ms + PROBE_MS) {
    return false;
  }
  pool->probed_ms = now_ms;
  if (!find_probe(pool, ret_worker)) {
    return false;
  }
  if (pool->wish != NULL) {
    pool->wish[*ret_worker - pool->config.first] = CV_STOCK_NONE;
  }
  pool->probing = true;
  return true;
}

static bool may_come(void *data, uint64_t worker) {
  const struct cv_worker *pool = data;
  return !pool->here[worker - pool->config.first] && cv_worker_is_wanted(pool, worker);
}

static enum cv_stock_may may_come_now(void *data, uint64_t worker) {
  const struct cv_worker *pool = data;
  return !cv_worker_is_wanted(pool, worker)        ? CV_STOCK_OUT
         : pool->here[worker - pool->config.first] ? CV_STOCK_BUSY
                                                   : CV_STOCK_COMES;
}

/* With a stock: frees the workers that moved on or whose backoff is over, and lets the stock choose worker and arm. */
static bool next_of_stock(struct cv_worker *pool, uint64_t now_ms, uint64_t *ret_worker) {
  uint32_t arm;
  while (pool->again.count > 0) {
    pool->here[cv_line_pop(&pool->again) - pool->config.first] = 0;
  }
  while (pool->resting.count > 0 && cv_line_at(&pool->resting, 0)->due_ms <= now_ms) {
    pool->here[cv_line_pop(&pool->resting) - pool->config.first] = 0;
  }
  if (!cv_stock_next(pool->config.stock, now_ms, may_come_now, pool, ret_worker, &arm)) {
    return false;
  }
  pool->wish[*ret_worker - pool->config.first] = arm;
  return true;
}

/* The next one whose backoff is over. */
static bool next_rested(struct cv_worker *pool, uint64_t now_ms, uint64_t *ret_worker) {
  if (pool->resting.count == 0 || cv_line_at(&pool->resting, 0)->due_ms > now_ms) {
    return false;
  }
  *ret_worker = cv_line_pop(&pool->resting);
  return true;
}

/* The next of those that arrive again, then of those that never arrived. */
static bool next_other(struct cv_worker *pool, uint64_t *ret_worker) {
  while (pool->again.count > 0) {
    *ret_worker = cv_line_pop(&pool->again);
    /* The frame that let it go may have said later that no campaign wants it. */
    if (only_who_comes(pool) || cv_worker_is_wanted(pool, *ret_worker)) {
      return true;
    }
    pool->here[*ret_worker - pool->config.first] = 0;
  }
  while (pool->next <= pool->config.last && !only_who_comes(pool)) {
    uint64_t worker = pool->next++;
    if (!pool->here[worker - pool->config.first] && cv_worker_is_wanted(pool, worker)) {
      *ret_worker = worker;
      return true;
    }
  }
  return false;
}

/* The next worker that a campaign may want. Those that rested and the others take turns: the broker may send the same
 * ones away again and again. */
static bool next_wanted(struct cv_worker *pool, uint64_t now_ms, uint64_t *ret_worker) {
  if (pool->config.stock != NULL) {
    return next_of_stock(pool, now_ms, ret_worker);
  }
  pool->had_rested = !pool->had_rested && next_rested(pool, now_ms, ret_worker);
  if (pool->had_rested || next_other(pool, ret_worker)) {
    return true;
  }
  pool->had_rested = next_rested(pool, now_ms, ret_worker);
  return pool->had_rested;
}

/* The next worker to arrive; false if there is none now. */
static bool next_arrival(struct cv_worker *pool, uint64_t now_ms, uint64_t *ret_worker) {
  if (next_wanted(pool, now_ms, ret_worker)) {
    pool->probing = false;
    return true;
  }
  return next_probe(pool, now_ms, ret_worker);
}

enum cv_err cv_worker_arrive(struct cv_worker *pool, uint64_t now_ms) {
  uint64_t most = permitted(pool, now_ms);
  uint64_t hired = 0;
  for (size_t i = 0; i < pool->config.works; i++) {
    hired += pool->config.work[i].hires ? pool->config.work[i].arms : 0;
  }
  uint64_t ahead = 2 * (uint64_t)pool->config.concurrency + hired;
  const struct cv_asker *asker = pool->config.asker;
  if (asker != NULL && asker->room != NULL && asker->room(asker->data) < ahead) {
    ahead = asker->room(asker->data);
  }
  /* Arrivals come in bursts of up to the concurrency, so that a message names many workers. */
  if (pool->waiting.count > pool->config.concurrency + hired && pool->config.arrival_rate <= 0) {
    return CV_OK;
  }
  uint64_t worker;
  for (uint64_t n = 0; n < most && pool->waiting.count < ahead && next_arrival(pool, now_ms, &worker); n++) {
    pool->here[worker - pool->config.first] = 1;
    CV_TRY(cv_line_push(&pool->waiting, worker, 0));
    CV_TRY(cv_worker_outbox_arrive(&pool->outbox, worker,
                                   pool->wish == NULL ? CV_WISH_NONE : pool->wish[worker - pool->config.first]));
    pool->allowance -= pool->config.arrival_rate > 0;
  }
  return CV_OK;
}

bool cv_worker_is_used_up(const struct cv_worker *pool) {
  const struct cv_stock *stock = pool->config.stock;
  return stock == NULL ? pool->next > pool->config.last : !cv_stock_any(stock, may_come, (void *)(uintptr_t)pool);
}
