/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/judge/terms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/nearest.h"
#include "common/base/text.h"
#include "common/config/value.h"

static const char *const keys[] = {
    "least",  "most",   "equals", "below",    "above",     "approaches", "near",    "trend",
    "growth", "order",  "reason", /* up to here in the order of enum cv_lab_relation */
    "says",   "metric", "series", "factor",   "within",    "at",         "from",    "to",
    "by",     "quote",  "where",  "smallest", "by_median", "in_runs",    "average", "minus"};
enum { RELATIONS = CV_LAB_REASON + 1 };
/* The smallest difference of interest where the claim names none: of the value that is compared with. */
static const double SMALLEST_SHARE = .01;

/* Growth functions. They are 0 where the formula is not positive; check_curve() refuses 0 at the first point. */
static double of_constant(double x) {
  return x > 0;
}
static double of_log(double x) {
  return x > 1 ? log(x) : 0;
}
static double of_log_square(double x) {
  return of_log(x) * of_log(x);
}
static double of_root(double x) {
  return x > 0 ? sqrt(x) : 0;
}
static double of_root_log(double x) {
  return of_root(x) * of_log(x);
}
static double of_two_thirds(double x) {
  return x > 0 ? cbrt(x * x) : 0;
}
static double of_x(double x) {
  return x > 0 ? x : 0;
}
static double of_x_log(double x) {
  return x > 1 ? x * log(x) : 0;
}
static double of_square(double x) {
  return x > 0 ? x * x : 0;
}
static double of_inverse(double x) {
  return x > 0 ? 1 / x : 0;
}
static double of_inverse_square(double x) {
  return x > 0 ? 1 / (x * x) : 0;
}

static const char *const growth_names[] = {"constant",     "log-x", "log-squared-x", "sqrt-x",    "sqrt-x-log-x",
                                           "x-two-thirds", "x",     "x-log-x",       "x-squared", "1/x",
                                           "1/x-squared"};
static double (*const growths[])(double) = {of_constant,      of_log, of_log_square, of_root,   of_root_log,
                                            of_two_thirds,    of_x,   of_x_log,      of_square, of_inverse,
                                            of_inverse_square};

/* The state of reading one claim. */
struct reading {
  const struct cv_lab_experiment *experiment;
  struct cv_yaml yaml; /* a copy of the experiment's handle; that one owns the nodes */
  const yaml_node_t *claim;
  struct cv_lab_terms *terms;
  struct cv_why *why;
};

static struct cv_yaml_pair find(struct reading *in, const char *key) {
  return cv_yaml_find(&in->yaml, in->claim, key);
}

static enum cv_err number_of(struct reading *in, const yaml_node_t *node, const char *name, double *ret) {
  if (node->type != YAML_SCALAR_NODE || !cv_value_real(cv_yaml_text(node), ret)) {
    return cv_yaml_expected(&in->yaml, node, name, "a number", in->why);
  }
  return CV_OK;
}

static enum cv_err read_number(struct reading *in, const char *key, double low, double *ret) {
  const yaml_node_t *node = find(in, key).value;
  double value = 0;
  if (node == NULL) {
    return CV_OK;
  }
  CV_TRY(number_of(in, node, key, &value));
  if (value < low) {
    return cv_yaml_fail(&in->yaml, node, in->why, "%s is %s; expected %g or more", key,
                        cv_text_quote(cv_yaml_text(node)).text, low);
  }
  *ret = value;
  return CV_OK;
}

/* Sets *ret to the index of the node's word in `words`; `kind` names the kind of word in messages. */
static enum cv_err choose(struct reading *in, const yaml_node_t *node, const char *kind, const char *const *words,
                          size_t n, size_t *ret) {
  char list[240];
  if (node->type != YAML_SCALAR_NODE) {
    return cv_yaml_expected(&in->yaml, node, kind, "a name", in->why);
  }
  for (size_t i = 0; i < n; i++) {
    if (strcmp(words[i], cv_yaml_text(node)) == 0) {
      *ret = i;
      return CV_OK;
    }
  }
  const char *nearest = cv_nearest(cv_yaml_text(node), words, n);
  struct cv_text_piece quote = cv_text_quote(cv_yaml_text(node));
  if (nearest != NULL) {
    return cv_yaml_fail(&in->yaml, node, in->why, "unknown %s %s; did you mean \"%s\"?", kind, quote.text, nearest);
  }
  cv_text_either(words, n, list, sizeof(list));
  return cv_yaml_fail(&in->yaml, node, in->why, "unknown %s %s; expected %s", kind, quote.text, list);
}

