/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim consists of comparisons: "this difference is above zero". Each has its own verdict; the claim's verdict is
 * the worst of them, and its reason is the comparison that is furthest from holding.
 */
#include "lab/judge/claim.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "lab/judge/derive.h"
#include "lab/judge/effect.h"
#include "lab/judge/summary.h"
#include "lab/judge/terms.h"
#include "lab/run/formula.h"

/* Squares are skewed: with fewer replicates the estimate of their deviation is useless. */
enum { ROOTS_LEAST = 100 };

/* The probability of a normal variable beyond two standard deviations. */
#define TAIL 0.02275013194817921

struct comparison {
  size_t series, point;      /* the subject of the claim */
  size_t other, other_point; /* series and point that it is compared with, unless with a number */
  double factor;             /* of the other */
  bool is_above;             /* expected above the other, not below */
  bool may_equal;            /* equality holds, too */
  bool is_guard;             /* an undecided one holds: only a clear failure counts */
};

struct finding {
  struct comparison comparison;
  struct cv_lab_summary difference; /* above 0 if the claim is true */
  enum cv_lab_verdict verdict;
  double errors, needed; /* in standard errors: the difference found, and the one needed for a verdict */
  /* If the difference is not shown to be one of interest: the smallest of interest (else 0), the largest that is
   * possible, and about how many replicates would show which of them is larger. */
  double smallest, most, wanted;
  uint64_t differing; /* replicates */
  /* Of a claim about a share of the runs: the pairs, those in which the comparison is true, and how many are needed to
   * hold. */
  bool is_counted;
  struct cv_lab_signs signs;
  uint64_t agree, least;
};

struct hearing {
  const struct cv_lab_dataset *dataset;
  const struct cv_lab_terms *terms;
  const struct cv_lab_derived *derived; /* the source of both, or NULL */
  size_t total, open, failed, small;
  bool has_worst;
  struct finding worst;
};

const char *cv_lab_verdict_text(enum cv_lab_verdict verdict) {
  static const char *const texts[] = {"holds", "does not hold", "no effect", "cannot be judged"};
  return texts[verdict];
}

static struct cv_lab_summary found(const struct hearing *hearing, size_t series, size_t point) {
  struct cv_lab_summary summary;
  if (cv_lab_found(hearing->dataset, series, point, hearing->terms->metric, &summary) != CV_OK) {
    summary = (struct cv_lab_summary){.mean = (double)NAN, .se = (double)NAN};
  }
  return summary;
}

static bool is_formula(const struct hearing *hearing, size_t series) {
  return hearing->dataset->experiment->one[series].formula != NULL;
}

static bool has_number(const struct hearing *hearing) {
  return hearing->terms->relation <= CV_LAB_EQUALS;
}

/* a - factor b, where a or b is an exact number without replicates. */
static struct cv_lab_summary subtract(struct cv_lab_summary a, double factor, struct cv_lab_summary b) {
  double se = b.n > 0 ? factor * b.se : a.se;
  return (struct cv_lab_summary){.mean = a.mean - factor * b.mean, .se = se, .n = a.n > b.n ? a.n : b.n};
}

static struct cv_lab_summary difference_of(const struct hearing *hearing, const struct comparison *comparison) {
  struct cv_lab_summary d;
  if (has_number(hearing)) {
    struct cv_lab_summary number = {.mean = 1};
    d = subtract(found(hearing, comparison->series, comparison->point), comparison->factor, number);
  } else if (is_formula(hearing, comparison->series) || is_formula(hearing, comparison->other)) {
    d = subtract(found(hearing, comparison->series, comparison->point), comparison->factor,
                 found(hearing, comparison->other, comparison->other_point));
  } else {
    d = cv_lab_compare(hearing->dataset, comparison->series, comparison->point, comparison->other,
                       comparison->other_point, comparison->factor, hearing->terms->metric);
  }
  d.mean = comparison->is_above ? d.mean : -d.mean;
  return d;
}

/* Judges a difference without a standard error: of two computed numbers, or of replicates that are all equal. If equal
 * replicates show no difference, more of them might. */
