/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/base.h"

#include <math.h>
#include <string.h>

#include "common/base/le.h"
#include "common/base/text.h"

/* Unpacking. protobuf-c does not distinguish malformed input from failed allocation, so the allocator records the
 * latter. */

struct limited {
  struct cv_arena *arena;
  bool exhausted;
};

static void *limited_alloc(void *data, size_t n) {
  struct limited *limited = data;
  void *at = cv_arena_alloc(limited->arena, n);
  limited->exhausted = limited->exhausted || at == NULL;
  return at;
}

/* The arena is reset before the next frame; single frees have nothing to do. */
static void limited_free(void *data, void *pointer) {
  (void)data;
  (void)pointer;
}

enum cv_err cv_codec_unpack(const ProtobufCMessageDescriptor *descriptor, const void *bytes, size_t n, size_t most,
                            struct cv_arena *arena, ProtobufCMessage **ret) {
  cv_arena_reset(arena);
  if (n > most) {
    return CV_ERR_LIMIT;
  }
  /* Sixteen frames: a message of nothing but tiny submessages needs more memory than bytes. */
  cv_arena_bound(arena, n > CV_FRAME_BYTES ? 16 * n : CV_ARENA_BYTES);
  struct limited limited = {.arena = arena};
  ProtobufCAllocator allocator = {.alloc = limited_alloc, .free = limited_free, .allocator_data = &limited};
  ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, n, n > 0 ? bytes : (const uint8_t *)"");
  if (message == NULL) {
    return limited.exhausted ? CV_ERR_LIMIT : CV_ERR_FORMAT;
  }
  *ret = message;
  return CV_OK;
}

enum cv_err cv_codec_pack(const ProtobufCMessage *message, size_t most, struct cv_buf *out) {
  size_t n = protobuf_c_message_get_packed_size(message);
  if (n > most) {
    return CV_ERR_LIMIT;
  }
  CV_TRY(cv_buf_reserve(out, n));
  out->len += protobuf_c_message_pack(message, out->data + out->len);
  return CV_OK;
}

void *cv_codec_room(struct cv_arena *arena, size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? NULL : cv_arena_alloc(arena, bytes);
}

/* Fields. */

char *cv_codec_put_text(const char *text, size_t size, struct cv_arena *scratch) {
  if (text == NULL) {
    return cv_codec_borrow("");
  }
  size_t n = strnlen(text, size);
  /* Borrowed if possible: names of thousands of arms are not copied for each frame. */
  if (n < size && cv_text_is_clean(text, n)) {
    return cv_codec_borrow(text);
  }
  n = n < size ? n : size - 1;
  char *copy = cv_arena_alloc(scratch, n + 1);
  if (copy != NULL) {
    memcpy(copy, text, n);
    copy[n] = '\0';
    cv_text_clean(copy, n);
  }
  return copy;
}

enum cv_err cv_codec_put_refused(const char *refused, struct cv_arena *scratch, char **ret) {
  /* An empty reason would mean "not refused". */
  *ret = cv_codec_put_text(refused != NULL && refused[0] == '\0' ? "refused" : refused, CV_WHY_BYTES, scratch);
  return *ret == NULL ? CV_ERR_LIMIT : CV_OK;
}

bool cv_codec_text_fits(char *text, size_t size) {
  size_t n = strnlen(text, size);
  bool fits = n < size && cv_text_is_clean(text, n);
  if (fits) {
    cv_text_clean(text, n);
  }
  return fits;
}

static enum cv_err take_name(const char *name, char *to, size_t size) {
  size_t n = strnlen(name, size);
  if (n >= size || !cv_text_is_clean(name, n)) {
    return CV_ERR_FORMAT;
  }
  memcpy(to, name, n + 1);
  return CV_OK;
}

enum cv_err cv_codec_take_text(const char *text, char *to, size_t size) {
  CV_TRY(take_name(text, to, size));
  cv_text_clean(to, strlen(to));
  return CV_OK;
}

