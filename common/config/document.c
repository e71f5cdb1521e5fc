/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is parsed twice: first as events, to reject anchors, aliases and tags (aliases let a small file expand to a
 * huge document), then as the document that callers read.
 */
#include "common/config/document.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/buf.h"
#include "common/base/nearest.h"
#include "common/base/normal.h"
#include "common/base/text.h"
#include "common/config/value.h"

enum cv_err cv_yaml_no_memory(const char *path, struct cv_why *why) {
  return cv_fail(why, CV_ERR_NOMEM, "%s: out of memory", path);
}

enum cv_err cv_yaml_read(const char *path, struct cv_buf *ret, struct cv_why *why) {
  FILE *file = fopen(path, "rbe");
  if (file == NULL) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
  }
  uint8_t chunk[8192];
  size_t n;
  /* At most one chunk beyond the limit is read: the file may be a device without an end. */
  while (ret->len <= CV_YAML_BYTES && (n = fread(chunk, 1, sizeof(chunk), file)) > 0) {
    cv_buf_put(ret, chunk, n);
  }
  /* Before fclose(), which may change errno. */
  int read_errno = ferror(file) != 0 ? errno : 0;
  (void)fclose(file);
  if (read_errno != 0) {
    return cv_fail(why, CV_ERR_IO, "%s: cannot be read: %s", path, strerror(read_errno));
  }
  if (!cv_buf_ok(ret)) {
    return cv_yaml_no_memory(path, why);
  }
  if (ret->len > CV_YAML_BYTES) {
    return cv_fail(why, CV_ERR_LIMIT, "%s: longer than %d bytes; expected a configuration file", path, CV_YAML_BYTES);
  }
  return CV_OK;
}

static enum cv_err fail_at(const char *path, yaml_mark_t mark, struct cv_why *why, const char *text) {
  return cv_fail(why, CV_ERR_FORMAT, "%s:%zu:%zu: %s", path, mark.line + 1, mark.column + 1, text);
}

/* Position of a byte that is not text: for reader errors libyaml gives only its offset. */
static yaml_mark_t mark_of(const struct cv_buf *text, size_t offset) {
  yaml_mark_t mark = {0};
  for (size_t i = 0; i < offset && i < text->len; i++) {
    mark.column++;
    if (text->data[i] == '\n') {
      mark.line++;
      mark.column = 0;
    }
  }
  return mark;
}

static enum cv_err fail_syntax(const char *path, const yaml_parser_t *parser, const struct cv_buf *text,
                               struct cv_why *why) {
  if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL) { /* libyaml does not record every failure */
    return cv_yaml_no_memory(path, why);
  }
  bool is_reader = parser->error == YAML_READER_ERROR;
  yaml_mark_t mark = is_reader ? mark_of(text, parser->problem_offset) : parser->problem_mark;
  char line[200];
  (void)snprintf(line, sizeof(line), "not valid YAML: %s", parser->problem);
  return fail_at(path, mark, why, line);
}

struct scan {
  const char *path;
  size_t documents, depth;
  bool done;
};

static bool has_marker(const yaml_event_t *event) {
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
      return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
      return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    default:
      return event->type == YAML_ALIAS_EVENT;
  }
}

static enum cv_err scan_event(struct scan *scan, const yaml_event_t *event, struct cv_why *why) {
  if (has_marker(event)) {
    return fail_at(scan->path, event->start_mark, why, "an anchor, alias or tag; expected a plain value");
  }
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      /* An escaped zero byte would end the C string early for all callers. */
      if (memchr(event->data.scalar.value, 0, event->data.scalar.length) != NULL) {
        return fail_at(scan->path, event->start_mark, why, "a zero byte in a value; expected text");
      }
      break;
    case YAML_DOCUMENT_START_EVENT:
      if (++scan->documents > 1) {
        return fail_at(scan->path, event->start_mark, why, "a second document; expected only one");
      }
      break;
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
      if (++scan->depth > CV_YAML_DEPTH) {
        return fail_at(scan->path, event->start_mark, why, "nested too deeply");
      }
      break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      scan->depth--;
      break;
    default:
      scan->done = event->type == YAML_STREAM_END_EVENT;
      break;
  }
  return CV_OK;
}