static enum cv_lab_verdict judge_exactly(const struct cv_lab_summary *difference, bool may_equal) {
  if (difference->mean == 0 && !may_equal) {
    return difference->n == 0 ? CV_LAB_FAILS : CV_LAB_UNDECIDED;
  }
  return difference->mean >= 0 ? CV_LAB_HOLDS : CV_LAB_FAILS;
}

/* True if there are enough values to estimate their deviation; computed numbers (n = 0) need none. */
static bool is_enough(const struct hearing *hearing, uint64_t n) {
  bool is_root = hearing->dataset->experiment->statistic == CV_LAB_ROOT_MEAN_SQUARE;
  return n == 0 || n >= (is_root ? ROOTS_LEAST : 2);
}

/* The number of comparisons that can find no effect: of a trend its ends alone. */
static size_t count_effects(const struct hearing *hearing) {
  return hearing->terms->relation == CV_LAB_TREND ? hearing->terms->pairs : hearing->total;
}

/* The smallest difference of interest; a share is one of the least plausible value, with this tail. */
static double smallest_of(const struct hearing *hearing, const struct comparison *comparison, double tail) {
  const struct cv_lab_terms *terms = hearing->terms;
  if (!terms->is_share) {
    return terms->smallest;
  }
  struct cv_lab_summary other = found(hearing, comparison->other, comparison->other_point);
  double freedom = cv_lab_freedom(hearing->dataset->experiment->statistic, other.n);
  double error = other.se > 0 ? gsl_cdf_tdist_Qinv(tail, freedom) * other.se : 0;
  return terms->smallest * fmax(fabs(other.mean) - error, 0);
}

/* Whether zero is far enough from the difference. Without a standard error it is exact. */
static bool is_clear(const struct cv_lab_summary *difference, double needed) {
  return difference->mean != 0 && (!(difference->se > 0) || fabs(difference->mean) >= needed * difference->se);
}

/* The difference less the smallest one of interest. */
static struct cv_lab_summary beyond_smallest(const struct hearing *hearing, const struct finding *finding) {
  const struct cv_lab_terms *terms = hearing->terms;
  struct cv_lab_summary d = finding->difference;
  if (!terms->is_share) {
    d.mean -= terms->smallest;
    return d;
  }
  struct comparison further = finding->comparison;
  double other = found(hearing, further.other, further.other_point).mean;
  further.factor *= 1 + copysign(terms->smallest, further.is_above ? other : -other);
  return difference_of(hearing, &further);
}

/* Bounds the effect of a comparison. */
static void bound_effect(const struct hearing *hearing, struct finding *finding) {
  const struct comparison *c = &finding->comparison;
  const struct cv_lab_experiment *experiment = hearing->dataset->experiment;
  size_t metric = hearing->terms->metric;
  bool is_paired = !is_formula(hearing, c->series) && !is_formula(hearing, c->other);
  double tail = TAIL / (double)count_effects(hearing) / (hearing->terms->is_share ? 2 : 1);
  struct cv_lab_pairs pairs = {
      .difference = finding->difference,
      .freedom = cv_lab_freedom(experiment->statistic, finding->difference.n),
      .differing = !is_paired
                       ? finding->difference.n
                       : cv_lab_differing(hearing->dataset, c->series, c->point, c->other, c->other_point, metric),
      .range = experiment->statistic != CV_LAB_MEAN ? 0
               : hearing->terms->has_minus          ? 2 * experiment->metric[metric].range
                                                    : experiment->metric[metric].range,
  };
  finding->differing = pairs.differing;
  finding->smallest = smallest_of(hearing, c, tail);
  finding->most = pairs.difference.n == 0 ? fabs(pairs.difference.mean) : cv_lab_effect_most(&pairs, tail);
  finding->wanted = cv_lab_effect_replicates(&pairs, tail, finding->smallest);
  if (finding->most < finding->smallest) {
    finding->verdict = CV_LAB_NO_EFFECT;
  }
}

