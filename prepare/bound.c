/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare/bound.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "thirdparty/policy/kl.h"
#include "worker/quality/truth.h"

enum { HALVINGS = 60 };
static const double INFINITE = (double)INFINITY;

struct item {
  uint32_t arm, rank_class;
  uint32_t first, last; /* of its class, by place */
  double mean;
  double alone; /* its term of the sum, as a multiple of c */
  bool is_paired;
};

struct pair {
  uint32_t a, b; /* places */
  double gain;   /* above the terms of its arms, > 0 */
};

/* The items in descending order of their means; a place is an index of it. */
struct field {
  const struct cv_bound_ask *ask;
  struct item *item;
  struct pair *pair;
  size_t pairs;
};

static double unit(double mean) {
  return fmin(1, fmax(0, mean));
}

static double divergence(const struct field *field, uint32_t place, double to) {
  const struct item *item = &field->item[place];
  const struct cv_feedback *feedback = &field->ask->feedback[item->arm];
  if (fabs(item->mean - to) <= CV_TRUTH_SLACK) {
    return 0;
  }
  return cv_kl_private(unit(feedback->offset + feedback->slope * item->mean),
                       unit(feedback->offset + feedback->slope * unit(to)), field->ask->epsilon);
}

/* ---- one arm moves ---- */

static double end_above(const struct field *field, uint32_t place) {
  const struct item *item = &field->item[place];
  double alpha = field->ask->alpha, end = INFINITE;
  if (item->first > 0) {
    end = field->item[field->item[item->first - 1].first].mean - alpha;
  }
  if (item->last > item->first) {
    uint32_t worst = place == item->last ? item->last - 1 : item->last;
    end = fmin(end, field->item[worst].mean + alpha);
  }
  return end;
}

static double end_below(const struct field *field, uint32_t place) {
  const struct item *item = &field->item[place];
  double alpha = field->ask->alpha;
  if (place != item->first) {
    return field->item[item->first].mean - alpha;
  }
  double joined = item->last + 1 < field->ask->arms ? field->item[item->last + 1].mean + alpha : -INFINITE;
  bool has_second = item->last > item->first;
  return has_second && field->item[place + 1].mean > joined ? field->item[place + 1].mean - alpha : joined;
}

/* The ends that lie in [0,1]; infinite: there is none. */
struct ends {
  double above, below;
};

static struct ends find_ends(const struct field *field, uint32_t place) {
  struct ends ends = {end_above(field, place), end_below(field, place)};
  ends.above = ends.above < 1 - CV_TRUTH_SLACK ? ends.above : INFINITE;
  ends.below = ends.below > CV_TRUTH_SLACK ? ends.below : -INFINITE;
  return ends;
}

static double find_alone(const struct field *field, uint32_t place) {
  struct ends ends = find_ends(field, place);
  double least = INFINITE;
  if (isfinite(ends.above)) {
    least = fmin(least, divergence(field, place, ends.above));
  }
  if (isfinite(ends.below)) {
    least = fmin(least, divergence(field, place, ends.below));
  }
  return 1 / least;
}

/* ---- two arms move ---- */

/* The larger divergence if the upper one moves to `to` and the lower one to alpha below it. */
static double larger(const struct field *field, uint32_t upper, uint32_t lower, double to) {
  return fmax(divergence(field, upper, to), divergence(field, lower, to - field->ask->alpha));
}

/* The least of larger(): the upper one is nearest to its mean at `from`, the lower one at `to`. */
static double meet(const struct field *field, uint32_t upper, uint32_t lower, double from, double to) {
  for (int i = 0; i < HALVINGS; i++) {
    double middle = (from + to) / 2;
    bool is_near = divergence(field, lower, middle - field->ask->alpha) > divergence(field, upper, middle);
    *(is_near ? &from : &to) = middle;
  }
  return fmin(larger(field, upper, lower, from), larger(field, upper, lower, to));
}

/* Of one class: they end alpha apart, `upper` above. */
static double part(const struct field *field, uint32_t upper, uint32_t lower) {
  double alpha = field->ask->alpha;
  if (alpha > 1 - CV_TRUTH_SLACK) {
    return INFINITE;
  }
  return meet(field, upper, lower, fmax(field->item[upper].mean, alpha), fmin(field->item[lower].mean + alpha, 1));
}

/* Of neighbouring classes: `lower` comes within alpha of `best`, or of the second best of that class. */
static double join(const struct field *field, uint32_t best, uint32_t lower) {
  double to = field->item[lower].mean + field->ask->alpha;
  if (field->item[best].last > best) {
    to = fmax(to, field->item[best + 1].mean);
  }
  return meet(field, best, lower, field->item[best].mean, to);
}

static void add_pair(struct field *field, uint32_t a, uint32_t b) {
  const struct item *x = &field->item[a], *y = &field->item[b];
  double least = x->rank_class == y->rank_class ? fmin(part(field, a, b), part(field, b, a)) : join(field, a, b);
  double gain = 1 / least - x->alone - y->alone;
  if (gain > 0) {
    field->pair[field->pairs++] = (struct pair){.a = a, .b = b, .gain = gain};
  }
}

