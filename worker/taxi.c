/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/taxi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/table.h"
#include "worker/records.h"

/* A trip round the world is a slip of the pen. */
enum { DRIVERS_MAX = 1 << 20, MILES_MAX = 25000 };

enum { TAXI, MILES, AREA, COLUMNS };
static const char *const column_names[COLUMNS] = {"taxi_id", "trip_miles", "pickup_community_area"};

struct driver {
  char name[CV_NAME_BYTES];
  uint64_t trips;
  double miles;
  UT_hash_handle hh;
};

struct reading {
  const struct cv_items *items;
  struct cv_records records;
  uint32_t fields, at[COLUMNS];
  struct driver *drivers; /* by name */
};

static enum cv_err read_header(struct reading *reading, struct cv_why *why) {
  bool end;
  CV_TRY(cv_records_next(&reading->records, &end, why));
  reading->fields = end ? 0 : reading->records.fields;
  for (int column = 0; column < COLUMNS; column++) {
    uint32_t at = 0;
    while (at < reading->fields && strcmp(cv_records_field(&reading->records, at), column_names[column]) != 0) {
      at++;
    }
    if (at == reading->fields) {
      return cv_fail(why, CV_ERR_INVALID, "%s:1: no column \"%s\"; expected taxi_id, trip_miles, pickup_community_area",
                     reading->items->file, column_names[column]);
    }
    reading->at[column] = at;
  }
  return CV_OK;
}

/* A number, or false for what a report leaves open. */
static bool take_number(const struct reading *reading, int column, double most, double *ret) {
  const char *text = cv_records_field(&reading->records, reading->at[column]);
  char *end;
  double number = strtod(text, &end);
  if (end == text || *end != '\0' || !(number >= 0 && number <= most)) {
    return false;
  }
  *ret = number;
  return true;
}

static enum cv_err find_driver(struct reading *reading, const char *name, struct driver **ret, struct cv_why *why) {
  struct driver *driver;
  HASH_FIND_STR(reading->drivers, name, driver);
  if (driver == NULL && HASH_COUNT(reading->drivers) == DRIVERS_MAX) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: more than %d taxis", reading->items->file, DRIVERS_MAX);
  }
  if (driver == NULL) {
    driver = calloc(1, sizeof(*driver));
    if (driver == NULL) {
      return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", reading->items->file);
    }
    (void)snprintf(driver->name, sizeof(driver->name), "%s", name);
    if (CV_TABLE_ADD_TEXT(reading->drivers, name, driver) != CV_OK) {
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
    double miles, area;
    CV_TRY(cv_records_next(&reading->records, &end, why));
    if (end) {
      return CV_OK;
    }
    if (reading->records.fields != reading->fields) {
      return cv_fail(why, CV_ERR_INVALID, "%s:%llu: %u fields; expected %u as in the header", reading->items->file,
                     (unsigned long long)reading->records.start, reading->records.fields, reading->fields);
    }
    const char *name = cv_records_field(&reading->records, reading->at[TAXI]);
    bool is_here =
        reading->items->area == 0 || (take_number(reading, AREA, 1e9, &area) && area == (double)reading->items->area);
    if (!is_here || !cv_name_is_valid(name) || !take_number(reading, MILES, MILES_MAX, &miles)) {
      continue;
    }
    struct driver *driver;
    CV_TRY(find_driver(reading, name, &driver, why));
    driver->trips++;
    driver->miles += miles;
  }
}

static int by_trips(const struct driver *a, const struct driver *b) {
  return a->trips != b->trips ? (a->trips > b->trips ? -1 : 1) : strcmp(a->name, b->name);
}

/* The busiest first, until there are enough of them or they are not busy enough. */
static enum cv_err choose(struct reading *reading, struct cv_taxis *taxis, struct cv_why *why) {
  const struct cv_items *items = reading->items;
  uint32_t most = items->top > 0 ? items->top : UINT32_MAX, n = 0;
  HASH_SORT(reading->drivers, by_trips);
  for (const struct driver *driver = reading->drivers;
       driver != NULL && n < most && driver->trips >= items->least_trips; driver = driver->hh.next) {
    n++;
  }
  if (n == 0 || n > CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "%s: %u taxis of this area have that many trips; expected 1 to %d", items->file,
                   n, CV_ARMS_MAX);
  }
  taxis->drivers = n;
  taxis->name = calloc(n, sizeof(*taxis->name));
  taxis->miles = calloc(n, sizeof(*taxis->miles));
  if (taxis->name == NULL || taxis->miles == NULL) {
    return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", items->file);
  }
  const struct driver *driver = reading->drivers;
  for (uint32_t i = 0; i < n; i++, driver = driver->hh.next) {
    memcpy(taxis->name[i].text, driver->name, sizeof(driver->name));
    taxis->miles[i] = driver->miles / (double)driver->trips;
    taxis->trips += driver->trips;
  }
  return CV_OK;
}

enum cv_err cv_taxis_read(const struct cv_items *items, struct cv_taxis *ret, struct cv_why *why) {
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

void cv_taxis_fini(struct cv_taxis *taxis) {
  if (taxis != NULL) {
    free(taxis->name);
    free(taxis->miles);
    *taxis = (struct cv_taxis){0};
  }
}