enum cv_err cv_codec_put_seed(uint64_t seed, struct cv_arena *scratch, ProtobufCBinaryData *ret) {
  uint8_t *bytes = cv_arena_alloc(scratch, 8);
  if (bytes == NULL) {
    return CV_ERR_LIMIT;
  }
  (void)cv_le_put(bytes, seed, 8);
  *ret = cv_codec_bytes(bytes, 8);
  return CV_OK;
}

enum cv_err cv_codec_take_seed(const ProtobufCBinaryData *in, uint64_t *ret) {
  if (in->len != 8) {
    return CV_ERR_FORMAT;
  }
  struct cv_reader reader = cv_reader_over(in->data, in->len);
  *ret = cv_read_u64(&reader);
  return CV_OK;
}

enum cv_err cv_codec_take_digest(const ProtobufCBinaryData *in, struct cv_digest *ret) {
  return cv_codec_take_bytes(in, ret->bytes, CV_DIGEST_BYTES);
}

enum cv_err cv_codec_take_bytes(const ProtobufCBinaryData *in, void *to, size_t size) {
  if (in->len != size) {
    return CV_ERR_FORMAT;
  }
  if (size > 0) { /* an empty field has no data */
    memcpy(to, in->data, size);
  }
  return CV_OK;
}

/* Hello and Goodbye. */

static Crowdveil__Base__Limits *put_limits(const struct cv_hello_limits *from, struct cv_arena *scratch) {
  Crowdveil__Base__Limits *to = cv_codec_room(scratch, 1, sizeof(*to));
  if (to != NULL) {
    *to = (Crowdveil__Base__Limits)CROWDVEIL__BASE__LIMITS__INIT;
    to->epsilon_micro = from->epsilon_micro;
    to->delta_pico = from->delta_pico;
    to->worker_epsilon_micro = from->worker_epsilon_micro;
    to->release_tokens = from->release_tokens;
    to->arms = from->arms;
    to->tokens = from->tokens;
  }
  return to;
}

static struct cv_hello_limits take_limits(const Crowdveil__Base__Limits *from) {
  return (struct cv_hello_limits){.epsilon_micro = from->epsilon_micro,
                                  .delta_pico = from->delta_pico,
                                  .worker_epsilon_micro = from->worker_epsilon_micro,
                                  .release_tokens = from->release_tokens,
                                  .arms = from->arms,
                                  .tokens = from->tokens};
}

enum cv_err cv_codec_put_greetings(const struct cv_hello *hello, const char *goodbye, struct cv_arena *scratch,
                                   Crowdveil__Base__Hello **ret_hello, Crowdveil__Base__Goodbye **ret_goodbye) {
  if (hello->present) {
    Crowdveil__Base__Hello *to = cv_codec_room(scratch, 1, sizeof(*to));
    char *program = cv_codec_put_text(hello->program, CV_NAME_BYTES, scratch);
    if (to == NULL || program == NULL) {
      return CV_ERR_LIMIT;
    }
    *to = (Crowdveil__Base__Hello)CROWDVEIL__BASE__HELLO__INIT;
    to->version = hello->version;
    to->term = hello->term;
    if (hello->has_limits) {
      to->limits = put_limits(&hello->limits, scratch);
      if (to->limits == NULL) {
        return CV_ERR_LIMIT;
      }
    }
    to->program = program;
    *ret_hello = to;
  }
  if (goodbye != NULL) {
    Crowdveil__Base__Goodbye *to = cv_codec_room(scratch, 1, sizeof(*to));
    char *why = cv_codec_put_text(goodbye, CV_WHY_BYTES, scratch);
    if (to == NULL || why == NULL) {
      return CV_ERR_LIMIT;
    }
    *to = (Crowdveil__Base__Goodbye)CROWDVEIL__BASE__GOODBYE__INIT;
    to->why = why;
    *ret_goodbye = to;
  }
  return CV_OK;
}