/* A difference that is smaller than the smallest of interest is none, however clearly it is seen. */
static void apply_smallest(const struct hearing *hearing, struct finding *finding) {
  struct cv_lab_summary beyond = {0};
  if (finding->verdict == CV_LAB_HOLDS && !finding->comparison.is_guard) {
    beyond = beyond_smallest(hearing, finding);
    finding->verdict = beyond.mean > 0 && is_clear(&beyond, finding->needed) ? CV_LAB_HOLDS : CV_LAB_UNDECIDED;
  }
  if (finding->verdict != CV_LAB_HOLDS) {
    bound_effect(hearing, finding);
  }
  if (finding->verdict == CV_LAB_HOLDS || finding->verdict == CV_LAB_FAILS) {
    finding->smallest = 0;
  } else if (beyond.mean > 0) {
    finding->wanted = fmin(finding->wanted, (double)beyond.n * pow(finding->needed * beyond.se / beyond.mean, 2));
  }
}

static struct cv_lab_side side_of(const struct hearing *hearing, size_t series, size_t point) {
  struct cv_lab_side side = {.series = series, .point = point, .is_number = is_formula(hearing, series)};
  if (side.is_number) {
    side.number = found(hearing, series, point).mean;
  }
  return side;
}

/* The sign test of a comparison. */
static struct finding weigh_runs(const struct hearing *hearing, const struct comparison *c) {
  struct finding finding = {.comparison = *c, .verdict = CV_LAB_UNDECIDED, .is_counted = true};
  struct cv_lab_side one = side_of(hearing, c->series, c->point);
  struct cv_lab_side other = has_number(hearing) ? (struct cv_lab_side){.is_number = true, .number = 1}
                                                 : side_of(hearing, c->other, c->other_point);
  struct cv_lab_signs signs = cv_lab_signs_of(hearing->dataset, &one, &other, c->factor, hearing->terms->metric);
  double n = (double)signs.n, p = hearing->terms->runs, tail = TAIL / (double)hearing->total;
  finding.signs = signs;
  finding.difference = (struct cv_lab_summary){.n = signs.n};
  finding.agree = (c->is_above ? signs.more : signs.less) + (c->may_equal ? signs.equal : 0);
  finding.least = cv_lab_heads_least(signs.n, p, TAIL);
  /* To the normal approximation, with a continuity correction; only for the number of replicates that may do. */
  double excess = (double)finding.agree - n * p;
  finding.errors = signs.n == 0 ? 0 : copysign(fmax(fabs(excess) - .5, 0), excess) / sqrt(n * p * (1 - p));
  finding.needed = gsl_cdf_ugaussian_Qinv(finding.errors < 0 ? tail : TAIL);
  if (signs.n - finding.agree >= cv_lab_heads_least(signs.n, 1 - p, tail)) {
    finding.verdict = CV_LAB_FAILS;
  } else if (finding.agree >= finding.least || (c->is_guard && signs.n > 0)) {
    finding.verdict = CV_LAB_HOLDS;
  }
  return finding;
}

/* Two numbers have no replicates to be counted. */
static bool is_of_replicates(const struct hearing *hearing, const struct comparison *c) {
  return !is_formula(hearing, c->series) || !(has_number(hearing) || is_formula(hearing, c->other));
}

