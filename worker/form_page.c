/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/form_page.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/mechanisms.h"
#include "common/base/text.h"

enum { AGAIN_S = 3 };

static void put(struct cv_buf *out, const char *html) {
  cv_buf_put(out, html, strlen(html));
}

/* Text of others between tags or in a quoted attribute. */
static void put_text(struct cv_buf *out, const char *text) {
  static const char special[] = "&<>\"'";
  static const char *const entity[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  for (; *text != '\0'; text++) {
    const char *found = strchr(special, *text);
    if (found != NULL) {
      put(out, entity[found - special]);
    } else {
      cv_buf_put_u8(out, (uint8_t)*text);
    }
  }
}

static void put_format(struct cv_buf *out, const char *format, ...) CV_PRINTF(2, 3);
static void put_format(struct cv_buf *out, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  cv_text_vprint(text, sizeof(text), format, args);
  va_end(args);
  put(out, text);
}

/* A name may run from right to left: its element keeps it from changing the order of the text beside it. */
static void put_name(struct cv_buf *out, const char *name) {
  put(out, "<bdi>");
  put_text(out, name);
  put(out, "</bdi>");
}

static void put_head(struct cv_buf *out, const char *title, const char *more) {
  put(out,
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>");
  put_text(out, title);
  put(out, "</title>\n<link rel=\"stylesheet\" href=\"/form.css\">\n");
  put(out, more);
  put(out, "</head>\n<body>\n<main>\n<h1>");
  put_name(out, title);
  put(out, "</h1>\n");
}

static void put_foot(struct cv_buf *out) {
  put(out, "</main>\n</body>\n</html>\n");
}

static void put_notice(const struct cv_form_view *view, struct cv_buf *out) {
  /* Before and after the item's name. */
  static const char *const text[CV_FORM_NOTICES][2] = {
      [CV_FORM_COUNTED] = {"Thank you. Your score for ", " was counted."},
      [CV_FORM_TOO_LATE] = {"For ", " another person has answered; your score was not used."},
      [CV_FORM_LEFT] = {"For ", " the time is over, and another person is asked; no score of yours was used."},
      [CV_FORM_REFUSED] = {"Your score for ", " was not taken by the broker; it was not used."},
      [CV_FORM_OVER] = {"The campaign ended before your score for ", " was counted; it was not used."},
      [CV_FORM_SKIPPED] = {"You skipped ", "; no score was sent."},
      [CV_FORM_UNCONFIRMED] = {"Your score for ", " was sent; the broker has not confirmed it yet."},
      [CV_FORM_SEVERAL] = {"The campaign asks for several items at once, ",
                           " among them, which this form cannot show."},
  };
  put(out, "<p role=\"status\">");
  if (view->notice != CV_FORM_NO_NOTICE) {
    put(out, text[view->notice][0]);
    put_name(out, view->noticed);
    put(out, text[view->notice][1]);
  }
  put(out, "</p>\n");
}

/* ---- what happens to the score ---- */

static void put_epsilon(struct cv_buf *out, const char *name, uint64_t epsilon_micro) {
  put_text(out, name);
  put_format(out, ", epsilon %g", (double)epsilon_micro / (double)CV_MICRO);
}

static void put_fate(const struct cv_form_view *view, struct cv_buf *out) {
  const struct cv_terms *terms = view->terms;
  const struct cv_traits *traits = cv_traits_of(terms->mechanism.name);
  bool two = terms->split.score_bits > 0;
  put(out, "<p class=\"fate\" id=\"fate\">");
  if (view->law->epsilon_micro == CV_EPSILON_NONE && two) {
    put(out,
        "Your score goes to this site, which can read it, and in two parts to two brokers, of which neither can read "
        "it; they add it to the scores of others, and ");
  } else if (view->law->epsilon_micro == CV_EPSILON_NONE) {
    put(out,
        "Your score goes to this site and to the broker, which can both read it; the broker adds it to the scores "
        "of others, and ");
  } else {
    put(out, "Your score stays in this browser, which sends a random answer in its place (");
    put_epsilon(out, terms->privatizer.name, view->law->epsilon_micro);
    put(out, two ? "); neither this site nor a broker" : "); neither this site nor the broker");
    put(out, " sees the score, and of the random answers ");
  }
  if (traits->noise != CV_NOISE_NONE) {
    put(out, "only sums with noise (");
    put_epsilon(out, terms->mechanism.name, terms->epsilon_micro);
    put(out, two ? ") leave the brokers.</p>\n" : ") leave the broker.</p>\n");
  } else {
    put(out, "only sums leave the broker.</p>\n"); /* two brokers always add noise */
  }
}

/* What an opinion is about, for form/form.js: the same in each question about it. */
static void put_about(const struct cv_form_view *view, struct cv_buf *out) {
  put(out, " data-campaign=\"");
  put_text(out, view->campaign);
  put(out, "\" data-item=\"");
  put_text(out, view->item);
  if (view->versus != NULL) {
    put(out, "\" data-versus=\"");
    put_text(out, view->versus);
  }
  put(out, "\"");
}

/* The law, for form/form.js. */
static void put_law(const struct cv_form_view *view, struct cv_buf *out) {
  const struct cv_local *law = view->law;
  put_format(out, " data-steps=\"%" PRIu64 "\"", view->steps);
  if (law->bits && law->matrices > 0) {
    const struct cv_matrix *matrix = cv_local_matrix(law, view->arm);
    put_format(out, " data-bits data-p00=\"%u\" data-p11=\"%u\"", matrix->p00_micro, matrix->p11_micro);
    return;
  }
  put_format(out, " data-epsilon=\"%" PRIu64 "\"", law->epsilon_micro);
  if (law->bits) {
    put_format(out, " data-bits data-delta=\"%" PRIu64 "\"%s", law->delta_pico, law->printed ? " data-printed" : "");
  } else {
    put_format(out, " data-low=\"%" PRId64 "\" data-high=\"%" PRId64 "\"", law->low, law->high);
  }
}

/* ---- pages ---- */

static void put_score(const struct cv_form_view *view, bool is_local, struct cv_buf *out) {
  put(out, "<p><label for=\"score\">Your score for <strong>");
  put_name(out, view->item);
  put_format(out, "</strong>, a whole number from 0 (worst) to %" PRIu64 " (best)</label>\n", view->steps);
  /* Without a name a browser does not send it: a score that is to be privatized must not leave. */
  put_format(out,
             "<input id=\"score\" %stype=\"number\" inputmode=\"numeric\" min=\"0\" max=\"%" PRIu64
             "\" step=\"1\" required autofocus autocomplete=\"off\" aria-describedby=\"fate\"></p>\n",
             is_local ? "" : "name=\"score\" ", view->steps);
}

static void put_choice(const struct cv_form_view *view, bool is_local, bool is_item, struct cv_buf *out) {
  /* In no form, a browser does not send it. */
  put_format(out, "<p><label><input type=\"radio\" %s value=\"%" PRIu64 "\" required> <strong>",
             is_local ? "name=\"choice\" form=\"nowhere\"" : "name=\"score\"", is_item ? view->steps : 0);
  put_name(out, is_item ? view->item : view->versus);
  put(out, "</strong></label></p>\n");
}

/* Two items to compare. Which one stands first changes, since people prefer the first. */
static void put_choices(const struct cv_form_view *view, bool is_local, struct cv_buf *out) {
  bool item_first = view->question % 2 == 0;
  put(out, "<fieldset aria-describedby=\"fate\">\n<legend>Which is better?</legend>\n");
  put_choice(view, is_local, item_first, out);
  put_choice(view, is_local, !item_first, out);
  put(out, "</fieldset>\n");
}

static void put_input(const struct cv_form_view *view, bool is_local, struct cv_buf *out) {
  (view->versus == NULL ? put_score : put_choices)(view, is_local, out);
  put_format(out, "<p><button type=\"submit\"%s>Send</button>\n", is_local ? " id=\"send\" disabled" : "");
  put_format(out, "<button type=\"submit\" name=\"skip\" value=\"1\" formnovalidate>Skip %s</button></p>\n",
             view->versus == NULL ? "this item" : "these items");
}

void cv_form_put_question(const struct cv_form_view *view, struct cv_buf *out) {
  bool is_local = view->law->epsilon_micro != CV_EPSILON_NONE;
  put_head(out, view->campaign, is_local ? "<script type=\"module\" src=\"/form.js\"></script>\n" : "");
  put_notice(view, out);
  put(out, "<form method=\"post\" action=\"/answer\"");
  if (is_local) {
    put(out, " id=\"local\"");
    put_about(view, out);
    put_law(view, out);
  }
  put(out, ">\n<input type=\"hidden\" name=\"secret\" value=\"");
  put_text(out, view->secret);
  put_format(out, "\">\n<input type=\"hidden\" name=\"question\" value=\"%" PRIu64 "\">\n", view->question);
  put_input(view, is_local, out);
  put(out, "</form>\n");
  if (is_local) {
    put(out,
        "<noscript><p class=\"alert\">Your browser runs no JavaScript, which would have to replace your score by a "
        "random answer. So no score can be sent; you can only skip the item.</p></noscript>\n");
  }
  put_fate(view, out);
  put_format(out, "<p class=\"quiet\">After %" PRIu64 " %s another person is asked for this item.</p>\n",
             view->left_s < 120 ? view->left_s : (view->left_s + 30) / 60, view->left_s < 120 ? "seconds" : "minutes");
  put_foot(out);
}

void cv_form_put_wait(const struct cv_form_view *view, struct cv_buf *out) {
  char again[64];
  (void)snprintf(again, sizeof(again), "<meta http-equiv=\"refresh\" content=\"%d; url=/\">\n", AGAIN_S);
  put_head(out, "One moment", again);
  put_notice(view, out);
  put(out,
      "<p>There is no item for you now. This page asks again by itself, or <a href=\"/\">ask again now</a>.</p>\n");
  put_foot(out);
}

void cv_form_put_end(const struct cv_form_view *view, struct cv_buf *out) {
  put_head(out, "Thank you", "");
  put_notice(view, out);
  if (view->limit > 0) {
    put_format(out,
               "<p>You have given the %" PRIu64
               " answer%s that this form permits you in all, so that no more of "
               "yours can be used. If you would give more, ask whoever sent you the link.</p>",
               view->limit, view->limit == 1 ? "" : "s");
  }
  put(out,
      "<p>Nothing more is asked of you now. You may close this page, or <a href=\"/\">look again</a> later.</p>\n");
  put_foot(out);
}

void cv_form_put_refusal(const char *reason, struct cv_buf *out) {
  put_head(out, "This did not work", "");
  put(out, "<p role=\"alert\">");
  put_text(out, reason);
  put(out, "</p>\n<p><a href=\"/\">Back to the form</a></p>\n");
  put_foot(out);
}