static enum cv_err choose_metric(struct reading *in, const yaml_node_t *node, size_t *ret) {
  const char *words[CV_LAB_METRICS_MAX];
  for (size_t i = 0; i < in->experiment->metrics; i++) {
    words[i] = in->experiment->metric[i].name;
  }
  return choose(in, node, "metric", words, in->experiment->metrics, ret);
}

/* Series that a claim names, with the part of each name that identifies its cell of the grid. */
struct names {
  size_t count;
  struct {
    size_t series;
    const char *cell; /* ", epsilon 0.1"; "" for a series that is named in full */
  } at[CV_LAB_SERIES_MAX];
};

/* Adds all series with a name of the form "NAME, ...". */
static void find_cells(const struct cv_lab_experiment *experiment, const char *name, struct names *names) {
  size_t n = strlen(name);
  for (size_t i = 0; i < experiment->series; i++) {
    const char *found = experiment->one[i].name;
    if (strncmp(found, name, n) == 0 && found[n] == ',' && names->count < CV_LAB_SERIES_MAX) {
      names->at[names->count].series = i;
      names->at[names->count++].cell = found + n;
    }
  }
}

/* Adds the series of that name, or all cells that a grid has made of it. */
static enum cv_err add_name(struct reading *in, const yaml_node_t *node, struct names *names) {
  const char *words[CV_LAB_SERIES_MAX];
  size_t before = names->count, at;
  bool is_name = false;
  for (size_t i = 0; i < in->experiment->series; i++) {
    words[i] = in->experiment->one[i].name;
    is_name = is_name || (node->type == YAML_SCALAR_NODE && strcmp(words[i], cv_yaml_text(node)) == 0);
  }
  /* A full name wins: a series may be called like the first part of another one. */
  if (node->type == YAML_SCALAR_NODE && !is_name) {
    find_cells(in->experiment, cv_yaml_text(node), names);
  }
  if (names->count > before) {
    return CV_OK;
  }
  CV_TRY(choose(in, node, "series", words, in->experiment->series, &at));
  if (names->count < CV_LAB_SERIES_MAX) {
    names->at[names->count].series = at;
    names->at[names->count++].cell = "";
  }
  return CV_OK;
}

/* Reads a name or a list of names. */
static enum cv_err read_names(struct reading *in, const yaml_node_t *node, const char *key, struct names *names) {
  if (node->type != YAML_SEQUENCE_NODE) {
    return add_name(in, node, names);
  }
  if (cv_yaml_items(node) == 0) {
    return cv_yaml_expected(&in->yaml, node, key, "the name of a series, or a list of names", in->why);
  }
  for (size_t i = 0; i < cv_yaml_items(node); i++) {
    CV_TRY(add_name(in, cv_yaml_item(&in->yaml, node, i), names));
  }
  return CV_OK;
}

static enum cv_err read_subject(struct reading *in, struct names *ret_names) {
  const yaml_node_t *metric = find(in, "metric").value, *series = find(in, "series").value;
  if (metric == NULL && in->experiment->metrics > 1) {
    return cv_yaml_fail(&in->yaml, in->claim, in->why, "the claim names no metric; expected one of the experiment's");
  }
  if (series == NULL && in->experiment->series > 1) {
    return cv_yaml_fail(&in->yaml, in->claim, in->why, "the claim names no series; expected one of the experiment's");
  }
  if (metric != NULL) {
    CV_TRY(choose_metric(in, metric, &in->terms->metric));
  }
  if (series != NULL) {
    return read_names(in, series, "series", ret_names);
  }
  *ret_names = (struct names){.count = 1, .at = {{.series = 0, .cell = ""}}};
  return CV_OK;
}

