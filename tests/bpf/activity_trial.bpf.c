// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The count of active senders, driven by a test: arrivals with times of the test's choice. */
#include "lib/activity.h"
#include "lib/common.h"

#define FLOWS 256

/* One arrival: which flow, in which lane, how many bytes, the last of them pushed, when. */
__u32 flow;
__u32 lane;
__u32 bytes;
__u32 pushed;
__u64 now_ns;

/* Key 0. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct gl_scc_config);
} settings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, FLOWS);
  __type(key, __u32);
  __type(value, struct gl_place);
} places SEC(".maps");

SEC("tc")
int gl_trial(struct __sk_buff* skb) {
  __u32 zero = 0;
  __u32 index = flow;
  struct gl_scc_config* config = bpf_map_lookup_elem(&settings, &zero);
  struct gl_activity* activity = bpf_map_lookup_elem(&gl_activity, &zero);
  struct gl_place* place = bpf_map_lookup_elem(&places, &index);

  if (config && activity && place) gl_note_payload(activity, place, lane, bytes, pushed, now_ns, config);
  return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