enum cv_err cv_codec_take_greetings(const Crowdveil__Base__Hello *hello, const Crowdveil__Base__Goodbye *goodbye,
                                    struct cv_hello *ret_hello, const char **ret_goodbye) {
  if (hello != NULL) {
    if (!cv_codec_text_fits(hello->program, CV_NAME_BYTES)) {
      return CV_ERR_FORMAT;
    }
    *ret_hello =
        (struct cv_hello){.present = true, .version = hello->version, .program = hello->program, .term = hello->term};
    if (hello->limits != NULL) {
      ret_hello->has_limits = true;
      ret_hello->limits = take_limits(hello->limits);
    }
  }
  if (goodbye != NULL) {
    if (!cv_codec_text_fits(goodbye->why, CV_WHY_BYTES)) {
      return CV_ERR_FORMAT;
    }
    *ret_goodbye = goodbye->why;
  }
  return CV_OK;
}

/* Choice and Spec. */

static enum cv_err put_param(const struct cv_param *param, struct cv_arena *scratch, Crowdveil__Base__Param *ret) {
  *ret = (Crowdveil__Base__Param)CROWDVEIL__BASE__PARAM__INIT;
  ret->key = cv_codec_put_text(param->key, CV_PARAM_TEXT, scratch);
  if (ret->key == NULL) {
    return CV_ERR_LIMIT;
  }
  if (!param->is_text) {
    ret->value_case = CROWDVEIL__BASE__PARAM__VALUE_NUMBER;
    ret->number = param->number;
    return CV_OK;
  }
  ret->value_case = CROWDVEIL__BASE__PARAM__VALUE_TEXT;
  ret->text = cv_codec_put_text(param->text, CV_PARAM_TEXT, scratch);
  return ret->text == NULL ? CV_ERR_LIMIT : CV_OK;
}

enum cv_err cv_codec_put_choice(const struct cv_choice *choice, struct cv_arena *scratch,
                                Crowdveil__Base__Choice **ret) {
  Crowdveil__Base__Choice *to = cv_codec_room(scratch, 1, sizeof(*to));
  char *name = cv_codec_put_text(choice->name, CV_PARAM_TEXT, scratch);
  if (to == NULL || name == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Base__Choice)CROWDVEIL__BASE__CHOICE__INIT;
  to->name = name;
  to->n_params = choice->params.count;
  Crowdveil__Base__Param *row;
  if (!CV_CODEC_ROWS(scratch, to->n_params, row, to->params)) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < to->n_params; i++) {
    to->params[i] = &row[i];
    CV_TRY(put_param(&choice->params.item[i], scratch, &row[i]));
  }
  *ret = to;
  return CV_OK;
}

static enum cv_err take_param(const Crowdveil__Base__Param *in, struct cv_param *ret) {
  CV_TRY(cv_codec_take_text(in->key, ret->key, sizeof(ret->key)));
  if (ret->key[0] == '\0') {
    return CV_ERR_FORMAT;
  }
  switch (in->value_case) {
    case CROWDVEIL__BASE__PARAM__VALUE_NUMBER:
      ret->number = in->number;
      /* Comparisons with NaN are all false: it would pass every check of a range. */
      return isfinite(in->number) ? CV_OK : CV_ERR_FORMAT;
    case CROWDVEIL__BASE__PARAM__VALUE_TEXT:
      ret->is_text = true;
      return cv_codec_take_text(in->text, ret->text, sizeof(ret->text));
    default:
      return CV_ERR_FORMAT;
  }
}