/* Pairs each series with each other one, but a cell of a grid with the same cell only. */
static enum cv_err pair_up(struct reading *in, const yaml_node_t *node, const struct names *ones,
                           const struct names *others) {
  struct cv_lab_terms *terms = in->terms;
  for (size_t i = 0; i < ones->count; i++) {
    for (size_t j = 0; j < others->count; j++) {
      const char *a = ones->at[i].cell, *b = others->at[j].cell;
      bool fits = a[0] == '\0' || b[0] == '\0' || strcmp(a, b) == 0;
      if (fits && terms->pairs == CV_LAB_PAIRS_MAX) {
        return cv_yaml_fail(&in->yaml, node, in->why, "more than %d pairs of series; expected several claims instead",
                            CV_LAB_PAIRS_MAX);
      }
      if (fits) {
        terms->pair[terms->pairs++] = (struct cv_lab_pair){ones->at[i].series, others->at[j].series};
      }
    }
  }
  return CV_OK;
}

static enum cv_err read_others(struct reading *in, struct cv_yaml_pair pair, const struct names *ones) {
  struct names others = {0};
  CV_TRY(read_names(in, pair.value, cv_yaml_text(pair.key), &others));
  CV_TRY(pair_up(in, pair.value, ones, &others));
  for (size_t i = 0; i < in->terms->pairs; i++) {
    if (in->terms->pair[i].one == in->terms->pair[i].other) {
      return cv_yaml_fail(&in->yaml, pair.value, in->why,
                          "series \"%s\" is compared with itself; expected another series",
                          in->experiment->one[in->terms->pair[i].one].name);
    }
  }
  return in->terms->pairs > 0 ? CV_OK
                              : cv_yaml_fail(&in->yaml, pair.value, in->why,
                                             "no cell of the grid has both series; expected series with a common cell");
}

static void pair_alone(struct cv_lab_terms *terms, const struct names *ones) {
  for (size_t i = 0; i < ones->count; i++) {
    terms->pair[terms->pairs++] = (struct cv_lab_pair){ones->at[i].series, ones->at[i].series};
  }
}

/* Equal but for rounding: .3 in a claim must match a point that the file states as 0.30000000000000004. */
static bool is_same(double a, double b) {
  return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b));
}

static enum cv_err add_point(struct reading *in, const yaml_node_t *node) {
  const struct cv_lab_experiment *experiment = in->experiment;
  double x = 0;
  CV_TRY(number_of(in, node, "at", &x));
  for (size_t i = 0; i < experiment->points; i++) {
    if (is_same(experiment->x[i], x)) {
      if (in->terms->points < CV_LAB_POINTS_MAX) {
        in->terms->point[in->terms->points++] = i;
      }
      return CV_OK;
    }
  }
  return cv_yaml_fail(&in->yaml, node, in->why, "the experiment has no point at %s; it has %zu, from %g to %g",
                      cv_text_quote(cv_yaml_text(node)).text, experiment->points, experiment->x[0],
                      experiment->x[experiment->points - 1]);
}

static void add_range(struct reading *in, double from, double to) {
  for (size_t i = 0; i < in->experiment->points; i++) {
    double x = in->experiment->x[i];
    if (isnan(x) || ((x >= from || is_same(x, from)) && (x <= to || is_same(x, to)))) {
      in->terms->point[in->terms->points++] = i;
    }
  }
}

static enum cv_err read_at(struct reading *in, const yaml_node_t *node) {
  struct cv_lab_terms *terms = in->terms;
  if (node->type == YAML_SEQUENCE_NODE && cv_yaml_items(node) > 0) {
    for (size_t i = 0; i < cv_yaml_items(node); i++) {
      CV_TRY(add_point(in, cv_yaml_item(&in->yaml, node, i)));
    }
    return CV_OK;
  }
  if (node->type != YAML_SCALAR_NODE) {
    return cv_yaml_expected(&in->yaml, node, "at", "numbers, first, last or all", in->why);
  }
  const char *text = cv_yaml_text(node);
  if (strcmp(text, "all") == 0) {
    add_range(in, -(double)INFINITY, (double)INFINITY);
  } else if (strcmp(text, "first") == 0 || strcmp(text, "last") == 0) {
    terms->point[terms->points++] = text[0] == 'f' ? 0 : in->experiment->points - 1;
  } else {
    double x;
    if (!cv_value_real(text, &x)) {
      return cv_yaml_expected(&in->yaml, node, "at", "a number, first, last or all", in->why);
    }
    return add_point(in, node);
  }
  return CV_OK;
}

