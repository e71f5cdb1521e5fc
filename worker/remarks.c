/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/remarks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

/* So many items, and so many persons, are named that were typed in several ways. */
enum { SPELLINGS = 8 };

struct cv_remarks_number cv_remarks_number(double number) {
  struct cv_remarks_number shown;
  for (int digits = 1; digits <= 17; digits++) {
    (void)snprintf(shown.text, sizeof(shown.text), "%.*g", digits, number);
    double again = strtod(shown.text, NULL);
    if (!(again < number) && !(again > number)) {
      break;
    }
  }
  /* 700, not 7e+02 */
  if (strchr(shown.text, 'e') != NULL && fabs(number) >= 1 && fabs(number) < 1e15) {
    (void)snprintf(shown.text, sizeof(shown.text), "%.0f", number);
  }
  return shown;
}

/* The next free line, which begins with the file's name; the caller adds to it. */
static struct cv_why *add(struct cv_data_notes *notes) {
  CV_REQUIRE(notes->count < CV_DATA_NOTES_MAX);
  return &notes->note[notes->count++];
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static const char *name_of(const struct cv_tally *tally) {
  return base_of(tally->ask->file);
}

static const char *place_word(const struct cv_tally *tally) {
  return tally->ask->format == CV_FORMAT_SQLITE ? "row" : "line";
}

static void say_skipped(const struct cv_tally *tally, struct cv_data_notes *notes) {
  if (tally->skipped > 0) {
    cv_why_set(add(notes), "%s: %llu of %llu rows without a score are skipped, the first at %s %llu", name_of(tally),
               (unsigned long long)tally->skipped, (unsigned long long)(tally->rows + tally->skipped),
               place_word(tally), (unsigned long long)tally->first_skipped);
  }
}

static void say_left_out(const struct cv_tally *tally, struct cv_data_notes *notes) {
  uint32_t all = HASH_COUNT(tally->items);
  char rules[100] = "";
  size_t used = 0;
  if (tally->kept == all) {
    return;
  }
  if (tally->bare > 0) {
    used += (size_t)snprintf(rules + used, sizeof(rules) - used, ", %u without a score", tally->bare);
  }
  if (tally->ask->least_rows > 0) {
    used += (size_t)snprintf(rules + used, sizeof(rules) - used, ", min_rows: %llu",
                             (unsigned long long)tally->ask->least_rows);
  }
  if (tally->ask->top > 0) {
    used += (size_t)snprintf(rules + used, sizeof(rules) - used, ", top: %u", tally->ask->top);
  }
  cv_why_set(add(notes), "%s: %u of %u items are left out, and with them %llu of %llu rows (%s)", name_of(tally),
             all - tally->kept, all, (unsigned long long)(tally->rows - tally->kept_rows),
             (unsigned long long)tally->rows, used > 2 ? rules + 2 : "");
}

static void say_persons(const struct cv_tally *tally, uint32_t persons, struct cv_data_notes *notes) {
  uint32_t all = HASH_COUNT(tally->persons);
  if (persons < all) {
    cv_why_set(add(notes), "%s: %u of %u persons are left out, since none of their rows is of an item that stays",
               name_of(tally), all - persons, all);
  }
}

static void say_scale(const struct cv_tally *tally, struct cv_data_notes *notes) {
  struct cv_remarks_number low = cv_remarks_number(tally->extent.low), high = cv_remarks_number(tally->extent.high);
  struct cv_stretch stretch;
  if (cv_scale_is_declared(&tally->ask->scale)) {
    return;
  }
  cv_why_set(add(notes), "%s: the scale of %s is the min-max of the file, %s to %s; name it with scale: [%s, %s]",
             name_of(tally), tally->ask->score_column, low.text, high.text, low.text, high.text);
  if (cv_extent_is_stretched(&tally->extent, &stretch)) {
    cv_why_set(add(notes),
               "%s: %s %llu stretches the scale: its %s is %s, but %.4g %% of the rows lie in %s to %s, %.2g %% of the "
               "scale; expected that row corrected or left out",
               name_of(tally), place_word(tally), (unsigned long long)stretch.at, tally->ask->score_column,
               cv_remarks_number(stretch.value).text, 100 * stretch.rows, cv_remarks_number(stretch.low).text,
               cv_remarks_number(stretch.high).text, 100 * stretch.range);
  }
}

static void say_clamped(const struct cv_tally *tally, struct cv_data_notes *notes) {
  if (tally->clamped > 0) {
    cv_why_set(add(notes),
               "%s: %llu of %llu scores are outside the scale and count as its nearer end, the first at %s "
               "%llu",
               name_of(tally), (unsigned long long)tally->clamped, (unsigned long long)tally->rows, place_word(tally),
               (unsigned long long)tally->first_clamped);
  }
}

void cv_remarks_spelling(struct cv_remarks_spellings *spellings, const char *name, const struct cv_spelling *spelling) {
  const char *place = spellings->place;
  if (spelling->again != 0 && spellings->count++ < SPELLINGS) {
    cv_why_set(add(spellings->notes),
               "%s: \"%s\" of %s %llu and of %s %llu are one %s, typed with other characters or blanks",
               base_of(spellings->file), cv_text_piece(name).text, place, (unsigned long long)spelling->first, place,
               (unsigned long long)spelling->again, spellings->kind);
  }
}

void cv_remarks_spellings_end(const struct cv_remarks_spellings *spellings) {
  if (spellings->count > SPELLINGS) {
    cv_why_set(add(spellings->notes), "%s: %u more %ss are typed in several ways", base_of(spellings->file),
               spellings->count - SPELLINGS, spellings->kind);
  }
}

static void say_spellings(const struct cv_tally *tally, struct cv_data_notes *notes) {
  struct cv_remarks_spellings items = {notes, tally->ask->file, place_word(tally), "item", 0}, persons = items;
  persons.kind = "person";
  for (const struct cv_tally_item *item = tally->items; item != NULL; item = item->hh.next) {
    cv_remarks_spelling(&items, item->name, &item->spelling);
  }
  cv_remarks_spellings_end(&items);
  for (const struct cv_tally_person *person = tally->persons; person != NULL; person = person->hh.next) {
    cv_remarks_spelling(&persons, person->name, &person->spelling);
  }
  cv_remarks_spellings_end(&persons);
}

static void say_unused(const struct cv_tally *tally, struct cv_data_notes *notes) {
  if (tally->unused > 0) {
    cv_why_set(add(notes), "%s: columns not used: %s", name_of(tally), tally->unused_names);
  }
}

void cv_remarks_make(const struct cv_tally *tally, uint32_t persons, struct cv_data_notes *ret) {
  ret->count = 0;
  say_spellings(tally, ret);
  say_scale(tally, ret);
  say_clamped(tally, ret);
  say_skipped(tally, ret);
  say_left_out(tally, ret);
  say_persons(tally, persons, ret);
  say_unused(tally, ret);
}

/* Its own range would tell of single rows, so it is offered to the file's owner and never taken. */
enum cv_err cv_remarks_ask_scale(const struct cv_tally *tally, struct cv_why *why) {
  struct cv_remarks_number low = cv_remarks_number(tally->extent.low), high = cv_remarks_number(tally->extent.high);
  struct cv_stretch stretch;
  if (!(tally->extent.low < tally->extent.high)) {
    return cv_fail(why, CV_ERR_INVALID,
                   "%s: items.scale is missing, and every %s is %s; expected the range of the question, such as "
                   "scale: [1, 5]",
                   tally->ask->file, tally->ask->score_column, low.text);
  }
  if (!cv_extent_is_stretched(&tally->extent, &stretch)) {
    return cv_fail(
        why, CV_ERR_INVALID,
        "%s: items.scale is missing: the scores go from %s to %s; write scale: [%s, %s] if that is the range "
        "of the question, whatever was answered",
        tally->ask->file, low.text, high.text, low.text, high.text);
  }
  low = cv_remarks_number(stretch.low);
  high = cv_remarks_number(stretch.high);
  return cv_fail(
      why, CV_ERR_INVALID,
      "%s: items.scale is missing: %.4g %% of the scores go from %s to %s, but that of %s %llu is %s; write "
      "scale: [%s, %s] if that is the range of the question, and outside: clamp unless you correct such rows",
      tally->ask->file, 100 * stretch.rows, low.text, high.text, place_word(tally), (unsigned long long)stretch.at,
      cv_remarks_number(stretch.value).text, low.text, high.text);
}