static enum cv_err scan_events(const char *path, const struct cv_buf *text, struct cv_why *why) {
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) {
    return cv_yaml_no_memory(path, why);
  }
  yaml_parser_set_input_string(&parser, text->data, text->len);
  struct scan scan = {.path = path};
  enum cv_err err = CV_OK;
  while (err == CV_OK && !scan.done) {
    yaml_event_t event;
    if (yaml_parser_parse(&parser, &event) == 0) {
      err = fail_syntax(path, &parser, text, why);
      break;
    }
    err = scan_event(&scan, &event, why);
    yaml_event_delete(&event);
  }
  yaml_parser_delete(&parser);
  return err;
}

static enum cv_err load_document(const char *path, const struct cv_buf *text, yaml_document_t *ret,
                                 struct cv_why *why) {
  yaml_parser_t parser;
  if (yaml_parser_initialize(&parser) == 0) {
    return cv_yaml_no_memory(path, why);
  }
  yaml_parser_set_input_string(&parser, text->data, text->len);
  enum cv_err err = yaml_parser_load(&parser, ret) != 0 ? CV_OK : fail_syntax(path, &parser, text, why);
  yaml_parser_delete(&parser);
  return err;
}

static char *folder_of(const char *path) {
  /* Paths in a file are relative to its folder, wherever the program was started. */
  const char *slash = strrchr(path, '/');
  return slash == NULL ? strdup(".") : strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static enum cv_err fail_empty(const char *path, struct cv_why *why) {
  return cv_fail(why, CV_ERR_FORMAT, "%s: the file is empty; expected keys and values", path);
}

static enum cv_err check_root(struct cv_yaml *yaml, struct cv_why *why) {
  yaml->root = yaml_document_get_root_node(&yaml->document);
  if (yaml->root == NULL) {
    return fail_empty(yaml->path, why);
  }
  if (yaml->root->type != YAML_MAPPING_NODE) {
    return cv_yaml_expected(yaml, yaml->root, "the file", "keys and values", why);
  }
  return CV_OK;
}

enum cv_err cv_yaml_parse(const char *path, const struct cv_buf *text, struct cv_yaml *ret, struct cv_why *why) {
  struct cv_yaml yaml = {.path = path};
  if (text->len == 0) {
    return fail_empty(path, why); /* libyaml aborts on empty input */
  }
  /* Before the document is built: nesting and aliases are bounded before they cost memory. */
  CV_TRY(scan_events(path, text, why));
  CV_TRY(load_document(path, text, &yaml.document, why));
  enum cv_err err;
  yaml.folder = folder_of(path);
  err = yaml.folder == NULL ? cv_yaml_no_memory(path, why) : check_root(&yaml, why);
  if (err != CV_OK) {
    cv_yaml_close(&yaml);
    return err;
  }
  *ret = yaml;
  return CV_OK;
}

enum cv_err cv_yaml_open(const char *path, struct cv_yaml *ret, struct cv_why *why) {
  struct cv_buf text = {0};
  enum cv_err err = cv_yaml_read(path, &text, why);
  if (err == CV_OK) {
    err = cv_yaml_parse(path, &text, ret, why);
  }
  cv_buf_fini(&text);
  return err;
}

void cv_yaml_close(struct cv_yaml *yaml) {
  yaml_document_delete(&yaml->document);
  free(yaml->folder);
}

struct cv_yaml_pair cv_yaml_pair(struct cv_yaml *yaml, const yaml_node_t *mapping, size_t index) {
  yaml_node_pair_t pair = mapping->data.mapping.pairs.start[index];
  return (struct cv_yaml_pair){.key = yaml_document_get_node(&yaml->document, pair.key),
                               .value = yaml_document_get_node(&yaml->document, pair.value)};
}

const yaml_node_t *cv_yaml_item(struct cv_yaml *yaml, const yaml_node_t *list, size_t index) {
  return yaml_document_get_node(&yaml->document, list->data.sequence.items.start[index]);
}

struct cv_yaml_pair cv_yaml_find(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *key) {
  for (size_t i = 0; i < cv_yaml_pairs(mapping); i++) {
    struct cv_yaml_pair pair = cv_yaml_pair(yaml, mapping, i);
    if (pair.key->type == YAML_SCALAR_NODE && strcmp(cv_yaml_text(pair.key), key) == 0) {
      return pair;
    }
  }
  return (struct cv_yaml_pair){0};
}

void cv_yaml_why_set(const struct cv_yaml *yaml, const yaml_node_t *at, struct cv_why *why, const char *fmt, ...) {
  char text[400];
  va_list args;
  va_start(args, fmt);
  (void)vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  cv_why_set(why, "%s:%u:%u: %s", yaml->path, cv_yaml_line(at), cv_yaml_column(at), text);
}

enum cv_err cv_yaml_expected(const struct cv_yaml *yaml, const yaml_node_t *at, const char *name, const char *expected,
                             struct cv_why *why) {
  switch (at->type) {
    case YAML_MAPPING_NODE:
      return cv_yaml_fail(yaml, at, why, "%s is a mapping; expected %s", name, expected);
    case YAML_SEQUENCE_NODE:
      return cv_yaml_fail(yaml, at, why, "%s is a list; expected %s", name, expected);
    default:
      break;
  }
  if (cv_yaml_text(at)[0] == '\0') {
    return cv_yaml_fail(yaml, at, why, "%s has no value; expected %s", name, expected);
  }
  return cv_yaml_fail(yaml, at, why, "%s is %s; expected %s", name, cv_text_quote(cv_yaml_text(at)).text, expected);
}

enum cv_err cv_yaml_name(const struct cv_yaml *yaml, const yaml_node_t *at, const char *name, const char *expected,
                         char *to, size_t size, struct cv_why *why) {
  struct cv_why reason;
  enum cv_err err =
      at->type == YAML_SCALAR_NODE ? cv_name_normalize(cv_yaml_text(at), to, size, &reason) : CV_ERR_FORMAT;
  return err == CV_OK            ? CV_OK
         : err == CV_ERR_INVALID ? cv_yaml_fail(yaml, at, why, "%s %s", name, reason.text)
                                 : cv_yaml_expected(yaml, at, name, expected, why);
}

static enum cv_err fail_unknown(const struct cv_yaml *yaml, const yaml_node_t *key, const char *name,
                                const char *const *known, size_t n, struct cv_why *why) {
  struct cv_text_piece quote = cv_text_quote(cv_yaml_text(key));
  const char *within = name[0] == '\0' ? "" : " in ";
  /* A long list helps little if the key is nearly right. */
  const char *nearest = cv_nearest(cv_yaml_text(key), known, n);
  if (nearest != NULL) {
    return cv_yaml_fail(yaml, key, why, "unknown key %s%s%s; did you mean \"%s\"?", quote.text, within, name, nearest);
  }
  char list[240];
  cv_text_either(known, n, list, sizeof(list));
  return cv_yaml_fail(yaml, key, why, "unknown key %s%s%s; expected %s", quote.text, within, name, list);
}

enum cv_err cv_yaml_keys(struct cv_yaml *yaml, const yaml_node_t *mapping, const char *name, const char *const *known,
                         size_t n, struct cv_why *why) {
  for (size_t i = 0; i < cv_yaml_pairs(mapping); i++) {
    const yaml_node_t *key = cv_yaml_pair(yaml, mapping, i).key;
    if (key->type != YAML_SCALAR_NODE) {
      return cv_yaml_expected(yaml, key, "a key", "a word", why);
    }
    /* The first pair with this text is this pair itself, unless the key is a duplicate. */
    const yaml_node_t *first = cv_yaml_find(yaml, mapping, cv_yaml_text(key)).key;
    CV_REQUIRE(first != NULL);
    if (first != key) {
      return cv_yaml_fail(yaml, key, why, "duplicate key %s; the first is on line %u",
                          cv_text_quote(cv_yaml_text(key)).text, cv_yaml_line(first));
    }
    bool is_known = known == NULL;
    for (size_t j = 0; j < n && !is_known; j++) {
      is_known = strcmp(known[j], cv_yaml_text(key)) == 0;
    }
    if (!is_known) {
      return fail_unknown(yaml, key, name, known, n, why);
    }
  }
  return CV_OK;
}
