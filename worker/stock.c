/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stock.h"

#include <stdlib.h>

#include "common/base/rng.h"

enum { TRIES = 8, CLOSED_MS = 50, CLOSED_MOST_MS = 5000, EXPLORE_MS = 20, EXPLORE_MOST_MS = 200, EXPLORERS_MOST = 4 };

/* A pause with exponential growth: its end, and the length of the next one. */
struct pause {
  uint64_t until_ms;
  uint32_t next_ms;
};

/* How many persons may wait at once, and how many do. */
struct window {
  uint32_t allowed, waiting;
  struct pause closed;
};

/* Of a data set of fewer rows (persons.h). */
static const uint32_t NO_ROW = UINT32_MAX;

/* A barred row is of a person and an arm of which another one has been given. */
enum row { ROW_LEFT, ROW_GIVEN, ROW_BARRED };

/* The rows of one arm; the first `count` of them include those that next_of() has not put aside yet. */
struct shelf {
  uint32_t *row; /* points into the stock's `order` */
  uint32_t rows, count, at;
  uint32_t late[CV_STOCK_LATE], lates, late_at; /* rows before `at` whose persons were busy */
  uint32_t left;                                /* rows that may be given */
  bool nobody;                                  /* the last search found no person that may come */
  struct window window;
};

struct cv_stock {
  struct cv_stock_config config;
  uint32_t from, to;       /* persons of the range: from .. to - 1 */
  uint32_t *order;         /* rows of the range, arm by arm */
  struct shelf *shelf;     /* by arm */
  uint32_t cursor;         /* the next arm in turn */
  struct window explorers; /* persons that come without a wish */
  uint8_t *state;          /* enum row, by row of the range, from start[from] on */
  uint32_t *left;          /* by person of the range: rows that may be given */
  uint32_t *chosen;        /* by person of the range: the row that cv_stock_next() chose last */
  bool once;               /* a person gives only one row of an arm */
  uint32_t *taken;         /* rows taken since cv_stock_kept(); room for all rows */
  size_t takens;
};

static uint64_t first_row(const struct cv_stock *stock) {
  return stock->config.persons->start[stock->from];
}

static uint64_t rows_of(const struct cv_stock *stock) {
  return stock->config.persons->start[stock->to] - first_row(stock);
}

/* ---- construction ---- */

static void find_range(struct cv_stock *stock) {
  const struct cv_stock_config *config = &stock->config;
  uint64_t persons = config->persons->persons, first = config->first_worker;
  uint64_t from = config->first > first ? config->first - first : 0;
  uint64_t to = config->last >= first ? config->last - first + 1 : 0;
  /* Certificate and file may overlap in part, or not at all: then from equals to. */
  stock->to = (uint32_t)(to < persons ? to : persons);
  stock->from = (uint32_t)(from < stock->to ? from : stock->to);
}

static void shuffle(struct shelf *shelf, uint64_t seed, uint32_t arm) {
  struct cv_rng_seeded rng;
  cv_rng_seeded_init(&rng, seed, CV_RNG_ROWS, arm, UINT64_MAX - 1);
  for (uint32_t i = shelf->count; i > 1; i--) {
    uint32_t j = (uint32_t)cv_rng_below(&rng.rng, i), row = shelf->row[i - 1];
    shelf->row[i - 1] = shelf->row[j];
    shelf->row[j] = row;
  }
}

/* Counting sort of the rows by arm, then a random order within each arm. */
static void fill_shelves(struct cv_stock *stock) {
  const struct cv_persons *persons = stock->config.persons;
  uint64_t first = first_row(stock), rows = rows_of(stock);
  for (uint64_t i = 0; i < rows; i++) {
    stock->shelf[persons->arm[first + i]].count++;
  }
  uint32_t *next = stock->order;
  for (uint32_t arm = 0; arm < stock->config.arms; arm++) {
    stock->shelf[arm].row = next;
    next += stock->shelf[arm].count;
    stock->shelf[arm].count = 0;
  }
  for (uint64_t i = 0; i < rows; i++) {
    struct shelf *shelf = &stock->shelf[persons->arm[first + i]];
    shelf->row[shelf->count++] = (uint32_t)(first + i);
  }
  for (uint32_t arm = 0; arm < stock->config.arms; arm++) {
    shuffle(&stock->shelf[arm], stock->config.seed, arm);
    stock->shelf[arm].left = stock->shelf[arm].rows = stock->shelf[arm].count;
    /* One person at first: the broker's answer tells whether more are wanted. */
    stock->shelf[arm].window.allowed = 1;
  }
  for (uint32_t i = stock->from; i < stock->to; i++) {
    stock->left[i - stock->from] = (uint32_t)cv_persons_rows(persons, i);
    stock->chosen[i - stock->from] = NO_ROW;
  }
}

