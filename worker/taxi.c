/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/taxi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/table.h"
#include "common/base/text.h"
#include "worker/records.h"

/* The ids of the City of Chicago are 128 hexadecimal digits. Longer trips than MILES_MAX are data errors. */
enum { DRIVERS_MAX = 1 << 20, ID_MAX = 128, MILES_MAX = 25000 };
enum { NAME_BYTES = 64 }; /* of a driver: the first digits of its id, so that tables stay narrow */
static const double AREA_MAX = 1e9;

enum { TAXI, MILES, AREA };
const char *const cv_taxi_columns[CV_TAXI_COLUMNS] = {"taxi_id", "trip_miles", "pickup_community_area"};

struct driver {
  char id[ID_MAX + 1];
  uint64_t trips;
  double miles;
  UT_hash_handle hh;
};

struct reading {
  const struct cv_items_taxi *items;
  struct cv_records records;
  uint32_t fields, at[CV_TAXI_COLUMNS];
  struct driver *drivers; /* by id */
};

#define LINE(reading) (reading)->items->file, (unsigned long long)(reading)->records.start

static enum cv_err read_header(struct reading *reading, struct cv_why *why) {
  bool end;
  CV_TRY(cv_records_next(&reading->records, &end, why));
  if (end) {
    return cv_fail(why, CV_ERR_INVALID, "%s:1: the file is empty; expected a header line with columns %s, %s and %s",
                   reading->items->file, cv_taxi_columns[TAXI], cv_taxi_columns[MILES], cv_taxi_columns[AREA]);
  }
  reading->fields = reading->records.fields;
  for (int column = 0; column < CV_TAXI_COLUMNS; column++) {
    CV_TRY(cv_records_column(&reading->records, cv_taxi_columns[column], &reading->at[column], why));
  }
  return CV_OK;
}

static const char *field(const struct reading *reading, int column) {
  return cv_records_field(&reading->records, reading->at[column]);
}

/* Parses a number; an empty field counts as 0. */
static enum cv_err take_number(const struct reading *reading, int column, double most, double *ret,
                               struct cv_why *why) {
  const char *text = field(reading, column);
  double number = 0;
  if (text[0] != '\0' && (!cv_records_number(text, &number) || number < 0 || number > most)) {
    return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %s is \"%s\"; expected a number from 0 to %.0f, or nothing",
                   LINE(reading), cv_taxi_columns[column], cv_text_piece(text).text, most);
  }
  *ret = number;
  return CV_OK;
}

static enum cv_err find_driver(struct reading *reading, struct driver **ret, struct cv_why *why) {
  const char *id = field(reading, TAXI);
  struct driver *driver;
  size_t n = strlen(id);
  if (n > ID_MAX || !cv_text_is_clean(id, n)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s:%llu: taxi_id \"%s\" is not a valid id; expected 1 to %d bytes of printable UTF-8",
                   LINE(reading), cv_text_piece(id).text, ID_MAX);
  }
  HASH_FIND_STR(reading->drivers, id, driver);
  /* A wrong file could have a new taxi in every row. */
  if (driver == NULL && HASH_COUNT(reading->drivers) == DRIVERS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: too many taxis; expected at most %d", reading->items->file, DRIVERS_MAX);
  }
  if (driver == NULL) {
    driver = calloc(1, sizeof(*driver));
    if (driver == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->items->file);
    }
    memcpy(driver->id, id, n);
    if (CV_TABLE_ADD_TEXT(reading->drivers, id, driver) != CV_OK) {
      free(driver);
      return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->items->file);
    }
  }
  *ret = driver;
  return CV_OK;
}

static enum cv_err read_trips(struct reading *reading, struct cv_why *why) {
  for (;;) {
    bool end;
    double miles = 0, area = 0;
    struct driver *driver;
    CV_TRY(cv_records_row(&reading->records, reading->fields, &end, why));
    if (end) {
      return CV_OK;
    }
    CV_TRY(take_number(reading, MILES, MILES_MAX, &miles, why));
    /* Without an area in the campaign both sides of the comparison below are 0: every trip counts. */
    if (reading->items->area > 0) {
      CV_TRY(take_number(reading, AREA, AREA_MAX, &area, why));
    }
    /* The published data have trips without distance, and trips without a taxi; neither has a cost. */
    if (area != (double)reading->items->area || miles == 0 || field(reading, TAXI)[0] == '\0') {
      continue;
    }
    CV_TRY(find_driver(reading, &driver, why));
    driver->trips++;
    driver->miles += miles;
  }
}

static int by_trips(const struct driver *a, const struct driver *b) {
  /* Ties by id: the choice of the top drivers must not depend on the order of the file. */
  return a->trips != b->trips ? (a->trips > b->trips ? -1 : 1) : strcmp(a->id, b->id);
}

/* "in the file", or "from area 8". */
struct where {
  char text[40];
};

static struct where where_of(const struct cv_items_taxi *items) {
  struct where where = {.text = "in the file"};
  if (items->area > 0) {
    (void)snprintf(where.text, sizeof(where.text), "from area %llu", (unsigned long long)items->area);
  }
  return where;
}

