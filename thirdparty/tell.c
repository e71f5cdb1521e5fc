/* SPDX-License-Identifier: Apache-2.0 */
#include "thirdparty/tell.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/grid.h"
#include "common/base/text.h"
#include "thirdparty/policy/policy.h"

const char *cv_tell_kind(const char *policy) {
  static const char *const kinds[] = {[CV_POLICY_RANKING] = "ranking",
                                      [CV_POLICY_RECRUITMENT] = "recruitment",
                                      [CV_POLICY_BANDIT] = "bandit",
                                      [CV_POLICY_GRAPH] = "graph"};
  const struct cv_policy_class *class = cv_policy_find(policy);
  return class == NULL ? "unknown" : kinds[class->kind];
}

/* ---- JSON ---- */

static void tell_parameters(struct cv_jot *json, const struct cv_params *params) {
  cv_jot_key(json, "parameters");
  cv_jot_open(json, '{');
  for (uint32_t i = 0; i < params->count; i++) {
    const struct cv_param *param = &params->item[i];
    cv_jot_key(json, param->key);
    if (param->is_text) {
      cv_jot_text(json, param->text);
    } else {
      cv_jot_number(json, param->number);
    }
  }
  cv_jot_close(json, '}');
}

static void tell_names(struct cv_jot *json, const struct cv_spec *spec) {
  cv_jot_key(json, "names");
  if (spec->names == NULL) {
    cv_jot_null(json);
    return;
  }
  cv_jot_open(json, '[');
  for (uint32_t i = 0; i < spec->arms; i++) {
    cv_jot_text(json, spec->names[i]);
  }
  cv_jot_close(json, ']');
}

static double money(uint64_t micro) {
  return (double)micro / (double)CV_MICRO;
}

static void tell_costs(struct cv_jot *json, const struct cv_spec *spec) {
  cv_jot_key(json, "costs");
  if (spec->cost_micro == NULL) {
    cv_jot_null(json);
  } else {
    cv_jot_open(json, '[');
    for (uint32_t i = 0; i < spec->arms; i++) {
      cv_jot_number(json, money(spec->cost_micro[i]));
    }
    cv_jot_close(json, ']');
  }
  cv_jot_key(json, "budget");
  cv_jot_number(json, money(spec->budget_micro));
}

static void tell_edges(struct cv_jot *json, const struct cv_spec *spec) {
  cv_jot_key(json, "edges");
  if (spec->edges == 0) {
    cv_jot_null(json);
    return;
  }
  cv_jot_open(json, '[');
  for (uint32_t i = 0; i < spec->edges; i++) {
    cv_jot_open(json, '[');
    cv_jot_whole(json, spec->edge[i].a);
    cv_jot_whole(json, spec->edge[i].b);
    cv_jot_close(json, ']');
  }
  cv_jot_close(json, ']');
}

static void text(struct cv_jot *json, const char *key, const char *value) {
  cv_jot_key(json, key);
  cv_jot_text(json, value);
}

static void whole(struct cv_jot *json, const char *key, uint64_t value) {
  cv_jot_key(json, key);
  cv_jot_whole(json, value);
}

static void put(struct cv_buf *out, const char *literal) {
  cv_buf_put(out, literal, strlen(literal));
}

void cv_tell_begin(const struct cv_chronicle_entry *entry, struct cv_buf *out) {
  const struct cv_spec *spec = &entry->history->spec;
  struct cv_jot json = {.out = out};
  cv_jot_open(&json, '{');
  whole(&json, "id", (uint64_t)entry->id);
  whole(&json, "number", entry->key.campaign);
  text(&json, "broker", entry->key.broker);
  text(&json, "name", spec->name);
  text(&json, "kind", cv_tell_kind(spec->policy.name));
  whole(&json, "arms", spec->arms);
  tell_names(&json, spec);
  text(&json, "policy", spec->policy.name);
  tell_parameters(&json, &spec->policy.params);
  text(&json, "mechanism", spec->mechanism.name);
  text(&json, "privatizer", spec->privatizer.name);
  if (spec->brokers == 2) {
    whole(&json, "brokers", spec->brokers);
  }
  cv_jot_key(&json, "epsilon");
  cv_jot_number(&json, money(spec->epsilon_micro));
  whole(&json, "token_limit", spec->tokens);
  tell_costs(&json, spec);
  tell_edges(&json, spec);
  cv_jot_key(&json, "steps");
  cv_jot_open(&json, '[');
}

void cv_tell_link(const struct cv_link *link, struct cv_buf *out) {
  struct cv_jot json = {.out = out};
  cv_jot_open(&json, '{');
  cv_jot_key(&json, "connected");
  cv_jot_bool(&json, link->is_connected);
  whole(&json, "term", link->term);
  whole(&json, "since", link->since_ms);
  cv_jot_close(&json, '}');
}