static enum cv_err read_points(struct reading *in) {
  struct cv_yaml_pair at = find(in, "at"), from = find(in, "from"), to = find(in, "to");
  struct cv_yaml_pair any = at.key != NULL ? at : from.key != NULL ? from : to;
  bool is_curve = in->terms->relation >= CV_LAB_TREND && in->terms->relation <= CV_LAB_ORDER;
  if (any.key != NULL && in->experiment->axis == CV_LAB_AXIS_NONE) {
    return cv_yaml_fail(&in->yaml, any.key, in->why, "the experiment has no x; expected no key \"%s\"",
                        cv_yaml_text(any.key));
  }
  if (at.key != NULL && (from.key != NULL || to.key != NULL)) {
    return cv_yaml_fail(&in->yaml, at.key, in->why,
                        "\"at\" cannot be combined with \"from\" or \"to\"; expected one or the other");
  }
  if (at.key != NULL) {
    return read_at(in, at.value);
  }
  double low = -(double)INFINITY, high = (double)INFINITY;
  CV_TRY(read_number(in, "from", -(double)INFINITY, &low));
  CV_TRY(read_number(in, "to", -(double)INFINITY, &high));
  /* The moments of a run are one curve: a claim without a point is about its end. */
  if (any.key == NULL && in->experiment->axis == CV_LAB_AXIS_PULLS && !is_curve) {
    in->terms->point[in->terms->points++] = in->experiment->points - 1;
    return CV_OK;
  }
  add_range(in, low, high);
  return in->terms->points > 0 ? CV_OK
                               : cv_yaml_fail(&in->yaml, any.value, in->why,
                                              "no point of x lies in this range; expected a part of %g to %g",
                                              in->experiment->x[0], in->experiment->x[in->experiment->points - 1]);
}

/* Reads the claim's relation: exactly one of the relations' keys. */
static enum cv_err read_relation(struct reading *in, struct cv_yaml_pair *ret) {
  size_t found = 0;
  for (size_t i = 0; i < RELATIONS; i++) {
    struct cv_yaml_pair pair = find(in, keys[i]);
    if (pair.key != NULL && ++found > 1) {
      return cv_yaml_fail(&in->yaml, pair.key, in->why, "the claim has %s and %s; expected one of them",
                          cv_yaml_text(ret->key), keys[i]);
    }
    if (pair.key != NULL) {
      in->terms->relation = (enum cv_lab_relation)i;
      *ret = pair;
    }
  }
  char list[240];
  cv_text_either(keys, RELATIONS, list, sizeof(list));
  return found == 1 ? CV_OK
                    : cv_yaml_fail(&in->yaml, in->claim, in->why, "the claim has no comparison; expected %s", list);
}

static enum cv_err read_text(struct reading *in, const char *key, const char **ret) {
  const yaml_node_t *node = find(in, key).value;
  if (node == NULL) {
    return cv_yaml_fail(&in->yaml, in->claim, in->why, "the claim has no \"%s\"; expected a sentence", key);
  }
  if (node->type != YAML_SCALAR_NODE || cv_yaml_text(node)[0] == '\0') {
    return cv_yaml_expected(&in->yaml, node, key, "a sentence", in->why);
  }
  if (!cv_text_is_clean(cv_yaml_text(node), strlen(cv_yaml_text(node)))) {
    return cv_yaml_fail(&in->yaml, node, in->why, "%s has a control character; expected a sentence on one line", key);
  }
  *ret = cv_yaml_text(node);
  return CV_OK;
}

static enum cv_err check_curve(struct reading *in, struct cv_yaml_pair pair) {
  const struct cv_lab_terms *terms = in->terms;
  if (terms->points < 2) {
    return cv_yaml_fail(&in->yaml, pair.key, in->why, "%s needs at least two points of x; found %zu",
                        cv_yaml_text(pair.key), terms->points);
  }
  for (size_t i = 0; i + 1 < terms->points; i++) {
    if (!(in->experiment->x[terms->point[i]] < in->experiment->x[terms->point[i + 1]])) {
      return cv_yaml_fail(&in->yaml, pair.key, in->why, "%s needs points in ascending order", cv_yaml_text(pair.key));
    }
  }
  /* The extrapolation divides by the growth at the first point. */
  double first = in->experiment->x[terms->point[0]];
  if (terms->growth != NULL && !(terms->growth(first) > 0)) {
    return cv_yaml_fail(&in->yaml, pair.value, in->why, "%s is 0 at x = %g; expected points with a larger x",
                        cv_yaml_text(pair.value), first);
  }
  return CV_OK;
}

