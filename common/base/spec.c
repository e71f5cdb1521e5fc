/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/spec.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

enum { SPEC_VERSION = 1 };

void cv_spec_fini(struct cv_spec *spec) {
  if (spec == NULL) {
    return;
  }
  free(spec->names);
  *spec = (struct cv_spec){0};
}

enum cv_err cv_spec_copy(const struct cv_spec *from, struct cv_spec *ret_to) {
  struct cv_label *names = NULL;
  if (from->names != NULL) {
    names = calloc(from->arms, sizeof(*names));
    if (names == NULL) {
      return CV_ERR_NOMEM;
    }
    memcpy(names, from->names, from->arms * sizeof(*names));
  }
  *ret_to = *from;
  ret_to->names = names;
  return CV_OK;
}

bool cv_name_is_valid(const char *text) {
  size_t n = strnlen(text, CV_NAME_BYTES);
  return n > 0 && n < CV_NAME_BYTES && cv_text_is_clean(text, n);
}

enum cv_err cv_spec_check(const struct cv_spec *spec, struct cv_why *why) {
  if (!cv_name_is_valid(spec->name)) {
    return cv_fail(why, CV_ERR_INVALID, "the campaign's name is empty, too long or not printable UTF-8");
  }
  if (spec->arms < 1 || spec->arms > CV_ARMS_MAX) {
    return cv_fail(why, CV_ERR_INVALID, "%u arms; expected 1 to %d", spec->arms, CV_ARMS_MAX);
  }
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    if (!cv_name_is_valid(spec->names[i].text)) {
      return cv_fail(why, CV_ERR_INVALID, "the name of arm %u is empty, too long or not printable UTF-8", i);
    }
  }
  if (spec->epsilon_micro == 0 && strcmp(spec->mechanism.name, "none") != 0) {
    return cv_fail(why, CV_ERR_INVALID, "epsilon is 0; expected more than 0 with mechanism %s", spec->mechanism.name);
  }
  if (spec->tokens_per_worker == 0) {
    return cv_fail(why, CV_ERR_INVALID, "tokens_per_worker is 0; expected at least 1");
  }
  if (spec->tokens == 0) {
    return cv_fail(why, CV_ERR_INVALID, "the limit of tokens is 0; expected at least 1");
  }
  return CV_OK;
}

static void put_text(struct cv_buf *out, const char *text) {
  cv_buf_put_bytes(out, text, strlen(text));
}

static void put_choice(struct cv_buf *out, const struct cv_choice *choice) {
  put_text(out, choice->name);
  cv_buf_put_u32(out, choice->params.count);
  for (uint32_t i = 0; i < choice->params.count; i++) {
    const struct cv_param *param = &choice->params.item[i];
    put_text(out, param->key);
    cv_buf_put_u8(out, param->is_text);
    if (param->is_text) {
      put_text(out, param->text);
    } else {
      cv_buf_put_f64(out, param->number);
    }
  }
}

void cv_spec_encode(const struct cv_spec *spec, struct cv_buf *out) {
  cv_buf_put_u8(out, SPEC_VERSION);
  put_text(out, spec->name);
  cv_buf_put_u32(out, spec->arms);
  cv_buf_put_u8(out, spec->names != NULL);
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    put_text(out, spec->names[i].text);
  }
  put_choice(out, &spec->policy);
  put_choice(out, &spec->mechanism);
  put_choice(out, &spec->privatizer);
  cv_buf_put_u64(out, spec->epsilon_micro);
  cv_buf_put_u32(out, spec->tokens_per_worker);
  cv_buf_put_u8(out, spec->thirdparty_trusted);
  cv_buf_put_u64(out, spec->tokens);
  cv_buf_put_u64(out, spec->deadline_ms);
  cv_buf_put_u64(out, spec->idle_ms);
}

/* Into a fixed field with room for the terminator; latches the reader when it does not fit. */
static void read_text(struct cv_reader *in, char *to, size_t size) {
  size_t n = 0;
  const uint8_t *bytes = cv_read_bytes(in, &n);
  if (n >= size || (n > 0 && memchr(bytes, 0, n) != NULL)) {
    in->failed = true;
  }
  if (in->failed) {
    return;
  }
  if (n > 0) {
    memcpy(to, bytes, n);
  }
  to[n] = '\0';
}

static void read_choice(struct cv_reader *in, struct cv_choice *choice) {
  read_text(in, choice->name, sizeof(choice->name));
  uint32_t count = cv_read_u32(in);
  if (count > CV_PARAMS_MAX) {
    in->failed = true;
    return;
  }
  choice->params.count = count;
  for (uint32_t i = 0; i < count; i++) {
    struct cv_param *param = &choice->params.item[i];
    read_text(in, param->key, sizeof(param->key));
    param->is_text = cv_read_u8(in) != 0;
    if (param->is_text) {
      read_text(in, param->text, sizeof(param->text));
    } else {
      param->number = cv_read_f64(in);
    }
  }
}

static enum cv_err read_names(struct cv_reader *in, struct cv_spec *spec) {
  spec->names = calloc(spec->arms, sizeof(*spec->names));
  if (spec->names == NULL) {
    return CV_ERR_NOMEM;
  }
  for (uint32_t i = 0; i < spec->arms; i++) {
    read_text(in, spec->names[i].text, sizeof(spec->names[i].text));
  }
  return CV_OK;
}

enum cv_err cv_spec_decode(struct cv_reader *in, struct cv_spec *ret_spec) {
  struct cv_spec spec = {0};
  if (cv_read_u8(in) != SPEC_VERSION) {
    return CV_ERR_VERSION;
  }
  read_text(in, spec.name, sizeof(spec.name));
  spec.arms = cv_read_u32(in);
  if (in->failed || spec.arms > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  if (cv_read_u8(in) != 0) {
    CV_TRY(read_names(in, &spec));
  }
  read_choice(in, &spec.policy);
  read_choice(in, &spec.mechanism);
  read_choice(in, &spec.privatizer);
  spec.epsilon_micro = cv_read_u64(in);
  spec.tokens_per_worker = cv_read_u32(in);
  spec.thirdparty_trusted = cv_read_u8(in) != 0;
  spec.tokens = cv_read_u64(in);
  spec.deadline_ms = cv_read_u64(in);
  spec.idle_ms = cv_read_u64(in);
  if (in->failed) {
    cv_spec_fini(&spec);
    return CV_ERR_FORMAT;
  }
  *ret_spec = spec;
  return CV_OK;
}