void cv_tell_end(const struct cv_history *history, const struct cv_link *link, struct cv_buf *out) {
  struct cv_jot json = {.out = out};
  cv_jot_close(&json, ']');
  text(&json, "state", cv_end_text(history->row.end));
  text(&json, "note", history->row.note);
  whole(&json, "thinned", history->every);
  put(out, ",\"link\":");
  if (link == NULL) {
    put(out, "null");
  } else {
    cv_tell_link(link, out);
  }
  /* Only who runs all parties knows these. */
  put(out, ",\"truth\":null,\"live\":null}\n");
}

/* Two more places of an arm without a class, its last class and why; a third one of an arm that contradicts. */
static void tell_held(struct cv_jot *json, const struct cv_standing *standing) {
  if (standing->held != CV_HELD_NO) {
    cv_jot_whole(json, standing->rank_last);
    cv_jot_text(json, cv_held_text(standing->held));
  } else if (standing->contradicts) {
    cv_jot_null(json);
    cv_jot_null(json);
  }
  if (standing->contradicts) {
    cv_jot_bool(json, true);
  }
}

static void tell_standing(struct cv_jot *json, const struct cv_standing *standing) {
  cv_jot_open(json, '[');
  cv_jot_whole(json, standing->arm);
  cv_jot_whole(json, standing->rank_class);
  cv_jot_whole(json, standing->tokens);
  cv_jot_number(json, standing->mean);
  cv_jot_number(json, standing->radius);
  cv_jot_number(json, standing->noise);
  tell_held(json, standing);
  cv_jot_close(json, ']');
}

static void tell_decision(struct cv_jot *json, const struct cv_stored_decision *stored) {
  const struct cv_decision *decision = &stored->decision;
  cv_jot_open(json, '[');
  cv_jot_whole(json, stored->number);
  cv_jot_text(json, decision->kind == CV_DECISION_SETTLE ? "settle" : "remove");
  cv_jot_whole(json, decision->arm);
  cv_jot_whole(json, decision->rank_class);
  cv_jot_whole(json, decision->tokens);
  cv_jot_number(json, decision->mean);
  cv_jot_number(json, decision->radius);
  cv_jot_number(json, decision->reference);
  cv_jot_close(json, ']');
}

void cv_tell_step(const struct cv_history_step *step, bool has_after, uint64_t after, struct cv_buf *out) {
  struct cv_jot json = {.out = out};
  cv_jot_open(&json, '{');
  whole(&json, "n", step->number);
  cv_jot_key(&json, "t");
  if (step->at_ms == CV_HISTORY_NO_TIME) {
    cv_jot_null(&json);
  } else {
    cv_jot_whole(&json, step->at_ms);
  }
  whole(&json, "tokens", step->tokens);
  whole(&json, "asked", step->asked);
  whole(&json, "releases", step->releases);
  cv_jot_key(&json, "s");
  cv_jot_open(&json, '[');
  for (uint32_t i = 0; i < step->standings; i++) {
    tell_standing(&json, &step->standing[i]);
  }
  cv_jot_close(&json, ']');
  cv_jot_key(&json, "d");
  cv_jot_open(&json, '[');
  for (uint32_t i = 0; i < step->decisions; i++) {
    if (!has_after || step->decision[i].plan > after) {
      tell_decision(&json, &step->decision[i]);
    }
  }
  cv_jot_close(&json, ']');
  cv_jot_close(&json, '}');
}

void cv_tell_state(const struct cv_history *history, struct cv_buf *out) {
  struct cv_jot json = {.out = out};
  cv_jot_open(&json, '{');
  text(&json, "state", cv_end_text(history->row.end));
  text(&json, "note", history->row.note);
  cv_jot_close(&json, '}');
}

static void tell_release(struct cv_jot *jot, const struct cv_release *release) {
  cv_jot_key(jot, "release");
  if (release->number == 0) {
    cv_jot_null(jot);
  } else {
    cv_jot_open(jot, '[');
    cv_jot_whole(jot, release->number);
    cv_jot_whole(jot, release->plan);
    cv_jot_whole(jot, release->tokens);
    cv_jot_number(jot, (double)release->noisy_sum / (double)CV_GRID / (double)release->tokens);
    cv_jot_close(jot, ']');
  }
  cv_jot_key(jot, "noise");
  cv_jot_open(jot, '[');
  for (uint32_t i = 0; i < release->noise.groups; i++) {
    cv_jot_open(jot, '[');
    cv_jot_number(jot, release->noise.group[i].scale);
    cv_jot_whole(jot, release->noise.group[i].count);
    cv_jot_close(jot, ']');
  }
  cv_jot_close(jot, ']');
}

static const struct cv_stored_decision *last_decision(const struct cv_history *history, uint32_t arm) {
  for (size_t i = history->steps; i-- > 0;) {
    for (uint32_t j = history->step[i].decisions; j-- > 0;) {
      if (history->step[i].decision[j].decision.arm == arm) {
        return &history->step[i].decision[j];
      }
    }
  }
  return NULL;
}

