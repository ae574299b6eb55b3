/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The named counters, one map for each object that counts. */
#ifndef GRADLANE_LIB_COUNT_H
#define GRADLANE_LIB_COUNT_H

#include "common.h"
#include "gradlane/abi/observe.h"

/* Key: enum gl_counter. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GL_COUNTER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} gl_count SEC(".maps");

static __always_inline void gl_count_up(__u32 counter)
{
	__u64 *value = bpf_map_lookup_elem(&gl_count, &counter);

	if (value)
		(*value)++;
}

#endif