enum cv_err cv_codec_take_choice(const Crowdveil__Base__Choice *in, struct cv_choice *ret) {
  *ret = (struct cv_choice){0};
  if (in == NULL) {
    return CV_OK;
  }
  CV_TRY(cv_codec_take_text(in->name, ret->name, sizeof(ret->name)));
  if (in->n_params > CV_PARAMS_MAX) {
    return CV_ERR_FORMAT;
  }
  for (size_t i = 0; i < in->n_params; i++) {
    struct cv_param *param = &ret->params.item[i];
    CV_TRY(take_param(in->params[i], param));
    /* Two parties that took different ones of two equal keys would run different campaigns. */
    if (cv_params_find(&ret->params, param->key) != NULL) {
      return CV_ERR_FORMAT;
    }
    ret->params.count++;
  }
  return CV_OK;
}

static enum cv_err put_names(const struct cv_spec *spec, struct cv_arena *scratch, Crowdveil__Base__Spec *ret) {
  if (spec->names == NULL) {
    return CV_OK;
  }
  ret->names = cv_codec_room(scratch, spec->arms, sizeof(*ret->names));
  if (ret->names == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->n_names = spec->arms;
  for (size_t i = 0; i < spec->arms; i++) {
    ret->names[i] = cv_codec_put_text(spec->names[i], CV_ITEM_BYTES, scratch);
    if (ret->names[i] == NULL) {
      return CV_ERR_LIMIT;
    }
  }
  return CV_OK;
}

/* Borrows costs and workers; packing does not write. */
static enum cv_err put_lists(const struct cv_spec *spec, struct cv_arena *scratch, Crowdveil__Base__Spec *ret) {
  CV_TRY(put_names(spec, scratch, ret));
  ret->costs_micro = spec->cost_micro;
  ret->n_costs_micro = spec->cost_micro == NULL ? 0 : spec->arms;
  ret->workers = spec->worker;
  ret->n_workers = spec->worker == NULL ? 0 : spec->arms;
  if (spec->edges == 0) {
    return CV_OK;
  }
  ret->edges = cv_codec_room(scratch, 2 * (size_t)spec->edges, sizeof(*ret->edges));
  if (ret->edges == NULL) {
    return CV_ERR_LIMIT;
  }
  ret->n_edges = 2 * (size_t)spec->edges;
  for (size_t i = 0; i < spec->edges; i++) {
    ret->edges[2 * i] = spec->edge[i].a;
    ret->edges[2 * i + 1] = spec->edge[i].b;
  }
  return CV_OK;
}

static enum cv_err put_scale(const struct cv_scale *scale, struct cv_arena *scratch, Crowdveil__Base__Scale **ret) {
  if (!cv_scale_is_declared(scale)) {
    return CV_OK;
  }
  Crowdveil__Base__Scale *to = cv_codec_room(scratch, 1, sizeof(*to));
  if (to == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Base__Scale)CROWDVEIL__BASE__SCALE__INIT;
  to->low = scale->low;
  to->high = scale->high;
  *ret = to;
  return CV_OK;
}

static enum cv_err take_scale(const Crowdveil__Base__Scale *in, struct cv_scale *ret) {
  if (in == NULL) {
    return CV_OK;
  }
  *ret = (struct cv_scale){.low = in->low, .high = in->high};
  return isfinite(in->low) && isfinite(in->high) && cv_scale_is_declared(ret) ? CV_OK : CV_ERR_FORMAT;
}

enum cv_err cv_codec_put_spec(const struct cv_spec *spec, struct cv_arena *scratch, Crowdveil__Base__Spec **ret) {
  Crowdveil__Base__Spec *to = cv_codec_room(scratch, 1, sizeof(*to));
  char *name = cv_codec_put_text(spec->name, CV_NAME_BYTES, scratch);
  if (to == NULL || name == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Base__Spec)CROWDVEIL__BASE__SPEC__INIT;
  to->name = name;
  to->arms = spec->arms;
  CV_TRY(put_lists(spec, scratch, to));
  CV_TRY(cv_codec_put_choice(&spec->policy, scratch, &to->policy));
  CV_TRY(cv_codec_put_choice(&spec->mechanism, scratch, &to->mechanism));
  CV_TRY(cv_codec_put_choice(&spec->privatizer, scratch, &to->privatizer));
  to->epsilon_micro = spec->epsilon_micro;
  to->tokens_per_worker = spec->tokens_per_worker;
  to->thirdparty_trusted = spec->thirdparty_trusted;
  to->tokens = spec->tokens;
  to->deadline_ms = spec->deadline_ms;
  to->idle_ms = spec->idle_ms;
  to->budget_micro = spec->budget_micro;
  to->pairs = spec->pairs;
  to->repeat = spec->repeat;
  to->brokers = spec->brokers;
  to->score_bits = spec->score_bits;
  CV_TRY(put_scale(&spec->scale, scratch, &to->scale));
  *ret = to;
  return CV_OK;
}

static enum cv_err take_names(const Crowdveil__Base__Spec *in, struct cv_spec *ret) {
  if (in->n_names == 0) {
    return CV_OK;
  }
  /* All or none: code that uses the names has one for each arm. */
  if (in->n_names != in->arms) {
    return CV_ERR_FORMAT;
  }
  for (size_t i = 0; i < in->n_names; i++) {
    size_t n = strnlen(in->names[i], CV_ITEM_BYTES);
    if (n == CV_ITEM_BYTES || !cv_text_is_clean(in->names[i], n)) {
      return CV_ERR_FORMAT;
    }
  }
  /* In the arena, as unpacked: a copy of each would double the memory of the longest lists. */
  ret->names = cv_codec_borrow(in->names);
  return CV_OK;
}

/* Takes one number for each arm, or none. */
static enum cv_err take_numbers(const uint64_t *in, size_t n, uint32_t arms, struct cv_arena *arena, uint64_t **ret) {
  if (n == 0) {
    return CV_OK;
  }
  if (n != arms) {
    return CV_ERR_FORMAT;
  }
  *ret = cv_arena_array(arena, n, sizeof(**ret));
  if (*ret == NULL) {
    return CV_ERR_LIMIT;
  }
  memcpy(*ret, in, n * sizeof(**ret));
  return CV_OK;
}

static enum cv_err take_edges(const Crowdveil__Base__Spec *in, struct cv_arena *arena, struct cv_spec *ret) {
  if (in->n_edges == 0) {
    return CV_OK;
  }
  if (in->n_edges % 2 != 0 || in->n_edges / 2 > CV_EDGES_MAX) {
    return CV_ERR_FORMAT;
  }
  ret->edges = (uint32_t)(in->n_edges / 2);
  ret->edge = cv_arena_array(arena, ret->edges, sizeof(*ret->edge));
  if (ret->edge == NULL) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < ret->edges; i++) {
    ret->edge[i] = (struct cv_edge){.a = in->edges[2 * i], .b = in->edges[2 * i + 1]};
  }
  return CV_OK;
}