static struct finding weigh(const struct hearing *hearing, const struct comparison *comparison) {
  struct finding finding = {.comparison = *comparison, .verdict = CV_LAB_UNDECIDED};
  struct cv_lab_summary d = difference_of(hearing, comparison);
  finding.difference = d;
  if (isnan(d.mean) || !is_enough(hearing, d.n)) {
    return finding;
  }
  /* Without a standard error no test applies: the difference is exact, or has been the same in every replicate. */
  if (d.n == 0 || d.se == 0) {
    finding.verdict = judge_exactly(&d, comparison->may_equal);
    finding.errors = finding.verdict == CV_LAB_HOLDS ? (double)INFINITY : d.mean == 0 ? 0 : -(double)INFINITY;
  } else {
    double freedom = cv_lab_freedom(hearing->dataset->experiment->statistic, d.n);
    finding.errors = d.mean / d.se;
    finding.needed = gsl_cdf_tdist_Qinv(TAIL, freedom);
    double fails = gsl_cdf_tdist_Qinv(TAIL / (double)hearing->total, freedom);
    /* Holding needs all comparisons, so chance helps none of them; a failure needs one, so many points need a stricter
     * test. */
    finding.needed = finding.errors < 0 ? fails : finding.needed;
    finding.verdict = !is_clear(&d, finding.needed) ? CV_LAB_UNDECIDED : d.mean > 0 ? CV_LAB_HOLDS : CV_LAB_FAILS;
  }
  if (hearing->terms->smallest > 0) {
    apply_smallest(hearing, &finding);
  }
  if (comparison->is_guard && finding.verdict != CV_LAB_FAILS) {
    finding.verdict = CV_LAB_HOLDS;
    finding.smallest = 0;
  }
  return finding;
}

/* Sorts verdicts, the worst first. */
static int rank(enum cv_lab_verdict verdict) {
  static const int ranks[] = {[CV_LAB_FAILS] = 0, [CV_LAB_UNDECIDED] = 1, [CV_LAB_NO_EFFECT] = 2, [CV_LAB_HOLDS] = 3};
  return ranks[verdict];
}

/* Compares findings as reasons of a verdict. A guard that holds is the least informative one. */
static bool is_worse(const struct finding *a, const struct finding *b) {
  if (rank(a->verdict) != rank(b->verdict)) {
    return rank(a->verdict) < rank(b->verdict);
  }
  if (a->comparison.is_guard != b->comparison.is_guard) {
    return b->comparison.is_guard && a->verdict == CV_LAB_HOLDS;
  }
  if (a->verdict == CV_LAB_NO_EFFECT) {
    return a->most * b->smallest > b->most * a->smallest;
  }
  return a->errors < b->errors;
}

static void hear(struct hearing *hearing, const struct comparison *comparison) {
  bool is_counted = hearing->terms->runs > 0 && is_of_replicates(hearing, comparison);
  struct finding finding = is_counted ? weigh_runs(hearing, comparison) : weigh(hearing, comparison);
  hearing->failed += finding.verdict == CV_LAB_FAILS;
  hearing->open += finding.verdict == CV_LAB_UNDECIDED;
  hearing->small += finding.verdict == CV_LAB_NO_EFFECT;
  if (!hearing->has_worst || is_worse(&finding, &hearing->worst)) {
    hearing->worst = finding;
    hearing->has_worst = true;
  }
}

/* A relation as one or two comparisons: above `low` times the other, below `high` times the other. */
struct bounds {
  double low, high; /* NAN: none */
  bool may_equal;
};

static struct bounds bounds_of(const struct cv_lab_terms *terms) {
  switch (terms->relation) {
    case CV_LAB_LEAST:
      return (struct bounds){terms->number, (double)NAN, true};
    case CV_LAB_MOST:
      return (struct bounds){(double)NAN, terms->number, true};
    case CV_LAB_EQUALS:
      return (struct bounds){terms->number - terms->within, terms->number + terms->within, true};
    case CV_LAB_BELOW:
      return (struct bounds){(double)NAN, terms->factor, false};
    case CV_LAB_ABOVE:
      return (struct bounds){terms->factor, (double)NAN, false};
    case CV_LAB_APPROACHES:
      return (struct bounds){(double)NAN, 1 + terms->within, true};
    default:
      return (struct bounds){1 - terms->within, 1 + terms->within, true};
  }
}

static void hear_bounds(struct hearing *hearing, size_t series, size_t other) {
  struct bounds bounds = bounds_of(hearing->terms);
  for (size_t i = 0; i < hearing->terms->points; i++) {
    size_t point = hearing->terms->point[i];
    struct comparison comparison = {.series = series,
                                    .point = point,
                                    .other = other,
                                    .other_point = point,
                                    .factor = bounds.low,
                                    .is_above = true,
                                    .may_equal = bounds.may_equal};
    if (!isnan(bounds.low)) {
      hear(hearing, &comparison);
    }
    comparison.is_above = false;
    comparison.factor = bounds.high;
    if (!isnan(bounds.high)) {
      hear(hearing, &comparison);
    }
  }
}