static enum cv_err read_operand(struct reading *in, struct cv_yaml_pair pair, const struct names *ones) {
  static const char *const trends[] = {"falls", "rises"};
  struct cv_lab_terms *terms = in->terms;
  size_t at = 0;
  /* These relations have a series as operand, the others a word or a number. */
  if (terms->relation >= CV_LAB_BELOW && terms->relation <= CV_LAB_NEAR) {
    return read_others(in, pair, ones);
  }
  pair_alone(terms, ones);
  switch (terms->relation) {
    case CV_LAB_TREND:
      CV_TRY(choose(in, pair.value, "trend", trends, CV_COUNT(trends), &at));
      terms->rises = at == 1;
      return check_curve(in, pair);
    case CV_LAB_GROWTH:
    case CV_LAB_ORDER:
      CV_TRY(choose(in, pair.value, "growth", growth_names, CV_COUNT(growth_names), &at));
      terms->growth = growths[at];
      return check_curve(in, pair);
    default:
      return number_of(in, pair.value, cv_yaml_text(pair.key), &terms->number);
  }
}

/* Reads `within` and `factor`, which only some relations accept. */
static enum cv_err read_measures(struct reading *in, struct cv_yaml_pair pair) {
  struct cv_lab_terms *terms = in->terms;
  enum cv_lab_relation relation = terms->relation;
  bool needs = relation == CV_LAB_EQUALS || relation == CV_LAB_APPROACHES || relation == CV_LAB_NEAR;
  struct cv_yaml_pair within = find(in, "within"), factor = find(in, "factor");
  if (needs && within.key == NULL) {
    return cv_yaml_fail(&in->yaml, pair.key, in->why, "%s needs \"within\"; expected the allowed difference",
                        cv_yaml_text(pair.key));
  }
  if (within.key != NULL && !needs && terms->growth == NULL) {
    return cv_yaml_fail(&in->yaml, within.key, in->why, "%s takes no \"within\"", cv_yaml_text(pair.key));
  }
  if (factor.key != NULL && relation != CV_LAB_BELOW && relation != CV_LAB_ABOVE) {
    return cv_yaml_fail(&in->yaml, factor.key, in->why, "%s takes no \"factor\"", cv_yaml_text(pair.key));
  }
  CV_TRY(read_number(in, "within", 0, &terms->within));
  return read_number(in, "factor", 0, &terms->factor);
}

/* Reads a number above 0, or a percentage such as 2%. */
static enum cv_err read_share(struct reading *in, struct cv_yaml_pair pair, double *ret, bool *ret_is_share) {
  char number[64];
  const char *text = pair.value->type == YAML_SCALAR_NODE ? cv_yaml_text(pair.value) : "";
  size_t n = strlen(text);
  *ret_is_share = n > 0 && text[n - 1] == '%';
  (void)snprintf(number, sizeof(number), "%.*s", (int)(*ret_is_share ? n - 1 : n), text);
  if (n >= sizeof(number) || !cv_value_real(number, ret) || !(*ret > 0)) {
    return cv_yaml_expected(&in->yaml, pair.value, cv_yaml_text(pair.key),
                            "a number above 0, or a percentage such as 2%", in->why);
  }
  *ret /= *ret_is_share ? 100 : 1;
  return CV_OK;
}

static enum cv_err read_flag(struct reading *in, const char *key, const char *kind, bool *ret) {
  static const char *const words[] = {"false", "true"};
  const yaml_node_t *node = find(in, key).value;
  size_t at = *ret ? 1 : 0;
  if (node != NULL) {
    CV_TRY(choose(in, node, kind, words, CV_COUNT(words), &at));
  }
  *ret = at == 1;
  return CV_OK;
}