static enum cv_err take_lists(const Crowdveil__Base__Spec *in, struct cv_arena *arena, struct cv_spec *ret) {
  CV_TRY(take_names(in, ret));
  CV_TRY(take_numbers(in->costs_micro, in->n_costs_micro, in->arms, arena, &ret->cost_micro));
  CV_TRY(take_numbers(in->workers, in->n_workers, in->arms, arena, &ret->worker));
  return take_edges(in, arena, ret);
}

enum cv_err cv_codec_take_spec(const Crowdveil__Base__Spec *in, struct cv_arena *arena, struct cv_spec *ret) {
  *ret = (struct cv_spec){0};
  /* Before any list, whose lengths are compared with it. */
  if (in == NULL || in->arms > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  CV_TRY(take_name(in->name, ret->name, sizeof(ret->name)));
  ret->arms = in->arms;
  CV_TRY(take_lists(in, arena, ret));
  CV_TRY(cv_codec_take_choice(in->policy, &ret->policy));
  CV_TRY(cv_codec_take_choice(in->mechanism, &ret->mechanism));
  CV_TRY(cv_codec_take_choice(in->privatizer, &ret->privatizer));
  ret->epsilon_micro = in->epsilon_micro;
  ret->tokens_per_worker = in->tokens_per_worker;
  ret->thirdparty_trusted = in->thirdparty_trusted != 0;
  ret->tokens = in->tokens;
  ret->deadline_ms = in->deadline_ms;
  ret->idle_ms = in->idle_ms;
  ret->budget_micro = in->budget_micro;
  ret->pairs = in->pairs != 0;
  ret->repeat = in->repeat != 0;
  ret->brokers = in->brokers;
  ret->score_bits = in->score_bits;
  return take_scale(in->scale, &ret->scale);
}

void cv_codec_clean_names(struct cv_spec *spec) {
  cv_text_clean(spec->name, strlen(spec->name));
  for (uint32_t i = 0; spec->names != NULL && i < spec->arms; i++) {
    /* In the frame's arena, which is ours to write. */
    cv_text_clean((char *)(uintptr_t)spec->names[i], strlen(spec->names[i]));
  }
}

/* Terms. */

static enum cv_err put_split(const struct cv_split *split, struct cv_arena *scratch, Crowdveil__Base__Split **ret) {
  if (split->score_bits == 0) {
    return CV_OK;
  }
  Crowdveil__Base__Split *to = cv_codec_room(scratch, 1, sizeof(*to));
  if (to == NULL) {
    return CV_ERR_LIMIT;
  }
  *to = (Crowdveil__Base__Split)CROWDVEIL__BASE__SPLIT__INIT;
  to->score_bits = split->score_bits;
  to->database = cv_codec_bytes(split->database, CV_SPLIT_DATABASE_BYTES);
  to->spec = cv_codec_bytes(split->spec.bytes, CV_DIGEST_BYTES);
  to->key = cv_codec_bytes(split->key.bytes, CV_DIGEST_BYTES);
  *ret = to;
  return CV_OK;
}

enum cv_err cv_codec_put_terms(const struct cv_terms *terms, struct cv_arena *scratch, Crowdveil__Base__Terms *ret) {
  *ret = (Crowdveil__Base__Terms)CROWDVEIL__BASE__TERMS__INIT;
  ret->id = terms->id;
  ret->name = cv_codec_put_text(terms->name, CV_NAME_BYTES, scratch);
  ret->requester = cv_codec_put_text(terms->requester, CV_NAME_BYTES, scratch);
  if (ret->name == NULL || ret->requester == NULL) {
    return CV_ERR_LIMIT;
  }
  CV_TRY(cv_codec_put_choice(&terms->privatizer, scratch, &ret->privatizer));
  CV_TRY(cv_codec_put_choice(&terms->mechanism, scratch, &ret->mechanism));
  ret->epsilon_micro = terms->epsilon_micro;
  ret->tokens_per_worker = terms->tokens_per_worker;
  ret->arms = terms->arms;
  ret->pairs = terms->pairs;
  ret->repeat = terms->repeat;
  ret->lease_ms = terms->lease_ms;
  CV_TRY(put_scale(&terms->scale, scratch, &ret->scale));
  return put_split(&terms->split, scratch, &ret->split);
}

static enum cv_err take_split(const Crowdveil__Base__Split *in, struct cv_split *ret) {
  if (in == NULL) {
    return CV_OK;
  }
  if (in->score_bits != CV_SPLIT_BIT && in->score_bits != CV_SPLIT_SCORE) {
    return CV_ERR_FORMAT;
  }
  ret->score_bits = in->score_bits;
  CV_TRY(cv_codec_take_bytes(&in->database, ret->database, CV_SPLIT_DATABASE_BYTES));
  CV_TRY(cv_codec_take_digest(&in->spec, &ret->spec));
  return cv_codec_take_digest(&in->key, &ret->key);
}

enum cv_err cv_codec_take_terms(const Crowdveil__Base__Terms *in, struct cv_terms *ret) {
  if (in == NULL || in->arms > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_terms){.id = in->id,
                           .epsilon_micro = in->epsilon_micro,
                           .tokens_per_worker = in->tokens_per_worker,
                           .arms = in->arms,
                           .pairs = in->pairs != 0,
                           .repeat = in->repeat != 0,
                           .lease_ms = in->lease_ms};
  CV_TRY(cv_codec_take_text(in->name, ret->name, sizeof(ret->name)));
  CV_TRY(cv_codec_take_text(in->requester, ret->requester, sizeof(ret->requester)));
  CV_TRY(cv_codec_take_choice(in->privatizer, &ret->privatizer));
  CV_TRY(cv_codec_take_choice(in->mechanism, &ret->mechanism));
  CV_TRY(take_scale(in->scale, &ret->scale));
  return take_split(in->split, &ret->split);
}

/* Release. */

enum cv_err cv_codec_put_release(uint64_t campaign, const struct cv_release *release, struct cv_arena *scratch,
                                 Crowdveil__Base__Release *ret) {
  *ret = (Crowdveil__Base__Release)CROWDVEIL__BASE__RELEASE__INIT;
  ret->campaign = campaign;
  ret->number = release->number;
  ret->plan = release->plan;
  ret->arm = release->arm;
  ret->tokens = release->tokens;
  ret->noisy_sum = release->noisy_sum;
  ret->last = release->last;
  ret->n_noise = release->noise.groups;
  Crowdveil__Base__NoiseGroup *row;
  if (!CV_CODEC_ROWS(scratch, ret->n_noise, row, ret->noise)) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < ret->n_noise; i++) {
    row[i] = (Crowdveil__Base__NoiseGroup)CROWDVEIL__BASE__NOISE_GROUP__INIT;
    row[i].scale = release->noise.group[i].scale;
    row[i].count = release->noise.group[i].count;
    ret->noise[i] = &row[i];
  }
  return CV_OK;
}