enum cv_err cv_stock_new(const struct cv_stock_config *config, struct cv_stock **ret) {
  struct cv_stock *stock = calloc(1, sizeof(*stock));
  if (stock == NULL) {
    return CV_ERR_NOMEM;
  }
  stock->config = *config;
  find_range(stock);
  /* One more than needed: a range without rows must not look like a failed allocation. */
  size_t rows = rows_of(stock) + 1;
  stock->order = calloc(rows, sizeof(*stock->order));
  stock->taken = calloc(rows, sizeof(*stock->taken));
  stock->state = calloc(rows, sizeof(*stock->state));
  stock->left = calloc((size_t)(stock->to - stock->from) + 1, sizeof(*stock->left));
  stock->chosen = calloc((size_t)(stock->to - stock->from) + 1, sizeof(*stock->chosen));
  stock->shelf = calloc(config->arms, sizeof(*stock->shelf));
  if (stock->order == NULL || stock->taken == NULL || stock->state == NULL || stock->left == NULL ||
      stock->chosen == NULL || stock->shelf == NULL) {
    cv_stock_free(stock);
    return CV_ERR_NOMEM;
  }
  fill_shelves(stock);
  stock->explorers.allowed = 1;
  *ret = stock;
  return CV_OK;
}

void cv_stock_free(struct cv_stock *stock) {
  if (stock == NULL) {
    return;
  }
  free(stock->order);
  free(stock->taken);
  free(stock->state);
  free(stock->left);
  free(stock->chosen);
  free(stock->shelf);
  free(stock);
}

/* ---- rows ---- */

uint32_t cv_stock_persons(const struct cv_stock *stock) {
  return stock->to - stock->from;
}

/* The person of a worker; `to` if the worker is not a person of the range. */
static uint32_t person_of(const struct cv_stock *stock, uint64_t worker) {
  uint64_t first = stock->config.first_worker;
  bool is_one = worker >= first && worker - first >= stock->from && worker - first < stock->to;
  return is_one ? (uint32_t)(worker - first) : stock->to;
}