void cv_tell_column(const struct cv_history *history, uint32_t arm, struct cv_buf *out) {
  const struct cv_standing *standing = &history->last[arm];
  const struct cv_stored_decision *decision = last_decision(history, arm);
  struct cv_jot jot = {.out = out};
  cv_jot_open(&jot, '{');
  tell_release(&jot, &history->release[arm]);
  cv_jot_key(&jot, "standing");
  cv_jot_open(&jot, '[');
  cv_jot_whole(&jot, standing->rank_class);
  cv_jot_whole(&jot, standing->tokens);
  cv_jot_number(&jot, standing->mean);
  cv_jot_number(&jot, standing->radius);
  cv_jot_number(&jot, standing->noise);
  tell_held(&jot, standing);
  cv_jot_close(&jot, ']');
  cv_jot_key(&jot, "decision");
  if (decision == NULL) {
    cv_jot_null(&jot);
  } else {
    tell_decision(&jot, decision);
  }
  cv_jot_close(&jot, '}');
}

/* ---- the table ---- */

enum { TABLE_ROWS = 1000 }; /* at most: a browser lays out a table as a whole */

static void print(struct cv_buf *out, const char *fmt, ...) CV_PRINTF(2, 3);
static void print(struct cv_buf *out, const char *fmt, ...) {
  char line[512];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(line, sizeof(line), fmt, args);
  va_end(args);
  CV_REQUIRE(n >= 0 && (size_t)n < sizeof(line));
  cv_buf_put(out, line, (size_t)n);
}

static void print_name(struct cv_buf *out, const char *name) {
  for (; *name != '\0'; name++) {
    const char *escaped = *name == '<' ? "&lt;" : *name == '>' ? "&gt;" : *name == '&' ? "&amp;" : NULL;
    if (escaped != NULL) {
      put(out, escaped);
    } else {
      cv_buf_put_u8(out, (uint8_t)*name);
    }
  }
}

static void print_row(const struct cv_history *history, uint32_t arm, struct cv_buf *out) {
  const struct cv_standing *standing = &history->last[arm];
  print(out, "<tr><th scope=\"row\">%" PRIu32, arm);
  if (history->spec.names != NULL) {
    put(out, " <bdi>");
    print_name(out, history->spec.names[arm]);
    put(out, "</bdi>");
  }
  put(out, "</th><td>");
  if (standing->held != CV_HELD_NO) {
    print(out, "%s (%s)", cv_class_text(standing).text, cv_held_text(standing->held));
  } else {
    put(out, standing->rank_class > 0 ? cv_class_text(standing).text : "undecided");
  }
  print(out, "</td><td>%" PRIu64 "</td><td>%.4f</td><td>%.4f</td><td>%.4f</td></tr>\n", standing->tokens,
        standing->mean, standing->radius, standing->noise);
}

static void print_head(const char *title, struct cv_buf *out) {
  put(out,
      "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<link rel=\"stylesheet\" href=\"/page.css\">\n<title>Crowdveil: ");
  print_name(out, title);
  put(out, "</title>\n<main class=\"table\">\n<h1>");
  print_name(out, title);
  put(out, "</h1>\n");
}

static void print_others(uint64_t id, struct cv_buf *out) {
  if (id > 1) {
    print(out, "<p><a href=\"/table?id=%" PRIu64 "\">The campaign before this one</a></p>\n", id - 1);
  }
}

void cv_tell_table(const struct cv_chronicle_entry *entry, struct cv_buf *out) {
  const struct cv_history *history = entry->history;
  const struct cv_history_step *last = history->steps == 0 ? NULL : &history->step[history->steps - 1];
  char title[sizeof(struct cv_text_shown) + 16];
  (void)snprintf(title, sizeof(title), "Campaign %s", cv_text_shown(history->spec.name).text);
  print_head(title, out);
  put(out, "<p>");
  print_name(out, cv_end_text(history->row.end));
  if (last != NULL) {
    print(out, ", after plan %" PRIu64 ": %" PRIu64 " tokens in %" PRIu64 " releases", last->number, last->tokens,
          last->releases);
  }
  put(out,
      ". Load the page again for later values.</p>\n<table>\n<thead><tr><th scope=\"col\">item</th>"
      "<th scope=\"col\">class</th><th scope=\"col\">tokens</th><th scope=\"col\">mean</th>"
      "<th scope=\"col\">radius</th><th scope=\"col\">of it noise</th></tr></thead>\n<tbody>\n");
  for (uint32_t i = 0; i < history->spec.arms && i < TABLE_ROWS; i++) {
    print_row(history, i, out);
  }
  put(out, "</tbody>\n</table>\n");
  if (history->spec.arms > TABLE_ROWS) {
    print(out, "<p>The first %d of %" PRIu32 " items; the result and an export have all of them.</p>\n", TABLE_ROWS,
          history->spec.arms);
  }
  print_others((uint64_t)entry->id, out);
  put(out, "</main>\n</html>\n");
}

void cv_tell_no_table(struct cv_buf *out) {
  print_head("No campaign yet", out);
  put(out, "<p>Load the page again when one has been submitted.</p>\n</main>\n</html>\n");
}