static void hear_trend(struct hearing *hearing, size_t series) {
  const struct cv_lab_terms *terms = hearing->terms;
  struct comparison comparison = {.series = series,
                                  .point = terms->point[terms->points - 1],
                                  .other = series,
                                  .other_point = terms->point[0],
                                  .factor = 1,
                                  .is_above = terms->rises};
  hear(hearing, &comparison);
  /* The ends decide a trend. Steps between neighbours may be too small to show, but must not clearly go the wrong
   * way. */
  comparison.is_guard = true;
  comparison.may_equal = true;
  for (size_t i = 1; i < terms->points; i++) {
    comparison.point = terms->point[i];
    comparison.other_point = terms->point[i - 1];
    hear(hearing, &comparison);
  }
}

static void hear_growth(struct hearing *hearing, size_t series) {
  const struct cv_lab_terms *terms = hearing->terms;
  const double *x = hearing->dataset->experiment->x;
  /* All points are compared with the one where the extrapolation starts, so that errors do not add up from point to
   * point: the first one, or the last one if the function falls. */
  size_t first = terms->point[0], last = terms->point[terms->points - 1];
  bool is_falling = terms->growth(x[last]) < terms->growth(x[first]);
  size_t start = is_falling ? last : first;
  for (size_t i = is_falling ? 0 : 1; i + is_falling < terms->points; i++) {
    double ratio = terms->growth(x[terms->point[i]]) / terms->growth(x[start]);
    struct comparison comparison = {.series = series,
                                    .point = terms->point[i],
                                    .other = series,
                                    .other_point = start,
                                    .factor = (1 + terms->within) * ratio,
                                    .may_equal = true};
    hear(hearing, &comparison);
    comparison.factor = (1 - terms->within) * ratio;
    comparison.is_above = true;
    if (terms->relation == CV_LAB_ORDER) {
      hear(hearing, &comparison);
    }
  }
}

static size_t count(const struct cv_lab_terms *terms) {
  struct bounds bounds = bounds_of(terms);
  switch (terms->relation) {
    case CV_LAB_TREND:
      return terms->pairs * terms->points;
    case CV_LAB_GROWTH:
      return terms->pairs * (terms->points - 1);
    case CV_LAB_ORDER:
      return terms->pairs * (terms->points - 1) * 2;
    default:
      return terms->pairs * terms->points * (size_t)(!isnan(bounds.low) + !isnan(bounds.high));
  }
}

static void hear_all(struct hearing *hearing) {
  const struct cv_lab_terms *terms = hearing->terms;
  for (size_t i = 0; i < terms->pairs; i++) {
    if (terms->relation == CV_LAB_TREND) {
      hear_trend(hearing, terms->pair[i].one);
    } else if (terms->growth != NULL) {
      hear_growth(hearing, terms->pair[i].one);
    } else {
      hear_bounds(hearing, terms->pair[i].one, terms->pair[i].other);
    }
  }
}

/* The text of a reason under construction. */
struct line {
  struct cv_lab_claim *claim;
  size_t used;
};

static void say(struct line *line, const char *fmt, ...) CV_PRINTF(2, 3);
static void say(struct line *line, const char *fmt, ...) {
  size_t size = sizeof(line->claim->reason);
  va_list args;
  va_start(args, fmt);
  cv_text_vprint(line->claim->reason + line->used, size - line->used, fmt, args);
  va_end(args);
  line->used += strlen(line->claim->reason + line->used);
}

/* Prints `digits` significant digits, without an exponent for numbers below 10^7. */
static void say_digits(struct line *line, double number, int digits) {
  if (fabs(number) >= pow(10, digits) && fabs(number) < 1e7) {
    say(line, "%.0f", number);
  } else {
    say(line, "%.*g", digits, number);
  }
}

