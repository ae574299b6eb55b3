/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A port of an emulated switch: the classifier of the HTB qdisc that holds the port's lanes. It
 * sees each packet once, below the lock of the queue, before the packet is queued; so it chooses
 * the lane, enforces one byte limit over all lanes, as a switch with a shared buffer does, and sets
 * the ECN mark. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define LANES 4

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

#define TC_ACT_OK 0
#define TC_ACT_SHOT 2

/* The HTB qdisc has the handle MAJOR:0 and lane L the class MAJOR:(CLASS + L). */
const volatile __u32 handle_major = 0x10;
const volatile __u32 first_class = 0x10;

/* Lanes that the port has, 1..LANES. Packets of the missing ones share the last. */
const volatile __u32 lanes = LANES;
/* DSCP of each lane but the last, which takes all the rest. */
const volatile __u8 lane_dscp[LANES] = {};
/* Bytes that all lanes together may hold; 0: no limit here, the lanes' own queues have one. */
const volatile __u32 limit_bytes = 0;
/* A packet that finds more bytes queued than this leaves with the mark "congestion experienced", if
 * its transport can take it; 0: no marks. */
const volatile __u32 ecn_threshold_bytes = 0;
/* The link is cut without a sign: nothing passes. */
const volatile bool drop_all = false;

/* Bytes queued below the HTB qdisc, in all its classes; 0 if it is not there. */
static __u32 queued_bytes(struct __sk_buff *skb)
{
	const __u32 handle = handle_major << 16;
	/* include/linux/hash.h: hash_min() of a table with 2^4 buckets. */
	const __u32 bucket = (handle * 0x61C88647u) >> 28;
	struct net_device *device = NULL;
	struct hlist_node *node;

	/* The context of a tc program is the sk_buff itself; bpf_cast_to_kern_ctx() says so
	 * since 6.2 only. */
	bpf_probe_read_kernel(&device, sizeof(device),
			      (void *)skb + bpf_core_field_offset(struct sk_buff, dev));
	node = BPF_CORE_READ(device, qdisc_hash[bucket].first);
	for (int i = 0; i < 16 && node; i++) {
		struct Qdisc *qdisc = (void *)node - bpf_core_field_offset(struct Qdisc, hash);

		if (BPF_CORE_READ(qdisc, handle) == handle)
			return BPF_CORE_READ(qdisc, qstats.backlog);
		node = BPF_CORE_READ(node, next);
	}
	return 0;
}

/* The six bits of an IP packet, -1 of any other. */
static int dscp_of(struct __sk_buff *skb)
{
	__u8 head[2];

	if (bpf_skb_load_bytes_relative(skb, 0, head, sizeof(head), BPF_HDR_START_NET))
		return -1;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return head[1] >> 2;
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return ((head[0] & 0xf) << 2) | (head[1] >> 6);
	return -1;
}

static __u32 lane_of(int dscp)
{
	const __u32 last = lanes - 1;

	for (__u32 lane = 0; lane < LANES && lane < last; lane++)
		if (dscp == lane_dscp[lane])
			return lane;
	/* What is not IP is ARP here: a few small packets, without which nobody is reachable. */
	return dscp < 0 ? 0 : last;
}

SEC("tc")
int gl_lab_port(struct __sk_buff *skb)
{
	if (drop_all)
		return TC_ACT_SHOT;
	if (limit_bytes || ecn_threshold_bytes) {
		const __u32 queued = queued_bytes(skb);

		if (limit_bytes && queued + skb->wire_len > limit_bytes)
			return TC_ACT_SHOT;
		if (ecn_threshold_bytes && queued > ecn_threshold_bytes)
			bpf_skb_ecn_set_ce(skb);
	}
	skb->tc_classid = first_class + lane_of(dscp_of(skb));
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