/* The best of each class with the others of its class and all of the next. */
static void add_pairs(struct field *field) {
  for (uint32_t best = 0; best < field->ask->arms; best = field->item[best].last + 1) {
    uint32_t last = field->item[best].last;
    uint32_t end = last + 1 < field->ask->arms ? field->item[last + 1].last : last;
    for (uint32_t place = best + 1; place <= end; place++) {
      add_pair(field, best, place);
    }
  }
}

static int compare_pairs(const void *a, const void *b) {
  const struct pair *x = a, *y = b;
  if (x->gain < y->gain || x->gain > y->gain) {
    return x->gain > y->gain ? -1 : 1;
  }
  return x->a != y->a ? (x->a < y->a ? -1 : 1) : x->b < y->b ? -1 : 1;
}

static double gain_of_disjoint(struct field *field) {
  double gain = 0;
  add_pairs(field);
  qsort(field->pair, field->pairs, sizeof(*field->pair), compare_pairs);
  for (size_t i = 0; i < field->pairs; i++) {
    struct item *a = &field->item[field->pair[i].a], *b = &field->item[field->pair[i].b];
    if (!a->is_paired && !b->is_paired) {
      a->is_paired = b->is_paired = true;
      gain += field->pair[i].gain;
    }
  }
  return gain;
}

/* ---- all ---- */

/* By class and then mean: within the truth's slack, means need not be in the order of their classes. */
static int compare_items(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->rank_class != y->rank_class) {
    return x->rank_class < y->rank_class ? -1 : 1;
  }
  if (x->mean < y->mean || x->mean > y->mean) {
    return x->mean > y->mean ? -1 : 1;
  }
  return x->arm < y->arm ? -1 : 1;
}

static void find_classes(struct field *field, const uint32_t *rank_class) {
  uint32_t arms = field->ask->arms;
  for (uint32_t i = 0; i < arms; i++) {
    field->item[i] = (struct item){.arm = i, .rank_class = rank_class[i], .mean = field->ask->mean[i]};
  }
  qsort(field->item, arms, sizeof(*field->item), compare_items);
  for (uint32_t first = 0, end; first < arms; first = end) {
    for (end = first + 1; end < arms && field->item[end].rank_class == field->item[first].rank_class; end++) {
    }
    for (uint32_t i = first; i < end; i++) {
      field->item[i].first = first;
      field->item[i].last = end - 1;
    }
  }
}

static struct cv_bound find(struct field *field) {
  double delta = field->ask->delta, c = cv_kl(delta, 1 - delta), sum = 0;
  for (uint32_t i = 0; i < field->ask->arms; i++) {
    field->item[i].alone = find_alone(field, i);
    sum += field->item[i].alone;
  }
  double pair = isinf(sum) ? sum : sum + gain_of_disjoint(field);
  return (struct cv_bound){.sum = c * sum, .pair = c * pair};
}

static void fini_field(struct field *field) {
  free(field->item);
  free(field->pair);
}

static enum cv_err init_field(const struct cv_bound_ask *ask, struct field *ret) {
  struct field field = {.ask = ask};
  uint32_t *rank_class = calloc(ask->arms, sizeof(*rank_class));
  field.item = calloc(ask->arms, sizeof(*field.item));
  field.pair = calloc((size_t)2 * ask->arms, sizeof(*field.pair));
  if (rank_class == NULL || field.item == NULL || field.pair == NULL) {
    free(rank_class);
    fini_field(&field);
    return CV_ERR_NOMEM;
  }
  (void)cv_truth_classes(ask->mean, ask->arms, ask->alpha, rank_class);
  find_classes(&field, rank_class);
  free(rank_class);
  *ret = field;
  return CV_OK;
}

enum cv_err cv_bound_find(const struct cv_bound_ask *ask, struct cv_bound *ret) {
  struct field field;
  CV_REQUIRE(ask->arms > 0 && ask->alpha >= 0 && ask->delta > 0 && ask->delta < 0.5 && ask->epsilon > 0);
  CV_TRY(init_field(ask, &field));
  *ret = find(&field);
  fini_field(&field);
  return CV_OK;
}

enum cv_err cv_bound_distances(const double *mean, uint32_t arms, double alpha, double *ret_distance) {
  const struct cv_bound_ask ask = {.arms = arms, .mean = mean, .alpha = alpha};
  struct field field;
  CV_REQUIRE(arms > 0 && alpha >= 0);
  CV_TRY(init_field(&ask, &field));
  for (uint32_t place = 0; place < arms; place++) {
    const struct item *item = &field.item[place];
    struct ends ends = find_ends(&field, place);
    ret_distance[item->arm] = fmin(fabs(ends.above - item->mean), fabs(item->mean - ends.below));
  }
  fini_field(&field);
  return CV_OK;
}