static void say_number(struct line *line, double mean, double se) {
  if (isnan(mean)) {
    say(line, "no number");
    return;
  }
  say_digits(line, mean, 4);
  if (se > 0) {
    say(line, " ± ");
    say_digits(line, se, 2);
  }
}

static void say_point(struct line *line, const struct hearing *hearing, size_t point) {
  const struct cv_lab_experiment *experiment = hearing->dataset->experiment;
  if (hearing->derived != NULL && hearing->derived->comparisons > 1) {
    say(line, "on average over %zu comparisons ", hearing->derived->comparisons);
  }
  bool is_one = hearing->derived == NULL || hearing->terms->points > 1 || hearing->derived->comparisons <= 1;
  if (experiment->axis != CV_LAB_AXIS_NONE && is_one) {
    say(line, "at %s = %.6g ", experiment->figure.x_label[0] == '\0' ? "x" : experiment->figure.x_label,
        experiment->x[point]);
  }
}

static const char *name_of(const struct hearing *hearing, size_t series) {
  const struct cv_lab_derived *derived = hearing->derived;
  return derived == NULL                        ? hearing->dataset->experiment->one[series].name
         : series == derived->terms.pair[0].one ? derived->one
                                                : derived->other;
}

static struct cv_lab_caption label_of(const struct hearing *hearing, size_t series) {
  const char *formula = hearing->derived == NULL ? hearing->dataset->experiment->one[series].formula : NULL;
  return cv_lab_caption_of(name_of(hearing, series), cv_lab_formula_is_asymptotic(formula));
}

static void say_series(struct line *line, const struct hearing *hearing, size_t series, size_t point) {
  struct cv_lab_summary at = found(hearing, series, point);
  say(line, "%s has ", label_of(hearing, series).text);
  say_number(line, at.mean, at.se);
}

/* Says the number, or the multiple of the other value; `is_ratio`: of a ratio to it. */
static void say_bound(struct line *line, const struct hearing *hearing, const struct comparison *comparison,
                      bool is_ratio) {
  const char *side = comparison->is_above ? "more" : "less";
  if (has_number(hearing)) {
    say(line, ", expected at %s %.6g", comparison->is_above ? "least" : "most", comparison->factor);
  } else if (comparison->is_guard) {
    say(line, ", expected not %s", comparison->is_above ? "less" : "more");
  } else if (is_ratio) {
    say(line, ", expected %s than %.4g", side, comparison->factor);
  } else if (comparison->factor == 1) {
    say(line, ", expected %s", side);
  } else {
    say(line, ", expected %s than %.4g times that", side, comparison->factor);
  }
}

static void say_expected(struct line *line, const struct hearing *hearing, const struct comparison *comparison) {
  if (!has_number(hearing)) {
    say(line, ", ");
    if (comparison->point != comparison->other_point) {
      say_point(line, hearing, comparison->other_point);
    }
    say_series(line, hearing, comparison->other, comparison->other_point);
  }
  say_bound(line, hearing, comparison, false);
}

static void say_count(struct line *line, const struct hearing *hearing) {
  if (hearing->total == 1) {
    return;
  }
  if (hearing->failed > 0) {
    say(line, "%zu of %zu comparisons fail, most clearly: ", hearing->failed, hearing->total);
  } else if (hearing->open > 0) {
    say(line, "%zu of %zu comparisons are undecided, the worst: ", hearing->open, hearing->total);
  } else if (hearing->small > 0) {
    say(line, "%zu of %zu comparisons show no effect, the largest possible: ", hearing->small, hearing->total);
  } else {
    say(line, "all %zu comparisons hold, the closest: ", hearing->total);
  }
}

/* Whether there is a difference, be it of interest or not. */
static bool is_seen(const struct finding *finding) {
  return finding->errors != 0 && fabs(finding->errors) >= finding->needed;
}

