/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/launcher/unit.h"

#include <math.h>

#include "common/base/text.h"
#include "common/base/width.h"
#include "deploy/launcher/json.h"

enum { COLUMNS = 18 };

/* A scale that was not declared is the file's own range, which tells of single rows. */
static bool is_own(const struct cv_scale *scale) {
  static const struct cv_scale usual = {.low = 0, .high = 1};
  return cv_scale_is_declared(scale) && !cv_scale_is_same(scale, &usual);
}

struct cv_unit cv_unit_of(const struct cv_prepared *file) {
  struct cv_unit unit = {0};
  if (file != NULL && file->file.items.source == CV_SOURCE_CSV && is_own(&file->file.spec.scale)) {
    unit.name = file->file.items.csv.score_column;
    unit.scale = file->file.spec.scale;
  }
  return unit;
}

/* Without high - low, which may be more than a double can hold. */
static double mean_of(const struct cv_unit *unit, double mean) {
  return (1 - mean) * unit->scale.low + mean * unit->scale.high;
}

static double radius_of(const struct cv_unit *unit, double radius) {
  return radius * unit->scale.high - radius * unit->scale.low;
}

static void print_padded(const char *text, FILE *to) {
  int width = (int)cv_width_of(text);
  (void)fprintf(to, "  %s%*s", text, width < COLUMNS ? COLUMNS - width : 0, "");
}

void cv_unit_print_heading(const struct cv_unit *unit, FILE *to) {
  if (unit->name != NULL) {
    char text[COLUMNS + 1];
    cv_text_print(text, sizeof(text), "%s", unit->name);
    print_padded(text, to);
  }
}

/* As many decimals as four of the scale from 0 to 1 are worth; -1: more than fit, or a scale beyond them. */
static int decimals(const struct cv_unit *unit) {
  double most = 4 - floor(log10(unit->scale.high / 2 - unit->scale.low / 2));
  return most >= 0 && most <= 9 ? (int)most : -1;
}

void cv_unit_print_cell(const struct cv_unit *unit, const struct cv_standing *standing, FILE *to) {
  char text[400] = "-", radius[160] = "";
  if (unit->name == NULL) {
    return;
  }
  int digits = decimals(unit);
  if (standing->tokens > 0 && standing->radius > 0) {
    (void)snprintf(radius, sizeof(radius), digits < 0 ? " ± %.*g" : " ± %.*f", digits < 0 ? 2 : digits,
                   radius_of(unit, standing->radius));
  }
  if (standing->tokens > 0) {
    (void)snprintf(text, sizeof(text), digits < 0 ? "%.*g%s" : "%.*f%s", digits < 0 ? 4 : digits,
                   mean_of(unit, standing->mean), radius);
  }
  print_padded(text, to);
}

/* JSON has no infinity, which noise can lead to at the ends of the numbers. */
static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *item_json(const struct cv_unit *unit, const struct cv_standing *standing) {
  return standing->tokens == 0 ? json_null()
                               : json_pack("{s:o, s:o}", "mean", number(mean_of(unit, standing->mean)), "radius",
                                           number(radius_of(unit, standing->radius)));
}

json_t *cv_unit_json(const struct cv_unit *unit, const char *const *name, const struct cv_standing *standing,
                     uint32_t arms) {
  if (unit->name == NULL) {
    return json_null();
  }
  json_t *items = json_object();
  for (uint32_t i = 0; i < arms; i++) {
    items = cv_json_set(items, name[i], item_json(unit, &standing[i]));
  }
  return json_pack("{s:s, s:f, s:f, s:o}", "score", unit->name, "low", unit->scale.low, "high", unit->scale.high,
                   "items", items);
}

void cv_unit_print_notes(const struct cv_prepared *file, FILE *to) {
  const struct cv_data_notes *notes = &file->source.notes;
  for (uint32_t i = 0; i < notes->count; i++) {
    (void)fprintf(to, "%s\n", notes->note[i].text);
  }
}

json_t *cv_unit_notes_json(const struct cv_prepared *file) {
  const struct cv_data_notes *notes = &file->source.notes;
  json_t *all = json_array();
  for (uint32_t i = 0; i < notes->count; i++) {
    all = cv_json_append(all, json_string(notes->note[i].text));
  }
  return all;
}