/* Counts the drivers with at least least_trips trips, up to `top`. The drivers are sorted by trips. */
static enum cv_err count(const struct reading *reading, uint32_t *ret, struct cv_why *why) {
  const struct cv_items_taxi *items = reading->items;
  const struct driver *driver = reading->drivers;
  uint32_t most = items->top > 0 ? items->top : UINT32_MAX, n = 0;
  if (driver == NULL) {
    return cv_fail(why, CV_ERR_INVALID, "%s: no usable trip %s; expected rows with a taxi_id and trip_miles above 0%s",
                   items->file, where_of(items).text, items->area > 0 ? " from that area" : "");
  }
  for (; driver != NULL && n < most && driver->trips >= items->least_trips; driver = driver->hh.next) {
    n++;
  }
  if (n == 0) {
    return cv_fail(why, CV_ERR_INVALID, "%s: the busiest taxi has %llu trips %s; expected at least least_trips, %llu",
                   items->file, (unsigned long long)reading->drivers->trips, where_of(items).text,
                   (unsigned long long)items->least_trips);
  }
  if (n > CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT,
                   "%s: %u taxis have trips %s; expected at most %d: set top, or a larger least_trips", items->file, n,
                   where_of(items).text, CV_ARMS_MAX);
  }
  *ret = n;
  return CV_OK;
}

static enum cv_err take_cost(const struct cv_items_taxi *items, const struct driver *driver, uint64_t *ret,
                             struct cv_why *why) {
  double miles = driver->miles / (double)driver->trips;
  double micro = floor(miles * items->cost_per_mile * (double)CV_MICRO + 0.5);
  if (micro < 1 || micro > (double)CV_COST_MAX_MICRO) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: taxi %s costs %g: a mean trip of %g miles at cost_per_mile %g; expected 0.000001 to %.0f",
                   items->file, cv_text_piece(driver->id).text, micro / (double)CV_MICRO, miles, items->cost_per_mile,
                   (double)CV_COST_MAX_MICRO / (double)CV_MICRO);
  }
  *ret = (uint64_t)micro;
  return CV_OK;
}

static void add_name(const struct driver *driver, struct cv_names *names) {
  char text[NAME_BYTES] = "";
  /* Ids are of 128 digits; for people, the first ones say which taxi it is. */
  size_t n = strnlen(driver->id, sizeof(text) - 1);
  memcpy(text, driver->id, n);
  while (!cv_name_is_item(text)) { /* the cut may split a character: shorten further */
    text[--n] = '\0';
  }
  cv_names_add(names, text);
}

static enum cv_err choose(struct reading *reading, struct cv_taxis *taxis, struct cv_why *why) {
  HASH_SORT(reading->drivers, by_trips);
  CV_TRY(count(reading, &taxis->drivers, why));
  taxis->cost_micro = calloc(taxis->drivers, sizeof(*taxis->cost_micro));
  if (taxis->cost_micro == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->items->file);
  }
  struct cv_names names = {0};
  enum cv_err err = CV_OK;
  const struct driver *driver = reading->drivers;
  for (uint32_t i = 0; i < taxis->drivers && err == CV_OK; i++, driver = driver->hh.next) {
    err = take_cost(reading->items, driver, &taxis->cost_micro[i], why);
    add_name(driver, &names);
    taxis->trips += driver->trips;
  }
  if (err == CV_OK && cv_names_take(&names, &taxis->name) != CV_OK) {
    err = cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->items->file);
  }
  cv_names_fini(&names);
  return err;
}

enum cv_err cv_taxis_read(const struct cv_items_taxi *items, struct cv_taxis *ret, struct cv_why *why) {
  struct reading reading = {.items = items};
  struct cv_taxis taxis = {0};
  CV_TRY(cv_records_open(items->file, ',', &reading.records, why));
  enum cv_err err = read_header(&reading, why);
  if (err == CV_OK) {
    err = read_trips(&reading, why);
  }
  if (err == CV_OK) {
    err = choose(&reading, &taxis, why);
  }
  CV_TABLE_DRAIN(reading.drivers, free);
  cv_records_close(&reading.records);
  if (err != CV_OK) {
    cv_taxis_fini(&taxis);
    return err;
  }
  *ret = taxis;
  return CV_OK;
}

bool cv_taxis_are_same(const struct cv_items *a, const struct cv_items *b) {
  const struct cv_items_taxi *one = &a->taxi, *other = &b->taxi;
  return a->source == CV_SOURCE_TAXI && b->source == CV_SOURCE_TAXI && strcmp(one->file, other->file) == 0 &&
         one->area == other->area && one->least_trips == other->least_trips && one->top == other->top &&
         !(one->cost_per_mile < other->cost_per_mile) && !(one->cost_per_mile > other->cost_per_mile);
}

void cv_taxis_fini(struct cv_taxis *taxis) {
  if (taxis != NULL) {
    free(taxis->name);
    free(taxis->cost_micro);
    *taxis = (struct cv_taxis){0};
  }
}