/* Says the bound of an effect that is not shown to be one of interest. */
static void say_effect(struct line *line, const struct hearing *hearing, const struct finding *finding) {
  if (finding->smallest == 0) {
    return;
  }
  unsigned long long differing = finding->differing, n = finding->difference.n;
  if (isinf(finding->most)) {
    say(line, "; too few replicates differ, %llu of %llu, to bound the difference", differing, n);
    return;
  }
  if (differing > 0 && differing < CV_LAB_DIFFERING_LEAST) {
    say(line, "; different in only %llu of %llu", differing, n);
  }
  say(line, "; the difference is at most %.3g, ", finding->most);
  say(line, finding->verdict == CV_LAB_NO_EFFECT ? "smaller than "
            : is_seen(finding)                   ? "but may be smaller than "
                                                 : "not smaller than ");
  if (hearing->terms->is_share) {
    say(line, "%.3g %% (%.3g)", 100 * hearing->terms->smallest, finding->smallest);
  } else {
    say(line, "%.3g", finding->smallest);
  }
}

/* Says how many replicates may do: to see the difference, or that there is none of interest. */
static void say_replicates(struct line *line, const struct finding *finding) {
  double n = (double)finding->difference.n, more = finding->smallest > 0 ? finding->wanted : (double)INFINITY;
  if (finding->needed > 0 && finding->errors != 0 && !is_seen(finding)) {
    /* The standard error falls with the root of the number of replicates. */
    more = fmin(more, n * pow(finding->needed / finding->errors, 2));
  }
  if (more < 1e6 && more > n) {
    double step = pow(10, floor(log10(more)) - 1); /* to two digits */
    say(line, ": about %.0f replicates may do", ceil(more / step) * step);
  }
}

static void say_weight(struct line *line, const struct hearing *hearing, const struct finding *finding) {
  const struct cv_lab_summary *d = &finding->difference;
  if (isnan(d->mean)) {
    say(line, "; there are no values");
  } else if (!is_enough(hearing, d->n)) {
    say(line, "; %llu replicate%s too few to estimate the error", (unsigned long long)d->n,
        d->n == 1 ? " is" : "s are");
  } else if (d->n > 1 && d->se == 0) {
    say(line, "; equal in all %llu replicates", (unsigned long long)d->n);
  } else if (d->n > 1) {
    double errors = fabs(finding->errors);
    bool is_paired = !has_number(hearing) && !is_formula(hearing, finding->comparison.series) &&
                     !is_formula(hearing, finding->comparison.other);
    say(line, "; %s%s%.1f standard errors%s in %llu replicates", is_paired ? "paired, " : "",
        errors > 100 ? "more than " : "", fmin(errors, 100), finding->errors < 0 ? " the wrong way" : "",
        (unsigned long long)d->n);
  }
  if (finding->verdict == CV_LAB_UNDECIDED && finding->errors != 0 && !is_seen(finding)) {
    say(line, ", %.1f are needed", finding->needed);
  }
  say_effect(line, hearing, finding);
  if (finding->verdict == CV_LAB_UNDECIDED) {
    say_replicates(line, finding);
  }
}

static void say_runs(struct line *line, const struct hearing *hearing, const struct finding *finding) {
  const struct comparison *c = &finding->comparison;
  const struct cv_lab_signs *signs = &finding->signs;
  unsigned long long n = signs->n;
  say(line, "%s", name_of(hearing, c->series));
  if (has_number(hearing)) {
    say(line, " has median ");
  } else {
    say(line, signs->is_ratio ? " over " : " minus ");
    if (c->point != c->other_point) {
      say_point(line, hearing, c->other_point);
    }
    say(line, "%s: median %s ", label_of(hearing, c->other).text, signs->is_ratio ? "ratio" : "difference");
  }
  if (n == 0) {
    say(line, "of none; there are no values");
    return;
  }
  say_digits(line, signs->median, 3);
  say(line, " (");
  say_digits(line, signs->low, 3);
  say(line, " to ");
  say_digits(line, signs->high, 3);
  say(line, ") over %llu %s", n, has_number(hearing) ? "replicates" : "pairs");
  say_bound(line, hearing, c, signs->is_ratio);
  if (hearing->terms->runs != .5) {
    say(line, " in %.4g %% of them", 100 * hearing->terms->runs);
  }
  say(line, "; %llu agree", (unsigned long long)finding->agree);
  if (finding->verdict == CV_LAB_UNDECIDED) {
    say(line, finding->least > n ? ", too few of them to judge" : ", %llu are needed",
        (unsigned long long)finding->least);
    say_replicates(line, finding);
  }
}