enum cv_err cv_codec_take_release(const Crowdveil__Base__Release *in, struct cv_release *ret) {
  if (in->number == 0 || in->arm >= CV_ARMS_MAX || in->n_noise > CV_NOISE_GROUPS_MAX) {
    return CV_ERR_FORMAT;
  }
  *ret = (struct cv_release){.number = in->number,
                             .plan = in->plan,
                             .arm = in->arm,
                             .tokens = in->tokens,
                             .noisy_sum = in->noisy_sum,
                             .last = in->last != 0,
                             .noise.groups = (uint32_t)in->n_noise};
  for (size_t i = 0; i < in->n_noise; i++) {
    double scale = in->noise[i]->scale;
    /* The policy computes radii from it. */
    if (!isfinite(scale) || scale < 0) {
      return CV_ERR_FORMAT;
    }
    ret->noise.group[i] = (struct cv_noise_group){.scale = scale, .count = in->noise[i]->count};
  }
  return CV_OK;
}

/* Plan. */

enum cv_err cv_codec_put_plan(uint64_t campaign, const struct cv_plan *plan, struct cv_arena *scratch,
                              Crowdveil__Base__Plan *ret) {
  *ret = (Crowdveil__Base__Plan)CROWDVEIL__BASE__PLAN__INIT;
  ret->campaign = campaign;
  ret->number = plan->number;
  ret->n_wants = plan->wants;
  Crowdveil__Base__Want *row;
  if (!CV_CODEC_ROWS(scratch, ret->n_wants, row, ret->wants)) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < ret->n_wants; i++) {
    row[i] = (Crowdveil__Base__Want)CROWDVEIL__BASE__WANT__INIT;
    row[i].arm = plan->want[i].arm;
    row[i].tokens = plan->want[i].tokens;
    row[i].opponent = plan->want[i].opponent;
    ret->wants[i] = &row[i];
  }
  return CV_OK;
}