/* Reads `by_median` and `in_runs`: of which share of the replicates it is claimed. */
static enum cv_err read_runs(struct reading *in) {
  struct cv_yaml_pair median = find(in, "by_median"), runs = find(in, "in_runs"), smallest = find(in, "smallest");
  struct cv_lab_terms *terms = in->terms;
  bool by_median = in->experiment->statistic == CV_LAB_MEDIAN, is_percentage;
  CV_TRY(read_flag(in, "by_median", "value of by_median", &by_median));
  terms->runs = by_median ? .5 : 0;
  if (runs.key != NULL && median.key != NULL) {
    return cv_yaml_fail(&in->yaml, runs.key, in->why,
                        "\"in_runs\" cannot be combined with \"by_median\", which means 50%%; expected one of them");
  }
  if (runs.key != NULL) {
    CV_TRY(read_share(in, runs, &terms->runs, &is_percentage));
  }
  if (terms->runs >= 1) {
    return cv_yaml_expected(&in->yaml, runs.value, "in_runs", "less than 100%", in->why);
  }
  return terms->runs == 0 || smallest.key == NULL
             ? CV_OK
             : cv_yaml_fail(&in->yaml, smallest.key, in->why,
                            "the claim is about %s, whose effects are not bounded; expected \"smallest\" %s",
                            runs.key != NULL ? "a share of the runs" : "a median",
                            runs.key != NULL ? "without \"in_runs\"" : "with \"by_median: false\"");
}

static enum cv_err refuse_formula(struct reading *in, const yaml_node_t *key, size_t series) {
  const struct cv_lab_series *one = &in->experiment->one[series];
  return one->formula == NULL
             ? CV_OK
             : cv_yaml_fail(&in->yaml, key, in->why, "series \"%s\" is a formula; expected %s of series that are run",
                            one->name, cv_yaml_text(key));
}

static enum cv_err read_minus(struct reading *in, struct cv_yaml_pair minus) {
  struct cv_lab_terms *terms = in->terms;
  bool is_difference = terms->relation == CV_LAB_BELOW || terms->relation == CV_LAB_ABOVE;
  struct names names = {0};
  if (!is_difference || terms->pairs != 1) {
    return cv_yaml_fail(&in->yaml, minus.key, in->why,
                        "\"minus\" is for one series that is below or above one other; expected no \"minus\" here");
  }
  CV_TRY(read_names(in, minus.value, "minus", &names));
  if (names.count != 2) {
    return cv_yaml_expected(&in->yaml, minus.value, "minus",
                            "two series, one to subtract from either side of the comparison", in->why);
  }
  terms->has_minus = true;
  terms->minus = (struct cv_lab_pair){names.at[0].series, names.at[1].series};
  CV_TRY(refuse_formula(in, minus.key, terms->minus.one));
  return refuse_formula(in, minus.key, terms->minus.other);
}

/* Reads `average` and `minus`. */
static enum cv_err read_derived(struct reading *in) {
  struct cv_yaml_pair average = find(in, "average"), minus = find(in, "minus");
  struct cv_lab_terms *terms = in->terms;
  CV_TRY(read_flag(in, "average", "value of average", &terms->average));
  if (minus.key != NULL) {
    CV_TRY(read_minus(in, minus));
  }
  const yaml_node_t *key = terms->has_minus ? minus.key : average.key;
  if (!terms->average && !terms->has_minus) {
    return CV_OK;
  }
  if (in->experiment->statistic == CV_LAB_ROOT_MEAN_SQUARE || terms->growth != NULL) {
    return cv_yaml_fail(&in->yaml, key, in->why, "%s has no %s; expected a claim about means",
                        terms->growth != NULL ? "growth" : "a root mean square", cv_yaml_text(key));
  }
  for (size_t i = 0; i < terms->pairs; i++) {
    CV_TRY(refuse_formula(in, key, terms->pair[i].one));
    CV_TRY(refuse_formula(in, key, terms->pair[i].other));
  }
  return CV_OK;
}

/* Reads `smallest`: a number, or a share of the compared value. A difference that is claimed always has one. */
static enum cv_err read_smallest(struct reading *in, struct cv_yaml_pair pair) {
  struct cv_lab_terms *terms = in->terms;
  struct cv_yaml_pair found = find(in, "smallest");
  bool is_difference =
      terms->relation == CV_LAB_BELOW || terms->relation == CV_LAB_ABOVE || terms->relation == CV_LAB_TREND;
  if (found.key == NULL) {
    terms->is_share = is_difference && find(in, "factor").key == NULL && terms->runs == 0;
    terms->smallest = terms->is_share ? SMALLEST_SHARE : 0;
    return CV_OK;
  }
  if (!is_difference) {
    return cv_yaml_fail(&in->yaml, found.key, in->why,
                        "%s takes no \"smallest\"; expected it where a difference is claimed: below, above or trend",
                        cv_yaml_text(pair.key));
  }
  if (find(in, "factor").key != NULL) {
    /* Near half of the other series is no absence of a difference. */
    return cv_yaml_fail(&in->yaml, found.key, in->why, "\"smallest\" cannot be combined with \"factor\"");
  }
  return read_share(in, found, &terms->smallest, &terms->is_share);
}

