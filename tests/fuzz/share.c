/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/share.h"

#include "tests/fuzz/codec.h"

CODEC_HARNESS(share)
