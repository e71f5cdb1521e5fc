/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec/crowd.h"

#include "tests/fuzz/codec.h"

CODEC_HARNESS(crowd)