/* Reads whose claim it is: `by`, `quote` and `where`. */
static enum cv_err read_author(struct reading *in) {
  static const char *const authors[] = {"paper", "us"}, *const papers[] = {"quote", "where"};
  const char **const texts[] = {&in->terms->quote, &in->terms->where};
  const yaml_node_t *by = find(in, "by").value;
  bool has_source = in->experiment->source[0] != '\0';
  size_t at = has_source ? 0 : 1;
  if (by != NULL) {
    CV_TRY(choose(in, by, "author", authors, CV_COUNT(authors), &at));
  }
  in->terms->is_ours = at == 1;
  if (!in->terms->is_ours && !has_source) {
    return cv_yaml_fail(&in->yaml, by, in->why, "a claim of the paper; expected its short name in experiment.source");
  }
  for (size_t i = 0; i < CV_COUNT(papers); i++) {
    struct cv_yaml_pair pair = find(in, papers[i]);
    if (pair.key != NULL && in->terms->is_ours) {
      return cv_yaml_fail(&in->yaml, pair.key, in->why, "a claim of our own has \"%s\"; expected %s", papers[i],
                          has_source ? "it in claims of the paper only" : "experiment.source, the paper's short name");
    }
    if (pair.key != NULL) {
      CV_TRY(read_text(in, papers[i], texts[i]));
    }
  }
  return CV_OK;
}

static enum cv_err read_all(struct reading *in) {
  struct cv_yaml_pair pair = {0};
  CV_TRY(cv_yaml_keys(&in->yaml, in->claim, "a claim", keys, CV_COUNT(keys), in->why));
  CV_TRY(read_text(in, "says", &in->terms->says));
  CV_TRY(read_author(in));
  CV_TRY(read_relation(in, &pair));
  if (in->terms->relation == CV_LAB_REASON) {
    static const char *const only[] = {"says", "reason", "by", "quote", "where"};
    /* A key of a comparison would be ignored, and the reader would believe that something is compared. */
    CV_TRY(cv_yaml_keys(&in->yaml, in->claim, "a claim with a reason", only, CV_COUNT(only), in->why));
    return read_text(in, "reason", &in->terms->reason);
  }
  struct names ones = {0};
  CV_TRY(read_subject(in, &ones));
  CV_TRY(read_points(in));
  CV_TRY(read_operand(in, pair, &ones));
  CV_TRY(read_measures(in, pair));
  CV_TRY(read_runs(in));
  CV_TRY(read_derived(in));
  return read_smallest(in, pair);
}

static const yaml_node_t *claim_at(const struct cv_lab_experiment *experiment, size_t index) {
  struct cv_yaml yaml = experiment->yaml;
  return cv_yaml_item(&yaml, experiment->claims, index);
}

size_t cv_lab_claims(const struct cv_lab_experiment *experiment) {
  return experiment->claims == NULL ? 0 : cv_yaml_items(experiment->claims);
}

enum cv_err cv_lab_terms_read(const struct cv_lab_experiment *experiment, size_t claim, struct cv_lab_terms *ret,
                              struct cv_why *why) {
  const yaml_node_t *node = claim_at(experiment, claim);
  struct cv_lab_terms terms = {.factor = 1, .within = .1};
  struct reading in = {.experiment = experiment, .yaml = experiment->yaml, .claim = node, .terms = &terms, .why = why};
  if (node->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(&in.yaml, node, "a claim", "says and what it compares", why);
  }
  CV_TRY(read_all(&in));
  *ret = terms;
  return CV_OK;
}

enum cv_err cv_lab_claims_check(const struct cv_lab_experiment *experiment, struct cv_why *why) {
  if (experiment->claims != NULL && experiment->claims->type != YAML_SEQUENCE_NODE) {
    return cv_yaml_expected(&experiment->yaml, experiment->claims, "claims", "a list of claims", why);
  }
  for (size_t i = 0; i < cv_lab_claims(experiment); i++) {
    struct cv_lab_terms terms;
    CV_TRY(cv_lab_terms_read(experiment, i, &terms, why));
  }
  return CV_OK;
}