enum cv_err cv_codec_take_plan(const Crowdveil__Base__Plan *in, struct cv_arena *arena, struct cv_plan *ret) {
  if (in->n_wants > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  struct cv_want *want = cv_codec_room(arena, in->n_wants, sizeof(*want));
  if (want == NULL) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < in->n_wants; i++) {
    want[i] =
        (struct cv_want){.arm = in->wants[i]->arm, .tokens = in->wants[i]->tokens, .opponent = in->wants[i]->opponent};
  }
  *ret = (struct cv_plan){.number = in->number, .wants = (uint32_t)in->n_wants, .want = want};
  return CV_OK;
}

enum cv_err cv_codec_take_accepted_plan(const Crowdveil__Base__Plan *in, struct cv_arena *arena, struct cv_plan *ret) {
  uint64_t seen[CV_ARMS_MAX / 64] = {0};
  if (in->number == 0) {
    return CV_ERR_FORMAT;
  }
  for (size_t i = 0; i < in->n_wants; i++) {
    uint32_t arm = in->wants[i]->arm;
    /* A plan that was accepted names each arm once; a policy's plan is checked by the broker, which says why it
     * refuses. */
    if (arm >= CV_ARMS_MAX || (seen[arm / 64] >> (arm % 64) & 1) != 0) {
      return CV_ERR_FORMAT;
    }
    seen[arm / 64] |= UINT64_C(1) << (arm % 64);
  }
  return cv_codec_take_plan(in, arena, ret);
}

