/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/result/csv.h"

#include <inttypes.h>
#include <math.h>

#include "common/base/text.h"

/* A name as a quoted field. */
struct field {
  char text[2 * CV_LAB_NAME + 2];
};

static struct field field_of(const char *name) {
  struct field field;
  cv_text_csv(name, field.text, sizeof(field.text));
  return field;
}

/* Writes a comma and the number; an empty field for a number that is not finite. */
static void put_number(double value, FILE *to) {
  (void)fputc(',', to);
  if (isfinite(value)) {
    (void)fprintf(to, "%.17g", value); /* reads back as the same double */
  }
}

enum cv_err cv_lab_csv_rows(const struct cv_lab_result *result, FILE *to) {
  char name[2 * CV_LAB_NAME + 64];
  (void)fprintf(to, "preset,series,x,metric,mean,se,n\n");
  cv_text_csv(result->preset, name, sizeof(name));
  for (size_t i = 0; i < result->rows; i++) {
    const struct cv_lab_row *row = &result->row[i];
    (void)fprintf(to, "%s,%s", name, field_of(row->series).text);
    put_number(row->x, to);
    (void)fprintf(to, ",%s", field_of(row->metric).text);
    put_number(row->mean, to);
    put_number(row->se, to);
    (void)fprintf(to, ",%" PRIu64 "\n", row->n);
  }
  return ferror(to) == 0 ? CV_OK : CV_ERR_IO;
}

struct writing {
  const struct cv_lab_origin *origin;
  FILE *to;
};

static enum cv_err put_trial(void *data, uint64_t setting, uint64_t replicate, const double *numbers,
                             struct cv_why *why) {
  const struct writing *writing = data;
  const struct cv_lab_origin *origin = writing->origin;
  for (size_t i = 0; i < cv_lab_origin_numbers(origin); i++) {
    struct cv_lab_place place = cv_lab_origin_place(origin, setting, i);
    if (!isnan(numbers[i])) {
      (void)fputs(field_of(origin->series_name[place.series].text).text, writing->to);
      put_number(origin->x[place.point], writing->to);
      (void)fprintf(writing->to, ",%s,%" PRIu64, field_of(origin->metric_name[place.metric].text).text, replicate + 1);
      put_number(numbers[i], writing->to);
      (void)fputc('\n', writing->to);
    }
  }
  return ferror(writing->to) == 0 ? CV_OK : CV_ERR_IO;
}

enum cv_err cv_lab_csv_trials(struct cv_lab_archive *archive, FILE *to, struct cv_why *why) {
  struct cv_lab_origin origin;
  CV_TRY(cv_lab_archive_origin(archive, &origin, why));
  struct writing writing = {.origin = &origin, .to = to};
  (void)fprintf(to, "series,x,metric,replicate,value\n");
  enum cv_err err = cv_lab_archive_each(archive, &origin, put_trial, &writing, why);
  cv_lab_origin_fini(&origin);
  return err;
}