static void give_reason(const struct hearing *hearing, struct cv_lab_claim *claim) {
  struct line line = {.claim = claim};
  const struct finding *finding = &hearing->worst;
  say_count(&line, hearing);
  say_point(&line, hearing, finding->comparison.point);
  if (finding->is_counted) {
    say_runs(&line, hearing, finding);
    return;
  }
  say_series(&line, hearing, finding->comparison.series, finding->comparison.point);
  say_expected(&line, hearing, &finding->comparison);
  say_weight(&line, hearing, finding);
}

/* The verdict in words. */
static void give_answer(const struct cv_lab_terms *terms, struct cv_lab_claim *claim) {
  const char *text = cv_lab_verdict_text(claim->verdict);
  if (claim->verdict != CV_LAB_NO_EFFECT) {
    cv_text_print(claim->answer, sizeof(claim->answer), "%s", text);
  } else if (terms->is_share) {
    cv_text_print(claim->answer, sizeof(claim->answer), "%s larger than %.4g %%", text, 100 * terms->smallest);
  } else {
    cv_text_print(claim->answer, sizeof(claim->answer), "%s larger than %.4g", text, terms->smallest);
  }
}

void cv_lab_claim_open(const struct cv_lab_experiment *experiment, size_t index, const char *reason,
                       struct cv_lab_claim *ret) {
  struct cv_lab_terms terms;
  CV_REQUIRE(cv_lab_terms_read(experiment, index, &terms, NULL) == CV_OK);
  *ret = (struct cv_lab_claim){.says = terms.says,
                               .quote = terms.quote,
                               .where = terms.where,
                               .is_ours = terms.is_ours,
                               .verdict = CV_LAB_UNDECIDED};
  give_answer(&terms, ret);
  cv_text_print(ret->reason, sizeof(ret->reason), "%s", terms.reason != NULL ? terms.reason : reason);
}

static void judge(const struct cv_lab_dataset *dataset, const struct cv_lab_terms *terms,
                  const struct cv_lab_derived *derived, struct cv_lab_claim *ret) {
  struct hearing hearing = {.dataset = dataset, .terms = terms, .derived = derived, .total = count(terms)};
  hear_all(&hearing);
  ret->verdict = hearing.worst.verdict;
  give_answer(terms, ret);
  give_reason(&hearing, ret);
}

void cv_lab_claim_judge(const struct cv_lab_dataset *dataset, size_t index, struct cv_lab_claim *ret) {
  struct cv_lab_terms terms;
  cv_lab_claim_open(dataset->experiment, index, "", ret);
  CV_REQUIRE(cv_lab_terms_read(dataset->experiment, index, &terms, NULL) == CV_OK);
  if (terms.relation == CV_LAB_REASON) {
    return;
  }
  /* In an experiment of medians, a claim that is not about one is about means. */
  struct cv_lab_experiment of_means = *dataset->experiment;
  struct cv_lab_dataset seen = *dataset;
  if (of_means.statistic == CV_LAB_MEDIAN) {
    of_means.statistic = CV_LAB_MEAN;
    seen.experiment = &of_means;
  }
  if (!cv_lab_is_derived(&terms)) {
    judge(&seen, &terms, NULL, ret);
    return;
  }
  struct cv_lab_derived derived;
  if (cv_lab_derive(&seen, &terms, &derived) != CV_OK) {
    cv_text_print(ret->reason, sizeof(ret->reason), "out of memory");
    return;
  }
  judge(&derived.dataset, &derived.terms, &derived, ret);
  cv_lab_derived_fini(&derived);
}