/* Standings. */

enum cv_err cv_codec_put_standings(const struct cv_standing *standing, size_t n, struct cv_arena *scratch,
                                   Crowdveil__Base__Standing ***ret) {
  Crowdveil__Base__Standing *row, **pointer;
  if (!CV_CODEC_ROWS(scratch, n, row, pointer)) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < n; i++) {
    row[i] = (Crowdveil__Base__Standing)CROWDVEIL__BASE__STANDING__INIT;
    row[i].arm = standing[i].arm;
    row[i].rank_class = standing[i].rank_class;
    row[i].tokens = standing[i].tokens;
    row[i].mean = standing[i].mean;
    row[i].radius = standing[i].radius;
    row[i].rank_last = standing[i].rank_last;
    row[i].held = standing[i].held;
    row[i].contradicts = standing[i].contradicts;
    pointer[i] = &row[i];
  }
  *ret = pointer;
  return CV_OK;
}

enum cv_err cv_codec_take_standings(Crowdveil__Base__Standing **in, size_t n, struct cv_arena *arena, uint32_t *ret_n,
                                    struct cv_standing **ret) {
  if (n > CV_ARMS_MAX) {
    return CV_ERR_FORMAT;
  }
  struct cv_standing *standing = cv_codec_room(arena, n, sizeof(*standing));
  if (standing == NULL) {
    return CV_ERR_LIMIT;
  }
  for (size_t i = 0; i < n; i++) {
    const Crowdveil__Base__Standing *from = in[i];
    if (from->arm >= CV_ARMS_MAX || from->held >= CV_HELD_COUNT || !isfinite(from->mean) || !isfinite(from->radius) ||
        from->radius < 0) {
      return CV_ERR_FORMAT;
    }
    standing[i] = (struct cv_standing){.arm = from->arm,
                                       .rank_class = from->rank_class,
                                       .rank_last = from->rank_last,
                                       .held = (enum cv_held)from->held,
                                       .tokens = from->tokens,
                                       .mean = from->mean,
                                       .radius = from->radius,
                                       .contradicts = from->contradicts != 0};
    if (!cv_standing_is_plausible(&standing[i], CV_ARMS_MAX)) {
      return CV_ERR_FORMAT;
    }
  }
  *ret_n = (uint32_t)n;
  *ret = standing;
  return CV_OK;
}