/* The person that a row belongs to: the last person whose first row is not after it. */
static uint32_t owner_of(const struct cv_stock *stock, uint64_t row) {
  const uint64_t *start = stock->config.persons->start;
  uint32_t low = stock->from, high = stock->to - 1;
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2;
    if (start[middle] <= row) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

static enum row state_of(const struct cv_stock *stock, uint64_t row) {
  return (enum row)stock->state[row - first_row(stock)];
}

/* Where a row is in a random order of all rows, for a person's choice among its own. */
static uint64_t rank_of(const struct cv_stock *stock, uint64_t row) {
  return cv_rng_branch(cv_rng_branch(cv_rng_root(stock->config.seed), 0, CV_RNG_ROWS), 1, row);
}

static void set_state(struct cv_stock *stock, uint32_t person, uint64_t row, enum row state) {
  enum row before = state_of(stock, row);
  uint32_t *left = &stock->left[person - stock->from], *of_arm = &stock->shelf[stock->config.persons->arm[row]].left;
  *left = *left - (before == ROW_LEFT) + (state == ROW_LEFT);
  *of_arm = *of_arm - (before == ROW_LEFT) + (state == ROW_LEFT);
  stock->state[row - first_row(stock)] = (uint8_t)state;
}

static void give(struct cv_stock *stock, uint32_t person, uint64_t row) {
  const struct cv_persons *persons = stock->config.persons;
  set_state(stock, person, row, ROW_GIVEN);
  for (uint64_t other = persons->start[person]; stock->once && other < persons->start[person + 1]; other++) {
    if (persons->arm[other] == persons->arm[row] && state_of(stock, other) == ROW_LEFT) {
      set_state(stock, person, other, ROW_BARRED);
    }
  }
}

/* Whether a person gives the row rather than another one of the same arm. */
static bool is_before(const struct cv_stock *stock, uint64_t row, uint64_t other) {
  bool is_given = state_of(stock, row) == ROW_GIVEN, other_given = state_of(stock, other) == ROW_GIVEN;
  return is_given != other_given ? is_given : rank_of(stock, row) < rank_of(stock, other);
}

/* Bars all rows of a person but one of each arm. `kept`, per arm: 1 + the row of the last person that is kept. */
static void bar(struct cv_stock *stock, uint32_t person, uint32_t *kept) {
  const struct cv_persons *persons = stock->config.persons;
  const uint64_t start = persons->start[person], end = persons->start[person + 1];
  for (uint64_t row = start; row < end; row++) {
    uint32_t *of_arm = &kept[persons->arm[row]];
    *of_arm = *of_arm <= start || is_before(stock, row, *of_arm - 1) ? (uint32_t)row + 1 : *of_arm;
  }
  for (uint64_t row = start; row < end; row++) {
    if (kept[persons->arm[row]] != row + 1 && state_of(stock, row) == ROW_LEFT) {
      set_state(stock, person, row, ROW_BARRED);
    }
  }
}

static void unbar(struct cv_stock *stock, uint32_t person) {
  const struct cv_persons *persons = stock->config.persons;
  for (uint64_t row = persons->start[person]; row < persons->start[person + 1]; row++) {
    if (state_of(stock, row) == ROW_BARRED) {
      set_state(stock, person, row, ROW_LEFT);
    }
  }
}

enum cv_err cv_stock_ask_once(struct cv_stock *stock, bool once) {
  if (once == stock->once) {
    return CV_OK;
  }
  uint32_t *kept = calloc(stock->config.arms, sizeof(*kept));
  if (kept == NULL) {
    return CV_ERR_NOMEM;
  }
  stock->once = once;
  for (uint32_t person = stock->from; person < stock->to; person++) {
    once ? bar(stock, person, kept) : unbar(stock, person);
  }
  free(kept);
  for (uint32_t arm = 0; arm < stock->config.arms; arm++) {
    stock->shelf[arm].count = stock->shelf[arm].rows;
  }
  return CV_OK;
}

uint64_t cv_stock_given(const struct cv_stock *stock, uint64_t worker) {
  const uint64_t *start = stock->config.persons->start;
  uint32_t person = person_of(stock, worker);
  uint64_t given = 0;
  for (uint64_t row = start[person]; person < stock->to && row < start[person + 1]; row++) {
    given += state_of(stock, row) == ROW_GIVEN;
  }
  return given;
}

uint64_t cv_stock_left(const struct cv_stock *stock, uint64_t worker) {
  uint32_t person = person_of(stock, worker);
  return person == stock->to ? 0 : stock->left[person - stock->from];
}

/* The first row of the worker for the arm in this state, in the random order; NO_ROW if there is none. */
static uint32_t find_row(const struct cv_stock *stock, uint64_t worker, uint32_t arm, enum row state) {
  const struct cv_persons *persons = stock->config.persons;
  uint32_t person = person_of(stock, worker), found = NO_ROW;
  for (uint64_t row = persons->start[person]; person < stock->to && row < persons->start[person + 1]; row++) {
    bool fits = persons->arm[row] == arm && state_of(stock, row) == state;
    found = fits && (found == NO_ROW || rank_of(stock, row) < rank_of(stock, found)) ? (uint32_t)row : found;
  }
  return found;
}

bool cv_stock_any(const struct cv_stock *stock, bool (*may)(void *data, uint64_t worker), void *data) {
  for (uint32_t i = stock->from; i < stock->to; i++) {
    if (stock->left[i - stock->from] > 0 && may(data, stock->config.first_worker + i)) {
      return true;
    }
  }
  return false;
}

bool cv_stock_any_of(const struct cv_stock *stock, uint32_t arm, bool (*may)(void *data, uint64_t worker), void *data) {
  const struct shelf *shelf = &stock->shelf[arm];
  if (shelf->left == 0 || !shelf->nobody) {
    return shelf->left > 0;
  }
  for (uint32_t i = 0; i < shelf->count; i++) {
    uint32_t row = shelf->row[i];
    if (state_of(stock, row) == ROW_LEFT && may(data, stock->config.first_worker + owner_of(stock, row))) {
      return true;
    }
  }
  return false;
}

bool cv_stock_has(const struct cv_stock *stock, uint64_t worker, uint32_t arm) {
  return find_row(stock, worker, arm, ROW_LEFT) != NO_ROW;
}

bool cv_stock_has_given(const struct cv_stock *stock, uint64_t worker, uint32_t arm) {
  return find_row(stock, worker, arm, ROW_GIVEN) != NO_ROW;
}

bool cv_stock_is_next(const struct cv_stock *stock, uint64_t worker, uint32_t arm) {
  uint32_t person = person_of(stock, worker), row = person == stock->to ? NO_ROW : stock->chosen[person - stock->from];
  return row != NO_ROW && stock->config.persons->arm[row] == arm && state_of(stock, row) == ROW_LEFT;
}

bool cv_stock_take(struct cv_stock *stock, uint64_t worker, uint32_t arm, uint64_t *ret_row, int64_t *ret_score) {
  uint32_t person = person_of(stock, worker);
  uint32_t row = cv_stock_is_next(stock, worker, arm) ? stock->chosen[person - stock->from]
                                                      : find_row(stock, worker, arm, ROW_LEFT);
  if (row == NO_ROW) {
    return false;
  }
  give(stock, person, row);
  stock->taken[stock->takens++] = row;
  *ret_row = row;
  *ret_score = stock->config.persons->value[row];
  return true;
}

bool cv_stock_mark(struct cv_stock *stock, uint64_t row) {
  if (row >= stock->config.persons->start[stock->config.persons->persons]) {
    return false;
  }
  /* A row outside of this range was given when the certificate had another one. */
  bool is_here = row >= first_row(stock) && row - first_row(stock) < rows_of(stock);
  if (is_here && state_of(stock, row) != ROW_GIVEN) {
    give(stock, owner_of(stock, row), row);
  }
  return true;
}

const uint32_t *cv_stock_taken(const struct cv_stock *stock, size_t *ret_count) {
  *ret_count = stock->takens;
  return stock->taken;
}

void cv_stock_kept(struct cv_stock *stock) {
  stock->takens = 0;
}

/* ---- choice of the next person ---- */

static void begin_pause(struct pause *pause, uint64_t now_ms, uint32_t first_ms, uint32_t most_ms) {
  uint32_t length_ms = pause->next_ms == 0 ? first_ms : pause->next_ms;
  pause->until_ms = now_ms + length_ms;
  pause->next_ms = 2 * length_ms < most_ms ? 2 * length_ms : most_ms;
}

static bool is_closed(const struct window *window, uint64_t now_ms) {
  return window->closed.until_ms > now_ms;
}

static bool has_room(const struct window *window, uint64_t now_ms) {
  return !is_closed(window, now_ms) && window->waiting < window->allowed;
}

/* A wish was granted: reopen the window and let one more person wait. */
static void grant(struct window *window, uint32_t most) {
  window->closed = (struct pause){0};
  window->allowed += window->allowed < most;
}

/* A wish was not granted: halve the window, and close it for a while at 0. */
static void miss(struct window *window, uint64_t now_ms, uint32_t first_ms, uint32_t most_ms) {
  /* Like congestion control: unwanted persons back off fast, and come back one by one. */
  window->allowed /= 2;
  if (window->allowed == 0) {
    window->allowed = 1;
    begin_pause(&window->closed, now_ms, first_ms, most_ms);
  }
}

static struct window *window_of(struct cv_stock *stock, uint32_t wish) {
  return wish < stock->config.arms ? &stock->shelf[wish].window : &stock->explorers;
}

void cv_stock_forget(struct cv_stock *stock, uint32_t wish) {
  struct window *window = window_of(stock, wish);
  window->waiting -= window->waiting > 0; /* probes of the core were not counted */
}

void cv_stock_dealt(struct cv_stock *stock, uint32_t wish, uint32_t arm, uint64_t now_ms) {
  struct shelf *dealt = arm < stock->config.arms ? &stock->shelf[arm] : NULL;
  bool is_wish = wish < stock->config.arms;
  cv_stock_forget(stock, wish);
  /* The broker assigned this arm, so the arm is open, whichever worker got it. */
  if (dealt != NULL) {
    dealt->window.closed = (struct pause){0};
  }
  if (is_wish ? wish == arm : dealt != NULL && dealt->count > 0 && !dealt->nobody) {
    grant(window_of(stock, wish), is_wish ? UINT32_MAX : EXPLORERS_MOST);
  } else {
    miss(window_of(stock, wish), now_ms, is_wish ? CLOSED_MS : EXPLORE_MS, is_wish ? CLOSED_MOST_MS : EXPLORE_MOST_MS);
  }
}

typedef enum cv_stock_may may_fn(void *data, uint64_t worker);

/* One of the rows that waited, whose person comes; NO_ROW if there is none among a few, in turn. Those whose persons
 * are busy go on waiting, and those whose persons are out are met again like all rows that were passed over. */
static uint32_t late_of(struct cv_stock *stock, struct shelf *shelf, may_fn *may, void *data) {
  for (int tries = 0; tries < TRIES && shelf->lates > 0; tries++) {
    uint32_t at = shelf->late_at < shelf->lates ? shelf->late_at : 0, row = shelf->late[at];
    bool is_left = state_of(stock, row) == ROW_LEFT;
    enum cv_stock_may one = is_left ? may(data, stock->config.first_worker + owner_of(stock, row)) : CV_STOCK_OUT;
    shelf->late_at = at + (one == CV_STOCK_BUSY);
    if (one != CV_STOCK_BUSY) {
      shelf->late[at] = shelf->late[--shelf->lates];
    }
    if (one == CV_STOCK_COMES) {
      return row;
    }
  }
  return NO_ROW;
}

static bool is_late(const struct shelf *shelf, uint32_t row) {
  for (uint32_t i = 0; i < shelf->lates; i++) {
    if (shelf->late[i] == row) {
      return true;
    }
  }
  return false;
}

/* The next row of an arm whose person comes, in at most TRIES tries; NO_ROW if there is none. Puts aside rows that may
 * not be given. */
static uint32_t next_of(struct cv_stock *stock, struct shelf *shelf, may_fn *may, void *data) {
  uint32_t found = late_of(stock, shelf, may, data);
  /* A few tries only: this runs for every arrival. */
  for (int tries = 0; found == NO_ROW && tries < TRIES && shelf->count > 0 && shelf->lates < CV_STOCK_LATE;) {
    shelf->at = shelf->at < shelf->count ? shelf->at : 0;
    uint32_t row = shelf->row[shelf->at];
    if (state_of(stock, row) != ROW_LEFT) {
      /* When met, not when given: a row is given by person and arm, without its place on the shelf. */
      shelf->row[shelf->at] = shelf->row[--shelf->count];
      shelf->row[shelf->count] = row; /* a barred one may be wanted again */
      continue;
    }
    shelf->at++;
    tries++;
    enum cv_stock_may one =
        is_late(shelf, row) ? CV_STOCK_OUT : may(data, stock->config.first_worker + owner_of(stock, row));
    if (one == CV_STOCK_BUSY) {
      shelf->late[shelf->lates++] = row;
    }
    found = one == CV_STOCK_COMES ? row : NO_ROW;
  }
  shelf->nobody = found == NO_ROW;
  return found;
}

bool cv_stock_next(struct cv_stock *stock, uint64_t now_ms, may_fn *may, void *data, uint64_t *ret_worker,
                   uint32_t *ret_arm) {
  bool may_explore = has_room(&stock->explorers, now_ms);
  for (uint32_t i = 0; i < stock->config.arms; i++) {
    uint32_t arm = stock->cursor;
    stock->cursor = arm + 1 == stock->config.arms ? 0 : arm + 1;
    struct shelf *shelf = &stock->shelf[arm];
    /* Only for arms that are closed, for which no person comes by a wish. */
    bool explores = may_explore && is_closed(&shelf->window, now_ms);
    uint32_t row = explores || has_room(&shelf->window, now_ms) ? next_of(stock, shelf, may, data) : NO_ROW;
    if (row != NO_ROW) {
      uint32_t person = owner_of(stock, row);
      stock->chosen[person - stock->from] = row;
      *ret_worker = stock->config.first_worker + person;
      *ret_arm = explores ? CV_STOCK_NONE : arm;
      window_of(stock, *ret_arm)->waiting++;
      return true;
    }
  }
  return false;
}
